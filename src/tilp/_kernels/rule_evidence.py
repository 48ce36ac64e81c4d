"""Which rules lead to the listed candidates of queries, and how much of each."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["LEAST_RATE", "add_rule_evidence", "list_rule_evidence"]

LEAST_RATE = 0.01
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
                if place_of[end[one]] >= 0 and count[one] >= LEAST_RATE * walks:
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
                if place >= 0 and count[one] >= LEAST_RATE * walks:
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
                    if count[one] >= LEAST_RATE * walks:
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
