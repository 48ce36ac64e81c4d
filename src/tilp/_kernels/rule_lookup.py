"""Looking up kept rules, and the part of a level that they are about."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, Level, RuleIndex


@kernel
def kept_bodies(kept: RuleIndex, level: Level) -> Array:
    """For each body of a level the kept one that it is, or -1."""
    # Out of the loop: an array that is taken out of a tuple is counted in and out.
    kept_relations, kept_digits, relations, digits = (
        kept.relations,
        kept.digits,
        level.relations,
        level.digits,
    )
    low, high = (
        kept.body_offsets[level.form, level.length],
        kept.body_offsets[level.form, level.length + 1],
    )
    found = np.empty(len(relations), dtype=np.int64)
    for body in range(len(found)):
        found[body] = _kept_body(
            kept_relations, kept_digits, low, high, relations[body], digits[body]
        )
    return found


@kernel
def _kept_body(
    kept_relations: Array, kept_digits: Array, low: int, stop: int, relations: int, digits: int
) -> int:
    """Which of the kept bodies from low to stop has these relations and digits, or -1."""
    high = stop
    while low < high:
        middle = (low + high) // 2
        smaller = kept_relations[middle] < relations or (
            kept_relations[middle] == relations and kept_digits[middle] < digits
        )
        if smaller:
            low = middle + 1
        else:
            high = middle
    if low < stop and kept_relations[low] == relations and kept_digits[low] == digits:
        return low
    return -1


@kernel
def rules_of_head(kept: RuleIndex, bodies: Array, head: int) -> Array:
    """Where the rules of each kept body for one head stand; nowhere for those that are not kept."""
    begin, heads = kept.rule_offsets, kept.directed_relation
    rules = np.zeros((len(bodies), 2), dtype=np.int64)
    for place in range(len(bodies)):
        if bodies[place] >= 0:
            low, high = begin[bodies[place]], begin[bodies[place] + 1]
            while low < high and heads[low] < head:
                low += 1
            rules[place, 0] = low
            while low < high and heads[low] == head:
                low += 1
            rules[place, 1] = low
    return rules


@kernel
def part_of_level(level: Level, chosen: Array) -> Level:
    """The walks of the chosen bodies, which are given ascending, as a level of their own."""
    old_prefix, old_last, old_end = level.prefix, level.last, level.group_end
    group_begin, body_begin = level.group_begin, level.body_begin
    n_groups = n_walks = 0
    for place in range(len(chosen)):
        first, last = body_begin[chosen[place]], body_begin[chosen[place] + 1]
        n_groups += last - first
        n_walks += group_begin[last] - group_begin[first]
    prefix = np.empty(n_walks, dtype=np.uint32)
    end = np.empty(n_walks, dtype=np.uint32)
    new_group_begin = np.empty(n_groups + 1, dtype=np.int32)
    group_end = np.empty(n_groups, dtype=np.int32)
    new_body_begin = np.empty(len(chosen) + 1, dtype=np.int32)
    n_groups = n_walks = 0
    for place in range(len(chosen)):
        new_body_begin[place] = n_groups
        first, last = body_begin[chosen[place]], body_begin[chosen[place] + 1]
        shift = n_walks - group_begin[first]
        for group in range(first, last):
            new_group_begin[n_groups] = group_begin[group] + shift
            group_end[n_groups] = old_end[group]
            n_groups += 1
        for walk in range(group_begin[first], group_begin[last]):
            prefix[n_walks] = old_prefix[walk]
            end[n_walks] = old_last[walk]
            n_walks += 1
    new_group_begin[n_groups] = n_walks
    new_body_begin[len(chosen)] = n_groups
    return Level(
        level.form,
        level.words,
        level.length,
        level.chain,
        level.edges,
        prefix,
        end,
        new_group_begin,
        group_end,
        new_body_begin,
        level.relations[chosen],
        level.digits[chosen],
    )
