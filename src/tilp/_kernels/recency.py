"""Recency features of candidates before a query's time, and the weights that score them.

A feature says how long ago something last held, and how often: that the subject met the candidate
in one relation (the body of a rule), or in any; that the candidate answered the same relation; that
there was any fact about it at all. Two features reach candidates that the subject never met. Those
it shares partners with (two atoms): over the last partners of the subject, the latest first, and
the last partners of each. And those that such entities answered the relation with (three atoms).
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import longer, lower_bound
from tilp._kernels.jit import bare_kernel, kernel
from tilp._kernels.types import Array, ByAnswer, ByEntityRelation, ByPair, ByTime

_NEGLIGIBLE = 1e-5  # a slope this small moves no weight
PARTNERS = 20  # latest ones of an entity that paths go through
ANSWERS = 5  # latest ones of an entity that shares partners with the subject
SCANNED = 200  # latest edges of an entity that partners are looked for in
RANKED = 20  # candidates whose rank by a feature is told apart
_NEVER = 1 << 62
_FEW_PAIRS = 4000  # of relation and entity met, to go through all of, those of later facts too


class Evidence(NamedTuple):
    """The edges that features are read from, in four orders; only earlier ones than the query."""

    pairs: ByPair
    answers: ByAnswer
    entities: ByTime
    relations: ByEntityRelation


class WeightBlocks(NamedTuple):
    """Where the weights of each kind begin.

    Features have weights by class of recency, of counts or of strength. `body_*`: bodies of another
    relation, then of the query's own; `rule_*`: a level of each rule, and by recency; `pair_*`: any
    relation between subject and candidate: how many, the recency by the number of facts, and by
    the recency of the query's own relation; `answer_recency` and `entity_recency`: candidates that
    the subject never met, then those that it met; `answer_count`, `met_shared` and `met_similar`:
    answers, shared partners and answers of similar entities, of candidates that it met; `unmet`:
    the three together, of those that it never met; `*_rank`: rank of these by each of the two.
    """

    body_recency: int
    body_count: int
    rule_level: int
    rule_recency: int
    pair_count: int
    pair_history: int
    pair_latest: int
    answer_recency: int
    answer_count: int
    entity_recency: int
    met_shared: int
    met_similar: int
    unmet: int
    shared_rank: int
    similar_rank: int
    end: int


class WeightTable(NamedTuple):
    """Which features have which weights."""

    rule_offsets: Array  # where the rules of each relation begin
    body: Array  # of each rule; bodies without a rule share the index len(body) + relation
    gaps: Array  # highest value of all classes of recency but the last
    recency_of: Array  # class of each short gap, by lookup
    counts: Array  # highest value of all classes of counts but the last
    shared: Array  # likewise of the strength of shared partners
    similar: Array  # likewise of the answers of similar entities
    blocks: WeightBlocks
    listed: int  # answers of a relation that are candidates: all, or else those of the latest facts
    met: int  # likewise of facts of the subject, all or else the latest


class Strengths(NamedTuple):
    """Sums by entity for one query."""

    stamp: Array  # of each entity; its sum is valid if this is the query
    total: Array
    listed: Array  # entities with a sum


class QueryFeatures(NamedTuple):
    """Space for the features of one query."""

    stamp: Array  # of each entity; its index is valid if this is the query
    index_of: Array  # of each entity among the candidates
    candidate: Array  # first those that the subject met
    latest: Array  # of each candidate: time since any fact with the subject
    latest_same: Array  # likewise of the query's relation
    n_relations: Array
    n_facts: Array
    answer_class: Array  # class of counts of answers plus 1; 0: none
    rule_of: Array
    of: Array  # candidate of each feature
    weight: Array  # index of the weight of each feature
    partner: Array  # of each entity; the query it is a partner of the subject in
    through: Array  # of each entity; the partner it was last reached through
    entity_time: Array  # of each entity; its recency holds at this time of a query
    entity_recency: Array
    answer_time: Array  # of each run of answers, likewise; recency -1: not yet
    answer_recency: Array
    answer_count: Array
    shared: Strengths
    similar: Strengths
    top: Array  # highest sums of candidates that the subject never met
    share: Array  # of each candidate: its probability, and before that its score
    slope: Array
    answer_of: Array  # of each entity; the query it is an answer of


@kernel
def _make_strengths(n: int) -> Strengths:
    return Strengths(np.full(n, -1, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int32))


@kernel
def _make_features(evidence: Evidence, table: WeightTable) -> QueryFeatures:
    n = len(evidence.pairs.offsets) - 1
    n_directed = len(table.rule_offsets) - 1
    n_bodies = np.max(np.diff(evidence.pairs.offsets))
    n_answers = np.max(np.diff(evidence.answers.offsets))
    n_runs = len(evidence.answers.target)
    size = 4 * n_bodies + 9 * n + 2 * n_answers
    return QueryFeatures(
        np.full(n, -1, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int32),
        np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64),
        np.full(n_directed, -1, dtype=np.int64), np.empty(size, dtype=np.int32),
        np.empty(size, dtype=np.int64), np.full(n, -1, dtype=np.int64),
        np.full(n, -1, dtype=np.int64), np.full(n, _NEVER, dtype=np.int64),
        np.empty(n, dtype=np.int8), np.full(n_runs, _NEVER, dtype=np.int64),
        np.empty(n_runs, dtype=np.int8), np.empty(n_runs, dtype=np.int8), _make_strengths(n),
        _make_strengths(n), np.empty(RANKED), np.empty(n), np.empty(n),
        np.full(n, -1, dtype=np.int64),
    )  # fmt: skip


@bare_kernel
def _gather_features(
    evidence: Evidence, table: WeightTable, features: QueryFeatures, subject: int, relation: int,
    time: int, stamp: int,
) -> tuple[int, int]:  # fmt: skip
    """Gather a query's candidates and features before its time; return their numbers."""
    for rule in range(table.rule_offsets[relation], table.rule_offsets[relation + 1]):
        features.rule_of[table.body[rule]] = rule
    n_met, size = _gather_met(evidence, table, features, subject, relation, time, stamp)
    for rule in range(table.rule_offsets[relation], table.rule_offsets[relation + 1]):
        features.rule_of[table.body[rule]] = -1
    n, size = _gather_answers(
        evidence.answers, table, features, subject, relation, time, stamp, n_met, n_met, size, False
    )
    entities, blocks = evidence.entities, table.blocks
    n_shared = _share_partners(entities, table, features, subject, time, stamp)
    n_similar = _follow_similar(
        evidence.relations, features, n_shared, subject, relation, time, stamp
    )
    n, size = _add_strengths(
        features, features.shared, n_shared, table.shared, blocks.met_shared, stamp, n_met, n, size
    )
    n, size = _add_strengths(
        features, features.similar, n_similar, table.similar, blocks.met_similar, stamp, n_met, n,
        size,
    )  # fmt: skip
    _, size = _gather_answers(
        evidence.answers, table, features, subject, relation, time, stamp, n_met, n, size, True
    )
    size = _add_ranks(features, features.shared, table, blocks.shared_rank, stamp, n_met, n, size)
    size = _add_ranks(features, features.similar, table, blocks.similar_rank, stamp, n_met, n, size)
    n_recencies, n_counts = len(table.gaps) + 1, len(table.counts) + 1
    for index in range(n):
        entity = features.candidate[index]
        if features.entity_time[entity] != time:  # most queries have the time of the one before
            low = entities.offsets[entity]
            high = lower_bound(entities.time, low, entities.offsets[entity + 1], time)
            features.entity_time[entity] = time
            features.entity_recency[entity] = _recency(table, time - entities.time[high - 1])
        recency = features.entity_recency[entity]
        met = n_recencies if index < n_met else 0
        size = _add_feature(features, size, index, blocks.entity_recency + met + recency)
        if index >= n_met:
            joint = _strength_class(features.shared, table.shared, entity, stamp)
            joint = joint * (len(table.similar) + 2) + _strength_class(
                features.similar, table.similar, entity, stamp
            )
            joint = joint * (n_counts + 1) + features.answer_class[index]
            size = _add_feature(features, size, index, blocks.unmet + joint)
    return n, size


