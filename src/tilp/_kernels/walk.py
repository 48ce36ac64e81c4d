"""Walks from the subjects of queries, counted length by length."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.levels import expand, longer_bodies, sample_prefixes, sort_into_bodies
from tilp._kernels.rule_counts import count_level
from tilp._kernels.types import (
    ADJACENT_PAIRS,
    ALL_PAIRS,
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
def walk(
    edges: Edges,
    classes: IntervalClasses,
    trie: Trie,
    queries: QueriesBySubject,
    index: RuleIndex,
    body_pairs: Array,
    code_types: Array,
    n_directed: int,
    max_length: int,
    limit: int,
    seed: int,
    purpose: int,
    marks: Marks,
    statistics: Array,
    space: Workspace,
) -> tuple[Array, Array]:
    """Walk from the subjects of queries, and count for each query what the purpose says.

    Args:
        edges: of the graph.
        classes: of pairs of intervals.
        trie: which relations may follow which.
        queries: by subject.
        index: the rules to count; without any body, all rules are counted.
        body_pairs: for each temporal form, which pairs of intervals its bodies distinguish.
        code_types: for each temporal form, what its codes consist of.
        n_directed: number of directed relations.
        max_length: of walks.
        limit: steps of one length from one subject, past which prefixes are sampled.
        seed: of the samples.
        purpose: `STATISTICS`, `ENDS`, `CHECKSUM` or `MARKED`.
        marks: the marked candidates of each query, for `MARKED`.
        statistics: to which `STATISTICS` adds, for each rule, the facts whose answer it reaches,
            the facts where it applies, and the sum of arriving rates at the answer; and `CHECKSUM`
            adds the numbers of rows, rules and walks, and the sum of squared arriving rates.
        space: zeros to work with.

    Returns:
        The records, and for each query and length how many walks a counted one stands for: 1
        without sampling, else the factor that makes the counts unbiased estimates. `ENDS` records
        query, form, length, relations (or the rule's position in the index), digits, code, end and
        count; `MARKED` records query, rule, walks, and how many of these end at each mark.
    """
    pairs_used = np.array([np.any(body_pairs == pairs) for pairs in range(3)])
    empty_body = np.zeros(1, dtype=np.int64)
    records = np.empty((1024, 3 + N_MARKS), dtype=np.int64)
    n_queries = len(queries.directed_relation)
    n_records = n_queries * 0  # with the literal 0 all would be compiled twice
    weights = np.ones((n_queries, max_length + 1), dtype=np.float64)
    for row in range(len(queries.subject)):
        subject = queries.subject[row]
        first, last = queries.offsets[row], queries.offsets[row + 1]
        ends = np.full(1, subject, dtype=np.int32)
        chain = np.empty((1, 0), dtype=np.int32)
        nodes = np.zeros(1, dtype=np.int32)
        # For each choice of pairs: the body of each prefix; relations and digits of each body.
        prefix_body = np.zeros((3, 1), dtype=np.int32)
        relations = [empty_body, empty_body, empty_body]
        digits_so_far = [empty_body, empty_body, empty_body]
        for length in range(1, max_length + 1):
            sample = sample_prefixes(edges.offsets, ends, limit, seed + subject * 8 + length)
            if len(sample) < len(ends):
                weights[first:last, length:] *= len(ends) / len(sample)
            last_edges, prefix, last_of_walk, digits, next_nodes = expand(
                edges, classes, trie, ends, chain, nodes, sample, space.of_entity
            )
            if len(prefix) == 0:
                break
            goes_on = length < max_length
            next_body = np.empty((3, len(prefix) if goes_on else 0), dtype=np.int32)
            for pairs in range(3):
                if not pairs_used[pairs]:
                    continue
                base = 1
                if pairs == ALL_PAIRS:
                    base = classes.n_classes ** (length - 1)
                elif pairs == ADJACENT_PAIRS and length > 1:
                    base = classes.n_classes
                (
                    ordered_prefix,
                    ordered_last,
                    group_offsets,
                    group_target,
                    body_offsets,
                    body_prefix,
                    body_step,
                    body_of_walk,
                ) = sort_into_bodies(
                    edges.relation, edges.target, last_edges, prefix, last_of_walk, digits, base,
                    prefix_body[pairs], len(relations[pairs]),
                )  # fmt: skip
                if goes_on:
                    next_body[pairs] = body_of_walk
                relations[pairs], digits_so_far[pairs] = longer_bodies(
                    relations[pairs], digits_so_far[pairs], body_prefix, body_step, n_directed, base
                )
                for form in range(len(body_pairs)):
                    if body_pairs[form] != pairs:
                        continue
                    level = Level(
                        form,
                        code_types[form],
                        length,
                        chain,
                        last_edges,
                        ordered_prefix,
                        ordered_last,
                        group_offsets,
                        group_target,
                        body_offsets,
                        relations[pairs],
                        digits_so_far[pairs],
                    )
                    records, n_records = count_level(
                        edges, classes, queries, first, last, level, index, purpose, marks,
                        statistics, space, records, n_records,
                    )  # fmt: skip
            if goes_on:
                chain, ends = _longer_chains(chain, prefix, last_edges[last_of_walk], edges.target)
                nodes, prefix_body = next_nodes, next_body
    return records[:n_records].copy(), weights


@kernel
def _longer_chains(
    chain: Array, prefix: Array, last_edge: Array, target: Array
) -> tuple[Array, Array]:
    """Return the edges of each walk, and the entity that it ends in."""
    length = chain.shape[1] + 1
    longer = np.empty((len(prefix), length), dtype=np.int32)
    ends = np.empty(len(prefix), dtype=np.int32)
    for walk in range(len(prefix)):
        for step in range(length - 1):
            longer[walk, step] = chain[prefix[walk], step]
        longer[walk, length - 1] = last_edge[walk]
        ends[walk] = target[last_edge[walk]]
    return longer, ends
