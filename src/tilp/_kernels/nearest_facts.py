"""Facts and walks that speak for candidates: the closest start of each relation (Appendix A)."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import grown
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, ListedCandidates
from tilp.time.relations import INCOMPARABLE, INFINITE
from tilp.time.relations import time_distance as plain_time_distance

BETWEEN, OTHERS, WALKS = 0, 1, 2
"""Facts between candidate and subject, the candidate's other facts, walks from subject to it."""

time_distance = kernel(plain_time_distance)


class DatedEdges(NamedTuple):
    """Facts and their inverses by entity, with their starts."""

    offsets: Array
    relation: Array
    target: Array
    fact: Array
    start: Array


@kernel
def gather_evidence(
    first: int,
    last: int,
    edges: DatedEdges,
    asked: ListedCandidates,
    column: Array,
    width: Array,
    max_length: int,
    limit: int,
) -> Array:
    """The closest start to the query's of each relation, by candidate and kind of evidence.

    Walks are not listed. What the walks of at most l steps from the subject hold is known for each
    entity they end in, as one number a relation; a step onward takes the smaller of two numbers.
    The last step is read from the candidate's end.

    Args:
        first: query to begin with; likewise `last`, where to stop.
        edges: that are evidence.
        asked: the queries.
        column: for each head, the place of each relation among those walked for it; -1: not walked.
        width: how many relations are walked for each head.
        max_length: of walks.
        limit: edges that are read at most on one level of walks, and of one candidate; the others,
            which stand later, are left out.

    Returns:
        Rows of candidate's place, kind, relation and time distance; by place, kind and relation.
    """
    n_entities = len(edges.offsets) - 1
    n_relations = column.shape[1] // 2
    room = min(n_entities, 1 + (max_length - 1) * limit)
    widest = max(width.max(), 1)
    slot = np.full(n_entities, -1, dtype=np.int32)
    members = np.empty(room, dtype=np.int32)
    steps = np.empty(room, dtype=np.int32)
    frontier = np.empty((2, room), dtype=np.int32)
    known = np.empty((room, widest), dtype=np.int32)
    onward = np.empty((room, widest), dtype=np.int32)
    by_walks = np.empty(widest, dtype=np.int32)
    others = np.empty((column.shape[1], 2), dtype=np.int64)
    rows = np.empty((1024, 4), dtype=np.int64)
    size = 0
    for query in range(first, last):
        subject, head, own = asked.subject[query], asked.directed_relation[query], asked.fact[query]
        start, wide = asked.start[query], width[head]
        reached = _walk(
            edges, subject, own, start, column[head], wide, max_length, limit, slot, members, steps,
            frontier, known, onward,
        )  # fmt: skip
        # Levels take turns with the two tables.
        last_known = known if max_length % 2 == 1 else onward
        for place in range(asked.offsets[query], asked.offsets[query + 1]):
            entity = asked.candidate[place]
            rows = grown(rows, size + 3 * column.shape[1])
            by_walks[:wide] = INFINITE
            n_others = 0
            edge = edges.offsets[entity]
            stop = min(edges.offsets[entity + 1], edge + limit)
            while edge < stop:
                relation = edges.relation[edge]
                towards = relation - n_relations if relation >= n_relations else (
                    relation + n_relations
                )  # fmt: skip
                at = column[head, towards]
                between = other = INFINITE
                while edge < stop and edges.relation[edge] == relation:
                    target = edges.target[edge]
                    if edges.fact[edge] != own:
                        code = time_distance(edges.start[edge], start)
                        if target == subject:
                            between = min(between, code)
                        else:
                            other = min(other, code)
                        if at >= 0 and slot[target] >= 0:
                            for one in range(wide):
                                by_walks[one] = min(by_walks[one], last_known[slot[target], one])
                            by_walks[at] = min(by_walks[at], code)
                    edge += 1
                if between < INFINITE:
                    size = _put(rows, size, place, BETWEEN, relation, between)
                if other < INFINITE:
                    others[n_others, 0] = relation
                    others[n_others, 1] = other
                    n_others += 1
            for one in range(n_others):
                size = _put(rows, size, place, OTHERS, others[one, 0], others[one, 1])
            for relation in range(column.shape[1]):
                at = column[head, relation]
                if at >= 0 and by_walks[at] < INCOMPARABLE:
                    size = _put(rows, size, place, WALKS, relation, by_walks[at])
        for one in range(reached):
            slot[members[one]] = -1
    return rows[:size].copy()


@kernel
def _put(rows: Array, size: int, place: int, kind: int, relation: int, code: int) -> int:
    """Write one row after the others."""
    rows[size, 0] = place
    rows[size, 1] = kind
    rows[size, 2] = relation
    rows[size, 3] = code
    return size + 1


@kernel
def _walk(
    edges: DatedEdges,
    subject: int,
    own: int,
    start: int,
    column: Array,
    wide: int,
    max_length: int,
    limit: int,
    slot: Array,
    members: Array,
    steps: Array,
    frontier: Array,
    known: Array,
    onward: Array,
) -> int:
    """Walk all but the last step from a subject.

    Args:
        slot: gets the place of each entity that is reached among `members`.
        steps: gets how long the longest walks to each member are.
        frontier: is for the members that walks of one length end in, in turns.
        known: gets what walks to each member hold, or `onward` does, in turns.

    Returns:
        How many entities are reached, the subject among them.
    """
    slot[subject] = 0
    members[0] = subject
    steps[0] = 0
    frontier[0, 0] = 0
    known[0, :wide] = INFINITE
    reached = at_front = 1
    for level in range(1, max_length):
        onward[:reached, :wide] = known[:reached, :wide]
        read = following = 0
        for place in range(at_front):
            source = frontier[(level - 1) % 2, place]
            low, high = edges.offsets[members[source]], edges.offsets[members[source] + 1]
            high = min(high, low + limit - read)
            read += high - low
            for edge in range(low, high):
                at = column[edges.relation[edge]]
                if at < 0 or edges.fact[edge] == own:
                    continue
                target = slot[edges.target[edge]]
                if target < 0:
                    target = reached
                    slot[edges.target[edge]] = target
                    members[target] = edges.target[edge]
                    steps[target] = 0
                    onward[target, :wide] = INFINITE
                    reached += 1
                if steps[target] < level:
                    steps[target] = level
                    frontier[level % 2, following] = target
                    following += 1
                for one in range(wide):
                    onward[target, one] = min(onward[target, one], known[source, one])
                code = time_distance(edges.start[edge], start)
                onward[target, at] = min(onward[target, at], code)
        known, onward = onward, known
        at_front = following
    return reached
