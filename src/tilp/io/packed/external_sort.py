"""Sorting of rows and names that do not fit in memory: files by range, and merged runs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from tilp._utils.arrays import Ints
from tilp.io.packed.format import ColumnWriter

_ROW_GROUP = 8_192  # rows that can be read alone


def blocks(count: int, rows: int) -> Iterator[slice]:
    """Yield slices of at most `rows` that cover `count` rows."""
    for begin in range(0, count, rows):
        yield slice(begin, min(begin + rows, count))


def stable_argsort(key: Ints) -> Ints:
    """Return the indices that sort non-negative keys, equal ones in their present order.

    >>> stable_argsort(np.array([3, 1, 3, 1])).tolist()
    [1, 3, 0, 2]
    """
    largest, bits = int(key.max(initial=0)), max(len(key) - 1, 1).bit_length()
    if largest < 2**16:  # a radix sort
        return np.argsort(key.astype(np.uint16), kind="stable")
    if largest.bit_length() + bits > 62:
        return np.argsort(key, kind="stable")
    # Sorting plain integers is twice as fast as sorting indices.
    return np.sort((key << bits) | np.arange(len(key))) & ((1 << bits) - 1)


class Buckets:
    """Rows of several columns in files, by ranges of the first column, which begin at `bounds`."""

    def __init__(self, stem: Path, bounds: NDArray[Any], columns: Mapping[str, DTypeLike]) -> None:
        self._bounds = bounds
        self._row = np.dtype(list(columns.items()))
        self._paths = [stem.with_name(f"{stem.name}-{i}") for i in range(len(bounds) + 1)]

    def add(self, *columns: NDArray[Any]) -> None:
        """Append rows to their files; those of one range keep their order."""
        rows = np.empty(len(columns[0]), self._row)
        for name, column in zip(self._row.names or (), columns, strict=True):
            rows[name] = column
        bucket = np.searchsorted(self._bounds, columns[0], side="right")
        order = stable_argsort(bucket)
        begin = np.searchsorted(bucket[order], np.arange(len(self._paths) + 1))
        rows = rows[order]
        for index in np.flatnonzero(np.diff(begin)).tolist():
            with self._paths[index].open("ab") as file:
                file.write(rows[begin[index] : begin[index + 1]].data)

    def pop_all(self) -> Iterator[NDArray[Any]]:
        """Yield the rows of each range, and remove its file."""
        for path in self._paths:
            path.touch()  # a range without rows has no file yet
            yield np.fromfile(path, self._row)
            path.unlink()


class ScatterWriter:
    """Array in a .npy file from values in any order, at most `rows` in memory; else `fill`."""

    def __init__(
        self, folder: Path, path: Path, size: int, dtype: DTypeLike, rows: int, fill: float = 0
    ) -> None:
        self._path, self._dtype, self._fill = path, np.dtype(dtype), fill
        # What is read back has its indices beside it.
        part_rows = rows if size <= rows else max(1, rows // 4)
        self._parts = list(blocks(size, part_rows)) or [slice(0, 0)]
        self._whole = self._empty(self._parts[0]) if len(self._parts) == 1 else None
        bounds = np.array([part.start for part in self._parts[1:]], np.int64)
        columns: dict[str, DTypeLike] = {"index": np.int64, "value": dtype}
        self._buckets = Buckets(folder / f"scatter-{path.stem}", bounds, columns)

    def _empty(self, part: slice) -> NDArray[Any]:
        return np.full(part.stop - part.start, self._fill, self._dtype)

    def put(self, index: NDArray[Any], value: NDArray[Any]) -> None:
        """Set values by index."""
        if self._whole is not None:
            self._whole[index] = value
        else:
            self._buckets.add(index, value)

    def write(self) -> None:
        """Write the array."""
        with ColumnWriter(self._path, self._dtype) as column:
            if self._whole is not None:
                column.append(self._whole)
                self._whole = None
                return
            for part, rows in zip(self._parts, self._buckets.pop_all(), strict=True):
                values = self._empty(part)
                values[rows["index"] - part.start] = rows["value"]
                column.append(values)


def write_run(path: Path, table: pl.DataFrame) -> Path:
    """Write a run: a table that is sorted by its column `name`."""
    table.write_parquet(path, compression="lz4", statistics=False, row_group_size=_ROW_GROUP)
    return path


def merge_runs(runs: Sequence[Path], rows: int) -> Iterator[list[tuple[int, pl.DataFrame]]]:
    """Yield the rows of all runs in the order of names, cut at the same names.

    Each list holds the index of a run and its rows. No name is after one of a later list, so a
    name that is once in each run is in one list only. About `rows` are in memory, at least one of
    each run.
    """
    step = max(1, rows // max(len(runs), 1))
    on_disk = {index: _parts(run, step) for index, run in enumerate(runs)}
    tables = [pl.DataFrame() for _ in runs]
    while on_disk or any(len(table) for table in tables):
        for index in [index for index in on_disk if 2 * len(tables[index]) <= step]:
            if (part := next(on_disk[index], None)) is None:
                del on_disk[index]
            else:
                tables[index] = tables[index].vstack(part) if len(tables[index]) else part
        # What is still on disk of a run is after all of it that is in memory.
        bound = min((tables[index]["name"][-1] for index in on_disk), default=None)
        taken = []
        for index, table in enumerate(tables):
            end = len(table)
            if end and bound is not None:
                end = int(table["name"].search_sorted(bound, side="right"))
            if end:
                taken.append((index, table[:end]))
                tables[index] = table[end:]
        if taken:
            yield taken


def _parts(run: Path, step: int) -> Iterator[pl.DataFrame]:
    begin = 0
    while len(part := pl.scan_parquet(run, glob=False).slice(begin, step).collect()):
        yield part
        begin += len(part)
