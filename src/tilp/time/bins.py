"""Bins of signed distances in time: at the data's own scale and unit, and in words."""

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from tilp._utils.arrays import Ints
from tilp.time.dates import unit_words
from tilp.types import Unit

_ROUND = [b * 10**p for p in range(10) for b in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)]
_COUNTS = sorted({int(count) for count in _ROUND if count == int(count)})
_FINE = sorted(
    {*_COUNTS, *range(1, 30), *(int(b * 10**p) for p in range(1, 10) for b in (3.5, 4.5))}
)
# Lengths that people say: a named unit, its length in units of time, and how many of it they say.
_SAID: dict[Unit, tuple[tuple[str, float, Iterable[int]], ...]] = {
    Unit.DAY: (
        ("day", 1, range(1, 7)),
        ("week", 7, range(1, 4)),
        ("month", 30.4369, range(1, 12)),
        ("year", 365.2425, _COUNTS),
    ),
    Unit.MONTH: (("month", 1, range(1, 12)), ("year", 12, _COUNTS)),
    Unit.YEAR: (("year", 1, _COUNTS),),
    Unit.INTEGER: (("time unit", 1, _COUNTS),),
}


def said_lengths(unit: Unit, *, fine: bool = False) -> dict[int, tuple[int, str]]:
    """Return the lengths of time that people say, ascending, each as a count of a named unit.

    Args:
        unit: what times count.
        fine: with more counts of the largest unit: all to 29, 35, 45, … (bool, default False).
    """
    *smaller, (largest, length, counts) = _SAID[unit]
    units = (*smaller, (largest, length, _FINE if fine else counts))
    return {int(count * size): (count, name) for name, size, counts in units for count in counts}


def make_edges(distances: Ints, unit: Unit | str, n: int = 22, *, fine: bool = False) -> Ints:
    """Return the least lengths of at most n bins of distances that differ from 0.

    Edges follow the quantiles of the distances, and are rounded to lengths that people say. They
    are plain numbers, ascending from 1: bin i holds lengths from `edges[i]` to below
    `edges[i + 1]`, the last one all that are longer. No distance at all gives a single bin.

    Args:
        distances: differences of times in the unit; their signs do not matter.
        unit: what times count.
        n: most bins on each side of 0 (int, default 22).
        fine: round less, as `said_lengths` says (bool, default False).

    >>> make_edges(np.array([1, 1, 2, 3, 4, 8, 33, 40]), "year", 4).tolist()
    [1, 2, 4, 15]
    """
    lengths = np.abs(distances[distances != 0])
    if not len(lengths):
        return np.ones(1, np.int64)
    said = np.array(list(said_lengths(Unit(unit), fine=fine)))
    wanted = np.maximum(np.quantile(lengths, np.arange(n) / n), 1)
    above = np.clip(np.searchsorted(said, wanted), 1, len(said) - 1)
    nearest = np.where(wanted**2 < said[above - 1] * 1.0 * said[above], above - 1, above)
    return np.unique(np.append(1, said[nearest]))


def bin_index(distances: Ints, edges: Ints) -> Ints:
    """Return the bins of signed distances, an index in `bin_words` each; 0 is in the middle.

    >>> bin_index(np.array([-5, -1, 0, 3]), np.array([1, 2, 4])).tolist()
    [0, 2, 3, 5]
    """
    steps = np.searchsorted(edges, np.abs(distances), side="right")
    return len(edges) + np.sign(distances) * steps


def length_words(edges: Ints, unit: Unit | str) -> list[str]:
    """Put the bins of lengths into words, with their unit.

    >>> length_words(np.array([1, 2, 3, 5]), "year")
    ['1 year', '2 years', '3-4 years', '5 years or more']
    >>> length_words(np.array([1, 7, 14, 365, 730]), "day")
    ['1-6 days', '1-2 weeks', '2 weeks to 1 year', '1-2 years', '2 years or more']
    >>> length_words(np.array([1, 730]), "day")
    ['within 2 years', '2 years or more']
    """
    said, own = said_lengths(Unit(unit), fine=True), unit_words(Unit(unit), plural=False)
    words = []
    for low, high in zip(edges.tolist(), [*edges.tolist()[1:], None], strict=True):
        count, name = said.get(low, (low, own))
        if high is None:
            words.append(f"{_counted(count, name)} or more")
            continue
        last, other = said.get(high, (high, own))
        if name == own and (high - 1 in said or other == own):  # whole units: the last one is said
            last, other = high - 1, own
        if low == 1 and other != own:
            words.append(f"within {_counted(last, other)}")
        elif (last, other) == (count, name):
            words.append(_counted(count, name))
        elif other == name:
            words.append(f"{count:,}-{_counted(last, name)}")
        else:
            words.append(f"{_counted(count, name)} to {_counted(last, other)}")
    return words


def bin_words(edges: Ints, unit: Unit | str, same: str | None = None) -> list[str]:
    """Put the bins of signed distances into words, from long before to long after.

    Args:
        edges: of `make_edges`.
        unit: what times count.
        same: what is said of the distance 0 (default None: the same year, month or day).

    >>> bin_words(np.array([1, 2]), "year")
    ['2 years or more before', '1 year before', 'the same year', '1 year after', '2 years or more after']
    """  # noqa: E501
    lengths = length_words(edges, unit)
    before = [f"{length} before" for length in reversed(lengths)]
    middle = same or f"the same {unit_words(Unit(unit), plural=False)}"
    return [*before, middle, *(f"{length} after" for length in lengths)]


# Units of time in days; lengths of 0.1 have none.
_DAYS = {name: size for name, size, _ in _SAID[Unit.DAY]} | {"time unit": 1.0, None: 1.0}
_NAME = "day|week|month|year|time unit"
_LENGTH = re.compile(
    rf"(?P<within>within )?(?P<low>[\d,]+)( (?P<first>{_NAME})s?)?((-| to )(?P<high>[\d,]+))?"
    rf"( (?P<last>{_NAME})s?)?(?P<more>\+| or more)?"
)


@lru_cache(maxsize=4096)
def parse_length(words: str) -> tuple[float, float, float] | None:
    """Read a bin of `length_words`: least and greatest length, and its smaller unit, in days.

    >>> parse_length("1-2 weeks"), parse_length("3 days or more"), parse_length("soon")
    ((7, 14, 7), (3, inf, 1), None)
    """
    found = _LENGTH.fullmatch(words)
    if found is None:
        return None
    low, high = (int((found[name] or found["low"]).replace(",", "")) for name in ("low", "high"))
    first, last = (_DAYS[found[a] or found[b]] for a, b in (("first", "last"), ("last", "first")))
    least = 1.0 if found["within"] else low * first
    return least, np.inf if found["more"] else high * last, min(first, last)


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'s' * (count != 1)}"
