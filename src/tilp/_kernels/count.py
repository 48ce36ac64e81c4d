"""Counting the walks of one level for the queries asked of one entity.

A walk's *code* says how its intervals lie to the query's; a rule is a body and a code. The code
of an item is the sum of what its prefix and what its last edge contribute, so that two small
tables, made anew for each interval that is asked about, give the codes of all items.
"""

from typing import Any

import numpy as np

from tilp._kernels.expand import CLASS_WORDS, relation_code
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array
from tilp.time import GAP_CLASSES, Allen
from tilp.time import allen_code as plain_allen_code
from tilp.time import gap_code as plain_gap_code

CLASSES, ALLEN, GAP, NOTHING = 0, 1, 2, 3
"""What codes are made of: classes or Allen's relations of each interval, the last one's gap."""

_ALLEN_WORDS = len(Allen)
_GAP_WORDS = len(GAP_CLASSES)

allen_code = kernel(plain_allen_code)
gap_code = kernel(plain_gap_code)


@kernel
def _code_width(words: int, base: int, length: int) -> int:
    """How many codes the walks of one length have; `base` is the number of classes."""
    if words == CLASSES:
        return base**length
    if words == ALLEN:
        return _ALLEN_WORDS**length
    return _GAP_WORDS if words == GAP else 1


@kernel
def code_bits(words: int, base: int, length: int) -> int:
    """How many bits the codes of the walks of one length need."""
    bits = 0
    while 1 << bits < _code_width(words, base, length):
        bits += 1
    return bits


@kernel
def contributions(
    words: int,
    classes: int,
    query: int,
    query_start: int,
    query_end: int,
    of_query: Array,
    interval: Array,
    start: Array,
    end: Array,
    chain: Array,
    edges: Array,
    of_prefix: Array,
    of_edge: Array,
) -> None:
    """Fill the two tables of a query: what each prefix and each last edge adds to a code.

    `of_query` holds the class of every interval against each query's, where classes are one's own.
    """
    if words == CLASSES and len(of_query) > 0:
        _own_classes(classes, query, of_query, interval, chain, edges, of_prefix, of_edge)
    elif words == CLASSES:
        _classes(query_start, query_end, start, end, chain, edges, of_prefix, of_edge)
    elif words == ALLEN:
        _allen(query_start, query_end, start, end, chain, edges, of_prefix, of_edge)
    else:
        of_prefix[:] = 0
        for local in range(len(edges)):
            edge = edges[local]
            gap = gap_code(start[edge], end[edge], query_start, query_end)
            of_edge[local] = gap if words == GAP else 0


# The same three times: a loop that chooses among words, or calls a function to, is much slower.


@kernel
def _classes(
    query_start: int,
    query_end: int,
    start: Array,
    end: Array,
    chain: Array,
    edges: Array,
    of_prefix: Array,
    of_edge: Array,
) -> None:
    for local in range(len(edges)):
        edge = edges[local]
        of_edge[local] = relation_code(start[edge], end[edge], query_start, query_end)
    for walk in range(len(chain)):
        code = 0
        for step in range(chain.shape[1]):
            edge = chain[walk, step]
            word = relation_code(start[edge], end[edge], query_start, query_end)
            code = CLASS_WORDS * (code + word)
        of_prefix[walk] = code


@kernel
def _allen(
    query_start: int,
    query_end: int,
    start: Array,
    end: Array,
    chain: Array,
    edges: Array,
    of_prefix: Array,
    of_edge: Array,
) -> None:
    for local in range(len(edges)):
        edge = edges[local]
        of_edge[local] = allen_code(start[edge], end[edge], query_start, query_end)
    for walk in range(len(chain)):
        code = 0
        for step in range(chain.shape[1]):
            edge = chain[walk, step]
            word = allen_code(start[edge], end[edge], query_start, query_end)
            code = _ALLEN_WORDS * (code + word)
        of_prefix[walk] = code


