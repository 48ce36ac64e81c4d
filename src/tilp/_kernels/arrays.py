"""Array helpers of the kernels: growing records, binary search, counting sort."""

from typing import Any

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


@kernel
def grown(records: Array, needed: int) -> Array:
    """The same records with room for as many as needed."""
    if needed <= len(records):
        return records
    larger = np.empty((max(needed, 2 * len(records)), records.shape[1]), dtype=np.int64)
    larger[: len(records)] = records
    return larger


@kernel
def find_sorted(values: Array, first: int, last: int, value: int) -> int:
    """The place of a value among those from first to last, which rise; -1 where it is not."""
    found = -1
    while first < last:
        middle = (first + last) // 2
        here = values[middle]
        if here < value:
            first = middle + 1
        else:
            last = middle
            found = middle if here == value else found
    return found


@kernel
def run_of_equals(values: Array, first: int, last: int) -> int:
    """Where the values that are equal to the first one end."""
    stop = first + 1
    while stop < last and values[stop] == values[first]:
        stop += 1
    return stop


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
