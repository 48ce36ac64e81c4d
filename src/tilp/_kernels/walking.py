"""Walking from entity to entity: expanding each once, and answering all that is asked of it."""

import numpy as np

from tilp._kernels.applying import apply_level
from tilp._kernels.bodies import sort_into_bodies
from tilp._kernels.expansion import expand, thin_out
from tilp._kernels.jit import kernel
from tilp._kernels.marking import mark_level
from tilp._kernels.tallying import tally_level
from tilp._kernels.types import (
    ADJACENT,
    ALL,
    N_MARKS,
    Array,
    Classes,
    Edges,
    Kept,
    Level,
    Marks,
    Queries,
    Space,
    Trie,
)

__all__ = ["APPLY", "MARK", "TALLY", "walk"]

TALLY, APPLY, MARK = 0, 1, 2
"""What walks are counted for: statistics of rules, their ends, or what these are to the query."""


@kernel
def walk(
    edges: Edges,
    classes: Classes,
    trie: Trie,
    queries: Queries,
    kept: Kept,
    kinds: Array,
    words: Array,
    n_directed: int,
    max_length: int,
    limit: int,
    seed: int,
    purpose: int,
    marks: Marks,
    statistics: Array,
    space: Space,
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
    n_records = len(queries.head) * 0  # with the literal 0 all would be compiled twice
    weights = np.ones((len(queries.head), max_length + 1), dtype=np.float64)
    for number in range(len(queries.subject)):
        subject = queries.subject[number]
        first, last = queries.begin[number], queries.begin[number + 1]
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
                classes.number,
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
                    base = classes.number ** (length - 1)
                elif kind == ADJACENT and length > 1:
                    base = classes.number
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
