"""Wikidata's times as date text, and a statement's qualifiers as an interval.

Years are astronomical throughout: year 0 is 1 BCE, -430 is 431 BCE. The calendar model of a date
(Julian or Gregorian) is ignored: year, month and day are written as the dump has them.
"""

from __future__ import annotations

import calendar
import re
import reprlib
from typing import TYPE_CHECKING

from tilp.time import parse_date
from tilp.types import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

START, END, POINT = "P580", "P582", "P585"
DATE_PROPERTIES = (START, END, POINT)
UNKNOWN, PRESENT = "####-##-##", "present"

_TIME = re.compile(r"([+-]?[0-9]{1,16})-([0-9]{2})-([0-9]{2})(?:T[^\n]*)?")
_MAX_YEAR = 10**11  # the longest that date text may hold


class MalformedError(ValueError):
    """A part of the input that is not as it must be; says what it is."""


def shorten(value: object) -> str:
    """Return a value for a message: short however deep it is, in ASCII."""
    text = reprlib.repr(value).encode("ascii", "backslashreplace").decode("ascii")
    return text if len(text) <= 80 else f"{text[:77]}..."


def parse_time(text: str) -> tuple[int, int, int]:
    """Parse a time like `+1952-05-00T00:00:00Z` as year, month and day (0 if unknown)."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise MalformedError(f"the time {shorten(text)} is not like 1952-05-12T00:00:00Z")
    year, month, day = (int(part) for part in match.groups())
    if month > 12 or day > 31:
        raise MalformedError(f"the time {shorten(text)} has no such month or day")
    return year, month, day


def astronomical(year: int) -> int:
    """Turn a historical year (-1 is 1 BCE, there is no year 0) into an astronomical one."""
    if year == 0:
        raise MalformedError("a time in year 0, which historical years do not have")
    return year + 1 if year < 0 else year


def date_text(year: int, month: int, day: int, precision: int) -> str:
    """Format a date of an astronomical year, as far as Wikidata's precision makes it known.

    >>> date_text(1952, 5, 12, 11), date_text(1952, 5, 12, 9), date_text(2000, 0, 0, 7)
    ('1952-05-12', '1952-##-##', '19##-##-##')
    """
    if precision <= 6:
        return UNKNOWN
    if abs(year) >= _MAX_YEAR:
        raise MalformedError(f"a time in the year {year}, too far away for its precision")
    if precision <= 8:
        return f"{_decade_or_century(year, precision)}-##-##"
    digits = f"{year:04d}" if year >= 0 else str(year)
    if precision == 9 or month == 0:
        return f"{digits}-##-##"
    # A day that the proleptic Gregorian calendar lacks (Julian 29 February 1900) keeps its month.
    days = calendar.monthrange(year, month)[1]
    if precision == 10 or not 1 <= day <= days:
        return f"{digits}-{month:02d}-##"
    return f"{digits}-{month:02d}-{day:02d}"


def _decade_or_century(year: int, precision: int) -> str:
    # Both are counted in historical years: the 20th century is 1901 to 2000, the 430s BCE are
    # 439 to 430. Text with hashes is a year off for these (exact for centuries BCE).
    is_bce = year <= 0
    historical = 1 - year if is_bce else year
    hashes, stem = (1, historical // 10) if precision == 8 else (2, (historical - 1) // 100)
    digits = f"-{stem}" if is_bce else f"{stem:0{4 - hashes}d}"
    return digits + "#" * hashes


def spans(dates: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Return a statement's starts and ends from its dates by qualifier; empty if there are none."""
    starts, ends, points = (list(dates.get(name, ())) for name in DATE_PROPERTIES)
    if starts or ends:
        known = [start for start in starts if start != UNKNOWN] or [UNKNOWN]
        ends = ends or [UNKNOWN]
        # Parsing takes longer than all the rest, and nearly always there is but one date.
        start = known[0] if len(known) == 1 else min(known, key=lambda date: _days(date)[0])
        end = ends[0] if len(ends) == 1 else max(ends, key=lambda date: _days(date)[1])
        return [(start, end)]
    distinct = dict.fromkeys(points)
    if len(distinct) > 1:
        distinct.pop(UNKNOWN, None)
    return [(point, point) for point in distinct]


def _days(date: str) -> tuple[int, int]:
    span = parse_date(date).span(Unit.DAY)
    assert span is not None, date
    return span
