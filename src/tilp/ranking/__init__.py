"""Scores of all candidates of queries, from rules and features (eq. 15-16)."""

from tilp.ranking.answers import Answer, Answers
from tilp.ranking.joint import JointScorer
from tilp.ranking.model_scorer import ModelScorer, rules_of
from tilp.ranking.paper import PaperScorer
from tilp.ranking.queries import Query
from tilp.ranking.scoring import RuleScorer, RuleWeights

__all__ = [
    "Answer",
    "Answers",
    "JointScorer",
    "ModelScorer",
    "PaperScorer",
    "Query",
    "RuleScorer",
    "RuleWeights",
    "rules_of",
]
