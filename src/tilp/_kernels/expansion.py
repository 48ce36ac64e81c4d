"""All walks from one entity, level by level, and in the order of their bodies and ends.

An *item* is a walk; the items of one level are the prefixes that the next level goes on from. A
*body* is what a walk is without its query: its relations, and the temporal relations between its
own intervals as far as a kind of body looks at them. A *group* is the items of one body that end
in one entity. All of this is done once for an entity, and serves every query asked of it.

No item is hashed or compared to find its body: items are made in the order of the last edge's
relation and target, and a stable counting sort by what comes before does the rest.
"""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.searching import find_sorted
from tilp._kernels.types import Array
from tilp.intervals.relations import temporal_relation_code

__all__ = ["chance", "expand", "follow_trie", "sort_into_bodies", "thin_out"]

relation_code = kernel(temporal_relation_code)


@kernel
def chance(seed: int) -> float:
    """A number from 0 to 1 that the seed decides, by two rounds of a multiplicative hash."""
    mixed = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return float(mixed >> np.uint64(11)) / 9007199254740992.0


@kernel
def thin_out(degree: Array, limit: int, seed: int) -> Array:
    """Choose prefixes so that they have about `limit` edges in all, each with the same chance.

    Every `n / kept`-th prefix is taken in the order of degree, from a seeded place on, so that
    the sum of the degrees hardly depends on the seed. All are kept where they fit.
    """
    n = len(degree)
    total = degree.sum()
    if total <= limit:
        return np.arange(n).astype(np.int32)
    kept = max(1, n * limit // total)
    order = np.argsort(degree, kind="mergesort")
    begin = chance(seed)
    chosen = np.empty(kept, dtype=np.int32)
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
    return trie_child[place] if place >= 0 else -1


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

    Returns:
        The distinct last edges by rank; and of each item, in the order of last edge and prefix:
        the prefix, the place of its last edge among these, the temporal relations of the earlier
        intervals to the last one as digits, and where it stands in the trie.
    """
    # Prefixes that end in the same entity stand together.
    by_end = chosen[np.argsort(ends[chosen], kind="mergesort")]
    runs = np.empty(len(by_end) + 1, dtype=np.int64)
    n_runs = n_edges = n_steps = 0
    for place in range(len(by_end)):
        entity = ends[by_end[place]]
        if place == 0 or entity != ends[by_end[place - 1]]:
            runs[n_runs] = place
            n_runs += 1
            n_edges += offsets[entity + 1] - offsets[entity]
        n_steps += offsets[entity + 1] - offsets[entity]
    runs[n_runs] = len(by_end)
    run_end = np.empty(n_runs, dtype=np.int32)
    ranks = np.empty(n_edges, dtype=np.int32)
    n_edges = 0
    for run in range(n_runs):
        entity = ends[by_end[runs[run]]]
        run_end[run] = entity
        for edge in range(offsets[entity], offsets[entity + 1]):
            ranks[n_edges] = rank[edge]
            n_edges += 1
    ranks.sort()
    edges = np.empty(n_edges, dtype=np.int32)
    prefix = np.empty(n_steps, dtype=np.int32)
    last = np.empty(n_steps, dtype=np.int32)
    digits = np.empty(n_steps, dtype=np.int32)
    node = np.empty(n_steps, dtype=np.int32)
    length = chain.shape[1]
    guided = len(trie_begin) > 0
    n = 0
    for local in range(n_edges):
        edge = by_rank[ranks[local]]
        edges[local] = edge
        edge_fact, edge_start, edge_end = fact[edge], start[edge], end[edge]
        run = np.searchsorted(run_end, source[edge])
        for place in range(runs[run], runs[run + 1]):
            walk = by_end[place]
            code = 0
            fresh = True
            for step in range(length):
                earlier = chain[walk, step]
                fresh &= fact[earlier] != edge_fact
                if len(table) > 0:
                    code = base * code + table[interval[earlier], interval[edge]]
                else:
                    code = base * code + relation_code(
                        start[earlier], end[earlier], edge_start, edge_end
                    )
            if fresh:
                at = 0
                if guided:
                    at = follow_trie(
                        trie_begin, trie_relation, trie_child, nodes[walk], relation[edge]
                    )
                    if at < 0:
                        continue
                prefix[n] = walk
                last[n] = local
                digits[n] = code
                node[n] = at
                n += 1
    return edges, prefix[:n].copy(), last[:n].copy(), digits[:n].copy(), node[:n].copy()


@kernel
def sort_into_bodies(
    relation: Array,
    target: Array,
    edges: Array,
    prefix: Array,
    last: Array,
    digits: Array,
    base: int,
    prefix_body: Array,
    n_prefix_bodies: int,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:
    """Put a level's items into the order of body and end.

    Args:
        relation: of each edge of the graph; likewise `target`.
        edges: the level's distinct last edges.
        prefix: of each item; likewise `last` and `digits`.
        base: how many values the digits have that the kind of body looks at (digits modulo base).
        prefix_body: the body of each prefix.
        n_prefix_bodies: how many bodies the prefixes have.

    Returns:
        Prefixes and last edges of the items in order; where each group begins, and where the last
        ends; the entity it ends in; where each body's groups begin, and where the last end; the
        body of each body's prefix; its last relation and digits in one number; and the body of
        each item, in the order of the level.
    """
    n = len(prefix)
    begins = np.zeros(n_prefix_bodies * base + 1, dtype=np.int32)
    for item in range(n):
        begins[prefix_body[prefix[item]] * base + digits[item] % base + 1] += 1
    for key in range(n_prefix_bodies * base):
        begins[key + 1] += begins[key]
    order = np.empty(n, dtype=np.int32)
    for item in range(n):
        key = prefix_body[prefix[item]] * base + digits[item] % base
        order[begins[key]] = item
        begins[key] += 1
    in_order_prefix = np.empty(n, dtype=np.uint32)
    in_order_last = np.empty(n, dtype=np.uint32)
    group_begin = np.empty(n + 1, dtype=np.int32)
    group_end = np.empty(n, dtype=np.int32)
    body_begin = np.empty(n + 1, dtype=np.int32)
    body_prefix = np.empty(n, dtype=np.int32)
    body_step = np.empty(n, dtype=np.int32)
    of_item = np.empty(n, dtype=np.int32)
    n_groups = n_bodies = 0
    previous_key = previous_step = previous_end = -1
    for place in range(n):
        item = order[place]
        edge = edges[last[item]]
        in_order_prefix[place] = prefix[item]
        in_order_last[place] = last[item]
        digit = digits[item] % base
        key = prefix_body[prefix[item]]
        step = relation[edge] * base + digit
        entity = target[edge]
        new_body = key != previous_key or step != previous_step
        if new_body:
            body_begin[n_bodies] = n_groups
            body_prefix[n_bodies] = key
            body_step[n_bodies] = step
            n_bodies += 1
        if new_body or entity != previous_end:
            group_begin[n_groups] = place
            group_end[n_groups] = entity
            n_groups += 1
        of_item[item] = n_bodies - 1
        previous_key, previous_step, previous_end = key, step, entity
    group_begin[n_groups] = n
    body_begin[n_bodies] = n_groups
    return (
        in_order_prefix,
        in_order_last,
        group_begin[: n_groups + 1].copy(),
        group_end[:n_groups].copy(),
        body_begin[: n_bodies + 1].copy(),
        body_prefix[:n_bodies].copy(),
        body_step[:n_bodies].copy(),
        of_item,
    )
