"""All walks between two entities."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["walks_between"]


@kernel
def walks_between(
    offsets: Array,
    target: Array,
    fact: Array,
    subject: int,
    answer: int,
    max_length: int,
    own_fact: int,
    most: int,
) -> tuple[Array, bool]:
    """Every walk from one entity to another, pruned by the distance to the answer.

    Args:
        offsets: where each entity's edges begin.
        target: of each edge; likewise `fact`.
        subject: where walks begin.
        answer: where they end; they may pass through it.
        max_length: of walks.
        own_fact: the fact that is not walked (-1: none).
        most: how many walks to return.

    Returns:
        The edges of each walk, -1 past its end, in depth-first order; and whether these are all.
    """
    far = max_length + 1
    distance = np.full(len(offsets) - 1, far, dtype=np.int8)
    distance[answer] = 0
    queue = np.empty(len(offsets) - 1, dtype=np.int32)
    queue[0] = answer
    n_queued, first = 1, 0
    while first < n_queued and distance[queue[first]] < max_length - 1:
        entity = queue[first]
        first += 1
        for out in range(offsets[entity], offsets[entity + 1]):
            if distance[target[out]] == far:
                distance[target[out]] = distance[entity] + 1
                queue[n_queued] = target[out]
                n_queued += 1
    found = np.full((16, max_length), -1, dtype=np.int32)
    n = 0
    chain = np.full(max_length, -1, dtype=np.int32)
    next_edge = np.empty(max_length, dtype=np.int64)
    next_edge[0] = offsets[subject]
    stop = np.empty(max_length, dtype=np.int64)
    stop[0] = offsets[subject + 1]
    depth = 0
    while depth >= 0:
        if next_edge[depth] == stop[depth]:
            chain[depth] = -1
            depth -= 1
            continue
        here = next_edge[depth]
        next_edge[depth] += 1
        fresh = fact[here] != own_fact
        for step in range(depth):
            fresh &= fact[chain[step]] != fact[here]
        if not fresh or distance[target[here]] > max_length - depth - 1:
            continue
        chain[depth] = here
        if target[here] == answer:
            if n == most:
                return found[:n], False
            if n == len(found):
                larger = np.full((2 * n, max_length), -1, dtype=np.int32)
                larger[:n] = found
                found = larger
            found[n, : depth + 1] = chain[: depth + 1]
            n += 1
        if depth + 1 < max_length:
            depth += 1
            next_edge[depth] = offsets[target[here]]
            stop[depth] = offsets[target[here] + 1]
    return found[:n], True
