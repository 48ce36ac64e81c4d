"""Sorting numbers that are known to be small."""

from typing import Any

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["sort_numbers"]

_BITS = 9
_FEW = 64  # fewer are sorted faster by comparing them


@kernel
def sort_numbers(numbers: Array, bound: int) -> Array:
    """The same numbers in ascending order; all are below the bound. The given array is used up."""
    if len(numbers) < _FEW:
        numbers.sort()
        return numbers
    other = np.empty_like(numbers)
    begins = np.empty(1 << _BITS, dtype=np.uint32)
    shift = 0
    while bound >> shift > 0:
        begins[:] = 0
        for place in range(len(numbers)):
            begins[_digit(numbers[place], shift)] += np.uint32(1)
        total = np.uint32(0)
        for digit in range(len(begins)):
            count = begins[digit]
            begins[digit] = total
            total += count
        for place in range(len(numbers)):
            digit = _digit(numbers[place], shift)
            other[begins[digit]] = numbers[place]
            begins[digit] += np.uint32(1)
        numbers, other = other, numbers
        shift += _BITS
    return numbers


@kernel
def _digit(number: Any, shift: int) -> Any:
    return (number >> np.uint32(shift)) & np.uint32((1 << _BITS) - 1)
