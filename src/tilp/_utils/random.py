"""Random numbers that depend on a seed and on what they are drawn for, not on their neighbours."""

import numpy as np
from numpy.typing import NDArray


def keyed_uniform(
    seed: int, *columns: NDArray[np.int32] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """A number from 0 to below 1 for each row, by a multiplicative hash of its columns.

    >>> both = keyed_uniform(0, np.array([3, 8]))
    >>> bool(both[1] == keyed_uniform(0, np.array([8]))[0])
    True
    """
    mixed = np.full(len(columns[0]), seed, np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.int64).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def keyed_sample(
    most: int, seed: int, *columns: NDArray[np.int32] | NDArray[np.int64]
) -> NDArray[np.int64]:
    """The places of at most so many rows, in order, drawn by their columns.

    >>> keyed_sample(5, 0, np.array([3, 8])).tolist()
    [0, 1]
    """
    return np.sort(np.argsort(keyed_uniform(seed, *columns), kind="stable")[:most])


def sample_share(size: int, share: float, seed: int) -> NDArray[np.int64]:
    """The places of a share of so many rows, in order; a smaller share is part of a greater one.

    >>> len(sample_share(40, 0.3, 0)), set(sample_share(40, 0.1, 0)) < set(sample_share(40, 0.3, 0))
    (12, True)
    """
    if share >= 1.0:
        return np.arange(size)
    lots = np.random.default_rng([seed, size]).permutation(size)
    return np.flatnonzero(lots < round(share * size))
