"""Sort rows and names that do not fit in memory: sorted runs on disk, merged in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from tilp.io.packed.format import ColumnWriter


def blocks(count: int, rows: int) -> Iterator[slice]:
    """Rows cut into slices of at most so many."""
    for begin in range(0, count, rows):
        yield slice(begin, min(begin + rows, count))


def stable_order(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of keys from 0 on, as they rise; of equal ones in the order they stand in.

    >>> stable_order(np.array([3, 1, 3, 1])).tolist()
    [1, 3, 0, 2]
    """
    most, bits = int(key.max(initial=0)), max(len(key) - 1, 1).bit_length()
    if most < 2**16:  # which are counted rather than compared
        return np.argsort(key.astype(np.uint16), kind="stable")
    if most.bit_length() + bits > 62:
        return np.argsort(key, kind="stable")
    # One sort of plain numbers is twice as quick as one of places.
    both = np.sort((key << bits) | np.arange(len(key)))
    return both & ((1 << bits) - 1)


class Buckets:
    """Rows of several columns, laid into files by ranges of a number.

    Args:
        folder: for the files.
        name: of the files; no other has the same.
        bounds: the first number of each range after the first, rising.
        columns: the kind of each column, by name; the first is the number.
    """

    def __init__(
        self, folder: Path, name: str, bounds: NDArray[Any], columns: Mapping[str, DTypeLike]
    ) -> None:
        self._bounds = bounds
        self._row = np.dtype(list(columns.items()))
        self._paths = [folder / f"{name}-{number}" for number in range(len(bounds) + 1)]

    def add(self, *columns: NDArray[Any]) -> None:
        """Lay rows into their files; those of one range stay in the order they are given in."""
        rows = np.empty(len(columns[0]), self._row)
        for name, column in zip(self._row.names or (), columns, strict=True):
            rows[name] = column
        if len(self._paths) == 1:
            self._append(0, rows)
            return
        place = np.searchsorted(self._bounds, columns[0], side="right")
        order = stable_order(place)
        begin = np.searchsorted(place[order], np.arange(len(self._paths) + 1))
        rows = rows[order]
        for number in np.flatnonzero(np.diff(begin)).tolist():
            self._append(number, rows[begin[number] : begin[number + 1]])

    def _append(self, number: int, rows: NDArray[Any]) -> None:
        with self._paths[number].open("ab") as file:
            file.write(rows.data)

    def take(self) -> Iterator[NDArray[Any]]:
        """The rows of each range; their files are removed."""
        for path in self._paths:
            if path.exists():
                yield np.fromfile(path, self._row)
                path.unlink()
            else:
                yield np.empty(0, self._row)


class Scatter:
    """An array whose values are known in any order, each place once.

    Args:
        folder: for what is kept on the way.
        path: the .npy file to write.
        size: of the array.
        dtype: of its values.
        rows: how many of them are held in memory.
        fill: the value of places that are given none.
    """

    def __init__(
        self,
        folder: Path,
        path: Path,
        size: int,
        dtype: DTypeLike,
        rows: int,
        fill: float = 0,
    ) -> None:
        self._path, self._dtype, self._fill = path, np.dtype(dtype), fill
        # What is read back has its places beside it.
        self._parts = list(blocks(size, rows if size <= rows else max(1, rows // 4))) or [
            slice(0, 0)
        ]
        self._whole = self._empty(self._parts[0]) if len(self._parts) == 1 else None
        bounds = np.array([part.start for part in self._parts[1:]], np.int64)
        columns: dict[str, DTypeLike] = {"place": np.int64, "value": dtype}
        self._buckets = Buckets(folder, f"places-{path.stem}", bounds, columns)

    def _empty(self, part: slice) -> NDArray[Any]:
        return np.full(part.stop - part.start, self._fill, self._dtype)

    def put(self, place: NDArray[Any], value: NDArray[Any]) -> None:
        """Give values to places."""
        if self._whole is not None:
            self._whole[place] = value
        else:
            self._buckets.add(place, value)

    def write(self) -> None:
        """Write the array."""
        with ColumnWriter(self._path, self._dtype) as column:
            if self._whole is not None:
                column.append(self._whole)
                self._whole = None
                return
            for part, rows in zip(self._parts, self._buckets.take(), strict=True):
                values = self._empty(part)
                values[rows["place"] - part.start] = rows["value"]
                column.append(values)


_GROUP = 8_192  # rows that can be read alone


@dataclass(frozen=True)
class Run:
    """A table on disk whose column `name` rises."""

    path: Path
    rows: int


def write_run(path: Path, table: pl.DataFrame) -> Run:
    """Keep a table that is sorted by name."""
    table.write_parquet(path, compression="lz4", statistics=False, row_group_size=_GROUP)
    return Run(path, len(table))


class _Cursor:
    """The rows of a run that are still to come, the next of them in memory."""

    def __init__(self, run: Run, step: int) -> None:
        self._run, self._step = run, step
        self._read = 0
        self._buffer: pl.DataFrame | None = None

    def fill(self) -> bool:
        """Read on where few rows are in memory; whether there are any."""
        held = 0 if self._buffer is None else len(self._buffer)
        if self.more and 2 * held <= self._step:
            read = (
                pl.scan_parquet(self._run.path, glob=False).slice(self._read, self._step).collect()
            )
            self._read += len(read)
            self._buffer = read if self._buffer is None else pl.concat([self._buffer, read])
            held += len(read)
        return held > 0

    @property
    def more(self) -> bool:
        """Whether rows are left on disk."""
        return self._read < self._run.rows

    @property
    def last(self) -> str:
        """The last name in memory."""
        assert self._buffer is not None
        return str(self._buffer["name"][-1])

    def take(self, bound: str | None) -> pl.DataFrame:
        """The rows in memory whose names do not come after a bound."""
        assert self._buffer is not None
        names = self._buffer["name"]
        cut = len(names) if bound is None else int(names.search_sorted(bound, side="right"))
        taken, self._buffer = self._buffer[:cut], self._buffer[cut:]
        return taken


def merged(runs: Sequence[Run], rows: int) -> Iterator[list[tuple[int, pl.DataFrame]]]:
    """All runs from their first names to their last, cut at the same names.

    Args:
        runs: where each name stands once in a run, it comes in one list only.
        rows: about how many are held in memory, one of each run at least.

    Yields:
        The number of each run that has rows of these names, and the rows. No name comes after
        one of a later list.
    """
    step = max(1, rows // max(len(runs), 1))
    cursors = dict(enumerate(_Cursor(run, step) for run in runs))
    while cursors := {number: one for number, one in cursors.items() if one.fill()}:
        # What is still on disk of a run comes after all that is in memory of it.
        bound = min((one.last for one in cursors.values() if one.more), default=None)
        taken = [(number, one.take(bound)) for number, one in cursors.items()]
        yield [(number, table) for number, table in taken if len(table)]
