"""`Scorer`: what every model offers to prediction, evaluation and explanation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tilp.graph import QueryTable
from tilp.scoring.rule_scorer import AppliedRules, RuleScorer
from tilp.scoring.scores import Scores


class Scorer(Protocol):
    """Score the candidates of queries."""

    @property
    def rule_scorer(self) -> RuleScorer:
        """The part that scores by rules alone."""

    @property
    def lists_all(self) -> bool:
        """Whether every entity is listed as a candidate of every query."""

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""

    def score(self, queries: QueryTable, applied: AppliedRules) -> Scores:
        """Score the candidates of queries, given what `RuleScorer.apply` returned for them."""

    def contributions(
        self,
        queries: QueryTable,
        begin: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Split the scores of listed candidates into named contributions that add up to them."""

    def without(self, facts: Iterable[int]) -> Scorer:
        """Return the same scorer on evidence without some facts."""
