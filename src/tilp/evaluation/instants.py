"""The instants of `enumerate`: read from the date texts, as TimePlex reads them."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from tilp.choices import Unit
from tilp.graph import TemporalGraph
from tilp.intervals import UNKNOWN, parse_date

__all__ = ["instants"]

_YEAR = re.compile(r"\+?(?:\d{1,2}\.\d{1,2}\.)?(?P<year>\d{4})(?:[^\d#].*)?", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 0, 3000


def instants(graph: TemporalGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last instant of every fact, as places among all instants.

    A start that is not known is before all known ones, such an end after all; without both the
    fact lies before all. In years, 'before all' is 0, 'after all' is 3000, and a year is known
    only if it has four digits, whatever follows; in other units a date is known if it is one
    instant of the unit.
    """
    times = np.array([_known_time(text, graph.unit) for text in graph.texts], dtype=np.int64)
    start, end = times[graph.start_text], times[graph.end_text]
    known = np.unique(np.concatenate([start, end]))
    known = known[known != UNKNOWN]
    if graph.unit is Unit.YEAR:
        before, after = _FIRST_YEAR, _LAST_YEAR
    else:
        before, after = (int(known[0]) - 1, int(known[-1]) + 1) if len(known) else (0, 1)
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    first = np.where(no_start, before, start)
    last = np.where(no_end, np.where(no_start, before, after), end)
    last = np.maximum(first, last)  # an end before its start is the start
    points = np.union1d(known, [before, after])
    return np.searchsorted(points, first), np.searchsorted(points, last)


def _known_time(text: str, unit: Unit) -> int:
    """The time that a date says for sure; UNKNOWN where it does not.

    >>> _known_time("1952-##-##", Unit.YEAR)
    1952
    >>> {_known_time(text, Unit.YEAR) == UNKNOWN for text in ("19##", "360-##-##", "-431", "")}
    {True}
    """
    if unit is Unit.YEAR:
        year = _YEAR.fullmatch(text.strip())
        return int(year["year"]) if year else UNKNOWN
    date = parse_date(text)
    span = date.span(unit) if date.is_complete(unit) else None
    return UNKNOWN if span is None else span[0]
