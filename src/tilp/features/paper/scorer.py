"""`PaperFeatureScorer`: scores from rules and the paper's temporal features (eq. 16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.negative_sampling import top_indices
from tilp.features.paper.evidence import DatedEvidence, Evidence
from tilp.features.paper.features import FeatureWeights, PaperFeatures
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring.rule_scorer import AppliedRules

_MAX_CANDIDATES = 200


class PaperFeatureScorer:
    """Scores candidates by φ_TILP = γ_TLR φ_TLR + γ_tfm φ_tfm.

    φ_TLR is a share of its sum over all entities. Only the best candidates by the rules have
    features; the others count as candidates without evidence.

    Args:
        rule_scorer: Scores by rules alone.
        features: Features on the same graph.
        weights: Weights that phase two learned.
        max_candidates: Candidates of a query that have features: the best by the rules.
    """

    def __init__(
        self,
        rule_scorer: RuleScorer,
        features: PaperFeatures,
        weights: FeatureWeights,
        max_candidates: int = _MAX_CANDIDATES,
    ) -> None:
        self.rule_scorer = rule_scorer
        self.features = features
        self.max_candidates = max_candidates
        self._weights = weights
        self._n_entities = len(rule_scorer.walker.graph.entities)

    def without(self, facts: Iterable[int]) -> PaperFeatureScorer:
        """Return the same scorer on evidence without some facts."""
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
        """Score the candidates of queries, given their applied rules."""
        return self.score_variants([self._weights], queries, applied)[0]

    def score_variants(
        self, variants: Sequence[FeatureWeights], queries: QueryTable, applied: AppliedRules
    ) -> list[Scores]:
        """Score the candidates with several weights of features; gather the evidence once."""
        by_rules = self.rule_scorer.score(queries, applied)
        filled = self.rule_scorer.fill_dates(queries)
        total = by_rules.totals(self._n_entities)
        query, best = by_rules.query, self._best(by_rules)
        offsets = np.searchsorted(best, by_rules.offsets)
        evidence = self.features.gather(filled, offsets, by_rules.candidate[best])
        phi, default_phi = by_rules.score / total[query], by_rules.defaults / total
        variant_scores = []
        for weights in variants:
            no_evidence = self.features.score_without_evidence(weights)[queries.directed_relation]
            score = weights.rules * phi + no_evidence[query]
            score[best] = self.features.score(weights, filled, evidence, phi[best])
            default = weights.rules * default_phi + no_evidence
            variant_scores.append(
                replace(by_rules, score=score, default=default, temperature=weights.temperature)
            )
        return variant_scores

    def contributions(
        self,
        queries: QueryTable,
        begin: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Split the scores of listed candidates into named contributions that add up to them.

        The contribution of rules and prior is split by their shares of φ_TLR.
        """
        by_rules = self.rule_scorer.score(queries, applied or self.rule_scorer.apply_rules(queries))
        filled = self.rule_scorer.fill_dates(queries)
        query = np.repeat(np.arange(len(queries)), np.diff(begin))
        scores = by_rules.of(begin, candidate)
        phi = scores / by_rules.totals(self._n_entities)[query]
        has_features = np.isin(by_rules.places_of(begin, candidate), self._best(by_rules))
        evidence = self.features.gather(filled, begin, candidate).restrict(has_features)
        parts = self.features.contributions(self._weights, filled, evidence, phi)
        together, relation = parts.pop("rules"), queries.directed_relation[query]
        return {**self.rule_scorer.split(relation, candidate, scores, together), **parts}

    def uses_features(self, queries: QueryTable, applied: AppliedRules, candidate: int) -> bool:
        """Return whether a candidate of a single query is among those that have features."""
        by_rules = self.rule_scorer.score(queries, applied)
        return candidate in by_rules.candidate[self._best(by_rules)]

    def piece_contributions(
        self, queries: QueryTable, candidate: int
    ) -> tuple[Evidence, DatedEvidence, dict[str, NDArray[np.float64]]]:
        """Return the evidence for a candidate of a single query, and what each piece adds."""
        filled = self.rule_scorer.fill_dates(queries)
        entity = np.array([candidate], np.int32)
        evidence = self.features.gather(filled, np.array([0, 1]), entity)
        return evidence, *self.features.piece_contributions(self._weights, filled, evidence)

    def score_without_evidence(self, queries: QueryTable) -> float:
        """Return what features add to a candidate of a single query without evidence."""
        scores = self.features.score_without_evidence(self._weights)
        return float(scores[queries.directed_relation[0]])

    def _best(self, by_rules: Scores) -> NDArray[np.int64]:
        """Return the indices of the candidates that have features."""
        return top_indices(by_rules.offsets, by_rules.score, self.max_candidates)
