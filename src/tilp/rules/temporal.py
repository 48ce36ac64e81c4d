"""Temporal constraints: forms that encode them as integers, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from tilp._utils.arrays import Ints
from tilp.rules.rule import Constraint
from tilp.time import GAP_CLASSES, Allen, Interval, TemporalRelation
from tilp.time.bins import parse_length
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


_START, _END = 0, 1
_SIDES = (TemporalRelation.BEFORE, TemporalRelation.AFTER)

End = tuple[int, int]  # index of an interval, and which of its ends
Bound = tuple[End, End, int]  # (x, y, c): y is at least c after x


def is_temporal(constraint: Constraint) -> bool:
    """Return True if a constraint is a known temporal relation of two intervals."""
    kinds = [variable[0] for variable in constraint.variables]
    word = constraint.word
    return kinds == ["I", "I"] and (word in _MEANINGS or gap_parts(word) is not None)


def gap_parts(word: str) -> tuple[str, str] | None:
    """Return length and side of a gap class such as `3-4 years before`; None for other words."""
    length, _, side = word.rpartition(" ")
    return (length, side) if side in _SIDES and parse_length(length) else None


def satisfying_intervals(constraints: Sequence[Constraint]) -> Mapping[int, Interval] | None:
    """Return intervals, by index, that satisfy all constraints; None if there are none.

    Unconstrained intervals are left out. Where there is a choice, intervals have a duration,
    overlap their neighbours, start and end in the order of their indices, and share no end.
    """
    network = _Network.of(constraints)
    if network is None:
        return None
    indices = sorted({index for constraint in constraints for index in constraint.indices})
    pairs = list(combinations(indices, 2))
    turned = [(second, first) for first, second in pairs]
    preferences = [((index, _START), (index, _END)) for index in indices]
    preferences += [((first, _START), (second, _END)) for first, second in (*pairs, *turned)]
    for side in (_START, _END):
        preferences += [((first, side), (second, side)) for first, second in pairs]
    for earlier, later in preferences:
        if not network.add((earlier, later, 1)):
            network.add((later, earlier, 1))
    times = network.earliest()
    return {index: Interval(times[index, _START], times[index, _END]) for index in indices}


def possible_classes(
    constraints: Sequence[Constraint], first: int, second: int
) -> list[TemporalRelation]:
    """Return the classes of a pair of intervals (eq. 4) that constraints allow."""
    pair = f"I{first}", f"I{second}"

    def is_possible(relation: TemporalRelation) -> bool:
        return _Network.of([*constraints, Constraint(relation.value, pair)]) is not None

    return list(filter(is_possible, TemporalRelation))


class _Network:
    """Simple temporal network: the least difference of each pair of ends."""

    def __init__(self, ends: Sequence[End]) -> None:
        self._index = {end: index for index, end in enumerate(ends)}
        self._least = np.where(np.eye(len(ends), dtype=np.bool_), 0.0, -np.inf)

    @classmethod
    def of(
        cls, constraints: Sequence[Constraint], others: Iterable[int] = (), scale: float = 0.0
    ) -> _Network | None:
        """Build the network of constraints and of other intervals; None if they contradict.

        Times count `scale` days; by default the smallest unit that a constraint names.
        """
        scale = scale or _smallest_unit(constraints)
        indices = sorted({*others, *(index for c in constraints for index in c.indices)})
        network = cls([(index, side) for index in indices for side in (_START, _END)])
        bounds: list[Bound] = [((index, _START), (index, _END), 0) for index in indices]
        for constraint in constraints:
            bounds += _bounds(constraint, scale)
        return network if all(map(network.add, bounds)) else None

    def add(self, bound: Bound) -> bool:
        """Add a bound and its consequences; return False if it contradicts the others."""
        (earlier, later), least = (self._index[end] for end in bound[:2]), bound[2]
        if least + self._least[later, earlier] > 0:
            return False
        through = self._least[:, [earlier]] + least + self._least[[later]]
        np.maximum(self._least, through, out=self._least)
        return True

    def earliest(self) -> dict[End, int]:
        """Return the least non-negative time of each end."""
        times = np.maximum(self._least.max(axis=0, initial=0.0), 0.0)
        return {end: int(times[index]) for end, index in self._index.items()}


def _smallest_unit(constraints: Iterable[Constraint]) -> float:
    """Return the smallest unit of time, in days, that gap classes name; 1 if there are none."""
    parts = (gap_parts(constraint.word) for constraint in constraints)
    lengths = (parse_length(part[0]) for part in parts if part)
    return min((length[2] for length in lengths if length), default=1.0)


def _bounds(constraint: Constraint, scale: float) -> Iterable[Bound]:
    first, second = constraint.indices
    meaning = _MEANINGS.get(constraint.word) or _gap(constraint.word, scale)
    sides = {"s": (first, _START), "e": (first, _END), "S": (second, _START), "E": (second, _END)}
    for earlier, later, least in meaning:
        yield sides[earlier], sides[later], least


# Bounds on the start and end of the first interval, s and e, and of the second, S and E.
Meaning = tuple[tuple[str, str, int], ...]


def _equal(a: str, b: str) -> Meaning:
    return (a, b, 0), (b, a, 0)


def _gap(name: str, scale: float) -> Meaning:
    """Return the bounds of a gap class such as `3-4 years before`, in a unit of so many days."""
    length, side = gap_parts(name) or ("", "")
    least, most, _ = parse_length(length) or (1.0, np.inf, 1.0)
    earlier, later = ("e", "S") if side == TemporalRelation.BEFORE else ("E", "s")
    bounds = [(earlier, later, max(round(least / scale), 1))]
    if most < np.inf:
        bounds.append((later, earlier, -round(most / scale)))
    return tuple(bounds)


_MEANINGS: dict[str, Meaning] = {
    Allen.BEFORE: (("e", "S", 1),),
    Allen.MEETS: (*_equal("e", "S"), ("s", "S", 1), ("e", "E", 1)),
    Allen.OVERLAPS: (("s", "S", 1), ("S", "e", 1), ("e", "E", 1)),
    Allen.STARTS: (*_equal("s", "S"), ("e", "E", 1)),
    Allen.DURING: (("S", "s", 1), ("e", "E", 1)),
    Allen.FINISHES: (*_equal("e", "E"), ("S", "s", 1)),
    Allen.EQUALS: (*_equal("s", "S"), *_equal("e", "E")),
    Allen.FINISHED_BY: (*_equal("e", "E"), ("s", "S", 1)),
    Allen.CONTAINS: (("s", "S", 1), ("E", "e", 1)),
    Allen.STARTED_BY: (*_equal("s", "S"), ("E", "e", 1)),
    Allen.OVERLAPPED_BY: (("S", "s", 1), ("s", "E", 1), ("E", "e", 1)),
    Allen.MET_BY: (*_equal("s", "E"), ("S", "s", 1), ("E", "e", 1)),
    Allen.AFTER: (("E", "s", 1),),
    TemporalRelation.TOUCHING: (("S", "e", 0), ("s", "E", 0)),
}
