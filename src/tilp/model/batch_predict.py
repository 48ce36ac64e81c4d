"""Predictions for any number of queries, written to a folder of Parquet parts."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.files import locked, new_file, read_note, write_note
from tilp._utils.versions import code_versions
from tilp.errors import TilpError
from tilp.explanation import Explainer
from tilp.graph import QueryTable, TemporalGraph
from tilp.model.query_sources import QuerySlice, QuerySource
from tilp.parallel import Workers
from tilp.scoring import Query
from tilp.scoring.topk import QueryBatches, TopCandidates, TopKPredictor

NOTE = "predict.json"
"""The note beside the parts."""

Progress = Callable[[str, float, int], None]
"""Called with the name of a stage, how many queries are done, and of how many; 0: unknown."""

_FORMAT = "tilp predictions"
_VERSION = 1
_PART_SIZE = 20_000
_PART_SIZE_EXPLAINED = 500
_MAX_PART_ROWS = 2_000_000
_GROUNDINGS, _REASONS = 3, 10
_PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class BatchSettings:
    """What decides the parts, beside the model and the queries.

    Attributes:
        k: Candidates of each query.
        new_only: Leave out candidates that are known already.
        explain: How many of the candidates are explained.
        skip: Leave out invalid queries; otherwise they are an error.
        part_size: Queries in a part; None: 20,000, or 500 if explained, fewer for a large k.
    """

    k: int = 10
    new_only: bool = False
    explain: int = 0
    skip: bool = False
    part_size: int | None = None

    def __post_init__(self) -> None:
        for name, value, least in (
            ("k", self.k, 1),
            ("explain", self.explain, 0),
            ("part_size", self.size, 1),
        ):
            if value < least:
                raise TilpError(f"{name} is {value}; it is at least {least}")

    @property
    def size(self) -> int:
        """Queries in a part."""
        if self.part_size is not None:
            return self.part_size
        default = _PART_SIZE_EXPLAINED if self.explain else _PART_SIZE
        return max(1, min(default, _MAX_PART_ROWS // max(1, self.k)))


@dataclass(frozen=True)
class BatchResult:
    """What a folder of predictions holds.

    Attributes:
        folder: Its path.
        queries: How many queries there are.
        skipped: How many of them are invalid and were left out.
        parts: How many files of predictions there are.
        before: How many of these were there before.
    """

    folder: Path
    queries: int
    skipped: int
    parts: int
    before: int


@dataclass(frozen=True)
class Chunk:
    """Queries that are scored together; also as given, if candidates are explained."""

    table: QueryTable
    queries: tuple[Query, ...] = ()


@dataclass(frozen=True)
class ChunkResult:
    """The best candidates of a chunk, and explanations of each query's first ones as JSON."""

    best: TopCandidates
    explanations: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class BatchPredictor:
    """Finds the best candidates of chunks of queries, and explains some of them.

    Attributes:
        top_k: Finds the candidates.
        explainer: Of the same scorer; None if nothing is explained.
        n_explained: How many candidates of each query are explained.
    """

    top_k: TopKPredictor
    explainer: Explainer | None = None
    n_explained: int = 0

    def __call__(self, chunk: Chunk) -> ChunkResult:
        """Return the best candidates of a chunk."""
        best = self.top_k(chunk.table)
        if self.explainer is None or not self.n_explained:
            return ChunkResult(best)
        ids = self.top_k.graph.entities.ids.gather(best.entity).to_list()
        bounds = zip(chunk.queries, best.offsets[:-1], best.offsets[1:], strict=True)
        return ChunkResult(
            best,
            tuple(
                _explain(self.explainer, query, ids[first : min(first + self.n_explained, last)])
                for query, first, last in bounds
            ),
        )


def _explain(explainer: Explainer, query: Query, candidates: list[str]) -> tuple[str, ...]:
    """Return explanations of candidates as JSON."""
    explanations = explainer.explain_each(
        query, candidates, groundings=_GROUNDINGS, max_reasons=_REASONS
    )
    return tuple(
        json.dumps(explanation.to_json(), ensure_ascii=False, default=str)
        for explanation in explanations
    )


