"""Random walk scores: how likely a walk that prefers facts near the query's time ends where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilp._kernels.candidate_history import FAR, FactEdges
from tilp._kernels.random_walks import (
    WalkSettings,
    add_random_walk_scores,
    likeliest_walk,
    list_random_walk_scores,
)
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import Floats, Indices
from tilp.graph import QueryTable, TemporalGraph
from tilp.time import known_ends
from tilp.walks import Walker

_MIN_LIMIT = 50_000
MIN_PROBABILITY = 1e-7  # those far below all score about 0


def time_scale(graph: TemporalGraph) -> float:
    """Return the median time between the first and the last start of an entity's facts.

    Entities need two facts in train with different starts to count.
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
    """Random walks over any facts, longer than the walks of rules, that prefer near dates."""

    edges: FactEdges  # the facts
    scale: float  # distance in time at which a fact is e times less likely than one at query time
    rule_length: int  # longest walk of a rule; only longer walks count
    max_length: int  # longest walk
    limit: int  # most edges to read in one step

    @classmethod
    def for_walker(
        cls, walker: Walker, edges: FactEdges, scale: float, walk_length: int
    ) -> RandomWalks:
        """Make the walks that are longer than those of a walker."""
        length = walker.max_length
        limit = max(walker.limit, _MIN_LIMIT)
        return cls(edges, scale, length, max(walk_length, length), limit)

    def log_scores(self, listed: ListedCandidates) -> Floats:
        """Return how likely each candidate is reached, on a logarithmic scale from 0 (never)."""
        return list_random_walk_scores(*self._arguments(listed))

    def probabilities(self, listed: ListedCandidates) -> Floats:
        """Return the probability of each candidate, summed over all lengths of walks."""
        probability: Floats = MIN_PROBABILITY * np.expm1(self.log_scores(listed))
        return probability

    def add_scores(self, listed: ListedCandidates, weight: Floats, score: Floats) -> None:
        """Add the log scores to the scores of candidates, times the weight of each query."""
        add_random_walk_scores(*self._arguments(listed), weight, score)

    def likeliest_walks(
        self, queries: QueryTable, query: int, candidate: int
    ) -> list[tuple[Indices, float]]:
        """Return the likeliest walk of each length to a candidate, the likeliest first."""
        subject, fact = int(queries.subject[query]), int(queries.fact[query])
        start, end = (int(np.clip(time[query], -FAR, FAR)) for time in (queries.start, queries.end))
        walks = [
            likeliest_walk(self.edges, subject, candidate, start, end, fact, self.scale, length)
            for length in range(self.rule_length + 1, self.max_length + 1)
        ]
        return sorted((walk for walk in walks if walk[1] > 0.0), key=lambda walk: -walk[1])

    def _arguments(
        self, listed: ListedCandidates
    ) -> tuple[FactEdges, ListedCandidates, Indices, WalkSettings]:
        by_interval = np.lexsort((listed.end, listed.start))
        lengths = self.rule_length, self.max_length
        settings = WalkSettings(self.scale, *lengths, self.limit, MIN_PROBABILITY)
        return self.edges, listed, by_interval, settings
