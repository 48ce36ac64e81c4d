"""`Standing`: where every entity stands among the answers of one query."""

from __future__ import annotations

from collections.abc import Iterator
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
        """Of a single query, as `each` has it."""
        (found,) = cls.each(graph, table, scores)
        return found

    @classmethod
    def each(cls, graph: TemporalGraph, table: QueryTable, scores: Scores) -> Iterator[Standing]:
        """Of one query after the other.

        Args:
            graph: whose train split is the evidence.
            table: the queries.
            scores: of their candidates.
        """
        known = known_answers(graph, table)
        touching = known.mark >= Mark.KNOWN + 2
        for query, default in enumerate(scores.defaults.tolist()):
            part = slice(scores.offsets[query], scores.offsets[query + 1])
            score = np.full(len(graph.entities), default)
            score[scores.candidate[part]] = scores.score[part]
            share = score
            if scores.temperature is not None:
                share = np.exp((score - score.max()) / scores.temperature)
            total = share.sum()
            marked = slice(known.begin[query], known.begin[query + 1])
            yield cls(
                score,
                share / total if total > 0 else np.zeros_like(share),
                frozenset(known.entity[marked][touching[marked]].tolist()),
            )

    @property
    def winner(self) -> int:
        """The best entity; of equal ones the first."""
        return int(np.argmax(self.score))

    def best(self, k: int) -> list[int]:
        """The k best entities; equal scores in the order of entities."""
        found: list[int] = np.argsort(-self.score, kind="stable")[:k].tolist()
        return found

    def rank(self, entity: int) -> int:
        """From 1 on; equal scores in the order of entities."""
        own = self.score[entity]
        return 1 + int((self.score > own).sum() + (self.score[:entity] == own).sum())
