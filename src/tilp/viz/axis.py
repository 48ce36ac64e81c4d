"""Place times on an axis, and choose the dates to write below it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2

from tilp.time import OPEN_END, OPEN_START, UNKNOWN, Interval, format_time, parse_date
from tilp.types import Unit
from tilp.viz.svg import text_width

TICK_SIZE = 10.5
_TICK_GAP = 16.0
_BREAK = 60.0  # width of a break in the axis
_LONG = 15  # times the sum of all shorter gaps: such a gap is left out
_SIDES = frozenset({UNKNOWN, OPEN_START, OPEN_END})
_STEPS = {Unit.DAY: (1, 2, 7, 14), Unit.MONTH: (1, 2, 3, 6)}
_MOST_DIGITS = 40

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Axis:
    """A map from times to positions between left and right.

    Attributes:
        left: Where the axis begins.
        right: Where it ends.
        knots: Ascending times with their positions; times between them are in proportion.
        ticks: Positions of dates, and the dates.
        breaks: Positions where time is left out.
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
        """Make an even axis for the known times of intervals, broken where nothing happens."""
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
        """Make an axis without dates, on which long times take little more room than short ones."""
        times = known_times(intervals)
        if len(times) < 2:
            return cls(left, right, tuple((time, (left + right) / 2) for time in times))
        steps = [0.0]
        for time, following in pairwise(times):
            steps.append(steps[-1] + 1 + log2(following - time))
        scale = (right - left - 2 * margin) / steps[-1]
        knots = ((time, left + margin + scale * at) for time, at in zip(times, steps, strict=True))
        return cls(left, right, tuple(knots))

    def x(self, time: int) -> float:
        """Return the position of a time; open ends are at the sides."""
        if time == OPEN_START:
            return self.left
        if time == OPEN_END:
            return self.right
        if len(self.knots) == 1:
            return self.knots[0][1]
        index = bisect_right(self.knots, time, key=lambda knot: knot[0])
        index = min(max(index, 1), len(self.knots) - 1)
        (time_before, before), (time_after, after) = self.knots[index - 1 : index + 1]
        return before + (after - before) * ((time - time_before) / (time_after - time_before))


def known_times(intervals: Iterable[Interval]) -> Sequence[int]:
    """Return the distinct starts and ends that are neither unknown nor open, ascending."""
    times = {time for interval in intervals for time in (interval.start, interval.end)}
    return sorted(times - _SIDES)


def _spans(times: Sequence[int]) -> list[Span]:
    """Return the spans of time to show, each with a small margin.

    A gap far longer than all shorter gaps together is left out. Otherwise times that are close
    together would coincide.
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
    """Return the finest round dates that fit side by side, at least one date for every span."""
    middles = [[((low + high) // 2, format_time((low + high) // 2, unit))] for low, high in spans]
    for coarser, step in _grids(unit):
        dates = [_round_dates(span, unit, coarser, step, scale) for span in spans]
        if None not in dates:
            return [
                date for own, middle in zip(dates, middles, strict=True) for date in own or middle
            ]
    return [date for dates in middles for date in dates]


def _round_dates(
    span: Span, unit: Unit, coarser: Unit, step: int, scale: float
) -> list[tuple[int, str]] | None:
    """Return the round dates of a span with their times, or None if they do not fit."""
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
    """Drop dates that overlap the one before them, as two may around a break."""
    free = float("-inf")
    for x, text in ticks:
        half = text_width(text, TICK_SIZE) / 2
        if x - half > free:
            yield x, text
            free = x + half + _TICK_GAP / 4


def _grids(unit: Unit) -> Iterator[tuple[Unit, int]]:
    """Yield units and steps of round dates, from fine to coarse."""
    for finer in (Unit.DAY, Unit.MONTH):
        if unit is finer or (unit, finer) == (Unit.DAY, Unit.MONTH):
            yield from ((finer, step) for step in _STEPS[finer])
    coarsest = Unit.INTEGER if unit is Unit.INTEGER else Unit.YEAR
    for digits in range(_MOST_DIGITS):
        yield from ((coarsest, step * 10**digits) for step in (1, 2, 5))


def _in_unit(time: int, unit: Unit, other: Unit) -> int | None:
    """Return the first instant of a date in another unit, or None if there is no such date."""
    if unit is other:
        return time
    span = parse_date(format_time(time, unit)).span(other)
    return None if span is None else span[0]
