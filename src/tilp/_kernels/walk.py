"""The items of a level in the order of their bodies and ends."""

import numpy as np

from tilp._kernels.apply_rules import apply_level
from tilp._kernels.expand import expand, thin_out
from tilp._kernels.jit import kernel
from tilp._kernels.marked_counts import mark_level
from tilp._kernels.rule_statistics import tally_level
from tilp._kernels.types import (
    ADJACENT,
    ALL,
    N_MARKS,
    Array,
    Edges,
    IntervalClasses,
    Level,
    Marks,
    QueriesBySubject,
    RuleIndex,
    Trie,
    Workspace,
)


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
    n_keys = n_prefix_bodies * base
    stops = np.zeros(n_keys + 1, dtype=np.uint32)
    key_of = np.empty(n, dtype=np.uint32)
    for item in range(n):
        digit = digits[item]
        if digit >= base:
            digit %= base
        key = np.uint32(prefix_body[prefix[item]] * base + digit)
        key_of[item] = key
        stops[key + 1] += np.uint32(1)
    for place in range(n_keys):
        stops[place + 1] += stops[place]
    order = np.empty(n, dtype=np.uint32)
    for item in range(n):
        key = key_of[item]
        order[stops[key]] = item
        stops[key] += np.uint32(1)
    return _cut_into_groups(relation[edges], target[edges], prefix, last, base, order, stops)


@kernel
def _cut_into_groups(
    relation: Array,
    target: Array,
    prefix: Array,
    last: Array,
    base: int,
    order: Array,
    stops: Array,
) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:
    """Find the bodies and groups of items whose order is known.

    What is known of a body or group is written again with each of its items, for a store costs
    less than a branch that is mispredicted; so it is ends that are noted, not beginnings.
    `relation` and `target` are here those of the level's last edges.
    """
    n = len(order)
    items = np.empty((2, n), dtype=np.uint32)
    in_order_prefix, in_order_last = items[0], items[1]
    room = np.empty((6, n + 1), dtype=np.int32)  # at once: to ask for memory takes its time
    group_begin, group_end, body_begin = room[0], room[1], room[2]
    body_prefix, body_step, of_item = room[3], room[4], room[5]
    group_begin[0] = body_begin[0] = 0
    n_groups = n_bodies = place = 0
    for key in range(len(stops) - 1):
        if place == stops[key]:
            continue
        before, digit = key // base, key % base
        previous_relation = previous_target = -1
        while place < stops[key]:
            item = order[place]
            local = last[item]
            in_order_prefix[place] = prefix[item]
            in_order_last[place] = local
            new_body = relation[local] != previous_relation
            new_group = new_body | (target[local] != previous_target)
            previous_relation, previous_target = relation[local], target[local]
            n_bodies += new_body
            n_groups += new_group
            place += 1
            group_begin[n_groups] = place
            group_end[n_groups - 1] = previous_target
            body_begin[n_bodies] = n_groups
            body_prefix[n_bodies - 1] = before
            body_step[n_bodies - 1] = previous_relation * base + digit
            of_item[item] = n_bodies - 1
    return (
        in_order_prefix,
        in_order_last,
        group_begin[: n_groups + 1],
        group_end[:n_groups],
        body_begin[: n_bodies + 1],
        body_prefix[:n_bodies],
        body_step[:n_bodies],
        of_item[:n],
    )


TALLY, APPLY, MARK = 0, 1, 2
"""What walks are counted for: statistics of rules, their ends, or what these are to the query."""


