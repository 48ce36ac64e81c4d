"""Random walk scores: how likely a walker that prefers facts near the query's time ends where."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import stable_argsort
from tilp._kernels.candidate_history import FactEdges, interval_id
from tilp._kernels.jit import kernel
from tilp._kernels.levels import end_as_of
from tilp._kernels.types import Array, ListedCandidates

_PRESENT = 1e-300  # added to probabilities, so that a reached entity differs from others
_NEGLIGIBLE = 1e-3  # of the least probability that matters
_N_POWERS = 1024  # of two, that probabilities are told apart by
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
    latest: int
    interval: int
    scale: float


class Workspace(NamedTuple):
    """Weights of edges for the interval of a query, and probabilities of positions.

    Weights are valid where `weight_of_interval_for` and `weighed_for` are the interval's id. All
    probabilities are 0 between queries, so that a query costs what it touches.
    """

    next_id: Array  # of an interval, in the next call
    weight_of_interval: Array
    weight_of_interval_for: Array
    weight: Array
    total: Array
    weighed_for: Array
    mass: Array
    members: Array
    reached: Array
    touched: Array  # entities that are reached
    everyone: Array  # empty where no step is computed for every entity


def make_workspace(edges: FactEdges, limit: int) -> Workspace:
    """Return a workspace for walks of steps with a limit; memory is taken as it is touched."""
    n, n_intervals = len(edges.offsets) - 1, len(edges.starts)
    n_dense = n if len(edges.target) <= limit * _DENSE else 0
    return Workspace(
        np.ones(1, np.int64), np.empty(n_intervals), np.zeros(n_intervals, np.int64),
        np.empty(len(edges.target)), np.empty(n), np.zeros(n, np.int64), np.zeros((2, n)),
        np.empty((2, n), np.int32), np.zeros(n), np.empty(n, np.int32),
        np.arange(n_dense, dtype=np.int32),
    )  # fmt: skip


@kernel
def list_random_walk_scores(
    edges: FactEdges, listed: ListedCandidates, order: Array, settings: WalkSettings,
    space: Workspace,
) -> Array:  # fmt: skip
    """Return log(1 + p / least) of each listed candidate.

    p is the sum of the probabilities of the candidate after each number of steps that counts.
    `order` is that of the queries; those of one interval should stand together.
    """
    scores = np.zeros(len(listed.candidate))
    interval = 0
    for query in order:
        interval = interval_id(listed, query, interval)
        n_touched = _walk(edges, listed, query, interval, settings, space)
        for row in range(listed.offsets[query], listed.offsets[query + 1]):
            scores[row] = np.log(1.0 + space.reached[listed.candidate[row]] / settings.least)
        _clear_reached(space, n_touched)
    space.next_id[0] += len(listed.subject)
    return scores


@kernel
def add_random_walk_scores(
    edges: FactEdges, listed: ListedCandidates, order: Array, settings: WalkSettings,
    space: Workspace, weight: Array, score: Array,
) -> None:  # fmt: skip
    """Add to the scores of listed candidates their random walk scores, by each query's weight."""
    interval = 0
    for query in order:
        if weight[query] == 0.0:
            continue
        interval = interval_id(listed, query, interval)
        n_touched = _walk(edges, listed, query, interval, settings, space)
        for row in range(listed.offsets[query], listed.offsets[query + 1]):
            probability = space.reached[listed.candidate[row]]
            if probability > _NEGLIGIBLE * settings.least:
                score[row] += weight[query] * np.log(1.0 + probability / settings.least)
        _clear_reached(space, n_touched)
    space.next_id[0] += len(listed.subject)


@kernel
def _clear_reached(space: Workspace, n_touched: int) -> None:
    if n_touched < 0:
        space.reached[:] = 0.0
    for index in range(n_touched):
        space.reached[space.touched[index]] = 0.0


