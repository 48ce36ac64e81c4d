"""Counting the walks of one level for the queries of one entity.

A walk's *code* says how its intervals lie to the query's; a rule is a body and a code. The code of
a walk is the sum of what its prefix and its last edge contribute, so that two small tables, made
anew for each query interval, give the codes of all walks.
"""

from typing import Any, NamedTuple

import numpy as np

from tilp._kernels import types
from tilp._kernels.arrays import lower_bound
from tilp._kernels.jit import kernel
from tilp._kernels.levels import N_TEMPORAL_RELATIONS, end_as_of, relation_code
from tilp._kernels.types import Array, Edges, Level, RuleIndex
from tilp.time import Allen
from tilp.time import allen_code as plain_allen_code
from tilp.time import gap_code as plain_gap_code

_N_ALLEN = len(Allen)

allen_code = kernel(plain_allen_code)
gap_code = kernel(plain_gap_code)


@kernel
def code_bits(code_type: int, n_gaps: int, length: int) -> int:
    """Return how many bits the codes of walks of a length need; there are `n_gaps` gap classes."""
    n_codes = 1
    if code_type == types.CLASS_CODES:
        n_codes = N_TEMPORAL_RELATIONS**length
    elif code_type == types.ALLEN_CODES:
        n_codes = _N_ALLEN**length
    elif code_type == types.GAP_CODES:
        n_codes = n_gaps
    bits = 0
    while 1 << bits < n_codes:
        bits += 1
    return bits


@kernel
def fill_codes(
    level: Level, edges: Edges, gap_edges: Array, query_start: int, query_end: int, latest: int,
    prefix_code: Array, edge_code: Array,
) -> None:  # fmt: skip
    """Fill the two tables of a query: what each prefix and each last edge adds to a code."""
    chain, last_edges, start, end = level.chain, level.last_edges, edges.start, edges.end
    if level.code_type == types.CLASS_CODES:
        _fill_classes(
            query_start, query_end, latest, start, end, chain, last_edges, prefix_code, edge_code
        )
    elif level.code_type == types.ALLEN_CODES:
        _fill_allen(
            query_start, query_end, latest, start, end, chain, last_edges, prefix_code, edge_code
        )
    else:
        prefix_code[:] = 0
        for local in range(len(last_edges)):
            edge = last_edges[local]
            until = end_as_of(start[edge], end[edge], latest)
            gap = gap_code(start[edge], until, query_start, query_end, gap_edges)
            edge_code[local] = gap if level.code_type == types.GAP_CODES else 0


# Two loops of one shape: one that chooses the code, or calls a function to, is much slower.


@kernel
def _fill_classes(
    query_start: int, query_end: int, latest: int, start: Array, end: Array, chain: Array,
    last_edges: Array, prefix_code: Array, edge_code: Array,
) -> None:  # fmt: skip
    for local in range(len(last_edges)):
        edge = last_edges[local]
        until = end_as_of(start[edge], end[edge], latest)
        edge_code[local] = relation_code(start[edge], until, query_start, query_end)
    for prefix in range(len(chain)):
        code = 0
        for step in range(chain.shape[1]):
            edge = chain[prefix, step]
            until = end_as_of(start[edge], end[edge], latest)
            digit = relation_code(start[edge], until, query_start, query_end)
            code = N_TEMPORAL_RELATIONS * (code + digit)
        prefix_code[prefix] = code


@kernel
def _fill_allen(
    query_start: int, query_end: int, latest: int, start: Array, end: Array, chain: Array,
    last_edges: Array, prefix_code: Array, edge_code: Array,
) -> None:  # fmt: skip
    for local in range(len(last_edges)):
        edge = last_edges[local]
        until = end_as_of(start[edge], end[edge], latest)
        edge_code[local] = allen_code(start[edge], until, query_start, query_end)
    for prefix in range(len(chain)):
        code = 0
        for step in range(chain.shape[1]):
            edge = chain[prefix, step]
            until = end_as_of(start[edge], end[edge], latest)
            digit = allen_code(start[edge], until, query_start, query_end)
            code = _N_ALLEN * (code + digit)
        prefix_code[prefix] = code


class WalkRows(NamedTuple):
    """Counts of walks: a row is a group of walks and a code."""

    offsets: Array  # of the walks of each group
    group: Array  # of each walk, likewise prefix and last edge
    prefix: Array
    last: Array
    prefix_code: Array  # what each prefix adds to codes, likewise last edges
    edge_code: Array
    first: Array  # the rows of group g are at first[g]:first[g + 1]
    code: Array  # of each row, likewise its count
    n_walks: Array


