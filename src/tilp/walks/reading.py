"""Edges and queries of which an end is not known, in each of their readings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.graph import EdgeIndex, TemporalGraph
from tilp.intervals import known_ends, readings

__all__ = ["ReadEdges", "added_up"]


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
        fact, start, end = readings(graph.start, graph.end)
        begin = np.searchsorted(fact, np.arange(len(graph) + 1))
        index = index.repeated(np.diff(begin))
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
