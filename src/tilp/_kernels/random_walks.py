"""Random walk scores: how likely a walker that prefers facts near the query's time ends where."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import stable_argsort
from tilp._kernels.candidate_history import FactEdges, interval_id
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, ListedCandidates

_PRESENT = 1e-300  # added to probabilities, so that a reached entity differs from others
_NEGLIGIBLE = 1e-3  # of the least probability that matters
_DENSE = 4  # from an n-th of all edges on, a step is computed for every entity from its own edges


class WalkSettings(NamedTuple):
    """Settings of the random walk.

    From each entity the walker takes one of its edges, with probability in proportion to
    exp(-gap / scale), where gap is the time between the edge's interval and the query's. Its
    position counts after more than `near` steps, up to `far`. One step reads at most `limit` edges,
    those of the likeliest positions. Probabilities far below `least` count as 0.
    """

    scale: float
    near: int
    far: int
    limit: int
    least: float


class _Walker(NamedTuple):
    """Subject, own fact with its other end, and interval of a query; `interval` is its id."""

    subject: int
    other_end: int
    query_fact: int
    start: int
    end: int
    interval: int
    scale: float


class _Workspace(NamedTuple):
    """Weights of edges for the interval of a query, and probabilities of positions.

    Weights are valid where `weight_of_interval_for` and `weighed_for` are the interval's id.
    """

    weight_of_interval: Array
    weight_of_interval_for: Array
    weight: Array
    total: Array
    weighed_for: Array
    mass: Array
    members: Array
    reached: Array
    everyone: Array


@kernel
def _make_workspace(edges: FactEdges) -> _Workspace:
    n = len(edges.offsets) - 1
    return _Workspace(
        np.empty(len(edges.starts)), np.full(len(edges.starts), -1, dtype=np.int64),
        np.empty(len(edges.target)), np.zeros(n), np.full(n, -1, dtype=np.int64), np.zeros((2, n)),
        np.empty((2, n), dtype=np.int32), np.zeros(n), np.arange(n, dtype=np.int32),
    )  # fmt: skip


@kernel
def list_random_walk_scores(
    edges: FactEdges, listed: ListedCandidates, order: Array, settings: WalkSettings
) -> Array:
    """Return log(1 + p / least) of each listed candidate.

    p is the sum of the probabilities of the candidate after each number of steps that counts.
    `order` is that of the queries; those of one interval should stand together.
    """
    scores = np.zeros(len(listed.candidate))
    space = _make_workspace(edges)
    interval = 0
    for query in order:
        interval = interval_id(listed, query, interval)
        _walk(edges, listed, query, interval, settings, space)
        for row in range(listed.offsets[query], listed.offsets[query + 1]):
            scores[row] = np.log(1.0 + space.reached[listed.candidate[row]] / settings.least)
    return scores


@kernel
def add_random_walk_scores(
    edges: FactEdges, listed: ListedCandidates, order: Array, settings: WalkSettings, weight: Array,
    score: Array,
) -> None:  # fmt: skip
    """Add to the scores of listed candidates their random walk scores, by each query's weight."""
    space = _make_workspace(edges)
    interval = 0
    for query in order:
        if weight[query] == 0.0:
            continue
        interval = interval_id(listed, query, interval)
        _walk(edges, listed, query, interval, settings, space)
        for row in range(listed.offsets[query], listed.offsets[query + 1]):
            probability = space.reached[listed.candidate[row]]
            if probability > _NEGLIGIBLE * settings.least:
                score[row] += weight[query] * np.log(1.0 + probability / settings.least)


