"""Temporal random walks: from a fact back in time, along facts, to where it began."""

from typing import Any

import numpy as np

from tilp._kernels.events import ByEntityRelation, ByRelation, ByTime, edges_of, first_from
from tilp._kernels.expand import chance
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

_NEGLIGIBLE = 40  # so much earlier than the latest, an edge's share is lost in rounding


@kernel
def walk_back(
    edges: ByTime,
    heads: ByRelation,
    n_relations: int,
    head: int,
    length: int,
    walks: int,
    exponential: bool,
    seed: int,
) -> tuple[Array, Array, Array]:
    """Try to find so many walks that close a cycle with an edge of the head relation.

    A walk begins with any edge (s, head, o, t) and goes on from o, to edges that are earlier than
    t, and then no later than the one before, never the same fact back at once; its last step
    leads to s. Of the edges that it may take each is as likely as any other, or, exponentially,
    e times as likely as one that is a unit of time earlier.

    Args:
        edges: that are walked.
        heads: the same, by relation.
        n_relations: the inverse of relation r is `r + n_relations`.
        head: the first edge's relation.
        length: steps after the first edge.
        walks: how often it is tried.
        exponential: or else uniform.
        seed: of the walks.

    Returns:
        Of each walk that closed: its entities, relations and times, in the order of the walk.
    """
    entities = np.empty((walks, length + 2), dtype=np.int32)
    relations = np.empty((walks, length + 1), dtype=np.int32)
    times = np.empty((walks, length + 1), dtype=np.int64)
    begin, end = heads.offsets[head], heads.offsets[head + 1]
    found = 0
    for _ in range(walks if begin < end else 0):
        first = begin + int(chance(seed) * (end - begin))
        seed += 1
        entities[found, 0], entities[found, 1] = heads.source[first], heads.target[first]
        relations[found, 0], times[found, 0] = head, heads.time[first]
        step = 1
        while step <= length:
            here, until = entities[found, step], times[found, step - 1]
            low, high = edges.offsets[here], edges.offsets[here + 1]
            high = first_from(edges.time, low, high, until if step == 1 else until + 1)
            back = relations[found, step - 1]
            back = back + n_relations if back < n_relations else back - n_relations
            edge = _draw(
                edges,
                low,
                high,
                entities[found, 0] if step == length else -1,
                back,
                entities[found, step - 1],
                until,
                exponential,
                chance(seed),
            )
            seed += 1
            if edge < 0:
                break
            entities[found, step + 1] = edges.target[edge]
            relations[found, step] = edges.relation[edge]
            times[found, step] = edges.time[edge]
            step += 1
        found += step > length
    return entities[:found].copy(), relations[:found].copy(), times[:found].copy()


@kernel
def _draw(
    edges: ByTime,
    low: int,
    high: int,
    wanted: int,
    back: int,
    source: int,
    until: int,
    exponential: bool,
    lot: float,
) -> int:
    """One of the edges from low to high, latest first; -1 where none may be taken.

    None that has another target than the wanted one (-1: any), and not the edge back, of relation
    `back` to `source` at time `until`.
    """
    total = 0.0
    latest = until
    for drawing in range(2):  # first the sum of the shares, then the edge at which it is reached
        reached = 0.0
        for edge in range(high - 1, low - 1, -1):
            target, time = edges.target[edge], edges.time[edge]
            if wanted >= 0 and target != wanted:
                continue
            if time == until and target == source and edges.relation[edge] == back:
                continue
            if reached == 0.0:
                latest = time
            if exponential and latest - time > _NEGLIGIBLE:
                break
            reached += np.exp(float(time - latest)) if exponential else 1.0
            if drawing and reached > lot * total:
                return edge
        total = reached
        if total == 0.0:
            break
    return -1


@kernel
def count_bodies(
    edges: ByEntityRelation,
    heads: ByRelation,
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
        begin, end = heads.offsets[relations[rule, 0]], heads.offsets[relations[rule, 0] + 1]
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
def _followed(edges: ByEntityRelation, body: Array, head: int) -> bool:
    """Whether the head joins a body's ends at a later time."""
    low, high = edges_of(edges, body[0], head)
    low = first_from(edges.time, low, high, body[-2] + 1)
    return bool((edges.target[low:high] == body[-1]).any())
