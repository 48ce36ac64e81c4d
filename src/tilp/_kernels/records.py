"""Records, of which it is not known beforehand how many there will be."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["grown"]


@kernel
def grown(records: Array, needed: int) -> Array:
    """The same records with room for as many as needed."""
    if needed <= len(records):
        return records
    larger = np.empty((max(needed, 2 * len(records)), records.shape[1]), dtype=np.int64)
    larger[: len(records)] = records
    return larger
