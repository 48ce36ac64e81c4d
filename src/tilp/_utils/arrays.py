"""Types of arrays, tables of columns, read-only arrays, indices of several ranges at once."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.int32]
Indices = NDArray[np.int64]
Ints = NDArray[np.int64]  # counts, times and codes
Mask = NDArray[np.bool_]

Array = TypeVar("Array", bound=NDArray[Any])
Columns = TypeVar("Columns", bound=tuple[Any, ...])


class ColumnTable:
    """Base of dataclasses whose fields are columns of one length; an index selects rows."""

    @property
    def columns(self) -> list[NDArray[Any]]:
        """The columns in the order of the fields."""
        return [getattr(self, field.name) for field in fields(cast(Any, self))]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, rows: NDArray[Any] | slice) -> Self:
        return type(self)(*(column[rows] for column in self.columns))

    @classmethod
    def join(cls, tables: Iterable[Self]) -> Self:
        """Concatenate tables."""
        columns = zip(*(table.columns for table in tables), strict=True)
        return cls(*(np.concatenate(parts) for parts in columns))


def read_only(array: Array) -> Array:
    """Return a read-only view of an array; the array itself if it is read-only already.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def read_only_tuple(columns: Columns) -> Columns:
    """Return a named tuple with its arrays read-only."""
    arrays = (read_only(item) if isinstance(item, np.ndarray) else item for item in columns)
    return type(columns)(*arrays)


def split_by_sum(indices: Indices, sizes: Floats, most: float) -> list[Indices]:
    """Split indices into parts whose sizes add up to about `most`; there is at least one part.

    >>> [part.tolist() for part in split_by_sum(np.arange(4), np.array([1.0, 1, 3, 1]), 3)]
    [[0, 1], [2], [3]]
    """
    return np.split(indices, np.flatnonzero(np.diff(np.cumsum(sizes) // most)) + 1)


def ranges_to_indices(
    begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the offsets of each range's indices, and the indices of all ranges.

    >>> offsets, indices = ranges_to_indices(np.array([7, 2]), np.array([9, 5]))
    >>> offsets.tolist(), indices.tolist()
    ([0, 2, 5], [7, 8, 2, 3, 4])
    """
    sizes = end - begin
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return offsets, np.repeat(begin - offsets[:-1], sizes) + np.arange(offsets[-1])
