"""Candidates to learn from: the best of each query, some drawn from the rest, and the answer."""

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
    out_begin: Array,
    left_out: Array,
    seeds: Array,
    n_entities: int,
    best: int,
    drawn: int,
) -> tuple[Array, Array, Array, Array, Array]:
    """Choose the candidates of each query.

    Args:
        offsets: where the scored candidates of each query begin, and where the last end.
        candidate: these; `score` their scores.
        default: the score of all other entities, for each query.
        answer: of each query.
        out_begin: where the candidates to leave out begin for each query.
        left_out: these, never the answer.
        seeds: one for each query, for what is drawn.
        n_entities: all there are.
        best: how many of the best are taken.
        drawn: how many of the rest are drawn, at the most; an entity that is drawn twice is taken
            once.

    Returns:
        Where the candidates of each query begin; these; their scores; the logarithm of how many
        entities each stands for; and the answer's place.
    """
    n = len(answer)
    room = best + drawn + 1
    begins = np.zeros(n + 1, dtype=np.int64)
    entities = np.empty(n * room, dtype=np.int32)
    scores = np.empty(n * room)
    stands_for = np.zeros(n * room)
    places = np.empty(n, dtype=np.int64)
    score_of = np.empty(n_entities)
    taken = np.zeros(n_entities, dtype=np.bool_)
    size = 0
    for query in range(n):
        score_of[:] = default[query]
        low, high = offsets[query], offsets[query + 1]
        for place in range(low, high):
            score_of[candidate[place]] = score[place]
        n_out = out_begin[query + 1] - out_begin[query]
        for place in range(out_begin[query], out_begin[query + 1]):
            taken[left_out[place]] = True
        first = size
        size = _take_best(candidate[low:high], score_of, taken, best, entities, size)
        if not taken[answer[query]]:
            taken[answer[query]] = True
            entities[size] = answer[query]
            size += 1
        rest = n_entities - (size - first) - n_out
        begin_drawn = size
        state = seeds[query]
        for _ in range(min(drawn, rest)):
            # The next state of a congruential generator; its high bits are the better ones.
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            entity = np.int64((state >> np.uint64(33)) % np.uint64(n_entities))
            if not taken[entity]:
                taken[entity] = True
                entities[size] = entity
                size += 1
        for place in range(begin_drawn, size):
            stands_for[place] = np.log(rest / (size - begin_drawn))
        for place in range(first, size):
            scores[place] = score_of[entities[place]]
            taken[entities[place]] = False
            if entities[place] == answer[query]:
                places[query] = place
        for place in range(out_begin[query], out_begin[query + 1]):
            taken[left_out[place]] = False
        begins[query + 1] = size
    return begins, entities[:size].copy(), scores[:size].copy(), stands_for[:size].copy(), places


@kernel
def top_indices(offsets: Array, score: Array, best: int) -> Array:
    """The places of the best scores of each query, ascending; of equal ones those that come first.

    Args:
        offsets: where the scores of each query begin, and where the last end.
        score: these.
        best: how many of each query.
    """
    found = np.empty(len(score), dtype=np.int64)
    size = 0
    for query in range(len(offsets) - 1):
        low, high = offsets[query], offsets[query + 1]
        least = -np.inf
        equal = best
        if high - low > best:
            least = np.partition(score[low:high], high - low - best)[high - low - best]
            for place in range(low, high):
                equal -= score[place] > least
        for place in range(low, high):
            if score[place] == least:
                equal -= 1
            if score[place] > least or (score[place] == least and equal >= 0):
                found[size] = place
                size += 1
    return found[:size].copy()


@kernel
def _take_best(
    listed: Array, score_of: Array, taken: Array, best: int, entities: Array, size: int
) -> int:
    """Take the best listed entities that are not taken; of equal ones those that stand first."""
    free = np.empty(len(listed), dtype=np.int32)
    n_free = 0
    for entity in listed:
        if not taken[entity]:
            free[n_free] = entity
            n_free += 1
    for place in top_indices(np.array([0, n_free]), score_of[free[:n_free]], best):
        taken[free[place]] = True
        entities[size] = free[place]
        size += 1
    return size
