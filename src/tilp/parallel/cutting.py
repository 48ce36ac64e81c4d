"""Work cut into chunks by its cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cut_by_cost"]


def cut_by_cost(cost: NDArray[np.float64], most: int = 64) -> list[slice]:
    """Cut a sequence into at most so many slices of about the same cost.

    >>> cut_by_cost(np.array([1.0, 1.0, 2.0, 4.0]), most=2)
    [slice(0, 3, None), slice(3, 4, None)]
    """
    if not len(cost):
        return []
    ends = np.cumsum(cost)
    numbers = np.minimum((ends - cost / 2) / ends[-1] * most, most - 1).astype(np.int64)
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    return [slice(int(a), int(b)) for a, b in zip(begins, [*begins[1:], len(cost)], strict=True)]
