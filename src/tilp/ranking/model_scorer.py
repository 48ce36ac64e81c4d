"""`ModelScorer`: the scorer of any kind of model, and the rules in it."""

from __future__ import annotations

from tilp.ranking.joint import JointScorer
from tilp.ranking.paper import PaperScorer
from tilp.ranking.scoring import RuleScorer

__all__ = ["ModelScorer", "rules_of"]

ModelScorer = RuleScorer | PaperScorer | JointScorer


def rules_of(scorer: ModelScorer) -> RuleScorer:
    """What scores by rules alone."""
    return scorer if isinstance(scorer, RuleScorer) else scorer.rules
