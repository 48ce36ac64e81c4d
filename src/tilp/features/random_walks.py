"""Random walks near the query's time: where they end, and which chains of relations they take."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import inf
from typing import Any

import numpy as np

from tilp._kernels import random_walks as kernels
from tilp._kernels.candidate_history import FactEdges
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import Floats, Indices, ranges_to_indices
from tilp.graph import QueryTable, TemporalGraph
from tilp.time import FAR, ends_as_of, known_ends
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
        with self._workspace() as space:
            return kernels.list_random_walk_scores(*self._arguments(listed), space)

    def add_scores(self, listed: ListedCandidates, weight: Floats, score: Floats) -> None:
        """Add the log scores to the scores of candidates, times the weight of each query."""
        with self._workspace() as space:
            kernels.add_random_walk_scores(*self._arguments(listed), space, weight, score)

    @cached_property
    def _workspaces(self) -> list[kernels.Workspace]:
        """Those not in use: as many as threads have walked at once."""
        return []

    @contextmanager
    def _workspace(self) -> Iterator[kernels.Workspace]:
        try:
            space = self._workspaces.pop()
        except IndexError:
            space = kernels.make_workspace(self.edges, self.limit)
        yield space
        self._workspaces.append(space)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_workspaces"}

    def _arguments(
        self, listed: ListedCandidates
    ) -> tuple[FactEdges, ListedCandidates, Indices, kernels.WalkSettings]:
        by_interval = np.lexsort((listed.latest, listed.end, listed.start))
        lengths = self.rule_length, self.max_length
        settings = kernels.WalkSettings(self.scale, *lengths, self.limit, MIN_PROBABILITY)
        return self.edges, listed, by_interval, settings


Chain = tuple[int, ...]
"""Directed relations of a walk, from the query's entity to the candidate."""

_MIN_SHARE = 0.2  # of the probability that a chain needs to be told apart from the others
_MAX_VISITS = 100  # prefixes of walks to extend in search of one without a circle
_MIN_WALKS = 3  # to look for at once
_MAX_BRANCHES = 30  # likeliest steps from one position to follow


