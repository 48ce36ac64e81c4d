"""Evidence for candidates (Appendix A): the closest start of each relation in facts and walks."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import grown
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, ListedCandidates
from tilp.time.relations import INCOMPARABLE, INFINITE
from tilp.time.relations import time_distance as plain_time_distance

BETWEEN, OTHERS, WALKS = range(3)
"""Facts between candidate and subject, the candidate's other facts, walks from subject to it."""

time_distance = kernel(plain_time_distance)


class DatedEdges(NamedTuple):
    """Facts and their inverses by entity, with their starts."""

    offsets: Array
    relation: Array
    target: Array
    fact: Array
    start: Array


class _Workspace(NamedTuple):
    """Entities reached by walks, and the closest start of each relation on walks to each."""

    index_of: Array  # of each entity among the members (-1: none)
    members: Array
    steps: Array  # length of the longest walks to each member
    frontier: Array  # two, in turn for each level of walks
    closest: Array  # in turn with the next one
    next_closest: Array


@kernel
def gather_evidence(
    first: int, last: int, edges: DatedEdges, listed: ListedCandidates, column: Array, width: Array,
    max_length: int, limit: int,
) -> Array:  # fmt: skip
    """Find the closest start to the query's of each relation, by candidate and kind of evidence.

    Walks are not listed. For each entity that walks of at most l steps end in, the closest start on
    them is known for each relation; a step onward takes the minimum of two such rows. The last step
    is read from the candidate's end. `column` is, for each relation of a query, the column of each
    walked relation (-1: not walked), `width` their number. Of one level of walks, and of one
    candidate, `limit` edges are read. Returns rows of candidate's index, kind, relation and time
    distance.
    """
    n_entities = len(edges.offsets) - 1
    n_relations = column.shape[1] // 2
    room = min(n_entities, 1 + (max_length - 1) * limit)
    max_width = max(width.max(), 1)
    space = _Workspace(
        np.full(n_entities, -1, dtype=np.int32), np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int32), np.empty((2, room), dtype=np.int32),
        np.empty((room, max_width), dtype=np.int64), np.empty((room, max_width), dtype=np.int64),
    )  # fmt: skip
    index_of = space.index_of
    by_walks = np.empty(max_width, dtype=np.int64)
    others = np.empty((column.shape[1], 2), dtype=np.int64)
    rows = np.empty((1024, 4), dtype=np.int64)
    size = 0
    for query in range(first, last):
        subject, query_fact = listed.subject[query], listed.fact[query]
        query_relation, start = listed.directed_relation[query], listed.start[query]
        n_walked = width[query_relation]
        n_reached = _walk(
            edges, subject, query_fact, start, column[query_relation], n_walked, max_length, limit,
            space,
        )  # fmt: skip
        closest = space.closest if max_length % 2 == 1 else space.next_closest
        for candidate in range(listed.offsets[query], listed.offsets[query + 1]):
            entity = listed.candidate[candidate]
            rows = grown(rows, size + 3 * column.shape[1])
            by_walks[:n_walked] = INFINITE
            n_others = 0
            edge = edges.offsets[entity]
            stop = min(edges.offsets[entity + 1], edge + limit)
            while edge < stop:
                relation = edges.relation[edge]
                inverse = relation + (n_relations if relation < n_relations else -n_relations)
                walked = column[query_relation, inverse]
                between = other = INFINITE
                while edge < stop and edges.relation[edge] == relation:
                    target = edges.target[edge]
                    if edges.fact[edge] != query_fact:
                        code = time_distance(edges.start[edge], start)
                        if target == subject:
                            between = min(between, code)
                        else:
                            other = min(other, code)
                        if walked >= 0 and index_of[target] >= 0:
                            for index in range(n_walked):
                                by_walks[index] = min(
                                    by_walks[index], closest[index_of[target], index]
                                )
                            by_walks[walked] = min(by_walks[walked], code)
                    edge += 1
                if between < INFINITE:
                    size = _append(rows, size, candidate, BETWEEN, relation, between)
                if other < INFINITE:
                    others[n_others, 0] = relation
                    others[n_others, 1] = other
                    n_others += 1
            for index in range(n_others):
                size = _append(rows, size, candidate, OTHERS, others[index, 0], others[index, 1])
            for relation in range(column.shape[1]):
                walked = column[query_relation, relation]
                if walked >= 0 and by_walks[walked] < INCOMPARABLE:
                    size = _append(rows, size, candidate, WALKS, relation, by_walks[walked])
        for index in range(n_reached):
            index_of[space.members[index]] = -1
    return rows[:size].copy()


@kernel
def _append(rows: Array, size: int, candidate: int, kind: int, relation: int, code: int) -> int:
    rows[size, 0] = candidate
    rows[size, 1] = kind
    rows[size, 2] = relation
    rows[size, 3] = code
    return size + 1


@kernel
def _walk(
    edges: DatedEdges, subject: int, query_fact: int, start: int, column: Array, n_walked: int,
    max_length: int, limit: int, space: _Workspace,
) -> int:  # fmt: skip
    """Walk all but the last step from a subject, and return how many entities are reached."""
    index_of, members, steps, frontier = space.index_of, space.members, space.steps, space.frontier
    closest, next_closest = space.closest, space.next_closest
    index_of[subject] = 0
    members[0] = subject
    steps[0] = 0
    frontier[0, 0] = 0
    closest[0, :n_walked] = INFINITE
    n_reached = n_frontier = 1
    for level in range(1, max_length):
        for member in range(n_reached):
            for index in range(n_walked):
                next_closest[member, index] = closest[member, index]
        n_read = n_next = 0
        for position in range(n_frontier):
            source = frontier[(level - 1) % 2, position]
            low, high = edges.offsets[members[source]], edges.offsets[members[source] + 1]
            high = min(high, low + limit - n_read)
            n_read += high - low
            for edge in range(low, high):
                walked = column[edges.relation[edge]]
                if walked < 0 or edges.fact[edge] == query_fact:
                    continue
                target = index_of[edges.target[edge]]
                if target < 0:
                    target = n_reached
                    index_of[edges.target[edge]] = target
                    members[target] = edges.target[edge]
                    steps[target] = 0
                    next_closest[target, :n_walked] = INFINITE
                    n_reached += 1
                if steps[target] < level:
                    steps[target] = level
                    frontier[level % 2, n_next] = target
                    n_next += 1
                for index in range(n_walked):
                    next_closest[target, index] = min(
                        next_closest[target, index], closest[source, index]
                    )
                code = time_distance(edges.start[edge], start)
                next_closest[target, walked] = min(next_closest[target, walked], code)
        closest, next_closest = next_closest, closest
        n_frontier = n_next
    return n_reached
