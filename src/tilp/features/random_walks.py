"""Random walk scores: how likely a walk that prefers facts near the query's time ends where."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilp._kernels import random_walks as kernels
from tilp._kernels.candidate_history import FAR, FactEdges
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import Floats, Indices
from tilp.graph import TemporalGraph
from tilp.time import known_ends
from tilp.walks import Walker

_FEW_EDGES = 200_000  # of a graph: none of its steps is limited
_LIMITS = 50_000, 10_000  # of the edges of one step, in such a graph and in larger ones
MIN_PROBABILITY = 1e-7  # those far below all score about 0


def time_scale(graph: TemporalGraph) -> float:
    """Return the median time between the first and the last start of an entity's facts in train."""
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
        limit = max(walker.limit, _LIMITS[len(edges.target) > _FEW_EDGES])
        return cls(edges, scale, length, max(walk_length, length), limit)

    @cached_property
    def source(self) -> Indices:
        """Entity that each edge leads from."""
        return np.repeat(np.arange(len(self.edges.offsets) - 1), np.diff(self.edges.offsets))

    def edges_of(self, relation: int) -> Indices:
        """Return the edges of a directed relation."""
        order, bounds = self._by_relation
        return order[bounds[relation] : bounds[relation + 1]]

    @cached_property
    def _by_relation(self) -> tuple[Indices, Indices]:
        order = np.argsort(self.edges.relation, kind="stable")
        bounds = np.arange(self.edges.relation.max(initial=-1) + 2)
        return order, np.searchsorted(self.edges.relation[order], bounds)

    def log_scores(self, listed: ListedCandidates) -> Floats:
        """Return how likely each candidate is reached, on a logarithmic scale from 0 (never)."""
        return kernels.list_random_walk_scores(*self._arguments(listed))

    def probabilities(self, listed: ListedCandidates) -> Floats:
        """Return the probability of each candidate, summed over all lengths of walks."""
        probability: Floats = MIN_PROBABILITY * np.expm1(self.log_scores(listed))
        return probability

    def add_scores(self, listed: ListedCandidates, weight: Floats, score: Floats) -> None:
        """Add the log scores to the scores of candidates, times the weight of each query."""
        kernels.add_random_walk_scores(*self._arguments(listed), weight, score)

    def _arguments(
        self, listed: ListedCandidates
    ) -> tuple[FactEdges, ListedCandidates, Indices, kernels.WalkSettings]:
        by_interval = np.lexsort((listed.end, listed.start))
        lengths = self.rule_length, self.max_length
        settings = kernels.WalkSettings(self.scale, *lengths, self.limit, MIN_PROBABILITY)
        return self.edges, listed, by_interval, settings
