"""Candidate history: features of the facts of candidates near the dates of queries.

A *group* is a kind of facts (other facts; facts with the query's subject) and a relation. Of each
group the fact nearest to the query is described by up to `MAX_FEATURES` features: Allen's relation
to the query, and three binned distances.
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import longer
from tilp._kernels.jit import kernel
from tilp._kernels.levels import end_as_of
from tilp._kernels.types import Array, ListedCandidates
from tilp.time import FAR
from tilp.time import allen_code as plain_allen_code

N_ALLEN = 13
MAX_FEATURES = 4
"""Of one fact."""

allen_code = kernel(plain_allen_code)


class FactEdges(NamedTuple):
    """Facts and their inverses by entity and relation, with their times, none past `FAR`.

    `interval` is the id of each edge's interval among the distinct `starts` and `ends`.
    """

    offsets: Array
    relation: Array
    target: Array
    fact: Array
    start: Array
    end: Array
    interval: Array
    starts: Array
    ends: Array


class DistanceBins(NamedTuple):
    """Lower bounds of the bins of absolute distances, and the bins of small distances."""

    bounds: Array
    of_small: Array


class IntervalFeatures(NamedTuple):
    """Features of the intervals of facts, computed once for each interval of queries.

    Those of an interval are valid where `valid_for` is the id of the query's interval.
    """

    valid_for: Array
    n_features: Array
    feature: Array


@kernel
def _make_features(edges: FactEdges) -> IntervalFeatures:
    n = len(edges.starts)
    return IntervalFeatures(
        np.full(n, -1, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty((n, MAX_FEATURES), dtype=np.int32),
    )


@kernel
def interval_id(listed: ListedCandidates, query: int, previous: int) -> int:
    """Return an id of a query's interval and evidence: the previous one if it has the same."""
    same = listed.start[query] == listed.start[previous]
    same &= listed.end[query] == listed.end[previous]
    return previous if same and listed.latest[query] == listed.latest[previous] else query


@kernel
def list_history_features(
    edges: FactEdges, listed: ListedCandidates, bins: DistanceBins, n_directed: int
) -> tuple[Array, Array]:
    """List the features of each candidate: offsets, and group · features of a group + feature."""
    width = N_ALLEN + 1 + 3 * (2 * len(bins.bounds) + 1)
    offsets = np.zeros(len(listed.candidate) + 1, dtype=np.int64)
    features = np.empty(4096, dtype=np.int32)
    group = np.empty(2 * n_directed, dtype=np.int32)
    nearest = np.empty(2 * n_directed, dtype=np.int64)
    described = _make_features(edges)
    size = query_interval = 0
    for query in range(len(listed.subject)):
        query_interval = interval_id(listed, query, query_interval)
        for row in range(listed.offsets[query], listed.offsets[query + 1]):
            entity = listed.candidate[row]
            n = _find_nearest(edges, listed, query, entity, n_directed, group, nearest)
            features = longer(features, size + MAX_FEATURES * n)
            for index in range(n):
                interval = _describe_edge(
                    edges, nearest[index], listed, query, bins, query_interval, described
                )
                for item in range(described.n_features[interval]):
                    features[size] = group[index] * width + described.feature[interval, item]
                    size += 1
            offsets[row + 1] = size
    return offsets, features[:size].copy()


@kernel
def add_history_scores(
    edges: FactEdges, listed: ListedCandidates, bins: DistanceBins, n_directed: int, row_of: Array,
    weight: Array, kinds: Array, score: Array,
) -> None:  # fmt: skip
    """Add the weights of its history features to the score of each listed candidate.

    `row_of` is the row of `weight` of each relation and group (-1: none); `kinds` masks the two
    kinds of facts that are added.
    """
    group = np.empty(2 * n_directed, dtype=np.int32)
    nearest = np.empty(2 * n_directed, dtype=np.int64)
    described = _make_features(edges)
    query_interval = 0
    for query in range(len(listed.subject)):
        query_interval = interval_id(listed, query, query_interval)
        rows = row_of[listed.directed_relation[query]]
        for row in range(listed.offsets[query], listed.offsets[query + 1]):
            score[row] += _history_score(
                edges, listed, query, listed.candidate[row], bins, n_directed, rows, weight, kinds,
                query_interval, group, nearest, described,
            )  # fmt: skip


