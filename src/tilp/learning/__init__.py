"""Phase one: learn the weights of rules (eq. 8-13), with known answers and a popularity prior."""

from tilp.learning.candidates import KNOWN_KINDS, KnownAnswers, Mark, PopularityPrior, known_answers

__all__ = ["KNOWN_KINDS", "KnownAnswers", "Mark", "PopularityPrior", "known_answers"]
