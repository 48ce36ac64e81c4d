"""`RuleScorer`: score all candidates of queries by rules and prior (eq. 15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.score import score_candidates
from tilp._utils.arrays import read_only
from tilp.graph import QueryTable
from tilp.learning import KnownAnswers, Mark, PopularityPrior, known_answers
from tilp.rules import Notation, Rule, format_rule
from tilp.scoring.scorer import Contribution, FactPath
from tilp.scoring.scores import Scores
from tilp.time.imputation import MissingDates
from tilp.types import Missing
from tilp.walks import Grounder, Walker

_STEPS_PER_NUMBER = 8
"""Steps of walks for one number in memory, about: most steps are counted together."""
_LEAST_SCORE = 1e-300
"""Lower bound of a divisor, against 0 / 0."""

Column = NDArray[np.int64]


@dataclass(frozen=True)
class RuleWeights:
    """Learned weights of rules.

    Attributes:
        rule: Weight of each rule.
        prior: Weight of the prior, for each directed relation.
        factor: Factor of candidates that are known as answers at another time, for each directed
            relation and kind.
        walks_power: A rule's weight is multiplied by its number of walks to this power. Above 0,
            rules with many walks count more.
    """

    rule: NDArray[np.float64]
    prior: NDArray[np.float64]
    factor: NDArray[np.float64]
    walks_power: float = 0.0


@dataclass(frozen=True)
class AppliedRules:
    """Rules applied to queries.

    Attributes:
        rows: Query, rule, end and number of walks, sorted by query and rule.
        known: Candidates that train has as answers at other times.
    """

    rows: NDArray[np.int64]
    known: KnownAnswers

    def by_query(self, queries: int) -> tuple[Column, Column, Column, Column]:
        """Return the offsets of each query's rows, and columns of rules, ends and counts."""
        query, rule, end, count = self.rows.T
        return np.searchsorted(query, np.arange(queries + 1)), rule, end, count


