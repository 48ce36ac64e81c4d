"""Ranks of answers: how many candidates score higher or equal, and how many of them are filtered.

A query's candidates are all entities, but only listed ones are looked at: the others share its
default score and are counted as a block. Likewise only the other known answers of a query are
looked at to tell which candidates a protocol filters.
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.arrays import end_of_run
from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

STATIC, OVERLAP, EXACT, ENUMERATE, RELEASE = range(5)
"""Columns of what is filtered, by protocol."""


class KnownFacts(NamedTuple):
    """Known facts in both directions, by (entity, relation), then target, then first instant.

    `start` and `end` have no unknown ends; `interval` is the id of the interval as given in the
    data; `first` and `last` are indices of instants; `train` masks training facts.
    """

    target: Array
    start: Array
    end: Array
    interval: Array
    first: Array
    last: Array
    train: Array


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
    offsets: Array,
    candidate: Array,
    score: Array,
    default: Array,
    queries: RankedQueries,
    known: KnownFacts,
    score_of: Array,
    counts: Array,
    listed: Array,
    filtered: Array,
) -> int:
    """Count the candidates that score higher than each query's answer, and those that tie with it.

    Args:
        offsets: of the listed candidates of each query.
        candidate: these; likewise `score`.
        default: the score of the candidates that a query does not list.
        queries: with their answers.
        known: the facts whose answers are filtered.
        score_of: one number for each entity, all NaN before and after.
        counts: gets the number of higher ones, and of ties without the answer.
        listed: gets whether the answer is listed.
        filtered: gets how many of the higher ones and of the ties each protocol filters.

    Returns:
        The first query that lists a candidate twice, or -1.
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
                filtered[query, 0 if other_score > answer_score else 1] += weights
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
