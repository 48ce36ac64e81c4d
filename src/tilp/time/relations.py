"""Relations of two intervals: the three classes of eq. 4, Allen's thirteen, gap classes."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilp.time.interval import Interval

UNDECIDED = -1
"""The code of a relation that the known ends do not decide."""


class TemporalRelation(StrEnum):
    """The three classes of eq. 4."""

    BEFORE = "before"
    TOUCHING = "touching"
    AFTER = "after"

    @property
    def converse(self) -> TemporalRelation:
        """The relation read from the other interval."""
        return _CLASSES[len(_CLASSES) - 1 - _CLASSES.index(self)]


class Allen(StrEnum):
    """Allen's relations, in an order in which the converse stands at the mirrored place."""

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
    def converse(self) -> Allen:
        """The relation read from the other interval."""
        return _ALLEN[len(_ALLEN) - 1 - _ALLEN.index(self)]

    @property
    def temporal_relation(self) -> TemporalRelation:
        """The class of eq. 4 that this relation belongs to."""
        match self:
            case Allen.BEFORE:
                return TemporalRelation.BEFORE
            case Allen.AFTER:
                return TemporalRelation.AFTER
            case _:
                return TemporalRelation.TOUCHING


_CLASSES = tuple(TemporalRelation)
_ALLEN = tuple(Allen)


def temporal_relation_code(start: int, end: int, other_start: int, other_end: int) -> int:
    """Class of one known interval against another (eq. 4): 0 before, 1 touching, 2 after.

    A sum of what is not before and what is after, for compiled loops go faster without branches.
    """
    return int(end >= other_start) + int(start > other_end)


def allen_code(start: int, end: int, other_start: int, other_end: int) -> int:
    """Allen's relation of one known interval to another, as its place in `Allen`.

    Equal starts or ends are looked at first, so that a point which is one end of an interval
    starts or finishes it rather than meets it: exactly one relation holds for points too.
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
    """The classes that some choice of the unknown ends allows; one of them if all are known."""
    start_low, start_high, end_low, end_high = _bounds(first.start, first.end)
    other_start_low, other_start_high, other_end_low, other_end_high = _bounds(
        second.start, second.end
    )
    possible = set()
    if end_low < other_start_high:
        possible.add(TemporalRelation.BEFORE)
    if end_high >= other_start_low and start_low <= other_end_high:
        possible.add(TemporalRelation.TOUCHING)
    if start_high > other_end_low:
        possible.add(TemporalRelation.AFTER)
    return frozenset(possible)


def temporal_relation(first: Interval, second: Interval) -> TemporalRelation | None:
    """The class of one interval against another (eq. 4); None where it is undecided.

    >>> from tilp.time import Interval
    >>> temporal_relation(Interval(1977, 1977), Interval(1977, 1980)).value
    'touching'
    """
    possible = possible_relations(first, second)
    return next(iter(possible)) if len(possible) == 1 else None


def allen(first: Interval, second: Interval) -> Allen | None:
    """Allen's relation of one interval to another; None where it is undecided.

    >>> from tilp.time import Interval
    >>> allen(Interval(1977, 1977), Interval(1977, 1980)).value
    'starts'
    """
    if first.is_known and second.is_known:
        return _ALLEN[allen_code(first.start, first.end, second.start, second.end)]
    relation = temporal_relation(first, second)
    return None if relation in (None, TemporalRelation.TOUCHING) else Allen(relation)


def temporal_relation_codes(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    other_start: NDArray[np.int64],
    other_end: NDArray[np.int64],
) -> NDArray[np.int8]:
    """Classes of many pairs at once (arrays broadcast): 0, 1, 2, or `UNDECIDED`."""
    start_low, start_high, end_low, end_high = _bounds(start, end)
    other_start_low, other_start_high, other_end_low, other_end_high = _bounds(
        other_start, other_end
    )
    before = end_low < other_start_high
    touching = (end_high >= other_start_low) & (start_low <= other_end_high)
    after = start_high > other_end_low
    code = np.where(before, 0, np.where(after, 2, 1))
    several = before.astype(np.int8) + touching + after > 1
    return np.where(several, UNDECIDED, code).astype(np.int8)


def allen_codes(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    other_start: NDArray[np.int64],
    other_end: NDArray[np.int64],
) -> NDArray[np.int8]:
    """Allen's relations of many pairs at once (arrays broadcast), or `UNDECIDED`."""
    start_sign = np.sign(_compare(start, other_start))
    end_sign = np.sign(_compare(end, other_end))
    # By the signs of start - start' and end - end'; the two corners depend on where they meet.
    table = np.array([[2, 7, 8], [3, 6, 9], [4, 5, 10]], dtype=np.int8)
    code = table[start_sign + 1, end_sign + 1]
    earlier = (start_sign < 0) & (end_sign < 0)
    later = (start_sign > 0) & (end_sign > 0)
    code = np.where(earlier & (end < other_start), 0, code)
    code = np.where(earlier & (end == other_start), 1, code)
    code = np.where(later & (start > other_end), 12, code)
    code = np.where(later & (start == other_end), 11, code)
    unknown = (
        (start == UNKNOWN) | (end == UNKNOWN) | (other_start == UNKNOWN) | (other_end == UNKNOWN)
    )
    if unknown.any():
        by_class = np.array([0, UNDECIDED, 12, UNDECIDED], dtype=np.int8)  # last: UNDECIDED = -1
        classes = temporal_relation_codes(start, end, other_start, other_end)
        code = np.where(unknown, by_class[classes], code)
    return code.astype(np.int8)


