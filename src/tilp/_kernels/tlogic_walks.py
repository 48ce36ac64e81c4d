"""Temporal random walks of TLogic: from a fact back in time, along facts, to where it began."""

from typing import Any

import numpy as np

from tilp._kernels.arrays import lower_bound, uniform
from tilp._kernels.events import ByEntityRelation, ByRelation, ByTime, find_edges
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

_NEGLIGIBLE = 40  # so much earlier than the latest, an edge's share is lost in rounding


@kernel
def walk_back(
    edges: ByTime,
    first_edges: ByRelation,
    n_relations: int,
    relation: int,
    length: int,
    n_walks: int,
    exponential: bool,
    seed: int,
) -> tuple[Array, Array, Array]:
    """Try `n_walks` times to walk a cycle that begins with an edge of a relation.

    A walk begins with any edge (s, relation, o, t) and goes on from o for `length` steps, along
    edges that are earlier than t and then no later than the one before, never back along the same
    fact at once; its last step leads to s. The edges that it may take are equally likely, or, if
    `exponential`, e times as likely as those one unit of time earlier.

    Returns:
        Entities, relations and times of each walk that closed, in the order of the walk.
    """
    entities = np.empty((n_walks, length + 2), dtype=np.int32)
    relations = np.empty((n_walks, length + 1), dtype=np.int32)
    times = np.empty((n_walks, length + 1), dtype=np.int64)
    begin, end = first_edges.offsets[relation], first_edges.offsets[relation + 1]
    n = 0
    for _ in range(n_walks if begin < end else 0):
        first = begin + int(uniform(seed) * (end - begin))
        seed += 1
        entities[n, 0], entities[n, 1] = first_edges.source[first], first_edges.target[first]
        relations[n, 0], times[n, 0] = relation, first_edges.time[first]
        step = 1
        while step <= length:
            here, until = entities[n, step], times[n, step - 1]
            low, high = edges.offsets[here], edges.offsets[here + 1]
            high = lower_bound(edges.time, low, high, until if step == 1 else until + 1)
            inverse = relations[n, step - 1]
            inverse = inverse + n_relations if inverse < n_relations else inverse - n_relations
            required = entities[n, 0] if step == length else -1
            edge = _draw(
                edges, low, high, required, inverse, entities[n, step - 1], until, exponential,
                uniform(seed),
            )  # fmt: skip
            seed += 1
            if edge < 0:
                break
            entities[n, step + 1] = edges.target[edge]
            relations[n, step] = edges.relation[edge]
            times[n, step] = edges.time[edge]
            step += 1
        n += step > length
    return entities[:n].copy(), relations[:n].copy(), times[:n].copy()


@kernel
def _draw(
    edges: ByTime,
    low: int,
    high: int,
    required: int,
    inverse: int,
    source: int,
    until: int,
    exponential: bool,
    random: float,
) -> int:
    """Draw one of the edges from low to high, or -1 where none may be taken.

    Its target is the required one (-1: any), and it is not the edge back, of relation `inverse` to
    `source` at time `until`.
    """
    total = 0.0
    latest = until
    for drawing in range(2):  # first the sum of the shares, then the edge at which it is reached
        cumulative = 0.0
        for edge in range(high - 1, low - 1, -1):
            target, time = edges.target[edge], edges.time[edge]
            if required >= 0 and target != required:
                continue
            if time == until and target == source and edges.relation[edge] == inverse:
                continue
            if cumulative == 0.0:
                latest = time
            if exponential and latest - time > _NEGLIGIBLE:
                break
            cumulative += np.exp(float(time - latest)) if exponential else 1.0
            if drawing and cumulative > random * total:
                return edge
        total = cumulative
        if total == 0.0:
            break
    return -1


@kernel
def count_bodies(
    edges: ByEntityRelation,
    first_edges: ByRelation,
    relation: int,
    body_relations: Array,
    same: Array,
    n_samples: int,
    seeds: Array,
) -> tuple[Array, Array]:
    """Sample bodies of rules of one relation and length; return body support and support of each.

    A body is a chain of edges of the rule's relations whose times do not fall; its first edge is
    drawn from all of its relation, each further one from those that may follow. Its head holds if
    it joins the body's ends at any later time. Distinct bodies are counted.

    `same` is, of each position in a rule, the first position with the same entity. Where two
    positions share one, so must a body's, and no others; else a body's entities are not compared.
    """
    n, length = body_relations.shape
    body_support = np.zeros(n, dtype=np.int64)
    support = np.zeros(n, dtype=np.int64)
    samples = np.empty((n_samples, 2 * length + 1), dtype=np.int64)  # entity, time, entity, …
    slots = np.empty(2 * n_samples + 1, dtype=np.int64)
    for rule in range(n):
        slots[:] = -1
        repeats = bool((same[rule] != np.arange(same.shape[1])).any())
        first_relation = body_relations[rule, 0]
        begin, end = first_edges.offsets[first_relation], first_edges.offsets[first_relation + 1]
        seed = seeds[rule]
        for _ in range(n_samples if begin < end else 0):
            first = begin + int(uniform(seed) * (end - begin))
            seed += 1
            body = samples[body_support[rule]]
            body[0], body[1] = first_edges.source[first], first_edges.time[first]
            body[2] = first_edges.target[first]
            complete = True
            for step in range(1, length):
                low, high = find_edges(edges, body[2 * step], body_relations[rule, step])
                low = lower_bound(edges.time, low, high, body[2 * step - 1])
                if low == high:
                    complete = False
                    break
                edge = low + int(uniform(seed) * (high - low))
                seed += 1
                body[2 * step + 1], body[2 * step + 2] = edges.time[edge], edges.target[edge]
            if not complete or (repeats and not _has_pattern(body, same[rule])):
                continue
            if _is_new(samples, body_support[rule], slots):
                body_support[rule] += 1
                support[rule] += _head_holds(edges, body, relation)
    return body_support, support


@kernel
def _has_pattern(body: Array, same: Array) -> bool:
    """Return whether the positions of a body that share entities are those of the rule."""
    for position in range(len(same)):
        first = 0
        while body[2 * first] != body[2 * position]:
            first += 1
        if first != same[position]:
            return False
    return True


@kernel
def _is_new(samples: Array, last: int, slots: Array) -> bool:
    """Return whether the last sample differs from all before; if so, it gets a slot."""
    mixed = np.uint64(0)
    for column in range(samples.shape[1]):
        mixed = (mixed ^ np.uint64(samples[last, column])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    slot: Any = np.int64(mixed % np.uint64(len(slots)))
    while slots[slot] >= 0:
        column = 0
        while column < samples.shape[1] and samples[slots[slot], column] == samples[last, column]:
            column += 1
        if column == samples.shape[1]:
            return False
        slot = slot + 1 if slot + 1 < len(slots) else 0
    slots[slot] = last
    return True


@kernel
def _head_holds(edges: ByEntityRelation, body: Array, relation: int) -> bool:
    """Return whether the relation joins a body's ends at a later time."""
    low, high = find_edges(edges, body[0], relation)
    low = lower_bound(edges.time, low, high, body[-2] + 1)
    return bool((edges.target[low:high] == body[-1]).any())