@bare_kernel
def _share_partners(
    entities: ByTime, table: WeightTable, features: QueryFeatures, subject: int, time: int,
    stamp: int,
) -> int:  # fmt: skip
    """Sum up, for each entity, how closely it shares partners with the subject."""
    shared, n = features.shared, 0
    low = entities.offsets[subject]
    high = lower_bound(entities.time, low, entities.offsets[subject + 1], time)
    n_partners = 0
    for edge in range(high - 1, max(low, high - SCANNED) - 1, -1):
        partner = entities.target[edge]
        if features.partner[partner] == stamp or partner == subject:
            continue
        features.partner[partner] = stamp
        n_partners += 1
        path = stamp * PARTNERS + n_partners
        first = entities.offsets[partner]
        last = lower_bound(entities.time, first, entities.offsets[partner + 1], time)
        near = 2.0 / (1.0 + _recency(table, time - entities.time[edge]))
        near /= np.log(2.0 + last - first)
        rank = 0
        for other in range(last - 1, max(first, last - SCANNED) - 1, -1):
            entity = entities.target[other]
            if entity == subject or features.through[entity] == path:
                continue
            features.through[entity] = path
            rank += 1
            n = _add_strength(shared, entity, 2.0 * near / (1.0 + np.sqrt(rank)), stamp, n)
            if rank == PARTNERS:
                break
        if n_partners == PARTNERS:
            break
    return n


