"""How loops are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a loop when it is first called; keep it on disk; run it without the lock."""
    return cast("Function", numba.njit(nogil=True, cache=True)(function))
