"""`RuleScorer`: the score of every candidate of a query (eq. 15)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.score import score_candidates
from tilp._utils.arrays import read_only
from tilp.graph import QueryTable
from tilp.learning import CandidatePrior, KnownAnswers, Mark, known_answers
from tilp.rules import Rule
from tilp.scoring.scores import Scores
from tilp.time.imputation import MissingDates
from tilp.types import Missing
from tilp.walks import Walker

Column = NDArray[np.int64]


@dataclass(frozen=True)
class RuleWeights:
    """What was learned of rules.

    Attributes:
        rule: the weight of each rule.
        prior: the weight of the prior, for each directed relation.
        factor: by how much a candidate counts that is already known as an answer at another time,
            for each directed relation and kind.
        walks_power: a rule's weight is multiplied by the number of its walks for a query to this
            power: above 0, much evidence speaks louder than little.
    """

    rule: NDArray[np.float64]
    prior: NDArray[np.float64]
    factor: NDArray[np.float64]
    walks_power: float = 0.0


@dataclass(frozen=True)
class AppliedRules:
    """Rules applied to queries.

    Attributes:
        rows: of query, rule, end and number of walks, those of a query and rule together.
        known: the candidates that train knows as answers at other times.
    """

    rows: NDArray[np.int64]
    known: KnownAnswers

    def by_query(self, queries: int) -> tuple[Column, Column, Column, Column]:
        """Where the rows of each query begin, and where the last end; rules, ends and numbers."""
        query, rule, end, count = self.rows.T
        return np.searchsorted(query, np.arange(queries + 1)), rule, end, count


@dataclass(frozen=True)
class RuleContributions:
    """The rules that lead to one candidate of a query.

    Attributes:
        rule: the number of each.
        walks: N, how many walks it has in all.
        arriving: N_c, how many of them end at the candidate.
        score: what it adds to φ of the candidate.
    """

    rule: NDArray[np.int64]
    walks: NDArray[np.int64]
    arriving: NDArray[np.int64]
    score: NDArray[np.float64]


class RuleScorer:
    """Scores candidates of queries: φ(c) = Σ score(Rule) N^power α_c(Rule) + the prior of c.

    Arriving rates are shares of walks in which candidates that are already known as answers at
    other times count by their factor.

    Args:
        walker: the graph whose facts are evidence, its unknown ends settled.
        rules: in the order of their weights.
        weights: what was learned.
        settling: what unknown ends of queries are taken for; by default the known end.
    """

    def __init__(
        self,
        walker: Walker,
        rules: Sequence[Rule],
        weights: RuleWeights,
        settling: MissingDates | None = None,
    ) -> None:
        self.walker = walker
        self.rules = tuple(rules)
        self._rows = read_only(walker.encoding.encode(rules))
        self.prior = CandidatePrior.of(walker.graph)
        self._settling = settling or MissingDates(Missing.POINT)
        self._compiled = walker.encoding.compiled(self._rows)
        self._weigh(weights)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of their weights."""
        return tuple(self.walker.encoding.lift(row) for row in self._rows)

    @property
    def rule_scorer(self) -> RuleScorer:
        """This scorer."""
        return self

    @property
    def lists_all(self) -> bool:
        """Whether every entity is listed as a candidate of every query."""
        return False

    def __getstate__(self) -> dict[str, Any]:
        # Scores are made of numbers: where rules are read after all, they are lifted from these.
        return {name: value for name, value in vars(self).items() if name != "rules"}

    def _weigh(self, weights: RuleWeights) -> None:
        heads = np.repeat(np.arange(self.prior.n_heads), np.diff(self.prior.begin))
        self._weights = weights
        self._prior_score = read_only(weights.prior[heads] * self.prior.probability)
        self._floor = weights.prior * self.prior.lowest

    def reweighted(self, weights: RuleWeights) -> RuleScorer:
        """The same rules with other weights."""
        other = copy(self)
        other._weigh(weights)
        return other

    def without(self, facts: Iterable[int]) -> RuleScorer:
        """The same rules and weights, on the evidence without some facts.

        Args:
            facts: their numbers; queries speak of facts by the numbers that are left.
        """
        gone = np.unique(np.fromiter(facts, np.int64))
        other = copy(self)
        other.walker = self.walker.without(gone)
        other.prior = self.prior.without(self.walker.graph, gone)
        other._weigh(self._weights)
        return other

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries; those that are not listed have the prior's floor."""
        return self.score(queries, self.apply_rules(queries))

    def contributions(
        self,
        queries: QueryTable,
        begin: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """What rules and prior add to the scores of listed candidates; the sum is the score.

        Args:
            queries: the queries.
            begin: where the candidates of each query begin, and where the last end.
            candidate: these.
            applied: what `apply` found, if it was asked already.
        """
        scores = self.score(queries, applied or self.apply_rules(queries)).of(begin, candidate)
        return self.split(
            np.repeat(queries.directed_relation, np.diff(begin)), candidate, scores, scores
        )

    def split(
        self,
        head: NDArray[np.int32],
        entity: NDArray[np.int32],
        score: NDArray[np.float64],
        term: NDArray[np.float64],
    ) -> dict[str, NDArray[np.float64]]:
        """A term that rules and prior make together, split by their shares of the score.

        Args:
            head: that each entity is scored for as an answer.
            entity: the entities.
            score: of each, by rules and prior.
            term: what is made of it.
        """
        share = self._weights.prior[head] * self.prior.of_entities(head, entity) / score
        return {"rules": (1 - share) * term, "prior": share * term}

    def rule_contributions(
        self, queries: QueryTable, applied: AppliedRules, candidate: int
    ) -> RuleContributions:
        """What each rule gives a candidate of a single query, the terms of eq. 15."""
        _, rule, end, count = applied.by_query(1)
        head, known = int(queries.directed_relation[0]), applied.known
        counts_as = np.ones(self.prior.n_entities)
        counts_as[known.entity] = self._weights.factor[head, known.mark - Mark.KNOWN]
        first = np.flatnonzero(np.diff(rule, prepend=-1))
        of_rule = np.repeat(np.arange(len(first)), np.diff(first, append=len(rule)))
        walks = np.bincount(of_rule, count, len(first))
        total = np.bincount(of_rule, count * counts_as[end], len(first))
        here = np.flatnonzero(end == candidate)
        of_rule = of_rule[here]
        mass = self._weights.rule[rule[here]] * walks[of_rule] ** self._weights.walks_power
        score = mass * count[here] * counts_as[candidate] / total[of_rule]
        return RuleContributions(rule[here], walks[of_rule].astype(np.int64), count[here], score)

    def fill_dates(self, queries: QueryTable) -> QueryTable:
        """The queries with their unknown ends as they are taken."""
        return self._settling.fill_queries(queries)

    def apply_rules(self, queries: QueryTable) -> AppliedRules:
        """All that scores of queries are made from but the weights."""
        queries = self.fill_dates(queries)
        rows, _ = self.walker.apply(queries, self._compiled)
        key = rows[:, 0] * len(self._weights.rule) + rows[:, 1]
        known = known_answers(self.walker.graph, queries.without_answers())
        return AppliedRules(rows[np.argsort(key, kind="stable")], known)

    def score(
        self, queries: QueryTable, applied: AppliedRules, walks_power: float | None = None
    ) -> Scores:
        """Scores from what `apply` found; with another power of the number of walks, if given."""
        known = applied.known
        if walks_power is None:
            walks_power = self._weights.walks_power
        offsets, candidate, score, reached = score_candidates(
            *applied.by_query(len(queries)),
            queries.directed_relation,
            queries.answer,
            known.begin,
            known.entity,
            known.mark - Mark.KNOWN,
            self._weights.rule,
            self._weights.factor,
            walks_power,
            self.prior.begin,
            self.prior.entity,
            self._prior_score,
            self._floor,
            self.prior.n_entities,
        )
        return Scores(offsets, candidate, score, self._floor[queries.directed_relation], reached)
