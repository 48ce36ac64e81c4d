"""Queries that ask a relation of everything that has it."""

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

from tilp._utils.files import locked, new_file
from tilp._utils.versions import code_versions
from tilp.errors import TilpError
from tilp.explanation import Explainer
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.model.query_sources import QuerySlice, QuerySource
from tilp.parallel import Workers
from tilp.scoring import Query
from tilp.scoring.topk import QueryBatches, TopCandidates, TopKPredictor


def queries_of(
    graph: TemporalGraph, relation: str, start: str | None = None, end: str | None = None
) -> pl.DataFrame:
    """A query for each subject that train has a fact of a relation of, in the order of entities.

    Of the inverse of a relation, `name⁻¹` or `name^-1`, a query for the subjects of each object.

    Args:
        graph: the facts.
        relation: the name of the relation.
        start: of all queries.
        end: likewise.

    Raises:
        TilpError: no such relation, with the nearest names, or train has no fact of it.
    """
    relations, train = graph.relations, graph.span("train")
    number = relations.find_directed(relation)
    is_inverse = number >= len(relations)
    plain = number % len(relations)
    ends = (graph.object if is_inverse else graph.subject)[train]
    asked = np.unique(ends[graph.relation[train] == plain])
    if not len(asked):
        raise TilpError(
            f"train has no fact of {relations.label(plain)!r}, so there is nothing to ask it of"
        )
    given = _names(graph.entities, asked)
    nothing = pl.repeat(None, len(asked), dtype=pl.String, eager=True)
    return pl.DataFrame(
        {
            "relation": pl.repeat(_names(relations, np.array([plain]))[0], len(asked), eager=True),
            "subject": nothing if is_inverse else given,
            "object": given if is_inverse else nothing,
            "start": pl.repeat(start, len(asked), dtype=pl.String, eager=True),
            "end": pl.repeat(end, len(asked), dtype=pl.String, eager=True),
        }
    )


def _names(names: Vocabulary, numbers: np.ndarray) -> pl.Series:
    """Labels; ids where a label would be taken for something else."""
    labels, ids = names.labels.gather(numbers), names.ids.gather(numbers)
    return labels.zip_with(pl.Series(names.find_all(labels) == numbers), ids)


_GROUNDINGS, _REASONS = 3, 10
"""What `tilp explain` shows by default."""
_WITH_NEAR_NAMES = 100
"""Refused queries of a part whose reasons tell the nearest names, which takes milliseconds each."""


@dataclass(frozen=True)
class Chunk:
    """Queries that are asked together.

    Attributes:
        table: the queries.
        asked: the same as they were asked, where answers are explained.
    """

    table: QueryTable
    asked: tuple[Query, ...] = ()


@dataclass(frozen=True)
class Found:
    """What was found for a chunk.

    Attributes:
        best: the best candidates.
        explanations: of each query, those of its first candidates, as JSON.
    """

    best: TopCandidates
    explanations: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Predictor:
    """Finds the best candidates of chunks of queries, and says why of some.

    Attributes:
        ask: finds them.
        explainer: of the same scorer; None where nothing is explained.
        explained: how many of each query's candidates are explained.
    """

    ask: TopKPredictor
    explainer: Explainer | None = None
    explained: int = 0

    def __call__(self, chunk: Chunk) -> Found:
        """The best of a chunk."""
        best = self.ask(chunk.table)
        if self.explainer is None or not self.explained:
            return Found(best)
        ids = self.ask.graph.entities.ids.gather(best.entity).to_list()
        return Found(
            best,
            tuple(
                _explain(self.explainer, query, ids[first : min(first + self.explained, last)])
                for query, first, last in zip(
                    chunk.asked, best.offsets[:-1], best.offsets[1:], strict=True
                )
            ),
        )


def _explain(explainer: Explainer, query: Query, candidates: list[str]) -> tuple[str, ...]:
    found = explainer.explain_each(query, candidates, groundings=_GROUNDINGS, max_reasons=_REASONS)
    return tuple(json.dumps(one.to_json(), ensure_ascii=False, default=str) for one in found)


