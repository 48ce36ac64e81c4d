"""`PaperFeatureScorer`: scores from rules and the paper's temporal features (eq. 16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.negative_sampling import best_of
from tilp.features.paper.evidence import DatedEvidence, Evidence
from tilp.features.paper.features import FeatureWeights, PaperFeatures
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring.rule_scorer import AppliedRules

_LOOKED_AT = 200
"""Candidates of a query whose features are looked at, the best by the rules."""


class PaperFeatureScorer:
    """Scores candidates by φ_TILP = γ_TLR φ_TLR + γ_tfm φ_tfm.

    φ_TLR is taken as its share of the sum over all entities. Features are looked at for the best
    candidates by the rules; the others count as candidates without any evidence.

    Args:
        rules: scores by rules alone.
        features: with their distributions.
        weights: what phase two learned.
    """

    def __init__(self, rules: RuleScorer, features: PaperFeatures, weights: FeatureWeights) -> None:
        self.rule_scorer = rules
        self.features = features
        self._weights = weights
        self._n_entities = len(rules.walker.graph.entities)

    def without(self, facts: Iterable[int]) -> PaperFeatureScorer:
        """The same on the evidence without some facts, as `RuleScorer.without` has it."""
        other = copy(self)
        other.rule_scorer = self.rule_scorer.without(facts)
        other.features = self.features.with_graph(other.rule_scorer.walker.graph)
        return other

    @property
    def lists_all(self) -> bool:
        """Whether every entity is listed as a candidate of every query."""
        return False

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        return self.score(queries, self.rule_scorer.apply_rules(queries))

    def score(self, queries: QueryTable, applied: AppliedRules) -> Scores:
        """Scores from what the rules' `apply` found."""
        return self.score_variants([self._weights], queries, applied)[0]

    def score_variants(
        self, weights: Sequence[FeatureWeights], queries: QueryTable, applied: AppliedRules
    ) -> list[Scores]:
        """The scores under other weights of features; evidence is gathered once."""
        by_rules = self.rule_scorer.score(queries, applied)
        settled = self.rule_scorer.fill_dates(queries)
        total = by_rules.totals(self._n_entities)
        place = best_of(by_rules.offsets, by_rules.score, _LOOKED_AT)
        query = by_rules.query
        begin = np.searchsorted(place, by_rules.offsets)
        evidence = self.features.gather(settled, begin, by_rules.candidate[place])
        phi, unlisted = by_rules.score / total[query], by_rules.defaults / total
        found = []
        for one in weights:
            nothing = self.features.score_without_evidence(one)[queries.directed_relation]
            score = one.rules * phi + nothing[query]
            score[place] = self.features.score(one, settled, evidence, phi[place])
            default = one.rules * unlisted + nothing
            found.append(
                replace(by_rules, score=score, default=default, temperature=one.temperature)
            )
        return found

    def contributions(
        self,
        queries: QueryTable,
        begin: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """What each part adds to the scores of listed candidates, by name; the sum is the score.

        What rules and prior add together is split by their shares of φ_TLR.

        Args:
            queries: the queries.
            begin: where the candidates of each query begin, and where the last end.
            candidate: these.
            applied: what the rules' `apply` found, if it was asked already.
        """
        by_rules = self.rule_scorer.score(queries, applied or self.rule_scorer.apply_rules(queries))
        settled = self.rule_scorer.fill_dates(queries)
        query = np.repeat(np.arange(len(queries)), np.diff(begin))
        scores = by_rules.of(begin, candidate)
        phi = scores / by_rules.totals(self._n_entities)[query]
        looked_at = best_of(by_rules.offsets, by_rules.score, _LOOKED_AT)
        evidence = self.features.gather(settled, begin, candidate).restrict(
            np.isin(by_rules.places_of(begin, candidate), looked_at)
        )
        terms = self.features.contributions(self._weights, settled, evidence, phi)
        together = terms.pop("rules")
        return {
            **self.rule_scorer.split(queries.directed_relation[query], candidate, scores, together),
            **terms,
        }

    def uses_features(self, queries: QueryTable, applied: AppliedRules, candidate: int) -> bool:
        """Whether the features of a candidate of a single query are looked at."""
        by_rules = self.rule_scorer.score(queries, applied)
        place = best_of(by_rules.offsets, by_rules.score, _LOOKED_AT)
        return candidate in by_rules.candidate[place]

    def piece_contributions(
        self, queries: QueryTable, candidate: int
    ) -> tuple[Evidence, DatedEvidence, dict[str, NDArray[np.float64]]]:
        """The evidence for a candidate of a single query, and what each dated piece adds."""
        settled = self.rule_scorer.fill_dates(queries)
        only = np.array([candidate], np.int32)
        evidence = self.features.gather(settled, np.array([0, 1]), only)
        return evidence, *self.features.piece_contributions(self._weights, settled, evidence)

    def score_without_evidence(self, queries: QueryTable) -> float:
        """What features add to a candidate of a single query that are not looked at."""
        return float(
            self.features.score_without_evidence(self._weights)[queries.directed_relation[0]]
        )
