"""Move facts between splits, or mark them as walked on only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.graph import ESTIMATED, SPLITS, FactTable, LabelTable, TemporalGraph, build_graph
from tilp.types import WalkGraph

TRAIN, VALID, TEST = (np.uint8(place) for place in range(len(SPLITS)))
LEFT_OUT = np.uint8(len(SPLITS))
"""The place of a fact that is in no split."""


def exclude_from_training(
    graph: TemporalGraph, facts: NDArray[np.int64], walked: WalkGraph
) -> TemporalGraph:
    """The graph in which some training facts are not learned from.

    Args:
        graph: the facts.
        facts: their numbers.
        walked: whether they are still walked on.
    """
    if walked is WalkGraph.REDUCED:
        return graph.without(facts)
    walked_only = graph.walked_only.copy()
    walked_only[facts] = True
    return replace(graph, walked_only=walked_only)


def reassign_splits(
    graph: TemporalGraph,
    split_ids: NDArray[np.uint8],
    *,
    no_start: NDArray[np.bool_] | None = None,
    no_end: NDArray[np.bool_] | None = None,
) -> TemporalGraph:
    """The facts in other splits, some of their dates taken away, as if they had been read so.

    Facts of one split keep their order, and names stay, also those of which no fact is left.

    Args:
        graph: the facts.
        place: of each fact in `SPLITS`; `LEFT_OUT` for none of them.
        no_start: facts whose start is taken away.
        no_end: likewise.

    Raises:
        TilpError: some of the facts are only walked on.
    """
    if graph.walked_only.any():
        raise TilpError(
            "some training facts are marked as walked only (column walked_only), and could not "
            "be so in another split; split the data they were taken from"
        )
    table, estimated = graph.frame(names="ids"), graph.estimated
    for bit, (name, gone) in enumerate((("start", no_start), ("end", no_end))):
        if gone is not None:
            lost = pl.lit(pl.Series(gone))
            table = table.with_columns(pl.when(lost).then(pl.lit("")).otherwise(name).alias(name))
            estimated = np.where(gone, estimated & ~np.uint8(1 << bit), estimated)
    table = table.with_columns(estimated=pl.Series(ESTIMATED).gather(estimated))
    tables = []
    for number, split in enumerate(SPLITS):
        part = table.filter(pl.Series(split_ids == number))
        tables.append(FactTable(split, split, part, range(1, len(part) + 1)))
    return build_graph(
        tables,
        entities=LabelTable("entities", graph.entities.frame()),
        relations=LabelTable("relations", graph.relations.frame()),
        attributes={
            name: (graph.entities.ids, numbers) for name, numbers in graph.attributes.items()
        },
        unit=graph.unit,
    )
