"""The candidate's own facts against the dates of queries, as words."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array, ListedCandidates
from tilp.time import allen_code as plain_allen_code

FAR = 2**61
"""Times at or past it are open; differences of two such times still fit into 64 bits."""

N_ALLEN = 13
MOST_WORDS = 4
"""That one fact is described by."""

allen_code = kernel(plain_allen_code)


class FactEdges(NamedTuple):
    """Facts and their inverses by entity and relation, with their times, none past `FAR`.

    Edges of equal times have the same number, `interval`, whose times are in `starts` and `ends`.
    """

    offsets: Array
    relation: Array
    target: Array
    fact: Array
    start: Array
    end: Array
    interval: Array
    starts: Array
    ends: Array


class DistanceBins(NamedTuple):
    """From which distances of times on a new word begins; and the words of small ones."""

    bounds: Array
    of_small: Array


class Words(NamedTuple):
    """The words for intervals of facts, found once for each interval that is asked for.

    They are good where `found_for` is the number of the query's interval.
    """

    found_for: Array
    size: Array
    word: Array


@kernel
def _no_words(edges: FactEdges) -> Words:
    n = len(edges.starts)
    return Words(
        np.full(n, -1, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty((n, MOST_WORDS), dtype=np.int32),
    )


@kernel
def same_interval(asked: ListedCandidates, query: int, before: int) -> int:
    """The number of a query's interval: `before`, where that query has the same, or its own."""
    same = asked.start[query] == asked.start[before] and asked.end[query] == asked.end[before]
    return before if same else query


@kernel
def list_history_features(
    edges: FactEdges, asked: ListedCandidates, bins: DistanceBins, n_directed: int
) -> tuple[Array, Array]:
    """The words for the facts of each listed candidate.

    Args:
        edges: that are evidence.
        asked: the queries.
        bins: of distances.
        n_directed: directed relations.

    Returns:
        Where the words of each candidate begin; these: group · words of a group + word. A group is
        a kind (other facts; facts with the subject) and a relation.
    """
    width = N_ALLEN + 1 + 3 * (2 * len(bins.bounds) + 1)
    begins = np.zeros(len(asked.candidate) + 1, dtype=np.int64)
    found = np.empty(4096, dtype=np.int32)
    group = np.empty(2 * n_directed, dtype=np.int32)
    nearest = np.empty(2 * n_directed, dtype=np.int64)
    words = _no_words(edges)
    size = number = 0
    for query in range(len(asked.subject)):
        start, end = asked.start[query], asked.end[query]
        number = same_interval(asked, query, number)
        for place in range(asked.offsets[query], asked.offsets[query + 1]):
            n = _nearest(
                edges, asked.candidate[place], asked.subject[query], asked.fact[query], start, end,
                n_directed, group, nearest,
            )  # fmt: skip
            if size + MOST_WORDS * n > len(found):
                larger = np.empty(2 * len(found) + MOST_WORDS * n, dtype=np.int32)
                larger[:size] = found[:size]
                found = larger
            for one in range(n):
                interval = _described(edges, nearest[one], start, end, bins, number, words)
                for place_of_word in range(words.size[interval]):
                    found[size] = group[one] * width + words.word[interval, place_of_word]
                    size += 1
            begins[place + 1] = size
    return begins, found[:size].copy()


@kernel
def add_history_scores(
    edges: FactEdges,
    asked: ListedCandidates,
    bins: DistanceBins,
    n_directed: int,
    row_of: Array,
    weight: Array,
    kinds: Array,
    score: Array,
) -> None:
    """Add the weights of the words for its facts to the score of each listed candidate.

    Args:
        row_of: for each head and group the row of its weights; -1: none.
        weight: of words, row by row.
        kinds: whether other facts, and whether facts with the subject, are added.
        score: of each candidate, which is added to.
    """
    group = np.empty(2 * n_directed, dtype=np.int32)
    nearest = np.empty(2 * n_directed, dtype=np.int64)
    words = _no_words(edges)
    number = 0
    for query in range(len(asked.subject)):
        number = same_interval(asked, query, number)
        rows = row_of[asked.directed_relation[query]]
        for place in range(asked.offsets[query], asked.offsets[query + 1]):
            score[place] += worth_of_facts(
                edges, asked, query, asked.candidate[place], bins, n_directed, rows, weight, kinds,
                number, group, nearest, words,
            )  # fmt: skip


