"""Relations of two intervals: the three classes of eq. 4, Allen's thirteen, gap classes."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ints, Mask
from tilp.time.bins import bin_words
from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN, format_length, unit_words
from tilp.time.interval import Interval, Times, known_ends
from tilp.types import Unit

UNDECIDED = -1
"""Code of a relation that the known dates leave open."""


class _Mirrored(StrEnum):
    """Relations in an order in which the converse is at the mirrored index."""

    @property
    def converse(self) -> Self:
        """The relation read from the other interval."""
        relations = tuple(type(self))
        return relations[-1 - relations.index(self)]


class TemporalRelation(_Mirrored):
    """The three classes of eq. 4."""

    BEFORE = "before"
    TOUCHING = "touching"
    AFTER = "after"


class Allen(_Mirrored):
    """Allen's relations, in an order in which the converse is at the mirrored index."""

    BEFORE = "before"
    MEETS = "meets"
    OVERLAPS = "overlaps"
    STARTS = "starts"
    DURING = "during"
    FINISHES = "finishes"
    EQUALS = "equals"
    FINISHED_BY = "finished-by"
    CONTAINS = "contains"
    STARTED_BY = "started-by"
    OVERLAPPED_BY = "overlapped-by"
    MET_BY = "met-by"
    AFTER = "after"

    @property
    def temporal_relation(self) -> TemporalRelation:
        """The class of eq. 4 that this relation belongs to."""
        ends = (Allen.BEFORE, Allen.AFTER)
        return TemporalRelation(self.value) if self in ends else TemporalRelation.TOUCHING


_CLASSES = tuple(TemporalRelation)
_ALLEN = tuple(Allen)


def temporal_relation_code(start: int, end: int, other_start: int, other_end: int) -> int:
    """Return the class of eq. 4 of two complete intervals: 0 before, 1 touching, 2 after.

    A sum instead of branches, since compiled loops run faster without them.
    """
    return int(end >= other_start) + int(start > other_end)


def allen_code(start: int, end: int, other_start: int, other_end: int) -> int:
    """Return Allen's relation of a complete interval to another, as its index in `Allen`.

    Equal starts or ends come first, so that a point at one end of an interval starts or finishes
    it rather than meets it: exactly one relation holds for points too.
    """
    if start == other_start:
        return 6 if end == other_end else (3 if end < other_end else 9)
    if end == other_end:
        return 5 if start > other_start else 7
    if start < other_start:
        if end > other_end:
            return 8
        return 0 if end < other_start else (1 if end == other_start else 2)
    if end < other_end:
        return 4
    return 12 if start > other_end else (11 if start == other_end else 10)


def possible_relations(first: Interval, second: Interval) -> frozenset[TemporalRelation]:
    """Return the classes that some choice of the missing dates allows; one if none is missing."""
    possible = _possible_classes(first.start, first.end, second.start, second.end)
    return frozenset(c for c, is_possible in zip(_CLASSES, possible, strict=True) if is_possible)


def temporal_relation(first: Interval, second: Interval) -> TemporalRelation | None:
    """Return the class of an interval against another (eq. 4); None if undecided.

    >>> from tilp.time import Interval
    >>> temporal_relation(Interval(1977, 1977), Interval(1977, 1980)).value
    'touching'
    """
    possible = possible_relations(first, second)
    return next(iter(possible)) if len(possible) == 1 else None


def allen(first: Interval, second: Interval) -> Allen | None:
    """Return Allen's relation of an interval to another; None if undecided.

    >>> from tilp.time import Interval
    >>> allen(Interval(1977, 1977), Interval(1977, 1980)).value
    'starts'
    """
    if first.is_known and second.is_known:
        return _ALLEN[allen_code(first.start, first.end, second.start, second.end)]
    relation = temporal_relation(first, second)
    return None if relation in (None, TemporalRelation.TOUCHING) else Allen(relation)


