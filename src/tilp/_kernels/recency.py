"""Recency features of candidates before a query's time, and the weights that score them.

A feature says how long ago something last held, and how often: that the subject met the candidate
in one relation (the body of a rule), or in any; that the candidate answered the same relation; that
there was any fact about it at all.
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import longer, lower_bound
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, ByAnswer, ByEntityRelation, ByPair, ByTime

_NEGLIGIBLE = 1e-5  # a slope this small moves no weight


class Evidence(NamedTuple):
    """The edges that features are read from, in three orders; only earlier ones than the query."""

    pairs: ByPair
    answers: ByAnswer
    entities: ByTime


class WeightBlocks(NamedTuple):
    """Where the weights of each kind begin.

    Each feature has one weight by its class of recency and one by its class of counts. `body_*`:
    bodies of another relation, then of the query's own; `rule_*`: a level of each rule, and by
    recency; `pair_*`: any relation between subject and candidate, counting relations; `answer_*`
    and `entity_recency`: candidates that the subject never met, then those that it met.
    """

    body_recency: int
    body_count: int
    rule_level: int
    rule_recency: int
    pair_recency: int
    pair_count: int
    answer_recency: int
    answer_count: int
    entity_recency: int
    end: int


class WeightTable(NamedTuple):
    """Which features have which weights."""

    rule_offsets: Array  # where the rules of each relation begin
    body: Array  # of each rule; bodies without a rule share the index len(body) + relation
    gaps: Array  # highest value of all classes of recency but the last
    counts: Array  # likewise of counts
    blocks: WeightBlocks


class QueryFeatures(NamedTuple):
    """Space for the features of one query."""

    stamp: Array  # of each entity; its index is valid if this is the query
    index_of: Array  # of each entity among the candidates
    candidate: Array  # first those that the subject met
    latest: Array
    n_relations: Array
    rule_of: Array
    of: Array  # candidate of each feature
    weight: Array  # index of the weight of each feature


@kernel
def _make_features(evidence: Evidence, table: WeightTable) -> QueryFeatures:
    n = len(evidence.pairs.offsets) - 1
    n_directed = len(table.rule_offsets) - 1
    n_bodies = np.max(np.diff(evidence.pairs.offsets))
    n_answers = np.max(np.diff(evidence.answers.offsets))
    size = 4 * n_bodies + 3 * n + 2 * n_answers
    return QueryFeatures(
        np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64),
        np.full(n_directed, -1, dtype=np.int64), np.empty(size, dtype=np.int32),
        np.empty(size, dtype=np.int64),
    )  # fmt: skip


@kernel
def _gather_features(
    evidence: Evidence, table: WeightTable, features: QueryFeatures, subject: int, relation: int,
    time: int, stamp: int,
) -> tuple[int, int]:  # fmt: skip
    """Gather a query's candidates and features before its time; return their numbers."""
    for rule in range(table.rule_offsets[relation], table.rule_offsets[relation + 1]):
        features.rule_of[table.body[rule]] = rule
    n_met, size = _gather_met(evidence.pairs, table, features, subject, relation, time, stamp)
    for rule in range(table.rule_offsets[relation], table.rule_offsets[relation + 1]):
        features.rule_of[table.body[rule]] = -1
    n, size = _gather_answers(
        evidence.answers, table, features, subject, relation, time, stamp, n_met, size
    )
    entities, blocks = evidence.entities, table.blocks
    n_recencies = len(table.gaps) + 1
    for index in range(n):
        entity = features.candidate[index]
        low = entities.offsets[entity]
        high = lower_bound(entities.time, low, entities.offsets[entity + 1], time)
        recency = _class_of(table.gaps, time - entities.time[high - 1])
        met = n_recencies if index < n_met else 0
        size = _add_feature(features, size, index, blocks.entity_recency + met + recency)
    return n, size


@kernel
def _sum_weights(features: QueryFeatures, n: int, size: int, weights: Array, scores: Array) -> None:
    scores[:n] = 0.0
    for item in range(size):
        scores[features.of[item]] += weights[features.weight[item]]


