"""`Settling`: what is taken for the unknown ends of facts and of queries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilp.chances import chances
from tilp.choices import Missing
from tilp.features.durations import Durations
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.intervals import OPEN_END, OPEN_START, UNKNOWN, known_ends

__all__ = ["Settling"]

_LEFT_TO_WALKS = (Missing.POINT, Missing.UNKNOWN)


@dataclass(frozen=True)
class Settling:
    """Fills in unknown ends, each by its own fact or query alone, whatever stands beside it.

    Attributes:
        missing: what they are taken for.
        durations: what `Missing.DURATION` draws from.
        seed: for the draws.
    """

    missing: Missing
    durations: Durations | None = None
    seed: int = 0

    @classmethod
    def fit(cls, graph: TemporalGraph, missing: Missing, seed: int) -> Settling:
        """With the durations of a graph's training facts, where they are needed."""
        needed = missing is Missing.DURATION
        return cls(missing, Durations.fit(graph) if needed else None, seed)

    def on(self, relations: Vocabulary) -> Settling:
        """The same for a graph with other relations, whose durations are known by their names."""
        durations = None if self.durations is None else self.durations.of(relations)
        return replace(self, durations=durations)

    def graph(self, graph: TemporalGraph) -> TemporalGraph:
        """The facts with their unknown ends filled in; the texts of their dates stay.

        What walks are to read as a point, or in every reading, is left unknown.
        """
        if self.missing in _LEFT_TO_WALKS:
            return graph
        columns = (graph.subject, graph.relation, graph.object)
        start, end = self._settled(graph.relation, graph.start, graph.end, columns)
        return replace(graph, start=start, end=end)

    def queries(self, queries: QueryTable) -> QueryTable:
        """Queries with their unknown ends filled in likewise.

        A draw depends on what is asked, never on the answer.
        """
        if self.missing in _LEFT_TO_WALKS or not queries.unknown.any():
            return queries
        columns = (queries.subject, queries.head)
        return queries.at(*self._settled(queries.head, *queries.given(), columns))

    def _settled(
        self,
        head: NDArray[np.int32],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        drawn_by: tuple[NDArray[np.int32], ...],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self.missing is Missing.OPEN:
            start = np.where(start == UNKNOWN, OPEN_START, start)
            end = np.where(end == UNKNOWN, OPEN_END, end)
        elif self.durations is not None:
            chance = chances(self.seed, *drawn_by, start, end)
            relation = head % np.int32(len(self.durations.relations))
            start, end = self.durations.estimate(relation, start, end, chance)
        return known_ends(start, end)