class PartWork:
    """The queries of one part: what is to be asked of them, and what was found.

    Args:
        number: of the part.
        queries: these.
        predictor: that they are asked of.
    """

    def __init__(self, number: int, queries: QuerySlice, predictor: Predictor) -> None:
        self.number = number
        self._queries = queries
        self._graph = predictor.ask.graph
        self._explained = predictor.explained > 0
        table, self._rows = queries.columns.encode(self._graph)
        self._batch = QueryBatches(table, predictor.ask.scorer, keep_duplicates=self._explained)
        self._found: list[Found] = []

    def __len__(self) -> int:
        return len(self._queries.columns)

    def chunks(self) -> Iterator[Chunk]:
        """What is asked, at least one chunk."""
        columns = self._queries.columns
        for rows, table in zip(self._batch.rows, self._batch, strict=True):
            asked = (columns.query(row) for row in self._rows[rows].tolist())
            yield Chunk(table, tuple(asked) if self._explained else ())

    def add(self, found: Found) -> float:
        """Take what was found for the next chunk; gives the share of the part that is done."""
        self._found.append(found)
        return len(self._found) / len(self._batch.rows)

    def answers(self) -> pl.DataFrame:
        """What was found, in the order of the queries."""
        best = self._batch.join([one.best for one in self._found])
        asked = self._queries.columns.text[self._rows]
        frame = best.frame(self._graph, self._queries.first + self._rows, asked)
        if not self._explained:
            return frame
        told = np.full(len(best.entity), None, np.object_)
        for rows, found in zip(self._batch.rows, self._found, strict=True):
            for row, texts in zip(rows.tolist(), found.explanations, strict=True):
                told[best.offsets[row] : best.offsets[row] + len(texts)] = texts
        return frame.with_columns(pl.Series("explanation", told.tolist(), pl.String))

    def skipped(self) -> pl.DataFrame:
        """The queries that cannot be asked, and why."""
        return refused(self._queries, self._rows, self._graph)


def refused(queries: QuerySlice, askable: NDArray[np.int64], graph: TemporalGraph) -> pl.DataFrame:
    """The queries of a slice that cannot be asked, and why.

    Args:
        queries: the slice.
        askable: rows of it that can be asked.
        graph: that they are asked of.
    """
    columns = queries.columns
    rows = np.setdiff1d(np.arange(len(columns)), askable)
    reasons = [
        str(columns.error_of(graph, row, near=number < _WITH_NEAR_NAMES))
        for number, row in enumerate(rows.tolist())
    ]
    return pl.DataFrame(
        [
            pl.Series("query", queries.first + rows, pl.Int64),
            pl.Series("line", [queries.lines[row] for row in rows.tolist()], pl.Int64),
            *columns.text[rows],
            pl.Series("reason", reasons, pl.String),
        ]
    )


NOTE = "predict.json"
"""The note beside the parts."""

_FORMAT = "tilp predictions"
_VERSION = 1
_PART = 20_000
_PART_EXPLAINED = 500
_PART_ROWS = 2_000_000
_MARK = b"PAR1"

Progress = Callable[[str, float, int], None]
"""Called with the name of a stage, how many queries of it are done, and of how many; 0: unknown."""


