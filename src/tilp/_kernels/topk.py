"""The best candidates of queries, and what all candidates' scores add up to."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


@kernel
def best_candidates(
    offsets: Array, candidate: Array, score: Array, default: Array, most: Array, n_entities: int
) -> tuple[Array, Array, Array]:
    """The best candidates of each query, the best first; equal scores in the order of entities.

    Args:
        offsets: where the listed candidates of each query begin, and where the last end.
        candidate: these, each once a query, in any order; `score` their scores.
        default: the score of all other entities, for each query.
        most: how many each query gets; not more than there are entities.
        n_entities: all there are.

    Returns:
        Where those of each query begin, and where the last end; these; their scores.
    """
    n = len(most)
    begin = np.zeros(n + 1, dtype=np.int64)
    for query in range(n):
        begin[query + 1] = begin[query] + most[query]
    found = np.empty(begin[n], dtype=np.int32)
    found_score = np.empty(begin[n])
    listed = np.zeros(n_entities, dtype=np.bool_)
    for query in range(n):
        low, high = offsets[query], offsets[query + 1]
        # The best so far are a heap whose first is the worst of them.
        heap = found[begin[query] : begin[query + 1]]
        heap_score = found_score[begin[query] : begin[query + 1]]
        size = 0
        for place in range(low, high):
            size, _ = _offer(heap, heap_score, size, candidate[place], score[place])
        if high - low < n_entities:
            for place in range(low, high):
                listed[candidate[place]] = True
            for entity in range(n_entities):
                if not listed[entity]:
                    size, taken = _offer(heap, heap_score, size, entity, default[query])
                    if not taken:
                        break  # the others have the same score, and come later
            for place in range(low, high):
                listed[candidate[place]] = False
        for last in range(size - 1, 0, -1):
            heap[0], heap[last] = heap[last], heap[0]
            heap_score[0], heap_score[last] = heap_score[last], heap_score[0]
            _sink(heap, heap_score, last)
    return begin, found, found_score


@kernel
def softmax_totals(
    offsets: Array, score: Array, default: Array, n_entities: int, temperature: float
) -> tuple[Array, Array]:
    """The greatest score of each query, and Σ exp((score - greatest) / temperature) over entities.

    Args:
        offsets: where the listed scores of each query begin, and where the last end.
        score: these.
        default: the score of all other entities, for each query.
        n_entities: all there are.
        temperature: that scores are divided by.
    """
    n = len(default)
    greatest = np.empty(n)
    total = np.empty(n)
    for query in range(n):
        low, high = offsets[query], offsets[query + 1]
        others = n_entities - (high - low)
        best = default[query] if others > 0 else -np.inf
        for place in range(low, high):
            best = max(best, score[place])
        found = others * np.exp((default[query] - best) / temperature) if others > 0 else 0.0
        for place in range(low, high):
            found += np.exp((score[place] - best) / temperature)
        greatest[query] = best
        total[query] = found
    return greatest, total


@kernel
def _offer(
    heap: Array, heap_score: Array, size: int, entity: int, score: float
) -> tuple[int, bool]:
    """Put an entity among the best, if it is: how many there are then, and whether it is."""
    if size < len(heap):
        place = size
        while place > 0:
            parent = (place - 1) // 2
            if not _is_worse(score, entity, heap_score[parent], heap[parent]):
                break
            heap[place], heap_score[place] = heap[parent], heap_score[parent]
            place = parent
        heap[place], heap_score[place] = entity, score
        return size + 1, True
    if not _is_worse(heap_score[0], heap[0], score, entity):
        return size, False
    heap[0], heap_score[0] = entity, score
    _sink(heap, heap_score, size)
    return size, True


@kernel
def _sink(heap: Array, heap_score: Array, size: int) -> None:
    """Let the first of a heap sink to where it belongs."""
    entity, score = heap[0], heap_score[0]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        other = child + 1
        if other < size and _is_worse(
            heap_score[other], heap[other], heap_score[child], heap[child]
        ):
            child = other
        if not _is_worse(heap_score[child], heap[child], score, entity):
            break
        heap[place], heap_score[place] = heap[child], heap_score[child]
        place = child
    heap[place], heap_score[place] = entity, score


@kernel
def _is_worse(score: float, entity: int, other_score: float, other: int) -> bool:
    """Whether an entity comes after another one."""
    return score < other_score or (score == other_score and entity > other)