@kernel
def _walk(
    edges: FactEdges, listed: ListedCandidates, query: int, interval: int, settings: WalkSettings,
    space: _Workspace,
) -> None:  # fmt: skip
    """Walk from a query's subject; `space.reached` gets the probabilities of positions."""
    subject, query_fact = listed.subject[query], listed.fact[query]
    walker = _Walker(
        subject, _other_end(edges, subject, query_fact), query_fact, listed.start[query],
        listed.end[query], interval, settings.scale,
    )  # fmt: skip
    mass, members, reached = space.mass, space.members, space.reached
    reached[:] = 0.0
    if settings.near >= settings.far:
        return
    mass[0, subject] = 1.0
    members[0, 0] = subject
    n = 1
    dense = False
    for step in range(settings.far):
        here, there = step % 2, (step + 1) % 2
        dense = dense or _count_edges(edges, members[here], n) * _DENSE > len(edges.target)
        if dense and len(edges.target) <= settings.limit * _DENSE:
            _step_to_all(edges, walker, space, here, there)
        else:
            dense = False
            n = _limit_members(edges, members[here], n, mass[here], settings.limit)
            n = _step(edges, walker, space, here, there, n)
        if step < settings.near:
            continue
        if dense:
            for entity in range(len(reached)):
                reached[entity] += mass[there, entity]
        else:
            for index in range(n):
                reached[members[there, index]] += mass[there, members[there, index]]
    mass[:] = 0.0


@kernel
def _step(
    edges: FactEdges, walker: _Walker, space: _Workspace, here: int, there: int, n: int
) -> int:
    """Take one step from the n possible positions, and return how many are possible then."""
    mass, next_mass = space.mass[here], space.mass[there]
    members, next_members = space.members[here], space.members[there]
    offsets, target, fact, weight = edges.offsets, edges.target, edges.fact, space.weight
    _weigh_edges(edges, walker, space, members[:n])
    n_next = 0
    for index in range(n):
        entity = members[index]
        total, excluded = space.total[entity], -1
        if _has_query_fact(entity, walker):
            total, excluded = _total_without_fact(edges, entity, walker, weight), walker.query_fact
        share = mass[entity]
        mass[entity] = 0.0
        if total == 0.0:
            continue
        share /= total
        for edge in range(offsets[entity], offsets[entity + 1]):
            if fact[edge] != excluded:
                end = target[edge]
                if next_mass[end] == 0.0:
                    next_members[n_next] = end
                    n_next += 1
                next_mass[end] += share * weight[edge] + _PRESENT
    return n_next


@kernel
def _step_to_all(
    edges: FactEdges, walker: _Walker, space: _Workspace, here: int, there: int
) -> None:
    """Take one step, computed from where it ends: an inverse edge has the same weight."""
    mass, next_mass = space.mass[here], space.mass[there]
    offsets, target, weight = edges.offsets, edges.target, space.weight
    _weigh_edges(edges, walker, space, space.everyone)
    for entity in space.everyone:
        total = space.total[entity]
        if _has_query_fact(entity, walker):
            total = _total_without_fact(edges, entity, walker, weight)
        mass[entity] = mass[entity] / total if total > 0.0 else 0.0
    for entity in space.everyone:
        probability = 0.0
        for edge in range(offsets[entity], offsets[entity + 1]):
            probability += weight[edge] * mass[target[edge]]
        next_mass[entity] = probability
    if walker.query_fact >= 0:
        for end in range(2):
            entity = walker.subject if end == 0 else walker.other_end
            probability = 0.0
            for edge in range(offsets[entity], offsets[entity + 1]):
                if edges.fact[edge] != walker.query_fact:
                    probability += weight[edge] * mass[target[edge]]
            next_mass[entity] = probability


