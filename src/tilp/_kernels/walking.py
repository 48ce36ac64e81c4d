"""Walking from entity to entity: expanding each once, and answering all that is asked of it."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.counting import code_width, contributions, group_of_end
from tilp._kernels.expansion import Array, expand, sort_into_bodies, thin_out
from tilp._kernels.jit import kernel

__all__ = [
    "ADJACENT",
    "ALL",
    "APPLY",
    "FIND",
    "NONE",
    "TALLY",
    "Classes",
    "Edges",
    "Kept",
    "Queries",
    "Trie",
    "walk",
]

FIND, TALLY, APPLY = 0, 1, 2
"""What walks are counted for: rules that reach the answer, statistics of rules, or their ends."""

NONE, ADJACENT, ALL = 0, 1, 2
"""Which pairs of its own intervals a body looks at."""


class Edges(NamedTuple):
    """Facts and their inverses by entity, with the times that constraints look at.

    `rank` is each edge's place in the order of relation, target and edge, `by_rank` its inverse;
    `interval` numbers the distinct intervals.
    """

    offsets: Array
    relation: Array
    target: Array
    fact: Array
    start: Array
    end: Array
    rank: Array
    by_rank: Array
    source: Array
    interval: Array


class Classes(NamedTuple):
    """Words between two intervals: how many, and which, if they are not before, touching, after.

    `table` has the word of each pair of intervals, `of_query` of each query and interval.
    """

    number: int
    table: Array
    of_query: Array


class Trie(NamedTuple):
    """Which relation may follow which; without any node every one may follow."""

    begin: Array
    relation: Array
    child: Array


class Queries(NamedTuple):
    """Queries in the order of their subjects, whose queries begin at `begin`.

    `fact` is the query's own fact, which is not walked (-1: none); `answer` its known answer.
    """

    subject: Array
    begin: Array
    head: Array
    fact: Array
    start: Array
    end: Array
    answer: Array


class Kept(NamedTuple):
    """Rules by form, length and body: bodies sorted by relations and digits, then their rules.

    Bodies of form f and length l stand at `first[f, l]:first[f, l + 1]`; the rules of body b,
    sorted by head and code, at `begin[b]:begin[b + 1]`.
    """

    first: Array
    relations: Array
    digits: Array
    begin: Array
    head: Array
    code: Array


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
    statistics: Array,
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
        purpose: `FIND`, `TALLY` or `APPLY`.
        statistics: where `TALLY` adds, for each rule: facts whose answer it reaches, facts where
            it applies, sum of arriving rates at the answer. `APPLY` without room for rows adds a
            checksum: rows, rules, walks, sum of squared arriving rates.

    Returns:
        The records, and for each query and length how many walks a counted one stands for: 1
        where none was left out, and else what makes the counts unbiased estimates. `FIND`
        records form, length, head, relations, digits and code of each rule that reaches an
        answer; `APPLY` records query, form, length, relations (or the number of the kept rule),
        digits, code, end and count.
    """
    n_forms = len(kinds)
    records = np.empty((1024, 8), dtype=np.int64)
    n_records = 0
    weights = np.ones((len(queries.head), max_length + 1), dtype=np.float64)
    for number in range(len(queries.subject)):
        subject = queries.subject[number]
        first, last = queries.begin[number], queries.begin[number + 1]
        ends = np.full(1, subject, dtype=np.int32)
        chain = np.empty((1, 0), dtype=np.int32)
        nodes = np.zeros(1, dtype=np.int32)
        # For each kind of body: of each prefix its body; of each body its relations and digits.
        prefix_body = np.zeros((3, 1), dtype=np.int32)
        relations = [np.zeros(1, dtype=np.int64) for _ in range(3)]
        digits_so_far = [np.zeros(1, dtype=np.int64) for _ in range(3)]
        for length in range(1, max_length + 1):
            degree = edges.offsets[ends + 1] - edges.offsets[ends]
            chosen = thin_out(degree, limit, seed + subject * 8 + length)
            if len(chosen) < len(ends):
                weights[first:last, length:] *= len(ends) / len(chosen)
            local, prefix, at, digits, nodes_on = expand(
                edges.offsets,
                edges.relation,
                edges.fact,
                edges.start,
                edges.end,
                edges.rank,
                edges.by_rank,
                edges.source,
                edges.interval,
                classes.number,
                classes.table,
                trie.begin,
                trie.relation,
                trie.child,
                ends,
                chain,
                nodes,
                chosen,
            )
            if len(prefix) == 0:
                break
            body_on = np.zeros((3, len(prefix)), dtype=np.int32)
            for kind in range(3):
                if not np.any(kinds == kind):
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
                    edges.relation,
                    edges.target,
                    local,
                    prefix,
                    at,
                    digits,
                    base,
                    prefix_body[kind],
                    len(relations[kind]),
                )
                body_on[kind] = of_item
                relations[kind] = relations[kind][body_prefix] * n_directed + body_step // base
                digits_so_far[kind] = digits_so_far[kind][body_prefix] * base + body_step % base
                for form in range(n_forms):
                    if kinds[form] != kind:
                        continue
                    if purpose == FIND:
                        records, n_records = _find_level(
                            edges,
                            classes,
                            queries,
                            first,
                            last,
                            chain,
                            local,
                            item_prefix,
                            item_last,
                            group_begin,
                            group_end,
                            body_begin,
                            relations[kind],
                            digits_so_far[kind],
                            form,
                            words[form],
                            length,
                            records,
                            n_records,
                        )
                    else:
                        records, n_records = _count_level(
                            edges,
                            classes,
                            queries,
                            kept,
                            first,
                            last,
                            chain,
                            local,
                            item_prefix,
                            item_last,
                            group_begin,
                            group_end,
                            body_begin,
                            relations[kind],
                            digits_so_far[kind],
                            form,
                            words[form],
                            length,
                            purpose,
                            statistics,
                            records,
                            n_records,
                        )
            if length < max_length:
                chain_on = np.empty((len(prefix), length), dtype=np.int32)
                ends = np.empty(len(prefix), dtype=np.int32)
                for item in range(len(prefix)):
                    for step in range(length - 1):
                        chain_on[item, step] = chain[prefix[item], step]
                    chain_on[item, length - 1] = local[at[item]]
                    ends[item] = edges.target[local[at[item]]]
                chain, nodes, prefix_body = chain_on, nodes_on, body_on
    return records[:n_records].copy(), weights


