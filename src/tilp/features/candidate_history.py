"""Candidate history: features of a candidate's facts near the query's time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tilp._kernels import candidate_history as kernels
from tilp._kernels.candidate_history import FAR, N_ALLEN, FactEdges, FactGroups, NearestFacts
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import Floats, Ids, Indices, Mask, read_only_tuple
from tilp.graph import QueryTable, TemporalGraph
from tilp.time import Allen, known_ends

HISTORY_KINDS = ("other facts", "facts with the subject")

_MAX_EXACT = 10  # distances up to it have a bin each
_GROWTH = 1.22  # from one bound to the next, beyond
_TABLE_SIZE = 4096  # distances whose bins are looked up in a table
_SPREAD = (0.005, 0.995)  # quantiles of all times between which distances are told apart
_CACHE_SIZE = 2**24  # values to keep of the facts nearest to the latest query intervals
_VALUES_PER_INTERVAL = 6  # values that the cache holds for each interval of a fact
_DISTANCES = (("start", "start"), ("end", "start"), ("start", "end"))  # ends of fact and query


def n_history_features(n_bounds: int) -> int:
    """Return the count of features in each group, given that of the bounds of distances."""
    return N_ALLEN + 1 + len(_DISTANCES) * (2 * n_bounds + 1)


def distance_bounds(graph: TemporalGraph) -> Indices:
    """Return where the bins of temporal distances begin: single units first, then ever wider."""
    train = graph.span("train")
    times = np.concatenate(known_ends(graph.start[train], graph.end[train]))
    times = times[np.abs(times) < FAR]
    low, high = np.quantile(times, _SPREAD) if len(times) else (0.0, 0.0)
    bounds = list(range(1, _MAX_EXACT + 1))
    while bounds[-1] < high - low:
        bounds.append(max(bounds[-1] + 1, round(bounds[-1] * _GROWTH)))
    return np.array(bounds, np.int64)


def fact_edges(graph: TemporalGraph) -> FactEdges:
    """Return the edges of a graph's train split, with their times."""
    columns = _edge_columns(graph)
    fact = columns[-1]
    start, end = (np.clip(times, -FAR, FAR) for times in known_ends(graph.start, graph.end))
    distinct, interval = np.unique(np.stack([start, end]), axis=1, return_inverse=True)
    times = start[fact], end[fact], interval.reshape(-1)[fact].astype(np.int32)
    starts, ends = (np.ascontiguousarray(times) for times in distinct)
    return read_only_tuple(FactEdges(*columns, *times, starts, ends))


def fact_edges_without(edges: FactEdges, new_ids: Ids, graph: TemporalGraph) -> FactEdges:
    """Return the edges of a graph without removed facts, whose new id is -1; intervals stay."""
    left = new_ids[edges.fact] >= 0
    times = edges.start[left], edges.end[left], edges.interval[left]
    return read_only_tuple(FactEdges(*_edge_columns(graph), *times, edges.starts, edges.ends))


def _edge_columns(graph: TemporalGraph) -> tuple[Indices, Ids, Ids, Ids]:
    index = graph.index(("train",))
    return index.offsets, index.relation, index.target, index.fact


def listed_candidates(queries: QueryTable, offsets: Indices, candidate: Ids) -> ListedCandidates:
    """Return queries and their candidates as kernels read them."""
    start, end = (np.clip(times, -FAR, FAR) for times in (queries.start, queries.end))
    return ListedCandidates(
        queries.subject, queries.directed_relation, start, end, queries.fact, offsets, candidate
    )


@dataclass(frozen=True, slots=True)
class HistoryFact:
    """A fact of a candidate, with its features."""

    kind: int  # index in `HISTORY_KINDS`
    relation: int  # directed relation, read from the candidate
    edge: int  # index of the fact among the edges
    features: tuple[int, ...]  # ids of its features


