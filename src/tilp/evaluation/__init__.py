"""Filters and ties, ranks, metrics and comparisons, for any scorer.

Every query is asked in both directions, and every entity is a candidate. A protocol says which
other answers are removed, a tie rule which of several ranks an answer has among candidates of
the same score.
"""

from tilp.choices import Protocol, Ties
from tilp.evaluation.comparing import Comparison, Difference, compare
from tilp.evaluation.evaluating import DIRECTIONS, evaluate
from tilp.evaluation.evaluation import APART, HITS, Bounds, Evaluation, Metrics
from tilp.evaluation.floors import popularity, recurrence
from tilp.evaluation.ranking import Ranker, rank_column, ties_of
from tilp.evaluation.saving import load_evaluation, save_evaluation
from tilp.evaluation.score_files import SCORE_COLUMNS, read_scores, write_scores
from tilp.evaluation.scores import Scorer, Scores

__all__ = [
    "APART",
    "DIRECTIONS",
    "HITS",
    "SCORE_COLUMNS",
    "Bounds",
    "Comparison",
    "Difference",
    "Evaluation",
    "Metrics",
    "Protocol",
    "Ranker",
    "Scorer",
    "Scores",
    "Ties",
    "compare",
    "evaluate",
    "load_evaluation",
    "popularity",
    "rank_column",
    "read_scores",
    "recurrence",
    "save_evaluation",
    "ties_of",
    "write_scores",
]
