"""`ReachedOnly`: candidates that no rule reaches all score alike, as in the paper's own code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilp.graph import QueryTable
from tilp.scoring import Scorer, Scores

__all__ = ["ReachedOnly"]


@dataclass(frozen=True)
class ReachedOnly:
    """A scorer that tells only those candidates apart which some rule reaches.

    With best ties, an answer among the others then ranks right behind the ones that are reached,
    however many others there are.

    Attributes:
        scorer: of a fitted model.
    """

    scorer: Scorer

    def __call__(self, queries: QueryTable) -> Scores:
        """The scores of candidates that rules reach; all others have one that is lower."""
        rules = self.scorer.rule_scorer
        applied = rules.apply_rules(queries)
        scores = self.scorer.score(queries, applied)
        entities = len(rules.walker.graph.entities)
        reached = applied.rows[:, 0] * entities + applied.rows[:, 2]
        kept = np.flatnonzero(np.isin(scores.query * entities + scores.candidate, reached))
        score = scores.score[kept]
        return Scores(
            np.searchsorted(kept, scores.offsets),
            scores.candidate[kept],
            score,
            score.min(initial=0.0) - 1.0,
            scores.reached,
        )
