"""Temporal forms: the pairs of intervals that a rule constrains, by which relations, as integers.

A form implements a `Grain`. It encodes the relations between body intervals of a walk of length l
as one integer, the walk's *digits*, and those of body intervals with the query interval I(l+1) as
another, its *code*. Each has one digit a pair, in the order of the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilp._utils.arrays import Ints
from tilp.rules.rule import Constraint
from tilp.time import GAP_CLASSES, Allen, TemporalRelation
from tilp.types import Grain

_CLASSES = tuple(relation.value for relation in TemporalRelation)
_ALLEN = tuple(relation.value for relation in Allen)

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TemporalForm:
    """Temporal detail of rules: names of the relations between intervals."""

    grain: Grain
    query_relations: tuple[str, ...]  # of a body interval to the query interval
    body_relations: tuple[str, ...] = _CLASSES  # of two body intervals

    def with_classes(self, classes: tuple[str, ...]) -> TemporalForm:
        """Return this form with other names in place of before, touching and after."""
        query_relations = classes if self.query_relations == _CLASSES else self.query_relations
        return TemporalForm(self.grain, query_relations, classes)

    def body_pairs(self, length: int) -> Pairs:
        """Return the pairs of body intervals, in the order in which a walk meets them."""
        later = range(2, length + 1)
        if self.grain is Grain.ADJACENT:
            return tuple((index - 1, index) for index in later)
        if self.grain is Grain.PAIRS:
            return tuple((earlier, index) for index in later for earlier in range(1, index))
        return ()

    def query_pairs(self, length: int) -> Pairs:
        """Return the pairs of a body interval and the query interval."""
        if self.grain is Grain.STATIC:
            return ()
        first = length if self.grain is Grain.GAP else 1
        return tuple((index, length + 1) for index in range(first, length + 1))

    def constraints(self, length: int, digits: int, code: int) -> tuple[Constraint, ...]:
        """Decode digits and code to constraints."""
        return (
            *_unpack(self.body_pairs(length), self.body_relations, digits),
            *_unpack(self.query_pairs(length), self.query_relations, code),
        )

    def relation_codes(self, length: int, digits: Ints, code: Ints) -> dict[tuple[int, int], Ints]:
        """Return the relation codes of each pair, decoded from digits and codes."""
        body, query = self.body_pairs(length), self.query_pairs(length)
        body_codes = _digits(digits, len(self.body_relations), len(body))
        query_codes = _digits(code, len(self.query_relations), len(query))
        return dict(zip((*body, *query), (*body_codes, *query_codes), strict=True))

    def mirrored(self, length: int, digits: Ints, code: Ints) -> tuple[Ints, Ints]:
        """Return the digits and codes of the same walks read backwards."""
        by_pair = self.relation_codes(length, digits, code)
        turned, turned_code = np.zeros_like(digits), np.zeros_like(code)
        last, base = length + 1, len(self.body_relations)
        for first, second in self.body_pairs(length):
            # Relations are ordered so that the converse has the mirrored index.
            turned = turned * base + (base - 1 - by_pair[last - second, last - first])
        for first, second in self.query_pairs(length):
            turned_code = turned_code * len(self.query_relations) + by_pair[last - first, second]
        return turned, turned_code

    def codes(self, length: int, constraints: Sequence[Constraint]) -> tuple[int, int] | None:
        """Encode constraints as digits and code; None if they are not of this form."""
        pairs = self.body_pairs(length), self.query_pairs(length)
        by_pair = {c.indices: c.word for c in constraints if c.variables[0][0] == "I"}
        if len(by_pair) != len(constraints) or set(by_pair) != {*pairs[0], *pairs[1]}:
            return None
        packed = []
        for some, names in zip(pairs, (self.body_relations, self.query_relations), strict=True):
            value = 0
            for pair in some:
                if by_pair[pair] not in names:
                    return None
                value = value * len(names) + names.index(by_pair[pair])
            packed.append(value)
        return packed[0], packed[1]


def _digits(values: Ints, base: int, count: int) -> list[Ints]:
    """Return the digits of numbers, first to last."""
    return [values // base**power % base for power in reversed(range(count))]


@lru_cache(maxsize=65_536)  # tens of thousands of rules share few of these
def _unpack(pairs: Pairs, relations: tuple[str, ...], value: int) -> tuple[Constraint, ...]:
    constraints = []
    for first, second in reversed(pairs):
        value, digit = divmod(value, len(relations))
        constraints.append(Constraint(relations[digit], (f"I{first}", f"I{second}")))
    return tuple(constraints)


_QUERY_RELATIONS = {Grain.STATIC: (), Grain.ALLEN: _ALLEN, Grain.GAP: GAP_CLASSES}
FORMS = {grain: TemporalForm(grain, _QUERY_RELATIONS.get(grain, _CLASSES)) for grain in Grain}
"""The form of each grain."""
