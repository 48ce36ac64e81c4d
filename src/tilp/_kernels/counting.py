"""Counting the walks of one level for the queries asked of one entity.

A walk's *code* says how its intervals lie to the query's; a rule is a body and a code. The code
of an item is the sum of what its prefix and what its last edge contribute, so that two small
tables, made anew for each query, give the codes of all items. What uses the query's own fact
contributes so much that the sum is past every code.
"""

from tilp._kernels.expansion import relation_code
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array
from tilp.intervals.gaps import GAP_WORDS
from tilp.intervals.gaps import gap_code as plain_gap_code
from tilp.intervals.relations import Allen
from tilp.intervals.relations import allen_code as plain_allen_code

__all__ = ["ALLEN", "CLASSES", "GAP", "NOTHING", "code_bits", "code_width", "contributions"]

CLASSES, ALLEN, GAP, NOTHING = 0, 1, 2, 3
"""What codes are made of: classes or Allen's relations of each interval, the last one's gap."""

_ALLEN_WORDS = len(Allen)
_GAP_WORDS = len(GAP_WORDS)

allen_code = kernel(plain_allen_code)
gap_code = kernel(plain_gap_code)


@kernel
def code_width(words: int, base: int, length: int) -> int:
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
    while 1 << bits < code_width(words, base, length):
        bits += 1
    return bits


@kernel
def _code(words: int, start: int, end: int, other_start: int, other_end: int) -> int:
    if words == CLASSES:
        return relation_code(start, end, other_start, other_end)
    if words == ALLEN:
        return allen_code(start, end, other_start, other_end)
    return gap_code(start, end, other_start, other_end) if words == GAP else 0


@kernel
def contributions(
    words: int,
    width: int,
    classes: int,
    of_query: Array,
    interval: Array,
    fact: Array,
    start: Array,
    end: Array,
    chain: Array,
    edges: Array,
    query_start: int,
    query_end: int,
    own_fact: int,
    of_prefix: Array,
    of_edge: Array,
) -> None:
    """Fill the two tables of a query: what each prefix and each last edge adds to a code.

    `of_query` holds the class of every interval against the query's, where classes are one's own.
    """
    base = classes if words == CLASSES else _ALLEN_WORDS
    own = words == CLASSES and len(of_query) > 0
    for local in range(len(edges)):
        edge = edges[local]
        if fact[edge] == own_fact:
            of_edge[local] = width
        elif own:
            of_edge[local] = of_query[interval[edge]]
        else:
            of_edge[local] = _code(words, start[edge], end[edge], query_start, query_end)
    for walk in range(len(chain)):
        code = 0
        for step in range(chain.shape[1]):
            edge = chain[walk, step]
            if fact[edge] == own_fact:
                code = width
                break
            if own:
                code = base * code + of_query[interval[edge]]
            elif words <= ALLEN:
                code = base * code + _code(words, start[edge], end[edge], query_start, query_end)
        of_prefix[walk] = width if code == width else (base * code if words <= ALLEN else 0)
