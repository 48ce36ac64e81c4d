"""Scores of candidates from the walks of rules, and the rules that reach each candidate."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


@kernel
def score_candidates(
    begin: Array,
    rule: Array,
    end: Array,
    count: Array,
    head: Array,
    answer: Array,
    known_begin: Array,
    known: Array,
    known_kind: Array,
    weight: Array,
    factor: Array,
    walks_power: float,
    prior_begin: Array,
    prior_entity: Array,
    prior_score: Array,
    floor: Array,
    n_entities: int,
) -> tuple[Array, Array, Array, Array]:
    """Add up, for each query, what rules and the prior give each candidate (eq. 15).

    Args:
        begin: where the rows of each query begin, and where the last end.
        rule: of each row, those of one rule standing together; likewise `end` and `count`.
        head: of each query; likewise `answer`, -1 where there is none.
        known_begin: where the known candidates of each query begin, and where the last end.
        known: these; `known_kind` their kinds.
        weight: of each rule.
        factor: that known candidates count by, of each head and kind.
        walks_power: of the number of a rule's walks, by which its weight is multiplied.
        prior_begin: where the candidates of each head begin that have a prior of their own.
        prior_entity: these; `prior_score` what the prior gives them.
        floor: what it gives all others of each head.

    Returns:
        Where the candidates of each query begin; these, by entity; their scores; and whether a
        rule reaches each query's answer.
    """
    n = len(head)
    begins = np.zeros(n + 1, dtype=np.int64)
    candidates = np.empty(1024, dtype=np.int32)
    scores = np.empty(1024, dtype=np.float64)
    reached = np.zeros(n, dtype=np.bool_)
    by_rules = np.zeros(n_entities)
    counts_as = np.ones(n_entities)
    listed = np.zeros(n_entities, dtype=np.bool_)
    members = np.empty(n_entities, dtype=np.int32)
    size = 0
    for query in range(n):
        of_head = head[query]
        for place in range(known_begin[query], known_begin[query + 1]):
            counts_as[known[place]] = factor[of_head, known_kind[place]]
        n_members = 0
        row = begin[query]
        while row < begin[query + 1]:
            stop = row
            walks = total = 0.0
            while stop < begin[query + 1] and rule[stop] == rule[row]:
                walks += count[stop]
                total += count[stop] * counts_as[end[stop]]
                stop += 1
            mass = weight[rule[row]] * walks**walks_power
            for place in range(row, stop):
                entity = end[place]
                if not listed[entity]:
                    listed[entity] = True
                    members[n_members] = entity
                    n_members += 1
                by_rules[entity] += mass * count[place] * counts_as[entity] / total
            row = stop
        if answer[query] >= 0:
            reached[query] = listed[answer[query]]
        for place in range(prior_begin[of_head], prior_begin[of_head + 1]):
            entity = prior_entity[place]
            if not listed[entity]:
                listed[entity] = True
                members[n_members] = entity
                n_members += 1
            by_rules[entity] += prior_score[place] - floor[of_head]
        while size + n_members > len(candidates):
            candidates = np.concatenate((candidates, np.empty_like(candidates)))
            scores = np.concatenate((scores, np.empty_like(scores)))
        ordered = np.sort(members[:n_members])
        for place in range(n_members):
            entity = ordered[place]
            candidates[size + place] = entity
            scores[size + place] = by_rules[entity] + floor[of_head]
            by_rules[entity] = 0.0
            listed[entity] = False
        for place in range(known_begin[query], known_begin[query + 1]):
            counts_as[known[place]] = 1.0
        size += n_members
        begins[query + 1] = size
    return begins, candidates[:size].copy(), scores[:size].copy(), reached


MIN_RATE = 0.01
"""Arriving rates below it are no evidence: a rule that leads everywhere says little of each end."""


@kernel
def list_rule_evidence(
    row_begin: Array,
    rule: Array,
    end: Array,
    count: Array,
    begin: Array,
    candidate: Array,
    n_entities: int,
) -> tuple[Array, Array, Array]:
    """The rules that lead to each listed candidate, with the root of its arriving rate.

    Args:
        row_begin: where the rows of each query begin, and where the last end.
        rule: of each row, those of one rule standing together; likewise `end` and `count`.
        begin: where the listed candidates of each query begin, and where the last end.
        candidate: these.
        n_entities: all there are.

    Returns:
        Where the rules of each candidate begin; these; √α of each.
    """
    place_of = np.full(n_entities, -1, dtype=np.int64)
    begins = np.zeros(len(candidate) + 1, dtype=np.int64)
    for query in range(len(begin) - 1):
        for place in range(begin[query], begin[query + 1]):
            place_of[candidate[place]] = place
        row = row_begin[query]
        while row < row_begin[query + 1]:
            stop, walks = _walks_of_rule(row, row_begin[query + 1], rule, count)
            for one in range(row, stop):
                if place_of[end[one]] >= 0 and count[one] >= MIN_RATE * walks:
                    begins[place_of[end[one]] + 1] += 1
            row = stop
        for place in range(begin[query], begin[query + 1]):
            place_of[candidate[place]] = -1
    begins = np.cumsum(begins)
    rules = np.empty(begins[-1], dtype=np.int32)
    root = np.empty(begins[-1], dtype=np.float32)
    free = begins[:-1].copy()
    for query in range(len(begin) - 1):
        for place in range(begin[query], begin[query + 1]):
            place_of[candidate[place]] = place
        row = row_begin[query]
        while row < row_begin[query + 1]:
            stop, walks = _walks_of_rule(row, row_begin[query + 1], rule, count)
            for one in range(row, stop):
                place = place_of[end[one]]
                if place >= 0 and count[one] >= MIN_RATE * walks:
                    rules[free[place]] = rule[one]
                    root[free[place]] = np.sqrt(count[one] / walks)
                    free[place] += 1
            row = stop
        for place in range(begin[query], begin[query + 1]):
            place_of[candidate[place]] = -1
    return begins, rules, root


@kernel
def add_rule_evidence(
    row_begin: Array,
    rule: Array,
    end: Array,
    count: Array,
    begin: Array,
    candidate: Array,
    weight: Array,
    n_entities: int,
    score: Array,
) -> None:
    """Add to the score of each listed candidate the root of each rule's arriving rate, weighted.

    Args:
        weight: of each rule; the other arguments are those of `list_rule_evidence`.
        score: of each candidate, which is added to.
    """
    found = np.zeros(n_entities)
    for query in range(len(begin) - 1):
        row = row_begin[query]
        while row < row_begin[query + 1]:
            stop, walks = _walks_of_rule(row, row_begin[query + 1], rule, count)
            if weight[rule[row]] != 0.0:
                for one in range(row, stop):
                    if count[one] >= MIN_RATE * walks:
                        found[end[one]] += weight[rule[row]] * np.sqrt(count[one] / walks)
            row = stop
        for place in range(begin[query], begin[query + 1]):
            score[place] += found[candidate[place]]
        for one in range(row_begin[query], row_begin[query + 1]):
            found[end[one]] = 0.0


@kernel
def _walks_of_rule(row: int, stop: int, rule: Array, count: Array) -> tuple[int, float]:
    """Where the rows of the rule at `row` end, and how many walks they are of."""
    walks = 0.0
    place = row
    while place < stop and rule[place] == rule[row]:
        walks += count[place]
        place += 1
    return place, walks