@bare_kernel
def _follow_similar(
    edges: ByEntityRelation, features: QueryFeatures, n_shared: int, subject: int, relation: int,
    time: int, stamp: int,
) -> int:  # fmt: skip
    """Sum up, for each entity, how often those that share partners had it as their answer."""
    shared, n = features.shared, 0
    for item in range(n_shared):
        similar = shared.listed[item]
        last = edges.offsets[similar + 1]
        run = lower_bound(edges.relation, edges.offsets[similar], last, relation)
        if run == last or edges.relation[run] != relation:
            continue
        low = edges.run_offsets[run]
        high = lower_bound(edges.time, low, edges.run_offsets[run + 1], time)
        for edge in range(high - 1, max(low, high - ANSWERS) - 1, -1):
            entity = edges.target[edge]
            if entity != subject:
                amount = shared.total[similar] / (high - edge)
                n = _add_strength(features.similar, entity, amount, stamp, n)
    return n


@bare_kernel
def _add_strength(strengths: Strengths, entity: int, amount: float, stamp: int, n: int) -> int:
    if strengths.stamp[entity] != stamp:
        strengths.stamp[entity], strengths.total[entity] = stamp, 0.0
        strengths.listed[n] = entity
        n += 1
    strengths.total[entity] += amount
    return n


@bare_kernel
def _strength_class(strengths: Strengths, highest: Array, entity: int, stamp: int) -> int:
    """Return the class of an entity's sum plus 1; 0 if it has none."""
    if strengths.stamp[entity] != stamp:
        return 0
    return 1 + _class_of(highest, strengths.total[entity])


@bare_kernel
def _add_strengths(
    features: QueryFeatures, strengths: Strengths, n_listed: int, highest: Array, block: int,
    stamp: int, n_met: int, n: int, size: int,
) -> tuple[int, int]:  # fmt: skip
    """Add the entities with a sum as candidates, and the feature of those that were met."""
    for item in range(n_listed):
        entity = strengths.listed[item]
        if features.stamp[entity] != stamp:
            n = _add_candidate(features, n, entity, stamp)
        index = features.index_of[entity]
        if index < n_met:
            weight = block + _class_of(highest, strengths.total[entity])
            size = _add_feature(features, size, index, weight)
    return n, size