@kernel
def _grown(records: Array, needed: int) -> Array:
    """The same records with room for as many as needed."""
    if needed <= len(records):
        return records
    larger = np.empty((max(needed, 2 * len(records)), records.shape[1]), dtype=np.int64)
    larger[: len(records)] = records
    return larger


@kernel
def _find_level(
    edges: Edges,
    classes: Classes,
    queries: Queries,
    first: int,
    last: int,
    chain: Array,
    local: Array,
    item_prefix: Array,
    item_last: Array,
    group_begin: Array,
    group_end: Array,
    body_begin: Array,
    relations: Array,
    digits: Array,
    form: int,
    words: int,
    length: int,
    records: Array,
    n_records: int,
) -> tuple[Array, int]:
    """Record the rules by which walks of one level reach the answers."""
    width = code_width(words, classes.number, length)
    own = len(classes.of_query) > 0
    nothing = np.empty(0, dtype=np.int8)
    of_prefix = np.empty(len(chain), dtype=np.uint32)
    of_edge = np.empty(len(local), dtype=np.uint32)
    seen = np.full(2 * width + 1, -1, dtype=np.int64)
    by_end = np.argsort(group_end, kind="mergesort")
    ends_in_order = group_end[by_end]
    for query in range(first, last):
        answer = queries.answer[query]
        low = np.searchsorted(ends_in_order, answer)
        high = np.searchsorted(ends_in_order, answer + 1)
        if low == high:
            continue
        contributions(
            words,
            width,
            classes.number,
            classes.of_query[query] if own else nothing,
            edges.interval,
            edges.fact,
            edges.start,
            edges.end,
            chain,
            local,
            queries.start[query],
            queries.end[query],
            queries.fact[query],
            of_prefix,
            of_edge,
        )
        for place in range(low, high):
            group = by_end[place]
            body = np.searchsorted(body_begin, group, side="right") - 1
            for item in range(group_begin[group], group_begin[group + 1]):
                code = of_prefix[item_prefix[item]] + of_edge[item_last[item]]
                mark = query * len(group_end) + group
                if code < width and seen[code] != mark:
                    seen[code] = mark
                    records = _grown(records, n_records + 1)
                    record = records[n_records]
                    record[0], record[1], record[2] = form, length, queries.head[query]
                    record[3], record[4], record[5] = relations[body], digits[body], code
                    n_records += 1
    return records, n_records


