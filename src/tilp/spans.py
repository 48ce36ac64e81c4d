"""`places_in`: the places in several spans of an array, one span after the other."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["places_in"]


def places_in(
    begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each span's places begin, and where the last end; and the places.

    >>> offsets, places = places_in(np.array([7, 2]), np.array([9, 5]))
    >>> offsets.tolist(), places.tolist()
    ([0, 2, 5], [7, 8, 2, 3, 4])
    """
    sizes = end - begin
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return offsets, np.repeat(begin - offsets[:-1], sizes) + np.arange(offsets[-1])
