"""Read-only arrays, which may be shared: between threads, and between processes."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["frozen", "read_only"]

Array = TypeVar("Array", bound=NDArray[Any])
Columns = TypeVar("Columns", bound=tuple[Any, ...])


def read_only(array: Array) -> Array:
    """The same numbers, not to be written to; the array itself where it is so already.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def frozen(columns: Columns) -> Columns:
    """A named tuple with its arrays read-only."""
    arrays = (read_only(one) if isinstance(one, np.ndarray) else one for one in columns)
    return type(columns)(*arrays)
