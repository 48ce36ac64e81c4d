"""Filtered ranks, metrics and comparisons, for any scorer.

Every fact is queried in both directions, and every entity is a candidate. A protocol says which
other answers are removed, and a tie rule which rank an answer has among candidates with the same
score.
"""

from tilp.evaluation.evaluate import DIRECTIONS, evaluate, popularity, recurrence
from tilp.evaluation.filtered_ranks import Ranker, rank_column, ties_of
from tilp.evaluation.result import (
    HITS,
    SUBSETS,
    Bounds,
    Comparison,
    Difference,
    Evaluation,
    FactSample,
    Metrics,
    compare,
    load_evaluation,
    save_evaluation,
)
from tilp.evaluation.score_files import SCORE_COLUMNS, read_scores, write_scores
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.types import Protocol, Ties

__all__ = [
    "DIRECTIONS", "HITS", "SCORE_COLUMNS", "SUBSETS", "Bounds", "Comparison", "Difference",
    "Evaluation", "FactSample", "Metrics", "Protocol", "Ranker", "ScoreFunction", "Scores",
    "Ties", "compare", "evaluate", "load_evaluation", "popularity", "rank_column",
    "read_scores", "recurrence", "save_evaluation", "ties_of", "write_scores",
]  # fmt: skip