@kernel
def _gather_met(
    pairs: ByPair, table: WeightTable, features: QueryFeatures, subject: int, relation: int,
    time: int, stamp: int,
) -> tuple[int, int]:  # fmt: skip
    """Gather the candidates that the subject met: bodies of rules, and any relation to them."""
    n_recencies, n_counts = len(table.gaps) + 1, len(table.counts) + 1
    blocks = table.blocks
    n = size = 0
    for run in range(pairs.offsets[subject], pairs.offsets[subject + 1]):
        low = pairs.run_offsets[run]
        high = lower_bound(pairs.time, low, pairs.run_offsets[run + 1], time)
        if low == high:
            continue
        entity, body, gap = pairs.target[run], pairs.relation[run], time - pairs.time[high - 1]
        if features.stamp[entity] != stamp:
            n = _add_candidate(features, n, entity, stamp)
            features.latest[n - 1], features.n_relations[n - 1] = gap, 0
        index = features.index_of[entity]
        features.latest[index] = min(features.latest[index], gap)
        features.n_relations[index] += 1
        recency, count = _class_of(table.gaps, gap), _class_of(table.counts, high - low)
        rule = features.rule_of[body]
        if rule < 0:
            rule = len(table.body) + relation
        same = 1 if body == relation else 0
        first = blocks.body_recency + same * n_recencies
        size = _add_feature(features, size, index, first + recency)
        size = _add_feature(features, size, index, blocks.body_count + same * n_counts + count)
        size = _add_feature(features, size, index, blocks.rule_level + rule)
        first = blocks.rule_recency + rule * n_recencies
        size = _add_feature(features, size, index, first + recency)
    for index in range(n):
        recency = _class_of(table.gaps, features.latest[index])
        count = _class_of(table.counts, features.n_relations[index])
        size = _add_feature(features, size, index, blocks.pair_recency + recency)
        size = _add_feature(features, size, index, blocks.pair_count + count)
    return n, size


@kernel
def _gather_answers(
    answers: ByAnswer, table: WeightTable, features: QueryFeatures, subject: int, relation: int,
    time: int, stamp: int, n_met: int, size: int,
) -> tuple[int, int]:  # fmt: skip
    """Gather the candidates that answered the relation before, for any subject."""
    n_recencies, n_counts = len(table.gaps) + 1, len(table.counts) + 1
    blocks = table.blocks
    n = n_met
    for run in range(answers.offsets[relation], answers.offsets[relation + 1]):
        entity = answers.target[run]
        low = answers.run_offsets[run]
        high = lower_bound(answers.time, low, answers.run_offsets[run + 1], time)
        if low == high:
            continue
        if features.stamp[entity] != stamp:
            if entity == subject:
                continue
            n = _add_candidate(features, n, entity, stamp)
        index = features.index_of[entity]
        recency = _class_of(table.gaps, time - answers.time[high - 1])
        count = _class_of(table.counts, high - low)
        met = 1 if index < n_met else 0
        first = blocks.answer_recency + met * n_recencies
        size = _add_feature(features, size, index, first + recency)
        size = _add_feature(features, size, index, blocks.answer_count + met * n_counts + count)
    return n, size


@kernel
def _add_candidate(features: QueryFeatures, n: int, entity: int, stamp: int) -> int:
    features.stamp[entity] = stamp
    features.index_of[entity] = n
    features.candidate[n] = entity
    return n + 1


@kernel
def _add_feature(features: QueryFeatures, size: int, index: int, weight: int) -> int:
    features.of[size], features.weight[size] = index, weight
    return size + 1


@kernel
def _class_of(highest: Array, value: int) -> int:
    """Return the first class whose highest value is no less; the last class has none."""
    index = 0
    while index < len(highest) and value > highest[index]:
        index += 1
    return index


@kernel
def candidate_rules(edges: ByEntityRelation, n_directed: int) -> Array:
    """Return rules whose body may be known to a subject: relation · n_directed + body, ascending.

    These are the pairs of relations that an entity has, whether or not the head ever follows: a
    rule that was chosen because a fact supports it would look better in training than it is.
    """
    rules = np.empty(1024, dtype=np.int64)
    size = 0
    for entity in range(len(edges.offsets) - 1):
        relations = edges.relation[edges.offsets[entity] : edges.offsets[entity + 1]]
        for relation in relations:
            if size + len(relations) > len(rules):
                rules = np.unique(rules[:size])
                size = len(rules)
                rules = np.concatenate((rules, np.empty(size + 2 * n_directed, dtype=np.int64)))
            for body in relations:
                rules[size] = np.int64(relation) * n_directed + body
                size += 1
    return np.unique(rules[:size])