@kernel
def likeliest_walk(
    edges: FactEdges, subject: int, answer: int, start: int, end: int, query_fact: int,
    scale: float, length: int,
) -> tuple[Array, float]:  # fmt: skip
    """Return the edges of the likeliest walk of a length, none without any, and its probability."""
    n_entities = len(edges.offsets) - 1
    best = np.zeros((length + 1, n_entities))
    best_edge = np.full((length + 1, n_entities), -1, dtype=np.int64)
    space = _make_workspace(edges)
    weight = space.weight
    other_end = _other_end(edges, subject, query_fact)
    walker = _Walker(subject, other_end, query_fact, start, end, 0, scale)
    source = np.empty(len(edges.target), dtype=np.int64)
    best[0, subject] = 1.0
    _weigh_edges(edges, walker, space, space.everyone)
    for step in range(length):
        for entity in range(n_entities):
            if best[step, entity] == 0.0:
                continue
            total = _total_without_fact(edges, entity, walker, weight)
            for edge in range(edges.offsets[entity], edges.offsets[entity + 1]):
                if edges.fact[edge] == query_fact or weight[edge] == 0.0:
                    continue
                source[edge] = entity
                probability = best[step, entity] * weight[edge] / total
                if probability > best[step + 1, edges.target[edge]]:
                    best[step + 1, edges.target[edge]] = probability
                    best_edge[step + 1, edges.target[edge]] = edge
    probability = best[length, answer]
    if probability == 0.0:
        return np.empty(0, dtype=np.int64), probability
    walk = np.empty(length, dtype=np.int64)
    entity = answer
    for step in range(length, 0, -1):
        walk[step - 1] = best_edge[step, entity]
        entity = source[best_edge[step, entity]]
    return walk, probability


@kernel
def _other_end(edges: FactEdges, subject: int, query_fact: int) -> int:
    """Return the other end of a query's own fact, or -1."""
    if query_fact >= 0:
        for edge in range(edges.offsets[subject], edges.offsets[subject + 1]):
            if edges.fact[edge] == query_fact:
                return edges.target[edge]
    return -1


@kernel
def _has_query_fact(entity: int, walker: _Walker) -> bool:
    at_end = entity == walker.subject or entity == walker.other_end
    return walker.query_fact >= 0 and at_end


@kernel
def _weigh_edges(edges: FactEdges, walker: _Walker, space: _Workspace, entities: Array) -> None:
    """Compute the weights of entities' edges at the walker's time, and their sums, unless done."""
    weight_of_interval, computed_for = space.weight_of_interval, space.weight_of_interval_for
    weight, weighed_for = space.weight, space.weighed_for
    for entity in entities:
        if weighed_for[entity] == walker.interval:
            continue
        weighed_for[entity] = walker.interval
        total = 0.0
        for edge in range(edges.offsets[entity], edges.offsets[entity + 1]):
            interval = edges.interval[edge]
            if computed_for[interval] != walker.interval:
                computed_for[interval] = walker.interval
                gap = max(walker.start - edges.end[edge], edges.start[edge] - walker.end, 0)
                weight_of_interval[interval] = np.exp(-gap / walker.scale)
            weight[edge] = weight_of_interval[interval]
            total += weight[edge]
        space.total[entity] = total


@kernel
def _total_without_fact(edges: FactEdges, entity: int, walker: _Walker, weight: Array) -> float:
    """Return the sum of the weights of an entity's edges, without the walker's own fact.

    Subtracted from the total, that fact would cancel all edges that weigh little beside it.
    """
    total = 0.0
    for edge in range(edges.offsets[entity], edges.offsets[entity + 1]):
        if edges.fact[edge] != walker.query_fact:
            total += weight[edge]
    return total


@kernel
def _count_edges(edges: FactEdges, members: Array, n: int) -> int:
    total = 0
    for index in range(n):
        total += edges.offsets[members[index] + 1] - edges.offsets[members[index]]
    return total


@kernel
def _limit_members(edges: FactEdges, members: Array, n: int, mass: Array, limit: int) -> int:
    """Reduce members to the likeliest, at least one, whose edges are within the limit."""
    if _count_edges(edges, members, n) <= limit:
        return n
    ordered = members[:n].copy()
    unlikeliness = np.empty(n)
    for index in range(n):
        unlikeliness[index] = -mass[ordered[index]]
    for index, source in enumerate(stable_argsort(unlikeliness)):
        members[index] = ordered[source]
    n_left = 1
    n_edges = _count_edges(edges, members, 1)
    while n_left < n:
        n_edges += _count_edges(edges, members[n_left:], 1)
        if n_edges > limit:
            break
        n_left += 1
    for index in range(n_left, n):
        mass[members[index]] = 0.0
    return n_left
