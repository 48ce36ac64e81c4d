"""How loops are compiled."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _digest_of_sources() -> str:
    """What is written in the modules that loops are made of."""
    package = Path(__file__).parents[1]
    sources = sorted([*package.glob("_kernels/*.py"), *package.glob("intervals/*.py")])
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


_SOURCES = _digest_of_sources()


def kernel(function: Function) -> Function:
    """Compile a loop when it is first called; keep it on disk; run it without the lock."""
    compiled: Any = numba.njit(nogil=True, cache=True)(function)
    # What is kept on disk is held to be good as long as the loop's own file is the same, though
    # the loops that it calls were compiled into it: here any change makes all of it new.
    compiled._cache._cache_file._source_stamp = _SOURCES
    return cast("Function", compiled)