@kernel
def _own_classes(
    classes: int,
    query: int,
    of_query: Array,
    interval: Array,
    chain: Array,
    edges: Array,
    of_prefix: Array,
    of_edge: Array,
) -> None:
    for local in range(len(edges)):
        of_edge[local] = of_query[query, interval[edges[local]]]
    for walk in range(len(chain)):
        code = 0
        for step in range(chain.shape[1]):
            code = classes * (code + of_query[query, interval[chain[walk, step]]])
        of_prefix[walk] = code


@kernel
def number_of_run(begin: Array) -> Array:
    """For each item the number of the run that it stands in; runs begin at `begin`."""
    number = np.empty(begin[-1], dtype=np.uint32)
    for run in range(len(begin) - 1):
        for item in range(begin[run], begin[run + 1]):
            number[item] = run
    return number


@kernel
def count_rows(
    group_begin: Array,
    group_of: Array,
    prefix: Array,
    last: Array,
    of_prefix: Array,
    of_edge: Array,
    bits: int,
    counts: Array,
    touched: Array,
    first_row: Array,
    row_code: Array,
    row_count: Array,
) -> int:
    """Count walks by group and code.

    Args:
        group_begin: where the walks of each group begin, and where the last end.
        group_of: the group of each walk; likewise `prefix` and `last`.
        of_prefix: what each prefix adds to the code; likewise `of_edge` each last edge.
        bits: that a code has at the most.
        counts: a 0 for each slot, to count with: as many groups at once as there is room for.
        touched: room for as many slots as there are walks.
        first_row: gets the first row of each group, and the number of rows.
        row_code: gets the code of each row, in the order of groups; likewise `row_count`.

    Returns:
        The number of rows.
    """
    n_groups = len(group_begin) - 1
    at_once = max(1, len(counts) >> bits)
    codes = (1 << bits) - 1
    n_rows = 0
    for first in range(0, n_groups, at_once):
        begin, stop = group_begin[first], group_begin[min(first + at_once, n_groups)]
        n_touched = _count_slots(
            group_of[begin:stop],
            prefix[begin:stop],
            last[begin:stop],
            of_prefix,
            of_edge,
            np.uint32(first),
            np.uint32(bits),
            counts,
            touched,
        )
        # Backwards, so that the first row of each group is written to `first_row` last.
        for place in range(n_touched - 1, -1, -1):
            slot = np.uint32(touched[place])
            row_code[n_rows + place] = slot & codes
            row_count[n_rows + place] = counts[slot]
            first_row[first + (slot >> bits)] = n_rows + place
            counts[slot] = 0
        n_rows += n_touched
    first_row[n_groups] = n_rows
    return n_rows


@kernel
def _count_slots(
    group_of: Array,
    prefix: Array,
    last: Array,
    of_prefix: Array,
    of_edge: Array,
    first_group: np.uint32,
    bits: np.uint32,
    counts: Array,
    touched: Array,
) -> Any:
    """Count walks by slot, and list the slots that are touched; without a branch."""
    n = np.uint64(0)
    for item in range(len(prefix)):
        slot = np.uint32((group_of[item] - first_group) << bits)
        slot = np.uint32(slot + of_prefix[prefix[item]] + of_edge[last[item]])
        count = counts[slot]
        touched[n] = slot
        n += np.uint64(count == 0)
        counts[slot] = count + 1
    return np.int64(n)


@kernel
def find_row(first_row: Array, row_code: Array, group: int, code: int) -> int:
    """The row of a group and a code that it has; it has few."""
    row = first_row[group]
    while row_code[row] != code:
        row += 1
    return row


