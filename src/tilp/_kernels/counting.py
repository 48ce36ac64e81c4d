"""Counting the walks of one level for the queries asked of one entity.

A walk's *code* says how its intervals lie to the query's; a rule is a body and a code. The code
of an item is the sum of what its prefix and what its last edge contribute, so that two small
tables, made anew for each interval that is asked about, give the codes of all items.
"""

from tilp._kernels.expansion import CLASS_WORDS, relation_code
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array
from tilp.intervals.gaps import GAP_WORDS
from tilp.intervals.gaps import gap_code as plain_gap_code
from tilp.intervals.relations import Allen
from tilp.intervals.relations import allen_code as plain_allen_code

__all__ = [
    "ALLEN",
    "CLASSES",
    "GAP",
    "NOTHING",
    "code_bits",
    "contributions",
]

CLASSES, ALLEN, GAP, NOTHING = 0, 1, 2, 3
"""What codes are made of: classes or Allen's relations of each interval, the last one's gap."""

_ALLEN_WORDS = len(Allen)
_GAP_WORDS = len(GAP_WORDS)

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
