"""Scores of all candidates of queries, from rules and features (eq. 15-16)."""

from tilp.scoring.predictions import Answer, Answers
from tilp.scoring.queries import Query
from tilp.scoring.rule_scorer import RuleScorer, RuleWeights
from tilp.scoring.scorer import Scorer
from tilp.scoring.scores import Scores

__all__ = [
    "Answer",
    "Answers",
    "Query",
    "RuleScorer",
    "RuleWeights",
    "Scorer",
    "Scores",
]
