"""Ranking answers: how many candidates score higher or equal, and how many of them are removed.

A query's candidates are all entities, but only those that it lists are looked at: the others
share its default score and are counted as a block. Likewise only the other known answers of a
query are looked at to tell which candidates a protocol removes.
"""

from typing import NamedTuple

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

STATIC, OVERLAP, EXACT, ENUMERATE, RELEASE = range(5)
"""Columns of what is removed."""


class KnownFacts(NamedTuple):
    """Known facts in both directions, by (entity, relation), then target, then first instant.

    `start` and `end` have no unknown ends; `interval` numbers the distinct intervals as they are
    in the data; `first` and `last` are places among the instants; `train` is whether in train.
    """

    target: Array
    start: Array
    end: Array
    interval: Array
    first: Array
    last: Array
    train: Array


class RankedQueries(NamedTuple):
    """Queries, their intervals as in `Known`; their known facts stand at `begin` to `stop`."""

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
    asked: RankedQueries,
    known: KnownFacts,
    by_candidate: Array,
    counts: Array,
    listed: Array,
    removed: Array,
) -> int:
    """Count the candidates that score higher than each query's answer, and those that score equal.

    Args:
        offsets: where the candidates of each query begin, and where the last end.
        candidate: the listed ones; likewise `score`.
        default: the score of those that a query does not list.
        asked: the queries.
        known: the facts whose answers are removed.
        by_candidate: one number for each entity, all NaN, and so again afterwards.
        counts: the result: higher, and equal without the answer.
        listed: the result: whether the answer is listed.
        removed: the result: of the higher and of the equal ones, how much each column removes.

    Returns:
        The first query that lists a candidate twice; -1 where none does.
    """
    weights = np.empty(removed.shape[2])
    for query in range(len(default)):
        for place in range(offsets[query], offsets[query + 1]):
            if not np.isnan(by_candidate[candidate[place]]):
                return query
            by_candidate[candidate[place]] = score[place]
        own = by_candidate[asked.answer[query]]
        listed[query] = not np.isnan(own)
        if not listed[query]:
            own = default[query]
        unlisted = len(by_candidate) - (offsets[query + 1] - offsets[query])
        higher = unlisted if default[query] > own else 0
        equal = (unlisted if default[query] == own else 0) - 1  # the answer is among the equal
        for place in range(offsets[query], offsets[query + 1]):
            higher += score[place] > own
            equal += score[place] == own
        counts[query, 0], counts[query, 1] = higher, equal
        removed[query] = 0.0
        begin = asked.begin[query]
        while begin < asked.stop[query]:
            target = known.target[begin]
            stop = begin + 1
            while stop < asked.stop[query] and known.target[stop] == target:
                stop += 1
            other = by_candidate[target]
            if np.isnan(other):
                other = default[query]
            if target != asked.answer[query] and other >= own:
                _weigh(asked, query, known, begin, stop, weights)
                removed[query, 0 if other > own else 1] += weights
            begin = stop
        for place in range(offsets[query], offsets[query + 1]):
            by_candidate[candidate[place]] = np.nan
    return -1


@kernel
def _weigh(
    asked: RankedQueries, query: int, known: KnownFacts, begin: int, stop: int, weights: Array
) -> None:
    """How much of one other answer, whose facts stand at `begin` to `stop`, is removed."""
    weights[:] = 0.0
    weights[STATIC] = 1.0
    first, last = asked.first[query], asked.last[query]
    for fact in range(begin, stop):
        low = max(known.start[fact], asked.start[query])
        high = min(known.end[fact], asked.end[query])
        if low <= high:
            weights[OVERLAP] = 1.0
        if known.interval[fact] == asked.interval[query]:
            weights[EXACT] = 1.0
        # Facts come by their first instant, so what is behind `first` has been counted.
        covered = min(known.last[fact], last) - max(known.first[fact], first) + 1
        if covered > 0:
            weights[ENUMERATE] += covered
            first = min(known.last[fact], last) + 1
        if known.train[fact] and low <= high:
            point = asked.start[query] == asked.end[query]
            weights[RELEASE] += 1.0 if point else float(high) - float(low)