@bare_kernel
def _add_ranks(
    features: QueryFeatures, strengths: Strengths, table: WeightTable, block: int, stamp: int,
    n_met: int, n: int, size: int,
) -> int:  # fmt: skip
    """Add the rank by sum of candidates that the subject never met; equal sums rank alike."""
    top, n_top = features.top, 0
    for index in range(n_met, n):
        entity = features.candidate[index]
        if strengths.stamp[entity] != stamp:
            continue
        total, free = strengths.total[entity], n_top
        if n_top == RANKED:
            if total <= top[RANKED - 1]:
                continue
            free = RANKED - 1
        while free > 0 and top[free - 1] < total:
            top[free] = top[free - 1]
            free -= 1
        top[free] = total
        n_top = min(RANKED, n_top + 1)
    for index in range(n_met, n):
        entity = features.candidate[index]
        if strengths.stamp[entity] == stamp:
            better = 0
            while better < n_top and top[better] > strengths.total[entity]:
                better += 1
            weight = block + _class_of(table.counts, better + 1)
            size = _add_feature(features, size, index, weight)
    return size


@bare_kernel
def _sum_weights(features: QueryFeatures, n: int, size: int, weights: Array, scores: Array) -> None:
    for index in range(n):
        scores[index] = 0.0
    for item in range(size):
        scores[features.of[item]] += weights[features.weight[item]]


@bare_kernel
def _gather_met(
    evidence: Evidence, table: WeightTable, features: QueryFeatures, subject: int, relation: int,
    time: int, stamp: int,
) -> tuple[int, int]:  # fmt: skip
    """Gather the candidates that the subject met: bodies of rules, and any relation to them.

    If its facts are too many, those of the latest facts.
    """
    n_recencies, n_counts = len(table.gaps) + 1, len(table.counts) + 1
    blocks, pairs, entities = table.blocks, evidence.pairs, evidence.entities
    begin, end = pairs.offsets[subject], pairs.offsets[subject + 1]
    low = entities.offsets[subject]
    high = lower_bound(entities.time, low, entities.offsets[subject + 1], time)
    # The same candidates: in order of pairs if these are few, else of facts, the latest first.
    by_pair = high - low <= table.met and end - begin <= _FEW_PAIRS
    n = size = 0
    for item in range(end - begin if by_pair else min(high - low, table.met)):
        run = begin + item
        if not by_pair:
            entity = entities.target[high - 1 - item]
            if features.stamp[entity] == stamp:
                continue
            run = lower_bound(pairs.target, begin, end, entity)
        entity = pairs.target[run]
        while run < end and pairs.target[run] == entity:
            n, size = _add_met(pairs, table, features, run, relation, time, stamp, n, size)
            if by_pair:
                break
            run += 1
    for index in range(n):
        count = _class_of(table.counts, features.n_relations[index])
        size = _add_feature(features, size, index, blocks.pair_count + count)
        recency = _recency(table, features.latest[index])
        count = _class_of(table.counts, features.n_facts[index])
        weight = blocks.pair_history + recency * n_counts + count
        size = _add_feature(features, size, index, weight)
        same = n_recencies  # never
        if features.latest_same[index] != _NEVER:
            same = _recency(table, features.latest_same[index])
        weight = blocks.pair_latest + recency * (n_recencies + 1) + same
        size = _add_feature(features, size, index, weight)
    return n, size


