"""Queries cut into chunks of work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp.graph import QueryTable
from tilp.parallel import cut_by_cost
from tilp.walks.walker import Walker

__all__ = ["chunks_by"]

_CHUNK_STEPS = 1e6  # enough for the overhead of a chunk not to matter
_MOST_CHUNKS = 1024


def chunks_by(walker: Walker, queries: QueryTable, entity: NDArray[np.int32]) -> list[QueryTable]:
    """Queries with the same entity together, in chunks of about the same cost.

    Args:
        walker: knows what it costs to walk from an entity.
        queries: the queries.
        entity: of each query, where its walks begin: the subject, or the answer.
    """
    order = np.argsort(entity, kind="stable")
    distinct, cost = walker.cost(entity)
    begin = np.append(np.searchsorted(entity[order], distinct), len(order))
    parts = cut_by_cost(cost, min(_MOST_CHUNKS, 1 + int(cost.sum() / _CHUNK_STEPS)))
    return [queries[order[begin[part.start] : begin[part.stop]]] for part in parts]
