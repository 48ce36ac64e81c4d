"""`Standing`: where every entity stands among the answers of one query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.attention import known_answers
from tilp.evaluation import Scores
from tilp.graph import QueryTable, TemporalGraph

__all__ = ["Standing"]


@dataclass(frozen=True, eq=False)
class Standing:
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
    def of(cls, graph: TemporalGraph, table: QueryTable, scores: Scores) -> Standing:
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
