"""`CandidatePrior`: how often each entity is an answer at all, for each relation and direction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilp.freezing import read_only
from tilp.graph import QueryTable, TemporalGraph

__all__ = ["CandidatePrior"]

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
    def floor(self) -> float:
        """What every entity has."""
        return _UNIFORM / max(self.n_entities, 1)

    @property
    def probability(self) -> NDArray[np.float64]:
        """Of each candidate that train has."""
        return (1 - _UNIFORM) * self.count / np.repeat(self._totals, np.diff(self.begin)) + (
            self.floor
        )

    def of_entities(
        self, head: NDArray[np.int32], entity: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """The probability of entities, each as an answer of a head."""
        count = self._counts(head, entity)
        return (1 - _UNIFORM) * count / self._totals[head] + self.floor

    def counts(
        self, head: NDArray[np.int32], entity: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How often train has entities as answers of heads; and how many answers heads have."""
        return self._counts(head, entity), self._answers_of_heads[head]

    def of_answers(self, queries: QueryTable) -> NDArray[np.float64]:
        """The probability of each query's answer, from train without the query's own fact."""
        count = self._counts(queries.head, queries.answer)
        own = queries.fact >= 0
        totals = np.maximum(self._totals[queries.head] - own, 1)
        return (1 - _UNIFORM) * np.maximum(count - own, 0) / totals + self.floor

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
