"""Soft walks: a walker that prefers facts near the query's time, and where it may end."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.candidate_history import FactEdges, same_interval
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, ListedCandidates

_PRESENT = 1e-300  # added to chances, so that an entity is told from one that was not reached
_NEGLIGIBLE = 1e-3  # of the least chance that matters
_DENSE = 4  # from an n-th of all edges on, every entity asks where the walker may come from


class WalkSettings(NamedTuple):
    """How the walker goes.

    From each entity it takes one of its edges, with chances in proportion to exp(-gap / scale),
    where gap is the time between the edge's interval and the query's. It counts where it is after
    more than `near` steps, up to `far`; in one step at most `limit` edges are read, where the
    walker is likeliest to be. A chance far below `least` is none.
    """

    scale: float
    near: int
    far: int
    limit: int
    least: float


class _Walker(NamedTuple):
    """Who walks: from where, at what time, and without which fact, whose ends are two.

    `interval` is a number for the time, `own` the fact (-1: none).
    """

    subject: int
    other_end: int
    own: int
    start: int
    end: int
    interval: int
    scale: float


class _Space(NamedTuple):
    """What is known while walking: of edges and entities for an interval, of a query's walk."""

    of_interval: Array
    known_for: Array
    weight: Array
    total: Array
    weighed: Array
    mass: Array
    members: Array
    reached: Array
    everyone: Array


@kernel
def _space(edges: FactEdges) -> _Space:
    n = len(edges.offsets) - 1
    return _Space(
        np.empty(len(edges.starts)),
        np.full(len(edges.starts), -1, dtype=np.int64),
        np.empty(len(edges.target)),
        np.zeros(n),
        np.full(n, -1, dtype=np.int64),
        np.zeros((2, n)),
        np.empty((2, n), dtype=np.int32),
        np.zeros(n),
        np.arange(n, dtype=np.int32),
    )


@kernel
def list_random_walk_scores(
    edges: FactEdges, asked: ListedCandidates, order: Array, manner: WalkSettings
) -> Array:
    """How likely each listed candidate is reached.

    Args:
        edges: that are walked.
        asked: the queries.
        order: in which they are walked; those of one interval should stand together.
        manner: how.

    Returns:
        log(1 + chance / least), with the sum of the chances after each number of steps that counts.
    """
    found = np.zeros(len(asked.candidate))
    space = _space(edges)
    interval = 0
    for query in order:
        interval = same_interval(asked, query, interval)
        _walk(edges, asked, query, interval, manner, space)
        for place in range(asked.offsets[query], asked.offsets[query + 1]):
            found[place] = np.log(1.0 + space.reached[asked.candidate[place]] / manner.least)
    return found


@kernel
def add_random_walk_scores(
    edges: FactEdges,
    asked: ListedCandidates,
    order: Array,
    manner: WalkSettings,
    weight: Array,
    score: Array,
) -> None:
    """Add to the scores of listed candidates what `list_soft_walks` finds, weighted.

    Args:
        edges: that are walked.
        asked: the queries.
        order: in which they are walked; those of one interval should stand together.
        manner: how.
        weight: of what is found, for each query.
        score: of each candidate, which is added to.
    """
    space = _space(edges)
    interval = 0
    for query in order:
        if weight[query] == 0.0:
            continue
        interval = same_interval(asked, query, interval)
        _walk(edges, asked, query, interval, manner, space)
        for place in range(asked.offsets[query], asked.offsets[query + 1]):
            chance = space.reached[asked.candidate[place]]
            if chance > _NEGLIGIBLE * manner.least:
                score[place] += weight[query] * np.log(1.0 + chance / manner.least)


