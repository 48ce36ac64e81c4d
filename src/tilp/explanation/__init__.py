"""Rules, groundings and feature terms behind one candidate, adding up to its score."""

from tilp.explanation.attribution import Explainer
from tilp.explanation.types import Explanation, Fall, Grounding, Lack, Reason, WalkedFact

__all__ = ["Explainer", "Explanation", "Fall", "Grounding", "Lack", "Reason", "WalkedFact"]
