"""An arrangement of intervals that does what constraints on them say.

Before, touching, after, Allen's relations and gaps all bound differences of two ends, so that the
ends form a simple temporal network: shortest paths tell at once whether a further bound can hold,
and a solution in whole numbers is found without search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilp.rules.rule import Constraint
from tilp.time import GAP_CLASSES, Allen, Interval, TemporalRelation

_START, _END = 0, 1
_FAR = 10**9  # no bound

End = tuple[int, int]
"""The number of an interval, and which of its ends."""
Bound = tuple[End, End, int]
"""`(x, y, c)`: y lies at least c after x."""


def speaks_of_time(constraint: Constraint) -> bool:
    """Whether a constraint relates two intervals in words whose meaning is known."""
    return (
        len(constraint.variables) == 2
        and all(variable.startswith("I") for variable in constraint.variables)
        and constraint.word in _MEANINGS
    )


def arrange(constraints: Sequence[Constraint]) -> Mapping[int, Interval] | None:
    """Intervals, by number, that satisfy all constraints; None where none do.

    Only intervals that are spoken of have a place. Where there is a choice they last, overlap
    their neighbours, begin and end in the order of their numbers, and no two ends fall together.
    """
    network = _Network.of(constraints)
    if network is None:
        return None
    numbers = sorted({place for one in constraints for place in one.places})
    pairs = [(first, second) for first in numbers for second in numbers if first < second]
    wishes = [
        *(((one, _START), (one, _END)) for one in numbers),
        *(((first, _START), (second, _END)) for first, second in pairs),
        *(((second, _START), (first, _END)) for first, second in pairs),
        *(((first, _START), (second, _START)) for first, second in pairs),
        *(((first, _END), (second, _END)) for first, second in pairs),
    ]
    for earlier, later in wishes:
        if not network.add((earlier, later, 1)):
            network.add((later, earlier, 1))
    times = network.earliest()
    return {one: Interval(times[one, _START], times[one, _END]) for one in numbers}


def possible_classes(
    constraints: Sequence[Constraint], first: int, second: int
) -> list[TemporalRelation]:
    """The classes of a pair of intervals (eq. 4) that constraints leave open."""
    pair = f"I{first}", f"I{second}"
    return [
        relation
        for relation in TemporalRelation
        if _Network.of([*constraints, Constraint(relation.value, pair)]) is not None
    ]


class _Network:
    """Ends of intervals, and by how much each follows each at the least."""

    def __init__(self, ends: Sequence[End]) -> None:
        self._ends = ends
        self._least = {(one, other): 0 if one == other else -_FAR for one in ends for other in ends}

    @classmethod
    def of(cls, constraints: Sequence[Constraint]) -> _Network | None:
        """The network of constraints; None where they contradict each other."""
        numbers = sorted({place for one in constraints for place in one.places})
        network = cls([(number, side) for number in numbers for side in (_START, _END)])
        bounds: list[Bound] = [((one, _START), (one, _END), 0) for one in numbers]
        for constraint in constraints:
            bounds += _bounds(constraint)
        return network if all(map(network.add, bounds)) else None

    def add(self, bound: Bound) -> bool:
        """Add a bound and all that follows from it; not where it contradicts the others."""
        earlier, later, least = bound
        if least + self._least[later, earlier] > 0:
            return False
        if least > self._least[earlier, later]:
            for one in self._ends:
                for other in self._ends:
                    through = self._least[one, earlier] + least + self._least[later, other]
                    if through > self._least[one, other]:
                        self._least[one, other] = through
        return True

    def earliest(self) -> dict[End, int]:
        """The least time of each end that is not negative."""
        return {
            one: max(0, *(self._least[other, one] for other in self._ends)) for one in self._ends
        }


def _bounds(constraint: Constraint) -> Iterable[Bound]:
    first, second = constraint.places
    sides = {"s": (first, _START), "e": (first, _END), "S": (second, _START), "E": (second, _END)}
    for earlier, later, least in _MEANINGS[constraint.word]:
        yield sides[earlier], sides[later], least


Meaning = tuple[tuple[str, str, int], ...]
"""Bounds on the start and end of the first interval, s and e, and of the second, S and E."""


def _equal(one: str, other: str) -> Meaning:
    return (one, other, 0), (other, one, 0)


def _gap(word: str) -> Meaning:
    """The bounds of a word such as `3-4 before`."""
    length, _, side = word.partition(" ")
    earlier, later = ("e", "S") if side == TemporalRelation.BEFORE else ("E", "s")
    least, _, most = length.removesuffix("+").partition("-")
    bounds = [(earlier, later, int(least))]
    if not length.endswith("+"):
        bounds.append((later, earlier, -int(most or least)))
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
    **{word: _gap(word) for word in GAP_CLASSES if word != TemporalRelation.TOUCHING},
}
