"""Scales of charts: where a number stands, and which numbers are written beside an axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10

__all__ = ["Scale", "short_number"]

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_LEAST_DECADE = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers from low to high, between two places of a picture.

    Attributes:
        low: the number at the beginning.
        high: the number at the end.
        begin: where the first stands.
        end: where the last stands; it may be the smaller place.
        ticks: the numbers that are written.
        log: whether equal steps are equal ratios.
    """

    low: float
    high: float
    begin: float
    end: float
    ticks: tuple[float, ...]
    log: bool = False

    @classmethod
    def even(
        cls, values: Iterable[float], begin: float, end: float, *, zero: bool, ticks: int = 5
    ) -> Scale:
        """Equal steps; round numbers at both ends.

        Args:
            values: that must find room.
            begin: where the scale begins.
            end: where it ends.
            zero: whether 0 must find room too.
            ticks: about how many numbers are written.
        """
        found = [*values, *([0.0] if zero else [])] or [0.0]
        low, high = min(found), max(found)
        if low == high:
            low, high = min(low, 0.0), max(high, 0.0) or 1.0
        rough = (high - low) / ticks
        power = 10.0 ** floor(log10(rough))
        step = next(one * power for one in _STEPS if one * power >= rough * 0.999)
        first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
        return cls(
            first * step, last * step, begin, end, tuple(n * step for n in range(first, last + 1))
        )

    @classmethod
    def ratios(cls, values: Iterable[float], begin: float, end: float) -> Scale:
        """Equal ratios; values that are not positive have no place, and are put lowest."""
        found = [value for value in values if value > 0] or [1.0]
        low, high = max(min(found), _LEAST_DECADE), max(found)
        decades = range(floor(log10(low)), ceil(log10(high)) + 1)
        ticks = [
            10.0**n * times for n in decades for times in ((1, 2, 5) if len(decades) < 4 else (1,))
        ]
        low, high = low / 1.15, high * 1.15
        shown = tuple(tick for tick in ticks if low <= tick <= high)
        return cls(low, high, begin, end, shown, log=True)

    def place(self, value: float) -> float:
        """Where a number stands."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = (log10(max(one, self.low)) for one in (value, low, high))
        return self.begin + (self.end - self.begin) * (value - low) / ((high - low) or 1.0)


def short_number(value: float) -> str:
    """A number as it stands beside an axis.

    >>> [short_number(one) for one in (0.25, 0, 1200, 3.0, 0.00004)]
    ['.25', '0', '1,200', '3', '4e-05']
    """
    if value and abs(value) < 1e-3:
        return f"{value:.0e}"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
