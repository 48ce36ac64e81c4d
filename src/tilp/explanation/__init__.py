"""Why a candidate has its score: reasons with dated facts, ablation effect and contrasts."""

from tilp._deprecated import renamed_attributes
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

__getattr__ = renamed_attributes(__name__)
