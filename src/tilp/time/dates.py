"""Dates as text, and the integer times they stand for in a unit.

A date may be known in part: `1952-##-##` is a year, `19##` a century. It then stands for a span of
instants: a start is the first of them, an end the last.
"""

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from tilp.types import Unit

UNKNOWN = -(2**63)
"""A missing date. It is not the same as an open one."""
OPEN_START = -(2**63) + 1
"""A start before all known time. It compares as minus infinity."""
OPEN_END = 2**63 - 1
"""An end still to come ('present'). It compares as plus infinity."""

_MISSING = frozenset({"", "none", "nan", "nat", "null", "na", "n/a", "<na>", "\\n", "?", "unknown"})
_OPEN = frozenset({"present", "now", "current", "ongoing", "open", ".."})

# A year, then perhaps month and day; hashes stand for unknown digits; a time of day is cut off.
# A month in figures needs a year of three digits, or 3/4/21 would be the year 3.
_DATE = re.compile(
    r"(?P<sign>[+-]?)(?:"
    r"(?P<year>\d+#*|#+)(?:\.0+)?"
    r"|(?P<calendar_year>\d{3,}#*|\d+#+|#+|\d+(?=[-/]#)|(?<=[+-])\d+)"
    r"[-/](?P<month>\d{1,2}|#{1,2})(?:[-/](?P<day>\d{1,2}|#{1,2})(?:[TZ ].*|[+-]\d\d:\d\d)?)?"
    r")"
)
_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})")
_MAX_YEAR_DIGITS = 12  # so that the days of any year fit into 64 bits
_MAX_INTEGER_DIGITS = 18
_CALENDAR_YEAR = 9999  # plain integers beyond are counters or seconds, not years
_COMPLETE_SHARE = 0.9


def span_of_digits(unit: Unit) -> tuple[int, int]:
    """Return the first and last time in a unit that `parse_date` can read."""
    digits = "9" * (_MAX_INTEGER_DIGITS if unit is Unit.INTEGER else _MAX_YEAR_DIGITS)
    first, last = (parse_date(text).span(unit) for text in (f"-{digits}", digits))
    assert first is not None and last is not None
    return first[0], last[1]


