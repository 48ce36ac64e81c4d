"""What a worker process of Ray does with chunks, and what it keeps from one to the next."""

from __future__ import annotations

import platform
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import ray
from threadpoolctl import threadpool_limits

from tilp._utils.versions import code_versions
from tilp.errors import TilpError
from tilp.parallel.transfer import Bytes, Opener, Parcel, pack, unpack

_MOST_FUNCTIONS = 32  # maps that are under way at once


class Done(NamedTuple):
    """What came of a chunk.

    Attributes:
        found: its result, or its exception, packed.
        failed: where the exception was raised; nothing: there was none.
        told: its warnings: what they are, and what they say.
    """

    found: Bytes
    failed: str
    told: list[tuple[type[Warning], str]]


def _get(refs: Sequence[Any]) -> Sequence[Any]:
    found: Sequence[Any] = ray.get(list(refs))
    return found


_opener = Opener(_get)
_functions: OrderedDict[tuple[str, int], Callable[[Any], Any]] = OrderedDict()


@lru_cache(1)
def other_versions(wanted: tuple[tuple[str, str], ...]) -> str:
    """What is not as it is where the work comes from; nothing where all is."""
    here = code_versions()
    differ = [
        f"{name} {here.get(name, 'none')[:12]}, not {one[:12]}"
        for name, one in wanted
        if here.get(name) != one
    ]
    return f"a worker on {platform.node()} has {'; '.join(differ)}" if differ else ""


def run(call: tuple[str, int, int], holder: Sequence[Any], chunk: Bytes) -> Done:
    """What comes of one chunk.

    Args:
        call: the session, the number of the map in it, and that of the first that is not done.
        holder: the reference to its function, in a list, so that it is not fetched every time.
        chunk: as it was packed.
    """
    failed = ""
    with warnings.catch_warnings(record=True) as told:
        try:
            found = pack(_function(call, holder)(unpack(chunk)))
        except Exception as failure:  # noqa: BLE001 - raised again where the work comes from
            failed = f"on {platform.node()}:\n{traceback.format_exc()}"
            found = _packed(failure)
    return Done(found, failed, [(one.category, str(one.message)) for one in told])


def _packed(failure: Exception) -> Bytes:
    """An exception; what cannot travel, as one that says the same."""
    try:
        found = pack(failure)
        unpack(found)
    except Exception:  # noqa: BLE001 - an exception may hold anything
        return pack(TilpError(f"{type(failure).__name__}: {failure}"))
    return found


def _function(call: tuple[str, int, int], holder: Sequence[Any]) -> Callable[[Any], Any]:
    session, number, first = call
    # What the functions of maps that are done hold would stay in the store with them.
    for other in [one for one in _functions if one[0] != session or one[1] < first]:
        del _functions[other]
    if (session, number) not in _functions:
        (parcel,) = _get(holder)
        _functions[session, number] = _opener.unpack(Parcel(*parcel))
        if len(_functions) > _MOST_FUNCTIONS:
            _functions.popitem(last=False)
        # Sums of linear algebra depend on its threads; its libraries may just have been loaded.
        threadpool_limits(limits=1, user_api="blas")
    _functions.move_to_end((session, number))
    return _functions[session, number]
