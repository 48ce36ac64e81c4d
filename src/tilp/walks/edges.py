"""Edges and queries of which an end is not known, in each of their readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.types import Edges
from tilp._utils.arrays import read_only, read_only_tuple
from tilp.graph import EdgeIndex, PreparedEdges, TemporalGraph
from tilp.graph.index import remaining_edges
from tilp.time import known_ends, possible_intervals
from tilp.walks.constraints import Steps, Symbols


@dataclass(frozen=True)
class ReadEdges:
    """The edges of a graph with their times, perhaps one for each reading of their facts.

    Attributes:
        index: the edges.
        reading: of each edge the number of its reading; a fact's two edges share it.
        start: of each reading; likewise `end`.
    """

    index: EdgeIndex
    reading: NDArray[np.int32] | NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    @classmethod
    def of(cls, graph: TemporalGraph, splits: Iterable[str], *, every: bool) -> ReadEdges:
        """The edges of some splits, in every reading, or with the known end for both."""
        index = graph.index(splits)
        if not every:
            return cls(index, index.fact, *known_ends(graph.start, graph.end))
        fact, start, end = possible_intervals(graph.start, graph.end)
        begin = np.searchsorted(fact, np.arange(len(graph) + 1))
        index = index.repeat(np.diff(begin))
        # Copies of an edge stand side by side; no other edge has both its fact and its relation.
        other = (np.diff(index.fact) != 0) | (np.diff(index.relation) != 0)
        edge = np.arange(len(index.fact))
        first = np.maximum.accumulate(np.where(np.append(True, other)[: len(edge)], edge, 0))
        return cls(index, begin[index.fact] + edge - first, start, end)


def added_up(records: NDArray[np.int64], keys: int) -> NDArray[np.int64]:
    """One record for all that are equal in their first columns, with the sums of the others.

    >>> added_up(np.array([[0, 7, 1], [1, 7, 1], [0, 7, 2]]), keys=2).tolist()
    [[0, 7, 3], [1, 7, 1]]
    """
    records = records[np.lexsort(records[:, :keys].T[::-1])]
    begin = np.flatnonzero((np.diff(records[:, :keys], axis=0, prepend=-1) != 0).any(axis=1))
    added = records[begin]
    if len(begin):
        added[:, keys:] = np.add.reduceat(records[:, keys:], begin, axis=0)
    return added


def edges_without(edges: Edges, numbers: NDArray[np.int32]) -> Edges:
    """The edges of some of the facts, in the order they had, without sorting them again.

    Args:
        edges: all of them.
        numbers: of each fact the new one, rising; -1: it is left out.
    """
    kept, offsets, fact = remaining_edges(edges.offsets, edges.fact, numbers)
    place = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    by_rank = place[edges.by_rank[kept[edges.by_rank]]]
    rank = np.empty_like(by_rank)
    rank[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    # Read-only as before: one compiled loop for both.
    return read_only_tuple(
        Edges(
            offsets=offsets,
            relation=edges.relation[kept],
            target=edges.target[kept],
            fact=fact,
            start=edges.start[kept],
            end=edges.end[kept],
            rank=rank,
            by_rank=by_rank,
            source=edges.source[kept],
            interval=edges.interval[kept],
        )
    )


_EDGES_AT_ONCE = 1_000_000


def prepared_edges(index: EdgeIndex, prepared: PreparedEdges) -> Edges:
    """Edges of which everything was made in advance."""
    return read_only_tuple(
        Edges(
            offsets=index.offsets,
            relation=index.relation,
            target=index.target,
            fact=index.fact,
            start=prepared.start,
            end=prepared.end,
            rank=prepared.rank,
            by_rank=prepared.by_rank,
            source=prepared.source,
            interval=np.zeros(len(index.fact), np.int32),
        )
    )


def build_edges(
    read: ReadEdges,
    symbols: Symbols,
    attributes: Mapping[str, NDArray[np.float64]],
    interval: NDArray[np.int32] | None,
) -> Edges:
    """Edges with all that walks need of them.

    Args:
        read: the edges with their times.
        symbols: what stands for a relation and the words of a step.
        attributes: numbers of entities, which constraints look at.
        interval: the number of each reading's interval; None where no word needs it.
    """
    index, reading = read.index, read.reading
    start, end = read.start[reading], read.end[reading]
    degrees = np.diff(index.offsets)
    source = np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)
    symbol = index.relation
    if symbols.constraints:
        steps = Steps(
            start,
            end,
            here={name: values[source] for name, values in attributes.items()},
            there={name: values[index.target] for name, values in attributes.items()},
        )
        symbol = symbols.of_edges(index.relation, steps)
    by_rank = np.lexsort((index.target, symbol)).astype(np.int32)  # stable: ties by edge
    rank = np.empty_like(by_rank)
    rank[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    return read_only_tuple(
        Edges(
            offsets=index.offsets,
            relation=symbol,
            target=index.target,
            fact=index.fact,
            start=start,
            end=end,
            rank=rank,
            by_rank=by_rank,
            source=source,
            interval=np.zeros(len(index.fact), np.int32) if interval is None else interval[reading],
        )
    )


def inverse_edges(reading: NDArray[Any]) -> NDArray[np.int32]:
    """For each edge that of the same fact, in the same reading, the other way."""
    pairs = np.argsort(reading, kind="stable").reshape(-1, 2)
    inverse = np.empty(len(reading), np.int32)
    inverse[pairs[:, 0]], inverse[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return read_only(inverse)


def sum_over_targets(edges: Edges, steps: NDArray[Any]) -> NDArray[Any]:
    """The sum over the edges of each entity of what their targets have."""
    added = np.zeros(len(steps))
    first = 0
    while first < len(steps):  # some entities at a time, so that no sum is cut in two
        most = edges.offsets[first] + _EDGES_AT_ONCE
        last = max(int(np.searchsorted(edges.offsets, most, side="right")) - 1, first + 1)
        part = slice(edges.offsets[first], edges.offsets[last])
        source = edges.source[part] - np.int32(first)
        added[first:last] = np.bincount(source, steps[edges.target[part]], last - first)
        first = last
    return added
