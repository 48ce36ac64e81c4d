"""Candidates of queries: known answers, ranks, the k best, softmax totals, negative samples.

A query's candidates are all entities, but only listed ones are looked at: the others share its
default score. Likewise only the other known answers of a query are looked at to tell which
candidates a protocol filters.
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import end_of_run, stable_argsort
from tilp._kernels.jit import kernel
from tilp._kernels.levels import end_as_of
from tilp._kernels.types import Array
from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN

STATIC, OVERLAP, EXACT, ENUMERATE, RELEASE = range(5)
"""Columns of what is filtered, by protocol."""


class KnownFacts(NamedTuple):
    """Known facts in both directions, by (entity, relation), then target, then first instant."""

    target: Array
    start: Array  # likewise `end`; without unknown ends
    end: Array
    interval: Array  # id of the interval as given in the data
    first: Array  # index of its first instant, likewise of its last
    last: Array
    train: Array  # whether it is a training fact


class RankedQueries(NamedTuple):
    """Queries with their intervals as in `KnownFacts`; their known facts are at `begin:stop`."""

    answer: Array
    begin: Array
    stop: Array
    start: Array
    end: Array
    interval: Array
    first: Array
    last: Array


@kernel
def count_ranks(
    offsets: Array, candidate: Array, score: Array, default: Array, queries: RankedQueries,
    known: KnownFacts, score_of: Array, counts: Array, listed: Array, filtered: Array,
) -> int:  # fmt: skip
    """Count the candidates that score higher than each query's answer, and those that tie with it.

    `score_of` is NaN for each entity before and after. `counts` gets higher ones and ties without
    the answer, `listed` if the answer is listed, `filtered` how many of both each protocol filters.
    Returns the first query that lists a candidate twice, or -1.
    """
    weights = np.empty(filtered.shape[2])
    for query in range(len(default)):
        for index in range(offsets[query], offsets[query + 1]):
            if not np.isnan(score_of[candidate[index]]):
                return query
            score_of[candidate[index]] = score[index]
        answer_score = score_of[queries.answer[query]]
        listed[query] = not np.isnan(answer_score)
        if not listed[query]:
            answer_score = default[query]
        n_unlisted = len(score_of) - (offsets[query + 1] - offsets[query])
        higher = n_unlisted if default[query] > answer_score else 0
        equal = (n_unlisted if default[query] == answer_score else 0) - 1  # without the answer
        for index in range(offsets[query], offsets[query + 1]):
            higher += score[index] > answer_score
            equal += score[index] == answer_score
        counts[query, 0], counts[query, 1] = higher, equal
        filtered[query] = 0.0
        begin = queries.begin[query]
        while begin < queries.stop[query]:
            target = known.target[begin]
            stop = end_of_run(known.target, begin, queries.stop[query])
            other_score = score_of[target]
            if np.isnan(other_score):
                other_score = default[query]
            if target != queries.answer[query] and other_score >= answer_score:
                _filter_weights(queries, query, known, begin, stop, weights)
                side = 0 if other_score > answer_score else 1
                for protocol in range(len(weights)):
                    filtered[query, side, protocol] += weights[protocol]
            begin = stop
        for index in range(offsets[query], offsets[query + 1]):
            score_of[candidate[index]] = np.nan
    return -1


@kernel
def _filter_weights(
    queries: RankedQueries, query: int, known: KnownFacts, begin: int, stop: int, weights: Array
) -> None:
    """Write how much of one other answer, with facts at `begin:stop`, each protocol filters."""
    weights[:] = 0.0
    weights[STATIC] = 1.0
    first, last = queries.first[query], queries.last[query]
    for fact in range(begin, stop):
        low = max(known.start[fact], queries.start[query])
        high = min(known.end[fact], queries.end[query])
        if low <= high:
            weights[OVERLAP] = 1.0
        if known.interval[fact] == queries.interval[query]:
            weights[EXACT] = 1.0
        # Facts come by their first instant, so what is before `first` has been counted.
        covered = min(known.last[fact], last) - max(known.first[fact], first) + 1
        if covered > 0:
            weights[ENUMERATE] += covered
            first = min(known.last[fact], last) + 1
        if known.train[fact] and low <= high:
            point = queries.start[query] == queries.end[query]
            weights[RELEASE] += 1.0 if point else float(high) - float(low)


@kernel
def best_candidates(
    offsets: Array, candidate: Array, score: Array, default: Array, k: Array, n_entities: int
) -> tuple[Array, Array, Array]:
    """Return offsets, entities and scores of the k best candidates of each query, best first.

    Equal scores come in the order of entity. `candidate` are listed in any order with their
    `score`; all other entities have the query's `default`. `k` is at most the number of entities.
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
        entities = np.empty(high - low + k[query])
        lack = np.empty(len(entities))  # score times -1, so that the best are the least
        for index in range(low, high):
            entities[index - low], lack[index - low] = candidate[index], -score[index]
            listed[candidate[index]] = True
        size, entity = high - low, 0
        while size < len(entities) and entity < n_entities:  # all others have the same score
            if not listed[entity]:
                entities[size], lack[size] = entity, -default[query]
                size += 1
            entity += 1
        for index in range(low, high):
            listed[candidate[index]] = False
        most, n_chosen = -_kth_greatest(-lack[:size], np.empty(k[query])), 0
        for index in range(size):
            if lack[index] <= most:
                entities[n_chosen], lack[n_chosen] = entities[index], lack[index]
                n_chosen += 1
        by_entity = stable_argsort(entities[:n_chosen])
        order = stable_argsort(lack[by_entity])
        for index in range(k[query]):
            chosen = by_entity[order[index]]
            best[best_offsets[query] + index] = entities[chosen]
            best_score[best_offsets[query] + index] = -lack[chosen]
    return best_offsets, best, best_score


