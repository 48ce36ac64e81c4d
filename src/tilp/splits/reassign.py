"""Move facts between splits, or exclude them from training."""

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Ints, Mask
from tilp.errors import TilpError
from tilp.graph import ESTIMATED, SPLITS, TemporalGraph
from tilp.graph.build import rebuild_graph
from tilp.types import WalkGraph

TRAIN, VALID, TEST = (np.uint8(index) for index in range(len(SPLITS)))
LEFT_OUT = np.uint8(len(SPLITS))  # split id of a fact that is in no split


def exclude_from_training(graph: TemporalGraph, facts: Ints, walked: WalkGraph) -> TemporalGraph:
    """Return the graph without some training facts, or with these facts for walks only."""
    if walked is WalkGraph.REDUCED:
        return graph.without(facts)
    walked_only = graph.walked_only.copy()
    walked_only[facts] = True
    return replace(graph, walked_only=walked_only)


def reassign_splits(
    graph: TemporalGraph,
    split_ids: NDArray[np.uint8],
    *,
    no_start: Mask | None = None,
    no_end: Mask | None = None,
) -> TemporalGraph:
    """Return the facts in new splits, with some dates removed, as if they had been read like that.

    The facts of a split keep their order. Names stay, even without facts. `split_ids` has the index
    in `SPLITS` of each fact, or `LEFT_OUT`; `no_start` and `no_end` mask dates to remove.
    """
    if graph.walked_only.any():
        raise TilpError(
            "some training facts are for walks only (column walked_only), which is not possible in "
            "other splits; split the original data"
        )
    table, estimated = graph.frame(names="ids"), graph.estimated
    for bit, (name, removed) in enumerate((("start", no_start), ("end", no_end))):
        if removed is not None:
            mask = pl.lit(pl.Series(removed))
            table = table.with_columns(pl.when(mask).then(pl.lit("")).otherwise(name).alias(name))
            estimated = np.where(removed, estimated & ~np.uint8(1 << bit), estimated)
    table = table.with_columns(estimated=pl.Series(ESTIMATED).gather(estimated))
    frames = {s: table.filter(pl.Series(split_ids == index)) for index, s in enumerate(SPLITS)}
    return rebuild_graph(frames, graph.entities, graph.relations, graph.unit, graph.attributes)