@kernel
def _walk(
    edges: FactEdges, listed: ListedCandidates, query: int, interval: int, settings: WalkSettings,
    space: Workspace,
) -> int:  # fmt: skip
    """Walk from a query's subject; `space.reached` gets the probabilities of positions.

    Returns how many are in `space.touched`; -1 if that may be any.
    """
    subject, query_fact = listed.subject[query], listed.fact[query]
    walker = _Walker(
        subject, _other_end(edges, subject, query_fact), query_fact, listed.start[query],
        listed.end[query], listed.latest[query], space.next_id[0] + interval, settings.scale,
    )  # fmt: skip
    mass, members, reached = space.mass, space.members, space.reached
    if settings.near >= settings.far:
        return 0
    mass[0, subject] = 1.0
    members[0, 0] = subject
    n = 1
    n_touched = 0
    dense = was_dense = False
    first, last = listed.offsets[query], listed.offsets[query + 1]
    few = (last - first) * _DENSE < len(reached)
    for step in range(settings.far):
        here, there = step % 2, (step + 1) % 2
        dense = dense or _count_edges(edges, members[here], n) * _DENSE > len(edges.target)
        dense = dense and len(edges.target) <= settings.limit * _DENSE
        was_dense = was_dense or dense
        if not dense:
            n = _limit_members(edges, members[here], n, mass[here], settings.limit)
        if few and step == settings.far - 1:  # the last step matters for listed candidates alone
            for row in range(first, last):
                members[there, row - first] = listed.candidate[row]
            sources = space.everyone if dense else members[here, :n]
            dense, n = False, last - first
            _step_to(edges, walker, space, here, there, sources, members[there, :n])
            for entity in sources:
                mass[here, entity] = 0.0
        elif dense:
            _step_to(edges, walker, space, here, there, space.everyone, space.everyone)
        else:
            n = _step(edges, walker, space, here, there, n)
        if step < settings.near:
            continue
        if dense:
            for entity in range(len(reached)):
                reached[entity] += mass[there, entity]
        else:
            for index in range(n):
                entity = members[there, index]
                if reached[entity] == 0.0 and mass[there, entity] > 0.0:
                    space.touched[n_touched] = entity
                    n_touched += 1
                reached[entity] += mass[there, entity]
                if step == settings.far - 1:  # a candidate may be listed twice
                    mass[there, entity] = 0.0
    if was_dense:
        mass[:] = 0.0
        return -1
    return n_touched


@kernel
def _step(
    edges: FactEdges, walker: _Walker, space: Workspace, here: int, there: int, n: int
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
            if fact[edge] != excluded and weight[edge] > 0.0:
                end = target[edge]
                if next_mass[end] == 0.0:
                    next_members[n_next] = end
                    n_next += 1
                next_mass[end] += share * weight[edge] + _PRESENT
    return n_next


@kernel
def _step_to(
    edges: FactEdges, walker: _Walker, space: Workspace, here: int, there: int, sources: Array,
    ends: Array,
) -> None:  # fmt: skip
    """Take one step from possible positions to the given ends; inverse edges weigh the same."""
    mass, next_mass = space.mass[here], space.mass[there]
    offsets, target, fact, weight = edges.offsets, edges.target, edges.fact, space.weight
    _weigh_edges(edges, walker, space, sources)
    _weigh_edges(edges, walker, space, ends)
    for entity in sources:
        total = space.total[entity]
        if _has_query_fact(entity, walker):
            total = _total_without_fact(edges, entity, walker, weight)
        mass[entity] = mass[entity] / total if total > 0.0 else 0.0
    for entity in ends:
        has_query_fact = _has_query_fact(entity, walker)
        probability = 0.0
        for edge in range(offsets[entity], offsets[entity + 1]):
            if not (has_query_fact and fact[edge] == walker.query_fact):
                probability += weight[edge] * mass[target[edge]]
        next_mass[entity] = probability


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
def _weigh_edges(edges: FactEdges, walker: _Walker, space: Workspace, entities: Array) -> None:
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
                start = edges.start[edge]
                until = end_as_of(start, edges.end[edge], walker.latest)
                gap = max(walker.start - until, start - walker.end, 0)
                near = np.exp(-gap / walker.scale)
                weight_of_interval[interval] = near if start <= walker.latest else 0.0
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
    """Reduce members to the likeliest, at least one, whose edges are within the limit.

    Probabilities are first told apart by powers of two. Only members of the power at which the
    limit is reached need to be sorted.
    """
    if _count_edges(edges, members, n) <= limit:
        return n
    power = np.empty(n, dtype=np.int32)
    n_edges_of = np.zeros(_N_POWERS, dtype=np.int64)
    for index in range(n):
        power[index] = min(max(int(-np.log2(mass[members[index]])), 0), _N_POWERS - 1)
        n_edges_of[power[index]] += _count_edges(edges, members[index:], 1)
    least = n_edges = 0
    while n_edges + n_edges_of[least] <= limit:
        n_edges += n_edges_of[least]
        least += 1
    n_left = n_last = 0
    last = np.empty(n, dtype=np.int32)
    unlikeliness = np.empty(n)
    for index in range(n):
        entity = members[index]
        if power[index] < least:
            members[n_left] = entity
            n_left += 1
        elif power[index] == least:
            last[n_last] = entity
            unlikeliness[n_last] = -mass[entity]
            n_last += 1
        else:
            mass[entity] = 0.0
    within = True
    for index in stable_argsort(unlikeliness[:n_last]):
        entity = last[index]
        n_edges += edges.offsets[entity + 1] - edges.offsets[entity]
        within = within and (n_edges <= limit or n_left == 0)
        if within:
            members[n_left] = entity
            n_left += 1
        else:
            mass[entity] = 0.0
    return n_left
