"""Temporal random walks: from a fact back in time, along facts, to where it began."""

import numpy as np

from tilp._kernels.expansion import chance
from tilp._kernels.jit import kernel
from tilp._kernels.timed_edges import ByHead, ByTime, first_from
from tilp._kernels.types import Array

__all__ = ["walk_back"]

_NEGLIGIBLE = 40  # so much earlier than the latest, an edge's share is lost in rounding


@kernel
def walk_back(
    edges: ByTime,
    heads: ByHead,
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
    begin, end = heads.begin[head], heads.begin[head + 1]
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