@kernel
def fit_weights(
    evidence: Evidence, table: WeightTable, subject: Array, relation: Array, time: Array,
    offsets: Array, answer: Array, rate: Array, weights: Array, squares: Array, body_support: Array,
    support: Array,
) -> tuple[float, int]:  # fmt: skip
    """Raise the likelihood of the answers of queries, one query after the other.

    The likelihood of an answer is its share of exp(score) among its query's candidates, without
    other answers of the query. The gradient of its logarithm moves each weight by rate / √(1 + sum
    of squared slopes). `body_support` and `support` get, for each rule and class of recency, the
    candidates with its body, and those of them that are the answer. Returns the log-likelihood
    before each step, and how many answers were among the candidates.
    """
    features = _make_features(evidence, table)
    n_recencies = len(table.gaps) + 1
    first_rule, last_rule = table.blocks.rule_recency, table.blocks.pair_recency
    n_entities = len(features.stamp)
    share = np.empty(n_entities)
    slope = np.empty(n_entities)
    answer_of = np.full(n_entities, -1, dtype=np.int64)
    total = 0.0
    n_reached = 0
    for query in range(len(subject)):
        n, size = _gather_features(
            evidence, table, features, subject[query], relation[query], time[query], query
        )
        for entity in answer[offsets[query] : offsets[query + 1]]:
            answer_of[entity] = query
        for item in range(size):
            weight = features.weight[item]
            if first_rule <= weight < last_rule:
                rule, recency = divmod(weight - first_rule, n_recencies)
                body_support[rule, recency] += 1
                support[rule, recency] += answer_of[features.candidate[features.of[item]]] == query
        _sum_weights(features, n, size, weights, share)
        highest = share[:n].max() if n else 0.0
        others = 0.0
        for index in range(n):
            share[index] = np.exp(share[index] - highest)
            if answer_of[features.candidate[index]] != query:
                others += share[index]
        inverse_total = 0.0
        slope[:n] = 0.0
        for entity in answer[offsets[query] : offsets[query + 1]]:
            if features.stamp[entity] != query:
                continue
            index = features.index_of[entity]
            whole = others + share[index]
            slope[index] = others / whole
            inverse_total += 1.0 / whole
            total += np.log(share[index] / whole)
            n_reached += 1
        if inverse_total == 0.0:
            continue
        for index in range(n):
            if answer_of[features.candidate[index]] != query:
                slope[index] = -share[index] * inverse_total
        for item in range(size):
            step = slope[features.of[item]]
            if abs(step) < _NEGLIGIBLE:
                continue
            weight = features.weight[item]
            squares[weight] += step * step
            weights[weight] += rate[weight] * step / np.sqrt(1.0 + squares[weight])
    return total, n_reached


@kernel
def forecast_queries(
    evidence: Evidence, table: WeightTable, weights: Array, subject: Array, relation: Array,
    time: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return offsets, candidates and their log-probabilities for each query."""
    features = _make_features(evidence, table)
    sums = np.empty(len(features.stamp))
    offsets = np.zeros(len(subject) + 1, dtype=np.int64)
    candidates = np.empty(1024, dtype=np.int32)
    scores = np.empty(1024)
    size = 0
    for query in range(len(subject)):
        n, n_features = _gather_features(
            evidence, table, features, subject[query], relation[query], time[query], query
        )
        _sum_weights(features, n, n_features, weights, sums)
        candidates, scores = longer(candidates, size + n), longer(scores, size + n)
        if n:
            highest = sums[:n].max()
            whole = highest + np.log(np.exp(sums[:n] - highest).sum())
            for index in range(n):
                candidates[size + index] = features.candidate[index]
                scores[size + index] = sums[index] - whole
        size += n
        offsets[query + 1] = size
    return offsets, candidates[:size].copy(), scores[:size].copy()
