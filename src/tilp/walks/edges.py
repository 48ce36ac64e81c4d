"""The edges that are walked on, as compiled loops take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.types import Edges
from tilp.freezing import frozen, read_only
from tilp.graph import EdgeIndex, PreparedEdges
from tilp.walks.constraints import Steps, Symbols
from tilp.walks.reading import ReadEdges

__all__ = ["inverse_edges", "made_edges", "prepared_edges", "steps_to"]

_EDGES_AT_ONCE = 1_000_000


def prepared_edges(index: EdgeIndex, prepared: PreparedEdges) -> Edges:
    """Edges of which everything was made in advance."""
    return frozen(
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


def made_edges(
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
    return frozen(
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


def steps_to(edges: Edges, steps: NDArray[Any]) -> NDArray[Any]:
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
