"""`Best`: the best candidates of many queries, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.best import best_candidates
from tilp.attention import known_answers
from tilp.evaluation import Scores
from tilp.graph import QueryTable, TemporalGraph
from tilp.ranking.model_scorer import ModelScorer
from tilp.spans import places_in

__all__ = ["Best", "BestOf"]


@dataclass(frozen=True, eq=False)
class Best:
    """The best candidates of queries, one query after the other, the best first.

    Attributes:
        begin: where the candidates of each query begin, and where the last end.
        entity: the candidates.
        rank: of each among all entities; equal scores in the order of entities.
        score: higher is better.
        share: of all candidates' scores; of their softmax, where scores have a temperature.
        known: whether the evidence already has it as an answer at a time that touches the query's.
    """

    begin: NDArray[np.int64]
    entity: NDArray[np.int32]
    rank: NDArray[np.int64]
    score: NDArray[np.float64]
    share: NDArray[np.float64]
    known: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        graph: TemporalGraph,
        table: QueryTable,
        scores: Scores,
        k: int,
        *,
        new_only: bool = False,
    ) -> Best:
        """The k best candidates of each query.

        Args:
            graph: whose train split is the evidence.
            table: the queries.
            scores: of their candidates.
            k: how many.
            new_only: whether those that are known are left out; the others keep their ranks.
        """
        n = len(graph.entities)
        known_begin, known_entity = known_answers(graph, table).at_the_time()
        n_known = np.diff(known_begin)
        most = np.minimum(k + n_known if new_only else np.full(len(table), k), n)
        begin, entity, score = best_candidates(
            scores.offsets, scores.candidate, scores.score, scores.defaults, most, n
        )
        query = np.repeat(np.arange(len(table)), np.diff(begin))
        known = np.isin(
            query * n + entity, np.repeat(np.arange(len(table)), n_known) * n + known_entity
        )
        found = cls(
            begin,
            entity,
            np.arange(len(entity)) - begin[query] + 1,
            score,
            scores.shares(query, score, n),
            known,
        )
        return found._only(~known, k) if new_only else found

    @classmethod
    def join(cls, parts: Sequence[Best]) -> Best:
        """Those of the queries of several parts, one part after the other."""
        sizes = [np.diff(one.begin) for one in parts]
        rest = (
            np.concatenate([getattr(one, column.name) for one in parts])
            for column in fields(cls)[1:]
        )
        return cls(np.append(0, np.cumsum(np.concatenate(sizes))), *rest)

    def __len__(self) -> int:
        return len(self.begin) - 1

    def take(self, queries: NDArray[np.int64]) -> Best:
        """Those of some queries, in the given order; a query may come more than once."""
        begin, place = places_in(self.begin[queries], self.begin[1:][queries])
        return Best(begin, *(getattr(self, column.name)[place] for column in fields(self)[1:]))

    def _only(self, kept: NDArray[np.bool_], k: int) -> Best:
        """The first k of each query that are kept."""
        before = np.append(0, np.cumsum(kept))
        number = before[1:] - np.repeat(before[self.begin[:-1]], np.diff(self.begin))
        kept = kept & (number <= k)
        begin = np.append(0, np.cumsum(kept))[self.begin]
        return Best(begin, *(getattr(self, column.name)[kept] for column in fields(self)[1:]))


@dataclass(frozen=True)
class BestOf:
    """Asks a scorer for the k best candidates of queries.

    Attributes:
        graph: the facts as they were given, whose train split the scorer has as evidence.
        scorer: of any kind of model.
        k: how many.
        new_only: whether those that are known are left out.
    """

    graph: TemporalGraph
    scorer: ModelScorer
    k: int
    new_only: bool = False

    def __call__(self, table: QueryTable) -> Best:
        """Ask queries; the best not too many at once."""
        return Best.of(self.graph, table, self.scorer(table), self.k, new_only=self.new_only)
