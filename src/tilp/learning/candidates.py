"""Known answers of a query, and the popularity prior over candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.candidates import mark_known_answers
from tilp._utils.arrays import Floats, Ids, Indices, ranges_to_indices, read_only
from tilp._utils.random import keyed_uniform
from tilp.graph import QueryTable, TemporalGraph
from tilp.time import known_ends

# When a candidate is a known answer, against the query's interval; the last that applies.
KNOWN_KINDS = ("before", "after", "meeting", "touching")
_UNIFORM_SHARE = 0.05  # of the prior: all entities get it alike
_MAX_LISTED = 2**14  # candidates of a directed relation to score for their popularity alone


class Mark(IntEnum):
    """Code of a candidate: the answer; KNOWN + index in `KNOWN_KINDS`; excluded from training."""

    ANSWER = 0
    KNOWN = 1
    EXCLUDED = 1 + len(KNOWN_KINDS)


@dataclass(frozen=True)
class KnownAnswers:
    """Marked candidates of queries, by query and entity."""

    offsets: Indices  # where the candidates of each query begin, and where the last end
    entity: Ids  # entity of each candidate, ascending in each query
    mark: NDArray[np.int8]  # mark of each candidate
    answer_kind: NDArray[np.int8]  # index in `KNOWN_KINDS` of each answer; -1 if not known

    def at_query_time(self) -> tuple[Indices, Ids]:
        """Return offsets and entities of the answers known at a time that meets the query's."""
        mask = self.mark >= Mark.KNOWN + KNOWN_KINDS.index("meeting")
        return np.append(0, np.cumsum(mask))[self.offsets], self.entity[mask]


def known_answers(
    graph: TemporalGraph, queries: QueryTable, *, instant_seed: int | None = None
) -> KnownAnswers:
    """Mark the answers of queries, and their other answers in the train split.

    A query's own fact does not count. With `instant_seed`, other answers that hold at an instant
    drawn from the query's interval are excluded.
    """
    index = graph.index(("train",))
    ranges = index.edge_ranges(queries.subject, queries.directed_relation)
    instants = np.empty(0, np.int64)
    if instant_seed is not None:
        instants = _draw_instants(graph, queries, instant_seed)
    facts = index.target, index.fact, graph.start, graph.end
    times = queries.fact, queries.answer, queries.start, queries.end, queries.latest
    return KnownAnswers(*mark_known_answers(*ranges, *facts, *times, instants))


def _draw_instants(graph: TemporalGraph, queries: QueryTable, seed: int) -> Indices:
    """Draw an instant of each query's interval from the times in train, for each query alone."""
    times = graph.train_times
    if not len(times):
        return queries.start
    uniform = keyed_uniform(
        seed, queries.subject, queries.directed_relation, queries.answer, queries.start, queries.end
    )
    low = np.searchsorted(times, queries.start)
    high = np.maximum(np.searchsorted(times, queries.end, side="right"), low + 1)
    index = low + (uniform * (high - low)).astype(np.int64)
    return np.clip(times[np.minimum(index, len(times) - 1)], queries.start, queries.end)


class CountsByStart:
    """Counts of items, such as the facts of an entity, that start no later than some time.

    >>> counts = CountsByStart(np.array([0, 1, 1]), np.array([1990, 1980, 1990]))
    >>> counts(np.array([1, 1, 0]), np.array([1985, 1990, 1985])).tolist()
    [1, 2, 0]
    """

    def __init__(self, key: Ids | Indices, start: Indices) -> None:
        self._starts, rank = np.unique(start, return_inverse=True)
        self._width = len(self._starts) + 1
        self._sorted = np.sort(key.astype(np.int64) * self._width + rank.reshape(-1))

    def __call__(self, key: Ids | Indices, latest: Indices) -> Indices:
        """Return how many items of each key start by then."""
        first = key.astype(np.int64) * self._width
        until = first + np.searchsorted(self._starts, latest, side="right")
        return np.searchsorted(self._sorted, until) - np.searchsorted(self._sorted, first)


