"""All walks from one entity, length by length, in the order of their bodies and targets.

The walks of one length are the prefixes of those of the next. A *body* is a walk without its
query: its relations, and the temporal relations between its own intervals as far as a form
distinguishes them. A *group* is the walks of one body that end in one entity. All of this is done
once for an entity and serves all of its queries.

No walk is hashed or compared to find its body: walks are made in the order of the last edge's
relation and target, and a stable counting sort by what comes before does the rest.
"""

import numpy as np

from tilp._kernels.arrays import (
    counting_order,
    find_sorted,
    radix_sort,
    stable_argsort,
    uniform,
)
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, Edges, Trie
from tilp.time import TemporalRelation, temporal_relation_code
from tilp.time import end_as_of as plain_end_as_of

N_TEMPORAL_RELATIONS = len(TemporalRelation)

relation_code = kernel(temporal_relation_code)
end_as_of = kernel(plain_end_as_of)


@kernel
def next_relations(trie: Trie, nodes: Array, n_directed: int) -> Array:
    """Mask the relations that may follow some of the prefixes, given their nodes in the trie."""
    offsets, relation = trie.offsets, trie.relation
    allowed = np.zeros(n_directed, dtype=np.bool_)
    if len(offsets) == 0:
        allowed[:] = True
        return allowed
    seen = np.zeros(len(offsets), dtype=np.bool_)
    for node in nodes:
        if not seen[node]:
            seen[node] = True
            for child in range(offsets[node], offsets[node + 1]):
                allowed[relation[child]] = True
    return allowed


@kernel
def count_steps(edges: Edges, ends: Array, allowed: Array, latest: int, of_entity: Array) -> Array:
    """Return how many edges with an allowed relation and start lead on from each prefix."""
    offsets, relation, start = edges.offsets, edges.relation, edges.start
    steps = np.empty(len(ends), dtype=np.int64)
    for prefix in range(len(ends)):
        entity = ends[prefix]
        if of_entity[entity] == 0:
            n = 1
            for edge in range(offsets[entity], offsets[entity + 1]):
                n += allowed[relation[edge]] & (start[edge] <= latest)
            of_entity[entity] = n
        steps[prefix] = of_entity[entity] - 1
    for prefix in range(len(ends)):
        of_entity[ends[prefix]] = 0
    return steps


