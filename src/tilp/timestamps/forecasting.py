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
from tilp.parallel import cut_by_cost
from tilp.timestamps.clue_table import evidence_of, make_table, rates
from tilp.timestamps.edges import TimedEdges
from tilp.timestamps.forecast_model import ForecastModel

__all__ = ["ForecastRules", "learn", "recency_classes"]

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
        own_rate: how fast the curve of each rule is.
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
        heads = 2 * len(graph.relations)
        rules = bodies_of_heads(edges.by_relation, heads)
        table = make_table(rules, heads, recency_classes(edges, self.classes))
        learned = learn(self, edges, evidence_of(edges), table, progress)
        facts = np.diff(edges.by_head.begin)
        return ForecastModel(graph.relations, graph.unit, facts, table, *learned)


def learn(
    chosen: ForecastRules,
    edges: TimedEdges,
    evidence: Evidence,
    table: Table,
    progress: Callable[[float], None] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Ask for every edge but the earliest, in the order of time.

    Returns:
        The weights; and by rules and classes of recency how many candidates had the body, and how
        many of them were the answer.
    """
    since = np.quantile(edges.time, chosen.warm, method="inverted_cdf")
    columns = (edges.source, edges.relation, edges.target, edges.time)
    late = np.stack([column[edges.time >= since] for column in columns])
    subject, head, answer, time = np.unique(late, axis=1)
    moment = np.unique(time, return_inverse=True)[1]  # the same in any unit
    lots = chances(chosen.seed, subject, head, moment)
    order = np.lexsort((answer, head, subject, lots, time))
    subject, head, answer, time = (one[order] for one in (subject, head, answer, time))
    new = np.any(np.diff(np.stack([subject, head, time]), axis=1) != 0, axis=0)
    first = np.flatnonzero(np.append(True, new))
    begin = np.append(first, len(time))
    rate = rates(table, chosen.rate, chosen.own_rate)
    weights, squares = np.zeros_like(rate), np.zeros_like(rate)
    shape = len(table.body) + len(table.begin) - 1, len(table.gaps) + 1
    asked, held = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for part in cut_by_cost(np.ones(len(first)), _PARTS):
        learn_clues(
            evidence,
            table,
            subject[first[part]],
            head[first[part]],
            time[first[part]],
            begin[part.start : part.stop + 1],
            answer,
            rate,
            weights,
            squares,
            asked,
            held,
        )
        if progress is not None:
            progress(part.stop / len(first))
    return weights, asked, held


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
