"""Candidates to learn from: the answer, the best, and negative samples of the rest."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


@kernel
def sample_candidates(
    offsets: Array,
    candidate: Array,
    score: Array,
    default: Array,
    answer: Array,
    excluded_offsets: Array,
    excluded: Array,
    seeds: Array,
    n_entities: int,
    n_best: int,
    n_samples: int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Choose the candidates of each query.

    `candidate` are those listed for each query, with their `score`; all other entities have its
    `default` score. Entities in `excluded`, never the answer, are left out. At most `n_samples` of
    the rest are drawn; an entity that is drawn twice is taken once.

    Returns:
        Offsets of the candidates of each query; these; their scores; the logarithm of how many
        entities each stands for; and the index of each query's answer.
    """
    n = len(answer)
    room = n_best + n_samples + 1
    sample_offsets = np.zeros(n + 1, dtype=np.int64)
    entities = np.empty(n * room, dtype=np.int32)
    scores = np.empty(n * room)
    log_counts = np.zeros(n * room)
    answer_index = np.empty(n, dtype=np.int64)
    score_of = np.empty(n_entities)
    taken = np.zeros(n_entities, dtype=np.bool_)
    size = 0
    for query in range(n):
        score_of[:] = default[query]
        low, high = offsets[query], offsets[query + 1]
        for index in range(low, high):
            score_of[candidate[index]] = score[index]
        n_excluded = excluded_offsets[query + 1] - excluded_offsets[query]
        for index in range(excluded_offsets[query], excluded_offsets[query + 1]):
            taken[excluded[index]] = True
        first = size
        size = _take_best(candidate[low:high], score_of, taken, n_best, entities, size)
        if not taken[answer[query]]:
            taken[answer[query]] = True
            entities[size] = answer[query]
            size += 1
        n_rest = n_entities - (size - first) - n_excluded
        first_drawn = size
        state = seeds[query]
        for _ in range(min(n_samples, n_rest)):
            # A linear congruential generator, whose high bits are the better ones.
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            entity = np.int64((state >> np.uint64(33)) % np.uint64(n_entities))
            if not taken[entity]:
                taken[entity] = True
                entities[size] = entity
                size += 1
        for index in range(first_drawn, size):
            log_counts[index] = np.log(n_rest / (size - first_drawn))
        for index in range(first, size):
            scores[index] = score_of[entities[index]]
            taken[entities[index]] = False
            if entities[index] == answer[query]:
                answer_index[query] = index
        for index in range(excluded_offsets[query], excluded_offsets[query + 1]):
            taken[excluded[index]] = False
        sample_offsets[query + 1] = size
    return (
        sample_offsets,
        entities[:size].copy(),
        scores[:size].copy(),
        log_counts[:size].copy(),
        answer_index,
    )


@kernel
def top_indices(offsets: Array, score: Array, k: int) -> Array:
    """Return the indices of the k best scores of each query, ascending; of equal ones the first."""
    chosen = np.empty(len(score), dtype=np.int64)
    size = 0
    for query in range(len(offsets) - 1):
        low, high = offsets[query], offsets[query + 1]
        threshold = -np.inf
        ties = k
        if high - low > k:
            threshold = np.partition(score[low:high], high - low - k)[high - low - k]
            for index in range(low, high):
                ties -= score[index] > threshold
        for index in range(low, high):
            if score[index] == threshold:
                ties -= 1
            if score[index] > threshold or (score[index] == threshold and ties >= 0):
                chosen[size] = index
                size += 1
    return chosen[:size].copy()


@kernel
def _take_best(
    listed: Array, score_of: Array, taken: Array, n_best: int, entities: Array, size: int
) -> int:
    """Append the best listed entities that are not taken, and return the new size."""
    free = np.empty(len(listed), dtype=np.int32)
    n_free = 0
    for entity in listed:
        if not taken[entity]:
            free[n_free] = entity
            n_free += 1
    for index in top_indices(np.array([0, n_free]), score_of[free[:n_free]], n_best):
        taken[free[index]] = True
        entities[size] = free[index]
        size += 1
    return size
