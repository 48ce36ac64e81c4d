"""What temporal constraints say together: intervals that satisfy them, what they imply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

from tilp.rules.rule import Constraint, Rule
from tilp.time import GAP_CLASSES, Allen, Interval, TemporalRelation

_START, _END = 0, 1
_FAR = 10**9  # no bound

End = tuple[int, int]  # index of an interval, and which of its ends
Bound = tuple[End, End, int]  # (x, y, c): y is at least c after x


def is_temporal(constraint: Constraint) -> bool:
    """Return True if a constraint is a known temporal relation of two intervals."""
    kinds = [variable[0] for variable in constraint.variables]
    return kinds == ["I", "I"] and constraint.word in _MEANINGS


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


def generalises(general: Rule, special: Rule) -> bool:
    """Return True if a rule applies to every walk that another one applies to.

    Both have the same head and the same chain of body atoms, and the constraints of `special`
    imply those of `general`. Temporal constraints do so by their meaning for complete intervals:
    `meets` implies `touching`, and `before(I1,I2)` with `before(I2,I3)` implies `before(I1,I3)`.
    User-defined ones imply themselves alone. A rule generalises itself, and constraints that
    contradict each other imply every temporal one.

    >>> from tilp.rules import generalises, parse_rule
    >>> chain = "won(E1,E2,I2) <- nominated(E1,E2,I1)"
    >>> meets = parse_rule(f"{chain} & meets(I1,I2)")
    >>> generalises(parse_rule(f"{chain} & touching(I1,I2)"), meets)
    True
    >>> generalises(parse_rule(f"{chain} & before(I1,I2)"), meets)
    False
    """
    if general.head != special.head or general.body != special.body:
        return False
    added = [c for c in general.constraints if c not in special.constraints]
    if not added:
        return True
    if not all(map(is_temporal, added)):
        return False
    network = _implications(tuple(filter(is_temporal, special.constraints)), special.length + 1)
    return network is None or all(network.implies(bound) for c in added for bound in _bounds(c))


@lru_cache(maxsize=65_536)  # many rules share few of these
def _implications(constraints: tuple[Constraint, ...], n_intervals: int) -> _Network | None:
    return _Network.of(constraints, range(1, n_intervals + 1))


class _Network:
    """Simple temporal network: the least difference of each pair of ends."""

    def __init__(self, ends: Sequence[End]) -> None:
        self._ends = ends
        self._least = {(a, b): 0 if a == b else -_FAR for a in ends for b in ends}

    @classmethod
    def of(cls, constraints: Sequence[Constraint], others: Iterable[int] = ()) -> _Network | None:
        """Build the network of constraints, and of intervals that they may not be about.

        None if they contradict each other.
        """
        indices = sorted({*others, *(index for c in constraints for index in c.indices)})
        network = cls([(index, side) for index in indices for side in (_START, _END)])
        bounds: list[Bound] = [((index, _START), (index, _END), 0) for index in indices]
        for constraint in constraints:
            bounds += _bounds(constraint)
        return network if all(map(network.add, bounds)) else None

    def add(self, bound: Bound) -> bool:
        """Add a bound and its consequences; return False if it contradicts the others."""
        earlier, later, least = bound
        if least + self._least[later, earlier] > 0:
            return False
        if least > self._least[earlier, later]:
            for a in self._ends:
                for b in self._ends:
                    through = self._least[a, earlier] + least + self._least[later, b]
                    if through > self._least[a, b]:
                        self._least[a, b] = through
        return True

    def implies(self, bound: Bound) -> bool:
        """Return True if a bound follows from the others."""
        earlier, later, least = bound
        return self._least[earlier, later] >= least

    def earliest(self) -> dict[End, int]:
        """Return the least non-negative time of each end."""
        ends = self._ends
        return {end: max(0, *(self._least[other, end] for other in ends)) for end in ends}


def _bounds(constraint: Constraint) -> Iterable[Bound]:
    first, second = constraint.indices
    sides = {"s": (first, _START), "e": (first, _END), "S": (second, _START), "E": (second, _END)}
    for earlier, later, least in _MEANINGS[constraint.word]:
        yield sides[earlier], sides[later], least


# Bounds on the start and end of the first interval, s and e, and of the second, S and E.
Meaning = tuple[tuple[str, str, int], ...]


def _equal(a: str, b: str) -> Meaning:
    return (a, b, 0), (b, a, 0)


def _gap(name: str) -> Meaning:
    """Return the bounds of a gap class such as `3-4 before`."""
    length, _, side = name.partition(" ")
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
    **{name: _gap(name) for name in GAP_CLASSES if name != TemporalRelation.TOUCHING},
}