class DateKind(StrEnum):
    """Kind of a date's text."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    OPEN = "open"
    MALFORMED = "malformed"


_SPANS = {DateKind.UNKNOWN: (UNKNOWN, UNKNOWN), DateKind.OPEN: (OPEN_START, OPEN_END)}
_TEXTS = {UNKNOWN: "", OPEN_END: "present", OPEN_START: "open"}


@dataclass(frozen=True, slots=True)
class ParsedDate:
    """A date read from text: the years it may lie in, and month and day (0 where unknown)."""

    kind: DateKind
    first_year: int = 0
    last_year: int = 0
    month: int = 0
    day: int = 0

    def is_complete(self, unit: Unit) -> bool:
        """Return whether the date is a single instant of the unit."""
        if self.kind is not DateKind.KNOWN or self.first_year != self.last_year:
            return False
        finer = {Unit.YEAR: True, Unit.MONTH: self.month > 0, Unit.DAY: self.day > 0}
        return finer.get(unit, self.month == 0)

    def span(self, unit: Unit) -> tuple[int, int] | None:
        """Return the first and last instant that the date may mean; None if malformed in this unit.

        >>> parse_date("1952-##-##").span(Unit.MONTH) == (1952 * 12, 1952 * 12 + 11)
        True
        """
        unit = Unit(unit)
        if self.kind is not DateKind.KNOWN:
            return _SPANS.get(self.kind)
        if unit is Unit.INTEGER:
            return (self.first_year, self.last_year) if self.is_complete(unit) else None
        if max(abs(self.first_year), abs(self.last_year)) >= 10**_MAX_YEAR_DIGITS:
            return None
        if unit is Unit.YEAR:
            return self.first_year, self.last_year
        first_month, last_month = (self.month, self.month) if self.month else (1, 12)
        if unit is Unit.MONTH:
            return self.first_year * 12 + first_month - 1, self.last_year * 12 + last_month - 1
        last_day = self.day or _days_in_month(self.last_year, last_month)
        last = _days_from_civil(self.last_year, last_month, last_day)
        return _days_from_civil(self.first_year, first_month, self.day or 1), last


def parse_date(text: str) -> ParsedDate:
    """Parse a date: ISO, with negative years and hashes for unknown digits.

    >>> parse_date("1952-##-##").first_year, parse_date("19##").last_year
    (1952, 1999)
    >>> parse_date("####-##-##").kind.value, parse_date("present").kind.value
    ('unknown', 'open')
    >>> parse_date("1963-64-65").kind.value
    'malformed'
    """
    text = text.strip()
    if text.lower() in _MISSING:
        return ParsedDate(DateKind.UNKNOWN)
    if text.lower() in _OPEN:
        return ParsedDate(DateKind.OPEN)
    text = _DAY_FIRST.sub(r"\g<year>-\g<month>-\g<day>", text)
    match = _DATE.fullmatch(text)
    if match is None or not text.isascii():
        return ParsedDate(DateKind.MALFORMED)
    sign, month, day = match["sign"], match["month"], match["day"]
    year = match["year"] or match["calendar_year"]
    if year.startswith("#"):
        # A month of an unknown year says nothing about when.
        return ParsedDate(DateKind.UNKNOWN)
    if len(year) > (_MAX_INTEGER_DIGITS if month is None else _MAX_YEAR_DIGITS):
        return ParsedDate(DateKind.MALFORMED)
    years = int(year.replace("#", "0")), int(year.replace("#", "9"))
    first, last = (-years[1], -years[0]) if sign == "-" else years
    month_number, day_number = _digits(month), _digits(day)  # 0, written or not, is unknown
    if month_number > 12 or day_number > _days_in_month(last, month_number or 1):
        return ParsedDate(DateKind.MALFORMED)
    # A month of a century, or a day of an unknown month, narrows nothing down.
    if "#" in year:
        month_number = 0
    return ParsedDate(DateKind.KNOWN, first, last, month_number, day_number if month_number else 0)


def choose_unit(dates: Iterable[tuple[ParsedDate, int]]) -> Unit:
    """Return the finest unit in which at least 90 % of the known dates are complete."""
    complete = dict.fromkeys((Unit.DAY, Unit.MONTH, Unit.YEAR, Unit.INTEGER), 0)
    known = counters = 0
    for parsed, count in dates:
        if parsed.kind is DateKind.KNOWN:
            known += count
            counters += count * (abs(parsed.first_year) > _CALENDAR_YEAR)
            for unit in complete:
                complete[unit] += count * parsed.is_complete(unit)
    if known and complete[Unit.INTEGER] == known and counters >= _COMPLETE_SHARE * known:
        return Unit.INTEGER
    for unit in (Unit.DAY, Unit.MONTH):
        if known and complete[unit] >= _COMPLETE_SHARE * known:
            return unit
    return Unit.YEAR


_LONGER = {  # unit -> longer units, their lengths, and the least length to write in them
    Unit.DAY: ((Unit.YEAR, 365.2425, 700), (Unit.MONTH, 30.437, 60)),
    Unit.MONTH: ((Unit.YEAR, 12, 24),),
}


def format_time(time: int, unit: Unit) -> str:
    """Format a time so that `parse_date` reads it back; an unknown one as the empty text.

    >>> format_time(1952 * 12 + 4, Unit.MONTH), format_time(0, Unit.DAY)
    ('1952-05', '1970-01-01')
    """
    unit = Unit(unit)
    if time in _TEXTS:
        return _TEXTS[time]
    if unit is Unit.MONTH:
        year, month = divmod(time, 12)
        return f"{_format_year(year)}-{month + 1:02d}"
    if unit is Unit.DAY:
        year, month, day = _civil_from_days(time)
        return f"{_format_year(year)}-{month:02d}-{day:02d}"
    return str(time)


def unit_words(unit: Unit | None, *, plural: bool = True) -> str:
    """Return the name of a unit of time, `time units` for one without a name."""
    name = "time unit" if unit in (None, Unit.INTEGER) else Unit(unit).value
    return f"{name}s" if plural else name


def format_length(length: int, unit: Unit) -> str:
    """Format a length of time with its unit; many days or months as a round count of years.

    >>> format_length(1, Unit.YEAR), format_length(2191, Unit.DAY), format_length(70, Unit.DAY)
    ('1 year', 'about 6 years', 'about 2 months')
    """
    for other, size, least in _LONGER.get(unit, ()):
        if length >= least:
            count = round(length / size)
            about = "" if unit is Unit.MONTH and length % size == 0 else "about "
            return f"{about}{count:,} {unit_words(other, plural=count != 1)}"
    return f"{length:,} {unit_words(unit, plural=length != 1)}"


def _digits(part: str | None) -> int:
    return int(part) if part and part.isdigit() else 0


def _format_year(year: int) -> str:
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"


def _days_in_month(year: int, month: int) -> int:
    return calendar.monthrange(400 + year % 400, month)[1]


# The standard library's dates begin with year 1; facts do not. The calendar repeats itself every
# 400 years, so any date is one of the years 400 to 799 and a number of such cycles away.
_CYCLE_DAYS = 146_097
_CYCLE_BEGIN = date(400, 1, 1).toordinal()
_EPOCH = date(1970, 1, 1).toordinal()


def _days_from_civil(year: int, month: int, day: int) -> int:
    cycles, year = divmod(year - 400, 400)
    return date(400 + year, month, day).toordinal() + cycles * _CYCLE_DAYS - _EPOCH


def _civil_from_days(days: int) -> tuple[int, int, int]:
    cycles, days = divmod(days + _EPOCH - _CYCLE_BEGIN, _CYCLE_DAYS)
    day = date.fromordinal(_CYCLE_BEGIN + days)
    return day.year + 400 * cycles, day.month, day.day