def temporal_relation_codes(
    start: Times, end: Times, other_start: Times, other_end: Times
) -> NDArray[np.int8]:
    """Return the classes of many pairs (arrays broadcast): 0, 1, 2, or `UNDECIDED`."""
    before, touching, after = _possible_classes(start, end, other_start, other_end)
    code = np.where(before, 0, np.where(after, 2, 1))
    several = before.astype(np.int8) + touching + after > 1
    return np.where(several, UNDECIDED, code).astype(np.int8)


def allen_codes(start: Times, end: Times, other_start: Times, other_end: Times) -> NDArray[np.int8]:
    """Return Allen's relations of many pairs (arrays broadcast), or `UNDECIDED`."""
    start_sign, end_sign = _sign(start, other_start), _sign(end, other_end)
    # By the signs of start - start' and end - end'; the two corners depend on where they meet.
    table = np.array([[2, 7, 8], [3, 6, 9], [4, 5, 10]], dtype=np.int8)
    code = table[start_sign + 1, end_sign + 1]
    earlier = (start_sign < 0) & (end_sign < 0)
    later = (start_sign > 0) & (end_sign > 0)
    code = np.where(earlier & (end < other_start), 0, code)
    code = np.where(earlier & (end == other_start), 1, code)
    code = np.where(later & (start > other_end), 12, code)
    code = np.where(later & (start == other_end), 11, code)
    unknown = (start == UNKNOWN) | (end == UNKNOWN)
    unknown = unknown | (other_start == UNKNOWN) | (other_end == UNKNOWN)
    if unknown.any():
        by_class = np.array([0, UNDECIDED, 12, UNDECIDED], dtype=np.int8)  # last: UNDECIDED = -1
        classes = temporal_relation_codes(start, end, other_start, other_end)
        code = np.where(unknown, by_class[classes], code)
    return code.astype(np.int8)


def _possible_classes(
    start: Times | int, end: Times | int, other_start: Times | int, other_end: Times | int
) -> tuple[Mask, Mask, Mask]:
    first_start, last_start, first_end, last_end = _bounds(start, end)
    others = _bounds(other_start, other_end)
    other_first_start, other_last_start, other_first_end, other_last_end = others
    touching = (last_end >= other_first_start) & (first_start <= other_last_end)
    return first_end < other_last_start, touching, last_start > other_first_end


def _bounds(start: Times | int, end: Times | int) -> tuple[Times, Times, Times, Times]:
    """Return first and last start, first and last end, that the known dates allow."""
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    first_start = np.where(no_start, OPEN_START, start)
    last_start = np.where(no_start, np.where(no_end, OPEN_END, end), start)
    first_end = np.where(no_end, first_start, end)
    return first_start, last_start, first_end, np.where(no_end, OPEN_END, end)


def _sign(first: Times, second: Times) -> NDArray[np.int8]:
    """Return the sign of the difference, which itself may overflow."""
    return (first > second).astype(np.int8) - (first < second).astype(np.int8)


def relation_words(interval: Interval, other: Interval, unit: Unit) -> str:
    """Say how an interval lies to another one; empty if the known dates do not tell.

    >>> relation_words(Interval(1985, 1988), Interval(1990, 1991), Unit.YEAR)
    '2 years before'
    >>> relation_words(Interval(1985, 1992), Interval(1990, 1991), Unit.YEAR)
    'already for 5 years then'
    >>> relation_words(Interval(1985, 1990), Interval(1990, 1991), Unit.YEAR)
    'ending as that time begins'
    >>> relation_words(Interval(1985), Interval(1990, 1991), Unit.YEAR)
    'beginning 5 years before'
    """
    both = np.array([[interval.start, other.start], [interval.end, other.end]])
    starts, ends = known_ends(*both)
    (start, from_), (end, to) = starts.tolist(), ends.tolist()
    if any(low == OPEN_START and high == OPEN_END for low, high in ((start, end), (from_, to))):
        return ""
    if OPEN_END in (start, from_):  # all that is known is that it goes on
        return "before" if end < from_ else "at that time" if end == from_ else ""
    if end < from_:
        began = "beginning " * (interval.start != UNKNOWN and interval.end == UNKNOWN)
        return began + _gap_words(from_ - end, "before", unit)
    if start > to:
        return _gap_words(start - to, "after", unit)
    if (start, end) == (from_, to):
        point = start == end
        return f"the same {unit_words(unit, plural=False)}" if point else "over the same time"
    if end > start == to > from_:
        return "beginning as that time ends"
    if start < end == from_ < to:
        return "ending as that time begins"
    if OPEN_START < start < from_ < OPEN_END:
        return f"already for {format_length(from_ - start, unit)} then"
    return "at that time"