@kernel
def _walk(
    edges: FactEdges,
    asked: ListedCandidates,
    query: int,
    interval: int,
    manner: WalkSettings,
    space: _Space,
) -> None:
    """Walk from a query's subject; `space.reached` gets the chances of where."""
    subject, own = asked.subject[query], asked.fact[query]
    walker = _Walker(
        subject, _other_end(edges, subject, own), own, asked.start[query], asked.end[query],
        interval, manner.scale,
    )  # fmt: skip
    mass, members, reached = space.mass, space.members, space.reached
    reached[:] = 0.0
    if manner.near >= manner.far:
        return
    mass[0, subject] = 1.0
    members[0, 0] = subject
    n = 1
    dense = False
    for step in range(manner.far):
        here, there = step % 2, (step + 1) % 2
        dense = dense or _edges_of(edges, members[here], n) * _DENSE > len(edges.target)
        if dense and len(edges.target) <= manner.limit * _DENSE:
            _step_to_all(edges, walker, space, here, there)
        else:
            dense = False
            n = _likeliest(edges, members[here], n, mass[here], manner.limit)
            n = _step(edges, walker, space, here, there, n)
        if step < manner.near:
            continue
        if dense:
            reached += mass[there]
        else:
            for place in range(n):
                reached[members[there, place]] += mass[there, members[there, place]]
    mass[:] = 0.0


@kernel
def _step(edges: FactEdges, walker: _Walker, space: _Space, here: int, there: int, n: int) -> int:
    """One step from the entities where the walker may be; how many it may then be at."""
    mass, following_mass = space.mass[here], space.mass[there]
    members, following_members = space.members[here], space.members[there]
    offsets, target, fact, weight = edges.offsets, edges.target, edges.fact, space.weight
    _weigh(edges, walker, space, members[:n])
    following = 0
    for place in range(n):
        entity = members[place]
        total, own = space.total[entity], -1
        if _has_own(entity, walker):
            total, own = _total_without_own(edges, entity, walker, weight), walker.own
        share = mass[entity]
        mass[entity] = 0.0
        if total == 0.0:
            continue
        share /= total
        for edge in range(offsets[entity], offsets[entity + 1]):
            if fact[edge] != own:
                end = target[edge]
                if following_mass[end] == 0.0:
                    following_members[following] = end
                    following += 1
                following_mass[end] += share * weight[edge] + _PRESENT
    return following


@kernel
def _step_to_all(edges: FactEdges, walker: _Walker, space: _Space, here: int, there: int) -> None:
    """One step, told from where it ends: an edge read the other way has the same weight."""
    mass, following_mass = space.mass[here], space.mass[there]
    offsets, target, weight = edges.offsets, edges.target, space.weight
    _weigh(edges, walker, space, space.everyone)
    for entity in space.everyone:
        total = space.total[entity]
        if _has_own(entity, walker):
            total = _total_without_own(edges, entity, walker, weight)
        mass[entity] = mass[entity] / total if total > 0.0 else 0.0
    for entity in space.everyone:
        chance = 0.0
        for edge in range(offsets[entity], offsets[entity + 1]):
            chance += weight[edge] * mass[target[edge]]
        following_mass[entity] = chance
    if walker.own >= 0:
        for end_of_own in range(2):
            entity = walker.subject if end_of_own == 0 else walker.other_end
            chance = 0.0
            for edge in range(offsets[entity], offsets[entity + 1]):
                if edges.fact[edge] != walker.own:
                    chance += weight[edge] * mass[target[edge]]
            following_mass[entity] = chance


