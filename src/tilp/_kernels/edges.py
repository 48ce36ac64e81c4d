"""Sorting edges by entity and relation, and finding those of an entity's relation."""

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.arrays import lower_bound
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


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

    Counting sorts by relation and then by entity, both stable: linear in time, with one integer a
    row and one an entity beside the result, which is written to the last three arrays.
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
