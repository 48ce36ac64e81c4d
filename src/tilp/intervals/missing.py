"""What to take for a time that is not known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp.intervals.dates import OPEN_END, OPEN_START, UNKNOWN

__all__ = ["known_ends"]


def known_ends(
    start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends without unknown ones: the known end serves for both.

    Of an interval of which nothing is known all of time is taken, which touches every other.
    """
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    known_start = np.where(no_start, np.where(no_end, OPEN_START, end), start)
    known_end = np.where(no_end, np.where(no_start, OPEN_END, start), end)
    return known_start, known_end