@dataclass(frozen=True)
class PopularityPrior:
    """Distribution over candidates for each directed relation, from the counts in train."""

    offsets: Indices  # where the candidates of each directed relation begin, and where the last end
    entity: Ids  # candidates that train has, ascending
    count: Indices  # how often train has each of them
    n_entities: int  # count of all entities
    max_listed: int = _MAX_LISTED  # candidates of a directed relation that are listed, at most
    # Of relations and entities, and of relations: counts are of facts by a query's `latest`.
    starts: tuple[CountsByStart, CountsByStart] | None = None

    def __post_init__(self) -> None:
        for name in ("offsets", "entity", "count"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @classmethod
    def from_graph(cls, graph: TemporalGraph, *, by_start: bool = False) -> PopularityPrior:
        """Count the answers in a graph's train split, `by_start` or all."""
        n_relations, n_entities = len(graph.relations), len(graph.entities)
        # Inverse relations come after all others, so that each direction is counted alone.
        counted = [
            np.unique(keys, return_counts=True) for keys in _answer_keys(graph, graph.span("train"))
        ]
        keys, count = (np.concatenate(both) for both in zip(*counted, strict=True))
        offsets = np.searchsorted(keys, np.arange(2 * n_relations + 1) * n_entities)
        entity = (keys % n_entities).astype(np.int32)
        starts = None
        if by_start:
            key = np.concatenate(list(_answer_keys(graph, graph.span("train"))))
            times = np.tile(train_starts(graph), 2)
            starts = CountsByStart(key, times), CountsByStart(key // n_entities, times)
        return cls(offsets.astype(np.int64), entity, count, n_entities, starts=starts)

    def without(self, graph: TemporalGraph, facts: Indices) -> PopularityPrior:
        """Return the prior without some distinct facts of the graph that it was counted in."""
        if self.starts is not None:
            return PopularityPrior.from_graph(graph.without(facts), by_start=True)
        in_train = facts[facts < graph.bounds[1]]
        count = self.count.copy()
        for keys in _answer_keys(graph, in_train):
            np.subtract.at(count, np.searchsorted(self._keys[:-1], keys), 1)
        mask = count > 0
        offsets = np.append(0, np.cumsum(mask))[self.offsets]
        return replace(self, offsets=offsets, entity=self.entity[mask], count=count[mask])

    @property
    def n_directed(self) -> int:
        """Count of directed relations."""
        return len(self.offsets) - 1

    @property
    def min_probability(self) -> float:
        """Probability of an entity that train does not have as an answer."""
        return _UNIFORM_SHARE / max(self.n_entities, 1)

    @property
    def probability(self) -> Floats:
        """Probability of each candidate that train has."""
        return self._smooth(self.count, np.repeat(self._n_answers, np.diff(self.offsets)))

    def probabilities(self, relation: Ids, entity: Ids, latest: Indices) -> Floats:
        """Return the probability of entities, each as an answer; the least if it is not listed."""
        count, total = self.counts(relation, entity, latest)
        _, rows = self.listed
        if len(rows) < len(self.entity):
            keys = np.append(self._keys[rows], -1)
            key = relation.astype(np.int64) * self.n_entities + entity
            count = np.where(keys[np.searchsorted(keys[:-1], key)] == key, count, 0)
        return self._smooth(count, total)

    @cached_property
    def listed(self) -> tuple[Indices, Indices]:
        """Offsets of directed relations, and the most frequent candidates of each, as indices.

        Scores list these and those that rules reach, so that a query costs the same in any graph.
        """
        relation = np.repeat(np.arange(self.n_directed), np.diff(self.offsets))
        order = np.lexsort((-self.count, relation))
        rank = np.arange(len(order)) - self.offsets[relation]
        rows = np.sort(order[rank < self.max_listed])
        return np.searchsorted(rows, self.offsets), rows

    def answer_probabilities(self, queries: QueryTable) -> Floats:
        """Return the probability of each query's answer, without the query's own fact."""
        count, total = self.counts(queries.directed_relation, queries.answer, queries.latest)
        own = (queries.fact >= 0) & (queries.latest >= queries.start)
        return self._smooth(np.maximum(count - own, 0), total - own)

    def counts(self, relation: Ids, entity: Ids, latest: Indices) -> tuple[Indices, Indices]:
        """Return how often train has entities as answers, and how many answers it has in all."""
        key = relation.astype(np.int64) * self.n_entities + entity
        if self.starts is not None:
            return self.starts[0](key, latest), self.starts[1](relation, latest)
        index = np.searchsorted(self._keys[:-1], key)
        known = self._keys[index] == key
        count = np.zeros(len(key), np.int64)
        count[known] = self.count[index[known]]
        return count, self._n_answers[relation]

    def by_start(self, queries: QueryTable) -> tuple[Ids, Indices, Ids, Floats]:
        """Return the row of each query's relation and time; offsets, entities, probabilities."""
        columns = np.stack([queries.directed_relation.astype(np.int64), queries.latest])
        (relation, latest), row = np.unique(columns, axis=1, return_inverse=True)
        bounds, rows = self.listed
        offsets, index = ranges_to_indices(bounds[relation], bounds[relation + 1])
        index = rows[index]
        of_row = np.repeat(np.arange(len(relation)), np.diff(offsets))
        count, total = self.counts(relation[of_row], self.entity[index], latest[of_row])
        mask = count > 0
        offsets = np.append(0, np.cumsum(mask))[offsets]
        probability = self._smooth(count[mask], total[mask])
        of_query: Ids = row.reshape(-1).astype(np.int32)
        return of_query, offsets, self.entity[index[mask]], probability

    def _smooth(self, count: Indices, total: Indices) -> Floats:
        return (1 - _UNIFORM_SHARE) * count / np.maximum(total, 1) + self.min_probability

    @cached_property
    def _keys(self) -> Indices:
        """Directed relation and entity of each candidate in one integer, ascending; then -1."""
        relations = np.repeat(np.arange(self.n_directed, dtype=np.int64), np.diff(self.offsets))
        return np.append(relations * self.n_entities + self.entity, -1)

    @cached_property
    def _n_answers(self) -> Indices:
        totals = np.concatenate([[0], np.cumsum(self.count)])
        n_answers: Indices = np.diff(totals[self.offsets])
        return n_answers


def train_starts(graph: TemporalGraph) -> Indices:
    """Return the starts of the facts of train, as walks read them."""
    train = graph.span("train")
    return known_ends(graph.start[train], graph.end[train])[0]


def _answer_keys(graph: TemporalGraph, facts: slice | Indices) -> Iterator[Indices]:
    """Yield relation and answer of facts in one integer, first forward, then inverse."""
    n_relations, n_entities = len(graph.relations), len(graph.entities)
    relation = graph.relation[facts].astype(np.int64)
    yield relation * n_entities + graph.object[facts]
    yield (relation + n_relations) * n_entities + graph.subject[facts]
