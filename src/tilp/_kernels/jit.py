"""How loops are compiled."""

import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from tilp._utils.files import cache_folder

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _digest_of_sources() -> str:
    """What is written in the modules that loops are made of."""
    package = Path(__file__).parents[1]
    sources = sorted([*package.glob("_kernels/*.py"), *package.glob("time/*.py")])
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


def _folder_of_loops(sources: str) -> Path | None:
    """The folder of loops that were compiled from the same sources, wherever these lie.

    Those of other sources are removed when they are old. None where nothing can be kept: numba
    then looks for another place.
    """
    folders = cache_folder() / "loops"
    folder = folders / sources[:16]
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            for other in folders.iterdir():
                if time.time() - other.stat().st_mtime > _OLD:
                    shutil.rmtree(other)
    except OSError:
        return None
    return folder


_OLD = 30 * 86_400  # seconds
_SOURCES = _digest_of_sources()
_FOLDER = _folder_of_loops(_SOURCES)


def kernel(function: Function) -> Function:
    """Compile a loop when it is first called; keep it on disk; run it without the lock."""
    compiled: Any = numba.njit(nogil=True, cache=True)(function)
    # What numba keeps beside a loop's file is held to be good as long as that file is the same,
    # though the loops that it calls were compiled into it: here any change makes all of it new,
    # and what is the same serves every installation.
    kept = compiled._cache._cache_file
    kept._source_stamp = _SOURCES
    if _FOLDER is not None:
        kept._cache_path = str(_FOLDER)
        kept._index_path = str(_FOLDER / kept._index_name)
    return cast("Function", compiled)
