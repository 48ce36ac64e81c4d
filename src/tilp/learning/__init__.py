"""Rule weights: the recurrent attention net, rule scores, and training phase one (eq. 8-13)."""

from tilp.learning.candidates import KNOWN_KINDS, KnownAnswers, Mark, PopularityPrior, known_answers

__all__ = ["KNOWN_KINDS", "KnownAnswers", "Mark", "PopularityPrior", "known_answers"]
