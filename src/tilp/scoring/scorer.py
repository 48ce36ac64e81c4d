"""`Scorer`: the interface of every model to prediction, evaluation and explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tilp.graph import QueryTable
from tilp.rules import Rule
from tilp.scoring.scores import Scores

if TYPE_CHECKING:
    from tilp.scoring.rule_scorer import AppliedRules, RuleScorer

NOT_SCORED = "not looked at"
"""Kind of the contribution that stands for everything a scorer left out for a candidate."""


@dataclass(frozen=True, slots=True)
class FactPath:
    """Facts behind a contribution, in the order in which a walk reads them.

    Attributes:
        steps: Id of each fact, and True where it is read from object to subject.
        share: Share of the contribution; None if all walks have the same share.
    """

    steps: tuple[tuple[int, bool], ...]
    share: float | None = None


@dataclass(frozen=True, eq=False)
class Contribution:
    """One part of the score of a candidate.

    Attributes:
        key: Identifies the same contribution in the scores of other candidates.
        kind: Source of the contribution, such as `rule`, `prior` or `other facts`.
        score: Summand of the score.
        text: Description as a sentence.
        walks: Number of walks or facts behind it.
        rule: The rule behind it, if there is one.
        find_facts: Returns up to n of the walks or facts; None if there are none.
    """

    key: tuple[str | int, ...]
    kind: str
    score: float
    text: str
    walks: int = 0
    rule: Rule | None = None
    find_facts: Callable[[int], Sequence[FactPath]] | None = None


class Scorer(Protocol):
    """Scores all candidates of queries, and splits scores into contributions."""

    @property
    def rule_scorer(self) -> RuleScorer:
        """The part that scores by rules alone."""

    def __call__(self, queries: QueryTable) -> Scores:
        """Do the same as `score`, so that a scorer is a `ScoreFunction`."""

    def score(self, queries: QueryTable, applied: AppliedRules | None = None) -> Scores:
        """Score the candidates of queries.

        Args:
            queries: The queries.
            applied: What `RuleScorer.apply_rules` returned for them; computed if None.
        """

    def contributions(
        self,
        queries: QueryTable,
        offsets: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Split the scores of the given candidates into parts by name, which add up to them.

        Args:
            queries: The queries.
            offsets: First index of each query's candidates, and the end of the last.
            candidate: The candidates.
            applied: As in `score`.
        """

    def attribute_score(
        self, query: QueryTable, candidate: int, applied: AppliedRules
    ) -> list[Contribution]:
        """Split the score of a candidate of a single query into contributions with their facts."""

    def without(self, facts: Iterable[int]) -> Scorer:
        """Return the same scorer on evidence without some facts."""

    def memory_per_query(self, queries: QueryTable) -> NDArray[np.float64]:
        """Estimate how many numbers are in memory while each query is scored."""
