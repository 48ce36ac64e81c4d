"""A time axis: where a time stands, and which dates are written below it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2

from tilp.pictures.labels import text_width
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, Interval, format_time, parse_date
from tilp.types import Unit

__all__ = ["TICK_SIZE", "Axis", "known_times"]

TICK_SIZE = 10.5
"""The font of the dates below an axis."""

_TICK_GAP = 16.0
_BREAK = 60.0  # what is left for time that is left out
_LONG = 15
_SIDES = frozenset({UNKNOWN, OPEN_START, OPEN_END})
_STEPS = {Unit.DAY: (1, 2, 7, 14), Unit.MONTH: (1, 2, 3, 6)}
_MOST_DIGITS = 40

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Axis:
    """Where times stand between left and right.

    Attributes:
        left: where the axis begins.
        right: where it ends.
        knots: times, ascending, and where they stand; times between them in proportion.
        ticks: where a date is written, and the date.
        breaks: where time is left out.
    """

    left: float
    right: float
    knots: tuple[tuple[int, float], ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    breaks: tuple[float, ...] = ()

    @classmethod
    def of_dates(
        cls, intervals: Iterable[Interval], unit: Unit, left: float, right: float, margin: float
    ) -> Axis:
        """An even axis for the known times of intervals, broken where long nothing happens.

        Margins are for what is not known.
        """
        times = known_times(intervals)
        if not times:
            return cls(left, right)
        spans = _spans(times)
        taken = sum(high - low for low, high in spans)
        scale = (right - left - 2 * margin - _BREAK * (len(spans) - 1)) / taken
        knots: list[tuple[int, float]] = []
        at = left + margin
        for low, high in spans:
            knots += [(low, at), (high, at := at + scale * (high - low))]
            at += _BREAK
        axis = cls(left, right, tuple(knots))
        ticks = [(axis.x(time), text) for time, text in _ticks(spans, unit, scale)]
        return replace(
            axis,
            ticks=tuple(_apart(ticks)),
            breaks=tuple(axis.x(high) + _BREAK / 2 for _, high in spans[:-1]),
        )

    @classmethod
    def of_order(
        cls, intervals: Iterable[Interval], left: float, right: float, margin: float
    ) -> Axis:
        """An axis without dates, on which a long time takes only a little more than a short one."""
        times = known_times(intervals)
        if len(times) < 2:
            return cls(left, right, tuple((time, (left + right) / 2) for time in times))
        places = [0.0]
        for time, following in pairwise(times):
            places.append(places[-1] + 1 + log2(following - time))
        scale = (right - left - 2 * margin) / places[-1]
        knots = ((time, left + margin + scale * at) for time, at in zip(times, places, strict=True))
        return cls(left, right, tuple(knots))

    def x(self, time: int) -> float:
        """Where a time stands; open ones at the sides."""
        if time == OPEN_START:
            return self.left
        if time == OPEN_END:
            return self.right
        if len(self.knots) == 1:
            return self.knots[0][1]
        place = bisect_right(self.knots, time, key=lambda knot: knot[0])
        place = min(max(place, 1), len(self.knots) - 1)
        (time_before, before), (time_after, after) = self.knots[place - 1 : place + 1]
        return before + (after - before) * ((time - time_before) / (time_after - time_before))


def known_times(intervals: Iterable[Interval]) -> Sequence[int]:
    """The starts and ends that are neither unknown nor open, ascending, each once."""
    return sorted({time for one in intervals for time in (one.start, one.end)} - _SIDES)


def _spans(times: Sequence[int]) -> list[Span]:
    """The stretches of time to show, with a little room about them.

    Times far longer than all the shorter ones together are left out between them, or what lies
    close together could not be told apart.
    """
    gaps = sorted(after - before for before, after in pairwise(times))
    shorter, longest = 0, gaps[-1] if gaps else 0
    for gap in gaps:
        if shorter and gap > _LONG * shorter:
            break
        shorter, longest = shorter + gap, gap
    room = max(1, shorter // 16)
    spans = [(times[0] - room, times[0] + room)]
    for time in times[1:]:
        low, high = spans[-1]
        if time - (high - room) <= longest:
            spans[-1] = low, time + room
        else:
            spans.append((time - room, time + room))
    return spans


def _ticks(spans: Sequence[Span], unit: Unit, scale: float) -> list[tuple[int, str]]:
    """The finest round dates that have room side by side, with their times.

    Every span has a date, be it a round one or not.
    """
    middles = [[((low + high) // 2, format_time((low + high) // 2, unit))] for low, high in spans]
    for coarser, step in _grids(unit):
        found = [_round_dates(span, unit, coarser, step, scale) for span in spans]
        if None not in found:
            return [
                date for pair in zip(found, middles, strict=True) for date in pair[0] or pair[1]
            ]
    return [date for dates in middles for date in dates]


def _round_dates(
    span: Span, unit: Unit, coarser: Unit, step: int, scale: float
) -> list[tuple[int, str]] | None:
    """The round dates of a span, with their times; None where they lack room."""
    first, last = (_in_unit(time, unit, coarser) for time in span)
    if first is None or last is None:
        return None
    labels = [format_time(time, coarser) for time in (first, last)]
    room = max(text_width(label, TICK_SIZE) for label in labels) + _TICK_GAP
    if (last - first) // step * room > (span[1] - span[0]) * scale:
        return None
    dates = [
        (_in_unit(date, coarser, unit), format_time(date, coarser))
        for date in range(-(-first // step) * step, last + 1, step)
    ]
    return [(time, date) for time, date in dates if time is not None and span[0] <= time <= span[1]]


def _apart(ticks: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """The dates that do not run into the one before them, as two may about a break."""
    free = float("-inf")
    for x, text in ticks:
        half = text_width(text, TICK_SIZE) / 2
        if x - half > free:
            yield x, text
            free = x + half + _TICK_GAP / 4


def _grids(unit: Unit) -> Iterator[tuple[Unit, int]]:
    """Units and steps of round dates, from fine to coarse."""
    for finer in (Unit.DAY, Unit.MONTH):
        if unit is finer or (unit, finer) == (Unit.DAY, Unit.MONTH):
            yield from ((finer, step) for step in _STEPS[finer])
    coarsest = Unit.INTEGER if unit is Unit.INTEGER else Unit.YEAR
    for digits in range(_MOST_DIGITS):
        yield from ((coarsest, step * 10**digits) for step in (1, 2, 5))


def _in_unit(time: int, unit: Unit, other: Unit) -> int | None:
    """The first instant of a date in another unit; None where that has no such date."""
    if unit is other:
        return time
    span = parse_date(format_time(time, unit)).span(other)
    return None if span is None else span[0]
