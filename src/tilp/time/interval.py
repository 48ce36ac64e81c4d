"""`Interval`: a start and an end in one unit; missing dates, what stands in for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN, format_time, parse_date
from tilp.types import Unit

Times = NDArray[np.int64]

FAR = 2**61
"""Times at or past it are open; differences of two such times still fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval `[start, end]` of integer times; a point has start = end.

    Missing dates are `UNKNOWN`, an end still to come is `OPEN_END`.

    Args:
        start: integer time in the graph's unit; `UNKNOWN` by default.
        end: likewise; not before `start`.

    >>> print(Interval.parse("1977", "present"))
    [1977, present]
    """

    start: int = UNKNOWN
    end: int = UNKNOWN

    def __post_init__(self) -> None:
        if not (isinstance(self.start, int) and isinstance(self.end, int)):
            raise TilpError(
                f"an interval's ends are integers, not {self.start!r} and {self.end!r}; "
                "Interval.parse reads text, and UNKNOWN stands for what is not known"
            )
        if self.is_known and self.start > self.end:
            raise TilpError(f"an interval must not start ({self.start}) after its end ({self.end})")

    @classmethod
    def point(cls, time: int) -> Interval:
        """Return the interval of a single instant."""
        return cls(time, time)

    @classmethod
    def parse(
        cls, start: str | None, end: str | None = None, unit: Unit | str = Unit.YEAR
    ) -> Interval:
        """Return the interval between two dates given as text.

        Args:
            start: a date such as '1952', '1952-05-17' or '19##'; None if missing.
            end: likewise.
            unit: what times count; years by default.
        """
        spans = []
        for text in (start, end):
            span = parse_date(str(text or "")).span(Unit(unit))
            if span is None:
                raise TilpError(
                    f"{text!r} is not a date in {Unit(unit).value}s; write it like 1952, 1952-05 "
                    "or 1952-05-17, with # for unknown digits, or leave it out"
                )
            spans.append(span)
        return cls(spans[0][0], spans[1][1])

    @property
    def is_known(self) -> bool:
        """Whether no date is missing; open ones are known to be open."""
        return self.start != UNKNOWN and self.end != UNKNOWN

    @property
    def is_point(self) -> bool:
        """Whether it is a single known instant."""
        return self.is_known and self.start == self.end

    def format(self, unit: Unit = Unit.YEAR) -> str:
        """Format like `[1962, present]`, with `?` for a missing date."""
        start, end = (format_time(time, unit) or "?" for time in (self.start, self.end))
        return f"[{start}, {end}]"

    def words(self, unit: Unit = Unit.YEAR) -> str:
        """Return the dates as people say them; empty if none is known.

        >>> Interval(1985, 1992).words(), Interval.point(1988).words(), Interval(1962).words()
        ('from 1985 to 1992', 'in 1988', 'from 1962, end unknown')
        >>> Interval(1985, OPEN_END).words(), Interval(UNKNOWN, OPEN_END).words()
        ('since 1985', 'still going on')
        """
        start, end = (format_time(time, unit) for time in (self.start, self.end))
        has_start = self.start not in (UNKNOWN, OPEN_START)
        has_end = self.end not in (UNKNOWN, OPEN_END)
        if has_start and has_end:
            at = "on" if unit is Unit.DAY else "at" if unit is Unit.INTEGER else "in"
            return f"{at} {start}" if self.is_point else f"from {start} to {end}"
        if has_start:
            return f"since {start}" if self.end == OPEN_END else f"from {start}, end unknown"
        if has_end:
            return f"until {end}"
        return "still going on" if self.end == OPEN_END and self.start == UNKNOWN else ""

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        names = {UNKNOWN: "UNKNOWN", OPEN_START: "OPEN_START", OPEN_END: "OPEN_END"}
        return f"Interval({', '.join(names.get(t, str(t)) for t in (self.start, self.end))})"


def known_ends(start: Times, end: Times) -> tuple[Times, Times]:
    """Return starts and ends without missing dates: the known date stands for both.

    An interval without any date becomes all of time, which touches every other interval.
    """
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    known_start = np.where(no_start, np.where(no_end, OPEN_START, end), start)
    return known_start, np.where(no_end, np.where(no_start, OPEN_END, start), end)


def end_as_of(start: int, end: int, latest: int) -> int:
    """Return an end as it is known at a time: until it is reached, the start stands for it.

    Facts without a start, such as those without any date, keep their end.
    """
    return start if end > latest and start > -FAR else end


def ends_as_of(start: Times, end: Times, latest: Times | int) -> Times:
    """Return `end_as_of` of many facts."""
    return np.where((end > latest) & (start > -FAR), start, end)


def distinct_times(start: Times, end: Times, block_size: int = 1_000_000) -> Times:
    """Return the distinct times of `known_ends`, ascending, computed some rows at a time."""
    times = [np.empty(0, np.int64)]
    for begin in range(0, len(start), block_size):
        rows = slice(begin, begin + block_size)
        times += [np.unique(column) for column in known_ends(start[rows], end[rows])]
    return np.unique(np.concatenate(times))
