"""Lookup of rules in their index, and the part of a level that they concern."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, Level, RuleIndex


@kernel
def find_bodies(rules: RuleIndex, level: Level) -> Array:
    """Return the index of each body of a level among those of the rules, or -1."""
    rule_relations, rule_digits = rules.relations, rules.digits
    relations, digits = level.relations, level.digits
    low = rules.body_offsets[level.form, level.length]
    high = rules.body_offsets[level.form, level.length + 1]
    bodies = np.empty(len(relations), dtype=np.int64)
    for body in range(len(bodies)):
        bodies[body] = _find_body(
            rule_relations, rule_digits, low, high, relations[body], digits[body]
        )
    return bodies


@kernel
def _find_body(
    rule_relations: Array, rule_digits: Array, low: int, stop: int, relations: int, digits: int
) -> int:
    high = stop
    while low < high:
        middle = (low + high) // 2
        smaller = rule_relations[middle] < relations or (
            rule_relations[middle] == relations and rule_digits[middle] < digits
        )
        if smaller:
            low = middle + 1
        else:
            high = middle
    if low < stop and rule_relations[low] == relations and rule_digits[low] == digits:
        return low
    return -1


@kernel
def find_rules_of_relation(rules: RuleIndex, bodies: Array, relation: int) -> Array:
    """Return where the rules of each body for one relation begin and end; (0, 0) without any."""
    offsets, relations = rules.rule_offsets, rules.directed_relation
    spans = np.zeros((len(bodies), 2), dtype=np.int64)
    for index in range(len(bodies)):
        if bodies[index] >= 0:
            low, high = offsets[bodies[index]], offsets[bodies[index] + 1]
            while low < high and relations[low] < relation:
                low += 1
            spans[index, 0] = low
            while low < high and relations[low] == relation:
                low += 1
            spans[index, 1] = low
    return spans


@kernel
def select_bodies(level: Level, chosen: Array) -> Level:
    """Return the walks of the chosen bodies, given in ascending order, as a level of their own."""
    old_prefix, old_last, old_target = level.prefix, level.last, level.group_target
    group_offsets, body_offsets = level.group_offsets, level.body_offsets
    n_groups = n_walks = 0
    for index in range(len(chosen)):
        first, last = body_offsets[chosen[index]], body_offsets[chosen[index] + 1]
        n_groups += last - first
        n_walks += group_offsets[last] - group_offsets[first]
    prefix = np.empty(n_walks, dtype=np.uint32)
    last_of_walk = np.empty(n_walks, dtype=np.uint32)
    new_group_offsets = np.empty(n_groups + 1, dtype=np.int32)
    group_target = np.empty(n_groups, dtype=np.int32)
    new_body_offsets = np.empty(len(chosen) + 1, dtype=np.int32)
    n_groups = n_walks = 0
    for index in range(len(chosen)):
        new_body_offsets[index] = n_groups
        first, last = body_offsets[chosen[index]], body_offsets[chosen[index] + 1]
        shift = n_walks - group_offsets[first]
        for group in range(first, last):
            new_group_offsets[n_groups] = group_offsets[group] + shift
            group_target[n_groups] = old_target[group]
            n_groups += 1
        for walk in range(group_offsets[first], group_offsets[last]):
            prefix[n_walks] = old_prefix[walk]
            last_of_walk[n_walks] = old_last[walk]
            n_walks += 1
    new_group_offsets[n_groups] = n_walks
    new_body_offsets[len(chosen)] = n_groups
    return Level(
        level.form,
        level.code_type,
        level.length,
        level.chain,
        level.last_edges,
        prefix,
        last_of_walk,
        new_group_offsets,
        group_target,
        new_body_offsets,
        level.relations[chosen],
        level.digits[chosen],
    )
