"""How often the bodies of timestamp rules are followed by their heads, by sampled bodies."""

from typing import Any

import numpy as np

from tilp._kernels.expansion import chance
from tilp._kernels.jit import kernel
from tilp._kernels.timed_edges import ByHead, ByRelation, edges_of, first_from
from tilp._kernels.types import Array

__all__ = ["count_bodies"]


@kernel
def count_bodies(
    edges: ByRelation,
    heads: ByHead,
    head: int,
    relations: Array,
    same: Array,
    samples: int,
    seeds: Array,
) -> tuple[Array, Array]:
    """Sample bodies of rules of one head and length; count the distinct ones, and their heads.

    A body is a chain of edges of the rule's relations whose times do not fall; its first edge is
    drawn from all of its relation, each further one from those that may follow. Its head holds if
    it joins the body's ends at any later time.

    Args:
        edges: by entity, relation and time.
        heads: the same, by relation.
        head: of the rules.
        relations: of each rule's body.
        same: of each place in a rule the first with the same entity. Where two places share one,
            they must in a body, and no others; without, a body's entities are not looked at.
        samples: how many are drawn.
        seeds: of each rule.

    Returns:
        The distinct bodies of each rule, and how many of them the head follows.
    """
    n, length = relations.shape
    bodies = np.zeros(n, dtype=np.int64)
    support = np.zeros(n, dtype=np.int64)
    drawn = np.empty((samples, 2 * length + 1), dtype=np.int64)  # entity, time, entity, …
    slots = np.empty(2 * samples + 1, dtype=np.int64)
    for rule in range(n):
        slots[:] = -1
        joins = _joins(same[rule])
        begin, end = heads.begin[relations[rule, 0]], heads.begin[relations[rule, 0] + 1]
        seed = seeds[rule]
        for _ in range(samples if begin < end else 0):
            first = begin + int(chance(seed) * (end - begin))
            seed += 1
            body = drawn[bodies[rule]]
            body[0], body[1], body[2] = heads.source[first], heads.time[first], heads.target[first]
            whole = True
            for step in range(1, length):
                low, high = edges_of(edges, body[2 * step], relations[rule, step])
                low = first_from(edges.time, low, high, body[2 * step - 1])
                if low == high:
                    whole = False
                    break
                edge = low + int(chance(seed) * (high - low))
                seed += 1
                body[2 * step + 1], body[2 * step + 2] = edges.time[edge], edges.target[edge]
            if not whole or (joins and not _is_of(body, same[rule])):
                continue
            if _is_new(drawn, bodies[rule], slots):
                bodies[rule] += 1
                support[rule] += _followed(edges, body, head)
    return bodies, support


@kernel
def _joins(same: Array) -> bool:
    """Whether two places share an entity."""
    return bool((same != np.arange(len(same))).any())


@kernel
def _is_of(body: Array, same: Array) -> bool:
    """Whether the places of a body that share entities are those of the rule."""
    for place in range(len(same)):
        first = 0
        while body[2 * first] != body[2 * place]:
            first += 1
        if first != same[place]:
            return False
    return True


@kernel
def _is_new(drawn: Array, last: int, slots: Array) -> bool:
    """Whether the last body drawn is none of those before; it then has a slot."""
    mixed = np.uint64(0)
    for column in range(drawn.shape[1]):
        mixed = (mixed ^ np.uint64(drawn[last, column])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    slot: Any = np.int64(mixed % np.uint64(len(slots)))
    while slots[slot] >= 0:
        column = 0
        while column < drawn.shape[1] and drawn[slots[slot], column] == drawn[last, column]:
            column += 1
        if column == drawn.shape[1]:
            return False
        slot = slot + 1 if slot + 1 < len(slots) else 0
    slots[slot] = last
    return True


@kernel
def _followed(edges: ByRelation, body: Array, head: int) -> bool:
    """Whether the head joins a body's ends at a later time."""
    low, high = edges_of(edges, body[0], head)
    low = first_from(edges.time, low, high, body[-2] + 1)
    return bool((edges.target[low:high] == body[-1]).any())
