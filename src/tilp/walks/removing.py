"""The edges that are left to walk on when some facts are taken out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.types import Edges
from tilp.graph.index import edges_left
from tilp.walks.edges import read_only

__all__ = ["edges_without"]


def edges_without(edges: Edges, numbers: NDArray[np.int32]) -> Edges:
    """The edges of some of the facts, in the order they had, without sorting them again.

    Args:
        edges: all of them.
        numbers: of each fact the new one, rising; -1: it is left out.
    """
    kept, offsets, fact = edges_left(edges.offsets, edges.fact, numbers)
    place = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    by_rank = place[edges.by_rank[kept[edges.by_rank]]]
    rank = np.empty_like(by_rank)
    rank[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    return read_only(
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