@kernel
def walk(
    edges: Edges,
    classes: IntervalClasses,
    trie: Trie,
    queries: QueriesBySubject,
    kept: RuleIndex,
    kinds: Array,
    words: Array,
    n_directed: int,
    max_length: int,
    limit: int,
    seed: int,
    purpose: int,
    marks: Marks,
    statistics: Array,
    space: Workspace,
) -> tuple[Array, Array]:
    """Walk from the subjects of queries, and count for each query what the purpose asks for.

    Args:
        edges: the graph.
        classes: the words between intervals.
        trie: which relations may follow which.
        queries: by subject.
        kept: the rules to count; without any body, all rules are.
        kinds: for each temporal form, what its bodies look at.
        words: for each temporal form, what its codes are made of.
        n_directed: how many relations there are, inverse ones included.
        max_length: of walks.
        limit: how many steps one level may take from one subject before it is thinned out.
        seed: for thinning out.
        purpose: `TALLY`, `APPLY` or `MARK`.
        marks: the marked candidates of each query, for `MARK`.
        statistics: where `TALLY` adds, for each rule: facts whose answer it reaches, facts where
            it applies, sum of arriving rates at the answer. `APPLY` without room for rows adds a
            checksum: rows, rules, walks, sum of squared arriving rates.
        space: zeros to work with.

    Returns:
        The records, and for each query and length how many walks a counted one stands for: 1
        where none was left out, and else what makes the counts unbiased estimates. `APPLY`
        records query, form, length, relations (or the number of the kept rule), digits, code, end
        and count; `MARK` records query, rule, walks, and how many of these end at each mark.
    """
    # Out of the loop: an array that is taken out of a tuple is counted in and out.
    offsets, relation, target, fact = edges.offsets, edges.relation, edges.target, edges.fact
    start, end, interval, source = edges.start, edges.end, edges.interval, edges.source
    rank, by_rank, table = edges.rank, edges.by_rank, classes.table
    trie_begin, trie_relation, trie_child = trie.begin, trie.relation, trie.child
    of_entity = space.of_entity
    wanted = np.array([np.any(kinds == kind) for kind in range(3)])
    empty_body = np.zeros(1, dtype=np.int64)
    records = np.empty((1024, 3 + N_MARKS), dtype=np.int64)
    n_records = len(queries.directed_relation) * 0  # with the literal 0 all would be compiled twice
    weights = np.ones((len(queries.directed_relation), max_length + 1), dtype=np.float64)
    for number in range(len(queries.subject)):
        subject = queries.subject[number]
        first, last = queries.offsets[number], queries.offsets[number + 1]
        ends = np.full(1, subject, dtype=np.int32)
        chain = np.empty((1, 0), dtype=np.int32)
        nodes = np.zeros(1, dtype=np.int32)
        # For each kind of body: of each prefix its body; of each body its relations and digits.
        prefix_body = np.zeros((3, 1), dtype=np.int32)
        relations = [empty_body, empty_body, empty_body]
        digits_so_far = [empty_body, empty_body, empty_body]
        for length in range(1, max_length + 1):
            chosen = thin_out(offsets, ends, limit, seed + subject * 8 + length)
            if len(chosen) < len(ends):
                weights[first:last, length:] *= len(ends) / len(chosen)
            local, prefix, at, digits, nodes_on = expand(
                offsets,
                relation,
                fact,
                start,
                end,
                rank,
                by_rank,
                source,
                interval,
                classes.n_classes,
                table,
                trie_begin,
                trie_relation,
                trie_child,
                ends,
                chain,
                nodes,
                chosen,
                of_entity,
            )
            if len(prefix) == 0:
                break
            goes_on = length < max_length
            body_on = np.empty((3, len(prefix) if goes_on else 0), dtype=np.int32)
            for kind in range(3):
                if not wanted[kind]:
                    continue
                base = 1
                if kind == ALL:
                    base = classes.n_classes ** (length - 1)
                elif kind == ADJACENT and length > 1:
                    base = classes.n_classes
                (
                    item_prefix,
                    item_last,
                    group_begin,
                    group_end,
                    body_begin,
                    body_prefix,
                    body_step,
                    of_item,
                ) = sort_into_bodies(
                    relation,
                    target,
                    local,
                    prefix,
                    at,
                    digits,
                    base,
                    prefix_body[kind],
                    len(relations[kind]),
                )
                if goes_on:
                    body_on[kind] = of_item
                relations[kind], digits_so_far[kind] = _longer_bodies(
                    relations[kind], digits_so_far[kind], body_prefix, body_step, n_directed, base
                )
                for form in range(len(kinds)):
                    if kinds[form] != kind:
                        continue
                    level = Level(
                        form,
                        words[form],
                        length,
                        chain,
                        local,
                        item_prefix,
                        item_last,
                        group_begin,
                        group_end,
                        body_begin,
                        relations[kind],
                        digits_so_far[kind],
                    )
                    if purpose == TALLY:
                        tally_level(
                            edges, classes, queries, first, last, level, kept, statistics, space
                        )
                    elif purpose == MARK:
                        records, n_records = mark_level(
                            edges,
                            classes,
                            queries,
                            first,
                            last,
                            level,
                            kept,
                            marks,
                            space,
                            records,
                            n_records,
                        )
                    else:
                        records, n_records = apply_level(
                            edges,
                            classes,
                            queries,
                            first,
                            last,
                            level,
                            kept,
                            statistics,
                            space,
                            records,
                            n_records,
                        )
            if goes_on:
                chain_on = np.empty((len(prefix), length), dtype=np.int32)
                ends = np.empty(len(prefix), dtype=np.int32)
                for item in range(len(prefix)):
                    for step in range(length - 1):
                        chain_on[item, step] = chain[prefix[item], step]
                    chain_on[item, length - 1] = local[at[item]]
                    ends[item] = target[local[at[item]]]
                chain, nodes, prefix_body = chain_on, nodes_on, body_on
    return records[:n_records].copy(), weights


@kernel
def _longer_bodies(
    relations: Array, digits: Array, prefix: Array, step: Array, n_directed: int, base: int
) -> tuple[Array, Array]:
    """The numbers of bodies, from those of their prefixes and their last step."""
    longer = np.empty((2, len(prefix)), dtype=np.int64)
    for body in range(len(prefix)):
        longer[0, body] = relations[prefix[body]] * n_directed + step[body] // base
        longer[1, body] = digits[prefix[body]] * base + step[body] % base
    return longer[0], longer[1]
