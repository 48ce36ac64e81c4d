"""The facts of all entities against the dates of queries, found once for each interval."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.own_facts import (
    MOST_WORDS,
    AskedAt,
    Bins,
    FactEdges,
    Words,
    describe,
    worth_of_facts,
)
from tilp._kernels.types import Array

__all__ = ["FactGroups", "NearestFacts", "add_facts_of_all", "nearest_facts"]


class FactGroups(NamedTuple):
    """Edges of one entity and relation are a group; edges of one relation and interval a pair.

    `offsets` is where the groups of each entity begin, `begin` where the edges of each group do,
    and both where the last end; `pair` is the pair of each edge; `relation` and `interval` are
    those of each pair.
    """

    offsets: Array
    begin: Array
    pair: Array
    relation: Array
    interval: Array


class NearestFacts(NamedTuple):
    """The pair of each group's fact that is nearest to an interval; the words for all intervals."""

    pair: Array
    words: Words


@kernel
def nearest_facts(
    edges: FactEdges, groups: FactGroups, start: int, end: int, bins: Bins
) -> NearestFacts:
    """The fact of each group that is nearest to an interval, and the words for all intervals.

    Nearest is as in `list_own_facts`, none of the facts being left out or with a subject.
    """
    n = len(edges.starts)
    words = Words(
        np.zeros(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty((n, MOST_WORDS), dtype=np.int32),
    )
    gap = np.empty(n, dtype=np.int64)
    from_start = np.empty(n, dtype=np.int64)
    for one in range(n):
        fact_start, fact_end = edges.starts[one], edges.ends[one]
        words.size[one] = describe(fact_start, fact_end, start, end, bins, words.word[one])
        gap[one] = max(start - fact_end, fact_start - end, 0)
        from_start[one] = abs(fact_start - start)
    begin, interval = groups.begin, edges.interval
    pair = np.empty(len(begin) - 1, dtype=np.int32)
    for group in range(len(pair)):
        nearest = begin[group]
        best = interval[nearest]
        for edge in range(begin[group] + 1, begin[group + 1]):
            other = interval[edge]
            if gap[other] < gap[best] or (
                gap[other] == gap[best] and from_start[other] < from_start[best]
            ):
                nearest, best = edge, other
        pair[group] = groups.pair[nearest]
    return NearestFacts(pair, words)


@kernel
def add_facts_of_all(
    edges: FactEdges,
    groups: FactGroups,
    facts: NearestFacts,
    asked: AskedAt,
    queries: Array,
    bins: Bins,
    n_directed: int,
    row_of: Array,
    weight: Array,
    score: Array,
) -> None:
    """Add the weights of the words for its facts to the score of each entity.

    What the facts of all entities say is found once for a head, none of them being with the
    subject; then the few that have such facts, and the ends of the query's own fact, are looked at
    one by one.

    Args:
        groups: of the edges.
        facts: those nearest to the queries' interval.
        asked: queries, whose candidates are all entities.
        queries: the ones that are scored: all of one interval, those of a head together.
        score: a row for each query, a column for each entity, which is added to; the other
            arguments are those of `add_own_facts`.
    """
    n_entities = len(edges.offsets) - 1
    worth = np.empty(len(groups.relation))
    of_entity = np.empty(n_entities)
    seen_by = np.full(n_entities, -1, dtype=np.int64)
    group = np.empty(2 * n_directed, dtype=np.int32)
    nearest = np.empty(2 * n_directed, dtype=np.int64)
    kinds = np.ones(2, dtype=np.bool_)
    head = -1
    for query in queries:
        rows = row_of[asked.head[query]]
        if asked.head[query] != head:
            head = asked.head[query]
            _worth_of_pairs(groups, rows, weight, facts.words.size, facts.words.word, worth)
            _sums(groups.offsets, facts.pair, worth, of_entity)
        score[query] += of_entity
        subject = asked.subject[query]
        for edge in range(edges.offsets[subject] - 1, edges.offsets[subject + 1]):
            entity = subject if edge < edges.offsets[subject] else edges.target[edge]
            if seen_by[entity] != query:
                seen_by[entity] = query
                exact = worth_of_facts(
                    edges, asked, query, entity, bins, n_directed, rows, weight, kinds, 0, group,
                    nearest, facts.words,
                )  # fmt: skip
                score[query, entity] += exact - of_entity[entity]


@kernel
def _worth_of_pairs(
    groups: FactGroups, rows: Array, weight: Array, size: Array, word: Array, worth: Array
) -> None:
    """What a fact of each relation and interval adds to a candidate, by the weights of a head."""
    relation, interval = groups.relation, groups.interval
    for pair in range(len(worth)):
        row = rows[relation[pair]]
        total = 0.0
        if row >= 0:
            for place in range(size[interval[pair]]):
                total += weight[row, word[interval[pair], place]]
        worth[pair] = total


@kernel
def _sums(offsets: Array, place: Array, number: Array, total: Array) -> None:
    """The sums of the numbers at some places, from one offset to the next."""
    for one in range(len(total)):
        found = 0.0
        for at in range(offsets[one], offsets[one + 1]):
            found += number[place[at]]
        total[one] = found
