"""The k best candidates of queries: the one path of every prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._kernels.candidates import best_candidates
from tilp._utils.arrays import ranges_to_indices
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import known_answers
from tilp.parallel import Workers
from tilp.scoring.predictions import Predictions, name_predictions, predictions_frame
from tilp.scoring.queries import Query, QueryColumns, query_table
from tilp.scoring.scorer import Scorer
from tilp.scoring.scores import Scores

MAX_BATCH_MEMORY = 2**22
"""Numbers in memory while a batch is scored, about."""
_MAX_BATCH_QUERIES = 2**11
"""Larger batches have nothing more to share."""


@dataclass(frozen=True, eq=False)
class TopCandidates:
    """The best candidates of queries, one query after the other, the best first.

    Attributes:
        offsets: First index of each query's candidates, and the end of the last.
        entity: The candidates.
        rank: Rank of each among all entities; equal scores in the order of entities.
        score: Higher is better.
        share: Share of all candidates' scores, or of their softmax where scores have a
            temperature.
        known: True if the evidence has it as an answer at a time that touches the query's.
    """

    offsets: NDArray[np.int64]
    entity: NDArray[np.int32]
    rank: NDArray[np.int64]
    score: NDArray[np.float64]
    share: NDArray[np.float64]
    known: NDArray[np.bool_]

    @classmethod
    def select(
        cls, graph: TemporalGraph, queries: QueryTable, scores: Scores, k: int, *, new_only: bool
    ) -> TopCandidates:
        """Select the k best candidates of each query; with `new_only`, of those not yet known."""
        n = len(graph.entities)
        known_offsets, known_entity = known_answers(graph, queries).at_query_time()
        n_known = np.diff(known_offsets)
        k_each = np.minimum(k + n_known if new_only else np.full(len(queries), k), n)
        offsets, entity, score = best_candidates(
            scores.offsets, scores.candidate, scores.score, scores.defaults, k_each, n
        )
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        known_key = np.repeat(np.arange(len(queries)), n_known) * n + known_entity
        known = np.isin(query * n + entity, known_key)
        rank = np.arange(len(entity)) - offsets[query] + 1
        best = cls(offsets, entity, rank, score, scores.shares(query, score, n), known)
        return best._first(k, ~known) if new_only else best

    @classmethod
    def join(cls, parts: Sequence[TopCandidates]) -> TopCandidates:
        """Join the candidates of several parts, one part after the other."""
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        columns = (
            np.concatenate([getattr(part, column.name) for part in parts])
            for column in fields(cls)[1:]
        )
        return cls(np.append(0, np.cumsum(sizes)), *columns)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, queries: NDArray[np.int64]) -> TopCandidates:
        """Return the candidates of some queries, in the given order, repeated or not."""
        offsets, index = ranges_to_indices(self.offsets[queries], self.offsets[1:][queries])
        return self._rows(offsets, index)

    def _first(self, k: int, mask: NDArray[np.bool_]) -> TopCandidates:
        """Return the first k candidates of each query that are in a mask."""
        before = np.append(0, np.cumsum(mask))
        position = before[1:] - np.repeat(before[self.offsets[:-1]], np.diff(self.offsets))
        mask = mask & (position <= k)
        return self._rows(np.append(0, np.cumsum(mask))[self.offsets], mask)

    def _rows(
        self, offsets: NDArray[np.int64], rows: NDArray[np.int64] | NDArray[np.bool_]
    ) -> TopCandidates:
        columns = (getattr(self, column.name)[rows] for column in fields(self)[1:])
        return TopCandidates(offsets, *columns)


@dataclass(frozen=True)
class TopKPredictor:
    """Predicts the k best candidates of queries.

    Attributes:
        graph: The facts as they were given, whose train split is the scorer's evidence.
        scorer: Of any model.
        k: Number of candidates.
        new_only: Leave out known answers; the others keep their ranks.
    """

    graph: TemporalGraph
    scorer: Scorer
    k: int = 10
    new_only: bool = False

    def __post_init__(self) -> None:
        if self.k < 1:
            raise TilpError(f"k is {self.k}; ask for at least one candidate")

    def __call__(self, batch: QueryTable) -> TopCandidates:
        """Return the best candidates of one batch of queries."""
        scores = self.scorer.score(batch)
        return TopCandidates.select(self.graph, batch, scores, self.k, new_only=self.new_only)

    def top_candidates(self, queries: QueryTable, workers: Workers | None = None) -> TopCandidates:
        """Return the best candidates of any number of queries, whatever the workers."""
        batches = QueryBatches(queries, self.scorer)
        if workers is None:
            return batches.join([self(batch) for batch in batches])
        return batches.join(list(workers.map(self, batches)))

    def predict(self, queries: Sequence[Query]) -> list[Predictions]:
        """Return the best candidates of each query, with their names."""
        best = self.top_candidates(query_table(self.graph, queries))
        return name_predictions(self.graph, queries, best)

    def predict_frame(self, queries: QueryColumns, workers: Workers) -> pl.DataFrame:
        """Return the best candidates of all queries as a table."""
        best = self.top_candidates(queries.table(self.graph), workers)
        return predictions_frame(self.graph, np.arange(len(queries)), queries.text, best)


class QueryBatches:
    """Queries in batches of bounded memory, sorted by subject, each distinct query once.

    Batches depend on the queries and the evidence alone.

    Args:
        queries: The queries.
        scorer: The scorer, which estimates the memory of each query.
        keep_duplicates: Score equal queries one by one.
        max_memory: Numbers in memory while a batch is scored, about.

    Attributes:
        rows: Indices of the queries of each batch; there is at least one batch.
    """

    def __init__(
        self,
        queries: QueryTable,
        scorer: Scorer,
        *,
        keep_duplicates: bool = False,
        max_memory: int = MAX_BATCH_MEMORY,
    ) -> None:
        columns = (queries.subject, queries.directed_relation, *queries.given_dates())
        order = np.lexsort(columns[::-1])
        is_new = np.full(len(order), keep_duplicates)
        is_new[:1] = True
        for column in columns:
            is_new[1:] |= np.diff(column[order]) != 0
        self._queries = queries
        self._index = np.empty(len(order), np.int64)
        self._index[order] = np.cumsum(is_new) - 1
        distinct = order[is_new]
        self.rows = [distinct]
        if len(distinct) > 1:
            memory = scorer.memory_per_query(queries[distinct])
            total = np.cumsum(np.maximum(memory, max_memory / _MAX_BATCH_QUERIES))
            self.rows = np.split(distinct, np.flatnonzero(np.diff(total // max_memory)) + 1)

    def __iter__(self) -> Iterator[QueryTable]:
        return (self._queries[rows] for rows in self.rows)

    def join(self, parts: Sequence[TopCandidates]) -> TopCandidates:
        """Join the candidates of all batches, in the order of the queries."""
        return TopCandidates.join(parts).take(self._index)
