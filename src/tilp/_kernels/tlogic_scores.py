"""Application of TLogic rules: the entities that their bodies reach, and the scores of these.

Of the bodies of one rule that end in one candidate only that counts whose first edge is nearest to
the query in time. So first edges are followed from the nearest on, and an entity is not left again
at a later time than before: that leads nowhere else. However many walks there are, a rule reads
each edge once, or, where its bodies return to an entity, once for each such entity.
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import lower_bound
from tilp._kernels.events import ByEntityRelation, find_edges
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

_NEVER = 2**62  # after every time, that of a query without a date too


class TLogicRules(NamedTuple):
    """Rules of relation r at `offsets[r]:offsets[r + 1]`, in the order of application.

    `same` is, of each position in a rule, the first position with the same entity. `once[r, p]`: an
    entity at position p is left once for each time; `apart[r]`: anew for each entity at the second
    position, since bodies return to it.
    """

    offsets: Array
    length: Array
    relations: Array
    same: Array
    confidence: Array
    once: Array
    apart: Array


class ScoringSettings(NamedTuple):
    """Settings of `TimestampRules` that concern the answering of queries."""

    window: int
    ahead: bool
    decay: float
    share: float
    top: int


class _Workspace(NamedTuple):
    """Space to follow a rule in; items with an older stamp are not valid."""

    chain: Array
    next_edge: Array
    stop: Array
    stamp: Array
    left_at: Array
    end_stamp: Array
    gap: Array
    ends: Array


class _Values(NamedTuple):
    """What rules give each candidate, as linked lists, the highest first.

    `first` is the first value of each entity, `next` the one after each value (-1: the end).
    """

    first: Array
    value: Array
    next: Array


@kernel
def score_queries(
    edges: ByEntityRelation,
    rules: TLogicRules,
    settings: ScoringSettings,
    subject: Array,
    relation: Array,
    time: Array,
    query_fact: Array,
) -> tuple[Array, Array, Array]:
    """Apply the rules of each query's relation, until its best candidates differ.

    A rule gives a candidate `share` of its confidence, and the rest for how near in time the first
    edge of its body is. Candidates are ordered by what rules give them, the highest first; as soon
    as the first `top` all differ, no further rule is applied. Unless `ahead`, no edge at or after
    a query's time is read.

    Returns:
        Offsets of the candidates of each query; these, ascending; and their scores:
        -log(1 - noisy-or of what the rules give), which orders them as the noisy-or does, but is
        not rounded to 1.
    """
    n_entities = len(edges.offsets) - 1
    space = _make_workspace(n_entities, rules.relations.shape[1])
    offsets = np.zeros(len(subject) + 1, dtype=np.int64)
    candidates = np.empty(1024, dtype=np.int32)
    scores = np.empty(1024)
    values = _Values(
        np.full(n_entities, -1, dtype=np.int64), np.empty(1024), np.empty(1024, dtype=np.int64)
    )
    members = np.empty(n_entities, dtype=np.int32)
    best = np.empty(settings.top, dtype=np.int32)
    size = epoch = 0
    for query in range(len(subject)):
        n_members = n_values = n_best = 0
        for rule in range(rules.offsets[relation[query]], rules.offsets[relation[query] + 1]):
            n_ends, epoch = _follow(
                edges, rules, rule, settings, subject[query], time[query], query_fact[query], space,
                epoch,
            )  # fmt: skip
            while n_values + n_ends > len(values.value):
                values = _Values(
                    values.first,
                    np.concatenate((values.value, np.empty_like(values.value))),
                    np.concatenate((values.next, np.empty_like(values.next))),
                )
            for entity in space.ends[:n_ends]:
                if values.first[entity] < 0:
                    members[n_members] = entity
                    n_members += 1
                near = np.exp(-settings.decay * float(space.gap[entity]))
                values.value[n_values] = (
                    settings.share * rules.confidence[rule] + (1 - settings.share) * near
                )
                _insert(values, entity, n_values)
                n_values += 1
                n_best = _update_best(best, n_best, entity, values)
            if n_ends > 0 and n_best == settings.top and _all_differ(best, values):
                break
        while size + n_members > len(candidates):
            candidates = np.concatenate((candidates, np.empty_like(candidates)))
            scores = np.concatenate((scores, np.empty_like(scores)))
        for entity in np.sort(members[:n_members]):
            total = 0.0
            index = values.first[entity]
            while index >= 0:
                total -= np.log1p(-values.value[index])
                index = values.next[index]
            candidates[size], scores[size] = entity, total
            values.first[entity] = -1
            size += 1
        offsets[query + 1] = size
    return offsets, candidates[:size].copy(), scores[:size].copy()


@kernel
def _make_workspace(n_entities: int, length: int) -> _Workspace:
    return _Workspace(
        np.empty(length + 1, dtype=np.int32),
        np.empty(length, dtype=np.int64),
        np.empty(length, dtype=np.int64),
        np.zeros((length, n_entities), dtype=np.int64),
        np.empty((length, n_entities), dtype=np.int64),
        np.zeros(n_entities, dtype=np.int64),
        np.empty(n_entities, dtype=np.int64),
        np.empty(n_entities, dtype=np.int32),
    )


@kernel
def _follow(
    edges: ByEntityRelation,
    rules: TLogicRules,
    rule: int,
    settings: ScoringSettings,
    subject: int,
    now: int,
    query_fact: int,
    space: _Workspace,
    epoch: int,
) -> tuple[int, int]:
    """Find the ends of a rule's bodies, and how near in time the nearest body of each begins.

    Returns:
        The number of `space.ends`, and the last stamp that was used.
    """
    length, same = rules.length[rule], rules.same[rule]
    low, high = find_edges(edges, subject, rules.relations[rule, 0])
    last = _NEVER if settings.ahead else now
    high = lower_bound(edges.time, low, high, last)
    if settings.window > 0:
        low = lower_bound(edges.time, low, high, now - settings.window)
    nearest_first = np.arange(high - 1, low - 1, -1)
    if settings.ahead:
        gaps = np.abs(edges.time[nearest_first] - now)
        nearest_first = nearest_first[np.argsort(gaps, kind="mergesort")]
    if rules.apart[rule]:
        by_target = np.argsort(edges.target[nearest_first], kind="mergesort")
        nearest_first = nearest_first[by_target]
    epoch += 1
    rule_epoch = epoch
    n_ends = 0
    previous = -1
    space.chain[0] = subject
    for first_edge in nearest_first:
        if rules.apart[rule] and edges.target[first_edge] != previous:
            previous = edges.target[first_edge]
            epoch += 1
        gap = abs(edges.time[first_edge] - now)
        space.next_edge[0], space.stop[0] = first_edge, first_edge + 1
        depth = 0
        while depth >= 0:
            edge = space.next_edge[depth]
            if edge == space.stop[depth]:
                depth -= 1
                continue
            space.next_edge[depth] += 1
            entity = edges.target[edge]
            position = depth + 1
            if edges.fact[edge] == query_fact:
                continue
            if same[position] != position and space.chain[same[position]] != entity:
                continue
            if position == length:
                if space.end_stamp[entity] != rule_epoch:
                    space.end_stamp[entity] = rule_epoch
                    space.gap[entity] = gap
                    space.ends[n_ends] = entity
                    n_ends += 1
                space.gap[entity] = min(gap, space.gap[entity])
                continue
            arrived = edges.time[edge]
            until = last
            if rules.once[rule, position]:
                if space.stamp[position, entity] == epoch:
                    until = space.left_at[position, entity]
                    if arrived >= until:
                        continue
                space.stamp[position, entity] = epoch
                space.left_at[position, entity] = arrived
            low, high = find_edges(edges, entity, rules.relations[rule, position])
            low = lower_bound(edges.time, low, high, arrived)
            high = lower_bound(edges.time, low, high, until)
            if low < high:
                space.chain[position] = entity
                space.next_edge[position], space.stop[position] = low, high
                depth = position
    return n_ends, epoch


@kernel
def _insert(values: _Values, entity: int, new: int) -> None:
    """Insert a value into a candidate's list."""
    index, previous = values.first[entity], -1
    while index >= 0 and values.value[index] >= values.value[new]:
        index, previous = values.next[index], index
    values.next[new] = index
    if previous < 0:
        values.first[entity] = new
    else:
        values.next[previous] = new


