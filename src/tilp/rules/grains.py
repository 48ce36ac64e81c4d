"""Temporal forms: which pairs of intervals a rule speaks of, in which words, and their codes.

A form is what `Grain` names. Of a walk of length l it looks at some pairs of body intervals, the
walk's *digits*, and at some pairs of a body interval and the query's, I(l+1), its *code*; both
are numbers whose places follow the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tilp.rules.rule import Constraint
from tilp.time import GAP_CLASSES, Allen, TemporalRelation
from tilp.types import Grain

_CLASSES = tuple(relation.value for relation in TemporalRelation)
_ALLEN = tuple(relation.value for relation in Allen)

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TemporalForm:
    """One temporal form.

    Attributes:
        grain: its name.
        words: the words that relate a body interval to the query's, by their number.
        classes: the words that relate two body intervals.
    """

    grain: Grain
    words: tuple[str, ...]
    classes: tuple[str, ...] = _CLASSES

    def with_classes(self, classes: tuple[str, ...]) -> TemporalForm:
        """The same form with other words in place of before, touching and after."""
        return TemporalForm(self.grain, classes if self.words == _CLASSES else self.words, classes)

    def body_pairs(self, length: int) -> Pairs:
        """The pairs of body intervals, in the order in which a walk meets them."""
        match self.grain:
            case Grain.ADJACENT:
                return tuple((place - 1, place) for place in range(2, length + 1))
            case Grain.PAIRS:
                return tuple(
                    (earlier, place)
                    for place in range(2, length + 1)
                    for earlier in range(1, place)
                )
            case _:
                return ()

    def query_pairs(self, length: int) -> Pairs:
        """The pairs of a body interval and the query's."""
        match self.grain:
            case Grain.STATIC:
                return ()
            case Grain.GAP:
                return ((length, length + 1),)
            case _:
                return tuple((place, length + 1) for place in range(1, length + 1))

    def constraints(self, length: int, digits: int, code: int) -> tuple[Constraint, ...]:
        """The constraints that digits and code stand for."""
        return (
            *_unpack(self.body_pairs(length), self.classes, digits),
            *_unpack(self.query_pairs(length), self.words, code),
        )

    def words_of(
        self, length: int, digits: NDArray[np.int64], code: NDArray[np.int64]
    ) -> dict[tuple[int, int], NDArray[np.int64]]:
        """The number of the word of each pair that digits and codes speak of."""
        body, query = self.body_pairs(length), self.query_pairs(length)
        return {
            **dict(zip(body, _digits(digits, len(self.classes), len(body)), strict=True)),
            **dict(zip(query, _digits(code, len(self.words), len(query)), strict=True)),
        }

    def mirrored(
        self, length: int, digits: NDArray[np.int64], code: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Digits and codes of walks read backwards, from those of the walks."""
        by_pair = self.words_of(length, digits, code)
        turned, turned_code = np.zeros_like(digits), np.zeros_like(code)
        for first, second in self.body_pairs(length):
            # Classes stand in an order in which the converse is at the mirrored place.
            word = len(self.classes) - 1 - by_pair[length + 1 - second, length + 1 - first]
            turned = turned * len(self.classes) + word
        for first, second in self.query_pairs(length):
            turned_code = turned_code * len(self.words) + by_pair[length + 1 - first, second]
        return turned, turned_code

    def codes(self, length: int, constraints: Sequence[Constraint]) -> tuple[int, int] | None:
        """Digits and code of constraints; None where they are not of this form."""
        pairs = self.body_pairs(length), self.query_pairs(length)
        by_pair = {one.places: one.word for one in constraints if one.variables[0][0] == "I"}
        if len(by_pair) != len(constraints) or set(by_pair) != {*pairs[0], *pairs[1]}:
            return None
        packed = []
        for some, words in zip(pairs, (self.classes, self.words), strict=True):
            number = 0
            for pair in some:
                if by_pair[pair] not in words:
                    return None
                number = number * len(words) + words.index(by_pair[pair])
            packed.append(number)
        return packed[0], packed[1]


def _digits(number: NDArray[np.int64], base: int, places: int) -> list[NDArray[np.int64]]:
    """The digits of numbers, first to last."""
    return [number // base**place % base for place in reversed(range(places))]


@lru_cache(maxsize=65_536)  # rules by the ten thousand share few of these
def _unpack(pairs: Pairs, words: tuple[str, ...], number: int) -> tuple[Constraint, ...]:
    found = []
    for first, second in reversed(pairs):
        number, digit = divmod(number, len(words))
        found.append(Constraint(words[digit], (f"I{first}", f"I{second}")))
    return tuple(found)


FORMS = {
    Grain.STATIC: TemporalForm(Grain.STATIC, ()),
    Grain.QUERY: TemporalForm(Grain.QUERY, _CLASSES),
    Grain.ADJACENT: TemporalForm(Grain.ADJACENT, _CLASSES),
    Grain.PAIRS: TemporalForm(Grain.PAIRS, _CLASSES),
    Grain.ALLEN: TemporalForm(Grain.ALLEN, _ALLEN),
    Grain.GAP: TemporalForm(Grain.GAP, GAP_CLASSES),
}
"""The form of each grain."""