class WalkChains:
    """Random walks from the subject of a single query with dates to one candidate."""

    def __init__(self, walks: RandomWalks, query: QueryTable, candidate: int) -> None:
        self._walks, self._edges = walks, walks.edges
        self._subject = int(query.subject[0])
        start, end = (int(np.clip(time[0], -FAR, FAR)) for time in (query.start, query.end))
        edges = walks.edges
        latest = int(query.latest[0])
        ends = ends_as_of(edges.starts, edges.ends, latest)
        gap = np.maximum(np.maximum(start - ends, edges.starts - end), 0)
        weight = np.exp(-gap / walks.scale)[edges.interval]
        weight[(edges.fact == query.fact[0]) | (edges.start > latest)] = 0.0
        total = np.bincount(walks.source, weight, len(edges.offsets) - 1)
        # The probability of each edge from its source; a source without any weight has no edges.
        self._step = weight / np.where(total > 0.0, total, 1.0)[walks.source]
        self._lead_to(candidate)

    def _lead_to(self, candidate: int) -> None:
        self._arrive = [np.zeros(len(self._edges.offsets) - 1)]  # of entities, by number of steps
        self._arrive[0][candidate] = 1.0
        self._found: dict[Chain, list[Indices]] = {}
        self._likely: dict[Chain, float] = {}

    def to(self, candidate: int) -> WalkChains:
        """Return the walks to another candidate."""
        other = copy(self)
        other._lead_to(candidate)
        return other

    def _arriving(self, steps: int) -> Floats:
        """Return how likely a walk of some steps from each entity ends at the candidate."""
        while len(self._arrive) <= steps:
            onward = self._step * self._arrive[-1][self._edges.target]
            arriving = np.bincount(self._walks.source, onward, len(self._arrive[0]))
            self._arrive.append(np.asarray(arriving, np.float64))
        return self._arrive[steps]

    @property
    def _lengths(self) -> range:
        return range(self._walks.rule_length + 1, self._walks.max_length + 1)

    def total(self) -> float:
        """Return the probability of all walks, summed over their lengths."""
        return float(sum(self._arriving(length)[self._subject] for length in self._lengths))

    def likely(self, min_share: float = _MIN_SHARE) -> dict[Chain, float]:
        """Return the chains with a share of the probability, and what they have, likeliest first.

        Prefixes of chains are followed from the likeliest on. The probability that walks of a
        prefix arrive bounds that of each chain which begins with it, so that few are followed.
        """
        least = min_share * self.total()
        found: dict[Chain, float] = {}
        ties = count()
        start = np.array([self._subject]), np.ones(1)
        heap: list[tuple[float, int, Chain, int, Indices, Floats]] = []
        heap += [(-inf, next(ties), (), length, *start) for length in self._lengths if least > 0.0]
        while heap:
            bound, _, chain, left, entities, mass = heapq.heappop(heap)
            if left == 0:
                found[chain] = -bound
                continue
            for relation, targets, reached in self._onward(entities, mass, left):
                probability = float(reached @ self._arriving(left - 1)[targets])
                if probability >= least:
                    prefix = (*chain, relation)
                    item = (-probability, next(ties), prefix, left - 1, targets, reached)
                    heapq.heappush(heap, item)
        self._likely = found
        return found

    def _onward(
        self, entities: Indices, mass: Floats, left: int
    ) -> Iterator[tuple[int, Indices, Floats]]:
        """Yield for each relation the entities one step on, from where the candidate is reached."""
        edges, arriving = self._edges, self._arriving(left - 1)
        offsets, edge = ranges_to_indices(edges.offsets[entities], edges.offsets[entities + 1])
        source = np.repeat(np.arange(len(entities)), np.diff(offsets))
        leads = (arriving[edges.target[edge]] > 0.0) & (self._step[edge] > 0.0)
        edge, source = edge[leads], source[leads]
        key = edges.relation[edge].astype(np.int64) * len(arriving) + edges.target[edge]
        keys, group = np.unique(key, return_inverse=True)
        mass = np.bincount(group, mass[source] * self._step[edge], len(keys)).astype(np.float64)
        relations, targets = np.divmod(keys, len(arriving))
        for rows in np.split(np.arange(len(keys)), np.flatnonzero(np.diff(relations)) + 1):
            if len(rows):
                yield int(relations[rows[0]]), targets[rows], mass[rows]

    def share(self, chain: Chain) -> float:
        """Return the share of one chain in the probability of all walks."""
        if chain in self._likely:
            return self._likely[chain] / self.total()
        arriving = self._arrive[0]
        for relation in reversed(chain):
            edge = self._walks.edges_of(relation)
            onward = self._step[edge] * arriving[self._edges.target[edge]]
            weights = np.bincount(self._walks.source[edge], onward, len(arriving))
            arriving = weights.astype(np.float64)
        return float(arriving[self._subject]) / (self.total() or 1.0)

    def walks(self, chain: Chain, n: int) -> list[Indices]:
        """Return up to n walks of a chain that visit no entity twice, as edges, likeliest first."""
        if chain not in self._found or n > _MIN_WALKS:
            self._found[chain] = self._search(chain, max(n, _MIN_WALKS))
        return self._found[chain][:n]

    def _search(self, chain: Chain, n: int) -> list[Indices]:
        edges = self._edges
        best = [self._arrive[0]]  # probability of the likeliest rest of the chain from each entity
        for relation in reversed(chain):
            edge = self._walks.edges_of(relation)
            edge = edge[best[-1][edges.target[edge]] > 0.0]
            rest = np.zeros(len(best[0]))
            onward = self._step[edge] * best[-1][edges.target[edge]]
            np.maximum.at(rest, self._walks.source[edge], onward)
            best.append(rest)
        found: list[Indices] = []
        ties = count()
        heap: list[tuple[float, int, float, tuple[int, ...]]] = [(-1.0, next(ties), 1.0, ())]
        for _ in range(_MAX_VISITS):
            if not heap or len(found) == n:
                break
            _, _, probability, walk = heapq.heappop(heap)
            if len(walk) == len(chain):
                found.append(np.array(walk))
                continue
            visited = [self._subject, *edges.target[list(walk)].tolist()]
            here = slice(edges.offsets[visited[-1]], edges.offsets[visited[-1] + 1])
            edge = here.start + np.flatnonzero(edges.relation[here] == chain[len(walk)])
            target = edges.target[edge]
            rest = self._step[edge] * best[len(chain) - len(walk) - 1][target]
            rest[(target[:, None] == visited).any(axis=1)] = 0.0
            order = np.argsort(-rest, kind="stable")[:_MAX_BRANCHES]
            for index in order[rest[order] > 0.0].tolist():
                longer = (*walk, int(edge[index]))
                likely = probability * float(self._step[longer[-1]])
                item = (-probability * float(rest[index]), next(ties), likely, longer)
                heapq.heappush(heap, item)
        return found

    def shortest_walk(self) -> Indices:
        """Return a shortest walk, which has no circle, by likely steps; none if there is none."""
        edges, walk, entity = self._edges, list[int](), self._subject
        lengths = range(1, self._walks.max_length + 1)
        length = next((n for n in lengths if self._arriving(n)[entity] > 0.0), 0)
        for left in range(length - 1, -1, -1):
            edge = np.arange(edges.offsets[entity], edges.offsets[entity + 1])
            onward = self._step[edge] * self._arriving(left)[edges.target[edge]]
            walk.append(int(edge[np.argmax(onward)]))
            entity = int(edges.target[walk[-1]])
        return np.array(walk, np.int64)
