"""Facts as events: each at one time, in the orders in which timestamp rules read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.candidate_history import FAR
from tilp._kernels.events import ByAnswer, ByEntityRelation, ByPair, ByRelation, ByTime
from tilp.graph import TemporalGraph


def event_times(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """The start of each interval, or the end where that is no date; `FAR` where neither is one.

    >>> from tilp.time import UNKNOWN
    >>> event_times(np.array([1990, UNKNOWN]), np.array([UNKNOWN, 2001])).tolist()
    [1990, 2001]
    """
    return np.where(_is_date(start), start, np.where(_is_date(end), end, FAR))


def _is_date(time: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether times are neither unknown nor open."""
    return (time > -FAR) & (time < FAR)


@dataclass(frozen=True, eq=False)
class TimedEdges:
    """The facts of some splits and their inverses, each at one time.

    That is its start. Where the start is unknown or open, the end stands for it; a fact of which
    neither is a date is left out.

    Attributes:
        n_entities: of the graph.
        n_relations: likewise; the inverse of relation r is `r + n_relations`.
        source: of each edge; likewise `relation`, `target`, `time` and `fact`.
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
        """The edges of a graph's splits, by entity."""
        index = graph.index(splits)
        source = np.repeat(np.arange(len(graph.entities), dtype=np.int32), np.diff(index.offsets))
        time = event_times(graph.start, graph.end)[index.fact]
        timed = time < FAR
        return cls(
            len(graph.entities),
            len(graph.relations),
            source[timed],
            index.relation[timed],
            index.target[timed],
            time[timed],
            index.fact[timed],
        )

    @cached_property
    def by_time(self) -> ByTime:
        """By entity, then by time."""
        order = np.lexsort((self.time, self.source))
        offsets = np.searchsorted(self.source[order], np.arange(self.n_entities + 1))
        return ByTime(offsets, self.relation[order], self.target[order], self.time[order])

    @cached_property
    def by_relation(self) -> ByEntityRelation:
        """By entity, relation and time."""
        order = np.lexsort((self.time, self.relation, self.source))
        source, relation = self.source[order], self.relation[order]
        begin = _new(source, relation)
        return ByEntityRelation(
            np.searchsorted(source[begin], np.arange(self.n_entities + 1)),
            relation[begin],
            np.append(begin, len(order)),
            self.target[order],
            self.time[order],
            self.fact[order],
        )

    @cached_property
    def by_pair(self) -> ByPair:
        """By entity, target, relation and time."""
        order = np.lexsort((self.time, self.relation, self.target, self.source))
        columns = (self.source, self.target, self.relation)
        source, target, relation = (column[order] for column in columns)
        begin = _new(source, target, relation)
        return ByPair(
            np.searchsorted(source[begin], np.arange(self.n_entities + 1)),
            target[begin],
            relation[begin],
            np.append(begin, len(order)),
            self.time[order],
        )

    @cached_property
    def by_answer(self) -> ByAnswer:
        """By relation, target and time."""
        order = np.lexsort((self.time, self.target, self.relation))
        relation, target = self.relation[order], self.target[order]
        begin = _new(relation, target)
        return ByAnswer(
            np.searchsorted(relation[begin], np.arange(2 * self.n_relations + 1)),
            target[begin],
            np.append(begin, len(order)),
            self.time[order],
        )

    @cached_property
    def by_head(self) -> ByRelation:
        """By relation, then by time."""
        order = np.lexsort((self.time, self.relation))
        begin = np.searchsorted(self.relation[order], np.arange(2 * self.n_relations + 1))
        columns = (self.source, self.target, self.time, self.fact)
        return ByRelation(begin, *(column[order] for column in columns))


def _new(*columns: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rows that differ from the one before."""
    return np.flatnonzero(np.any([np.diff(one, prepend=-1) != 0 for one in columns], axis=0))
