"""Sorting edges by entity and relation, and finding them."""

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["edge_spans", "sort_edges"]


@kernel
def sort_edges(
    n_relations: int,
    offsets: NDArray[np.int64],
    subject: NDArray[np.int32],
    relation: NDArray[np.int32],
    object: NDArray[np.int32],
    fact: NDArray[np.int32],
    edge_relation: NDArray[np.int32],
    edge_target: NDArray[np.int32],
    edge_fact: NDArray[np.int32],
) -> None:
    """Write each row as an edge of its subject and as the inverse edge of its object.

    Counting sorts, by relation and then by entity, both stable: linear in time, and the only
    memory beside the result is one number a row and one an entity.

    Args:
        n_relations: an inverse edge has the relation `r + n_relations`.
        offsets: where the edges of each entity begin, and where the last end.
        subject: of each row; likewise `relation`, `object` and `fact`.
        edge_relation: the result, twice as long; likewise `edge_target` and `edge_fact`.
    """
    begins = np.zeros(n_relations + 1, dtype=np.int64)
    for row in range(len(relation)):
        begins[relation[row] + 1] += 1
    for label in range(n_relations):
        begins[label + 1] += begins[label]
    by_relation = np.empty(len(relation), dtype=np.int32)
    for row in range(len(relation)):
        by_relation[begins[relation[row]]] = row
        begins[relation[row]] += 1
    # An entity's own edges have the lower relations, so they all go in first.
    place = offsets[:-1].copy()
    for index in range(len(by_relation)):
        row = by_relation[index]
        at = place[subject[row]]
        place[subject[row]] += 1
        edge_relation[at] = relation[row]
        edge_target[at] = object[row]
        edge_fact[at] = fact[row]
    for index in range(len(by_relation)):
        row = by_relation[index]
        at = place[object[row]]
        place[object[row]] += 1
        edge_relation[at] = relation[row] + n_relations
        edge_target[at] = subject[row]
        edge_fact[at] = fact[row]


@kernel
def edge_spans(
    offsets: Array, edge_relation: Array, entity: Array, relation: Array
) -> tuple[Array, Array]:
    """Where the edges of entities' relations begin, and where they end.

    Args:
        offsets: where the edges of each entity begin, and where the last end.
        edge_relation: of each edge; those of one entity rise.
        entity: the entities asked for; `relation` a relation of each.
    """
    begin = np.empty(len(entity), dtype=np.int64)
    end = np.empty(len(entity), dtype=np.int64)
    for place in range(len(entity)):
        first, last = offsets[entity[place]], offsets[entity[place] + 1]
        begin[place] = _first_from(edge_relation, first, last, relation[place])
        end[place] = _first_from(edge_relation, begin[place], last, relation[place] + 1)
    return begin, end


@kernel
def _first_from(values: Array, first: int, last: int, value: int) -> int:
    """The first place of those from first to last, whose values rise, that is not below a value."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first
