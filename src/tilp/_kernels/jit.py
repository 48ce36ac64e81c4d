"""Compilation of kernels, and where their machine code is cached."""

import hashlib
import pickle
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from tilp._utils.files import cache_folder
from tilp._utils.progress import report_compile
from tilp.errors import TilpWarning

Function = TypeVar("Function", bound=Callable[..., Any])


def _source_digest() -> str:
    """Return a digest of all modules that kernels are compiled from."""
    package = Path(__file__).parents[1]
    sources = sorted([*package.glob("_kernels/*.py"), *package.glob("time/*.py")])
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


_DIGEST = _source_digest()
_FOLDER = cache_folder() / "loops" / _DIGEST[:16]
_warned = False


class _Locator(_CacheLocator):
    """Tells numba the folder of compiled kernels, and when they are out of date.

    numba's own locators take a kernel as valid while its own file is unchanged, though the kernels
    that it calls are compiled into it. Here any change of any kernel's source makes all of them
    new, and installations with the same sources share one folder.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(_FOLDER)

    def get_source_stamp(self) -> str:
        return _DIGEST

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator":  # noqa: ARG003
        return cls(py_func)


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # type: ignore[list-item]  # noqa: RUF012


class _KernelCache(FunctionCache):
    _impl_class = _CacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        loaded = None
        with suppress(OSError, EOFError, pickle.UnpicklingError):  # compiled anew then
            loaded = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if loaded is None:
            report_compile()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel; a folder that is full or cannot be written gives a warning."""
        global _warned
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as failure:
            if not _warned:
                message = (
                    f"compiled loops cannot be cached in {_FOLDER} ({failure}): every run compiles "
                    "them anew. TILP_CACHE names another folder."
                )
                warnings.warn(TilpWarning(message), stacklevel=2)
            _warned = True


def bare_kernel(function: Function) -> Function:
    """Compile a kernel that makes and returns no array.

    It borrows the arrays of its caller and counts no references to them. Counting takes most of the
    time of a short function that is given many arrays.
    """
    return kernel(function, counts_references=False)


def kernel(function: Function, *, counts_references: bool = True) -> Function:
    """Compile a function at its first call, cache it on disk, and run it without the lock."""
    # numba has no public name for the option, and its types do not list it.
    options: Any = {"nogil": True, "_nrt": counts_references}
    compiled: Any = numba.njit(**options)(function)
    call_template, unliteral = compiled.get_call_template, cast("Any", numba.types.unliteral)
    # numba would compile a kernel that is called with the literal 0 once more for any integer.
    compiled.get_call_template = lambda arguments, keywords: call_template(
        [unliteral(argument) for argument in arguments], keywords
    )
    # What `cache=True` does, with the cache above: numba has no option for a locator that holds
    # for some functions only.
    compiled._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
    return cast("Function", compiled)
