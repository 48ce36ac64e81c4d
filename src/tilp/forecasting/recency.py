"""Where the weights of clues lie, and how fast each is learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.recency import (
    Evidence,
    WeightBlocks,
    WeightTable,
    candidate_rules,
    fit_weights,
    forecast_queries,
)
from tilp._utils.random import keyed_uniform
from tilp.errors import TilpError
from tilp.forecasting.events import TimedEdges, event_times
from tilp.forecasting.tlogic import RuleTable, check_relations
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.parallel import cut_by_cost
from tilp.rules import Rule, RuleSet
from tilp.scoring import Scores
from tilp.types import Unit

COUNTS = (1, 2, 3, 5, 10, 20)
"""The highest counts of classes; the last is of all above."""


def evidence_of(edges: TimedEdges) -> Evidence:
    """The edges in the orders in which clues are read."""
    return Evidence(edges.by_pair, edges.by_answer, edges.by_time)


def make_table(rules: NDArray[np.int64], heads: int, gaps: NDArray[np.int64]) -> WeightTable:
    """The table of the weights for rules.

    Args:
        rules: `head · heads + body` of each, ascending.
        heads: how many directed relations there are.
        gaps: the highest of all classes of recency but the last.
    """
    head, body = np.divmod(rules, heads)
    slots = len(rules) + heads
    recencies, counts = len(gaps) + 1, len(COUNTS) + 1
    sizes = {
        "body_recency": 2 * recencies,
        "body_count": 2 * counts,
        "rule_level": slots,
        "rule_recency": slots * recencies,
        "pair_recency": recencies,
        "pair_count": counts,
        "answer_recency": 2 * recencies,
        "answer_count": 2 * counts,
        "entity_recency": 2 * recencies,
    }
    begins = np.append(0, np.cumsum([sizes[name] for name in WeightBlocks._fields[:-1]]))
    return WeightTable(
        np.searchsorted(head, np.arange(heads + 1)),
        body,
        gaps,
        np.array(COUNTS),
        WeightBlocks(*(int(one) for one in begins)),
    )


def rates(table: WeightTable, rate: float, own_rate: float) -> NDArray[np.float64]:
    """How fast each weight is learned."""
    names = WeightBlocks._fields[:-1]
    each = [own_rate if name == "rule_recency" else rate for name in names]
    return np.repeat(each, np.diff(table.blocks))


@dataclass(frozen=True, eq=False)
class ForecastScorer:
    """Scores candidates by clues dated before the query.

    A score is the logarithm of the candidate's share. Candidates are the entities that the subject
    met before, and those that answered the relation before; all others come after them. A query
    without a date is asked after all facts.

    Attributes:
        evidence: that clues are read from.
        table: which clues have which weights.
        weights: these.
    """

    evidence: Evidence
    table: WeightTable
    weights: NDArray[np.float64]

    def __call__(self, queries: QueryTable) -> Scores:
        """The scores of the candidates of queries."""
        asked = np.stack(
            [queries.subject, queries.directed_relation, event_times(*queries.given_dates())],
            axis=1,
        )
        distinct, of_query = np.unique(asked, axis=0, return_inverse=True)
        subject, head, time = np.ascontiguousarray(distinct.T)
        found = forecast_queries(self.evidence, self.table, self.weights, subject, head, time)
        return Scores(*found, default=-np.inf, temperature=1.0).take(of_query)


@dataclass(frozen=True)
class Curve:
    """How a rule's confidence and weight follow the time since its body last held.

    Attributes:
        highest: the longest time of each class but the last, which is of all that is longer ago.
        asked: in each class, the candidates of training queries that had the body.
        held: those of them that were the answer.
        weight: what the body adds to the logarithm of a candidate's share.
        unit: what times count.

    >>> print(Curve((1, 30), (10, 40, 200), (4, 8, 2), (2.0, 1.0, -0.5), Unit.DAY))
    within 1 day 40 % (+2.0), within 30 days 20 % (+1.0), later 1 % (-0.5)
    """

    highest: tuple[int, ...]
    asked: tuple[int, ...]
    held: tuple[int, ...]
    weight: tuple[float, ...]
    unit: Unit

    @property
    def confidence(self) -> tuple[float, ...]:
        """The share of the answers in each class."""
        return tuple(a / b if b else 0.0 for a, b in zip(self.held, self.asked, strict=True))

    def __str__(self) -> str:
        name = "" if self.unit is Unit.INTEGER else f" {self.unit.value}"
        spans = [f"within {one}{name}{'s' * bool(name and one != 1)}" for one in self.highest]
        parts = zip([*spans, "later"], self.asked, self.confidence, self.weight, strict=True)
        return ", ".join(
            f"{span} {share:.0%} ({weight:+.1f})".replace("%", " %")
            for span, asked, share, weight in parts
            if asked
        )


@dataclass(frozen=True, eq=False, repr=False)
class ForecastModel:
    """What `ForecastRules.fit` learned.

    Attributes:
        relations: their names.
        unit: what times count.
        facts: of each directed relation, in train, with a date.
        table: which clues have which weights.
        weights: these.
        asked: of each rule, by classes of recency: candidates of training queries with its body.
        held: those of them that were the answer.
    """

    relations: Vocabulary
    unit: Unit
    facts: NDArray[np.int64]
    table: WeightTable
    weights: NDArray[np.float64]
    asked: NDArray[np.int64]
    held: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"ForecastModel({len(self.rules):,} rules, {len(self.weights):,} weights)"

    @cached_property
    def rules(self) -> RuleSet:
        """The rules that ever led to an answer, by relation, the most confident first.

        `fired` counts the candidates of training queries that had the body before, `support`
        those of them that were the answer; `confidence` is their share, and `weight` the mean of
        what the body adds to the logarithm of a candidate's share.
        """
        n = len(self.table.body)
        fired, support = self.asked[:n].sum(axis=1), self.held[:n].sum(axis=1)
        found = np.flatnonzero(support > 0)
        table = RuleTable(
            self._heads[found],
            np.ones(len(found), np.int64),
            self.table.body[found, None],
            np.tile([0, 1], (len(found), 1)),
            fired[found],
            support[found],
            support[found] / fired[found],
        ).sorted()
        mean = (self._curves * self.asked[:n]).sum(axis=1) / np.maximum(fired, 1)
        rules = self._places(table.head, table.relations[:, 0])
        return RuleSet(
            replace(mined, weight=weight)
            for mined, weight in zip(
                table.rule_set(self.relations, self.facts, sampled=False),
                mean[rules].tolist(),
                strict=True,
            )
        )

    def curve(self, rule: Rule) -> Curve:
        """How a rule's confidence and weight follow the time since its body last held.

        Raises:
            TilpError: the model has no such rule.
        """
        head, body = (
            self.relations.find(atom.relation) + atom.inverse * len(self.relations)
            for atom in (rule.head, rule.body[0])
        )
        place = int(self._places(np.array([head]), np.array([body]))[0])
        if rule.length != 1 or place < 0:
            raise TilpError(f"the model has no rule {rule}; `rules` lists those that it has")
        return Curve(
            tuple(self.table.gaps.tolist()),
            tuple(self.asked[place].tolist()),
            tuple(self.held[place].tolist()),
            tuple(self._curves[place].tolist()),
            self.unit,
        )

    def scorer(
        self, graph: TemporalGraph, evidence: Iterable[str] | str = "train"
    ) -> ForecastScorer:
        """What scores the candidates of queries.

        Args:
            graph: the facts; it has the same relations and the same unit of time.
            evidence: the splits whose facts are used, as far as they are dated before a query.

        Raises:
            TilpError: the graph has other relations, or another unit of time.
        """
        check_relations(graph, self.relations, self.unit)
        edges = TimedEdges.of(graph, evidence)
        return ForecastScorer(evidence_of(edges), self.table, self.weights)

    @property
    def _heads(self) -> NDArray[np.int64]:
        """The head of each rule."""
        return np.repeat(
            np.arange(len(self.table.rule_offsets) - 1), np.diff(self.table.rule_offsets)
        )

    def _places(self, head: NDArray[np.int64], body: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rules stand in the table; -1: nowhere."""
        heads = len(self.table.rule_offsets) - 1
        listed = np.append(self._heads * heads + self.table.body, -1)
        place = np.searchsorted(listed[:-1], head * heads + body)
        return np.where(listed[place] == head * heads + body, place, -1)

    @cached_property
    def _curves(self) -> NDArray[np.float64]:
        """What the body of each rule adds, by classes of recency."""
        n, classes, blocks = len(self.table.body), len(self.table.gaps) + 1, self.table.blocks
        shared = self.weights[blocks.body_recency : blocks.body_count].reshape(2, classes)
        own = self.weights[blocks.rule_recency : blocks.pair_recency].reshape(-1, classes)
        level = self.weights[blocks.rule_level : blocks.rule_recency]
        of_head = (self.table.body == self._heads).astype(np.int64)
        curves: NDArray[np.float64] = level[:n, None] + own[:n] + shared[of_head]
        return curves


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
        rules = candidate_rules(edges.by_relation, heads)
        table = make_table(rules, heads, recency_classes(edges, self.classes))
        learned = learn(self, edges, evidence_of(edges), table, progress)
        facts = np.diff(edges.by_head.offsets)
        return ForecastModel(graph.relations, graph.unit, facts, table, *learned)


def learn(
    chosen: ForecastRules,
    edges: TimedEdges,
    evidence: Evidence,
    table: WeightTable,
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
    lots = keyed_uniform(chosen.seed, subject, head, moment)
    order = np.lexsort((answer, head, subject, lots, time))
    subject, head, answer, time = (one[order] for one in (subject, head, answer, time))
    new = np.any(np.diff(np.stack([subject, head, time]), axis=1) != 0, axis=0)
    first = np.flatnonzero(np.append(True, new))
    begin = np.append(first, len(time))
    rate = rates(table, chosen.rate, chosen.own_rate)
    weights, squares = np.zeros_like(rate), np.zeros_like(rate)
    shape = len(table.body) + len(table.rule_offsets) - 1, len(table.gaps) + 1
    asked, held = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for part in cut_by_cost(np.ones(len(first)), _PARTS):
        fit_weights(
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
