"""Sorting edges by entity and relation."""

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.jit import kernel

__all__ = ["sort_edges"]


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
