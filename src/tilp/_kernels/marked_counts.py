"""The walks of rules by what their ends are to a query: its answer, known otherwise, or neither."""

import numpy as np

from tilp._kernels.arrays import find_sorted, grown, run_of_equals
from tilp._kernels.count import (
    code_bits,
    contributions,
    count_rows,
    find_row,
    link_own_facts,
    number_of_run,
    take_out,
)
from tilp._kernels.jit import kernel
from tilp._kernels.rule_lookup import kept_bodies, part_of_level, rules_of_head
from tilp._kernels.types import (
    N_MARKS,
    Array,
    Edges,
    IntervalClasses,
    Level,
    Marks,
    QueriesBySubject,
    RuleIndex,
    Workspace,
)


@kernel
def mark_level(
    edges: Edges,
    classes: IntervalClasses,
    queries: QueriesBySubject,
    first: int,
    last: int,
    level: Level,
    kept: RuleIndex,
    marks: Marks,
    space: Workspace,
    records: Array,
    n_records: int,
) -> tuple[Array, int]:
    """Record query, rule and walks of a level, and how many of these end at each mark."""
    bodies = kept_bodies(kept, level)
    while first < last:
        stop = run_of_equals(queries.directed_relation, first, last)
        rules = rules_of_head(kept, bodies, queries.directed_relation[first])
        chosen = np.flatnonzero(rules[:, 0] < rules[:, 1])
        if len(chosen) > 0:
            records, n_records = _mark_part(
                edges,
                classes,
                queries,
                first,
                stop,
                part_of_level(level, chosen),
                kept.code,
                rules[chosen],
                marks,
                space,
                records,
                n_records,
            )
        first = stop
    return records, n_records


@kernel
def _mark_part(
    edges: Edges,
    classes: IntervalClasses,
    queries: QueriesBySubject,
    first: int,
    last: int,
    level: Level,
    kept_code: Array,
    rules: Array,
    marks: Marks,
    space: Workspace,
    records: Array,
    n_records: int,
) -> tuple[Array, int]:
    """The same for queries of one head, and for a level all of whose bodies have rules for it.

    `rules` says where the rules of each body stand. What is counted are the walks of a rule, so
    the groups of rows are the bodies.
    """
    # Out of the loop: an array that is taken out of a tuple is counted in and out.
    fact, chain, level_edges = edges.fact, level.chain, level.edges
    prefix, last_edge = level.prefix, level.last
    group_begin, group_end = level.group_begin, level.group_end
    starts, ends, own_facts = queries.start, queries.end, queries.fact
    mark_begin, mark_entity, mark_kind = marks.offsets, marks.entity, marks.mark
    mark_of = space.of_entity
    body_begin = group_begin[level.body_begin]
    body_of = number_of_run(body_begin)
    own, latest, earlier = link_own_facts(
        own_facts[first:last], fact, chain, level_edges, prefix, last_edge, space.of_fact
    )
    bits = code_bits(level.words, classes.n_classes, level.length)
    tables = np.empty(len(chain) + len(level_edges), dtype=np.uint32)
    of_prefix, of_edge = tables[: len(chain)], tables[len(chain) :]
    n = len(prefix)
    first_row = np.empty(len(body_begin), dtype=np.int32)
    room = np.empty((4, n), dtype=np.int32)  # at once: to ask for memory takes its time
    touched, taken, row_code, row_count = room[0], room[1], room[2], room[3]
    row_rule = np.empty(n, dtype=np.int64)
    here = np.zeros((n, N_MARKS), dtype=np.int32)
    begin = first
    while begin < last:
        stop = run_of_equals(ends, begin, run_of_equals(starts, begin, last))
        contributions(
            level.words,
            classes.n_classes,
            begin,
            starts[begin],
            ends[begin],
            classes.of_query,
            edges.interval,
            edges.start,
            edges.end,
            chain,
            level_edges,
            of_prefix,
            of_edge,
        )
        n_rows = count_rows(
            body_begin,
            body_of,
            prefix,
            last_edge,
            of_prefix,
            of_edge,
            bits,
            space.counts,
            touched,
            first_row,
            row_code,
            row_count,
        )
        for body in range(len(rules)):
            for row in range(first_row[body], first_row[body + 1]):
                row_rule[row] = find_sorted(
                    kept_code, rules[body, 0], rules[body, 1], row_code[row]
                )
        for query in range(begin, stop):
            n_taken = take_out(
                own[query - first],
                latest,
                earlier,
                body_of,
                prefix,
                last_edge,
                of_prefix,
                of_edge,
                first_row,
                row_code,
                row_count,
                taken,
            )
            for place in range(mark_begin[query], mark_begin[query + 1]):
                mark_of[mark_entity[place]] = mark_kind[place] + 1
            for group in range(len(group_end)):
                mark = mark_of[group_end[group]] - 1
                if mark < 0:
                    continue
                for item in range(group_begin[group], group_begin[group + 1]):
                    uses_own = fact[level_edges[last_edge[item]]] == own_facts[query]
                    for step in range(chain.shape[1]):
                        uses_own |= fact[chain[prefix[item], step]] == own_facts[query]
                    if not uses_own:
                        code = of_prefix[prefix[item]] + of_edge[last_edge[item]]
                        here[find_row(first_row, row_code, body_of[item], code), mark] += 1
            for place in range(mark_begin[query], mark_begin[query + 1]):
                mark_of[mark_entity[place]] = 0
            records = grown(records, n_records + n_rows)
            for row in range(n_rows):
                if row_rule[row] >= 0 and row_count[row] > 0:
                    records[n_records, 0] = query
                    records[n_records, 1] = row_rule[row]
                    records[n_records, 2] = row_count[row]
                    for mark in range(N_MARKS):
                        records[n_records, 3 + mark] = here[row, mark]
                    n_records += 1
                here[row] = 0
            for place in range(n_taken):
                row_count[taken[place]] += 1
        begin = stop
    return records, n_records