@kernel
def _kept_body(kept: Kept, form: int, length: int, relations: int, digits: int) -> int:
    """The kept body of a form and length with these relations and digits, or -1."""
    low, stop = kept.first[form, length], kept.first[form, length + 1]
    high = stop
    while low < high:
        middle = (low + high) // 2
        smaller = kept.relations[middle] < relations or (
            kept.relations[middle] == relations and kept.digits[middle] < digits
        )
        if smaller:
            low = middle + 1
        else:
            high = middle
    if low < stop and kept.relations[low] == relations and kept.digits[low] == digits:
        return low
    return -1


@kernel
def _count_level(
    edges: Edges,
    classes: Classes,
    queries: Queries,
    kept: Kept,
    first: int,
    last: int,
    chain: Array,
    local: Array,
    item_prefix: Array,
    item_last: Array,
    group_begin: Array,
    group_end: Array,
    body_begin: Array,
    relations: Array,
    digits: Array,
    form: int,
    words: int,
    length: int,
    purpose: int,
    statistics: Array,
    records: Array,
    n_records: int,
) -> tuple[Array, int]:
    """Count the walks of one level by rule, and by end where the purpose asks for it."""
    width = code_width(words, classes.number, length)
    own = len(classes.of_query) > 0
    nothing = np.empty(0, dtype=np.int8)
    n_bodies = len(body_begin) - 1
    everything = len(kept.relations) == 0
    of_prefix = np.empty(len(chain), dtype=np.uint32)
    of_edge = np.empty(len(local), dtype=np.uint32)
    body_of = np.full(n_bodies, -1, dtype=np.int64)
    if not everything:
        for body in range(n_bodies):
            body_of[body] = _kept_body(kept, form, length, relations[body], digits[body])
    total = np.zeros(2 * width + 1, dtype=np.int64)
    here = np.zeros(2 * width + 1, dtype=np.int32)
    touched = np.empty(2 * width + 2, dtype=np.uint32)
    row_code = np.empty(len(item_prefix), dtype=np.int32)
    row_end = np.empty(len(item_prefix), dtype=np.int32)
    row_count = np.empty(len(item_prefix), dtype=np.int32)
    for query in range(first, last):
        contributions(
            words,
            width,
            classes.number,
            classes.of_query[query] if own else nothing,
            edges.interval,
            edges.fact,
            edges.start,
            edges.end,
            chain,
            local,
            queries.start[query],
            queries.end[query],
            queries.fact[query],
            of_prefix,
            of_edge,
        )
        for body in range(n_bodies):
            low = high = 0
            if not everything:
                if body_of[body] < 0:
                    continue
                low, high = _rules_of_head(kept, body_of[body], queries.head[query])
                if low == high:
                    continue
            groups = body_begin[body], body_begin[body + 1]
            if purpose == TALLY:
                prefixes = item_prefix[group_begin[groups[0]] : group_begin[groups[1]]]
                lasts = item_last[group_begin[groups[0]] : group_begin[groups[1]]]
                for item in range(len(prefixes)):
                    total[np.uint32(of_prefix[prefixes[item]] + of_edge[lasts[item]])] += 1
                group = group_of_end(group_end, groups[0], groups[1], queries.answer[query])
                if group >= 0:
                    for item in range(group_begin[group], group_begin[group + 1]):
                        here[of_prefix[item_prefix[item]] + of_edge[item_last[item]]] += 1
                for rule in range(low, high):
                    code = kept.code[rule]
                    if total[code] > 0:
                        statistics[rule, 0] += here[code] > 0
                        statistics[rule, 1] += 1
                        statistics[rule, 2] += here[code] / total[code]
                total[:] = 0
                here[:] = 0
            else:
                n_rows, n_codes = _rows_of_body(
                    groups[0],
                    groups[1],
                    group_begin,
                    group_end,
                    item_prefix,
                    item_last,
                    of_prefix,
                    of_edge,
                    width,
                    here,
                    touched,
                    row_code,
                    row_end,
                    row_count,
                    total,
                )
                if everything and statistics.shape[0] == 1:
                    for row in range(n_rows):
                        rate = row_count[row] / total[row_code[row]]
                        statistics[0, 2] += row_count[row]
                        statistics[0, 3] += rate * rate
                    statistics[0, 0] += n_rows
                    statistics[0, 1] += n_codes
                else:
                    records = _grown(records, n_records + n_rows)
                    for row in range(n_rows):
                        name = relations[body]
                        if not everything:
                            name = _rule_of_code(kept, low, high, row_code[row])
                            if name < 0:
                                continue
                        record = records[n_records]
                        record[0], record[1], record[2], record[3] = query, form, length, name
                        record[4], record[5] = digits[body], row_code[row]
                        record[6], record[7] = row_end[row], row_count[row]
                        n_records += 1
                for row in range(n_rows):
                    total[row_code[row]] = 0
    return records, n_records


