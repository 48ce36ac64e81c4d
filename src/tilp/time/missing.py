"""Stand-ins for dates that are not known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN


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


def possible_intervals(
    start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The extreme intervals that the known ends allow; the first of each is that of `known_ends`.

    An interval whose ends are known has one reading. With one end unknown it may be the point at
    the known end, or open on the other side; with both unknown, all of time, a point before it or
    a point after it. The classes (eq. 4) between the readings of two intervals are exactly their
    `possible_relations`.

    Returns:
        Of each reading the number of its interval, ascending; its start; its end.
    """
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    first_start, first_end = known_ends(start, end)
    one = np.flatnonzero(no_start ^ no_end)
    neither = np.flatnonzero(no_start & no_end)
    before, after = np.full(len(neither), OPEN_START), np.full(len(neither), OPEN_END)
    number = np.concatenate([np.arange(len(start)), one, neither, neither])
    order = np.argsort(number, kind="stable")
    open_start = np.where(no_start, OPEN_START, start)[one]
    open_end = np.where(no_end, OPEN_END, end)[one]
    return (
        number[order],
        np.concatenate([first_start, open_start, before, after])[order],
        np.concatenate([first_end, open_end, before, after])[order],
    )
