"""`Standing`: where every entity stands among the answers of one query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.attention import Mark, known_answers
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
        score = np.full(len(graph.entities), scores.defaults[0])
        score[scores.candidate] = scores.score
        share = score
        if scores.temperature is not None:
            share = np.exp((score - score.max()) / scores.temperature)
        total = share.sum()
        known = known_answers(graph, table)
        touching = known.entity[known.mark >= Mark.KNOWN + 2]
        return cls(score, share / total if total > 0 else share, frozenset(touching.tolist()))

    @property
    def winner(self) -> int:
        """The best entity; of equal ones the first."""
        return int(np.argmax(self.score))

    def rank(self, entity: int) -> int:
        """From 1 on; equal scores in the order of entities."""
        own = self.score[entity]
        return 1 + int((self.score > own).sum() + (self.score[:entity] == own).sum())