def _gap_words(length: int, side: str, unit: Unit) -> str:
    if length == 1 and unit is not Unit.INTEGER:
        return f"the {unit_words(unit, plural=False)} {side}"
    return f"{format_length(length, unit)} {side}"


# Gaps double from one class to the next in models of 0.1, whatever the unit.
_EDGES = (1, 2, 3, 5, 9, 17, 33)
_LENGTHS = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33+")
GAP_CLASSES = (
    *(f"{length} before" for length in reversed(_LENGTHS)),
    "touching",
    *(f"{length} after" for length in _LENGTHS),
)
"""Gap classes of 0.1 from long before to long after; the converse is at the mirrored index."""


def gap_classes(edges: tuple[int, ...], unit: Unit) -> tuple[Ints, tuple[str, ...]]:
    """Return the least gap of each class, and the names of classes; without edges those of 0.1.

    >>> gap_classes((1, 2, 5), Unit.YEAR)[1][3:]
    ('touching', '1 year after', '2-4 years after', '5 years or more after')
    """
    least = np.array(edges or _EDGES, np.int64)
    return least, tuple(bin_words(least, unit, "touching")) if edges else GAP_CLASSES


def gap_code(
    start: int, end: int, other_start: int, other_end: int, edges: Ints | tuple[int, ...] = _EDGES
) -> int:
    """Return the gap class of a complete interval against another, as in `gap_classes`.

    >>> GAP_CLASSES[gap_code(1990, 1991, 1995, 1999)]
    '3-4 before'
    """
    code = len(edges)
    if end < other_start:
        for least in edges:
            # Not the difference of the two: open dates would overflow.
            code -= end <= other_start - least
    elif start > other_end:
        for least in edges:
            code += other_end <= start - least
    return code


def gap_codes(
    start: Times, end: Times, other_start: Times, other_end: Times,
    edges: Ints | tuple[int, ...] = _EDGES,
) -> NDArray[np.int8]:  # fmt: skip
    """Return the gap classes of many pairs of complete intervals (broadcast)."""
    before, after = end < other_start, start > other_end
    code = np.full(before.shape, len(edges), np.int8)
    for least in edges:
        code -= before & (end <= other_start - least)
        code += after & (other_end <= start - least)
    return code


def gap_lengths(
    start: Times, end: Times, other_start: Times | int, other_end: Times | int
) -> Floats:
    """Return the time between many pairs of complete intervals, 0 where they touch (broadcast).

    Open dates are far from everything on their other side.

    >>> gap_lengths(np.array([1990, 1997]), np.array([1991, 1999]), 1995, 1998).tolist()
    [4.0, 0.0]
    """
    # As floats: differences of open dates would overflow.
    times = (np.asarray(time, np.float64) for time in (start, end, other_start, other_end))
    first, last, other_first, other_last = times
    return np.maximum(np.maximum(other_first - last, first - other_last), 0.0)


INCOMPARABLE = 2**63 - 2  # distance code of two times of which one is unknown or open
INFINITE = 2**63 - 1  # distance code larger than any other


def time_distance(time: int, other: int) -> int:
    """Return a distance code: twice the difference, plus 1 if `time` is later than `other`.

    So of two times as far away, the earlier is nearer. Times are within ±10^18, so that the
    code fits into 64 bits.

    >>> time_distance(1989, 1990), time_distance(1991, 1990)
    (2, 3)
    """
    if time <= OPEN_START or time == OPEN_END or other <= OPEN_START or other == OPEN_END:
        return INCOMPARABLE
    if time > other:
        return 2 * (time - other) + 1
    return 2 * (other - time)


def signed_differences(code: Ints) -> Ints:
    """Return the differences, time - other, of distance codes."""
    return np.where(code % 2 == 1, code // 2, -(code // 2))
