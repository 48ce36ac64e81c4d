"""Missing dates of facts and queries: what stands in for them, and what they may be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN


def known_ends(
    start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return starts and ends without missing dates: the known date stands for both.

    An interval without any date becomes all of time, which touches every other interval.
    """
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    known_start = np.where(no_start, np.where(no_end, OPEN_START, end), start)
    known_end = np.where(no_end, np.where(no_start, OPEN_END, start), end)
    return known_start, known_end


def possible_intervals(
    start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the extreme intervals that the known dates allow, that of `known_ends` first.

    A complete interval has one. With one date missing there are two: the point at the known date,
    and the interval that is open on the other side. With both missing there are three: all of
    time, a point before it and a point after it. The classes (eq. 4) between the possible
    intervals of two facts are exactly their `possible_relations`.

    Returns:
        For each possible interval the row of `start` that it belongs to, ascending; its start;
        its end.
    """
    no_start, no_end = start == UNKNOWN, end == UNKNOWN
    first_start, first_end = known_ends(start, end)
    half_known = np.flatnonzero(no_start ^ no_end)
    unknown = np.flatnonzero(no_start & no_end)
    before, after = np.full(len(unknown), OPEN_START), np.full(len(unknown), OPEN_END)
    row = np.concatenate([np.arange(len(start)), half_known, unknown, unknown])
    order = np.argsort(row, kind="stable")
    open_start = np.where(no_start, OPEN_START, start)[half_known]
    open_end = np.where(no_end, OPEN_END, end)[half_known]
    return (
        row[order],
        np.concatenate([first_start, open_start, before, after])[order],
        np.concatenate([first_end, open_end, before, after])[order],
    )


def distinct_times(
    start: NDArray[np.int64], end: NDArray[np.int64], block_size: int = 1_000_000
) -> NDArray[np.int64]:
    """Return the distinct times of `known_ends`, ascending, computed some rows at a time."""
    times = [np.empty(0, np.int64)]
    for begin in range(0, len(start), block_size):
        rows = slice(begin, begin + block_size)
        times += [np.unique(column) for column in known_ends(start[rows], end[rows])]
    return np.unique(np.concatenate(times))
