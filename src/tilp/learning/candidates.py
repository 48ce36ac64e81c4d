"""Known answers of a query, and the popularity prior over candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import ranges_to_indices, read_only
from tilp._utils.random import keyed_uniform
from tilp.graph import QueryTable, TemporalGraph
from tilp.time import known_ends

KNOWN_KINDS = ("before", "after", "meeting", "touching")
"""How the interval at which a candidate is known lies to the query's; of several, the last."""


class Mark(IntEnum):
    """What a marked candidate of a query is; past the last kind of known ones, out of the count."""

    ANSWER = 0
    KNOWN = 1
    LEFT_OUT = 1 + len(KNOWN_KINDS)


@dataclass(frozen=True)
class KnownAnswers:
    """Marked candidates of queries, by query and entity.

    Attributes:
        begin: where the candidates of each query begin, and where the last end.
        entity: each candidate, ascending in each query.
        mark: what it is.
        answer_kind: the kind of known candidate that each answer is; -1: none.
    """

    begin: NDArray[np.int64]
    entity: NDArray[np.int32]
    mark: NDArray[np.int8]
    answer_kind: NDArray[np.int8]

    def at_the_time(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The candidates that are known at a time that meets or touches their query's.

        Returns:
            Where those of each query begin, and where the last end; and these.
        """
        there = self.mark >= Mark.KNOWN + KNOWN_KINDS.index("meeting")
        return np.append(0, np.cumsum(there))[self.begin], self.entity[there]


def known_answers(
    graph: TemporalGraph, queries: QueryTable, *, leave_out: int | None = None
) -> KnownAnswers:
    """Mark the answers of queries, and the candidates that train knows as other answers.

    Args:
        graph: its train split is what is known.
        queries: a query's own fact is not known to it.
        leave_out: a seed; an instant is drawn from each query's interval, and other answers that
            are known to hold at it are left out of the count.
    """
    index = graph.index(("train",))
    begin, edge = ranges_to_indices(*index.edge_ranges(queries.subject, queries.directed_relation))
    query = np.repeat(np.arange(len(queries)), np.diff(begin))
    other = index.fact[edge] != queries.fact[query]
    query, edge = query[other], edge[other]
    fact, entity = index.fact[edge], index.target[edge]
    start, end = known_ends(graph.start[fact], graph.end[fact])
    is_answer = entity == queries.answer[query]
    mark = Mark.KNOWN + _kinds(start, end, queries.start[query], queries.end[query])
    if leave_out is not None:
        instant = _instants(graph, queries, leave_out)[query]
        holds = (start <= instant) & (instant <= end)
        mark = np.where(holds & ~is_answer, Mark.LEFT_OUT, mark)
    answer_kind = np.full(len(queries), -1, np.int8)
    np.maximum.at(answer_kind, query[is_answer], mark[is_answer].astype(np.int8) - Mark.KNOWN)
    asked = np.flatnonzero(queries.answer >= 0)
    query = np.concatenate([query[~is_answer], asked])
    entity = np.concatenate([entity[~is_answer], queries.answer[asked]])
    mark = np.concatenate([mark[~is_answer], np.full(len(asked), Mark.ANSWER)])
    order = np.lexsort((mark, entity, query))
    query, entity, mark = query[order], entity[order], mark[order]
    last = np.append((np.diff(query) != 0) | (np.diff(entity) != 0), True)[: len(query)]
    query, entity, mark = query[last], entity[last], mark[last]
    return KnownAnswers(
        np.searchsorted(query, np.arange(len(queries) + 1)).astype(np.int64),
        entity.astype(np.int32),
        mark.astype(np.int8),
        answer_kind,
    )


def _kinds(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    query_start: NDArray[np.int64],
    query_end: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The place in `KINDS` of each interval against a query's."""
    before, after = end < query_start, start > query_end
    meeting = ((end == query_start) & (start < query_start)) | (
        (start == query_end) & (end > query_end)
    )
    return np.select([before, after, meeting], [0, 1, 2], 3)


def _instants(graph: TemporalGraph, queries: QueryTable, seed: int) -> NDArray[np.int64]:
    """An instant of each query's interval, drawn from the times that are known in train.

    What is drawn depends on the query alone, not on those beside it.
    """
    known = graph.train_times
    if not len(known):
        return queries.start
    chance = keyed_uniform(
        seed, queries.subject, queries.directed_relation, queries.answer, queries.start, queries.end
    )
    low = np.searchsorted(known, queries.start)
    high = np.maximum(np.searchsorted(known, queries.end, side="right"), low + 1)
    place = low + (chance * (high - low)).astype(np.int64)
    inside = known[np.minimum(place, len(known) - 1)]
    return np.clip(inside, queries.start, queries.end)


_UNIFORM = 0.05
"""The share that is given to all entities alike."""


@dataclass(frozen=True)
class CandidatePrior:
    """A distribution over candidates for each directed relation, from the counts of train.

    Attributes:
        begin: where the candidates of each directed relation begin, and where the last end.
        entity: those that train has, ascending.
        count: how often.
        n_entities: all there are.
    """

    begin: NDArray[np.int64]
    entity: NDArray[np.int32]
    count: NDArray[np.int64]
    n_entities: int

    def __post_init__(self) -> None:
        for name in ("begin", "entity", "count"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @classmethod
    def of(cls, graph: TemporalGraph) -> CandidatePrior:
        """Count the answers in a graph's train split."""
        n_relations, n_entities = len(graph.relations), len(graph.entities)
        # Inverse relations come after all others, so that each direction is counted alone.
        counted = [
            np.unique(answers, return_counts=True)
            for answers in _answers(graph, graph.span("train"))
        ]
        distinct, count = (np.concatenate(both) for both in zip(*counted, strict=True))
        begin = np.searchsorted(distinct, np.arange(2 * n_relations + 1) * n_entities)
        return cls(
            begin.astype(np.int64), (distinct % n_entities).astype(np.int32), count, n_entities
        )

    def without(self, graph: TemporalGraph, facts: NDArray[np.int64]) -> CandidatePrior:
        """The same without some facts of the graph that it was counted in, each given once."""
        of_train = facts[facts < graph.bounds[1]]
        count = self.count.copy()
        for answers in _answers(graph, of_train):
            np.subtract.at(count, np.searchsorted(self._keys, answers), 1)
        kept = count > 0
        before = np.append(0, np.cumsum(kept))
        return replace(self, begin=before[self.begin], entity=self.entity[kept], count=count[kept])

    @property
    def n_heads(self) -> int:
        """How many directed relations there are."""
        return len(self.begin) - 1

    @property
    def lowest(self) -> float:
        """What every entity has."""
        return _UNIFORM / max(self.n_entities, 1)

    @property
    def probability(self) -> NDArray[np.float64]:
        """Of each candidate that train has."""
        return (1 - _UNIFORM) * self.count / np.repeat(self._totals, np.diff(self.begin)) + (
            self.lowest
        )

    def of_entities(
        self, head: NDArray[np.int32], entity: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """The probability of entities, each as an answer of a head."""
        count = self._counts(head, entity)
        return (1 - _UNIFORM) * count / self._totals[head] + self.lowest

    def counts(
        self, head: NDArray[np.int32], entity: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How often train has entities as answers of heads; and how many answers heads have."""
        return self._counts(head, entity), self._answers_of_heads[head]

    def of_answers(self, queries: QueryTable) -> NDArray[np.float64]:
        """The probability of each query's answer, from train without the query's own fact."""
        count = self._counts(queries.directed_relation, queries.answer)
        own = queries.fact >= 0
        totals = np.maximum(self._totals[queries.directed_relation] - own, 1)
        return (1 - _UNIFORM) * np.maximum(count - own, 0) / totals + self.lowest

    def _counts(self, head: NDArray[np.int32], entity: NDArray[np.int32]) -> NDArray[np.int64]:
        """How often train has entities as answers of heads."""
        key = self._keys
        wanted = head.astype(np.int64) * self.n_entities + entity
        place = np.searchsorted(key, wanted)
        # A count of nothing at the end, for what would stand past the last.
        found = np.append(key, -1)[place] == wanted
        return np.where(found, np.append(self.count, 0)[place], 0)

    @property
    def _keys(self) -> NDArray[np.int64]:
        """Head and entity of each candidate as one number, ascending."""
        heads = np.repeat(np.arange(self.n_heads, dtype=np.int64), np.diff(self.begin))
        return heads * self.n_entities + self.entity

    @property
    def _totals(self) -> NDArray[np.int64]:
        return np.maximum(self._answers_of_heads, 1)

    @property
    def _answers_of_heads(self) -> NDArray[np.int64]:
        so_far = np.concatenate([[0], np.cumsum(self.count)])
        answers: NDArray[np.int64] = np.diff(so_far[self.begin])
        return answers


def _answers(graph: TemporalGraph, facts: slice | NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Directed relation and answer of facts, as one number, first the one way, then the other."""
    n_relations, n_entities = len(graph.relations), len(graph.entities)
    relation = graph.relation[facts].astype(np.int64)
    yield relation * n_entities + graph.object[facts]
    yield (relation + n_relations) * n_entities + graph.subject[facts]
