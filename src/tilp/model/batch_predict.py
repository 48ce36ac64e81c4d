"""Predictions for any number of queries, written to a folder of Parquet parts."""

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Ints
from tilp._utils.files import locked, new_file, read_note, write_note
from tilp._version import code_versions
from tilp.errors import TilpError
from tilp.explanation import Explainer
from tilp.graph import QueryTable, TemporalGraph
from tilp.model.query_sources import QuerySlice, QuerySource
from tilp.parallel import Workers
from tilp.scoring import Query
from tilp.scoring.topk import QueryBatches, TopCandidates, TopKPredictor

# Called with the name of a stage, how many queries are done, and of how many; 0: unknown.
Progress = Callable[[str, float, int], None]
# Queries that are scored together; also as given, if candidates are explained.
Chunk = tuple[QueryTable, list[Query]]
# The best candidates of a chunk, and explanations of each query's first ones as JSON.
ChunkResult = tuple[TopCandidates, list[list[str]]]

_NOTE, _FORMAT, _VERSION = "predict.json", "tilp predictions", 1
_MAX_PART_ROWS = 2_000_000
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class BatchSettings:
    """Settings of a batch of predictions."""

    k: int = 10  # candidates of each query
    new_only: bool = False  # leave out candidates that are known already
    explain: int = 0  # how many of the candidates are explained
    skip: bool = False  # leave out invalid queries; otherwise they are an error
    part_size: int | None = None  # None: 20,000, or 500 if explained, fewer for a large k

    def __post_init__(self) -> None:
        values = {"k": (self.k, 1), "explain": (self.explain, 0), "part_size": (self.size, 1)}
        for name, (value, least) in values.items():
            if value < least:
                raise TilpError(f"{name} is {value}; it is at least {least}")

    @property
    def size(self) -> int:
        """Queries in a part."""
        if self.part_size is not None:
            return self.part_size
        return max(1, min(500 if self.explain else 20_000, _MAX_PART_ROWS // max(1, self.k)))


@dataclass(frozen=True)
class BatchResult:
    """Contents of a folder of predictions."""

    folder: Path
    queries: int
    skipped: int  # of the queries, how many are invalid and were left out
    parts: int  # files of predictions
    before: int  # of the files, how many were there before


@dataclass(frozen=True)
class BatchPredictor:
    """Finds the best candidates of chunks of queries, and explains the first of each query."""

    top_k: TopKPredictor
    explainer: Explainer | None = None
    n_explained: int = 0

    def __call__(self, chunk: Chunk) -> ChunkResult:
        """Return the best candidates of a chunk."""
        table, queries = chunk
        best = self.top_k(table)
        if self.explainer is None:
            return best, []
        ids = self.top_k.graph.entities.ids.gather(best.entity).to_list()
        texts = []
        for query, first, last in zip(queries, best.offsets[:-1], best.offsets[1:], strict=True):
            candidates = ids[first : min(first + self.n_explained, last)]
            values = [one.to_json() for one in self.explainer.explain(query, candidates)]
            texts.append([json.dumps(value, ensure_ascii=False, default=str) for value in values])
        return best, texts


class Part:
    """The queries of one part, and their predictions so far."""

    def __init__(self, index: int, queries: QuerySlice, predictor: BatchPredictor) -> None:
        self.index, self.queries = index, queries
        self._graph = predictor.top_k.graph
        self._explained = predictor.explainer is not None
        table, self.valid_rows = queries.columns.encode(self._graph)
        self._batches = QueryBatches(table, predictor.top_k.scorer, keep_duplicates=self._explained)
        self._results: list[ChunkResult] = []

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks of the part, at least one."""
        columns = self.queries.columns
        for rows, table in zip(self._batches.rows, self._batches, strict=True):
            explained = self.valid_rows[rows].tolist() if self._explained else []
            yield table, [columns.query(row) for row in explained]

    def add(self, result: ChunkResult) -> float:
        """Add the result of the next chunk, and return the share of the part that is done."""
        self._results.append(result)
        return len(self._results) / len(self._batches.rows)

    def predictions(self) -> pl.DataFrame:
        """Return the predictions in the order of the queries."""
        best = self._batches.join([candidates for candidates, _ in self._results])
        text = self.queries.columns.text[self.valid_rows]
        frame = best.frame(self._graph, self.queries.first + self.valid_rows, text)
        if not self._explained:
            return frame
        explanations = np.full(len(best.entity), None, np.object_)
        for rows, (_, explained) in zip(self._batches.rows, self._results, strict=True):
            for row, texts in zip(rows.tolist(), explained, strict=True):
                explanations[best.offsets[row] : best.offsets[row] + len(texts)] = texts
        return frame.with_columns(pl.Series("explanation", explanations.tolist(), pl.String))


def invalid_queries(
    queries: QuerySlice, valid_rows: Ints, graph: TemporalGraph, *, max_near_names: int = 100
) -> pl.DataFrame:
    """Return the invalid queries of a slice, with the reasons; the first name similar names."""
    columns = queries.columns
    rows = np.setdiff1d(np.arange(len(columns)), valid_rows)
    reasons = [
        str(columns.error_of(graph, row, near=index < max_near_names))
        for index, row in enumerate(rows.tolist())
    ]
    return pl.DataFrame(
        [
            pl.Series("query", queries.first + rows, pl.Int64),
            pl.Series("line", [queries.lines[row] for row in rows.tolist()], pl.Int64),
            *columns.text[rows],
            pl.Series("reason", reasons, pl.String),
        ]
    )


def predict_to(
    folder: Path, source: QuerySource, predictor: BatchPredictor, settings: BatchSettings,
    decided_by: Mapping[str, str], workers: Workers, progress: Progress | None = None,
) -> BatchResult:  # fmt: skip
    """Write the predictions of all queries to a folder, as Parquet parts.

    If the folder holds parts of the same queries, model and settings, the missing ones are added.
    A part is there as a whole or not at all, and depends neither on the workers nor on when a
    run was stopped. `part-00000.parquet` has predictions, `skipped-00000.parquet` the invalid
    queries of the same part with the reasons.

    The digests of `decided_by` are what decides the parts beside the queries and the settings.
    """
    origin = {
        **decided_by,
        "queries": source.digest(),
        **asdict(settings),
        "part_size": settings.size,
        "made_with": code_versions(),
    }
    note = _read_note(folder, origin)
    if note is None:
        counts = _check_queries(source, predictor.top_k.graph, settings, progress)
        note = {"source": source.name, **counts, "finished": False, "of": origin}
    _make(folder)
    with locked(folder):
        existing = _read_note(folder, origin)
        if existing is None:
            write_note(folder / _NOTE, _FORMAT, _VERSION, note, sign=False)
        return _add_parts(folder, source, predictor, existing or note, workers, progress)


def _add_parts(
    folder: Path, source: QuerySource, predictor: BatchPredictor, note: dict[str, Any],
    workers: Workers, progress: Progress | None,
) -> BatchResult:  # fmt: skip
    """Write the missing parts of a folder; only begun parts are in memory."""
    count, digits = note["parts"], max(5, len(str(note["parts"] - 1)))
    begun: deque[Part] = deque()

    def path(kind: str, index: int) -> Path:
        return folder / f"{kind}-{index:0{digits}d}.parquet"

    def missing_chunks() -> Iterator[Chunk]:
        for index, queries in enumerate(source.slices(note["of"]["part_size"])):
            if index not in existing:
                begun.append(Part(index, queries, predictor))
                yield from begun[-1].chunks()

    existing = {index for index in range(count) if _is_complete(path("part", index))}
    if len(existing) < count or not note["finished"]:
        for result in workers.map(predictor, missing_chunks()):
            part = begun[0]
            share = part.add(result)
            if share == 1.0:
                skipped = invalid_queries(part.queries, part.valid_rows, predictor.top_k.graph)
                if len(skipped):  # written first: a part that is there needs nothing more
                    _write_parquet(path("skipped", part.index), skipped)
                _write_parquet(path("part", part.index), part.predictions())
                begun.popleft()
            if progress is not None:
                done = part.queries.first + share * len(part.queries.columns)
                progress("predict", done, note["queries"])
        _finish(folder, source, note)
    return BatchResult(folder, note["queries"], note["skipped"], count, len(existing))


def write_parts(
    folder: Path, source: QuerySource, answer: Callable[[QuerySlice], pl.DataFrame],
    part_size: int, decided_by: Mapping[str, Any], workers: Workers,
) -> None:  # fmt: skip
    """Write a table for each slice of the queries to a folder, as Parquet parts.

    If the folder holds parts of the same queries, only the missing ones are added.
    """
    more = {"queries": source.digest(), "part_size": part_size, "made_with": code_versions()}
    origin = {**decided_by, **more}
    fresh = {"queries": 0, "skipped": 0, "parts": 0, "finished": False, "of": origin}
    _read_note(folder, origin)  # another origin is refused before the folder is touched
    _make(folder)
    with locked(folder):
        note = _read_note(folder, origin) or fresh
        write_note(folder / _NOTE, _FORMAT, _VERSION, note, sign=False)
        begun: deque[Path] = deque()

        def missing() -> Iterator[QuerySlice]:
            for index, part in enumerate(source.slices(part_size)):
                path = folder / f"part-{index:05d}.parquet"
                if not _is_complete(path):
                    begun.append(path)
                    yield part

        for frame in workers.map(answer, missing()):
            _write_parquet(begun.popleft(), frame)
        _finish(folder, source, note)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TilpError(f"{folder} cannot be written: {error}. Choose another folder.") from error


def _finish(folder: Path, source: QuerySource, note: dict[str, Any]) -> None:
    """Note that all parts are there, if the queries are still those of the first part."""
    if source.digest() != note["of"]["queries"]:
        raise TilpError(
            f"{source.name} changed while its queries were answered, so parts may be of other "
            f"queries; remove {folder}, and start again"
        )
    write_note(folder / _NOTE, _FORMAT, _VERSION, {**note, "finished": True}, sign=False)


def _check_queries(
    source: QuerySource, graph: TemporalGraph, settings: BatchSettings, progress: Progress | None
) -> dict[str, int]:
    """Count the queries, the invalid ones to skip, and the parts; refuse invalid queries."""
    count = valid = 0
    error = ""
    for queries in source.slices(settings.size):
        _, valid_rows = queries.columns.encode(graph)
        if len(valid_rows) < len(queries.columns) and not error:
            error = source.first_error(queries, valid_rows, graph)
        count += len(queries.columns)
        valid += len(valid_rows)
        if progress is not None:
            progress("check", count, 0)
    skipped = count - valid
    if skipped and not settings.skip:
        others = f", and so are {skipped - 1:,} others" if skipped > 1 else ""
        raise TilpError(
            f"{error.rstrip('.?')}. This query is invalid{others} of {count:,}. Correct the "
            "queries or the options, or leave out invalid queries with --on-error skip "
            "(on_error='skip'), which writes the reasons to a file"
        )
    if skipped and not valid:
        raise TilpError(f"all {count:,} queries are invalid; the first: {error}")
    return {"queries": count, "skipped": skipped, "parts": max(1, -(-count // settings.size))}


_DIFFERENT = {
    "model": "another model",
    "evidence": "other data",
    "sources": "data from other files or lines",
    "queries": "other queries",
    "made_with": "another tilp, or other versions of what it computes with",
}


def _read_note(folder: Path, origin: dict[str, Any]) -> dict[str, Any] | None:
    """Return the note of a folder with predictions of the same origin; None for a new folder."""
    path = folder / _NOTE
    if not path.is_file():
        if folder.is_dir() and any(file.name[0] != "." for file in folder.iterdir()):
            raise TilpError(
                f"{folder} is not empty, and holds no predictions: choose another folder"
            )
        return None
    note = read_note(path, _FORMAT, _VERSION, "choose another folder", signed=False)
    try:
        before = dict(note["of"])
        counts = [int(note[name]) for name in ("queries", "skipped", "parts")]
        if min(counts) < 0 or not isinstance(note["finished"], bool):
            raise ValueError(f"counts of {counts}")
    except (ValueError, KeyError, TypeError) as failure:
        raise TilpError(f"{path}: damaged ({failure}); choose another folder") from failure
    different = [
        _DIFFERENT.get(name, f"{name} = {before.get(name)}, not {origin.get(name)}")
        for name in {**origin, **before}
        if before.get(name) != origin.get(name)
    ]
    if different:
        raise TilpError(
            f"{folder} was begun with {'; '.join(different)}. Choose another folder, or remove "
            "this one to begin anew"
        )
    return note


def _is_complete(path: Path) -> bool:
    """Return True for a Parquet file that is there and not cut off: it ends as it begins."""
    if not path.is_file() or path.stat().st_size < 2 * len(_PARQUET_MAGIC):
        return False
    with path.open("rb") as file:
        file.seek(-len(_PARQUET_MAGIC), os.SEEK_END)
        return file.read() == _PARQUET_MAGIC


def _write_parquet(path: Path, frame: pl.DataFrame) -> None:
    with new_file(path) as partial, partial.open("wb") as file:
        frame.write_parquet(file)
        file.flush()
        os.fsync(file.fileno())
