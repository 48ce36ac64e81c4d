"""`ForecastModel`: learned weights of clues, to be read and to be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.clues import Table
from tilp.choices import Unit
from tilp.errors import TilpError
from tilp.graph import TemporalGraph, Vocabulary
from tilp.rules import Rule, RuleSet
from tilp.timestamps.clue_table import evidence_of
from tilp.timestamps.edges import TimedEdges
from tilp.timestamps.forecast_scoring import ForecastScorer
from tilp.timestamps.model import check_relations
from tilp.timestamps.rule_table import RuleTable

__all__ = ["Curve", "ForecastModel"]


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
    table: Table
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
        return np.repeat(np.arange(len(self.table.begin) - 1), np.diff(self.table.begin))

    def _places(self, head: NDArray[np.int64], body: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rules stand in the table; -1: nowhere."""
        heads = len(self.table.begin) - 1
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
