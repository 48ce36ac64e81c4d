"""Rule weights: the recurrent attention net, rule scores, and training phase one (eq. 8-13)."""

from tilp.attention.known import KINDS, KnownAnswers, Mark, known_answers
from tilp.attention.prior import CandidatePrior

__all__ = ["KINDS", "CandidatePrior", "KnownAnswers", "Mark", "known_answers"]
