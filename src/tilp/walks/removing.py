"""The edges that are left to walk on when some facts are taken out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.types import Edges
from tilp.graph import EdgeIndex

__all__ = ["edges_without"]


def edges_without(edges: Edges, index: EdgeIndex, facts: NDArray[np.int64]) -> Edges:
    """The edges of the other facts, in the order they had, without sorting them again.

    Args:
        edges: all of them.
        index: of the graph without these facts, from which the numbers of facts are taken.
        facts: those that are left out.
    """
    kept = ~np.isin(edges.fact, facts)
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    by_rank = number[edges.by_rank[kept[edges.by_rank]]]
    rank = np.empty_like(by_rank)
    rank[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    relation = edges.relation[kept]
    relation.flags.writeable = False  # as before: one compiled loop for both
    return Edges(
        offsets=index.offsets,
        relation=relation,
        target=index.target,
        fact=index.fact,
        start=edges.start[kept],
        end=edges.end[kept],
        rank=rank,
        by_rank=by_rank,
        source=edges.source[kept],
        interval=edges.interval[kept],
    )
