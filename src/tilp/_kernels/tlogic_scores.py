"""Timestamp rules applied: whom their bodies lead to, and what that scores.

Of the bodies of one rule that end in one candidate only the one counts whose first edge is nearest
to the query in time. So first edges are followed from the nearest on, and what an entity was gone
on from before is not gone through again: a later time there leads nowhere else. However many walks
there are, a rule then reads each edge once, or, where its bodies come back to an entity, once for
each such entity.
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.events import ByEntityRelation, edges_of, first_from
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

_NEVER = 2**62  # after every time, that of a query without a date too


class TLogicRules(NamedTuple):
    """Rules by head, those of head h at `begin[h]:begin[h + 1]` in the order of application.

    `same` is of each place the first with the same entity. `once[r, p]`: at place p an entity is
    gone on from once for each time; `apart[r]`: for each entity at the second place anew, since
    bodies come back to it.
    """

    begin: Array
    length: Array
    relations: Array
    same: Array
    confidence: Array
    once: Array
    apart: Array


class ScoringSettings(NamedTuple):
    """How queries are answered: see `TimestampRules`, whose words these are."""

    window: int
    ahead: bool
    decay: float
    share: float
    top: int


class _Space(NamedTuple):
    """To follow a rule in; what bears an older stamp does not count."""

    chain: Array
    next_edge: Array
    stop: Array
    stamp: Array
    gone_from: Array
    end_stamp: Array
    gap: Array
    ends: Array


@kernel
def score_queries(
    edges: ByEntityRelation,
    rules: TLogicRules,
    manner: ScoringSettings,
    subject: Array,
    head: Array,
    time: Array,
    own_fact: Array,
) -> tuple[Array, Array, Array]:
    """Apply the rules of each query's head, until its best candidates are told apart.

    A rule gives a candidate `share` of its confidence, and the rest for how near in time the first
    edge of its body is. Candidates are ordered by what rules give them, the highest first; as soon
    as the first `top` all differ, no further rule is applied.

    Args:
        edges: that are evidence; if not `ahead`, none at or after a query's time is read.
        rules: to apply.
        manner: how.
        subject: of each query; likewise `head`, `time` and `own_fact`, which is not walked.

    Returns:
        Where the candidates of each query begin, and where the last end; these, ascending; and
        their scores: -log(1 - noisy-or of what the rules give), which orders them as the noisy-or
        does, but is not rounded to 1.
    """
    n_entities = len(edges.offsets) - 1
    space = _make_space(n_entities, rules.relations.shape[1])
    begins = np.zeros(len(subject) + 1, dtype=np.int64)
    candidates = np.empty(1024, dtype=np.int32)
    scores = np.empty(1024)
    first = np.full(n_entities, -1, dtype=np.int64)  # of each candidate's values, as a chain
    value = np.empty(1024)
    after = np.empty(1024, dtype=np.int64)
    members = np.empty(n_entities, dtype=np.int32)
    best = np.empty(manner.top, dtype=np.int32)
    size = epoch = 0
    for query in range(len(subject)):
        n_members = n_values = n_best = 0
        for rule in range(rules.begin[head[query]], rules.begin[head[query] + 1]):
            n_ends, epoch = _follow(
                edges,
                rules,
                rule,
                manner,
                subject[query],
                time[query],
                own_fact[query],
                space,
                epoch,
            )
            while n_values + n_ends > len(value):
                value = np.concatenate((value, np.empty_like(value)))
                after = np.concatenate((after, np.empty_like(after)))
            for entity in space.ends[:n_ends]:
                if first[entity] < 0:
                    members[n_members] = entity
                    n_members += 1
                near = np.exp(-manner.decay * float(space.gap[entity]))
                value[n_values] = manner.share * rules.confidence[rule] + (1 - manner.share) * near
                _put(first, value, after, entity, n_values)
                n_values += 1
                n_best = _keep_best(best, n_best, entity, first, value, after)
            if n_ends > 0 and n_best == manner.top and _all_differ(best, first, value, after):
                break
        while size + n_members > len(candidates):
            candidates = np.concatenate((candidates, np.empty_like(candidates)))
            scores = np.concatenate((scores, np.empty_like(scores)))
        for entity in np.sort(members[:n_members]):
            total = 0.0
            place = first[entity]
            while place >= 0:
                total -= np.log1p(-value[place])
                place = after[place]
            candidates[size], scores[size] = entity, total
            first[entity] = -1
            size += 1
        begins[query + 1] = size
    return begins, candidates[:size].copy(), scores[:size].copy()


@kernel
def _make_space(n_entities: int, length: int) -> _Space:
    return _Space(
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
    manner: ScoringSettings,
    subject: int,
    now: int,
    own_fact: int,
    space: _Space,
    epoch: int,
) -> tuple[int, int]:
    """Find the ends of a rule's bodies, and how near in time the nearest body of each begins.

    Returns:
        How many `ends` there are, and the last stamp that was used.
    """
    length, same = rules.length[rule], rules.same[rule]
    low, high = edges_of(edges, subject, rules.relations[rule, 0])
    last = _NEVER if manner.ahead else now
    high = first_from(edges.time, low, high, last)
    if manner.window > 0:
        low = first_from(edges.time, low, high, now - manner.window)
    nearest_first = np.arange(high - 1, low - 1, -1)
    if manner.ahead:
        gaps = np.abs(edges.time[nearest_first] - now)
        nearest_first = nearest_first[np.argsort(gaps, kind="mergesort")]
    if rules.apart[rule]:
        by_target = np.argsort(edges.target[nearest_first], kind="mergesort")
        nearest_first = nearest_first[by_target]
    epoch += 1
    of_rule = epoch
    n_ends = 0
    before = -1
    space.chain[0] = subject
    for edge in nearest_first:
        if rules.apart[rule] and edges.target[edge] != before:
            before = edges.target[edge]
            epoch += 1
        gap = abs(edges.time[edge] - now)
        space.next_edge[0], space.stop[0] = edge, edge + 1
        depth = 0
        while depth >= 0:
            here = space.next_edge[depth]
            if here == space.stop[depth]:
                depth -= 1
                continue
            space.next_edge[depth] += 1
            entity = edges.target[here]
            place = depth + 1
            if edges.fact[here] == own_fact:
                continue
            if same[place] != place and space.chain[same[place]] != entity:
                continue
            if place == length:
                if space.end_stamp[entity] != of_rule:
                    space.end_stamp[entity] = of_rule
                    space.gap[entity] = gap
                    space.ends[n_ends] = entity
                    n_ends += 1
                space.gap[entity] = min(gap, space.gap[entity])
                continue
            arrived = edges.time[here]
            until = last
            if rules.once[rule, place]:
                if space.stamp[place, entity] == epoch:
                    until = space.gone_from[place, entity]
                    if arrived >= until:
                        continue
                space.stamp[place, entity] = epoch
                space.gone_from[place, entity] = arrived
            low, high = edges_of(edges, entity, rules.relations[rule, place])
            low = first_from(edges.time, low, high, arrived)
            high = first_from(edges.time, low, high, until)
            if low < high:
                space.chain[place] = entity
                space.next_edge[place], space.stop[place] = low, high
                depth = place
    return n_ends, epoch


@kernel
def _put(first: Array, value: Array, after: Array, entity: int, new: int) -> None:
    """Put a value into a candidate's chain, the highest first."""
    here, before = first[entity], -1
    while here >= 0 and value[here] >= value[new]:
        here, before = after[here], here
    after[new] = here
    if before < 0:
        first[entity] = new
    else:
        after[before] = new