@kernel
def likeliest_walk(
    edges: FactEdges,
    subject: int,
    answer: int,
    start: int,
    end: int,
    own: int,
    scale: float,
    length: int,
) -> tuple[Array, float]:
    """The likeliest soft walk of a given length from one entity to another.

    Returns:
        Its edges, none where there is no such walk; and its chance.
    """
    n_entities = len(edges.offsets) - 1
    best = np.zeros((length + 1, n_entities))
    came_by = np.full((length + 1, n_entities), -1, dtype=np.int64)
    space = _space(edges)
    weight = space.weight
    walker = _Walker(subject, _other_end(edges, subject, own), own, start, end, 0, scale)
    source = np.empty(len(edges.target), dtype=np.int64)
    best[0, subject] = 1.0
    _weigh(edges, walker, space, space.everyone)
    for step in range(length):
        for entity in range(n_entities):
            if best[step, entity] == 0.0:
                continue
            total = _total_without_own(edges, entity, walker, weight)
            for edge in range(edges.offsets[entity], edges.offsets[entity + 1]):
                if edges.fact[edge] == own or weight[edge] == 0.0:
                    continue
                source[edge] = entity
                chance = best[step, entity] * weight[edge] / total
                if chance > best[step + 1, edges.target[edge]]:
                    best[step + 1, edges.target[edge]] = chance
                    came_by[step + 1, edges.target[edge]] = edge
    chance = best[length, answer]
    if chance == 0.0:
        return np.empty(0, dtype=np.int64), chance
    walk = np.empty(length, dtype=np.int64)
    entity = answer
    for step in range(length, 0, -1):
        walk[step - 1] = came_by[step, entity]
        entity = source[came_by[step, entity]]
    return walk, chance


@kernel
def _other_end(edges: FactEdges, subject: int, own: int) -> int:
    """The other end of a query's own fact; -1 where it has none."""
    if own >= 0:
        for edge in range(edges.offsets[subject], edges.offsets[subject + 1]):
            if edges.fact[edge] == own:
                return edges.target[edge]
    return -1


@kernel
def _has_own(entity: int, walker: _Walker) -> bool:
    """Whether an entity is an end of the walker's own fact."""
    at_end = entity == walker.subject or entity == walker.other_end
    return walker.own >= 0 and at_end


@kernel
def _weigh(edges: FactEdges, walker: _Walker, space: _Space, entities: Array) -> None:
    """Know the weights of some entities' edges against the walker's time, and their sums."""
    of_interval, known_for = space.of_interval, space.known_for
    weight, weighed = space.weight, space.weighed
    for entity in entities:
        if weighed[entity] == walker.interval:
            continue
        weighed[entity] = walker.interval
        total = 0.0
        for edge in range(edges.offsets[entity], edges.offsets[entity + 1]):
            times = edges.interval[edge]
            if known_for[times] != walker.interval:
                known_for[times] = walker.interval
                gap = max(walker.start - edges.end[edge], edges.start[edge] - walker.end, 0)
                of_interval[times] = np.exp(-gap / walker.scale)
            weight[edge] = of_interval[times]
            total += weight[edge]
        space.total[entity] = total


@kernel
def _total_without_own(edges: FactEdges, entity: int, walker: _Walker, weight: Array) -> float:
    """The sum of the weights of an entity's edges but for the walker's own fact.

    Taken from the whole, the own fact would take all with it beside which others weigh little.
    """
    total = 0.0
    for edge in range(edges.offsets[entity], edges.offsets[entity + 1]):
        if edges.fact[edge] != walker.own:
            total += weight[edge]
    return total


@kernel
def _edges_of(edges: FactEdges, members: Array, n: int) -> int:
    """How many edges some entities have."""
    total = 0
    for place in range(n):
        total += edges.offsets[members[place] + 1] - edges.offsets[members[place]]
    return total


@kernel
def _likeliest(edges: FactEdges, members: Array, n: int, mass: Array, limit: int) -> int:
    """Keep the likeliest members whose edges are no more than the limit; the first one always."""
    if _edges_of(edges, members, n) <= limit:
        return n
    ordered = members[:n][np.argsort(-mass[members[:n]], kind="mergesort")]
    members[:n] = ordered
    kept = 1
    read = _edges_of(edges, members, 1)
    while kept < n:
        read += _edges_of(edges, members[kept:], 1)
        if read > limit:
            break
        kept += 1
    for place in range(kept, n):
        mass[members[place]] = 0.0
    return kept