@dataclass(frozen=True)
class RuleContributions:
    """Contributions of the rules that reach one candidate of a query.

    Attributes:
        rule: Id of each rule.
        walks: N, the number of its walks.
        arriving: N_c, the number of them that end at the candidate.
        score: Contribution to φ of the candidate.
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
        walker: Walks on the evidence, whose missing dates are imputed.
        rules: In the order of their weights.
        weights: The learned weights.
        missing_dates: Imputes missing dates of queries; by default the known end.
    """

    def __init__(
        self,
        walker: Walker,
        rules: Sequence[Rule],
        weights: RuleWeights,
        missing_dates: MissingDates | None = None,
    ) -> None:
        self.walker = walker
        self.rules = tuple(rules)
        self._rows = read_only(walker.encoding.encode(rules))
        self.prior = PopularityPrior.from_graph(walker.graph)
        self._missing_dates = missing_dates or MissingDates(Missing.POINT)
        self._compiled = walker.encoding.compiled(self._rows)
        self._set_weights(weights)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of their weights."""
        return tuple(self.walker.encoding.lift(row) for row in self._rows)

    @cached_property
    def _grounder(self) -> Grounder:
        return Grounder(self.walker)

    @property
    def rule_scorer(self) -> RuleScorer:
        """This scorer."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Copies and other processes decode the rules again when they need them.
        return {
            name: value for name, value in vars(self).items() if name not in ("rules", "_grounder")
        }

    def _set_weights(self, weights: RuleWeights) -> None:
        relations = np.repeat(np.arange(self.prior.n_directed), np.diff(self.prior.offsets))
        self._weights = weights
        self._prior_score = read_only(weights.prior[relations] * self.prior.probability)
        self._default = weights.prior * self.prior.min_probability

    def with_weights(self, weights: RuleWeights) -> RuleScorer:
        """Return the same rules with other weights."""
        other = copy(self)
        other._set_weights(weights)
        return other

    def without(self, facts: Iterable[int]) -> RuleScorer:
        """Return the same rules and weights on evidence without some facts.

        Args:
            facts: Their ids. Queries refer to facts by their ids among those that are left.
        """
        removed = np.unique(np.fromiter(facts, np.int64))
        other = copy(self)
        other.walker = self.walker.without(removed)
        other.prior = self.prior.without(self.walker.graph, removed)
        other._set_weights(self._weights)
        return other

    def fill_dates(self, queries: QueryTable) -> QueryTable:
        """Return the queries with their missing dates imputed."""
        return self._missing_dates.fill_queries(queries)

    def apply_rules(self, queries: QueryTable) -> AppliedRules:
        """Return everything that scores are computed from, apart from the weights."""
        queries = self.fill_dates(queries)
        rows, _ = self.walker.apply(queries, self._compiled)
        key = rows[:, 0] * len(self._weights.rule) + rows[:, 1]
        known = known_answers(self.walker.graph, queries.without_answers())
        return AppliedRules(rows[np.argsort(key, kind="stable")], known)

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        return self.score(queries)

    def score(
        self,
        queries: QueryTable,
        applied: AppliedRules | None = None,
        walks_power: float | None = None,
    ) -> Scores:
        """Score the candidates of queries; candidates that are not listed have the least prior.

        `walks_power` replaces that of the weights.
        """
        applied = applied or self.apply_rules(queries)
        known = applied.known
        offsets, candidate, score, reached = score_candidates(
            *applied.by_query(len(queries)),
            queries.directed_relation,
            queries.answer,
            known.offsets,
            known.entity,
            known.mark - Mark.KNOWN,
            self._weights.rule,
            self._weights.factor,
            self._weights.walks_power if walks_power is None else walks_power,
            self.prior.offsets,
            self.prior.entity,
            self._prior_score,
            self._default,
            self.prior.n_entities,
        )
        return Scores(offsets, candidate, score, self._default[queries.directed_relation], reached)

    def memory_per_query(self, queries: QueryTable) -> NDArray[np.float64]:
        """Estimate how many numbers are in memory while each query is scored."""
        listed = np.diff(self.prior.offsets)[queries.directed_relation]
        return np.asarray(listed + self.walk_memory(queries))

    def walk_memory(self, queries: QueryTable) -> NDArray[np.float64]:
        """Estimate the part of `memory_per_query` that walks take."""
        return np.asarray(self.walker.steps_from[queries.subject] / _STEPS_PER_NUMBER)

    def contributions(
        self,
        queries: QueryTable,
        offsets: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Split the scores of the given candidates into those of rules and prior."""
        scores = self.score(queries, applied).of_candidates(offsets, candidate)
        relation = np.repeat(queries.directed_relation, np.diff(offsets))
        return self.split_rules_and_prior(relation, candidate, scores, scores)

    def split_rules_and_prior(
        self,
        relation: NDArray[np.int32],
        candidate: NDArray[np.int32],
        score: NDArray[np.float64],
        total: NDArray[np.float64],
    ) -> dict[str, NDArray[np.float64]]:
        """Split what rules and prior contribute together by their shares of their score.

        Args:
            relation: Directed relation that each candidate is scored for.
            candidate: The candidates.
            score: φ of each, from rules and prior.
            total: Joint contribution, which may be a function of φ.
        """
        share = (
            self._weights.prior[relation] * self.prior.probabilities(relation, candidate) / score
        )
        return {"rules": (1 - share) * total, "prior": share * total}

    def rule_contributions(
        self, query: QueryTable, applied: AppliedRules, candidate: int
    ) -> RuleContributions:
        """Return the summands of eq. 15 for a candidate of a single query."""
        _, rule, end, count = applied.by_query(1)
        relation, known = int(query.directed_relation[0]), applied.known
        factor = np.ones(self.prior.n_entities)
        factor[known.entity] = self._weights.factor[relation, known.mark - Mark.KNOWN]
        first = np.flatnonzero(np.diff(rule, prepend=-1))
        group = np.repeat(np.arange(len(first)), np.diff(first, append=len(rule)))
        walks = np.bincount(group, count, len(first))
        total = np.bincount(group, count * factor[end], len(first))
        here = np.flatnonzero(end == candidate)
        group = group[here]
        weight = self._weights.rule[rule[here]] * walks[group] ** self._weights.walks_power
        score = weight * count[here] * factor[candidate] / total[group]
        return RuleContributions(rule[here], walks[group].astype(np.int64), count[here], score)

    def attribute_score(
        self,
        query: QueryTable,
        candidate: int,
        applied: AppliedRules,
        parts: dict[str, NDArray[np.float64]] | None = None,
        more: Callable[[RuleContributions], NDArray[np.float64]] | None = None,
    ) -> list[Contribution]:
        """Split a score into a contribution for each rule and one for the prior.

        Args:
            query: A single query.
            candidate: The candidate.
            applied: The rules applied to the query.
            parts: Joint contributions of `rules` and `prior`, where a score is made of φ.
            more: Further contribution of each rule that reaches the candidate.
        """
        only = np.array([candidate], np.int32)
        parts = parts or self.contributions(query, np.array([0, 1]), only, applied)
        reaching = self.rule_contributions(query, applied, candidate)
        score = float(parts["rules"][0]) * reaching.score / max(reaching.score.sum(), _LEAST_SCORE)
        if more is not None:
            score += more(reaching)
        dated = self.fill_dates(query)
        columns = (reaching.rule.tolist(), reaching.arriving.tolist(), score.tolist())
        return [
            *(
                Contribution(
                    ("rule", rule_id),
                    "rule",
                    rule_score,
                    format_rule(self.rules[rule_id], Notation.SENTENCE),
                    walks,
                    self.rules[rule_id],
                    self._find_walks(self.rules[rule_id], dated, candidate),
                )
                for rule_id, walks, rule_score in zip(*columns, strict=True)
            ),
            self._attribute_prior(query, only, float(parts["prior"][0])),
        ]

    def _find_walks(
        self, rule: Rule, dated: QueryTable, candidate: int
    ) -> Callable[[int], list[FactPath]]:
        def find(n: int) -> list[FactPath]:
            walks = self._grounder(rule, dated, candidate, n).walks
            return [
                FactPath(tuple((step.fact, step.inverse) for step in walk)) for walk in walks[:n]
            ]

        return find

    def _attribute_prior(
        self, query: QueryTable, candidate: NDArray[np.int32], score: float
    ) -> Contribution:
        counts = self.prior.counts(query.directed_relation, candidate)
        count, total = (int(column[0]) for column in counts)
        relations = self.walker.graph.relations
        relation = int(query.directed_relation[0])
        end = "object" if relation < len(relations) else "subject"
        text = (
            f"asked for without any evidence: {count:,} of {total:,} "
            f"{relations.label(relation % len(relations))} facts have it as their {end}"
        )
        return Contribution(("prior",), "prior", score, text)
