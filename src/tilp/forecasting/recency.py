"""`ForecastModel`: rules for what comes next, weighted by recency and count, and how they learn.

Recency features say how long ago something last held, and how often: that the subject met the
candidate in one relation (the body of a rule) or in any, that the candidate answered the same
relation, that the candidate occurred at all; and which entities it shares partners with. Each
feature has a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels import recency as kernel
from tilp._kernels.recency import Evidence, WeightBlocks, WeightTable
from tilp._utils.arrays import Floats, Ints
from tilp._utils.files import check_arrays
from tilp._utils.random import keyed_uniform
from tilp.errors import DataError, TilpError
from tilp.forecasting.events import RuleTable, TimedEdges, check_relations
from tilp.forecasting.scorer import ForecastScorer, make_evidence
from tilp.graph import TemporalGraph, Vocabulary
from tilp.parallel import split_by_cost
from tilp.rules import Rule, RuleSet
from tilp.time import format_length
from tilp.types import Unit
from tilp.viz.svg import Drawing, colour

MAX_COUNTS = (1, 2, 3, 5, 10, 20)  # of each class but the last, which holds all larger counts
MAX_SHARED = tuple(np.geomspace(0.15, 4.0, 6).tolist())  # likewise of the strength of partners
MAX_SIMILAR = tuple(np.geomspace(0.05, 8.0, 6).tolist())  # likewise of similar entities' answers
LISTED = 500  # answers of a relation that are candidates; of more, those of so many latest facts
MET = 1000  # latest facts of a subject whose other ends are candidates that it met
_PROGRESS_STEPS = 20
_LOOKUP = 4096  # gaps whose class is looked up


def make_table(rules: Ints, n_directed: int, gaps: Ints) -> WeightTable:
    """Lay out the weights; `rules` are `head · n_directed + body`, ascending."""
    head, body = np.divmod(rules, n_directed)
    n_rules = len(rules) + n_directed  # rules not listed share one more for each head
    recencies, counts = len(gaps) + 1, len(MAX_COUNTS) + 1
    shared, similar = len(MAX_SHARED) + 1, len(MAX_SIMILAR) + 1
    sizes = {
        "body_recency": 2 * recencies,
        "body_count": 2 * counts,
        "rule_level": n_rules,
        "rule_recency": n_rules * recencies,
        "pair_count": counts,
        "pair_history": recencies * counts,
        "pair_latest": recencies * (recencies + 1),
        "answer_recency": 2 * recencies,
        "answer_count": counts,
        "entity_recency": 2 * recencies,
        "met_shared": shared,
        "met_similar": similar,
        "unmet": (shared + 1) * (similar + 1) * (counts + 1),
        "shared_rank": counts,
        "similar_rank": counts,
    }
    offsets = np.append(0, np.cumsum([sizes[name] for name in WeightBlocks._fields[:-1]]))
    rule_offsets, blocks = np.searchsorted(head, np.arange(n_directed + 1)), offsets.tolist()
    lookup = np.searchsorted(gaps, np.arange(min(_LOOKUP, gaps.max(initial=0) + 1)))
    limits = (np.array(MAX_COUNTS), np.array(MAX_SHARED), np.array(MAX_SIMILAR))
    layout = *limits, WeightBlocks(*blocks)
    return WeightTable(rule_offsets, body, gaps, lookup, *layout, LISTED, MET)


def learning_rates(table: WeightTable, rate: float, own_rate: float) -> Floats:
    """Return the learning rate of each weight."""
    names = WeightBlocks._fields[:-1]
    block_rates = [own_rate if name == "rule_recency" else rate for name in names]
    return np.repeat(block_rates, np.diff(table.blocks))


@dataclass(frozen=True)
class Curve:
    """Confidence and weight of a rule by the time since its body last held.

    >>> print(Curve((1, 30), (10, 40, 200), (4, 8, 2), (2.0, 1.0, -0.5), Unit.DAY))
    within 1 day 40 % (+2.0), within 30 days 20 % (+1.0), later 1 % (-0.5)
    """

    max_gap: tuple[int, ...]  # of each recency class but the last, which holds all longer times
    body_support: tuple[int, ...]  # candidates of training queries with the body, in each class
    support: tuple[int, ...]  # those of them that were the answer
    weight: tuple[float, ...]  # what the body adds to the logarithm of a candidate's probability
    unit: Unit

    @property
    def confidence(self) -> tuple[float, ...]:
        """Share of answers among the candidates of each class."""
        counts = zip(self.support, self.body_support, strict=True)
        return tuple(support / total if total else 0.0 for support, total in counts)

    def __str__(self) -> str:
        unit = "" if self.unit is Unit.INTEGER else f" {self.unit.value}"
        spans = [f"within {gap}{unit}{'s' * bool(unit and gap != 1)}" for gap in self.max_gap]
        columns = (self.body_support, self.confidence, self.weight)
        return ", ".join(
            f"{span} {confidence:.0%} ({weight:+.1f})".replace("%", " %")
            for span, total, confidence, weight in zip([*spans, "later"], *columns, strict=True)
            if total
        )

    def class_of(self, gap: int) -> int:
        """Return the recency class of a time since the body last held."""
        return int(np.searchsorted(self.max_gap, gap))

    def sentence(self, gap: int) -> str:
        """Say how often the head followed a body that last held this long before."""
        index = self.class_of(gap)
        total, share = self.body_support[index], self.confidence[index]
        lengths = [format_length(limit, self.unit) for limit in self.max_gap]
        when = f"within {lengths[index]} of" if index < len(lengths) else "long after"
        if 0 < index == len(lengths):
            when = f"more than {lengths[-1]} after"
        if not total:
            return "No training case was like this."
        share_text = f"{100 * share:.0f} % of {total:,} cases {when} such a fact"
        return f"This was the answer in {share_text}."

    def draw(self, gap: int | None = None) -> str:
        """Draw the confidence by recency class as bars, as SVG; the class of a gap stands out."""
        spans = [f"≤ {format_length(limit, self.unit)}" for limit in self.max_gap] + ["later"]
        here = None if gap is None else self.class_of(gap)
        drawing = Drawing(420, "How soon it follows", str(self))
        greatest = max(*self.confidence, 1e-9)
        for index, (span, share) in enumerate(zip(spans, self.confidence, strict=True)):
            y = 18.0 * index + 14
            drawing.text(104, y, [span], 11, text_anchor="end", fill=colour("soft"))
            fill = colour("2" if index == here else "1")
            drawing.rect(112, y - 10, max(230 * share / greatest, 1.0), 12, fill)
            text = f"{100 * share:.0f} % of {self.body_support[index]:,}"
            drawing.text(118 + 230 * share / greatest, y, [text], 11)
        return drawing.finish(18.0 * len(spans) + 6)

    def _repr_html_(self) -> str:
        return self.draw()


@dataclass(frozen=True, eq=False, repr=False)
class ForecastModel:
    """Rules and weights that a fit learned."""

    relations: Vocabulary
    unit: Unit
    facts: Ints  # number of dated training facts of each directed relation
    table: WeightTable  # layout of the weights
    weights: Floats  # of the features
    body_support: Ints  # candidates of training queries with the body, by rule and recency class
    support: Ints  # those of them that were the answer

    def __repr__(self) -> str:
        return f"ForecastModel({len(self.rules):,} rules, {len(self.weights):,} weights)"

    @cached_property
    def rules(self) -> RuleSet:
        """Rules that ever reached an answer, by relation, most confident first.

        `body_support` counts the candidates of training queries with the body before, `support`
        those that were the answer; `confidence` is their share, and `weight` the mean of what the
        body adds to the logarithm of a candidate's probability.
        """
        n = len(self.table.body)
        body_support, support = self.body_support[:n].sum(axis=1), self.support[:n].sum(axis=1)
        rules = np.flatnonzero(support > 0)
        body, same = self.table.body[rules, None], np.tile([0, 1], (len(rules), 1))
        counts = body_support[rules], support[rules], support[rules] / body_support[rules]
        lengths = np.ones(len(rules), np.int64)
        table = RuleTable(self._heads[rules], lengths, body, same, *counts).sorted()
        mean = (self._curves * self.body_support[:n]).sum(axis=1) / np.maximum(body_support, 1)
        weights = mean[self._find(table.head, table.relations[:, 0])].tolist()
        rule_set = table.rule_set(self.relations, self.facts, sampled=False)
        pairs = zip(rule_set, weights, strict=True)
        return RuleSet(replace(mined, weight=weight) for mined, weight in pairs)

    def curve(self, rule: Rule) -> Curve:
        """Return the confidence and weight of a rule by the time since its body last held.

        Args:
            rule: one of `rules`.

        Raises:
            TilpError: the model has no such rule.
        """
        head, body = (
            self.relations.find(atom.relation) + atom.inverse * len(self.relations)
            for atom in (rule.head, rule.body[0])
        )
        index = int(self._find(np.array([head]), np.array([body]))[0])
        if rule.length != 1 or index < 0:
            raise TilpError(f"the model has no rule {rule}; its attribute `rules` lists all rules")
        columns = (self.table.gaps, self.body_support[index], self.support[index])
        gaps, body_support, support = (tuple(column.tolist()) for column in columns)
        return Curve(gaps, body_support, support, tuple(self._curves[index].tolist()), self.unit)

    def scorer(
        self, graph: TemporalGraph, evidence: Iterable[str] | str = "train"
    ) -> ForecastScorer:
        """Return a scorer for queries on a graph.

        Args:
            graph: facts, with the same relations and the same unit of time.
            evidence: splits whose facts are used, as far as they are dated before a query; `train`
                by default.

        Raises:
            TilpError: the graph has other relations, or another unit of time.
        """
        check_relations(graph, self.relations, self.unit)
        return ForecastScorer(self, graph, TimedEdges.of(graph, evidence))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned as arrays by name."""
        names = ("facts", "weights", "body_support", "support")
        rules = self._heads * (len(self.table.rule_offsets) - 1) + self.table.body
        arrays = {name: getattr(self, name) for name in names}
        return {**arrays, "rules": rules, "gaps": self.table.gaps}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], relations: Vocabulary, unit: Unit
    ) -> ForecastModel:
        """Return what `to_arrays` gave."""
        n_directed, names = 2 * len(relations), ("weights", "body_support", "support")
        check_arrays(arrays, dict.fromkeys(("rules", "gaps"), ("i8", (None,))))
        rules, gaps = arrays["rules"], arrays["gaps"]
        for name, rising, end in (("rules", rules, n_directed**2), ("gaps", gaps, 2**63 - 1)):
            if len(rising) and (rising[0] < 0 or rising[-1] >= end or (np.diff(rising) <= 0).any()):
                raise DataError(f"the array {name} does not rise")
        table = make_table(rules, n_directed, gaps)
        counts = ("i8", (len(rules) + n_directed, len(gaps) + 1))
        shapes = {"facts": ("i8", (n_directed,)), "weights": ("f8", (table.blocks.end,))}
        check_arrays(arrays, {**shapes, "body_support": counts, "support": counts})
        return cls(relations, unit, arrays["facts"], table, *(arrays[name] for name in names))

    def for_relations(self, relations: Vocabulary, old: Ints) -> ForecastModel:
        """Return the model for other relations, given the old id of each directed one, or -1.

        New relations have no rules; known ones keep theirs if their bodies are known too.
        """
        n_old, n = len(self.table.rule_offsets) - 1, 2 * len(relations)
        new = np.full(n_old, -1)
        new[old[old >= 0]] = np.flatnonzero(old >= 0)
        head, body = new[self._heads], new[self.table.body]
        kept = np.flatnonzero((head >= 0) & (body >= 0))
        kept = kept[np.argsort(head[kept] * n + body[kept], kind="stable")]
        table = make_table(head[kept] * n + body[kept], n, self.table.gaps)
        shared = np.where(old >= 0, len(self.table.body) + old, -1)  # bodies without a rule
        rules, classes, before = (
            np.concatenate([kept, shared]),
            len(table.gaps) + 1,
            self.table.blocks,
        )

        def take(values: NDArray[Any]) -> NDArray[Any]:
            mask = (rules >= 0).reshape(-1, *[1] * (values.ndim - 1))
            return np.where(mask, values[rules], 0)

        level = self.weights[before.rule_level : before.rule_recency]
        own = self.weights[before.rule_recency : before.pair_count].reshape(-1, classes)
        rest = self.weights[: before.rule_level], take(level), take(own).ravel()
        weights = np.concatenate([*rest, self.weights[before.pair_count :]])
        facts = np.where(old >= 0, self.facts[old], 0)
        supports = take(self.body_support), take(self.support)
        return ForecastModel(relations, self.unit, facts, table, weights, *supports)

    def count(self, edges: TimedEdges, rows: Ints) -> ForecastModel:
        """Return the model with some of the edges counted as queries; its weights stay."""
        rates, counts = np.zeros_like(self.weights), (self.body_support.copy(), self.support.copy())
        state = self.weights.copy(), rates.copy(), *counts
        run_queries(make_evidence(edges), self.table, edges[rows], 0, rates, state)
        facts = self.facts + np.bincount(edges.relation[rows], minlength=len(self.facts))
        return replace(self, facts=facts, body_support=counts[0], support=counts[1])

    @property
    def _heads(self) -> Ints:
        offsets = self.table.rule_offsets
        return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))

    def _find(self, head: Ints, body: Ints) -> Ints:
        """Return the index of each rule in the table, -1 if it is not there."""
        n_directed = len(self.table.rule_offsets) - 1
        keys = np.append(self._heads * n_directed + self.table.body, -1)
        index = np.searchsorted(keys[:-1], head * n_directed + body)
        return np.where(keys[index] == head * n_directed + body, index, -1)

    @cached_property
    def _curves(self) -> Floats:
        """Amount that the body of each rule adds, by recency class."""
        n, classes, blocks = len(self.table.body), len(self.table.gaps) + 1, self.table.blocks
        shared = self.weights[blocks.body_recency : blocks.body_count].reshape(2, classes)
        own = self.weights[blocks.rule_recency : blocks.pair_count].reshape(-1, classes)
        level = self.weights[blocks.rule_level : blocks.rule_recency]
        same_relation = (self.table.body == self._heads).astype(np.int64)
        return np.asarray(level[:n, None] + own[:n] + shared[same_relation])


