"""The k best candidates of queries, and the sums that turn scores into probabilities."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


@kernel
def best_candidates(
    offsets: Array, candidate: Array, score: Array, default: Array, k: Array, n_entities: int
) -> tuple[Array, Array, Array]:
    """Return the k best candidates of each query, best first; equal scores in order of entity.

    `candidate` are those listed for each query, in any order, with their `score`; all other
    entities have the query's `default` score. `k` is of each query, at most the number of entities.

    Returns:
        Offsets of the best of each query; these; their scores.
    """
    n = len(k)
    best_offsets = np.zeros(n + 1, dtype=np.int64)
    for query in range(n):
        best_offsets[query + 1] = best_offsets[query] + k[query]
    best = np.empty(best_offsets[n], dtype=np.int32)
    best_score = np.empty(best_offsets[n])
    listed = np.zeros(n_entities, dtype=np.bool_)
    for query in range(n):
        low, high = offsets[query], offsets[query + 1]
        # A heap whose first item is the worst of the best so far.
        heap = best[best_offsets[query] : best_offsets[query + 1]]
        heap_score = best_score[best_offsets[query] : best_offsets[query + 1]]
        size = 0
        for index in range(low, high):
            size, _ = _offer(heap, heap_score, size, candidate[index], score[index])
        if high - low < n_entities:
            for index in range(low, high):
                listed[candidate[index]] = True
            for entity in range(n_entities):
                if not listed[entity]:
                    size, taken = _offer(heap, heap_score, size, entity, default[query])
                    if not taken:
                        break  # the others have the same score, and come later
            for index in range(low, high):
                listed[candidate[index]] = False
        for last in range(size - 1, 0, -1):
            heap[0], heap[last] = heap[last], heap[0]
            heap_score[0], heap_score[last] = heap_score[last], heap_score[0]
            _sink(heap, heap_score, last)
    return best_offsets, best, best_score


@kernel
def softmax_totals(
    offsets: Array, score: Array, default: Array, n_entities: int, temperature: float
) -> tuple[Array, Array]:
    """Return the greatest score of each query, and Σ exp((score - greatest) / temperature).

    The sum is over all entities; those that a query does not list have its default score.
    """
    n = len(default)
    greatest = np.empty(n)
    totals = np.empty(n)
    for query in range(n):
        low, high = offsets[query], offsets[query + 1]
        n_others = n_entities - (high - low)
        best = default[query] if n_others > 0 else -np.inf
        for index in range(low, high):
            best = max(best, score[index])
        total = n_others * np.exp((default[query] - best) / temperature) if n_others > 0 else 0.0
        for index in range(low, high):
            total += np.exp((score[index] - best) / temperature)
        greatest[query] = best
        totals[query] = total
    return greatest, totals


@kernel
def _offer(
    heap: Array, heap_score: Array, size: int, entity: int, score: float
) -> tuple[int, bool]:
    """Put an entity into the heap if it is among the best; return the new size, and if it is."""
    if size < len(heap):
        index = size
        while index > 0:
            parent = (index - 1) // 2
            if not _is_worse(score, entity, heap_score[parent], heap[parent]):
                break
            heap[index], heap_score[index] = heap[parent], heap_score[parent]
            index = parent
        heap[index], heap_score[index] = entity, score
        return size + 1, True
    if not _is_worse(heap_score[0], heap[0], score, entity):
        return size, False
    heap[0], heap_score[0] = entity, score
    _sink(heap, heap_score, size)
    return size, True


@kernel
def _sink(heap: Array, heap_score: Array, size: int) -> None:
    """Move the first item of a heap down to where it belongs."""
    entity, score = heap[0], heap_score[0]
    index = 0
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        other = child + 1
        if other < size and _is_worse(
            heap_score[other], heap[other], heap_score[child], heap[child]
        ):
            child = other
        if not _is_worse(heap_score[child], heap[child], score, entity):
            break
        heap[index], heap_score[index] = heap[child], heap_score[child]
        index = child
    heap[index], heap_score[index] = entity, score


@kernel
def _is_worse(score: float, entity: int, other_score: float, other: int) -> bool:
    return score < other_score or (score == other_score and entity > other)
