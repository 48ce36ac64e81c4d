"""Rule weights: the recurrent attention net, rule scores, and training phase one (eq. 8-13)."""

from tilp.learning.candidates import KNOWN_KINDS, CandidatePrior, KnownAnswers, Mark, known_answers

__all__ = ["KNOWN_KINDS", "CandidatePrior", "KnownAnswers", "Mark", "known_answers"]
