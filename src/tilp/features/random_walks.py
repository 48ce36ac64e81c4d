"""`RandomWalks`: how likely a walker that prefers facts near the query's time ends at a candidate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.candidate_history import FAR, FactEdges
from tilp._kernels.random_walks import (
    WalkSettings,
    add_random_walk_scores,
    likeliest_walk,
    list_random_walk_scores,
)
from tilp._kernels.types import ListedCandidates
from tilp.graph import QueryTable, TemporalGraph
from tilp.time import known_ends
from tilp.walks import Walker

_LEAST_CHANCE = 1e-7
"""Chances far below it are all alike."""


def time_scale(graph: TemporalGraph) -> float:
    """How long entities are there: the median time from the first to the last start of one's facts.

    Of entities with at least two facts in train whose starts differ.
    """
    index = graph.index(("train",))
    start, _ = known_ends(graph.start, graph.end)
    start = start[index.fact]
    entity = np.repeat(np.arange(len(index.offsets) - 1), np.diff(index.offsets))
    dated = np.abs(start) < FAR
    first = np.full(len(index.offsets) - 1, FAR)
    last = np.full(len(index.offsets) - 1, -FAR)
    np.minimum.at(first, entity[dated], start[dated])
    np.maximum.at(last, entity[dated], start[dated])
    spans = (last - first)[last > first]
    return float(np.median(spans)) if len(spans) else 1.0


@dataclass(frozen=True)
class RandomWalks:
    """Walks any facts, the nearer in time the likelier, for answers that rules do not reach.

    Attributes:
        edges: the facts.
        scale: how far in time a fact may be to count about a third of one at the query's time.
        near: steps of walks that rules could follow, which are left to them.
        far: steps at the most.
        limit: edges that are read at the most in one step.
    """

    edges: FactEdges
    scale: float
    near: int
    far: int
    limit: int

    @classmethod
    def of(cls, walker: Walker, edges: FactEdges, scale: float, soft_length: int) -> RandomWalks:
        """Soft walks beside a walker's: longer than its own."""
        near = walker.max_length
        return cls(edges, scale, near, max(soft_length, near), walker.limit)

    @property
    def _manner(self) -> WalkSettings:
        return WalkSettings(self.scale, self.near, self.far, self.limit, _LEAST_CHANCE)

    def listed(self, asked: ListedCandidates) -> NDArray[np.float64]:
        """How likely each candidate is reached, on a logarithmic scale from 0, not at all."""
        return list_random_walk_scores(self.edges, asked, _by_interval(asked), self._manner)

    def chances(self, asked: ListedCandidates) -> NDArray[np.float64]:
        """The same as chances: sums over all walks of each number of steps."""
        found: NDArray[np.float64] = _LEAST_CHANCE * np.expm1(self.listed(asked))
        return found

    def add(
        self, asked: ListedCandidates, weight: NDArray[np.float64], score: NDArray[np.float64]
    ) -> None:
        """Add what is listed to the scores of candidates, by the weight of each query."""
        add_random_walk_scores(self.edges, asked, _by_interval(asked), self._manner, weight, score)

    def strongest(
        self, queries: QueryTable, query: int, candidate: int
    ) -> list[tuple[NDArray[np.int64], float]]:
        """The likeliest walk of each length, past `near`, from a query's subject to a candidate.

        Returns:
            The edges of each, as places in the index of train, and its chance; the likeliest first.
        """
        start, end = (int(np.clip(one[query], -FAR, FAR)) for one in (queries.start, queries.end))
        found = (
            likeliest_walk(
                self.edges,
                int(queries.subject[query]),
                candidate,
                start,
                end,
                int(queries.fact[query]),
                self.scale,
                length,
            )
            for length in range(self.near + 1, self.far + 1)
        )
        return sorted((one for one in found if one[1] > 0.0), key=lambda one: -one[1])


def _by_interval(asked: ListedCandidates) -> NDArray[np.int64]:
    """The queries in an order in which those of one interval stand together."""
    return np.lexsort((asked.end, asked.start))
