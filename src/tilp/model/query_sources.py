"""Sources of queries: files and frames, read slice by slice, and all subjects of a relation."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Ints
from tilp._utils.files import file_digest
from tilp.errors import TilpError
from tilp.features.entity_kinds import EntityKinds
from tilp.graph import TemporalGraph, Vocabulary
from tilp.io.records import EXCEL_SUFFIXES, JSON_SUFFIXES, read_records
from tilp.io.tables import PARQUET_SUFFIXES, parquet_errors
from tilp.io.text import text_slices
from tilp.scoring.queries import QueryColumns, query_frame
from tilp.time import Interval, known_ends

_SLICE = 100_000
_USUAL = 0.1  # share of a relation's subjects that have another relation: it tells their kind


@dataclass(frozen=True)
class QuerySlice:
    """Consecutive queries of a source."""

    first: int  # index of the first one
    columns: QueryColumns
    lines: Sequence[int]  # of its file; rows from 1 on for tables without lines


class QuerySource(ABC):
    """Queries that can be read several times."""

    name: str  # in messages
    row_name: str  # in messages, before the line or row

    @abstractmethod
    def digest(self) -> str:
        """Return a digest of the whole content."""

    @abstractmethod
    def _frames(self, size: int) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
        """Yield at least one frame of at most a size, and the line or row of each query."""

    def slices(self, size: int) -> Iterator[QuerySlice]:
        """Yield the queries in slices of a size; at least one slice."""
        first = 0
        for frame, lines in self._frames(size):
            yield QuerySlice(first, QueryColumns.of(frame), lines)
            first += len(frame)

    def first_error(self, queries: QuerySlice, valid_rows: Ints, graph: TemporalGraph) -> str:
        """Return where the first invalid query of a slice is, and what is wrong with it."""
        columns = queries.columns
        row = int(np.setdiff1d(np.arange(len(columns)), valid_rows)[0])
        reason = columns.error_of(graph, row)
        return f"{self.row_name} {queries.lines[row]}, {columns.query(row)}: {reason}"


class QueryFrame(QuerySource):
    """Queries in a frame with the columns of `Query`."""

    name, row_name = "the queries", "query"

    def __init__(self, frame: pl.DataFrame, reading: Mapping[str, Any] | None = None) -> None:
        self._frame = query_frame(frame, reading)
        QueryColumns.of(self._frame.head(0))

    def digest(self) -> str:
        """Return a digest of the columns and all cells."""
        digest = hashlib.sha256(str(self._frame.schema).encode())
        for part in self._frame.iter_slices(_SLICE):
            digest.update(part.write_csv().encode())
        return digest.hexdigest()

    def _frames(self, size: int) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
        for first in range(0, max(1, len(self._frame)), size):
            part = self._frame.slice(first, size)
            yield part, range(first + 1, first + 1 + len(part))


class QueryFile(QuerySource):
    """Queries in a TSV or CSV file with a header, gzipped or not, or Parquet, read in slices.

    JSON lines and Excel files are read at once. Columns are named as `query_frame` takes them.
    """

    def __init__(self, path: Path | str, reading: Mapping[str, Any] | None = None) -> None:
        self._path, self.name, self._reading = Path(path), str(path), reading
        suffix = Path(self._path.name.lower().removesuffix(".gz")).suffix
        self._is_parquet = self._path.suffix.lower() in PARQUET_SUFFIXES
        self.row_name = f"{self._path}, {'row' if self._is_parquet else 'line'}"
        self._is_records = suffix in (*JSON_SUFFIXES, *EXCEL_SUFFIXES)
        if not self._is_parquet and not self._is_records and suffix not in (".tsv", ".csv"):
            raise TilpError(
                f"{path}: a file of queries is .tsv, .csv or .parquet, the first two perhaps "
                "gzipped (.gz), or .jsonl or .xlsx"
            )
        if not self._path.is_file():
            raise TilpError(f"{path}: no such file")

    def digest(self) -> str:
        """Return a digest of the file."""
        return file_digest(self._path)

    def frame(self, graph: TemporalGraph | None = None) -> pl.DataFrame:
        """Return all queries at once; refuse those that are invalid for a graph."""
        frames = []
        for frame, lines in self._frames(_SLICE):
            if graph is not None:
                queries = QuerySlice(0, QueryColumns.of(frame), lines)
                _, valid_rows = queries.columns.encode(graph)
                if len(valid_rows) < len(frame):
                    raise TilpError(self.first_error(queries, valid_rows, graph))
            frames.append(frame)
        return pl.concat(frames)

    def _frames(self, size: int) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
        if self._is_records:
            whole = read_records(self._path)
            assert whole is not None
            for first in range(0, max(1, len(whole.lines)), size):
                rows = slice(first, first + size)
                yield self._named(whole.frame[rows], whole.names), whole.lines[rows]
            return
        if not self._is_parquet:
            for table in text_slices(self._path, size):
                yield self._named(table.frame, table.names), table.lines
            return
        with parquet_errors(self._path):
            scan = pl.scan_parquet(self._path, glob=False)
            count = scan.select(pl.len()).collect().item()
        for first in range(0, max(1, count), size):
            with parquet_errors(self._path):
                part = scan.slice(first, size).collect()
            yield self._named(part, part.columns), range(first + 1, first + 1 + len(part))

    def _named(self, frame: pl.DataFrame, names: Sequence[str] | None) -> pl.DataFrame:
        """Return queries with the columns of `Query`."""
        frame, names = frame.clone(), names or ()
        if len(set(names)) < len(names):
            raise TilpError(f"{self._path}: two columns have the same name: {', '.join(names)}")
        frame.columns = list(names)
        return query_frame(frame, self._reading, f"{self._path}: queries")


def queries_of(
    graph: TemporalGraph, relation: str, start: str | None = None, end: str | None = None, *,
    all_subjects: bool = False,
) -> pl.DataFrame:  # fmt: skip
    """Return a query for each entity that lacks a fact of a relation; see `TILP.queries_of`."""
    relations, train = graph.relations, graph.span("train")
    directed = relations.find_directed(relation)
    is_inverse, undirected = directed >= len(relations), directed % len(relations)
    ends = (graph.object if is_inverse else graph.subject)[train]
    entities = np.unique(ends[graph.relation[train] == undirected])
    if not len(entities):
        raise TilpError(
            f"train has no fact of {relations.label(undirected)!r}, so no entity to query it for"
        )
    if not all_subjects:
        interval = Interval.parse(start, end, graph.unit)
        (low,), (high,) = known_ends(np.array([interval.start]), np.array([interval.end]))
        first, last = known_ends(graph.start[train], graph.end[train])
        holds = (graph.relation[train] == undirected) & (first <= high) & (last >= low)
        entities = np.flatnonzero(EntityKinds(graph).usual_subjects(directed, _USUAL))
        entities = np.setdiff1d(entities, ends[holds])
        if not len(entities):
            raise TilpError(
                f"every entity of the usual kinds has a fact of {relations.label(undirected)!r} "
                "then; to ask for all that ever had one: --all-subjects (all_subjects=True)"
            )
    given = _names(graph.entities, entities)
    return pl.DataFrame(
        {
            "relation": _names(relations, np.array([undirected]))[0],
            "subject": None if is_inverse else given,
            "object": given if is_inverse else None,
            "start": start,
            "end": end,
        },
        dict.fromkeys(("relation", "subject", "object", "start", "end"), pl.String),
    )


def _names(vocabulary: Vocabulary, indices: Ints) -> pl.Series:
    """Return labels, and ids in place of labels that stand for something else."""
    labels, ids = vocabulary.labels.gather(indices), vocabulary.ids.gather(indices)
    return labels.zip_with(pl.Series(vocabulary.find_all(labels) == indices), ids)