@kernel
def number_rules(
    body_begin: Array,
    first_row: Array,
    row_code: Array,
    row_count: Array,
    number_of: Array,
    row_rule: Array,
    rule_body: Array,
    rule_code: Array,
    rule_total: Array,
) -> int:
    """Number the rules of rows: the codes of each body.

    Args:
        body_begin: where the groups of each body begin, and where the last end.
        first_row: of each group; likewise `row_code` and `row_count`, as `count_rows` gives them.
        number_of: room for a number for each code.
        row_rule: gets the number of each row's rule.
        rule_body: gets the body of each rule; likewise its code, and how many walks it has.

    Returns:
        The number of rules.
    """
    n = 0
    number_of[:] = 0
    for body in range(len(body_begin) - 1):
        before = n
        for row in range(first_row[body_begin[body]], first_row[body_begin[body + 1]]):
            code = row_code[row]
            # Numbers of earlier bodies are not wiped: they are too small to be of this one.
            if number_of[code] <= before:
                rule_body[n], rule_code[n], rule_total[n] = body, code, 0
                n += 1
                number_of[code] = n
            rule = number_of[code] - 1
            row_rule[row] = rule
            rule_total[rule] += row_count[row]
    return n


@kernel
def link_own_facts(
    own_facts: Array,
    fact: Array,
    chain: Array,
    edges: Array,
    prefix: Array,
    last: Array,
    of_fact: Array,
) -> tuple[Array, Array, Array]:
    """Link the walks over each query's own fact, so that they are found without a search.

    Args:
        own_facts: of the queries (-1: none).
        fact: of each edge of the graph.
        chain: the edges of each prefix.
        edges: the distinct last edges.
        prefix: of each walk; likewise `last`, the place of its last edge.
        of_fact: a 0 for each fact, to work with.

    Returns:
        The number of each query's own fact, and for each step: the last walk that takes that fact
        there, and for each walk the one before it (-1: there is none).
    """
    number = np.zeros(len(own_facts), dtype=np.int32)
    n_facts = 0
    for query in range(len(own_facts)):
        own = own_facts[query]
        if own >= 0:
            if of_fact[own] == 0:
                n_facts += 1
                of_fact[own] = n_facts
            number[query] = of_fact[own]
    length = chain.shape[1] + 1
    latest = np.full((length, n_facts + 1), -1, dtype=np.int32)
    earlier = np.empty((length, len(prefix) if n_facts > 0 else 0), dtype=np.int32)
    if n_facts > 0:
        own_of = np.empty(max(len(chain), len(edges)), dtype=np.int32)
        for step in range(length - 1):
            for walk in range(len(chain)):
                own_of[walk] = of_fact[fact[chain[walk, step]]]
            _link(prefix, own_of, latest[step], earlier[step])
        for local in range(len(edges)):
            own_of[local] = of_fact[fact[edges[local]]]
        _link(last, own_of, latest[-1], earlier[-1])
        for query in range(len(own_facts)):
            if own_facts[query] >= 0:
                of_fact[own_facts[query]] = 0
    return number, latest, earlier


@kernel
def _link(part: Array, own_of: Array, latest: Array, earlier: Array) -> None:
    """Link the walks by what a part of them takes; 0 stands for nothing, and begins no links."""
    for item in range(len(part)):
        own = own_of[part[item]]
        earlier[item] = latest[own]
        latest[own] = item
    latest[0] = -1


@kernel
def take_out(
    own: int,
    latest: Array,
    earlier: Array,
    group_of: Array,
    prefix: Array,
    last: Array,
    of_prefix: Array,
    of_edge: Array,
    first_row: Array,
    row_code: Array,
    row_count: Array,
    taken: Array,
) -> int:
    """Take the walks over a query's own fact out of the rows.

    Args:
        own: the number of the fact, as `link_own_facts` gives it; likewise the links.
        taken: gets the row of each walk that is taken out.

    Returns:
        How many walks are taken out.
    """
    n = 0
    for step in range(len(latest)):
        item = latest[step, own]
        while item >= 0:
            code = of_prefix[prefix[item]] + of_edge[last[item]]
            row = find_row(first_row, row_code, group_of[item], code)
            row_count[row] -= 1
            taken[n] = row
            n += 1
            item = earlier[step, item]
    return n