def _bounds(
    start: NDArray[np.int64] | int, end: NDArray[np.int64] | int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Lowest and highest start, lowest and highest end, that the known ends allow."""
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    start_low = np.where(no_start, OPEN_START, start)
    start_high = np.where(no_start, np.where(no_end, OPEN_END, end), start)
    end_low = np.where(no_end, start_low, end)
    end_high = np.where(no_end, OPEN_END, end)
    return start_low, start_high, end_low, end_high


def _compare(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int8]:
    # A difference of sentinels would overflow.
    return (first > second).astype(np.int8) - (first < second).astype(np.int8)


# Gaps double from one word to the next, so that the same words serve for days and for years.
_LONGER = (2, 3, 5, 9, 17, 33)
_LENGTHS = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33+")
_TOUCHING = len(_LENGTHS)
GAP_CLASSES = (
    *(f"{length} before" for length in reversed(_LENGTHS)),
    "touching",
    *(f"{length} after" for length in _LENGTHS),
)
"""From long before to long after; the converse stands at the mirrored place."""


def gap_code(start: int, end: int, other_start: int, other_end: int) -> int:
    """The place in `GAP_CLASSES` of one known interval against another.

    >>> GAP_CLASSES[gap_code(1990, 1991, 1995, 1999)]
    '3-4 before'
    """
    code = _TOUCHING
    if end < other_start:
        code -= 1
        for first in _LONGER:
            # Not the difference of the two: open ends would overflow.
            code -= end <= other_start - first
    elif start > other_end:
        code += 1
        for first in _LONGER:
            code += other_end <= start - first
    return code


def gap_codes(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    other_start: NDArray[np.int64],
    other_end: NDArray[np.int64],
) -> NDArray[np.int8]:
    """The places in `GAP_CLASSES` of many pairs of known intervals (arrays broadcast)."""
    before, after = end < other_start, start > other_end
    code = _TOUCHING - before.astype(np.int8) + after.astype(np.int8)
    for first in _LONGER:
        code -= before & (end <= other_start - first)
        code += after & (other_end <= start - first)
    return code


def gap_lengths(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    other_start: NDArray[np.int64] | int,
    other_end: NDArray[np.int64] | int,
) -> NDArray[np.float64]:
    """The time between many pairs of known intervals, 0 where they touch (arrays broadcast).

    Open ends are far from everything on their other side.

    >>> gap_lengths(np.array([1990, 1997]), np.array([1991, 1999]), 1995, 1998).tolist()
    [4.0, 0.0]
    """
    # As floats: differences of open ends would overflow.
    times = (np.asarray(time, np.float64) for time in (start, end, other_start, other_end))
    first, last, other_first, other_last = times
    return np.maximum(np.maximum(other_first - last, first - other_last), 0.0)


_FARTHEST = 2**29
INCOMPARABLE = 2**31 - 2
"""The closeness of times of which one is unknown or open: they cannot be compared."""
INFINITE = 2**31 - 1
"""What is farther than everything."""


def time_distance(time: int, other: int) -> int:
    """Twice the difference, odd where the time is the later one: the earlier is closer.

    Differences past 2^29 count as 2^29, so that it fits into 32 bits.

    >>> time_distance(1989, 1990), time_distance(1991, 1990)
    (2, 3)
    """
    if time <= OPEN_START or time == OPEN_END or other <= OPEN_START or other == OPEN_END:
        return INCOMPARABLE
    if time > other:
        return 2 * min(time - other, _FARTHEST) + 1
    return 2 * min(other - time, _FARTHEST)


def signed_differences(code: NDArray[np.int64]) -> NDArray[np.int64]:
    """The signed differences, time - other, that codes of closeness stand for."""
    return np.where(code % 2 == 1, code // 2, -(code // 2))