class CandidateHistory:
    """Features of the facts of candidates, by their times against the query's.

    Of each relation of a candidate, the fact nearest to the query's interval counts, facts with
    the query's subject apart from others. Its features are Allen's relation and three signed
    distances. A group is a kind of facts and a relation; it has a weight for each feature.
    """

    def __init__(
        self, edges: FactEdges, n_directed: int, bounds: Indices, cache_size: int = _CACHE_SIZE
    ) -> None:
        self._edges = edges
        self._n_directed = n_directed
        self._cache_size = cache_size
        self.bounds = bounds
        small = np.arange(min(int(bounds[-1]) + 1, _TABLE_SIZE))
        self._bins = kernels.DistanceBins(bounds, np.searchsorted(bounds, small, side="right"))

    @property
    def n_groups(self) -> int:
        """Count of groups: kinds of facts times directed relations."""
        return len(HISTORY_KINDS) * self._n_directed

    @property
    def n_features(self) -> int:
        """Count of features in each group."""
        return n_history_features(len(self.bounds))

    def list_features(self, listed: ListedCandidates) -> tuple[Indices, Ids]:
        """Return offsets for each candidate, and its features as group · n_features + feature."""
        return kernels.list_history_features(self._edges, listed, self._bins, self._n_directed)

    def nearest_facts(self, listed: ListedCandidates) -> list[HistoryFact]:
        """Return the facts of a single candidate of a single query that have features."""
        _, ids = self.list_features(listed)
        features: dict[int, list[int]] = {}
        for feature in ids.tolist():
            features.setdefault(feature // self.n_features, []).append(feature % self.n_features)
        edges = self._edges
        entity = int(listed.candidate[0])
        edge = np.arange(edges.offsets[entity], edges.offsets[entity + 1])
        edge = edge[edges.fact[edge] != listed.fact[0]]
        start, end = edges.start[edge], edges.end[edge]
        n_directed = self._n_directed
        group = edges.relation[edge] + n_directed * (edges.target[edge] == listed.subject[0])
        gap = np.maximum(np.maximum(listed.start[0] - end, start - listed.end[0]), 0)
        order = np.lexsort((edge, np.abs(start - listed.start[0]), gap, group))
        groups, first = np.unique(group[order], return_index=True)
        facts = []
        for key, nearest in zip(groups.tolist(), edge[order[first]].tolist(), strict=True):
            kind, relation = divmod(key, n_directed)
            facts.append(HistoryFact(kind, relation, nearest, tuple(features[key])))
        return facts

    def add_scores(
        self, listed: ListedCandidates, rows: Ids, weight: Floats, kinds: Mask, score: Floats
    ) -> None:
        """Add the weights of features to the scores of listed candidates, in place.

        `rows` holds the row of weights for each directed relation and group, -1 for none; `kinds`
        is a mask of the `HISTORY_KINDS` to add.
        """
        kernels.add_history_scores(
            self._edges, listed, self._bins, self._n_directed, rows, weight, kinds, score
        )

    def add_scores_to_all(
        self, listed: ListedCandidates, rows: Ids, weight: Floats, score: Floats
    ) -> None:
        """Add the weights of features to the scores of all entities, a row for each query."""
        order = np.lexsort((listed.directed_relation, listed.end, listed.start))
        new = (np.diff(listed.start[order]) != 0) | (np.diff(listed.end[order]) != 0)
        for queries in np.split(order, np.flatnonzero(new) + 1) if len(order) else ():
            facts = self._nearest_to(int(listed.start[queries[0]]), int(listed.end[queries[0]]))
            kernels.add_history_scores_of_all(
                self._edges, self._groups, facts, listed, queries, self._bins, self._n_directed,
                rows, weight, score,
            )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        # The cache stays in its process.
        return {name: value for name, value in vars(self).items() if name != "_nearest_to"}

    def prepare(self) -> None:
        """Build what `add_scores_to_all` needs, before several threads need it at once."""
        self._groups  # noqa: B018

    @cached_property
    def _groups(self) -> FactGroups:
        """The edges by entity and relation, and by relation and interval."""
        edges = self._edges
        source = np.repeat(np.arange(len(edges.offsets) - 1), np.diff(edges.offsets))
        new = np.ones(len(source) + 1, np.bool_)
        new[1:-1] = (np.diff(source) != 0) | (np.diff(edges.relation) != 0)
        offsets = np.flatnonzero(new)
        n_intervals = max(len(edges.starts), 1)
        key = edges.relation.astype(np.int64) * n_intervals + edges.interval
        pairs, pair = np.unique(key, return_inverse=True)
        relation, interval = np.divmod(pairs, n_intervals)
        of_entity = np.searchsorted(offsets, edges.offsets)
        groups = FactGroups(of_entity, offsets, pair.astype(np.int32), relation, interval)
        return read_only_tuple(groups)

    @cached_property
    def _nearest_to(self) -> Callable[[int, int], NearestFacts]:
        """Function that finds the facts nearest to an interval, with a cache."""
        n_values = len(self._groups.edge_offsets) + _VALUES_PER_INTERVAL * len(self._edges.starts)

        @lru_cache(1 + self._cache_size // n_values)
        def find(start: int, end: int) -> NearestFacts:
            return kernels.nearest_facts(self._edges, self._groups, start, end, self._bins)

        return find

    def describe(self, feature: int, unit: str) -> str:
        """Return what a feature says of a fact and the query, in words."""
        if feature < N_ALLEN:
            return f"{tuple(Allen)[feature].value} the query's time"
        if feature == N_ALLEN:
            return "at a time that is not known"
        of_fact, of_query, distance = self._distance(feature, unit)
        return f"its {of_fact} {distance or 'at'} the query's {of_query}"

    def _distance(self, feature: int, unit: str) -> tuple[str, str, str]:
        """Return which ends of fact and query are compared, and their distance, "" if none."""
        n_bounds = len(self.bounds)
        which, signed_bin = divmod(feature - N_ALLEN - 1, 2 * n_bounds + 1)
        steps = abs(signed_bin - n_bounds)
        if not steps:
            return *_DISTANCES[which], ""
        low = int(self.bounds[steps - 1])
        high = int(self.bounds[steps]) - 1 if steps < n_bounds else None
        length = f"{low}+" if high is None else f"{low}" if low == high else f"{low}-{high}"
        units = unit if length == "1" else f"{unit}s"
        side = "after" if signed_bin > n_bounds else "before"
        return *_DISTANCES[which], f"{length} {units} {side}"