@bare_kernel
def _add_met(
    pairs: ByPair, table: WeightTable, features: QueryFeatures, run: int, relation: int, time: int,
    stamp: int, n: int, size: int,
) -> tuple[int, int]:  # fmt: skip
    """Add the features of one body between the subject and a candidate, if it held before."""
    n_recencies, n_counts = len(table.gaps) + 1, len(table.counts) + 1
    blocks, low = table.blocks, pairs.run_offsets[run]
    if pairs.time[low] >= time:
        return n, size
    high = lower_bound(pairs.time, low, pairs.run_offsets[run + 1], time)
    entity, body, gap = pairs.target[run], pairs.relation[run], time - pairs.time[high - 1]
    if features.stamp[entity] != stamp:
        n = _add_candidate(features, n, entity, stamp)
        features.latest[n - 1] = features.latest_same[n - 1] = _NEVER
        features.n_relations[n - 1] = features.n_facts[n - 1] = 0
    index = features.index_of[entity]
    features.latest[index] = min(features.latest[index], gap)
    features.n_relations[index] += 1
    features.n_facts[index] += high - low
    recency, count = _recency(table, gap), _class_of(table.counts, high - low)
    rule = features.rule_of[body]
    if rule < 0:
        rule = len(table.body) + relation
    same = 0
    if body == relation:
        same, features.latest_same[index] = 1, gap
    first = blocks.body_recency + same * n_recencies
    size = _add_feature(features, size, index, first + recency)
    size = _add_feature(features, size, index, blocks.body_count + same * n_counts + count)
    size = _add_feature(features, size, index, blocks.rule_level + rule)
    first = blocks.rule_recency + rule * n_recencies
    return n, _add_feature(features, size, index, first + recency)


@bare_kernel
def _gather_answers(
    answers: ByAnswer, table: WeightTable, features: QueryFeatures, subject: int, relation: int,
    time: int, stamp: int, n_met: int, n: int, size: int, late: bool,
) -> tuple[int, int]:  # fmt: skip
    """Gather the candidates that answered the relation before, for any subject.

    If they are too many, those of the latest facts. Then other candidates are looked up: `late`.
    """
    n_recencies = len(table.gaps) + 1
    blocks = table.blocks
    begin, end = answers.offsets[relation], answers.offsets[relation + 1]
    every = lower_bound(answers.first, begin, end, time) - begin <= table.listed
    low, high = answers.run_offsets[begin], answers.run_offsets[end]
    high = lower_bound(answers.latest, low, high, time)
    n_items = end - begin if every else min(high - low, table.listed)
    if late:
        n_items = 0 if every else n
    for item in range(n_items):
        run = begin + item
        if late:
            if features.answer_class[item]:
                continue
            entity = features.candidate[item]
            run = lower_bound(answers.target, begin, end, entity)
            if run == end or answers.target[run] != entity:
                continue
        elif not every:
            run = answers.latest_run[high - 1 - item]
        if features.answer_time[run] != time:
            low = answers.run_offsets[run]
            last = lower_bound(answers.time, low, answers.run_offsets[run + 1], time)
            recency = _recency(table, time - answers.time[last - 1]) if last > low else -1
            features.answer_time[run], features.answer_recency[run] = time, recency
            features.answer_count[run] = _class_of(table.counts, last - low)
        recency, count = features.answer_recency[run], features.answer_count[run]
        if recency < 0:
            continue
        entity = answers.target[run]
        if features.stamp[entity] != stamp:
            if entity == subject:
                continue
            n = _add_candidate(features, n, entity, stamp)
        index = features.index_of[entity]
        if features.answer_class[index]:
            continue
        features.answer_class[index] = count + 1
        met = 1 if index < n_met else 0
        first = blocks.answer_recency + met * n_recencies
        size = _add_feature(features, size, index, first + recency)
        if met:
            size = _add_feature(features, size, index, blocks.answer_count + count)
    return n, size


@bare_kernel
def _add_candidate(features: QueryFeatures, n: int, entity: int, stamp: int) -> int:
    features.stamp[entity] = stamp
    features.index_of[entity] = n
    features.candidate[n] = entity
    features.answer_class[n] = 0
    return n + 1


@bare_kernel
def _add_feature(features: QueryFeatures, size: int, index: int, weight: int) -> int:
    features.of[size], features.weight[size] = index, weight
    return size + 1


