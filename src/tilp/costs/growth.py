"""What is counted in samples, each part of the next, carried on to all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["by_power", "ever_slower"]

_SLOWER = 0.85  # of what one doubling adds, the next adds; where samples do not tell
_LEAST, _MOST = 0.5, 1.0


def ever_slower(points: Sequence[tuple[float, float]], all_of_it: float) -> float:
    """What grows with every doubling, by less each time: rules that fire for a query, for one.

    Args:
        points: the sizes of samples, ascending, and what was counted in each.
        all_of_it: the size to carry on to.

    >>> ever_slower([(100, 1.0), (200, 5.0), (400, 7.0)], 1600)
    8.5
    """
    (size, count) = points[-1]
    if len(points) < 2 or all_of_it <= size:
        return count
    added = _added(points[-2], points[-1])
    slower = _SLOWER
    if len(points) > 2 and added > 0 and (before := _added(points[-3], points[-2])) > 0:
        apart = math.log2(points[-1][0] / points[-3][0]) / 2
        slower = min(max(math.pow(added / before, 1 / apart), _LEAST), _MOST)
    doublings = math.log2(all_of_it / size)
    # What is added shrinks on the way from the middle of the last two samples to this one, too.
    added *= math.pow(slower, math.log2(size / points[-2][0]) / 2 - 0.5)
    if slower == 1.0:
        return count + added * doublings
    return count + added * slower * (1 - math.pow(slower, doublings)) / (1 - slower)


def by_power(points: Sequence[tuple[float, float]], all_of_it: float) -> float:
    """What grows by the same factor with every doubling, but no faster than the size: rules found.

    Args:
        points: the sizes of samples, ascending, and what was counted in each.
        all_of_it: the size to carry on to.

    >>> by_power([(100, 10.0), (400, 20.0)], 1600)
    40.0
    """
    (size, count) = points[-1]
    if len(points) < 2 or all_of_it <= size or not points[-2][1] < count:
        return count
    power = math.log(count / max(points[-2][1], 0.5)) / math.log(size / points[-2][0])
    return count * float((all_of_it / size) ** min(power, 1.0))


def _added(fewer: tuple[float, float], more: tuple[float, float]) -> float:
    """What a doubling adds between two samples."""
    return max(more[1] - fewer[1], 0.0) / math.log2(more[0] / fewer[0])
