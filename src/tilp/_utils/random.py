"""Random numbers that depend on a seed and their own row, not on the rows beside it."""

import numpy as np

from tilp._utils.arrays import Floats, Ids, Ints

Integers = Ids | Ints


def keyed_uniform(seed: int, *columns: Integers) -> Floats:
    """Return a number in [0, 1) for each row, by a multiplicative hash of its columns.

    >>> uniform = keyed_uniform(0, np.array([3, 8]))
    >>> bool(uniform[1] == keyed_uniform(0, np.array([8]))[0])
    True
    """
    mixed = np.full(len(columns[0]), seed, np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.int64).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def keyed_sample(size: int, seed: int, *columns: Integers) -> Ints:
    """Return the indices of at most `size` rows, in order, sampled by their columns.

    >>> keyed_sample(5, 0, np.array([3, 8])).tolist()
    [0, 1]
    """
    return np.sort(np.argsort(keyed_uniform(seed, *columns), kind="stable")[:size])


def sample_share(size: int, share: float, seed: int) -> Ints:
    """Return the indices of a share of the rows, in order; larger shares include smaller ones.

    >>> len(sample_share(40, 0.3, 0)), set(sample_share(40, 0.1, 0)) < set(sample_share(40, 0.3, 0))
    (12, True)
    """
    if share >= 1.0:
        return np.arange(size)
    order = np.random.default_rng([seed, size]).permutation(size)
    return np.flatnonzero(order < round(share * size))