@bare_kernel
def _class_of(highest: Array, value: float) -> int:
    """Return the first class whose highest value is no less; the last class has none."""
    index = 0
    while index < len(highest) and value > highest[index]:
        index += 1
    return index


@bare_kernel
def _recency(table: WeightTable, gap: int) -> int:
    """Return the class of recency of a gap."""
    return table.recency_of[gap] if gap < len(table.recency_of) else _class_of(table.gaps, gap)


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
) -> None:  # fmt: skip
    """Raise the likelihood of the answers of queries, one query after the other.

    The likelihood of an answer is its share of exp(score) among its query's candidates, without
    other answers of the query. The gradient of its logarithm moves each weight by rate / √(1 + sum
    of squared slopes). `body_support` and `support` get, for each rule and class of recency, the
    candidates with its body, and those of them that are the answer.
    """
    features = _make_features(evidence, table)
    for query in range(len(subject)):
        n, size = _gather_features(
            evidence, table, features, subject[query], relation[query], time[query], query
        )
        answers = answer[offsets[query] : offsets[query + 1]]
        _learn(
            table, features, n, size, query, answers, rate, weights, squares, body_support, support
        )


@bare_kernel
def _learn(
    table: WeightTable, features: QueryFeatures, n: int, size: int, query: int, answers: Array,
    rate: Array, weights: Array, squares: Array, body_support: Array, support: Array,
) -> None:  # fmt: skip
    """Count the rules of one query and move the weights; see `fit_weights`."""
    share, slope, answer_of = features.share, features.slope, features.answer_of
    first_rule, last_rule = table.blocks.rule_recency, table.blocks.pair_count
    for entity in answers:
        answer_of[entity] = query
    for item in range(size):
        weight = features.weight[item]
        if first_rule <= weight < last_rule:
            body_support[weight - first_rule] += 1
            answered = answer_of[features.candidate[features.of[item]]] == query
            support[weight - first_rule] += answered
    _sum_weights(features, n, size, weights, share)
    highest = others = inverse_total = 0.0
    for index in range(n):
        highest = share[index] if index == 0 else max(highest, share[index])
    for index in range(n):
        slope[index] = 0.0
        share[index] = np.exp(share[index] - highest)
        if answer_of[features.candidate[index]] != query:
            others += share[index]
    for entity in answers:
        if features.stamp[entity] != query:
            continue
        index = features.index_of[entity]
        whole = others + share[index]
        slope[index] = others / whole
        inverse_total += 1.0 / whole
    if inverse_total == 0.0:
        return
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


@kernel
def forecast_queries(
    evidence: Evidence, table: WeightTable, weights: Array, subject: Array, relation: Array,
    time: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return offsets, candidates and their sums of weights for each query."""
    features = _make_features(evidence, table)
    offsets = np.zeros(len(subject) + 1, dtype=np.int64)
    candidates = np.empty(1024, dtype=np.int32)
    scores = np.empty(1024)
    size = 0
    for query in range(len(subject)):
        n, n_features = _gather_features(
            evidence, table, features, subject[query], relation[query], time[query], query
        )
        _sum_weights(features, n, n_features, weights, features.share)
        candidates, scores = longer(candidates, size + n), longer(scores, size + n)
        for index in range(n):
            candidates[size + index] = features.candidate[index]
            scores[size + index] = features.share[index]
        size += n
        offsets[query + 1] = size
    return offsets, candidates[:size].copy(), scores[:size].copy()


@kernel
def list_features(
    evidence: Evidence, table: WeightTable, subject: int, relation: int, time: int
) -> tuple[Array, Array]:
    """Return the candidate of each feature of one query, and the index of its weight.

    The four features of a body follow each other.
    """
    features = _make_features(evidence, table)
    _, size = _gather_features(evidence, table, features, subject, relation, time, 0)
    return features.candidate[features.of[:size]], features.weight[:size].copy()
