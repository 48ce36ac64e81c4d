"""Where queries come from: a file or a frame, read slice by slice."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.io.tables import PARQUET_SUFFIXES, parquet_errors
from tilp.io.text import text_slices
from tilp.scoring.queries import QueryColumns, check_columns

_TEXT = (".tsv", ".csv")
_SLICE = 100_000


@dataclass(frozen=True)
class QuerySlice:
    """Some queries that stand one after the other.

    Attributes:
        first: the number of the first of them.
        columns: these.
        lines: of the file that each begins in; of a table that has no lines, their rows from 1 on.
    """

    first: int
    columns: QueryColumns
    lines: Sequence[int]


class QuerySource(ABC):
    """Queries that can be read again and again."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it."""

    @abstractmethod
    def digest(self) -> str:
        """A digest of all that is in it."""

    @abstractmethod
    def slices(self, size: int) -> Iterator[QuerySlice]:
        """So many queries at a time, the last slice perhaps fewer; at least one slice.

        Raises:
            TilpError: it cannot be read, or holds something else than queries.
        """

    @abstractmethod
    def place(self, line: int) -> str:
        """What messages call one query, by its line."""

    def refusal(self, part: QuerySlice, askable: NDArray[np.int64], graph: TemporalGraph) -> str:
        """Where the first query of a slice stands that cannot be asked, what it is, and why.

        Args:
            part: the slice.
            askable: rows of it that can be asked, not all.
            graph: that they are asked of.
        """
        columns = part.columns
        row = int(np.setdiff1d(np.arange(len(columns)), askable)[0])
        reason = columns.error_of(graph, row)
        return f"{self.place(part.lines[row])}, {columns.query(row)}: {reason}"


class QueryFrame(QuerySource):
    """Queries in memory.

    Args:
        frame: with the columns of `Query`.

    Raises:
        TilpError: it has other columns, or one that holds neither names nor dates.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        QueryColumns.of(frame.head(0))
        self._frame = frame

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the queries"

    def digest(self) -> str:
        """A digest of the columns and all cells."""
        found = hashlib.sha256(str(self._frame.schema).encode())
        for part in self._frame.iter_slices(_SLICE):
            found.update(part.write_csv().encode())
        return found.hexdigest()

    def slices(self, size: int) -> Iterator[QuerySlice]:
        """So many queries at a time."""
        for first in range(0, max(1, len(self._frame)), size):
            part = self._frame.slice(first, size)
            lines = range(first + 1, first + 1 + len(part))
            yield QuerySlice(first, QueryColumns.of(part), lines)

    def place(self, line: int) -> str:
        """What messages call one query."""
        return f"query {line}"


class QueryFile(QuerySource):
    """Queries in a file, of which never more than a slice is in memory.

    Args:
        path: a TSV or CSV file with a header, gzipped or not, or a Parquet file.

    Raises:
        TilpError: it is not there, or is called something else.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        kind = Path(self._path.name.lower().removesuffix(".gz")).suffix
        self._is_parquet = self._path.suffix.lower() in PARQUET_SUFFIXES
        if not self._is_parquet and kind not in _TEXT:
            raise TilpError(
                f"{path}: a file of queries is .tsv, .csv or .parquet, the first two perhaps "
                "gzipped (.gz)"
            )
        if not self._path.is_file():
            raise TilpError(f"{path}: no such file")

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    def digest(self) -> str:
        """A digest of the file."""
        with self._path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def slices(self, size: int) -> Iterator[QuerySlice]:
        """So many queries at a time."""
        first = 0
        for frame, lines in self._tables(size):
            yield QuerySlice(first, QueryColumns.of(frame), lines)
            first += len(frame)

    def frame(self, graph: TemporalGraph | None = None) -> pl.DataFrame:
        """All queries at once; where a graph is given, all of which can be asked of it.

        Raises:
            TilpError: names the line of one that cannot.
        """
        frames = []
        for frame, lines in self._tables(_SLICE):
            if graph is not None:
                part = QuerySlice(0, QueryColumns.of(frame), lines)
                _, askable = part.columns.encode(graph)
                if len(askable) < len(frame):
                    raise TilpError(self.refusal(part, askable, graph))
            frames.append(frame)
        return pl.concat(frames)

    def place(self, line: int) -> str:
        """The path, and the line or row."""
        return f"{self._path}, {'row' if self._is_parquet else 'line'} {line}"

    def _tables(self, size: int) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
        if not self._is_parquet:
            for table in text_slices(self._path, size):
                names = list(table.names or ())
                check_columns(names, f"{self._path}: queries")
                frame = table.frame.clone()
                frame.columns = names
                yield frame, table.lines
            return
        with parquet_errors(self._path):
            scan = pl.scan_parquet(self._path, glob=False)
            check_columns(scan.collect_schema().names(), f"{self._path}: queries")
            rows = scan.select(pl.len()).collect().item()
        for first in range(0, max(1, rows), size):
            with parquet_errors(self._path):
                part = scan.slice(first, size).collect()
            yield part, range(first + 1, first + 1 + len(part))
