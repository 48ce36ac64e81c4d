"""Temporal forms: which pairs of intervals a rule speaks of, and in which words.

A form is what `Grain` names. For a walk of length l it lists pairs of intervals, l + 1 standing
for the query's, and a vocabulary; the codes of the pairs, packed into one integer, are the
temporal part of the rule that the walk falls under.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tilp.choices import Grain
from tilp.intervals import GAP_WORDS, Allen, TemporalRelation
from tilp.rules.rule import Constraint

__all__ = ["FORMS", "Form"]

_CLASSES = tuple(relation.value for relation in TemporalRelation)
_ALLEN = tuple(relation.value for relation in Allen)


@dataclass(frozen=True)
class Form:
    """One temporal form.

    Attributes:
        grain: its name.
        words: the words that relate two intervals, by code.
        bits: how many bits a code takes.
    """

    grain: Grain
    words: tuple[str, ...]
    bits: int

    def pairs(self, length: int) -> tuple[tuple[int, int], ...]:
        """The pairs of intervals that a rule of this length speaks of, in canonical order."""
        query = length + 1
        match self.grain:
            case Grain.STATIC:
                return ()
            case Grain.QUERY | Grain.ALLEN:
                return tuple((place, query) for place in range(1, query))
            case Grain.ADJACENT:
                adjacent = {(place, place + 1) for place in range(1, query)}
                return tuple(sorted(adjacent | {(place, query) for place in range(1, query)}))
            case Grain.PAIRS:
                return tuple(combinations(range(1, query + 1), 2))
            case Grain.GAP:
                return ((length, query),)

    def constraints(self, length: int, code: int) -> Iterator[Constraint]:
        """The constraints that a packed code stands for, the last pair in the lowest bits."""
        for first, second in reversed(self.pairs(length)):
            yield Constraint(self.words[code & ((1 << self.bits) - 1)], (f"I{first}", f"I{second}"))
            code >>= self.bits


FORMS = {
    Grain.STATIC: Form(Grain.STATIC, (), 0),
    Grain.QUERY: Form(Grain.QUERY, _CLASSES, 2),
    Grain.ADJACENT: Form(Grain.ADJACENT, _CLASSES, 2),
    Grain.PAIRS: Form(Grain.PAIRS, _CLASSES, 2),
    Grain.ALLEN: Form(Grain.ALLEN, _ALLEN, 4),
    Grain.GAP: Form(Grain.GAP, GAP_WORDS, 4),
}
"""The form of each grain."""
