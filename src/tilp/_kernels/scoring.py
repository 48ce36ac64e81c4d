"""Scores of candidates from the walks of rules."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["score_candidates"]


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
