"""`impute`: missing dates estimated from how long facts last, and marked as estimates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from tilp.chances import chances
from tilp.choices import Estimate
from tilp.choosing import choose
from tilp.features.durations import Durations
from tilp.graph import TemporalGraph
from tilp.intervals import UNKNOWN, format_time

__all__ = ["impute", "imputed_by_relation"]


def impute(
    graph: TemporalGraph,
    *,
    estimate: Estimate | str = Estimate.EXPECTED,
    seed: int = 0,
    durations: Durations | None = None,
) -> TemporalGraph:
    """The graph with every start or end that is missing alone estimated from the other one.

    Facts without both stay as they are, and so do those whose one known end is open. What is
    estimated is marked in `TemporalGraph.estimated`, which `tilp.write` keeps.

    Args:
        graph: the facts; of all splits the dates are estimated, from the durations of train.
        estimate: by the expected length of the relation's intervals, or by a draw for each fact.
        seed: for draws; each depends on its fact alone.
        durations: to estimate from; those of the graph's train split by default.

    >>> import tilp
    >>> graph = tilp.impute(tilp.datasets.world(seed=0, size=1_000).graph)
    >>> bool(graph.estimated.any())
    True
    """
    drawn = choose(Estimate, estimate, "estimate") is Estimate.DRAWN
    fact = (graph.subject, graph.relation, graph.object, graph.start, graph.end)
    durations = durations or Durations.fit(graph)
    start, end = durations.estimate(
        graph.relation, graph.start, graph.end, chances(seed, *fact) if drawn else None
    )
    new_start, new_end = start != graph.start, end != graph.end
    texts, start_text, end_text = (
        graph.texts.to_list(),
        graph.start_text.copy(),
        graph.end_text.copy(),
    )
    places = {text: place for place, text in reversed(list(enumerate(texts)))}
    for new, times, text_of in ((new_start, start, start_text), (new_end, end, end_text)):
        for row in np.flatnonzero(new).tolist():
            text = format_time(int(times[row]), graph.unit)
            if text not in places:
                places[text] = len(texts)
                texts.append(text)
            text_of[row] = places[text]
    return replace(
        graph,
        start=start,
        end=end,
        texts=pl.Series("text", texts),
        start_text=start_text,
        end_text=end_text,
        estimated=graph.estimated | new_start.astype(np.uint8) | (new_end.astype(np.uint8) << 1),
    )


def imputed_by_relation(graph: TemporalGraph) -> pl.DataFrame:
    """For each relation: facts, estimated starts and ends, and facts that still lack a date."""
    starts, ends = (graph.estimated & 1) > 0, (graph.estimated & 2) > 0
    lacking = (graph.start == UNKNOWN) | (graph.end == UNKNOWN)
    size = len(graph.relations)
    return pl.DataFrame(
        {
            "relation": list(graph.relations),
            "facts": np.bincount(graph.relation, minlength=size),
            "starts": np.bincount(graph.relation[starts], minlength=size),
            "ends": np.bincount(graph.relation[ends], minlength=size),
            "missing": np.bincount(graph.relation[lacking], minlength=size),
        }
    )
