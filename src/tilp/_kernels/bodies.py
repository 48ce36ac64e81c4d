"""The items of a level in the order of their bodies and ends."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["sort_into_bodies"]


@kernel
def sort_into_bodies(
    relation: Array,
    target: Array,
    edges: Array,
    prefix: Array,
    last: Array,
    digits: Array,
    base: int,
    prefix_body: Array,
    n_prefix_bodies: int,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:
    """Put a level's items into the order of body and end.

    Args:
        relation: of each edge of the graph; likewise `target`.
        edges: the level's distinct last edges.
        prefix: of each item; likewise `last` and `digits`.
        base: how many values the digits have that the kind of body looks at (digits modulo base).
        prefix_body: the body of each prefix.
        n_prefix_bodies: how many bodies the prefixes have.

    Returns:
        Prefixes and last edges of the items in order; where each group begins, and where the last
        ends; the entity it ends in; where each body's groups begin, and where the last end; the
        body of each body's prefix; its last relation and digits in one number; and the body of
        each item, in the order of the level.
    """
    n = len(prefix)
    n_keys = n_prefix_bodies * base
    stops = np.zeros(n_keys + 1, dtype=np.uint32)
    key_of = np.empty(n, dtype=np.uint32)
    for item in range(n):
        digit = digits[item]
        if digit >= base:
            digit %= base
        key = np.uint32(prefix_body[prefix[item]] * base + digit)
        key_of[item] = key
        stops[key + 1] += np.uint32(1)
    for place in range(n_keys):
        stops[place + 1] += stops[place]
    order = np.empty(n, dtype=np.uint32)
    for item in range(n):
        key = key_of[item]
        order[stops[key]] = item
        stops[key] += np.uint32(1)
    return _cut_into_groups(relation[edges], target[edges], prefix, last, base, order, stops)


@kernel
def _cut_into_groups(
    relation: Array,
    target: Array,
    prefix: Array,
    last: Array,
    base: int,
    order: Array,
    stops: Array,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:
    """Find the bodies and groups of items whose order is known.

    What is known of a body or group is written again with each of its items, for a store costs
    less than a branch that is mispredicted; so it is ends that are noted, not beginnings.
    `relation` and `target` are here those of the level's last edges.
    """
    n = len(order)
    items = np.empty((2, n), dtype=np.uint32)
    in_order_prefix, in_order_last = items[0], items[1]
    room = np.empty((6, n + 1), dtype=np.int32)  # at once: to ask for memory takes its time
    group_begin, group_end, body_begin = room[0], room[1], room[2]
    body_prefix, body_step, of_item = room[3], room[4], room[5]
    group_begin[0] = body_begin[0] = 0
    n_groups = n_bodies = place = 0
    for key in range(len(stops) - 1):
        if place == stops[key]:
            continue
        before, digit = key // base, key % base
        previous_relation = previous_target = -1
        while place < stops[key]:
            item = order[place]
            local = last[item]
            in_order_prefix[place] = prefix[item]
            in_order_last[place] = local
            new_body = relation[local] != previous_relation
            new_group = new_body | (target[local] != previous_target)
            previous_relation, previous_target = relation[local], target[local]
            n_bodies += new_body
            n_groups += new_group
            place += 1
            group_begin[n_groups] = place
            group_end[n_groups - 1] = previous_target
            body_begin[n_bodies] = n_groups
            body_prefix[n_bodies - 1] = before
            body_step[n_bodies - 1] = previous_relation * base + digit
            of_item[item] = n_bodies - 1
    return (
        in_order_prefix,
        in_order_last,
        group_begin[: n_groups + 1],
        group_end[:n_groups],
        body_begin[: n_bodies + 1],
        body_prefix[:n_bodies],
        body_step[:n_bodies],
        of_item[:n],
    )