@kernel
def _rules_of_head(kept: Kept, body: int, head: int) -> tuple[int, int]:
    """Where the rules of a kept body for one head stand."""
    low, high = kept.begin[body], kept.begin[body + 1]
    while low < high and kept.head[low] < head:
        low += 1
    stop = low
    while stop < high and kept.head[stop] == head:
        stop += 1
    return low, stop


@kernel
def _rule_of_code(kept: Kept, low: int, high: int, code: int) -> int:
    for rule in range(low, high):
        if kept.code[rule] == code:
            return rule
    return -1


@kernel
def _rows_of_body(
    first_group: int,
    last_group: int,
    group_begin: Array,
    group_end: Array,
    item_prefix: Array,
    item_last: Array,
    of_prefix: Array,
    of_edge: Array,
    width: int,
    counts: Array,
    touched: Array,
    row_code: Array,
    row_end: Array,
    row_count: Array,
    total: Array,
) -> tuple[int, int]:
    """Count one body's walks by end and code; `total` gets the walks of each code.

    Returns:
        The number of rows, and of different codes among them.
    """
    n_rows = n_codes = 0
    for group in range(first_group, last_group):
        n_touched = np.uint64(0)
        prefixes = item_prefix[group_begin[group] : group_begin[group + 1]]
        lasts = item_last[group_begin[group] : group_begin[group + 1]]
        for item in range(len(prefixes)):
            code = np.uint32(of_prefix[prefixes[item]] + of_edge[lasts[item]])
            count = counts[code]
            touched[n_touched] = code
            n_touched += np.uint64(count == 0)
            counts[code] = count + 1
        for place in range(n_touched):
            code = np.uint32(touched[place])
            if code < width:
                row_code[n_rows] = code
                row_end[n_rows] = group_end[group]
                row_count[n_rows] = counts[code]
                n_rows += 1
                n_codes += total[code] == 0
                total[code] += counts[code]
            counts[code] = 0
    return n_rows, n_codes
