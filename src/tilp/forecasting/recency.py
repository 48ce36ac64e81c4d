"""`ForecastRules`: forecast by rules weighted by recency and count.

Recency features say how long ago something last held, and how often: that the subject met the
candidate in one relation (the body of a rule) or in any, that the candidate answered the same
relation, that the candidate occurred at all. Each feature has a weight.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilp._kernels import recency as kernel
from tilp._kernels.recency import Evidence, WeightBlocks, WeightTable
from tilp._utils.arrays import Floats, Ints
from tilp._utils.random import keyed_uniform
from tilp.errors import TilpError
from tilp.forecasting.events import RuleTable, TimedEdges, check_relations, event_times
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.parallel import split_by_cost
from tilp.rules import Rule, RuleSet
from tilp.scoring import Scores
from tilp.types import Unit

MAX_COUNTS = (1, 2, 3, 5, 10, 20)  # of each class but the last, which holds all larger counts
MAX_SHARED = tuple(np.geomspace(0.15, 4.0, 6).tolist())  # likewise of the strength of partners
MAX_SIMILAR = tuple(np.geomspace(0.05, 8.0, 6).tolist())  # likewise of similar entities' answers
_PROGRESS_STEPS = 20
_LOOKUP = 4096  # gaps whose class is looked up


def make_evidence(edges: TimedEdges) -> Evidence:
    """Return edges in the orders that features are computed from."""
    return Evidence(edges.by_pair, edges.by_answer, edges.by_time, edges.by_entity_relation)


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
        "answer_count": 2 * counts,
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
    classes = gaps, lookup, *map(np.array, (MAX_COUNTS, MAX_SHARED, MAX_SIMILAR))
    return WeightTable(rule_offsets, body, *classes, WeightBlocks(*blocks))


def learning_rates(table: WeightTable, rate: float, own_rate: float) -> Floats:
    """Return the learning rate of each weight."""
    names = WeightBlocks._fields[:-1]
    block_rates = [own_rate if name == "rule_recency" else rate for name in names]
    return np.repeat(block_rates, np.diff(table.blocks))


@dataclass(frozen=True, eq=False)
class ForecastScorer:
    """Scorer by recency features of facts dated before the query.

    A score is the logarithm of a candidate's probability. Candidates are the entities that the
    subject met before and those that answered the relation before; all others rank after them. A
    query without a date comes after all facts.
    """

    evidence: Evidence  # facts that features are computed from
    table: WeightTable  # layout of the weights
    weights: Floats  # of the features

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        time = event_times(*queries.given_dates())
        columns = np.stack([queries.subject, queries.directed_relation, time], axis=1)
        distinct, inverse = np.unique(columns, axis=0, return_inverse=True)
        subject, relation, time = np.ascontiguousarray(distinct.T)
        query = (subject, relation, time)
        scores = kernel.forecast_queries(self.evidence, self.table, self.weights, *query)
        return Scores(*scores, default=-np.inf, temperature=1.0).take(inverse)


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


@dataclass(frozen=True, eq=False, repr=False)
class ForecastModel:
    """Rules and weights that `ForecastRules.fit` learned."""

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
        edges = make_evidence(TimedEdges.of(graph, evidence))
        return ForecastScorer(edges, self.table, self.weights)

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
class ForecastRules:
    """Forecaster by rules r(E1, E2) ← b(E1, E2) whose bodies lie before the query.

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
        learned = learn_weights(self, edges, make_evidence(edges), table, progress)
        facts = np.diff(edges.by_relation.offsets)
        return ForecastModel(graph.relations, graph.unit, facts, table, *learned)


def learn_weights(
    config: ForecastRules,
    edges: TimedEdges,
    evidence: Evidence,
    table: WeightTable,
    progress: Callable[[float], None] | None = None,
) -> tuple[Floats, Ints, Ints]:
    """Learn from all but the earliest edges, in time order; return weights and supports."""
    first_time = np.quantile(edges.time, config.warm, method="inverted_cdf")
    columns = (edges.source, edges.relation, edges.target, edges.time)
    late_edges = np.stack([column[edges.time >= first_time] for column in columns])
    subject, relation, answer, time = np.unique(late_edges, axis=1)
    time_index = np.unique(time, return_inverse=True)[1]  # does not depend on the unit
    shuffle = keyed_uniform(config.seed, subject, relation, time_index)
    order = np.lexsort((answer, relation, subject, shuffle, time))
    subject, relation, answer, time = (c[order] for c in (subject, relation, answer, time))
    is_new = np.any(np.diff(np.stack([subject, relation, time]), axis=1) != 0, axis=0)
    first = np.flatnonzero(np.append(True, is_new))
    answer_offsets = np.append(first, len(time))
    rates = learning_rates(table, config.rate, config.own_rate)
    weights, squares = np.zeros_like(rates), np.zeros_like(rates)
    shape = len(table.body) + len(table.rule_offsets) - 1, len(table.gaps) + 1
    body_support, support = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for part in split_by_cost(np.ones(len(first)), _PROGRESS_STEPS):
        rows = first[part]
        queries = (subject[rows], relation[rows], time[rows])
        offsets = answer_offsets[part.start : part.stop + 1]
        state = (weights, squares, body_support, support)  # changed in place
        kernel.fit_weights(evidence, table, *queries, offsets, answer, rates, *state)
        if progress is not None:
            progress(part.stop / len(first))
    return weights, body_support, support


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
