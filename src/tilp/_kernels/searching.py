"""Looking up a value in a part of an array that is sorted."""

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["find_sorted", "run_of_equals"]


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
