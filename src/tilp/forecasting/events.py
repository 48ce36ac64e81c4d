"""Facts as events: each at one time, in the sort orders that forecasting needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.candidate_history import FAR
from tilp._kernels.types import ByAnswer, ByEntityRelation, ByPair, ByRelation, ByTime
from tilp.graph import TemporalGraph


def event_times(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the start of each interval, else its end; `FAR` if neither is a date.

    >>> from tilp.time import UNKNOWN
    >>> event_times(np.array([1990, UNKNOWN]), np.array([UNKNOWN, 2001])).tolist()
    [1990, 2001]
    """
    return np.where(_is_date(start), start, np.where(_is_date(end), end, FAR))


def _is_date(time: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True where a time is neither unknown nor open."""
    return (time > -FAR) & (time < FAR)


@dataclass(frozen=True, eq=False)
class TimedEdges:
    """Facts of some splits and their inverses, each at its event time; undated facts are left out.

    Attributes:
        n_entities: number of entities of the graph.
        n_relations: number of relations; the inverse of relation r is `r + n_relations`.
        source: source of each edge; likewise `relation`, `target`, `time` and `fact`.
    """

    n_entities: int
    n_relations: int
    source: NDArray[np.int32]
    relation: NDArray[np.int32]
    target: NDArray[np.int32]
    time: NDArray[np.int64]
    fact: NDArray[np.int32]

    @classmethod
    def of(cls, graph: TemporalGraph, splits: Iterable[str] | str) -> TimedEdges:
        """Return the edges of a graph's splits, by source."""
        index = graph.index(splits)
        source = np.repeat(np.arange(len(graph.entities), dtype=np.int32), np.diff(index.offsets))
        time = event_times(graph.start, graph.end)[index.fact]
        dated = time < FAR
        return cls(
            len(graph.entities),
            len(graph.relations),
            source[dated],
            index.relation[dated],
            index.target[dated],
            time[dated],
            index.fact[dated],
        )

    @cached_property
    def by_time(self) -> ByTime:
        """Edges by source, then time."""
        order = np.lexsort((self.time, self.source))
        offsets = np.searchsorted(self.source[order], np.arange(self.n_entities + 1))
        return ByTime(offsets, self.relation[order], self.target[order], self.time[order])

    @cached_property
    def by_entity_relation(self) -> ByEntityRelation:
        """Edges by source, relation and time."""
        order = np.lexsort((self.time, self.relation, self.source))
        source, relation = self.source[order], self.relation[order]
        first = _first_rows(source, relation)
        return ByEntityRelation(
            np.searchsorted(source[first], np.arange(self.n_entities + 1)),
            relation[first],
            np.append(first, len(order)),
            self.target[order],
            self.time[order],
            self.fact[order],
        )

    @cached_property
    def by_pair(self) -> ByPair:
        """Edges by source, target, relation and time."""
        order = np.lexsort((self.time, self.relation, self.target, self.source))
        columns = (self.source, self.target, self.relation)
        source, target, relation = (column[order] for column in columns)
        first = _first_rows(source, target, relation)
        return ByPair(
            np.searchsorted(source[first], np.arange(self.n_entities + 1)),
            target[first],
            relation[first],
            np.append(first, len(order)),
            self.time[order],
        )

    @cached_property
    def by_answer(self) -> ByAnswer:
        """Edges by relation, target and time."""
        order = np.lexsort((self.time, self.target, self.relation))
        relation, target = self.relation[order], self.target[order]
        first = _first_rows(relation, target)
        return ByAnswer(
            np.searchsorted(relation[first], np.arange(2 * self.n_relations + 1)),
            target[first],
            np.append(first, len(order)),
            self.time[order],
        )

    @cached_property
    def by_relation(self) -> ByRelation:
        """Edges by relation, then time."""
        order = np.lexsort((self.time, self.relation))
        offsets = np.searchsorted(self.relation[order], np.arange(2 * self.n_relations + 1))
        columns = (self.source, self.target, self.time, self.fact)
        return ByRelation(offsets, *(column[order] for column in columns))


def _first_rows(*columns: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the rows that differ from the row before."""
    return np.flatnonzero(np.any([np.diff(column, prepend=-1) != 0 for column in columns], axis=0))