@kernel
def worth_of_facts(
    edges: FactEdges,
    asked: ListedCandidates,
    query: int,
    candidate: int,
    bins: DistanceBins,
    n_directed: int,
    rows: Array,
    weight: Array,
    kinds: Array,
    number: int,
    group: Array,
    nearest: Array,
    words: Words,
) -> float:
    """What a candidate's facts, of some kinds, add to its score."""
    start, end = asked.start[query], asked.end[query]
    n = _nearest(
        edges, candidate, asked.subject[query], asked.fact[query], start, end, n_directed, group,
        nearest,
    )  # fmt: skip
    total = 0.0
    for one in range(n):
        row = rows[group[one]]
        if row >= 0 and kinds[group[one] // n_directed]:
            interval = _described(edges, nearest[one], start, end, bins, number, words)
            for place in range(words.size[interval]):
                total += weight[row, words.word[interval, place]]
    return total


@kernel
def _nearest(
    edges: FactEdges,
    entity: int,
    subject: int,
    own: int,
    start: int,
    end: int,
    n_directed: int,
    group: Array,
    nearest: Array,
) -> int:
    """The fact nearest to an interval of each kind and relation that an entity has.

    Nearest is the one with the smallest gap, then the one whose start is closest, then the first.

    Returns:
        How many there are; `group` and `nearest` get their groups and edges.
    """
    relation_of, target, fact = edges.relation, edges.target, edges.fact
    starts, ends = edges.start, edges.end
    n = 0
    edge, stop = edges.offsets[entity], edges.offsets[entity + 1]
    while edge < stop:
        relation = relation_of[edge]
        other = between = -1
        other_gap = between_gap = other_start = between_start = 0
        while edge < stop and relation_of[edge] == relation:
            if fact[edge] != own:
                gap = max(start - ends[edge], starts[edge] - end, 0)
                from_start = abs(starts[edge] - start)
                if target[edge] == subject:
                    if (
                        between < 0
                        or gap < between_gap
                        or (gap == between_gap and from_start < between_start)
                    ):
                        between, between_gap, between_start = edge, gap, from_start
                elif (
                    other < 0 or gap < other_gap or (gap == other_gap and from_start < other_start)
                ):
                    other, other_gap, other_start = edge, gap, from_start
            edge += 1
        if other >= 0:
            group[n] = relation
            nearest[n] = other
            n += 1
        if between >= 0:
            group[n] = n_directed + relation
            nearest[n] = between
            n += 1
    return n


@kernel
def _described(
    edges: FactEdges, edge: int, start: int, end: int, bins: DistanceBins, number: int, words: Words
) -> int:
    """The number of an edge's interval, whose words against the query's are then known.

    They are Allen's relation, and three distances; where an end is open, one: nothing is known.
    """
    interval = edges.interval[edge]
    if words.found_for[interval] != number:
        words.found_for[interval] = number
        words.size[interval] = describe(
            edges.start[edge], edges.end[edge], start, end, bins, words.word[interval]
        )
    return interval


@kernel
def describe(
    fact_start: int, fact_end: int, start: int, end: int, bins: DistanceBins, word: Array
) -> int:
    """Find the words for an interval of a fact; how many there are."""
    if min(fact_start, start) <= -FAR or max(fact_end, end) >= FAR:
        word[0] = N_ALLEN
        return 1
    n_bins = 2 * len(bins.bounds) + 1
    word[0] = allen_code(fact_start, fact_end, start, end)
    word[1] = N_ALLEN + 1 + _bin(fact_start - start, bins)
    word[2] = N_ALLEN + 1 + n_bins + _bin(fact_end - start, bins)
    word[3] = N_ALLEN + 1 + 2 * n_bins + _bin(fact_start - end, bins)
    return MOST_WORDS


@kernel
def _bin(distance: int, bins: DistanceBins) -> int:
    """The place of a signed distance among the words for it; 0 is in the middle."""
    size = abs(distance)
    if size < len(bins.of_small):
        first = bins.of_small[size]
    else:
        first = np.searchsorted(bins.bounds, size, side="right")
    return len(bins.bounds) + first if distance >= 0 else len(bins.bounds) - first


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
    edges: FactEdges, groups: FactGroups, start: int, end: int, bins: DistanceBins
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
def add_history_scores_of_all(
    edges: FactEdges,
    groups: FactGroups,
    facts: NearestFacts,
    asked: ListedCandidates,
    queries: Array,
    bins: DistanceBins,
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
        rows = row_of[asked.directed_relation[query]]
        if asked.directed_relation[query] != head:
            head = asked.directed_relation[query]
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
