"""Scores of candidates from the walks of rules, and the rules that reach each candidate.

Rows of walks are given as `row_offsets` of each query, and `rule`, `end` and `count` of each row;
the rows of one rule stand together.
"""

import numpy as np

from tilp._kernels.arrays import counting_order, longer, radix_sort
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

MIN_RATE = 0.01
"""Arriving rates below it are no evidence: a rule that leads everywhere says little of each end."""


@kernel
def sort_rows(records: Array, n_queries: int, n_rules: int) -> tuple[Array, Array, Array, Array]:
    """Sort rows by query and rule, stably; return offsets of queries, rules, ends and counts."""
    by_rule, _ = counting_order(records[:, 1], n_rules)
    by_query, offsets = counting_order(records[:, 0][by_rule], n_queries)
    order = by_rule[by_query]
    return offsets, records[:, 1][order], records[:, 2][order], records[:, 3][order]


@kernel
def score_candidates(
    row_offsets: Array, rule: Array, end: Array, count: Array, directed_relation: Array,
    answer: Array, known_offsets: Array, known: Array, known_kind: Array, weight: Array,
    factor: Array, walks_power: float, prior_row: Array, prior_offsets: Array,
    prior_entity: Array, prior_score: Array, default: Array, n_entities: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Add up, for each query, what rules and the prior give each candidate (eq. 15).

    Known candidates count by the `factor` of the relation and their kind. A rule's weight is
    multiplied by its number of walks to the `walks_power`. `prior_score` is of the candidates with
    a prior of their own, in the `prior_row` of each query; all others have the `default` of the
    relation. Returns offsets, candidates by
    entity, their scores, and if a rule reaches each query's answer (-1: none).
    """
    n = len(directed_relation)
    offsets = np.zeros(n + 1, dtype=np.int64)
    candidates = np.empty(1024, dtype=np.int32)
    scores = np.empty(1024, dtype=np.float64)
    reached = np.zeros(n, dtype=np.bool_)
    score_of = np.zeros(n_entities)
    factor_of = np.ones(n_entities)
    listed = np.zeros(n_entities, dtype=np.bool_)
    members = np.empty(n_entities, dtype=np.uint32)
    size = 0
    for query in range(n):
        relation = directed_relation[query]
        for index in range(known_offsets[query], known_offsets[query + 1]):
            factor_of[known[index]] = factor[relation, known_kind[index]]
        n_members = 0
        row = row_offsets[query]
        while row < row_offsets[query + 1]:
            stop = row
            walks = total = 0.0
            while stop < row_offsets[query + 1] and rule[stop] == rule[row]:
                walks += count[stop]
                total += count[stop] * factor_of[end[stop]]
                stop += 1
            mass = weight[rule[row]] * walks**walks_power
            for index in range(row, stop):
                entity = end[index]
                if not listed[entity]:
                    listed[entity] = True
                    members[n_members] = entity
                    n_members += 1
                score_of[entity] += mass * count[index] * factor_of[entity] / total
            row = stop
        if answer[query] >= 0:
            reached[query] = listed[answer[query]]
        of_prior = prior_row[query]
        for index in range(prior_offsets[of_prior], prior_offsets[of_prior + 1]):
            entity = prior_entity[index]
            if not listed[entity]:
                listed[entity] = True
                members[n_members] = entity
                n_members += 1
            score_of[entity] += prior_score[index] - default[relation]
        candidates = longer(candidates, size + n_members)
        scores = longer(scores, size + n_members)
        ordered = radix_sort(members[:n_members].copy(), n_entities)
        for index in range(n_members):
            entity = ordered[index]
            candidates[size + index] = entity
            scores[size + index] = score_of[entity] + default[relation]
            score_of[entity] = 0.0
            listed[entity] = False
        for index in range(known_offsets[query], known_offsets[query + 1]):
            factor_of[known[index]] = 1.0
        size += n_members
        offsets[query + 1] = size
    return offsets, candidates[:size].copy(), scores[:size].copy(), reached


@kernel
def list_rule_evidence(
    row_offsets: Array, rule: Array, end: Array, count: Array, offsets: Array, candidate: Array,
    n_entities: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return offsets, rules and √α of the rules that reach each listed candidate."""
    index_of = np.full(n_entities, -1, dtype=np.int64)
    reached = np.empty(len(rule), dtype=np.int64)  # candidate that each piece of evidence is for
    rules = np.empty(len(rule), dtype=np.int32)
    root_rate = np.empty(len(rule), dtype=np.float32)
    n = 0
    for query in range(len(offsets) - 1):
        for index in range(offsets[query], offsets[query + 1]):
            index_of[candidate[index]] = index
        first = row_offsets[query]
        while first < row_offsets[query + 1]:
            stop, walks = _walks_of_rule(first, row_offsets[query + 1], rule, count)
            for row in range(first, stop):
                if index_of[end[row]] >= 0 and count[row] >= MIN_RATE * walks:
                    reached[n], rules[n] = index_of[end[row]], rule[row]
                    root_rate[n] = np.sqrt(count[row] / walks)
                    n += 1
            first = stop
        for index in range(offsets[query], offsets[query + 1]):
            index_of[candidate[index]] = -1
    order, rule_offsets = counting_order(reached[:n], len(candidate))
    return rule_offsets, rules[order], root_rate[order]


@kernel
def add_rule_evidence(
    row_offsets: Array, rule: Array, end: Array, count: Array, offsets: Array, candidate: Array,
    weight: Array, n_entities: int, score: Array,
) -> None:  # fmt: skip
    """Add to each listed candidate's score the root of each rule's arriving rate, weighted."""
    score_of = np.zeros(n_entities)
    for query in range(len(offsets) - 1):
        first = row_offsets[query]
        while first < row_offsets[query + 1]:
            stop, walks = _walks_of_rule(first, row_offsets[query + 1], rule, count)
            if weight[rule[first]] != 0.0:
                for row in range(first, stop):
                    if count[row] >= MIN_RATE * walks:
                        score_of[end[row]] += weight[rule[first]] * np.sqrt(count[row] / walks)
            first = stop
        for index in range(offsets[query], offsets[query + 1]):
            score[index] += score_of[candidate[index]]
        for row in range(row_offsets[query], row_offsets[query + 1]):
            score_of[end[row]] = 0.0


@kernel
def _walks_of_rule(first: int, stop: int, rule: Array, count: Array) -> tuple[int, float]:
    """Return where the rows of the rule at `first` end, and their number of walks."""
    walks = 0.0
    row = first
    while row < stop and rule[row] == rule[first]:
        walks += count[row]
        row += 1
    return row, walks
