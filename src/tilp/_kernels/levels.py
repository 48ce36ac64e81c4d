"""Counting the walks of one level for the queries asked of one entity, for each purpose."""

import numpy as np

from tilp._kernels.counting import code_width, contributions
from tilp._kernels.jit import kernel
from tilp._kernels.searching import find_sorted
from tilp._kernels.types import Array, Classes, Edges, Kept, Level, Queries

__all__ = ["apply_level", "tally_level"]


@kernel
def tally_level(
    edges: Edges,
    classes: Classes,
    queries: Queries,
    first: int,
    last: int,
    level: Level,
    kept: Kept,
    statistics: Array,
) -> None:
    """Add up, for each kept rule: answers reached, queries where it applies, arriving rates."""
    width = code_width(level.words, classes.number, level.length)
    of_prefix = np.empty(len(level.chain), dtype=np.uint32)
    of_edge = np.empty(len(level.edges), dtype=np.uint32)
    body_of = _kept_bodies(kept, level)
    # Out of the loop: an array that is taken out of a tuple is counted in and out.
    body_begin, group_begin, group_end = level.body_begin, level.group_begin, level.group_end
    prefix, end = level.prefix, level.last
    total = np.zeros(2 * width + 1, dtype=np.int64)
    here = np.zeros(2 * width + 1, dtype=np.int64)
    for query in range(first, last):
        _fill_tables(edges, classes, queries, query, level, width, of_prefix, of_edge)
        for body in range(len(body_of)):
            if body_of[body] < 0:
                continue
            low, high = _rules_of_head(kept, body_of[body], queries.head[query])
            if low == high:
                continue
            begin, stop = body_begin[body], body_begin[body + 1]
            prefixes = prefix[group_begin[begin] : group_begin[stop]]
            lasts = end[group_begin[begin] : group_begin[stop]]
            for item in range(len(prefixes)):
                total[np.uint32(of_prefix[prefixes[item]] + of_edge[lasts[item]])] += 1
            group = find_sorted(group_end, begin, stop, queries.answer[query])
            if group >= 0:
                for item in range(group_begin[group], group_begin[group + 1]):
                    here[np.uint32(of_prefix[prefix[item]] + of_edge[end[item]])] += 1
            for rule in range(low, high):
                code = kept.code[rule]
                if total[code] > 0:
                    statistics[rule, 0] += here[code] > 0
                    statistics[rule, 1] += 1
                    statistics[rule, 2] += here[code] / total[code]
            total[:] = 0
            here[:] = 0


@kernel
def apply_level(
    edges: Edges,
    classes: Classes,
    queries: Queries,
    first: int,
    last: int,
    level: Level,
    kept: Kept,
    statistics: Array,
    records: Array,
    n_records: int,
) -> tuple[Array, int]:
    """Record the walks of a level by rule and end, or only their checksum.

    Without kept rules the walks of all rules are counted. Where `statistics` has a row, rows,
    rules, walks and squared arriving rates are added up there, and nothing is recorded.
    """
    width = code_width(level.words, classes.number, level.length)
    of_prefix = np.empty(len(level.chain), dtype=np.uint32)
    of_edge = np.empty(len(level.edges), dtype=np.uint32)
    everything = len(kept.relations) == 0
    body_of = _kept_bodies(kept, level)
    # Out of the loop: an array that is taken out of a tuple is counted in and out.
    body_begin, group_begin, group_end = level.body_begin, level.group_begin, level.group_end
    prefix, end = level.prefix, level.last
    total = np.zeros(2 * width + 1, dtype=np.int64)
    here = np.zeros(2 * width + 1, dtype=np.int32)
    touched = np.empty(2 * width + 2, dtype=np.uint32)
    row_code = np.empty(len(level.prefix), dtype=np.int32)
    row_end = np.empty(len(level.prefix), dtype=np.int32)
    row_count = np.empty(len(level.prefix), dtype=np.int32)
    for query in range(first, last):
        _fill_tables(edges, classes, queries, query, level, width, of_prefix, of_edge)
        for body in range(len(body_of)):
            low = high = 0
            if not everything:
                if body_of[body] < 0:
                    continue
                low, high = _rules_of_head(kept, body_of[body], queries.head[query])
                if low == high:
                    continue
            n_rows, n_codes = _rows_of_body(
                body_begin[body],
                body_begin[body + 1],
                group_begin,
                group_end,
                prefix,
                end,
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
            if len(statistics) > 0:
                statistics[0, 0] += n_rows
                statistics[0, 1] += n_codes
                for row in range(n_rows):
                    rate = row_count[row] / total[row_code[row]]
                    statistics[0, 2] += row_count[row]
                    statistics[0, 3] += rate * rate
            else:
                records = _grown(records, n_records + n_rows)
                for row in range(n_rows):
                    name = level.relations[body]
                    if not everything:
                        name = _rule_of_code(kept, low, high, row_code[row])
                        if name < 0:
                            continue
                    record = records[n_records]
                    record[0], record[1], record[2] = query, level.form, level.length
                    record[3], record[4], record[5] = name, level.digits[body], row_code[row]
                    record[6], record[7] = row_end[row], row_count[row]
                    n_records += 1
            for row in range(n_rows):
                total[row_code[row]] = 0
    return records, n_records


@kernel
def _fill_tables(
    edges: Edges,
    classes: Classes,
    queries: Queries,
    query: int,
    level: Level,
    width: int,
    of_prefix: Array,
    of_edge: Array,
) -> None:
    """What each prefix and each last edge of a level adds to the codes of a query."""
    nothing = np.empty(0, dtype=np.int8)
    contributions(
        level.words,
        width,
        classes.number,
        classes.of_query[query] if len(classes.of_query) > 0 else nothing,
        edges.interval,
        edges.fact,
        edges.start,
        edges.end,
        level.chain,
        level.edges,
        queries.start[query],
        queries.end[query],
        queries.fact[query],
        of_prefix,
        of_edge,
    )


@kernel
def _kept_bodies(kept: Kept, level: Level) -> Array:
    """For each body of a level the kept one that it is, or -1."""
    found = np.full(len(level.body_begin) - 1, -1, dtype=np.int64)
    if len(kept.relations) > 0:
        for body in range(len(found)):
            found[body] = _kept_body(
                kept, level.form, level.length, level.relations[body], level.digits[body]
            )
    return found


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
def _grown(records: Array, needed: int) -> Array:
    """The same records with room for as many as needed."""
    if needed <= len(records):
        return records
    larger = np.empty((max(needed, 2 * len(records)), records.shape[1]), dtype=np.int64)
    larger[: len(records)] = records
    return larger


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
