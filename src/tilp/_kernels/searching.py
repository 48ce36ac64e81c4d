"""Looking up a value in a part of an array that is sorted."""

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["find_sorted", "run_of_equals"]


@kernel
def find_sorted(values: Array, first: int, last: int, value: int) -> int:
    """The place of a value among those from first to last, which rise; -1 where it is not."""
    stop = last
    while first < last:
        middle = (first + last) // 2
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first if first < stop and values[first] == value else -1


@kernel
def run_of_equals(values: Array, first: int, last: int) -> int:
    """Where the values that are equal to the first one end."""
    stop = first + 1
    while stop < last and values[stop] == values[first]:
        stop += 1
    return stop
