"""Finding the rules by which the walks of one level reach answers."""

import numpy as np

from tilp._kernels.counting import code_width, contributions, rule_out_own_fact
from tilp._kernels.jit import kernel
from tilp._kernels.records import grown
from tilp._kernels.types import Array, Classes, Edges, Level, Queries

__all__ = ["find_level"]


@kernel
def find_level(
    edges: Edges,
    classes: Classes,
    queries: Queries,
    first: int,
    last: int,
    level: Level,
    records: Array,
    n_records: int,
) -> tuple[Array, int]:
    """Record the rules by which the walks of a level reach the answers of queries."""
    width = code_width(level.words, classes.number, level.length)
    of_prefix = np.empty(len(level.chain), dtype=np.uint32)
    of_edge = np.empty(len(level.edges), dtype=np.uint32)
    seen = np.full(2 * width + 1, -1, dtype=np.int64)
    by_end = np.argsort(level.group_end, kind="mergesort")
    ends_in_order = level.group_end[by_end]
    for query in range(first, last):
        answer = queries.answer[query]
        low = np.searchsorted(ends_in_order, answer)
        high = np.searchsorted(ends_in_order, answer + 1)
        if low == high:
            continue
        _fill_tables(edges, classes, queries, query, level, width, of_prefix, of_edge)
        for place in range(low, high):
            group = by_end[place]
            body = np.searchsorted(level.body_begin, group, side="right") - 1
            mark = query * len(by_end) + group
            for item in range(level.group_begin[group], level.group_begin[group + 1]):
                code = of_prefix[level.prefix[item]] + of_edge[level.last[item]]
                if code < width and seen[code] != mark:
                    seen[code] = mark
                    records = grown(records, n_records + 1)
                    record = records[n_records]
                    record[0], record[1] = level.form, level.length
                    record[2], record[3] = queries.head[query], level.relations[body]
                    record[4], record[5] = level.digits[body], code
                    n_records += 1
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
    contributions(
        level.words,
        classes.number,
        query,
        queries.start[query],
        queries.end[query],
        classes.of_query,
        edges.interval,
        edges.start,
        edges.end,
        level.chain,
        level.edges,
        of_prefix,
        of_edge,
    )
    rule_out_own_fact(
        queries.fact[query], width, edges.fact, level.chain, level.edges, of_prefix, of_edge
    )