@dataclass(frozen=True)
class BatchSettings:
    """What decides the parts, beside the model and the queries.

    Attributes:
        k: how many candidates a query gets.
        new_only: whether candidates that are known already are left out.
        explain: how many of them are explained.
        skip: whether queries that cannot be asked are left out; else there must be none.
        part_size: queries of a part; None: 20,000, or 500 that are explained, fewer for a large k.
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
        """Queries of a part."""
        if self.part_size is not None:
            return self.part_size
        usual = _PART_EXPLAINED if self.explain else _PART
        return max(1, min(usual, _PART_ROWS // max(1, self.k)))


@dataclass(frozen=True)
class BatchResult:
    """What a folder of predictions holds.

    Attributes:
        folder: it.
        queries: all that were to be asked.
        skipped: those of them that could not be.
        parts: how many files they are in.
        before: how many of these were there already.
    """

    folder: Path
    queries: int
    skipped: int
    parts: int
    before: int


def predict_to(
    folder: Path,
    source: QuerySource,
    predictor: Predictor,
    settings: BatchSettings,
    decided_by: Mapping[str, str],
    workers: Workers,
    progress: Progress | None = None,
) -> BatchResult:
    """Ask all queries, and write the answers to a folder as Parquet parts.

    Where the folder holds some parts already, of the same queries, model and settings, the others
    are added. A part is there whole or not at all, and parts depend on neither the workers nor on
    when a run was stopped.

    Args:
        folder: for `part-00000.parquet` and so on, and for `skipped-00000.parquet`, the queries of
            the same part that cannot be asked, with the reasons.
        source: the queries.
        predictor: that they are asked of.
        settings: what decides the parts.
        decided_by: what else does: digests by name.
        workers: do not change the result.
        progress: told how far each stage is, `check` and `predict`.

    Raises:
        TilpError: queries cannot be asked; the folder holds something else, or another process
            works in it.
    """
    of = {
        **decided_by,
        "queries": source.digest(),
        **asdict(settings),
        "part_size": settings.size,
        "made_with": code_versions(),
    }
    note = _read_note(folder, of)
    if note is None:
        note = {
            "format": _FORMAT,
            "version": _VERSION,
            "source": source.name,
            **_check(source, predictor, settings, progress),
            "finished": False,
            "of": of,
        }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise TilpError(
            f"{folder} cannot be written: {failure}. Choose another place for it."
        ) from failure
    with locked(folder):
        there = _read_note(folder, of)
        if there is None:
            _write_note(folder, note)
        else:
            note = there
        return _Run(folder, source, predictor, settings, note).finish(workers, progress)


class _Run:
    """The parts of a folder, those that are there and those that are to come."""

    def __init__(
        self,
        folder: Path,
        source: QuerySource,
        predictor: Predictor,
        settings: BatchSettings,
        note: dict[str, Any],
    ) -> None:
        self._folder = folder
        self._source = source
        self._predictor = predictor
        self._size = settings.size
        self._note = note
        self._digits = max(5, len(str(note["parts"] - 1)))
        self._there = {
            number for number in range(note["parts"]) if _is_whole(self._path("part", number))
        }
        self._begun: deque[PartWork] = deque()
        self._done = 0.0

    def finish(self, workers: Workers, progress: Progress | None) -> BatchResult:
        """Add the parts that are not there."""
        note = self._note
        if len(self._there) < note["parts"] or not note["finished"]:
            for found in workers.map(self._predictor, self._chunks()):
                part = self._begun[0]
                share = part.add(found)
                if share == 1.0:
                    self._write(part)
                    self._begun.popleft()
                    self._done += len(part)
                    share = 0.0
                if progress is not None:
                    progress("predict", self._done + share * len(part), note["queries"])
            if self._source.digest() != note["of"]["queries"]:
                raise TilpError(
                    f"{self._source.name} has changed while its queries were asked, and so some "
                    f"parts may be of others; remove {self._folder}, and ask again"
                )
            _write_note(self._folder, {**note, "finished": True})
        return BatchResult(
            self._folder, note["queries"], note["skipped"], note["parts"], len(self._there)
        )

    def _chunks(self) -> Iterator[Chunk]:
        """Those of all parts that are not there, of which only the ones begun are in memory."""
        for number, queries in enumerate(self._source.slices(self._size)):
            if number in self._there:
                self._done += len(queries.columns)
                continue
            part = PartWork(number, queries, self._predictor)
            self._begun.append(part)
            yield from part.chunks()

    def _write(self, part: PartWork) -> None:
        # What was skipped first: where a part is, there is nothing left to do for it.
        skipped = part.skipped()
        if len(skipped):
            _write_parquet(self._path("skipped", part.number), skipped)
        _write_parquet(self._path("part", part.number), part.answers())

    def _path(self, kind: str, number: int) -> Path:
        return self._folder / f"{kind}-{number:0{self._digits}d}.parquet"


def _check(
    source: QuerySource,
    predictor: Predictor,
    settings: BatchSettings,
    progress: Progress | None,
) -> dict[str, int]:
    """How many queries there are, and how many of them cannot be asked.

    Raises:
        TilpError: some cannot, and they are not to be skipped; or none can.
    """
    graph = predictor.ask.graph
    queries = askable = 0
    first = ""
    for part in source.slices(settings.size):
        _, rows = part.columns.encode(graph)
        if len(rows) < len(part.columns) and not first:
            first = source.refusal(part, rows, graph)
        queries += len(part.columns)
        askable += len(rows)
        if progress is not None:
            progress("check", queries, 0)
    skipped = queries - askable
    if skipped and not settings.skip:
        others = f", nor can {skipped - 1:,} others" if skipped > 1 else ""
        raise TilpError(
            f"{first.rstrip('.?')}. This query cannot be asked{others} of {queries:,}: mend the "
            "queries or the options, or leave out what cannot be asked with --on-error skip "
            "(on_error='skip'), which tells all reasons in a file"
        )
    if skipped and not askable:
        raise TilpError(f"none of the {queries:,} queries can be asked; the first: {first}")
    return {"queries": queries, "skipped": skipped, "parts": max(1, -(-queries // settings.size))}


_DIFFERENT = {
    "model": "another model",
    "evidence": "other data",
    "queries": "other queries",
    "made_with": "another tilp, or other versions of what it computes with",
}


def _read_note(folder: Path, of: dict[str, Any]) -> dict[str, Any] | None:
    """The note of a folder, which is of the same; None where there is nothing yet.

    Raises:
        TilpError: it is of something else.
    """
    path = folder / NOTE
    if not path.is_file():
        if folder.is_dir() and any(one.name != f".{NOTE}.partial" for one in folder.iterdir()):
            raise TilpError(
                f"{folder} is not empty, and holds no predictions: choose another folder"
            )
        return None
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        if (note["format"], note["version"]) != (_FORMAT, _VERSION):
            raise ValueError(f"{note['format']} {note['version']}")
        there = dict(note["of"])
        counts = [int(note[name]) for name in ("queries", "skipped", "parts")]
        if min(counts) < 0 or not isinstance(note["finished"], bool):
            raise ValueError(f"counts of {counts}")
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise TilpError(
            f"{path}: not the note of predictions ({failure}); choose another folder"
        ) from failure
    different = [
        _DIFFERENT.get(name, f"{name} = {there.get(name)}, not {of.get(name)}")
        for name in {**of, **there}
        if there.get(name) != of.get(name)
    ]
    if different:
        raise TilpError(
            f"{folder} was begun with {'; '.join(different)}. Choose another folder, or remove "
            "this one to begin anew"
        )
    return dict(note)


def _write_note(folder: Path, note: dict[str, Any]) -> None:
    with new_file(folder / NOTE) as partial:
        text = json.dumps(note, indent=2, ensure_ascii=False)
        partial.write_text(text + "\n", encoding="utf-8", newline="\n")


def _is_whole(path: Path) -> bool:
    """Whether a part is there, and not cut off: Parquet files end as they begin."""
    if not path.is_file() or path.stat().st_size < 2 * len(_MARK):
        return False
    with path.open("rb") as file:
        file.seek(-len(_MARK), os.SEEK_END)
        return file.read() == _MARK


def _write_parquet(path: Path, frame: pl.DataFrame) -> None:
    with new_file(path) as partial, partial.open("wb") as file:
        frame.write_parquet(file)
        file.flush()
        os.fsync(file.fileno())
