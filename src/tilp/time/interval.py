"""`Interval`: a start and an end in one unit."""

from __future__ import annotations

from dataclasses import dataclass

from tilp.errors import TilpError
from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN, format_time, parse_date
from tilp.types import Unit


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
        spans = [_span(text, Unit(unit)) for text in (start, end)]
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

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        names = {UNKNOWN: "UNKNOWN", OPEN_START: "OPEN_START", OPEN_END: "OPEN_END"}
        return f"Interval({', '.join(names.get(t, str(t)) for t in (self.start, self.end))})"


def _span(text: str | None, unit: Unit) -> tuple[int, int]:
    span = parse_date(str(text or "")).span(unit)
    if span is None:
        raise TilpError(
            f"{text!r} is not a date in {unit.value}s; write it like 1952, 1952-05 or 1952-05-17, "
            "with # for unknown digits, or leave it out"
        )
    return span
