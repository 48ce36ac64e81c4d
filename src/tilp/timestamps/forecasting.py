"""`ForecastRules`: rules whose weight follows how long ago and how often their bodies held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.clues import Evidence, Table
from tilp._kernels.forecasts import bodies_of_heads, learn_clues
from tilp.chances import chances
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.timestamps.clue_table import evidence_of, make_table, rates
from tilp.timestamps.edges import TimedEdges
from tilp.timestamps.forecast_model import ForecastModel

__all__ = ["ForecastRules"]

_PARTS = 20  # that progress is told of


@dataclass(frozen=True)
class ForecastRules:
    """Forecasting by rules r(E1, E2) ← b(E1, E2) whose bodies lie before the query.

    Train is gone through once, in the order of time: every fact is asked for, in both directions,
    with what was known before it, and the weights of the clues are moved towards its answer.

    Attributes:
        classes: of recency, cut so that pairs of entities meet again in each equally often.
        warm: the share of train, the earliest, that is not asked for.
        rate: how fast weights are learned that all rules share, and the level of each rule.
        own_rate: how fast the curve of each rule and head is.
        seed: for the order of queries of one time.

    >>> import tilp
    >>> graph = tilp.datasets.world(0, 1000).graph
    >>> model = ForecastRules().fit(graph)
    >>> print(model.rules.filter(relation="diedIn")[0].rule)
    diedIn(E1,E2,I2) ← bornIn(E1,E2,I1) ∧ earlier_than(I1,I2)
    """

    classes: int = 12
    warm: float = 0.1
    rate: float = 0.05
    own_rate: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        if self.classes < 1:
            raise TilpError(f"classes is {self.classes}; it is at least 1")
        if not 0.0 <= self.warm < 1.0:
            raise TilpError(f"warm is {self.warm}; it is from 0 to less than 1")
        for name in ("rate", "own_rate"):
            if not getattr(self, name) >= 0.0:
                raise TilpError(f"{name} is {getattr(self, name)}; it is at least 0")

    def fit(
        self, graph: TemporalGraph, *, progress: Callable[[float], None] | None = None
    ) -> ForecastModel:
        """Learn from the train split, for every relation in both directions.

        Each step builds on the one before, so one thread does it.

        Args:
            graph: the facts.
            progress: called with the share that is done.

        Raises:
            TilpError: no training fact has a date.
        """
        edges = TimedEdges.of(graph, "train")
        if not len(edges.time):
            raise TilpError("no training fact has a date; forecasts are learned from dates")
        evidence = evidence_of(edges)
        heads = 2 * len(graph.relations)
        recency = recency_classes(edges, self.classes)
        table = make_table(bodies_of_heads(edges.by_relation, heads), heads, recency)
        rules = len(table.body) + heads
        weights = np.zeros(table.blocks.end)
        asked = np.zeros((rules, len(recency) + 1), np.int64)
        held = np.zeros_like(asked)
        self._learn(edges, evidence, table, weights, asked, held, progress)
        facts = np.diff(edges.by_head.begin)
        return ForecastModel(graph.relations, graph.unit, facts, table, weights, asked, held)

    def _learn(
        self,
        edges: TimedEdges,
        evidence: Evidence,
        table: Table,
        weights: NDArray[np.float64],
        asked: NDArray[np.int64],
        held: NDArray[np.int64],
        progress: Callable[[float], None] | None,
    ) -> None:
        """Ask for every fact but the earliest, in the order of time."""
        since = np.quantile(edges.time, self.warm, method="inverted_cdf") if self.warm else -np.inf
        late = edges.time >= since
        columns = (edges.source, edges.relation, edges.target, edges.time)
        facts = np.unique(np.stack([column[late] for column in columns], axis=1), axis=0)
        subject, head, answer, time = np.ascontiguousarray(facts.T)
        lots = chances(self.seed, subject, head, time)
        order = np.lexsort((answer, head, subject, lots, time))
        subject, head, answer, time = (one[order] for one in (subject, head, answer, time))
        queries = np.stack([subject, head, time])
        begin = np.flatnonzero(np.any(np.diff(queries, axis=1, prepend=-1) != 0, axis=0))
        begin = np.append(begin, len(time))
        rate = rates(table, self.rate, self.own_rate)
        squares = np.zeros_like(weights)
        for part in np.array_split(np.arange(len(begin) - 1), _PARTS):
            first = begin[part]
            learn_clues(
                evidence,
                table,
                subject[first],
                head[first],
                time[first],
                begin[part[0] : part[-1] + 2] if len(part) else begin[:1],
                answer,
                rate,
                weights,
                squares,
                asked,
                held,
            )
            if progress is not None and len(part):
                progress((part[-1] + 1) / (len(begin) - 1))


def recency_classes(edges: TimedEdges, classes: int) -> NDArray[np.int64]:
    """The highest gaps of classes: about equally many meetings of two entities fall into each.

    A meeting's gap is the time since the two last met, whatever the relation. The last class is of
    all that is longer ago.
    """
    order = np.lexsort((edges.time, edges.target, edges.source))
    source, target, time = (one[order] for one in (edges.source, edges.target, edges.time))
    again = (source[1:] == source[:-1]) & (target[1:] == target[:-1]) & (time[1:] > time[:-1])
    gaps = np.diff(time)[again]
    if not len(gaps):
        return np.empty(0, np.int64)
    shares = np.arange(1, classes) / classes
    return np.unique(np.quantile(gaps, shares, method="inverted_cdf")).astype(np.int64)
