"""Edges as walks read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.types import Edges
from tilp._utils.arrays import Ids, Ints, read_only, read_only_tuple
from tilp.graph import EdgeIndex, PreparedEdges
from tilp.graph.index import remaining_edges
from tilp.time import known_ends


def edges_without(edges: Edges, new_fact: Ids) -> Edges:
    """Return edges in the same order, given each fact's new id, ascending; -1: left out."""
    mask, offsets, fact = remaining_edges(edges.offsets, edges.fact, new_fact)
    new_edge = np.cumsum(mask, dtype=np.int32) - np.int32(1)
    by_rank = new_edge[edges.by_rank[mask[edges.by_rank]]]
    columns = ("relation", "target", "start", "end", "source")
    remaining = {name: getattr(edges, name)[mask] for name in columns}
    rank = _inverse_permutation(by_rank)
    new = Edges(offsets=offsets, fact=fact, rank=rank, by_rank=by_rank, **remaining)
    return read_only_tuple(new)  # as before, so that the same compiled kernel serves both


def prepared_edges(index: EdgeIndex, prepared: PreparedEdges) -> Edges:
    """Return edges of which everything was computed in advance."""
    edges = Edges(
        index.offsets, index.relation, index.target, index.fact, prepared.start, prepared.end,
        prepared.rank, prepared.by_rank, prepared.source,
    )  # fmt: skip
    return read_only_tuple(edges)


def build_edges(index: EdgeIndex, start: Ints, end: Ints) -> Edges:
    """Compute all that walks need of edges, given the dates of facts."""
    start, end = (times[index.fact] for times in known_ends(start, end))
    degrees = np.diff(index.offsets)
    source = np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)
    by_rank = np.lexsort((index.target, index.relation)).astype(np.int32)  # stable: ties by edge
    built = Edges(
        index.offsets, index.relation, index.target, index.fact, start, end,
        _inverse_permutation(by_rank), by_rank, source,
    )  # fmt: skip
    return read_only_tuple(built)


def _inverse_permutation(order: Ids) -> Ids:
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order), dtype=np.int32)
    return inverse


def inverse_edges(fact: Ids) -> Ids:
    """Return the inverse of each edge, which is the other one with the same fact."""
    pairs = np.argsort(fact, kind="stable").reshape(-1, 2)
    inverse = np.empty(len(fact), np.int32)
    inverse[pairs[:, 0]], inverse[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return read_only(inverse)


def sum_over_targets(
    edges: Edges, values: NDArray[Any], *, edges_at_once: int = 1_000_000
) -> NDArray[Any]:
    """Return, for each entity, the sum of the values of its edges' targets, in bounded memory."""
    sums = np.zeros(len(values))
    first = 0
    while first < len(values):
        most = edges.offsets[first] + edges_at_once
        last = max(int(np.searchsorted(edges.offsets, most, side="right")) - 1, first + 1)
        part = slice(edges.offsets[first], edges.offsets[last])
        source = edges.source[part] - np.int32(first)
        sums[first:last] = np.bincount(source, values[edges.target[part]], last - first)
        first = last
    return sums