@kernel
def _order(first: Array, value: Array, after: Array, entity: int, other: int) -> int:
    """Whether a candidate comes after another (-1), before it (1), or has the same values (0)."""
    here, there = first[entity], first[other]
    while here >= 0 and there >= 0:
        if value[here] != value[there]:
            return 1 if value[here] > value[there] else -1
        here, there = after[here], after[there]
    return int(here >= 0) - int(there >= 0)


@kernel
def _keep_best(
    best: Array, n_best: int, entity: int, first: Array, value: Array, after: Array
) -> int:
    """Put a candidate with a new value where it belongs among the best; how many these then are."""
    place = 0
    while place < n_best and best[place] != entity:
        place += 1
    if place == n_best:  # it is none of them yet
        if n_best < len(best):
            n_best += 1
        elif _order(first, value, after, entity, best[n_best - 1]) > 0:
            place -= 1
        else:
            return n_best
    while place > 0 and _order(first, value, after, entity, best[place - 1]) > 0:
        best[place] = best[place - 1]
        place -= 1
    best[place] = entity
    return n_best


@kernel
def _all_differ(best: Array, first: Array, value: Array, after: Array) -> bool:
    """Whether no two of the best have the same values."""
    for place in range(1, len(best)):
        if _order(first, value, after, best[place - 1], best[place]) == 0:
            return False
    return True