@kernel
def _history_score(
    edges: FactEdges, listed: ListedCandidates, query: int, candidate: int, bins: DistanceBins,
    n_directed: int, rows: Array, weight: Array, kinds: Array, query_interval: int, group: Array,
    nearest: Array, described: IntervalFeatures,
) -> float:  # fmt: skip
    n = _find_nearest(edges, listed, query, candidate, n_directed, group, nearest)
    total = 0.0
    for index in range(n):
        row = rows[group[index]]
        if row >= 0 and kinds[group[index] // n_directed]:
            interval = _describe_edge(
                edges, nearest[index], listed, query, bins, query_interval, described
            )
            for item in range(described.n_features[interval]):
                total += weight[row, described.feature[interval, item]]
    return total


@kernel
def _find_nearest(
    edges: FactEdges, listed: ListedCandidates, query: int, entity: int, n_directed: int,
    group: Array, nearest: Array,
) -> int:  # fmt: skip
    """Write group and edge of each group's nearest fact, by gap, then start; return how many."""
    relation_of, target, fact = edges.relation, edges.target, edges.fact
    starts, ends = edges.start, edges.end
    subject, query_fact = listed.subject[query], listed.fact[query]
    start, end, latest = listed.start[query], listed.end[query], listed.latest[query]
    n = 0
    edge, stop = edges.offsets[entity], edges.offsets[entity + 1]
    while edge < stop:
        relation = relation_of[edge]
        other = between = -1
        other_gap = between_gap = other_start = between_start = 0
        while edge < stop and relation_of[edge] == relation:
            if fact[edge] != query_fact and starts[edge] <= latest:
                until = end_as_of(starts[edge], ends[edge], latest)
                gap = max(start - until, starts[edge] - end, 0)
                from_start = abs(starts[edge] - start)
                if target[edge] == subject:
                    if (
                        between < 0
                        or gap < between_gap
                        or (gap == between_gap and from_start < between_start)
                    ):
                        between, between_gap, between_start = edge, gap, from_start
                elif (
                    other < 0 or gap < other_gap or (gap == other_gap and from_start < other_start)
                ):
                    other, other_gap, other_start = edge, gap, from_start
            edge += 1
        if other >= 0:
            group[n] = relation
            nearest[n] = other
            n += 1
        if between >= 0:
            group[n] = n_directed + relation
            nearest[n] = between
            n += 1
    return n


@kernel
def _describe_edge(
    edges: FactEdges, edge: int, listed: ListedCandidates, query: int, bins: DistanceBins,
    query_interval: int, described: IntervalFeatures,
) -> int:  # fmt: skip
    """Describe an edge's interval against the query's, unless done, and return its id."""
    interval = edges.interval[edge]
    if described.valid_for[interval] != query_interval:
        described.valid_for[interval] = query_interval
        until = end_as_of(edges.start[edge], edges.end[edge], listed.latest[query])
        described.n_features[interval] = _describe(
            edges.start[edge], until, listed.start[query], listed.end[query], bins,
            described.feature[interval],
        )  # fmt: skip
    return interval


@kernel
def _is_unknown(start: int, end: int) -> bool:
    """Return whether an interval has no finite end."""
    return (start <= -FAR or start >= FAR) and (end <= -FAR or end >= FAR)


@kernel
def _describe(
    fact_start: int, fact_end: int, start: int, end: int, bins: DistanceBins, feature: Array
) -> int:
    """Write Allen's relation and distances, or that the time is not known; return how many.

    An open end is later than all others, and so in the outermost bin.
    """
    if _is_unknown(fact_start, fact_end) or _is_unknown(start, end):
        feature[0] = N_ALLEN
        return 1
    n_bins = 2 * len(bins.bounds) + 1
    feature[0] = allen_code(fact_start, fact_end, start, end)
    feature[1] = N_ALLEN + 1 + _signed_bin(fact_start - start, bins)
    feature[2] = N_ALLEN + 1 + n_bins + _signed_bin(fact_end - start, bins)
    feature[3] = N_ALLEN + 1 + 2 * n_bins + _signed_bin(fact_start - end, bins)
    return MAX_FEATURES


@kernel
def _signed_bin(distance: int, bins: DistanceBins) -> int:
    """Return the bin of a signed distance; 0 is in the middle one."""
    size = abs(distance)
    if size < len(bins.of_small):
        index = bins.of_small[size]
    else:
        index = np.searchsorted(bins.bounds, size, side="right")
    return len(bins.bounds) + index if distance >= 0 else len(bins.bounds) - index


class FactGroups(NamedTuple):
    """Edges of one entity and relation are a group, edges of one relation and interval a pair.

    `offsets` are those of the groups of each entity, `edge_offsets` of the edges of each group;
    `pair` is the pair of each edge; `relation` and `interval` are those of each pair.
    """

    offsets: Array
    edge_offsets: Array
    pair: Array
    relation: Array
    interval: Array


class NearestFacts(NamedTuple):
    """The pair of each group's nearest fact (-1: none), and the features of all intervals."""

    pair: Array
    described: IntervalFeatures


@kernel
def nearest_facts(
    edges: FactEdges, groups: FactGroups, start: int, end: int, latest: int, bins: DistanceBins
) -> NearestFacts:
    """Find each group's fact nearest to an interval, of any subject; describe all intervals.

    None of them starts after `latest`.
    """
    n = len(edges.starts)
    described = _make_features(edges)
    described.valid_for[:] = 0
    gap = np.empty(n, dtype=np.int64)
    from_start = np.empty(n, dtype=np.int64)
    for index in range(n):
        fact_start = edges.starts[index]
        fact_end = end_as_of(fact_start, edges.ends[index], latest)
        described.n_features[index] = _describe(
            fact_start, fact_end, start, end, bins, described.feature[index]
        )
        gap[index] = max(start - fact_end, fact_start - end, 0)
        from_start[index] = abs(fact_start - start)
    offsets, interval = groups.edge_offsets, edges.interval
    pair = np.full(len(offsets) - 1, -1, dtype=np.int32)
    for group in range(len(pair)):
        best = -1
        for edge in range(offsets[group], offsets[group + 1]):
            other = interval[edge]
            if edges.starts[other] <= latest and (
                best < 0
                or gap[other] < gap[best]
                or (gap[other] == gap[best] and from_start[other] < from_start[best])
            ):
                pair[group], best = groups.pair[edge], other
    return NearestFacts(pair, described)


@kernel
def add_history_scores_of_all(
    edges: FactEdges, groups: FactGroups, facts: NearestFacts, listed: ListedCandidates,
    queries: Array, bins: DistanceBins, n_directed: int, row_of: Array, weight: Array, score: Array,
) -> None:  # fmt: skip
    """Add the weights of its history features to the score of each entity, as `add_history_scores`.

    The scores of all entities are computed once for a relation, as if no fact were with the
    subject; then the few entities with such facts, and the ends of the query's own fact, are
    corrected. All `queries` have the interval of `facts`, and those of a relation stand together.
    `score` has a row for each query and a column for each entity.
    """
    n_entities = len(edges.offsets) - 1
    pair_score = np.empty(len(groups.relation))
    entity_score = np.empty(n_entities)
    seen_by = np.full(n_entities, -1, dtype=np.int64)
    group = np.empty(2 * n_directed, dtype=np.int32)
    nearest = np.empty(2 * n_directed, dtype=np.int64)
    kinds = np.ones(2, dtype=np.bool_)
    relation = -1
    for query in queries:
        rows = row_of[listed.directed_relation[query]]
        if listed.directed_relation[query] != relation:
            relation = listed.directed_relation[query]
            _score_pairs(groups, rows, weight, facts.described, pair_score)
            _sum_by_entity(groups.offsets, facts.pair, pair_score, entity_score)
        for entity in range(n_entities):
            score[query, entity] += entity_score[entity]
        subject = listed.subject[query]
        for edge in range(edges.offsets[subject] - 1, edges.offsets[subject + 1]):
            entity = subject if edge < edges.offsets[subject] else edges.target[edge]
            if seen_by[entity] != query:
                seen_by[entity] = query
                exact = _history_score(
                    edges, listed, query, entity, bins, n_directed, rows, weight, kinds, 0, group,
                    nearest, facts.described,
                )  # fmt: skip
                score[query, entity] += exact - entity_score[entity]


@kernel
def _score_pairs(
    groups: FactGroups, rows: Array, weight: Array, described: IntervalFeatures, pair_score: Array
) -> None:
    relation, interval = groups.relation, groups.interval
    n_features, feature = described.n_features, described.feature
    for pair in range(len(pair_score)):
        row = rows[relation[pair]]
        total = 0.0
        if row >= 0:
            for item in range(n_features[interval[pair]]):
                total += weight[row, feature[interval[pair], item]]
        pair_score[pair] = total


@kernel
def _sum_by_entity(offsets: Array, pair: Array, pair_score: Array, entity_score: Array) -> None:
    for entity in range(len(entity_score)):
        total = 0.0
        for group in range(offsets[entity], offsets[entity + 1]):
            if pair[group] >= 0:
                total += pair_score[pair[group]]
        entity_score[entity] = total