@kernel
def _compare(values: _Values, entity: int, other: int) -> int:
    """Return 1 if a candidate comes before another, -1 if after, 0 if their values are equal."""
    here, there = values.first[entity], values.first[other]
    while here >= 0 and there >= 0:
        if values.value[here] != values.value[there]:
            return 1 if values.value[here] > values.value[there] else -1
        here, there = values.next[here], values.next[there]
    return int(here >= 0) - int(there >= 0)


@kernel
def _update_best(best: Array, n_best: int, entity: int, values: _Values) -> int:
    """Put a candidate with a new value where it belongs among the best, and return their number."""
    index = 0
    while index < n_best and best[index] != entity:
        index += 1
    if index == n_best:  # not among them yet
        if n_best < len(best):
            n_best += 1
        elif _compare(values, entity, best[n_best - 1]) > 0:
            index -= 1
        else:
            return n_best
    while index > 0 and _compare(values, entity, best[index - 1]) > 0:
        best[index] = best[index - 1]
        index -= 1
    best[index] = entity
    return n_best


@kernel
def _all_differ(best: Array, values: _Values) -> bool:
    """Return whether no two of the best have the same values."""
    for index in range(1, len(best)):  # noqa: SIM110
        if _compare(values, best[index - 1], best[index]) == 0:
            return False
    return True
