"""Walks from the subjects of queries, length by length: rows by rule and end, or walks by mark."""

import numpy as np

from tilp._kernels import count as counting
from tilp._kernels import levels, types
from tilp._kernels.arrays import end_of_run, find_sorted, grown
from tilp._kernels.count import WalkRows
from tilp._kernels.jit import kernel
from tilp._kernels.levels import N_TEMPORAL_RELATIONS
from tilp._kernels.types import Array, Edges, GroupedQueries, Level, Marks

ENDS, RULE_ENDS, MARKED = range(3)
"""What is counted: walks of all rules by end, those of given rules by end, or walks by mark."""


@kernel
def walk(
    edges: Edges, trie: types.Trie, queries: GroupedQueries, index: types.RuleIndex,
    body_pairs: Array, code_types: Array, gap_edges: Array, n_directed: int, max_length: int,
    distinct: bool, limit: int, seed: int, purpose: int, marks: Marks, space: types.Workspace,
) -> tuple[Array, Array]:  # fmt: skip
    """Walk from the subjects of queries, and count for each query what the purpose says.

    Walks do not revisit an entity if `distinct`. Without a body in `index`, all rules are counted.
    `body_pairs` and `code_types` describe the temporal forms, `gap_edges` the gap classes. Past
    `limit` steps of one length from one subject, prefixes are sampled; where rules are given, past
    as many along one chain of relations. `ENDS` records query, form, length, relations, digits,
    code, end and count; `RULE_ENDS` query, the rule's position in the index, end and count;
    `MARKED` query, rule, walks, and walks to each mark. Returns the records, and for each query and
    length how many walks a counted one stands for: 1 without sampling, else, if all rules are
    counted, the factor that makes the counts unbiased estimates.
    """
    pairs_used = np.zeros(3, dtype=np.bool_)
    for form in range(len(body_pairs)):
        pairs_used[body_pairs[form]] = True
    empty_body = np.zeros(1, dtype=np.int64)
    records = np.empty((1024, 4 if purpose == RULE_ENDS else 3 + types.N_MARKS), dtype=np.int64)
    n_queries = len(queries.directed_relation)
    n_records = n_queries * 0  # with the literal 0 all would be compiled twice
    weights = np.ones((n_queries, max_length + 1), dtype=np.float64)
    for row in range(len(queries.entity)):
        subject = queries.entity[row]
        first, last = queries.offsets[row], queries.offsets[row + 1]
        latest = queries.latest[first]
        ends = np.full(1, subject, dtype=np.int32)
        chain = np.empty((1, 0), dtype=np.int32)
        nodes = np.zeros(1, dtype=np.int32)
        if len(trie.roots) > 0:
            nodes[0] = trie.roots[queries.directed_relation[first]]
        # For each choice of pairs: the body of each prefix; relations and digits of each body.
        prefix_body = np.zeros((3, 1), dtype=np.int32)
        relations = [empty_body, empty_body, empty_body]
        digits_so_far = [empty_body, empty_body, empty_body]
        for length in range(1, max_length + 1):
            allowed = levels.next_relations(trie, nodes, n_directed)
            steps = levels.count_steps(edges, ends, allowed, latest, space.of_entity)
            n_nodes = max(1, len(trie.offsets) - 1)
            sample = levels.sample_prefixes(
                steps, nodes, n_nodes, limit, seed + subject * 8 + length
            )
            if len(sample) < len(ends):
                for query in range(first, last):
                    for longer in range(length, max_length + 1):
                        weights[query, longer] *= len(ends) / len(sample)
            last_edges, prefix, last_of_walk, digits, next_nodes = levels.expand(
                edges, trie, allowed, latest, distinct, subject, ends, chain, nodes, sample, steps,
                space.of_entity,
            )  # fmt: skip
            if len(prefix) == 0:
                break
            goes_on = length < max_length
            next_body = np.empty((3, len(prefix) if goes_on else 0), dtype=np.int32)
            for pairs in range(3):
                if not pairs_used[pairs]:
                    continue
                base = 1
                if pairs == types.ALL_PAIRS:
                    base = N_TEMPORAL_RELATIONS ** (length - 1)
                elif pairs == types.ADJACENT_PAIRS and length > 1:
                    base = N_TEMPORAL_RELATIONS
                (
                    ordered_prefix, ordered_last, group_offsets, group_target, body_offsets,
                    body_prefix, body_step, body_of_walk,
                ) = levels.sort_into_bodies(
                    edges.relation, edges.target, last_edges, prefix, last_of_walk, digits, base,
                    prefix_body[pairs], len(relations[pairs]),
                )  # fmt: skip
                if goes_on:
                    for walk in range(len(prefix)):
                        next_body[pairs, walk] = body_of_walk[walk]
                relations[pairs], digits_so_far[pairs] = levels.longer_bodies(
                    relations[pairs], digits_so_far[pairs], body_prefix, body_step, n_directed, base
                )
                for form in range(len(body_pairs)):
                    if body_pairs[form] != pairs:
                        continue
                    level = Level(
                        form, code_types[form], length, chain, last_edges, ordered_prefix,
                        ordered_last, group_offsets, group_target, body_offsets, relations[pairs],
                        digits_so_far[pairs],
                    )  # fmt: skip
                    records, n_records = count_level(
                        edges, gap_edges, queries, first, last, level, index, purpose, marks, space,
                        records, n_records,
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


@kernel
def count_level(
    edges: Edges, gap_edges: Array, queries: GroupedQueries, first: int, last: int, level: Level,
    index: types.RuleIndex, purpose: int, marks: Marks, space: types.Workspace, records: Array,
    n_records: int,
) -> tuple[Array, int]:  # fmt: skip
    """Count a level's walks for queries `first` to `last` by the index; return all records."""
    if purpose == ENDS:
        no_spans = np.empty((0, 2), dtype=np.int64)
        return _count_part(
            edges, gap_edges, queries, first, last, level, index.code, no_spans, purpose, marks,
            space, records, n_records,
        )  # fmt: skip
    bodies = counting.find_bodies(index, level)
    while first < last:
        stop = end_of_run(queries.directed_relation, first, last)
        spans = counting.find_rules_of_relation(index, bodies, queries.directed_relation[first])
        chosen = np.flatnonzero(spans[:, 0] < spans[:, 1])
        if len(chosen) > 0:
            records, n_records = _count_part(
                edges, gap_edges, queries, first, stop, counting.select_bodies(level, chosen),
                index.code, spans[chosen], purpose, marks, space, records, n_records,
            )  # fmt: skip
        first = stop
    return records, n_records


@kernel
def _count_part(
    edges: Edges, gap_edges: Array, queries: GroupedQueries, first: int, last: int, level: Level,
    codes: Array, spans: Array, purpose: int, marks: Marks, space: types.Workspace, records: Array,
    n_records: int,
) -> tuple[Array, int]:  # fmt: skip
    """Count for queries of one relation, in a level all of whose bodies have rules for it.

    The rules of body b have the codes at `spans[b]`; without any spans, all rules are counted. Ends
    are counted by group, and for the other purposes walks by body.
    """
    by_end = purpose != MARKED
    starts, ends = queries.start, queries.end
    offsets = level.group_offsets if by_end else level.group_offsets[level.body_offsets]
    links = counting.link_query_facts(queries.fact[first:last], edges.fact, level, space.of_fact)
    bits = counting.code_bits(level.code_type, 2 * len(gap_edges) + 1, level.length)
    n_prefixes, n_walks = len(level.chain), len(level.prefix)
    tables = np.empty(n_prefixes + len(level.last_edges), dtype=np.uint32)
    room = np.empty((7, n_walks), dtype=np.int32)  # one allocation is faster than seven
    touched, removed, row_rule = room[0], room[1], room[2]
    rule_body, rule_code = room[3], room[4]
    rows = WalkRows(
        offsets, counting.group_ids(offsets), level.prefix, level.last, tables[:n_prefixes],
        tables[n_prefixes:], np.empty(len(offsets), dtype=np.int32), room[5], room[6],
    )  # fmt: skip
    row_count = rows.n_walks
    rule_name = np.empty(n_walks if by_end else 0, dtype=np.int64)
    number_of_code = np.empty(1 << bits if by_end else 0, dtype=np.int32)
    here = np.zeros(
        (0 if by_end else n_walks, types.N_MARKS if purpose == MARKED else 1), dtype=np.int32
    )
    n_rules = 0
    begin = first
    while begin < last:
        stop = end_of_run(ends, begin, end_of_run(starts, begin, last))
        counting.fill_codes(
            level, edges, gap_edges, starts[begin], ends[begin], queries.latest[begin],
            rows.prefix_code, rows.edge_code,
        )  # fmt: skip
        n_rows = counting.count_rows(rows, bits, space.counts, touched)
        if by_end:
            n_rules = counting.number_rules(
                level.body_offsets, rows, number_of_code, row_rule, rule_body, rule_code
            )
            _name_rules(n_rules, level.relations, codes, spans, rule_body, rule_code, rule_name)
        else:
            _find_rules_of_rows(codes, spans, rows, row_rule)
        for query in range(begin, stop):
            n_removed = counting.remove_query_fact(rows, links, query - first, removed)
            if by_end:
                records = grown(records, n_records + n_rows)
                n_records = _record_ends(
                    query, level, rows, row_rule, rule_name, rule_body, rule_code, records,
                    n_records,
                )  # fmt: skip
            else:
                _count_at_marks(query, queries, edges, level, rows, marks, space, here)
                records = grown(records, n_records + n_rows)
                n_records = _record_marks(
                    query, n_rows, row_rule, row_count, here, records, n_records
                )
            for walk in range(n_removed):
                row_count[removed[walk]] += 1
        begin = stop
    return records, n_records


@kernel
def _name_rules(
    n_rules: int, relations: Array, codes: Array, spans: Array, rule_body: Array, rule_code: Array,
    rule_name: Array,
) -> None:  # fmt: skip
    """Name each rule by its position in the index (-1: not there), or else by its relations."""
    for rule in range(n_rules):
        body = rule_body[rule]
        rule_name[rule] = relations[body]
        if len(spans) > 0:
            rule_name[rule] = find_sorted(codes, spans[body, 0], spans[body, 1], rule_code[rule])


@kernel
def _find_rules_of_rows(codes: Array, spans: Array, rows: WalkRows, row_rule: Array) -> None:
    """Find the position in the index of each row's rule, or -1; groups of rows are bodies."""
    first_row, row_code = rows.first, rows.code
    for body in range(len(spans)):
        for row in range(first_row[body], first_row[body + 1]):
            row_rule[row] = find_sorted(codes, spans[body, 0], spans[body, 1], row_code[row])


@kernel
def _record_ends(
    query: int, level: Level, rows: WalkRows, row_rule: Array, rule_name: Array, rule_body: Array,
    rule_code: Array, records: Array, n_records: int,
) -> int:  # fmt: skip
    """Record the rows of a query that have walks and a name, and return the number of records."""
    form, length, digits, group_target = level.form, level.length, level.digits, level.group_target
    first_row, row_count = rows.first, rows.n_walks
    compact = records.shape[1] == 4
    n = n_records
    for group in range(len(group_target)):
        for row in range(first_row[group], first_row[group + 1]):
            rule = row_rule[row]
            if row_count[row] == 0 or rule_name[rule] < 0:
                continue
            if compact:
                records[n, 0], records[n, 1] = query, rule_name[rule]
                records[n, 2], records[n, 3] = group_target[group], row_count[row]
            else:
                records[n, 0], records[n, 1], records[n, 2] = query, form, length
                records[n, 3], records[n, 4] = rule_name[rule], digits[rule_body[rule]]
                records[n, 5], records[n, 6] = rule_code[rule], group_target[group]
                records[n, 7] = row_count[row]
            n += 1
    return n


@kernel
def _count_at_marks(
    query: int, queries: GroupedQueries, edges: Edges, level: Level, rows: WalkRows, marks: Marks,
    space: types.Workspace, here: Array,
) -> None:  # fmt: skip
    group_target, mark_of, query_fact = level.group_target, space.of_entity, queries.fact[query]
    for index in range(marks.offsets[query], marks.offsets[query + 1]):
        mark_of[marks.entity[index]] = marks.mark[index] + 1
    for group in range(len(group_target)):
        mark = mark_of[group_target[group]] - 1
        if mark >= 0:
            _count_group(group, mark, query_fact, edges.fact, level, rows, here)
    for index in range(marks.offsets[query], marks.offsets[query + 1]):
        mark_of[marks.entity[index]] = 0


@kernel
def _count_group(
    group: int, mark: int, query_fact: int, fact: Array, level: Level, rows: WalkRows, here: Array
) -> None:
    """Count the walks of a group that do not use the query's own fact, by row."""
    chain, last_edges, prefix, last = level.chain, level.last_edges, level.prefix, level.last
    prefix_code, edge_code, body = rows.prefix_code, rows.edge_code, rows.group
    first_row, row_code = rows.first, rows.code
    for walk in range(level.group_offsets[group], level.group_offsets[group + 1]):
        uses_fact = fact[last_edges[last[walk]]] == query_fact
        for step in range(chain.shape[1]):
            uses_fact |= fact[chain[prefix[walk], step]] == query_fact
        if not uses_fact:
            code = prefix_code[prefix[walk]] + edge_code[last[walk]]
            here[counting.find_row(first_row, row_code, body[walk], code), mark] += 1


@kernel
def _record_marks(
    query: int, n_rows: int, row_rule: Array, row_count: Array, here: Array, records: Array,
    n_records: int,
) -> int:  # fmt: skip
    """Record query, rule, walks and walks by mark of each row, and return the number of records."""
    for row in range(n_rows):
        if row_rule[row] >= 0 and row_count[row] > 0:
            records[n_records, 0] = query
            records[n_records, 1] = row_rule[row]
            records[n_records, 2] = row_count[row]
            for mark in range(types.N_MARKS):
                records[n_records, 3 + mark] = here[row, mark]
            n_records += 1
        here[row] = 0
    return n_records