@kernel
def softmax_totals(
    offsets: Array, score: Array, default: Array, n_entities: int, temperature: float
) -> tuple[Array, Array]:
    """Return each query's greatest score, and Σ exp((score - greatest) / temperature) over all."""
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
def mark_known_answers(
    begin: Array, end: Array, target: Array, fact: Array, starts: Array, ends: Array,
    own: Array, answer: Array, query_start: Array, query_end: Array, latest: Array, instant: Array,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Mark the answer of each query with 0, and others by kind from 1 on; see `known_answers`.

    The edges of a query's known answers are at `begin:end`. Those that hold at its `instant`, if
    there are instants, get the mark past all kinds. Of the others, those that start after the
    query's `latest` are not known yet. Returns offsets, entities, ascending in each
    query, marks, and the kind of each answer.
    """
    most = (end - begin).sum() + len(begin)
    entities, marks = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int8)
    offsets = np.zeros(len(begin) + 1, dtype=np.int64)
    answer_kind = np.full(len(begin), -1, dtype=np.int8)
    edges = np.empty(0, dtype=np.int64)
    n, previous = 0, -1
    for query in range(len(begin)):
        if begin[query] != previous or len(edges) != end[query] - begin[query]:
            previous = begin[query]
            edges = previous + stable_argsort(target[previous : end[query]])
            fact_of, target_of = fact[edges], target[edges]
            start_of, end_of = starts[fact_of], ends[fact_of]
            for edge in range(len(edges)):  # as `known_ends` does
                no_start, no_end = start_of[edge] == UNKNOWN, end_of[edge] == UNKNOWN
                if no_start:
                    start_of[edge] = OPEN_START if no_end else end_of[edge]
                if no_end:
                    end_of[edge] = OPEN_END if no_start else start_of[edge]
        low, high = query_start[query], query_end[query]
        missing = answer[query] >= 0
        for edge in range(len(edges)):
            entity, since, until = target_of[edge], start_of[edge], end_of[edge]
            now = len(instant) > 0 and since <= instant[query] and instant[query] <= until
            is_later = since > latest[query] and (not now or entity == answer[query])
            if fact_of[edge] == own[query] or is_later:
                continue
            until = end_as_of(since, until, latest[query])
            if missing and answer[query] <= entity:
                entities[n], marks[n], missing = answer[query], 0, False
                n += 1
            kind = 3
            if until < low:
                kind = 0
            elif since > high:
                kind = 1
            elif (until == low and since < low) or (since == high and until > high):
                kind = 2
            if entity == answer[query]:
                answer_kind[query] = max(answer_kind[query], kind)
                continue
            if now:
                kind = 4
            if n > offsets[query] and entities[n - 1] == entity:
                marks[n - 1] = max(marks[n - 1], kind + 1)
            else:
                entities[n], marks[n] = entity, kind + 1
                n += 1
        if missing:
            entities[n], marks[n] = answer[query], 0
            n += 1
        offsets[query + 1] = n
    return offsets, entities[:n].copy(), marks[:n].copy(), answer_kind


@kernel
def sample_candidates(
    offsets: Array, candidate: Array, score: Array, default: Array, answer: Array,
    excluded_offsets: Array, excluded: Array, seeds: Array, n_entities: int, n_best: int,
    n_samples: int,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """Choose the best, the answer and at most `n_samples` of the rest as each query's candidates.

    Entities that are not listed have the `default` score. Those `excluded`, never the answer, are
    left out; an entity that is drawn twice is taken once. Returns offsets, candidates, their
    scores, the logarithm of how many entities each stands for, and the index of each query's
    answer.
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
    chosen, log_counts = entities[:size].copy(), log_counts[:size].copy()
    return sample_offsets, chosen, scores[:size].copy(), log_counts, answer_index


@kernel
def top_indices(offsets: Array, score: Array, k: int) -> Array:
    """Return the indices of the k best scores of each query, ascending; of equal ones the first."""
    chosen = np.empty(len(score), dtype=np.int64)
    heap = np.empty(k)
    size = 0
    for query in range(len(offsets) - 1):
        low, high = offsets[query], offsets[query + 1]
        threshold = -np.inf
        ties = k
        if high - low > k:
            threshold = _kth_greatest(score[low:high], heap)
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
def _kth_greatest(values: Array, heap: Array) -> float:
    """Return the k-th greatest of at least k values; `heap`, least on top, has room for k."""
    k = len(heap)
    heap[:] = -np.inf
    for value in values:
        if value <= heap[0]:
            continue
        parent, child = 0, 1
        while child < k:
            if child + 1 < k and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= value:
                break
            heap[parent] = heap[child]
            parent, child = child, 2 * child + 1
        heap[parent] = value
    return heap[0]


@kernel
def _take_best(
    listed: Array, score_of: Array, taken: Array, n_best: int, entities: Array, size: int
) -> int:
    """Append the best listed entities that are not taken, and return the new size."""
    free = np.empty(len(listed), dtype=np.int32)
    score = np.empty(len(listed))
    n_free = 0
    for entity in listed:
        if not taken[entity]:
            free[n_free] = entity
            score[n_free] = score_of[entity]
            n_free += 1
    for index in top_indices(np.array([0, n_free]), score[:n_free], n_best):
        taken[free[index]] = True
        entities[size] = free[index]
        size += 1
    return size
