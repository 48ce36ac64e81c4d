"""Fill in missing dates of a model's graph and queries, or of any graph with `impute`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tilp._utils.arrays import Ids, Indices, Mask
from tilp._utils.random import keyed_uniform
from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN, format_time, span_of_digits
from tilp.time.durations import Durations, last_start
from tilp.time.interval import FAR, Times, known_ends
from tilp.types import Estimate, Missing, choose

if TYPE_CHECKING:
    from tilp.graph import QueryTable, TemporalGraph


_NEAREST = 15  # facts whose lengths say how long one lasts
_MAX_UNKNOWN = 0.05  # share of a relation's training facts without an end


@dataclass(frozen=True, eq=False)
class UsualLengths:
    """Lengths of training facts by relation and start, of relations whose facts say their ends.

    A model that learned from such facts never saw a query without an end.
    """

    offsets: Indices  # where the facts of each relation begin
    start: Times
    length: Times  # `FAR` if the end is open

    @classmethod
    def of_graph(cls, graph: TemporalGraph) -> UsualLengths:
        """Return the lengths in the train split of a graph."""
        train, size = graph.span("train"), len(graph.relations)
        relation, start, end = graph.relation[train], graph.start[train], graph.end[train]
        dated, unknown = (start > -FAR) & (start < FAR), end == UNKNOWN
        n_dated, n_unknown = (np.bincount(relation[m], minlength=size)
                              for m in (dated, dated & unknown))  # fmt: skip
        mask = dated & ~unknown & (n_unknown <= _MAX_UNKNOWN * n_dated)[relation]
        relation, start, end = relation[mask], start[mask], end[mask]
        length = np.where(end == OPEN_END, FAR, np.minimum(end, FAR) - start)
        order = np.lexsort((length, start, relation))
        offsets = np.searchsorted(relation[order], np.arange(size + 1))
        return cls(offsets, start[order], length[order])

    def ends(self, relation: Ids, start: Times) -> Times:
        """Return starts plus the median length of facts that start nearest; else `start`."""
        ends = start.copy()
        for each in np.unique(relation):
            facts = slice(*self.offsets[each : each + 2])
            mask, starts, lengths = relation == each, self.start[facts], self.length[facts]
            width = min(_NEAREST, len(starts))
            if width:
                asked = start[mask]
                middle = np.searchsorted(starts, asked) + np.searchsorted(starts, asked, "right")
                first = np.clip((middle - width) // 2, 0, len(starts) - width)
                nearest = np.sort(lengths[first[:, None] + np.arange(width)])
                length = nearest[:, (width - 1) // 2]
                ends[mask] = np.where(length < FAR, asked + length, OPEN_END)
        return ends


@dataclass(frozen=True)
class MissingDates:
    """Fills in missing dates, each from its own fact or query alone."""

    missing: Missing
    durations: Durations | None = None  # lengths to draw from, for `Missing.DURATION`
    seed: int = 0
    now: int = OPEN_END  # start of what is only known to go on
    usual: UsualLengths | None = None  # for queries without an end, with `Missing.POINT`

    @classmethod
    def fit(
        cls, graph: TemporalGraph, missing: Missing, seed: int, *, usual: bool = False
    ) -> MissingDates:
        """Fit the durations of a graph's training facts, where they are needed.

        With `usual`, queries of relations whose facts have their ends get a usual end.
        """
        durations = Durations.fit(graph) if missing is Missing.DURATION else None
        lengths = UsualLengths.of_graph(graph) if usual and missing is Missing.POINT else None
        return cls(missing, durations, seed, last_start(graph), lengths)

    def for_graph(self, graph: TemporalGraph) -> MissingDates:
        """Return the same for another graph: its relations, matched by name, and its dates."""
        durations = self.durations and self.durations.for_relations(graph.relations)
        usual = self.usual and UsualLengths.of_graph(graph)
        return replace(self, durations=durations, now=last_start(graph), usual=usual)

    def fill_graph(self, graph: TemporalGraph) -> TemporalGraph:
        """Return the graph with its missing dates filled in; the texts of dates stay.

        With `Missing.POINT` walks deal with missing dates, so these stay. But a fact
        `[?, present]` begins now: at the last start known.
        """
        if self.missing is Missing.POINT:
            since_now = _since_now(graph.start, graph.end)
            if not since_now.any():
                return graph
            return replace(graph, start=np.where(since_now, self.now, graph.start))
        keys = (graph.subject, graph.relation, graph.object)
        start, end = self._fill(graph.relation, graph.start, graph.end, keys)
        return replace(graph, start=start, end=end)

    def fill_queries(self, queries: QueryTable) -> QueryTable:
        """Return queries with their missing dates filled in; a draw never depends on the answer."""
        if not queries.unknown.any():
            return queries
        if self.missing is Missing.POINT:
            start, end = queries.given_dates()
            filled = np.where(_since_now(start, end), self.now, queries.start)
            no_end = np.flatnonzero((end == UNKNOWN) & (start > -FAR) & (start < FAR))
            end = queries.end.copy()
            if self.usual is not None and len(no_end):
                relation = queries.directed_relation[no_end] % (len(self.usual.offsets) - 1)
                end[no_end] = self.usual.ends(relation, start[no_end])
            return replace(queries, start=filled, end=end)
        relation = queries.directed_relation
        keys = (queries.subject, relation)
        return queries.with_dates(*self._fill(relation, *queries.given_dates(), keys))

    def _fill(
        self, directed_relation: Ids, start: Times, end: Times, keys: tuple[Ids, ...]
    ) -> tuple[Times, Times]:
        if self.missing is Missing.OPEN:
            start = np.where(start == UNKNOWN, OPEN_START, start)
            end = np.where(end == UNKNOWN, OPEN_END, end)
        elif self.durations is not None:
            uniform = keyed_uniform(self.seed, *keys, start, end)
            relation = directed_relation % np.int32(len(self.durations.relations))
            start, end = self.durations.estimate(relation, start, end, uniform)
            start = np.where(_since_now(start, end), self.now, start)
        return known_ends(start, end)


def _since_now(start: Times, end: Times) -> Mask:
    """Mask the intervals of which only an open end is known."""
    return np.asarray((start == UNKNOWN) & (end == OPEN_END))


def impute(
    graph: TemporalGraph,
    *,
    estimate: Estimate | str = Estimate.EXPECTED,
    seed: int = 0,
    durations: Durations | None = None,
) -> TemporalGraph:
    """Return the graph with each lone missing date estimated from the fact's other date.

    Facts without any date stay as they are, and so do facts whose one known date is open, and
    those of relations without any known length.
    `TemporalGraph.estimated` marks what was estimated, and `tilp.write` writes these marks.

    Args:
        graph: the facts; dates of all splits are estimated, from the durations of train.
        estimate: 'expected' (default) takes the expected length of the relation's intervals,
            'drawn' draws a length for each fact.
        seed: of the draws, 0 by default; each draw depends on its own fact alone.
        durations: lengths to estimate from; those of the graph's train split by default.

    >>> import tilp
    >>> graph = tilp.impute(tilp.datasets.world(seed=0, size=1_000).graph)
    >>> bool(graph.estimated.any())
    True
    """
    drawn = choose(Estimate, estimate, "estimate") is Estimate.DRAWN
    fact = (graph.subject, graph.relation, graph.object, graph.start, graph.end)
    durations = durations or Durations.fit(graph)
    uniform = keyed_uniform(seed, *fact) if drawn else None
    start, end = durations.estimate(graph.relation, graph.start, graph.end, uniform)
    known = durations.intervals[graph.relation] > 0
    start, end = np.where(known, start, graph.start), np.where(known, end, graph.end)
    return with_estimates(graph, start, end)


def with_estimates(graph: TemporalGraph, start: Times, end: Times) -> TemporalGraph:
    """Return the graph with estimated dates, marked, and their texts."""
    new_start, new_end = start != graph.start, end != graph.end
    low, high = span_of_digits(graph.unit)  # what is written can be read back
    start, end = (np.where(new, np.clip(times, low, high), times)
                  for new, times in ((new_start, start), (new_end, end)))  # fmt: skip
    texts = graph.texts.to_list()
    start_text, end_text = graph.start_text.copy(), graph.end_text.copy()
    index_of = {text: index for index, text in reversed(list(enumerate(texts)))}
    for new, times, text_of in ((new_start, start, start_text), (new_end, end, end_text)):
        for row in np.flatnonzero(new).tolist():
            text = format_time(int(times[row]), graph.unit)
            if text not in index_of:
                index_of[text] = len(texts)
                texts.append(text)
            text_of[row] = index_of[text]
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
    """Count facts, estimated starts and ends, and facts that still lack a date, by relation."""
    starts, ends = (graph.estimated & 1) > 0, (graph.estimated & 2) > 0
    incomplete = (graph.start == UNKNOWN) | (graph.end == UNKNOWN)
    masks = {"facts": slice(None), "starts": starts, "ends": ends, "missing": incomplete}
    size = len(graph.relations)
    counts = {key: np.bincount(graph.relation[m], minlength=size) for key, m in masks.items()}
    return pl.DataFrame({"relation": list(graph.relations), **counts})
