"""Scores of all candidates of queries, from the rules that apply (eq. 15)."""

from tilp.ranking.scoring import RuleScorer, RuleWeights

__all__ = ["RuleScorer", "RuleWeights"]
