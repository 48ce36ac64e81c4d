"""Before and after, cut finer by the length of the gap between two intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["GAP_WORDS", "gap_code", "gap_codes", "gap_lengths"]

# Gaps double from one word to the next, so that the same words serve for days and for years.
_LONGER = (2, 3, 5, 9, 17, 33)
_LENGTHS = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33+")
_TOUCHING = len(_LENGTHS)
GAP_WORDS = (
    *(f"{length} before" for length in reversed(_LENGTHS)),
    "touching",
    *(f"{length} after" for length in _LENGTHS),
)
"""From long before to long after; the converse stands at the mirrored place."""


def gap_code(start: int, end: int, other_start: int, other_end: int) -> int:
    """The place in `GAP_WORDS` of one known interval against another.

    >>> GAP_WORDS[gap_code(1990, 1991, 1995, 1999)]
    '3-4 before'
    """
    code = _TOUCHING
    if end < other_start:
        code -= 1
        for first in _LONGER:
            # Not the difference of the two: open ends would overflow.
            code -= end <= other_start - first
    elif start > other_end:
        code += 1
        for first in _LONGER:
            code += other_end <= start - first
    return code


def gap_codes(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    other_start: NDArray[np.int64],
    other_end: NDArray[np.int64],
) -> NDArray[np.int8]:
    """The places in `GAP_WORDS` of many pairs of known intervals (arrays broadcast)."""
    before, after = end < other_start, start > other_end
    code = _TOUCHING - before.astype(np.int8) + after.astype(np.int8)
    for first in _LONGER:
        code -= before & (end <= other_start - first)
        code += after & (other_end <= start - first)
    return code


def gap_lengths(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    other_start: NDArray[np.int64] | int,
    other_end: NDArray[np.int64] | int,
) -> NDArray[np.float64]:
    """The time between many pairs of known intervals, 0 where they touch (arrays broadcast).

    Open ends are far from everything on their other side.

    >>> gap_lengths(np.array([1990, 1997]), np.array([1991, 1999]), 1995, 1998).tolist()
    [4.0, 0.0]
    """
    # As floats: differences of open ends would overflow.
    times = (np.asarray(time, np.float64) for time in (start, end, other_start, other_end))
    first, last, other_first, other_last = times
    return np.maximum(np.maximum(other_first - last, first - other_last), 0.0)
