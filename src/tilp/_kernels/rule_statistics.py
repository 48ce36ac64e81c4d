"""Statistics of rules: how often they reach the answers of queries."""

import numpy as np

from tilp._kernels.arrays import find_sorted, run_of_equals
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
    Array,
    Edges,
    IntervalClasses,
    Level,
    QueriesBySubject,
    RuleIndex,
    Workspace,
)


@kernel
def tally_level(
    edges: Edges,
    classes: IntervalClasses,
    queries: QueriesBySubject,
    first: int,
    last: int,
    level: Level,
    kept: RuleIndex,
    statistics: Array,
    space: Workspace,
) -> None:
    """Add up, for each kept rule: answers reached, queries where it applies, arriving rates."""
    bodies = kept_bodies(kept, level)
    while first < last:
        stop = run_of_equals(queries.directed_relation, first, last)
        rules = rules_of_head(kept, bodies, queries.directed_relation[first])
        chosen = np.flatnonzero(rules[:, 0] < rules[:, 1])
        if len(chosen) > 0:
            part = part_of_level(level, chosen)
            _tally_part(
                edges,
                classes,
                queries,
                first,
                stop,
                part,
                kept.code,
                rules[chosen],
                statistics,
                space,
            )
        first = stop


@kernel
def _tally_part(
    edges: Edges,
    classes: IntervalClasses,
    queries: QueriesBySubject,
    first: int,
    last: int,
    level: Level,
    kept_code: Array,
    rules: Array,
    statistics: Array,
    space: Workspace,
) -> None:
    """The same for queries of one head, and for a level all of whose bodies have rules for it.

    `rules` says where the rules of each body stand. What is counted are the walks of a rule, so
    the groups of rows are the bodies.
    """
    # Out of the loop: an array that is taken out of a tuple is counted in and out.
    fact, chain, level_edges = edges.fact, level.chain, level.edges
    start, end, interval, of_query = edges.start, edges.end, edges.interval, classes.of_query
    words, prefix, last_edge = level.words, level.prefix, level.last
    group_begin, group_end = level.group_begin, level.group_end
    starts, ends, answers, own_facts = queries.start, queries.end, queries.answer, queries.fact
    counts = space.counts
    body_begin = group_begin[level.body_begin]
    body_of = number_of_run(body_begin)
    own, latest, earlier = link_own_facts(
        own_facts[first:last], fact, chain, level_edges, prefix, last_edge, space.of_fact
    )
    bits = code_bits(words, classes.n_classes, level.length)
    tables = np.empty(len(chain) + len(level_edges), dtype=np.uint32)
    of_prefix, of_edge = tables[: len(chain)], tables[len(chain) :]
    n = len(prefix)
    first_row = np.empty(len(body_begin), dtype=np.int32)
    room = np.empty((4, n), dtype=np.int32)  # at once: to ask for memory takes its time
    touched, taken, row_code, row_count = room[0], room[1], room[2], room[3]
    row_rule = np.empty(n, dtype=np.int64)
    here = np.zeros(n, dtype=np.int32)
    begin = first
    while begin < last:
        stop = run_of_equals(ends, begin, run_of_equals(starts, begin, last))
        contributions(
            words,
            classes.n_classes,
            begin,
            starts[begin],
            ends[begin],
            of_query,
            interval,
            start,
            end,
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
            counts,
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
            for row in range(n_rows):
                if row_rule[row] >= 0 and row_count[row] > 0:
                    statistics[row_rule[row], 1] += 1
            n_reached = _reach_answer(
                answers[query],
                own_facts[query],
                fact,
                chain,
                level_edges,
                group_begin,
                group_end,
                body_of,
                prefix,
                last_edge,
                of_prefix,
                of_edge,
                first_row,
                row_code,
                here,
                touched,
            )
            for place in range(n_reached):
                row = touched[place]
                if row_rule[row] >= 0:
                    statistics[row_rule[row], 0] += 1
                    statistics[row_rule[row], 2] += here[row] / row_count[row]
                here[row] = 0
            for place in range(n_taken):
                row_count[taken[place]] += 1
        begin = stop


@kernel
def _reach_answer(
    answer: int,
    own_fact: int,
    fact: Array,
    chain: Array,
    edges: Array,
    group_begin: Array,
    group_end: Array,
    body_of: Array,
    prefix: Array,
    last: Array,
    of_prefix: Array,
    of_edge: Array,
    first_row: Array,
    row_code: Array,
    here: Array,
    touched: Array,
) -> int:
    """Count the walks that end in a query's answer, without its own fact, by row.

    `here`, all 0 before, gets the counts, and `touched` the rows that have one.

    Returns:
        The number of these rows.
    """
    n = 0
    for group in range(len(group_end)):
        if group_end[group] != answer:
            continue
        for item in range(group_begin[group], group_begin[group + 1]):
            own = fact[edges[last[item]]] == own_fact
            for step in range(chain.shape[1]):
                own |= fact[chain[prefix[item], step]] == own_fact
            if not own:
                code = of_prefix[prefix[item]] + of_edge[last[item]]
                row = find_row(first_row, row_code, body_of[item], code)
                touched[n] = row
                n += here[row] == 0
                here[row] += 1
    return n
