"""`Predictor`: what is asked of a chunk of queries, and `PartWork`: the chunks of one part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.bulk.sources import QuerySlice
from tilp.explanation import Explainer
from tilp.graph import QueryTable, TemporalGraph
from tilp.ranking import Query
from tilp.ranking.answers import answers_frame
from tilp.ranking.batches import Batch
from tilp.ranking.best import Best, BestOf

__all__ = ["Chunk", "Found", "PartWork", "Predictor"]

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

    best: Best
    explanations: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Predictor:
    """Finds the best candidates of chunks of queries, and says why of some.

    Attributes:
        ask: finds them.
        explainer: of the same scorer.
        explained: how many of each query's candidates are explained.
    """

    ask: BestOf
    explainer: Explainer
    explained: int = 0

    def __call__(self, chunk: Chunk) -> Found:
        """The best of a chunk."""
        best = self.ask(chunk.table)
        if not self.explained:
            return Found(best)
        ids = self.ask.graph.entities.ids.gather(best.entity).to_list()
        return Found(
            best,
            tuple(
                self._explain(query, ids[first : min(first + self.explained, last)])
                for query, first, last in zip(
                    chunk.asked, best.begin[:-1], best.begin[1:], strict=True
                )
            ),
        )

    def _explain(self, query: Query, candidates: list[str]) -> tuple[str, ...]:
        found = self.explainer.explain_each(query, candidates, groundings=_GROUNDINGS, top=_REASONS)
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
        self._batch = Batch(table, predictor.ask.scorer, apart=self._explained)
        self._found: list[Found] = []

    def __len__(self) -> int:
        return len(self._queries.columns)

    def chunks(self) -> Iterator[Chunk]:
        """What is asked, at least one chunk."""
        columns = self._queries.columns
        for rows, table in zip(self._batch.rows, self._batch.chunks, strict=True):
            asked = (columns.query(row) for row in self._rows[rows].tolist())
            yield Chunk(table, tuple(asked) if self._explained else ())

    def add(self, found: Found) -> float:
        """Take what was found for the next chunk; gives the share of the part that is done."""
        self._found.append(found)
        return len(self._found) / len(self._batch.rows)

    def answers(self) -> pl.DataFrame:
        """What was found, in the order of the queries."""
        best = self._batch.together([one.best for one in self._found])
        asked = self._queries.columns.text[self._rows]
        frame = answers_frame(self._graph, self._queries.first + self._rows, asked, best)
        if not self._explained:
            return frame
        told = np.full(len(best.entity), None, np.object_)
        for rows, found in zip(self._batch.rows, self._found, strict=True):
            for row, texts in zip(rows.tolist(), found.explanations, strict=True):
                told[best.begin[row] : best.begin[row] + len(texts)] = texts
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
        str(columns.refusal(graph, row, near=number < _WITH_NEAR_NAMES))
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
