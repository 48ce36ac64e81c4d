"""The k best candidates of many queries, and the rank of every candidate of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.topk import best_candidates
from tilp._utils.arrays import ranges_to_indices
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import known_answers
from tilp.parallel import Workers
from tilp.scoring.scorer import Scorer
from tilp.scoring.scores import Scores


@dataclass(frozen=True, eq=False)
class TopCandidates:
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
    ) -> TopCandidates:
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
    def join(cls, parts: Sequence[TopCandidates]) -> TopCandidates:
        """Those of the queries of several parts, one part after the other."""
        sizes = [np.diff(one.begin) for one in parts]
        rest = (
            np.concatenate([getattr(one, column.name) for one in parts])
            for column in fields(cls)[1:]
        )
        return cls(np.append(0, np.cumsum(np.concatenate(sizes))), *rest)

    def __len__(self) -> int:
        return len(self.begin) - 1

    def take(self, queries: NDArray[np.int64]) -> TopCandidates:
        """Those of some queries, in the given order; a query may come more than once."""
        begin, place = ranges_to_indices(self.begin[queries], self.begin[1:][queries])
        return TopCandidates(
            begin, *(getattr(self, column.name)[place] for column in fields(self)[1:])
        )

    def _only(self, kept: NDArray[np.bool_], k: int) -> TopCandidates:
        """The first k of each query that are kept."""
        before = np.append(0, np.cumsum(kept))
        number = before[1:] - np.repeat(before[self.begin[:-1]], np.diff(self.begin))
        kept = kept & (number <= k)
        begin = np.append(0, np.cumsum(kept))[self.begin]
        return TopCandidates(
            begin, *(getattr(self, column.name)[kept] for column in fields(self)[1:])
        )


@dataclass(frozen=True)
class TopKPredictor:
    """Asks a scorer for the k best candidates of queries.

    Attributes:
        graph: the facts as they were given, whose train split the scorer has as evidence.
        scorer: of any kind of model.
        k: how many.
        new_only: whether those that are known are left out.
    """

    graph: TemporalGraph
    scorer: Scorer
    k: int
    new_only: bool = False

    def __call__(self, table: QueryTable) -> TopCandidates:
        """Ask queries; the best not too many at once."""
        return TopCandidates.of(
            self.graph, table, self.scorer(table), self.k, new_only=self.new_only
        )


_ROOM = 2**22
"""Numbers that the scores of a chunk may take, about."""
_STEPS_A_NUMBER = 8
"""Steps of walks that leave one number behind, about: most are counted together."""
_MOST = 2**11
"""Queries of a chunk: beyond it there is nothing more to share."""


class QueryBatches:
    """Some queries in chunks, those of one subject together, and each that is asked twice once.

    Chunks depend on the queries and the evidence alone.

    Args:
        table: the queries.
        scorer: that they are asked of; its walks tell what they cost.
        apart: whether queries that are the same stay apart.

    Attributes:
        rows: the queries of each chunk.
    """

    def __init__(self, table: QueryTable, scorer: Scorer, *, apart: bool = False) -> None:
        start, end = table.given_dates()
        columns = (table.subject, table.directed_relation, start, end)
        order = np.lexsort(columns[::-1])
        new = np.full(len(order), apart)
        new[:1] = True
        for column in columns:
            new[1:] |= np.diff(column[order]) != 0
        self._table = table
        self._number = np.empty(len(order), np.int64)
        self._number[order] = np.cumsum(new) - 1
        asked = order[new]
        self.rows = np.split(asked, _cuts(table[asked], scorer))

    @property
    def chunks(self) -> list[QueryTable]:
        """The queries that are scored, at least one chunk of them."""
        return [self._table[rows] for rows in self.rows]

    def together(self, found: Sequence[TopCandidates]) -> TopCandidates:
        """What was found for each chunk, as one, in the order of the queries."""
        return TopCandidates.join(found).take(self._number)


def predict_all(ask: TopKPredictor, table: QueryTable, workers: Workers) -> TopCandidates:
    """The best candidates of any number of queries; workers do not change them."""
    batch = QueryBatches(table, ask.scorer)
    return batch.together(list(workers.map(ask, batch.chunks)))


def _cuts(table: QueryTable, scorer: Scorer) -> NDArray[np.int64]:
    """Where chunks of queries begin, but for the first."""
    rules = scorer.rule_scorer
    listed = np.diff(rules.prior.begin)[table.directed_relation]
    if scorer.lists_all:
        listed = np.full(len(table), rules.prior.n_entities)
    room = listed + rules.walker.steps_from[table.subject] / _STEPS_A_NUMBER
    return np.flatnonzero(np.diff(np.cumsum(np.maximum(room, _ROOM / _MOST)) // _ROOM)) + 1


@dataclass(frozen=True, eq=False)
class CandidateRanks:
    """The score, share and rank of every entity.

    Attributes:
        score: of each entity.
        share: of all scores; of their softmax, where scores have a temperature.
        known: the entities that the evidence has as answers at a time that touches the query's.
    """

    score: NDArray[np.float64]
    share: NDArray[np.float64]
    known: frozenset[int]

    @classmethod
    def of(cls, graph: TemporalGraph, table: QueryTable, scores: Scores) -> CandidateRanks:
        """Of a single query.

        Args:
            graph: whose train split is the evidence.
            table: the query.
            scores: of its candidates.
        """
        n = len(graph.entities)
        score = np.full(n, scores.defaults[0])
        score[scores.candidate] = scores.score
        _, known = known_answers(graph, table).at_the_time()
        return cls(score, scores.shares(np.zeros(n, np.int64), score, n), frozenset(known.tolist()))

    @property
    def winner(self) -> int:
        """The best entity; of equal ones the first."""
        return int(np.argmax(self.score))

    def rank(self, entity: int) -> int:
        """From 1 on; equal scores in the order of entities."""
        own = self.score[entity]
        return 1 + int((self.score > own).sum() + (self.score[:entity] == own).sum())
