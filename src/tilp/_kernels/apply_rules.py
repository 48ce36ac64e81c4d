"""The ends that rules lead to from the subjects of queries, and by how many walks."""

import numpy as np

from tilp._kernels.arrays import find_sorted, grown, run_of_equals
from tilp._kernels.count import (
    code_bits,
    contributions,
    count_rows,
    link_own_facts,
    number_of_run,
    number_rules,
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
def apply_level(
    edges: Edges,
    classes: IntervalClasses,
    queries: QueriesBySubject,
    first: int,
    last: int,
    level: Level,
    kept: RuleIndex,
    statistics: Array,
    space: Workspace,
    records: Array,
    n_records: int,
) -> tuple[Array, int]:
    """Record the walks of a level by rule and end, or only their checksum.

    Without kept rules the walks of all rules are counted. Where `statistics` has a row, rows,
    rules, walks and squared arriving rates are added up there, and nothing is recorded.
    """
    if len(kept.relations) == 0:
        all_rules = np.empty((0, 2), dtype=np.int64)
        return _apply_part(
            edges,
            classes,
            queries,
            first,
            last,
            level,
            kept.code,
            all_rules,
            statistics,
            space,
            records,
            n_records,
        )
    bodies = kept_bodies(kept, level)
    while first < last:
        stop = run_of_equals(queries.directed_relation, first, last)
        rules = rules_of_head(kept, bodies, queries.directed_relation[first])
        chosen = np.flatnonzero(rules[:, 0] < rules[:, 1])
        if len(chosen) > 0:
            records, n_records = _apply_part(
                edges,
                classes,
                queries,
                first,
                stop,
                part_of_level(level, chosen),
                kept.code,
                rules[chosen],
                statistics,
                space,
                records,
                n_records,
            )
        first = stop
    return records, n_records


@kernel
def _apply_part(
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
    records: Array,
    n_records: int,
) -> tuple[Array, int]:
    """The same for queries of one head, and for a level all of whose bodies have rules for it.

    `rules` says where the rules of each body stand; without any, all rules are counted.
    """
    # Out of the loop: an array that is taken out of a tuple is counted in and out.
    fact, chain, level_edges = edges.fact, level.chain, level.edges
    start, end, interval, of_query = edges.start, edges.end, edges.interval, classes.of_query
    form, words, length = level.form, level.words, level.length
    prefix, last_edge = level.prefix, level.last
    group_begin, group_end = level.group_begin, level.group_end
    starts, ends = queries.start, queries.end
    body_begin, relations, digits = level.body_begin, level.relations, level.digits
    counts = space.counts
    group_of = number_of_run(group_begin)
    own, latest, earlier = link_own_facts(
        queries.fact[first:last], fact, chain, level_edges, prefix, last_edge, space.of_fact
    )
    bits = code_bits(words, classes.n_classes, length)
    tables = np.empty(len(chain) + len(level_edges), dtype=np.uint32)
    of_prefix, of_edge = tables[: len(chain)], tables[len(chain) :]
    first_row = np.empty(len(group_begin), dtype=np.int32)
    room = np.empty((8, len(prefix)), dtype=np.int32)  # at once: to ask for memory takes its time
    touched, taken, row_code, row_count = room[0], room[1], room[2], room[3]
    row_rule, rule_body, rule_code, rule_total = room[4], room[5], room[6], room[7]
    recording = len(statistics) == 0
    rule_name = np.empty(len(prefix) if recording else 0, dtype=np.int64)
    rate_of_one = np.empty(0 if recording else len(prefix), dtype=np.float64)
    number_of = np.empty(1 << bits, dtype=np.int32)
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
            group_begin,
            group_of,
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
        n_rules = number_rules(
            body_begin,
            first_row,
            row_code,
            row_count,
            number_of,
            row_rule,
            rule_body,
            rule_code,
            rule_total,
        )
        if recording:
            _name_rules(n_rules, relations, kept_code, rules, rule_body, rule_code, rule_name)
        for query in range(begin, stop):
            n_taken = take_out(
                own[query - first],
                latest,
                earlier,
                group_of,
                prefix,
                last_edge,
                of_prefix,
                of_edge,
                first_row,
                row_code,
                row_count,
                taken,
            )
            for place in range(n_taken):
                rule_total[row_rule[taken[place]]] -= 1
            if not recording:
                _add_to_checksum(
                    row_count[:n_rows],
                    row_rule[:n_rows],
                    rule_total[:n_rules],
                    rate_of_one,
                    statistics[0],
                )
            else:
                records = grown(records, n_records + n_rows)
                n_records = _record_rows(
                    query,
                    form,
                    length,
                    digits,
                    group_end,
                    first_row,
                    row_count,
                    row_rule,
                    rule_name,
                    rule_body,
                    rule_code,
                    records,
                    n_records,
                )
            for place in range(n_taken):
                row_count[taken[place]] += 1
                rule_total[row_rule[taken[place]]] += 1
        begin = stop
    return records, n_records


@kernel
def _add_to_checksum(
    row_count: Array, row_rule: Array, rule_total: Array, rate_of_one: Array, sums: Array
) -> None:
    """Add rows, rules, walks and squared arriving rates."""
    n_rules = n_rows = n_walks = 0
    for rule in range(len(rule_total)):
        n_rules += rule_total[rule] > 0
        rate_of_one[rule] = 1 / max(1, rule_total[rule])
    squares = 0.0
    for row in range(len(row_count)):
        n_rows += row_count[row] > 0
        n_walks += row_count[row]
        rate = row_count[row] * rate_of_one[row_rule[row]]
        squares += rate * rate
    sums[0] += n_rows
    sums[1] += n_rules
    sums[2] += n_walks
    sums[3] += squares


@kernel
def _name_rules(
    n_rules: int,
    relations: Array,
    kept_code: Array,
    rules: Array,
    rule_body: Array,
    rule_code: Array,
    rule_name: Array,
) -> None:
    """Name each rule by the number of the kept one (-1: it is not kept), or by its relations."""
    for rule in range(n_rules):
        body = rule_body[rule]
        rule_name[rule] = relations[body]
        if len(rules) > 0:
            rule_name[rule] = find_sorted(
                kept_code, rules[body, 0], rules[body, 1], rule_code[rule]
            )


@kernel
def _record_rows(
    query: int,
    form: int,
    length: int,
    digits: Array,
    group_end: Array,
    first_row: Array,
    row_count: Array,
    row_rule: Array,
    rule_name: Array,
    rule_body: Array,
    rule_code: Array,
    records: Array,
    n_records: int,
) -> int:
    """Record the rows of a query that have walks and a rule that is asked for."""
    n = n_records
    for group in range(len(group_end)):
        for row in range(first_row[group], first_row[group + 1]):
            rule = row_rule[row]
            if row_count[row] > 0 and rule_name[rule] >= 0:
                records[n, 0], records[n, 1], records[n, 2] = query, form, length
                records[n, 3], records[n, 4] = rule_name[rule], digits[rule_body[rule]]
                records[n, 5], records[n, 6] = rule_code[rule], group_end[group]
                records[n, 7] = row_count[row]
                n += 1
    return n