class Part:
    """The queries of one part, and their predictions so far."""

    def __init__(self, index: int, queries: QuerySlice, predictor: BatchPredictor) -> None:
        self.index = index
        self._queries = queries
        self._graph = predictor.top_k.graph
        self._is_explained = predictor.n_explained > 0
        table, self._valid_rows = queries.columns.encode(self._graph)
        self._batches = QueryBatches(
            table, predictor.top_k.scorer, keep_duplicates=self._is_explained
        )
        self._results: list[ChunkResult] = []

    def __len__(self) -> int:
        return len(self._queries.columns)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks of the part, at least one."""
        columns = self._queries.columns
        for rows, table in zip(self._batches.rows, self._batches, strict=True):
            queries = (columns.query(row) for row in self._valid_rows[rows].tolist())
            yield Chunk(table, tuple(queries) if self._is_explained else ())

    def add(self, result: ChunkResult) -> float:
        """Add the result of the next chunk, and return the share of the part that is done."""
        self._results.append(result)
        return len(self._results) / len(self._batches.rows)

    def predictions(self) -> pl.DataFrame:
        """Return the predictions in the order of the queries."""
        best = self._batches.join([result.best for result in self._results])
        text = self._queries.columns.text[self._valid_rows]
        frame = best.frame(self._graph, self._queries.first + self._valid_rows, text)
        if not self._is_explained:
            return frame
        explanations = np.full(len(best.entity), None, np.object_)
        for rows, result in zip(self._batches.rows, self._results, strict=True):
            for row, texts in zip(rows.tolist(), result.explanations, strict=True):
                explanations[best.offsets[row] : best.offsets[row] + len(texts)] = texts
        return frame.with_columns(pl.Series("explanation", explanations.tolist(), pl.String))

    def skipped(self) -> pl.DataFrame:
        """Return the invalid queries, with the reasons."""
        return invalid_queries(self._queries, self._valid_rows, self._graph)


def invalid_queries(
    queries: QuerySlice,
    valid_rows: NDArray[np.int64],
    graph: TemporalGraph,
    *,
    max_near_names: int = 100,
) -> pl.DataFrame:
    """Return the invalid queries of a slice, with the reasons.

    The first `max_near_names` reasons name similar names, which takes milliseconds each.
    """
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
    folder: Path,
    source: QuerySource,
    predictor: BatchPredictor,
    settings: BatchSettings,
    decided_by: Mapping[str, str],
    workers: Workers,
    progress: Progress | None = None,
) -> BatchResult:
    """Write the predictions of all queries to a folder, as Parquet parts.

    If the folder holds parts of the same queries, model and settings, the missing ones are added.
    A part is there as a whole or not at all, and depends neither on the workers nor on when a
    run was stopped. `part-00000.parquet` has predictions, `skipped-00000.parquet` the invalid
    queries of the same part with the reasons.

    Args:
        folder: For the parts.
        source: The queries.
        predictor: Predicts and explains.
        settings: Decide the parts.
        decided_by: What else decides them: digests by name.
        workers: Do not change the result.
        progress: Called with the stages `check` and `predict`.

    Raises:
        TilpError: Queries are invalid; or the folder holds something else, or another process
            works in it.
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
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise TilpError(
            f"{folder} cannot be written: {failure}. Choose another folder."
        ) from failure
    with locked(folder):
        existing = _read_note(folder, origin)
        if existing is None:
            _write_note(folder, note)
        return _Run(folder, source, predictor, settings, existing or note).finish(workers, progress)


class _Run:
    """The parts of a folder, those that are there and those to come."""

    def __init__(
        self,
        folder: Path,
        source: QuerySource,
        predictor: BatchPredictor,
        settings: BatchSettings,
        note: dict[str, Any],
    ) -> None:
        self._folder, self._source, self._predictor = folder, source, predictor
        self._part_size, self._note = settings.size, note
        self._digits = max(5, len(str(note["parts"] - 1)))
        self._existing = {
            index for index in range(note["parts"]) if _is_complete(self._path("part", index))
        }
        self._begun: deque[Part] = deque()
        self._done = 0.0

    def finish(self, workers: Workers, progress: Progress | None) -> BatchResult:
        """Add the missing parts."""
        note = self._note
        if len(self._existing) < note["parts"] or not note["finished"]:
            for result in workers.map(self._predictor, self._chunks()):
                part = self._begun[0]
                share = part.add(result)
                if share == 1.0:
                    self._write(part)
                    self._begun.popleft()
                    self._done += len(part)
                    share = 0.0
                if progress is not None:
                    progress("predict", self._done + share * len(part), note["queries"])
            if self._source.digest() != note["of"]["queries"]:
                raise TilpError(
                    f"{self._source.name} changed while its queries were answered, so parts may "
                    f"be of other queries; remove {self._folder}, and start again"
                )
            _write_note(self._folder, {**note, "finished": True})
        counts = (note["queries"], note["skipped"], note["parts"])
        return BatchResult(self._folder, *counts, len(self._existing))

    def _chunks(self) -> Iterator[Chunk]:
        """Yield the chunks of all missing parts; only begun parts are in memory."""
        for index, queries in enumerate(self._source.slices(self._part_size)):
            if index in self._existing:
                self._done += len(queries.columns)
                continue
            part = Part(index, queries, self._predictor)
            self._begun.append(part)
            yield from part.chunks()

    def _write(self, part: Part) -> None:
        # Skipped queries first: a part that is there needs nothing more.
        skipped = part.skipped()
        if len(skipped):
            _write_parquet(self._path("skipped", part.index), skipped)
        _write_parquet(self._path("part", part.index), part.predictions())

    def _path(self, kind: str, index: int) -> Path:
        return self._folder / f"{kind}-{index:0{self._digits}d}.parquet"


def _check_queries(
    source: QuerySource, graph: TemporalGraph, settings: BatchSettings, progress: Progress | None
) -> dict[str, int]:
    """Count the queries, the invalid ones to skip, and the parts.

    Raises:
        TilpError: Some queries are invalid and not to be skipped, or all are.
    """
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
    "queries": "other queries",
    "made_with": "another tilp, or other versions of what it computes with",
}


def _read_note(folder: Path, origin: dict[str, Any]) -> dict[str, Any] | None:
    """Return the note of a folder with predictions of the same origin; None for a new folder.

    Raises:
        TilpError: The folder holds something else.
    """
    path = folder / NOTE
    if not path.is_file():
        if folder.is_dir() and any(file.name != f".{NOTE}.partial" for file in folder.iterdir()):
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


def _write_note(folder: Path, note: dict[str, Any]) -> None:
    write_note(folder / NOTE, _FORMAT, _VERSION, note, sign=False)


def _is_complete(path: Path) -> bool:
    """Tell whether a Parquet file is there and not cut off: it ends as it begins."""
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
