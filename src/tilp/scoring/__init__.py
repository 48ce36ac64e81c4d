"""Scores of all candidates of queries, and the k best of them (eq. 15-16)."""

from tilp.scoring.queries import Query
from tilp.scoring.scorer import RuleScorer, RuleWeights, Scorer
from tilp.scoring.scores import Scores
from tilp.scoring.topk import Prediction, Predictions, TopKPredictor

__all__ = [
    "Prediction", "Predictions", "Query", "RuleScorer", "RuleWeights", "Scorer", "Scores",
    "TopKPredictor",
]  # fmt: skip
