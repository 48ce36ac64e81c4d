"""All walks from one entity, level by level, and in the order of their bodies and ends.

An *item* is a walk; the items of one level are the prefixes that the next level goes on from. A
*body* is what a walk is without its query: its relations, and the temporal relations between its
own intervals as far as a kind of body looks at them. A *group* is the items of one body that end
in one entity. All of this is done once for an entity, and serves every query asked of it.

No item is hashed or compared to find its body: items are made in the order of the last edge's
relation and target, and a stable counting sort by what comes before does the rest.
"""

import numpy as np

from tilp._kernels.arrays import find_sorted, sort_numbers
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array
from tilp.time import TemporalRelation, temporal_relation_code

CLASS_WORDS = len(TemporalRelation)
"""Before, touching and after."""

relation_code = kernel(temporal_relation_code)


@kernel
def chance(seed: int) -> float:
    """A number from 0 to 1 that the seed decides, by two rounds of a multiplicative hash."""
    mixed = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return float(mixed >> np.uint64(11)) / 9007199254740992.0


@kernel
def thin_out(offsets: Array, ends: Array, limit: int, seed: int) -> Array:
    """Choose prefixes so that they have about `limit` steps to go on, each with the same chance.

    Every `n / kept`-th prefix is taken in the order of degree, from a seeded place on, so that
    the sum of the degrees hardly depends on the seed. All are kept where they fit.
    """
    n = len(ends)
    total = 0
    chosen = np.empty(n, dtype=np.int32)
    for place in range(n):
        total += offsets[ends[place] + 1] - offsets[ends[place]]
        chosen[place] = place
    if total <= limit:
        return chosen
    kept = max(1, n * limit // total)
    order = np.argsort(offsets[ends + 1] - offsets[ends], kind="mergesort")
    begin = chance(seed)
    chosen = chosen[:kept]
    for place in range(kept):
        chosen[place] = order[min(n - 1, int((place + begin) * n / kept))]
    chosen.sort()
    return chosen


@kernel
def follow_trie(
    trie_begin: Array, trie_relation: Array, trie_child: Array, node: int, relation: int
) -> int:
    """The child of a node by relation, or -1."""
    place = find_sorted(trie_relation, trie_begin[node], trie_begin[node + 1], relation)
    child = trie_child[max(place, 0)]
    return child if place >= 0 else -1


@kernel
def _run_by_end(
    offsets: Array, ends: Array, chosen: Array, of_entity: Array
) -> tuple[Array, Array, Array, int, int]:
    """Put prefixes that end in the same entity together, without sorting them.

    Returns:
        The prefixes run by run, where each run begins and where the last ends, the entity of each
        run, and the edges out of these entities: how many, and how many steps they make.
        `of_entity`, all 0 before, gets the number of each entity's run, from 1 on.
    """
    n_runs = n_edges = n_steps = 0
    run_end = np.empty(len(chosen), dtype=np.int32)
    begin = np.zeros(len(chosen) + 2, dtype=np.int32)
    for place in range(len(chosen)):
        entity = ends[chosen[place]]
        degree = offsets[entity + 1] - offsets[entity]
        if of_entity[entity] == 0:
            run_end[n_runs] = entity
            n_runs += 1
            of_entity[entity] = n_runs
            n_edges += degree
        n_steps += degree
        begin[of_entity[entity] + 1] += 1
    for run in range(n_runs + 1):
        begin[run + 1] += begin[run]
    by_end = np.empty(len(chosen), dtype=np.int32)
    for place in range(len(chosen)):
        run = of_entity[ends[chosen[place]]]
        by_end[begin[run]] = chosen[place]
        begin[run] += 1
    # What was where run r begins is now where it ends, which is where the next one begins.
    return by_end, begin[: n_runs + 1], run_end[:n_runs], n_edges, n_steps


@kernel
def _ranks_from(offsets: Array, rank: Array, entities: Array, n_edges: int) -> Array:
    """The ranks of the edges out of some entities, ascending."""
    ranks = np.empty(n_edges, dtype=np.uint32)
    n = 0
    for place in range(len(entities)):
        for edge in range(offsets[entities[place]], offsets[entities[place] + 1]):
            ranks[n] = rank[edge]
            n += 1
    return sort_numbers(ranks, len(rank))


@kernel
def expand(
    offsets: Array,
    relation: Array,
    fact: Array,
    start: Array,
    end: Array,
    rank: Array,
    by_rank: Array,
    source: Array,
    interval: Array,
    base: int,
    table: Array,
    trie_begin: Array,
    trie_relation: Array,
    trie_child: Array,
    ends: Array,
    chain: Array,
    nodes: Array,
    chosen: Array,
    of_entity: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """Go one edge on from the chosen prefixes; no fact is used twice.

    Args:
        offsets: where each entity's edges begin; what follows describes the edges.
        rank: each edge's place in the order of relation, target and edge; `by_rank` its inverse.
        interval: the number of each edge's interval; for words of one's own between intervals.
        base: how many words relate two intervals.
        table: the word of each pair of intervals; without any, before, touching and after.
        trie_begin: where each node's children begin; without any node everything may follow.
        ends: the entity that each prefix ends in.
        chain: the edges of each prefix.
        nodes: where each prefix stands in the trie.
        chosen: the prefixes to go on from.
        of_entity: a 0 for each entity, to work with.

    Returns:
        The distinct last edges by rank; and of each item, in the order of last edge and prefix:
        the prefix, the place of its last edge among these, the temporal relations of the earlier
        intervals to the last one as digits, and, if there is a trie, where it stands there.
    """
    by_end, begin, run_end, n_edges, n_steps = _run_by_end(offsets, ends, chosen, of_entity)
    ranks = _ranks_from(offsets, rank, run_end, n_edges)
    edges = np.empty(n_edges, dtype=np.int32)
    room = np.empty((2, n_steps), dtype=np.uint32)
    prefix, last = room[0], room[1]
    n = 0
    for local in range(n_edges):
        edge = by_rank[ranks[local]]
        edges[local] = edge
        run = of_entity[source[edge]]
        for place in range(begin[run - 1], begin[run]):
            prefix[n] = by_end[place]
            last[n] = local
            n += 1
    for run in range(len(run_end)):
        of_entity[run_end[run]] = 0
    digits = np.zeros(n_steps, dtype=np.int32)
    fresh = np.ones(n_steps, dtype=np.bool_)
    for step in range(chain.shape[1]):
        earlier = chain[:, step].copy()
        _use_no_fact_twice(fact[earlier], fact[edges], prefix, last, fresh)
        if len(table) > 0:
            _add_own_words(base, table, interval[earlier], interval[edges], prefix, last, digits)
        else:
            _add_words(start[earlier], end[earlier], start[edges], end[edges], prefix, last, digits)
    node = np.empty(n_steps if len(trie_begin) > 0 else 0, dtype=np.int32)
    if len(trie_begin) > 0:
        for item in range(n_steps):
            if fresh[item]:
                node[item] = follow_trie(
                    trie_begin,
                    trie_relation,
                    trie_child,
                    nodes[prefix[item]],
                    relation[edges[last[item]]],
                )
                fresh[item] = node[item] >= 0
    n = _keep(fresh, prefix, last, digits, node)
    return edges, prefix[:n], last[:n], digits[:n], node[:n]


# Each of these is a loop over all steps, for loops over the few prefixes of an edge end too often.


@kernel
def _use_no_fact_twice(
    earlier: Array, later: Array, prefix: Array, last: Array, fresh: Array
) -> None:
    """Note which steps use a fact again; facts are given of each prefix and of each last edge."""
    for item in range(len(fresh)):
        fresh[item] &= earlier[prefix[item]] != later[last[item]]


@kernel
def _add_words(
    start: Array,
    end: Array,
    later_start: Array,
    later_end: Array,
    prefix: Array,
    last: Array,
    digits: Array,
) -> None:
    """Append to the digits of each step how an interval of its prefix lies to its last one."""
    for item in range(len(digits)):
        one, other = prefix[item], last[item]
        word = relation_code(start[one], end[one], later_start[other], later_end[other])
        digits[item] = CLASS_WORDS * digits[item] + word


@kernel
def _add_own_words(
    base: int,
    table: Array,
    earlier: Array,
    later: Array,
    prefix: Array,
    last: Array,
    digits: Array,
) -> None:
    """The same in words of one's own, for intervals that are given by their number."""
    for item in range(len(digits)):
        word = table[earlier[prefix[item]], later[last[item]]]
        digits[item] = base * digits[item] + word


@kernel
def _keep(keep: Array, prefix: Array, last: Array, digits: Array, node: Array) -> int:
    """Move what is kept of each array to its front; returns how much that is."""
    n = 0
    for item in range(len(keep)):
        prefix[n] = prefix[item]
        last[n] = last[item]
        digits[n] = digits[item]
        if len(node) > 0:
            node[n] = node[item]
        n += keep[item]
    return n
