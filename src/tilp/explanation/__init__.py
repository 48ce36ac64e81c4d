"""Why a candidate has its score: reasons with dated facts, ablation effect and comparison."""

from tilp.explanation.attribution import Explainer
from tilp.explanation.types import (
    AblationEffect,
    Explanation,
    Grounding,
    Member,
    Reason,
    Standing,
    WalkedFact,
)

__all__ = [
    "AblationEffect", "Explainer", "Explanation", "Grounding", "Member", "Reason", "Standing",
    "WalkedFact",
]  # fmt: skip