@kernel
def group_ids(offsets: Array) -> Array:
    """Return the group of each walk."""
    groups = np.empty(offsets[-1], dtype=np.uint32)
    for group in range(len(offsets) - 1):
        for walk in range(offsets[group], offsets[group + 1]):
            groups[walk] = group
    return groups


@kernel
def count_rows(rows: WalkRows, bits: int, counts: Array, touched: Array) -> int:
    """Count walks by group and code, and return the number of rows.

    `counts` are zeros to count in, as many groups at once as there is room for; `touched` has room
    for as many slots of it as there are walks.
    """
    offsets, first_row, row_code, row_count = rows.offsets, rows.first, rows.code, rows.n_walks
    group, prefix, last = rows.group, rows.prefix, rows.last
    prefix_code, edge_code = rows.prefix_code, rows.edge_code
    n_groups = len(offsets) - 1
    at_once = max(1, len(counts) >> bits)
    codes = (1 << bits) - 1
    n_rows = 0
    for first in range(0, n_groups, at_once):
        begin, stop = offsets[first], offsets[min(first + at_once, n_groups)]
        n_touched = _count_slots(
            group[begin:stop], prefix[begin:stop], last[begin:stop], prefix_code, edge_code,
            np.uint32(first), np.uint32(bits), counts, touched,
        )  # fmt: skip
        # Backwards, so that the first row of each group is the last one written to `first_row`.
        for index in range(n_touched - 1, -1, -1):
            slot = np.uint32(touched[index])
            row_code[n_rows + index] = slot & codes
            row_count[n_rows + index] = counts[slot]
            first_row[first + (slot >> bits)] = n_rows + index
            counts[slot] = 0
        n_rows += n_touched
    first_row[n_groups] = n_rows
    return n_rows


@kernel
def _count_slots(
    group: Array, prefix: Array, last: Array, prefix_code: Array, edge_code: Array,
    first_group: np.uint32, bits: np.uint32, counts: Array, touched: Array,
) -> Any:  # fmt: skip
    """Count walks by slot and list the slots that are touched, without a branch."""
    n = np.uint64(0)
    for walk in range(len(prefix)):
        slot = np.uint32((group[walk] - first_group) << bits)
        slot = np.uint32(slot + prefix_code[prefix[walk]] + edge_code[last[walk]])
        count = counts[slot]
        touched[n] = slot
        n += np.uint64(count == 0)
        counts[slot] = count + 1
    return np.int64(n)


@kernel
def find_row(first_row: Array, row_code: Array, group: int, code: int) -> int:
    """Return the row of a group and of a code that it has; a group has few rows."""
    row = first_row[group]
    while row_code[row] != code:
        row += 1
    return row


@kernel
def number_rules(
    body_offsets: Array, rows: WalkRows, number_of_code: Array, row_rule: Array, rule_body: Array,
    rule_code: Array,
) -> int:  # fmt: skip
    """Number the rules of rows, that is the codes of each body, and return how many there are.

    `row_rule` gets the rule of each row, the others the body and code of each rule;
    `number_of_code` has room for each code.
    """
    first_row, row_code = rows.first, rows.code
    n = 0
    number_of_code[:] = 0
    for body in range(len(body_offsets) - 1):
        before = n
        for row in range(first_row[body_offsets[body]], first_row[body_offsets[body + 1]]):
            code = row_code[row]
            # Numbers of earlier bodies are not wiped: they are too small to be of this one.
            if number_of_code[code] <= before:
                rule_body[n], rule_code[n] = body, code
                n += 1
                number_of_code[code] = n
            row_rule[row] = number_of_code[code] - 1
    return n


class FactLinks(NamedTuple):
    """Linked lists of the walks over each query's own fact, one list for each step and fact."""

    fact_of_query: Array  # list of each query (0: none)
    latest: Array  # last walk of each step and list
    earlier: Array  # walk before each one (-1: the end)


@kernel
def link_query_facts(query_facts: Array, fact: Array, level: Level, of_fact: Array) -> FactLinks:
    """Link the walks over each query's own fact; `of_fact` are zeros to work with."""
    chain, last_edges, prefix, last = level.chain, level.last_edges, level.prefix, level.last
    fact_of_query = np.zeros(len(query_facts), dtype=np.int32)
    n_facts = 0
    for query in range(len(query_facts)):
        query_fact = query_facts[query]
        if query_fact >= 0:
            if of_fact[query_fact] == 0:
                n_facts += 1
                of_fact[query_fact] = n_facts
            fact_of_query[query] = of_fact[query_fact]
    length = chain.shape[1] + 1
    latest = np.full((length, n_facts + 1), -1, dtype=np.int32)
    earlier = np.empty((length, len(prefix) if n_facts > 0 else 0), dtype=np.int32)
    if n_facts > 0:
        link_of = np.empty(max(len(chain), len(last_edges)), dtype=np.int32)
        for step in range(length - 1):
            for index in range(len(chain)):
                link_of[index] = of_fact[fact[chain[index, step]]]
            _link(prefix, link_of, latest[step], earlier[step])
        for local in range(len(last_edges)):
            link_of[local] = of_fact[fact[last_edges[local]]]
        _link(last, link_of, latest[-1], earlier[-1])
        for query in range(len(query_facts)):
            if query_facts[query] >= 0:
                of_fact[query_facts[query]] = 0
    return FactLinks(fact_of_query, latest, earlier)


