"""Arrays: growth, binary search, sorting (of edges too), and seeded numbers."""

from typing import Any

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

_RADIX_BITS = 9
_FEW = 64  # fewer values are sorted faster by comparisons


@kernel
def grown(records: Array, size: int) -> Array:
    """Return the records with room for at least `size` of them."""
    if size <= len(records):
        return records
    larger = np.empty((max(size, 2 * len(records)), records.shape[1]), dtype=np.int64)
    for row in range(len(records)):  # `larger[:n] = records` takes a second to compile
        for column in range(records.shape[1]):
            larger[row, column] = records[row, column]
    return larger


@kernel
def longer(values: Array, size: int) -> Array:
    """Return the values with room for at least `size` of them."""
    if size <= len(values):
        return values
    copy = np.empty(max(size, 2 * len(values)), dtype=values.dtype)
    for index in range(len(values)):
        copy[index] = values[index]
    return copy


@kernel
def find_sorted(values: Array, first: int, last: int, value: int) -> int:
    """Return the first index of a value in the sorted `values[first:last]`, or -1."""
    index = -1
    while first < last:
        middle = (first + last) // 2
        here = values[middle]
        if here < value:
            first = middle + 1
        else:
            last = middle
            index = middle if here == value else index
    return index


@kernel
def lower_bound(values: Array, first: int, last: int, value: int) -> int:
    """Return the first index in the sorted `values[first:last]` whose value is no smaller."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def end_of_run(values: Array, first: int, last: int) -> int:
    """Return where the values that equal the first one end."""
    stop = first + 1
    while stop < last and values[stop] == values[first]:
        stop += 1
    return stop


@kernel
def uniform(seed: int) -> float:
    """Return a number in [0, 1) that the seed decides, by two rounds of a multiplicative hash."""
    mixed = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return float(mixed >> np.uint64(11)) / 9007199254740992.0


@kernel
def radix_sort(values: Array, bound: int) -> Array:
    """Return values, all below the bound, in ascending order; the given array is overwritten."""
    if len(values) < _FEW:
        for index in range(1, len(values)):
            value, free = values[index], index
            while free > 0 and values[free - 1] > value:
                values[free] = values[free - 1]
                free -= 1
            values[free] = value
        return values
    other = np.empty_like(values)
    begins = np.empty(1 << _RADIX_BITS, dtype=np.uint32)
    shift = 0
    while bound >> shift > 0:
        begins[:] = 0
        for index in range(len(values)):
            begins[_digit(values[index], shift)] += np.uint32(1)
        total = np.uint32(0)
        for digit in range(len(begins)):
            count = begins[digit]
            begins[digit] = total
            total += count
        for index in range(len(values)):
            digit = _digit(values[index], shift)
            other[begins[digit]] = values[index]
            begins[digit] += np.uint32(1)
        values, other = other, values
        shift += _RADIX_BITS
    return values


@kernel
def _digit(value: Any, shift: int) -> Any:
    return (value >> np.uint32(shift)) & np.uint32((1 << _RADIX_BITS) - 1)


@kernel
def stable_argsort(keys: Array) -> Array:
    """Return the indices that sort the keys, which takes far less to compile than np.argsort."""
    order = np.arange(len(keys))
    other = np.empty_like(order)
    width = 1
    while width < len(keys):
        for first in range(0, len(keys), 2 * width):
            middle = min(first + width, len(keys))
            last = min(middle + width, len(keys))
            left, right = first, middle
            for index in range(first, last):
                if right == last or (left < middle and keys[order[left]] <= keys[order[right]]):
                    other[index] = order[left]
                    left += 1
                else:
                    other[index] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def counting_order(keys: Array, n_keys: int) -> tuple[Array, Array]:
    """Return the indices that sort keys from 0 on, equal ones in order, and each key's offset."""
    offsets = np.zeros(n_keys + 1, dtype=np.int64)
    for index in range(len(keys)):
        offsets[keys[index] + 1] += 1
    for key in range(n_keys):
        offsets[key + 1] += offsets[key]
    order = np.empty(len(keys), dtype=np.int32)
    free = offsets[:-1].copy()
    for index in range(len(keys)):
        order[free[keys[index]]] = index
        free[keys[index]] += 1
    return order, offsets


@kernel
def sort_edges(
    n_relations: int, offsets: Array, subject: Array, relation: Array, object: Array, fact: Array,
    edge_relation: Array, edge_target: Array, edge_fact: Array,
) -> None:  # fmt: skip
    """Write each row as an edge of its subject and as the inverse edge of its object.

    Counting sorts by relation and then by entity, both stable: linear in time, with one integer a
    row and one an entity beside the result, which is written to the last three arrays.
    """
    by_relation, _ = counting_order(relation, n_relations)
    # An entity's own edges have the lower relations, so all of them go in first.
    next_edge = offsets[:-1].copy()
    for index in range(len(by_relation)):
        row = by_relation[index]
        edge = next_edge[subject[row]]
        next_edge[subject[row]] += 1
        edge_relation[edge] = relation[row]
        edge_target[edge] = object[row]
        edge_fact[edge] = fact[row]
    for index in range(len(by_relation)):
        row = by_relation[index]
        edge = next_edge[object[row]]
        next_edge[object[row]] += 1
        edge_relation[edge] = relation[row] + n_relations
        edge_target[edge] = subject[row]
        edge_fact[edge] = fact[row]


@kernel
def edge_spans(
    offsets: Array, edge_relation: Array, entity: Array, relation: Array
) -> tuple[Array, Array]:
    """Return where the edges of each pair of entity and relation begin, and where they end."""
    begin = np.empty(len(entity), dtype=np.int64)
    end = np.empty(len(entity), dtype=np.int64)
    for pair in range(len(entity)):
        first, last = offsets[entity[pair]], offsets[entity[pair] + 1]
        begin[pair] = lower_bound(edge_relation, first, last, relation[pair])
        end[pair] = lower_bound(edge_relation, begin[pair], last, relation[pair] + 1)
    return begin, end
