"""Fill in missing dates: for a model while it learns, and in a graph with `impute`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.random import keyed_uniform
from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN, format_time
from tilp.time.durations import Durations
from tilp.time.missing import known_ends
from tilp.types import Estimate, Missing, choose

if TYPE_CHECKING:
    from tilp.graph import QueryTable, TemporalGraph, Vocabulary

_LEFT_TO_WALKS = (Missing.POINT, Missing.UNKNOWN)


@dataclass(frozen=True)
class MissingDates:
    """Fills in unknown ends, each by its own fact or query alone, whatever stands beside it.

    Attributes:
        missing: what they are taken for.
        durations: what `Missing.DURATION` draws from.
        seed: for the draws.
    """

    missing: Missing
    durations: Durations | None = None
    seed: int = 0

    @classmethod
    def fit(cls, graph: TemporalGraph, missing: Missing, seed: int) -> MissingDates:
        """With the durations of a graph's training facts, where they are needed."""
        needed = missing is Missing.DURATION
        return cls(missing, Durations.fit(graph) if needed else None, seed)

    def for_relations(self, relations: Vocabulary) -> MissingDates:
        """The same for a graph with other relations, whose durations are known by their names."""
        durations = None if self.durations is None else self.durations.of(relations)
        return replace(self, durations=durations)

    def fill_graph(self, graph: TemporalGraph) -> TemporalGraph:
        """The facts with their unknown ends filled in; the texts of their dates stay.

        What walks are to read as a point, or in every reading, is left unknown.
        """
        if self.missing in _LEFT_TO_WALKS:
            return graph
        columns = (graph.subject, graph.relation, graph.object)
        start, end = self._settled(graph.relation, graph.start, graph.end, columns)
        return replace(graph, start=start, end=end)

    def fill_queries(self, queries: QueryTable) -> QueryTable:
        """Queries with their unknown ends filled in likewise.

        A draw depends on what is asked, never on the answer.
        """
        if self.missing in _LEFT_TO_WALKS or not queries.unknown.any():
            return queries
        columns = (queries.subject, queries.directed_relation)
        return queries.with_dates(
            *self._settled(queries.directed_relation, *queries.given_dates(), columns)
        )

    def _settled(
        self,
        head: NDArray[np.int32],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        drawn_by: tuple[NDArray[np.int32], ...],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self.missing is Missing.OPEN:
            start = np.where(start == UNKNOWN, OPEN_START, start)
            end = np.where(end == UNKNOWN, OPEN_END, end)
        elif self.durations is not None:
            chance = keyed_uniform(self.seed, *drawn_by, start, end)
            relation = head % np.int32(len(self.durations.relations))
            start, end = self.durations.estimate(relation, start, end, chance)
        return known_ends(start, end)


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
        graph.relation, graph.start, graph.end, keyed_uniform(seed, *fact) if drawn else None
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


def imputation_counts(graph: TemporalGraph) -> pl.DataFrame:
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
