"""TLogic: walks from a fact back in time, counts of rule bodies, and scores of candidates.

Of the bodies of one rule that end in one candidate only that counts whose first edge is nearest to
the query in time. So first edges are followed from the nearest on, and an entity is not left again
at a later time than before: that leads nowhere else. However many walks there are, a rule reads
each edge once, or, where its bodies return to an entity, once for each such entity.
"""

from typing import Any, NamedTuple

import numpy as np

from tilp._kernels import arrays
from tilp._kernels.arrays import find_sorted, longer, lower_bound, radix_sort, stable_argsort
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, ByEntityRelation, ByRelation, ByTime

_NEGLIGIBLE = 40  # so much earlier than the latest, an edge's share is lost in rounding
_NEVER = 2**62  # after every time, that of a query without a date too


@kernel
def find_edges(edges: ByEntityRelation, entity: int, relation: int) -> tuple[int, int]:
    """Return where the edges of an entity's relation begin and end."""
    run = find_sorted(edges.relation, edges.offsets[entity], edges.offsets[entity + 1], relation)
    if run < 0:
        return 0, 0
    return edges.run_offsets[run], edges.run_offsets[run + 1]


@kernel
def walk_back(
    edges: ByTime, first_edges: ByRelation, n_relations: int, relation: int, length: int,
    n_walks: int, exponential: bool, seed: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Try `n_walks` times to walk a cycle that begins with an edge of a relation.

    A walk begins with any edge (s, relation, o, t) and goes on from o for `length` steps, along
    edges that are earlier than t and then no later than the one before, never back along the same
    fact at once; its last step leads to s. The edges that it may take are equally likely, or, if
    `exponential`, e times as likely as those one unit of time earlier. Returns entities, relations
    and times of each walk that closed, in the order of the walk.
    """
    entities = np.empty((n_walks, length + 2), dtype=np.int32)
    relations = np.empty((n_walks, length + 1), dtype=np.int32)
    times = np.empty((n_walks, length + 1), dtype=np.int64)
    begin, end = first_edges.offsets[relation], first_edges.offsets[relation + 1]
    n = 0
    for _ in range(n_walks if begin < end else 0):
        first = begin + int(arrays.uniform(seed) * (end - begin))
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
                arrays.uniform(seed),
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
    edges: ByTime, low: int, high: int, required: int, inverse: int, source: int, until: int,
    exponential: bool, random: float,
) -> int:  # fmt: skip
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
    edges: ByEntityRelation, first_edges: ByRelation, relation: int, body_relations: Array,
    same: Array, n_samples: int, seeds: Array,
) -> tuple[Array, Array]:  # fmt: skip
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
            first = begin + int(arrays.uniform(seed) * (end - begin))
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
                edge = low + int(arrays.uniform(seed) * (high - low))
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


class TLogicRules(NamedTuple):
    """Rules by relation, in the order of application."""

    offsets: Array  # where the rules of each relation begin
    length: Array
    relations: Array
    same: Array  # of each position, the first position with the same entity
    confidence: Array
    once: Array  # [rule, position]: an entity there is left once for each time
    apart: Array  # left anew for each entity at the second position, since bodies return to it


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
    """What rules give each candidate, as linked lists, the highest first."""

    first: Array  # first value of each entity
    value: Array
    next: Array  # the one after each value (-1: the end)


@kernel
def score_queries(
    edges: ByEntityRelation, rules: TLogicRules, settings: ScoringSettings, subject: Array,
    relation: Array, time: Array, query_fact: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Apply the rules of each query's relation, until its best candidates differ.

    A rule gives a candidate `share` of its confidence, and the rest for how near in time the first
    edge of its body is. Candidates are ordered by what rules give them, the highest first; as soon
    as the first `top` all differ, no further rule is applied. Unless `ahead`, no edge at or after a
    query's time is read. Returns offsets, candidates, ascending, and scores: -log(1 - noisy-or of
    what the rules give), which orders them as the noisy-or does, but is not rounded to 1.
    """
    n_entities = len(edges.offsets) - 1
    space = _make_workspace(n_entities, rules.relations.shape[1])
    offsets = np.zeros(len(subject) + 1, dtype=np.int64)
    candidates = np.empty(1024, dtype=np.int32)
    scores = np.empty(1024)
    values = _Values(
        np.full(n_entities, -1, dtype=np.int64), np.empty(1024), np.empty(1024, dtype=np.int64)
    )
    members = np.empty(n_entities, dtype=np.uint32)
    best = np.empty(settings.top, dtype=np.int32)
    size = epoch = 0
    for query in range(len(subject)):
        n_members = n_values = n_best = 0
        for rule in range(rules.offsets[relation[query]], rules.offsets[relation[query] + 1]):
            n_ends, epoch = _follow(
                edges, rules, rule, settings, subject[query], time[query], query_fact[query], space,
                epoch,
            )  # fmt: skip
            n_room = n_values + n_ends
            values = _Values(
                values.first, longer(values.value, n_room), longer(values.next, n_room)
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
        candidates = longer(candidates, size + n_members)
        scores = longer(scores, size + n_members)
        for entity in radix_sort(members[:n_members].copy(), n_entities):
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
        np.empty(length + 1, dtype=np.int32), np.empty(length, dtype=np.int64),
        np.empty(length, dtype=np.int64), np.zeros((length, n_entities), dtype=np.int64),
        np.empty((length, n_entities), dtype=np.int64), np.zeros(n_entities, dtype=np.int64),
        np.empty(n_entities, dtype=np.int64), np.empty(n_entities, dtype=np.int32),
    )  # fmt: skip


@kernel
def _follow(
    edges: ByEntityRelation, rules: TLogicRules, rule: int, settings: ScoringSettings, subject: int,
    now: int, query_fact: int, space: _Workspace, epoch: int,
) -> tuple[int, int]:  # fmt: skip
    """Write the ends of a rule's bodies with their gaps; return their number and the last stamp."""
    length, same = rules.length[rule], rules.same[rule]
    low, high = find_edges(edges, subject, rules.relations[rule, 0])
    last = _NEVER if settings.ahead else now
    high = lower_bound(edges.time, low, high, last)
    if settings.window > 0:
        low = lower_bound(edges.time, low, high, now - settings.window)
    nearest_first = np.arange(high - 1, low - 1, -1)
    if settings.ahead:
        gaps = np.abs(edges.time[nearest_first] - now)
        nearest_first = nearest_first[stable_argsort(gaps)]
    if rules.apart[rule]:
        nearest_first = nearest_first[stable_argsort(edges.target[nearest_first])]
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
