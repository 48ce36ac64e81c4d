"""Code that runs in Ray's worker processes, and the functions they cache between chunks."""

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
from tilp.parallel.transfer import Bytes, PackedValue, SharedUnpacker, pack, unpack

_MAX_FUNCTIONS = 32  # maps that run at the same time


class ChunkResult(NamedTuple):
    """Outcome of a chunk.

    Attributes:
        value: result or exception, packed.
        traceback: machine and traceback of the exception; empty if there is none.
        warnings: category and message of each warning.
    """

    value: Bytes
    traceback: str
    warnings: list[tuple[type[Warning], str]]


def _get(refs: Sequence[Any]) -> Sequence[Any]:
    values: Sequence[Any] = ray.get(list(refs))
    return values


_unpacker = SharedUnpacker(_get)
_functions: OrderedDict[tuple[str, int], Callable[[Any], Any]] = OrderedDict()


@lru_cache(1)
def version_mismatches(expected: tuple[tuple[str, str], ...]) -> str:
    """Describe version mismatches with the driver; empty if none."""
    versions = code_versions()
    mismatches = [
        f"{name} {versions.get(name, 'none')[:12]}, not {version[:12]}"
        for name, version in expected
        if versions.get(name) != version
    ]
    return f"a worker on {platform.node()} has {'; '.join(mismatches)}" if mismatches else ""


def run_chunk(call: tuple[str, int, int], function: Sequence[Any], chunk: Bytes) -> ChunkResult:
    """Run a function on a chunk.

    Args:
        call: session id, id of the map in the session, and lowest id of an unfinished map.
        function: reference to the function, in a list so that Ray does not fetch it every time.
        chunk: packed argument.
    """
    error = ""
    with warnings.catch_warnings(record=True) as caught:
        try:
            value = pack(_load_function(call, function)(unpack(chunk)))
        except Exception as failure:  # noqa: BLE001 - raised again by the driver
            error = f"on {platform.node()}:\n{traceback.format_exc()}"
            value = _pack_exception(failure)
    return ChunkResult(value, error, [(item.category, str(item.message)) for item in caught])


def _pack_exception(failure: Exception) -> Bytes:
    """Pack an exception; one that cannot be pickled becomes a `TilpError` with its message."""
    try:
        packed = pack(failure)
        unpack(packed)
    except Exception:  # noqa: BLE001 - an exception may hold anything
        return pack(TilpError(f"{type(failure).__name__}: {failure}"))
    return packed


def _load_function(call: tuple[str, int, int], function: Sequence[Any]) -> Callable[[Any], Any]:
    session, map_id, first_unfinished = call
    # Cached functions of finished maps would keep their arrays in the object store.
    for key in [k for k in _functions if k[0] != session or k[1] < first_unfinished]:
        del _functions[key]
    if (session, map_id) not in _functions:
        (packed,) = _get(function)
        _functions[session, map_id] = _unpacker.unpack(PackedValue(*packed))
        if len(_functions) > _MAX_FUNCTIONS:
            _functions.popitem(last=False)
        # Sums of linear algebra depend on its threads; its libraries may just have been loaded.
        threadpool_limits(limits=1, user_api="blas")
    _functions.move_to_end((session, map_id))
    return _functions[session, map_id]