@kernel
def sample_prefixes(steps: Array, group: Array, n_groups: int, limit: int, seed: int) -> Array:
    """Sample prefixes so that about `limit` steps lead on from each group of them.

    All prefixes of a group have the same chance, and are taken where their steps are within the
    limit. Else every n / m-th prefix is taken in the order of its number of steps, from a seeded
    start, so that the sum of steps hardly depends on the seed.
    """
    n = len(steps)
    total = np.zeros(n_groups, dtype=np.int64)
    sample = np.empty(n, dtype=np.int32)
    most = 0
    for prefix in range(n):
        total[group[prefix]] += steps[prefix]
        most = max(most, total[group[prefix]])
        sample[prefix] = prefix
    if most <= limit:
        return sample
    by_steps = stable_argsort(steps)
    order, begin = counting_order(group[by_steps], n_groups)
    by_group = by_steps[order]
    chosen = np.zeros(n, dtype=np.int32)
    shift = uniform(seed)
    for index in range(n_groups):
        size = n_left = begin[index + 1] - begin[index]
        if total[index] > limit:
            size = max(1, n_left * limit // total[index])
        for draw in range(size):
            drawn = min(n_left - 1, int((draw + shift) * n_left / size))
            chosen[by_group[begin[index] + drawn]] += 1
    n_chosen = 0
    for prefix in range(n):
        for _ in range(chosen[prefix]):
            sample[n_chosen] = prefix
            n_chosen += 1
    return sample[:n_chosen]


@kernel
def expand(
    edges: Edges, trie: Trie, allowed: Array, latest: int, distinct: bool, subject: int,
    ends: Array, chain: Array, nodes: Array, sample: Array, steps: Array, of_entity: Array,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """Take one more step from the sampled prefixes, to an entity that they have not visited.

    No edge starts after `latest`, nor is an end known that comes later. Unless `distinct`, walks
    may revisit entities, but not use a fact twice. `ends`, `chain` and
    `nodes` are the last entity, the edges and the node in the trie of each prefix; `steps` are as
    `count_steps` returns them. Returns the distinct last edges by rank; and of each walk, in the
    order of last edge and prefix: its prefix, the index of its last edge, the temporal relations
    of its earlier intervals to the last one as digits, and its node (0 without a trie).
    """
    # Out of the loops: an array that is read from a tuple is reference-counted each time.
    offsets, relation, fact, rank = edges.offsets, edges.relation, edges.fact, edges.rank
    start, end, by_rank, source = edges.start, edges.end, edges.by_rank, edges.source
    visited = edges.target if distinct else fact
    by_end, begin, run_end, n_edges, n_steps = _group_by_end(ends, sample, steps, of_entity)
    ranks = _sorted_ranks(offsets, relation, rank, start, allowed, latest, run_end, n_edges)
    last_edges = np.empty(n_edges, dtype=np.int32)
    room = np.empty((2, n_steps), dtype=np.uint32)
    prefix, last = room[0], room[1]
    n = 0
    for local in range(n_edges):
        edge = by_rank[ranks[local]]
        last_edges[local] = edge
        run = of_entity[source[edge]]
        for index in range(begin[run - 1], begin[run]):
            prefix[n] = by_end[index]
            last[n] = local
            n += 1
    for run in range(len(run_end)):
        of_entity[run_end[run]] = 0
    valid = np.ones(n_steps, dtype=np.bool_)
    last_visited = visited[last_edges]
    if distinct:
        for walk in range(n_steps):
            valid[walk] = last_visited[last[walk]] != subject
    for step in range(chain.shape[1]):
        _exclude_repeated(visited[chain[:, step]], last_visited, prefix, last, valid)
    node = np.zeros(n_steps, dtype=np.int32)
    if len(trie.offsets) > 0:
        trie_offsets, trie_relation, trie_child = trie.offsets, trie.relation, trie.child
        for walk in range(n_steps):
            if valid[walk]:
                parent, label = nodes[prefix[walk]], relation[last_edges[last[walk]]]
                child = find_sorted(
                    trie_relation, trie_offsets[parent], trie_offsets[parent + 1], label
                )
                node[walk] = trie_child[child] if child >= 0 else -1
                valid[walk] = child >= 0
    n = _compress(valid, prefix, last, node)
    prefix, last = prefix[:n], last[:n]
    digits = np.zeros(n, dtype=np.int32)
    for step in range(chain.shape[1]):
        earlier = chain[:, step].copy()
        _append_classes(
            start[earlier], end[earlier], start[last_edges], end[last_edges], latest, prefix, last,
            digits,
        )  # fmt: skip
    return last_edges, prefix, last, digits, node[:n]


@kernel
def _group_by_end(
    ends: Array, sample: Array, steps: Array, of_entity: Array
) -> tuple[Array, Array, Array, int, int]:
    """Put prefixes that end in the same entity together, without sorting them.

    Returns the prefixes run by run, where each run begins and the last one ends, the entity of each
    run, and the edges out of these entities: how many, and how many steps they make. `of_entity`,
    all 0 before, gets the index of each entity's run plus 1.
    """
    n_runs = n_edges = n_steps = 0
    run_end = np.empty(len(sample), dtype=np.int32)
    begin = np.zeros(len(sample) + 2, dtype=np.int32)
    for index in range(len(sample)):
        entity, degree = ends[sample[index]], steps[sample[index]]
        if of_entity[entity] == 0:
            run_end[n_runs] = entity
            n_runs += 1
            of_entity[entity] = n_runs
            n_edges += degree
        n_steps += degree
        begin[of_entity[entity] + 1] += 1
    for run in range(n_runs + 1):
        begin[run + 1] += begin[run]
    by_end = np.empty(len(sample), dtype=np.int32)
    for index in range(len(sample)):
        run = of_entity[ends[sample[index]]]
        by_end[begin[run]] = sample[index]
        begin[run] += 1
    # `begin[r]` has moved to the end of run r, which is where the next one begins.
    return by_end, begin[: n_runs + 1], run_end[:n_runs], n_edges, n_steps


@kernel
def _sorted_ranks(
    offsets: Array, relation: Array, rank: Array, start: Array, allowed: Array, latest: int,
    entities: Array, n_edges: int,
) -> Array:  # fmt: skip
    """Return the ranks of the edges out of some entities that `count_steps` counts, ascending."""
    ranks = np.empty(n_edges + 1, dtype=np.uint32)  # one more: each is written, and kept or not
    n = 0
    for index in range(len(entities)):
        for edge in range(offsets[entities[index]], offsets[entities[index] + 1]):
            ranks[n] = rank[edge]
            n += allowed[relation[edge]] & (start[edge] <= latest)
    ranks = ranks[:n_edges]
    return radix_sort(ranks, len(rank))


# Each of these loops over all steps: loops over the few prefixes of an edge would end too often.


@kernel
def _exclude_repeated(
    earlier: Array, later: Array, prefix: Array, last: Array, valid: Array
) -> None:
    for walk in range(len(valid)):
        valid[walk] &= earlier[prefix[walk]] != later[last[walk]]


@kernel
def _append_classes(
    start: Array, end: Array, last_start: Array, last_end: Array, latest: int, prefix: Array,
    last: Array, digits: Array,
) -> None:  # fmt: skip
    """Append to each walk's digits how an interval of its prefix lies to its last one."""
    for index in range(len(end)):
        end[index] = end_as_of(start[index], end[index], latest)
    for index in range(len(last_end)):
        last_end[index] = end_as_of(last_start[index], last_end[index], latest)
    for walk in range(len(digits)):
        earlier, later = prefix[walk], last[walk]
        code = relation_code(start[earlier], end[earlier], last_start[later], last_end[later])
        digits[walk] = N_TEMPORAL_RELATIONS * digits[walk] + code


@kernel
def _compress(mask: Array, prefix: Array, last: Array, node: Array) -> int:
    """Move the items that the mask selects to the front of each array, and return their count."""
    n = 0
    for walk in range(len(mask)):
        prefix[n] = prefix[walk]
        last[n] = last[walk]
        node[n] = node[walk]
        n += mask[walk]
    return n


@kernel
def sort_into_bodies(
    relation: Array, target: Array, last_edges: Array, prefix: Array, last: Array, digits: Array,
    base: int, prefix_body: Array, n_prefix_bodies: int,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:  # fmt: skip
    """Put walks into the order of body and target; only digits modulo `base` distinguish bodies.

    Returns prefixes and last edges of the walks in order; offsets and target of each group; offsets
    of each body's groups; the body of each body's prefix; its last relation and digits as one
    integer; and the body of each walk, in the order given.
    """
    n = len(prefix)
    n_keys = n_prefix_bodies * base
    stops = np.zeros(n_keys + 1, dtype=np.uint32)
    key_of = np.empty(n, dtype=np.uint32)
    for walk in range(n):
        digit = digits[walk]
        if digit >= base:
            digit %= base
        key = np.uint32(prefix_body[prefix[walk]] * base + digit)
        key_of[walk] = key
        stops[key + 1] += np.uint32(1)
    for index in range(n_keys):
        stops[index + 1] += stops[index]
    order = np.empty(n, dtype=np.uint32)
    for walk in range(n):
        key = key_of[walk]
        order[stops[key]] = walk
        stops[key] += np.uint32(1)
    return _cut_into_groups(
        relation[last_edges], target[last_edges], prefix, last, base, order, stops
    )


@kernel
def _cut_into_groups(
    relation: Array, target: Array, prefix: Array, last: Array, base: int, order: Array,
    stops: Array,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:  # fmt: skip
    """Find the bodies and groups of walks whose order is known.

    What is known of a body or group is written again with each of its walks, for a store costs
    less than a mispredicted branch; so ends are noted, not beginnings. `relation` and `target` are
    those of the distinct last edges.
    """
    n = len(order)
    walks = np.empty((2, n), dtype=np.uint32)
    ordered_prefix, ordered_last = walks[0], walks[1]
    room = np.empty((6, n + 1), dtype=np.int32)  # one allocation is faster than six
    group_offsets, group_target, body_offsets = room[0], room[1], room[2]
    body_prefix, body_step, body_of_walk = room[3], room[4], room[5]
    group_offsets[0] = body_offsets[0] = 0
    n_groups = n_bodies = index = 0
    for key in range(len(stops) - 1):
        if index == stops[key]:
            continue
        before, digit = key // base, key % base
        previous_relation = previous_target = -1
        while index < stops[key]:
            walk = order[index]
            local = last[walk]
            ordered_prefix[index] = prefix[walk]
            ordered_last[index] = local
            new_body = relation[local] != previous_relation
            new_group = new_body | (target[local] != previous_target)
            previous_relation, previous_target = relation[local], target[local]
            n_bodies += new_body
            n_groups += new_group
            index += 1
            group_offsets[n_groups] = index
            group_target[n_groups - 1] = previous_target
            body_offsets[n_bodies] = n_groups
            body_prefix[n_bodies - 1] = before
            body_step[n_bodies - 1] = previous_relation * base + digit
            body_of_walk[walk] = n_bodies - 1
    return (
        ordered_prefix, ordered_last, group_offsets[: n_groups + 1], group_target[:n_groups],
        body_offsets[: n_bodies + 1], body_prefix[:n_bodies], body_step[:n_bodies],
        body_of_walk[:n],
    )  # fmt: skip


@kernel
def longer_bodies(
    relations: Array, digits: Array, prefix: Array, step: Array, n_directed: int, base: int
) -> tuple[Array, Array]:
    """Return the relations and digits of bodies, from those of their prefixes and last steps."""
    longer = np.empty((2, len(prefix)), dtype=np.int64)
    for body in range(len(prefix)):
        longer[0, body] = relations[prefix[body]] * n_directed + step[body] // base
        longer[1, body] = digits[prefix[body]] * base + step[body] % base
    return longer[0], longer[1]
