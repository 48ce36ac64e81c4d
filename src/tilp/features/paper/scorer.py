"""`PaperFeatureScorer`: scores from rules and the paper's temporal features (eq. 16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.candidates import top_indices
from tilp.features.paper.attribution import feature_contributions
from tilp.features.paper.evidence import EvidenceTracer
from tilp.features.paper.features import FeatureWeights, PaperFeatures
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring.scorer import NOT_SCORED, AppliedRules, Contribution

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

    def memory_per_query(self, queries: QueryTable) -> NDArray[np.float64]:
        """Estimate how many numbers are in memory while each query is scored."""
        return self.rule_scorer.memory_per_query(queries)

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        return self.score(queries)

    def score(self, queries: QueryTable, applied: AppliedRules | None = None) -> Scores:
        """Score the candidates of queries; `applied` is what `RuleScorer.apply_rules` returned."""
        applied = applied or self.rule_scorer.apply_rules(queries)
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
        offsets: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Split the scores of the given candidates into parts by name, which add up to them.

        The joint contribution of rules and prior is split by their shares of φ_TLR.
        """
        by_rules = self.rule_scorer.score(queries, applied)
        filled = self.rule_scorer.fill_dates(queries)
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        scores = by_rules.of_candidates(offsets, candidate)
        phi = scores / by_rules.totals(self._n_entities)[query]
        has_features = np.isin(by_rules.indices_of(offsets, candidate), self._best(by_rules))
        evidence = self.features.gather(filled, offsets, candidate).restrict(has_features)
        parts = self.features.contributions(self._weights, filled, evidence, phi)
        together, relation = parts.pop("rules"), queries.directed_relation[query]
        rules = self.rule_scorer.split_rules_and_prior(relation, candidate, scores, together)
        return {**rules, **parts}

    def attribute_score(
        self, query: QueryTable, candidate: int, applied: AppliedRules
    ) -> list[Contribution]:
        """Split a score into contributions of rules, prior, and each feature with its evidence."""
        entity, offsets = np.array([candidate], np.int32), np.array([0, 1])
        parts = self.contributions(query, offsets, entity, applied)
        by_rules = self.rule_scorer.score(query, applied)
        of_rules = self.rule_scorer.attribute_score(query, candidate, applied, parts)
        features = self.features
        if candidate not in by_rules.candidate[self._best(by_rules)]:
            text = (
                "rules rank it too low for features to be looked at; it counts as without evidence"
            )
            scores = features.score_without_evidence(self._weights)
            score = float(scores[query.directed_relation[0]])
            rest = Contribution((NOT_SCORED,), NOT_SCORED, score, text)
            return [*of_rules, rest] if score else of_rules
        filled = self.rule_scorer.fill_dates(query)
        evidence = features.gather(filled, offsets, entity)
        pieces = features.piece_contributions(self._weights, filled, evidence)
        tracer = EvidenceTracer(
            features.graph, features.walked, features.max_length, filled, candidate
        )
        return [
            *of_rules,
            *feature_contributions(features, filled, evidence, parts, *pieces, tracer),
        ]

    def _best(self, by_rules: Scores) -> NDArray[np.int64]:
        """Return the indices of the candidates that have features."""
        return top_indices(by_rules.offsets, by_rules.score, self.max_candidates)
