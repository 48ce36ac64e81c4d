"""Why a candidate has its score: reasons with dated facts, ablation effect and contrasts."""

from tilp.explanation.attribution import Explainer
from tilp.explanation.types import (
    AblationEffect,
    Contrast,
    Explanation,
    Grounding,
    Reason,
    WalkedFact,
)

__all__ = [
    "AblationEffect",
    "Contrast",
    "Explainer",
    "Explanation",
    "Grounding",
    "Reason",
    "WalkedFact",
]
