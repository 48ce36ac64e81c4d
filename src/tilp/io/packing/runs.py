"""Names in sorted runs on disk, and the runs merged, a part of each in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

__all__ = ["Run", "merged", "write_run"]

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
