"""Rules, groundings and feature terms behind one candidate, adding up to its score."""

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