@kernel
def _link(part: Array, link_of: Array, latest: Array, earlier: Array) -> None:
    """Link walks by the list of one of their parts; list 0 stands for no fact and stays empty."""
    for walk in range(len(part)):
        link = link_of[part[walk]]
        earlier[walk] = latest[link]
        latest[link] = walk
    latest[0] = -1


@kernel
def remove_query_fact(rows: WalkRows, links: FactLinks, query: int, removed: Array) -> int:
    """Take walks over a query's own fact out of the rows; list these, and return how many."""
    group, prefix, last, first_row = rows.group, rows.prefix, rows.last, rows.first
    row_code, row_count = rows.code, rows.n_walks
    prefix_code, edge_code = rows.prefix_code, rows.edge_code
    latest, earlier, link = links.latest, links.earlier, links.fact_of_query[query]
    n = 0
    for step in range(len(latest)):
        walk = latest[step, link]
        while walk >= 0:
            code = prefix_code[prefix[walk]] + edge_code[last[walk]]
            row = find_row(first_row, row_code, group[walk], code)
            row_count[row] -= 1
            removed[n] = row
            n += 1
            walk = earlier[step, walk]
    return n


@kernel
def find_bodies(rules: RuleIndex, level: Level) -> Array:
    """Return the index of each body of a level among those of the rules, or -1."""
    rule_relations, rule_digits = rules.relations, rules.digits
    relations, digits = level.relations, level.digits
    low = rules.body_offsets[level.form, level.length]
    high = rules.body_offsets[level.form, level.length + 1]
    bodies = np.full(len(relations), -1, dtype=np.int64)
    for body in range(len(bodies)):
        first, stop = low, high
        while first < stop:
            middle = (first + stop) // 2
            if rule_relations[middle] < relations[body] or (
                rule_relations[middle] == relations[body] and rule_digits[middle] < digits[body]
            ):
                first = middle + 1
            else:
                stop = middle
        if first < high and rule_relations[first] == relations[body]:
            bodies[body] = first if rule_digits[first] == digits[body] else -1
    return bodies


@kernel
def find_rules_of_relation(rules: RuleIndex, bodies: Array, relation: int) -> Array:
    """Return where the rules of each body for one relation begin and end; (0, 0) without any."""
    offsets, relations = rules.rule_offsets, rules.directed_relation
    spans = np.zeros((len(bodies), 2), dtype=np.int64)
    for index in range(len(bodies)):
        if bodies[index] >= 0:
            low, high = offsets[bodies[index]], offsets[bodies[index] + 1]
            spans[index, 0] = lower_bound(relations, low, high, relation)
            spans[index, 1] = lower_bound(relations, spans[index, 0], high, relation + 1)
    return spans


@kernel
def select_bodies(level: Level, chosen: Array) -> Level:
    """Return the walks of the chosen bodies, given in ascending order, as a level of their own."""
    bodies, group_offsets = level.body_offsets, level.group_offsets
    body_offsets, groups = _joined_ranges(bodies[chosen], bodies[chosen + 1])
    walk_offsets, walks = _joined_ranges(group_offsets[groups], group_offsets[groups + 1])
    return Level(
        level.form, level.code_type, level.length, level.chain, level.last_edges,
        level.prefix[walks], level.last[walks], walk_offsets, level.group_target[groups],
        body_offsets, level.relations[chosen], level.digits[chosen],
    )  # fmt: skip


@kernel
def _joined_ranges(begin: Array, stop: Array) -> tuple[Array, Array]:
    """Return where each range begins among all of them, and the integers of all ranges."""
    offsets = np.zeros(len(begin) + 1, dtype=np.int32)
    for index in range(len(begin)):
        offsets[index + 1] = offsets[index] + stop[index] - begin[index]
    integers = np.empty(offsets[-1], dtype=np.int32)
    for index in range(len(begin)):
        shift = begin[index] - offsets[index]
        for place in range(offsets[index], offsets[index + 1]):
            integers[place] = place + shift
    return offsets, integers