@dataclass(frozen=True)
class ForecastSettings:
    """Settings of a forecaster by rules r(E1, E2) ← b(E1, E2) whose bodies lie before the query.

    Fitting goes through train once, in the order of time. Each fact is a query in both directions,
    with the facts before it as evidence, and moves the weights of the features towards its answer.

    Args:
        classes: number of recency classes, 12 by default. Each holds equally many of the times
            between two meetings of the same entities.
        warm: earliest share of train that is evidence only, 0.1 by default.
        rate: learning rate of the weights that rules share and of the level of each rule, 0.05 by
            default.
        own_rate: learning rate of each rule's own recency curve, 0.02 by default.
        seed: random seed for the order of queries of one time, 0 by default.

    >>> import tilp
    >>> graph = tilp.datasets.world(0, 1000).graph
    >>> model = ForecastSettings().fit(graph)
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
            raise TilpError(f"classes is {self.classes}; choose at least 1")
        if not 0.0 <= self.warm < 1.0:
            raise TilpError(f"warm is {self.warm}; choose a number from 0 to less than 1")
        for name in ("rate", "own_rate"):
            if not getattr(self, name) >= 0.0:
                raise TilpError(f"{name} is {getattr(self, name)}; choose at least 0")

    def fit(
        self, graph: TemporalGraph, *, progress: Callable[[float], None] | None = None
    ) -> ForecastModel:
        """Learn from the train split, for every relation in both directions.

        Each step depends on the one before, so fitting uses one thread.

        Args:
            graph: facts to learn from.
            progress: called with the finished share of the work.

        Raises:
            TilpError: no training fact has a date.
        """
        edges = TimedEdges.of(graph, "train")
        if not len(edges.time):
            raise TilpError("no training fact has a date; forecasts are learned from dates")
        n_directed = 2 * len(graph.relations)
        rules = kernel.candidate_rules(edges.by_entity_relation, n_directed)
        table = make_table(rules, n_directed, recency_classes(edges, self.classes))
        learned = learn_weights(self, edges, table, progress)
        facts = np.diff(edges.by_relation.offsets)
        return ForecastModel(graph.relations, graph.unit, facts, table, *learned)


def learn_weights(
    config: ForecastSettings,
    edges: TimedEdges,
    table: WeightTable,
    progress: Callable[[float], None] | None = None,
) -> tuple[Floats, Ints, Ints]:
    """Learn from all but the earliest edges, in time order; return weights and supports."""
    first_time = np.quantile(edges.time, config.warm, method="inverted_cdf")
    rates = learning_rates(table, config.rate, config.own_rate)
    shape = len(table.body) + len(table.rule_offsets) - 1, len(table.gaps) + 1
    supports = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    state = np.zeros_like(rates), np.zeros_like(rates), *supports
    late = edges[edges.time >= first_time]
    run_queries(make_evidence(edges), table, late, config.seed, rates, state, progress)
    return state[0], *supports


def run_queries(
    evidence: Evidence,
    table: WeightTable,
    edges: TimedEdges,
    seed: int,
    rates: Floats,
    state: tuple[Floats, Floats, Ints, Ints],
    progress: Callable[[float], None] | None = None,
) -> None:
    """Take edges as queries, in time order, and change weights, squares and supports in place."""
    if not len(edges.time):
        return
    columns = np.stack([edges.source, edges.relation, edges.target, edges.time])
    subject, relation, answer, time = np.unique(columns, axis=1)
    time_index = np.unique(time, return_inverse=True)[1]  # does not depend on the unit
    shuffle = keyed_uniform(seed, subject, relation, time_index)
    order = np.lexsort((answer, relation, subject, shuffle, time))
    subject, relation, answer, time = (c[order] for c in (subject, relation, answer, time))
    is_new = np.any(np.diff(np.stack([subject, relation, time]), axis=1) != 0, axis=0)
    first = np.flatnonzero(np.append(True, is_new))
    learned = *state[:2], *(counts.reshape(-1) for counts in state[2:])
    answer_offsets = np.append(first, len(time))
    for part in split_by_cost(np.ones(len(first)), _PROGRESS_STEPS if progress else 1):
        rows = first[part]
        queries = (subject[rows], relation[rows], time[rows])
        offsets = answer_offsets[part.start : part.stop + 1]
        kernel.fit_weights(evidence, table, *queries, offsets, answer, rates, *learned)
        if progress is not None:
            progress(part.stop / len(first))


def recency_classes(edges: TimedEdges, classes: int) -> Ints:
    """Return the largest gap of each recency class but the last, with equally many gaps in each.

    A gap is the time between two successive meetings of two entities, in any relation.
    """
    order = np.lexsort((edges.time, edges.target, edges.source))
    source, target, time = (column[order] for column in (edges.source, edges.target, edges.time))
    again = (source[1:] == source[:-1]) & (target[1:] == target[:-1]) & (time[1:] > time[:-1])
    gaps = np.diff(time)[again]
    if not len(gaps):
        return np.empty(0, np.int64)
    quantiles = np.arange(1, classes) / classes
    return np.unique(np.quantile(gaps, quantiles, method="inverted_cdf")).astype(np.int64)
