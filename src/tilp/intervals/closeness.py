"""How close a time is to another, as a number of which the smallest is the closest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp.intervals.dates import OPEN_END, OPEN_START

__all__ = ["NOTHING", "NO_TIME", "closeness", "differences"]

_FARTHEST = 2**29
NO_TIME = 2**31 - 2
"""The closeness of times of which one is unknown or open: they cannot be compared."""
NOTHING = 2**31 - 1
"""What is farther than everything."""


def closeness(time: int, other: int) -> int:
    """Twice the difference, odd where the time is the later one: the earlier is closer.

    Differences past 2^29 count as 2^29, so that it fits into 32 bits.

    >>> closeness(1989, 1990), closeness(1991, 1990), closeness(OPEN_START, 1990) == NO_TIME
    (2, 3, True)
    """
    if time <= OPEN_START or time == OPEN_END or other <= OPEN_START or other == OPEN_END:
        return NO_TIME
    if time > other:
        return 2 * min(time - other, _FARTHEST) + 1
    return 2 * min(other - time, _FARTHEST)


def differences(code: NDArray[np.int64]) -> NDArray[np.int64]:
    """The signed differences, time - other, that codes of closeness stand for."""
    return np.where(code % 2 == 1, code // 2, -(code // 2))
