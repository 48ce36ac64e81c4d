"""What a worker process of Ray does with chunks, and what it keeps from one to the next."""

from __future__ import annotations

import platform
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import ray
from threadpoolctl import threadpool_limits

from tilp.parallel.parcels import Bytes, Opener, Parcel, pack, unpack
from tilp.versions import made_with

__all__ = ["Told", "other_versions", "run"]

Told = list[tuple[type[Warning], str]]
"""Warnings: what they are, and what they say."""

_MOST_FUNCTIONS = 32  # maps that are under way at once, and a few that were


def _get(refs: Sequence[Any]) -> Sequence[Any]:
    found: Sequence[Any] = ray.get(list(refs))
    return found


_opener = Opener(_get)
_functions: OrderedDict[tuple[str, int], Callable[[Any], Any]] = OrderedDict()


@lru_cache(1)
def other_versions(wanted: tuple[tuple[str, str], ...]) -> str:
    """What is not as it is where the work comes from; nothing where all is."""
    here = made_with()
    differ = [
        f"{name} {here.get(name, 'none')[:12]}, not {one[:12]}"
        for name, one in wanted
        if here.get(name) != one
    ]
    return f"a worker on {platform.node()} has {'; '.join(differ)}" if differ else ""


def run(call: tuple[str, int], holder: Sequence[Any], chunk: Bytes) -> tuple[Bytes, Told]:
    """The result for one chunk, and the warnings that it gave.

    Args:
        call: the session and the number of the map in it.
        holder: the reference to its function, in a list, so that it is not fetched every time.
        chunk: as it was packed.
    """
    function = _function(call, holder)
    with warnings.catch_warnings(record=True) as told:
        found = function(unpack(chunk))
    return pack(found), [(one.category, str(one.message)) for one in told]


def _function(call: tuple[str, int], holder: Sequence[Any]) -> Callable[[Any], Any]:
    if call not in _functions:
        # What the functions of an earlier session hold would stay in the store with them.
        for other in [one for one in _functions if one[0] != call[0]]:
            del _functions[other]
        (parcel,) = _get(holder)
        _functions[call] = _opener.unpack(Parcel(*parcel))
        if len(_functions) > _MOST_FUNCTIONS:
            _functions.popitem(last=False)
        # Sums of linear algebra depend on its threads; its libraries may just have been loaded.
        threadpool_limits(limits=1, user_api="blas")
    _functions.move_to_end(call)
    return _functions[call]
