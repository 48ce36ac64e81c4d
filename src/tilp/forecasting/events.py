"""Facts as events, in the sort orders that forecasting needs, and rules over events as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.tlogic import TLogicRules
from tilp._kernels.types import ByAnswer, ByEntityRelation, ByPair, ByRelation, ByTime
from tilp._utils.arrays import ColumnTable, Floats, Ids, Ints, Mask
from tilp.errors import TilpError
from tilp.graph import TemporalGraph, Vocabulary
from tilp.rules import Atom, Constraint, MinedRule, Rule, RuleSet
from tilp.time import FAR
from tilp.types import Unit


def event_times(start: Ints, end: Ints) -> Ints:
    """Return the start of each interval, else its end; `FAR` if neither is a date.

    >>> from tilp.time import UNKNOWN
    >>> event_times(np.array([1990, UNKNOWN]), np.array([UNKNOWN, 2001])).tolist()
    [1990, 2001]
    """
    return np.where(_is_date(start), start, np.where(_is_date(end), end, FAR))


def _is_date(time: Ints) -> Mask:
    return (time > -FAR) & (time < FAR)


@dataclass(frozen=True, eq=False)
class TimedEdges:
    """Facts of some splits and their inverses, each at its event time; undated facts are left out.

    The inverse of relation r is `r + n_relations`.
    """

    n_entities: int
    n_relations: int
    source: Ids
    relation: Ids
    target: Ids
    time: Ints
    fact: Ids

    @classmethod
    def of(cls, graph: TemporalGraph, splits: Iterable[str] | str) -> TimedEdges:
        """Return the edges of a graph's splits, by source."""
        index = graph.index(splits)
        source = np.repeat(np.arange(len(graph.entities), dtype=np.int32), np.diff(index.offsets))
        time = event_times(graph.start, graph.end)[index.fact]
        dated = time < FAR
        columns: tuple[NDArray[Any], ...] = (source, index.relation, index.target, time, index.fact)
        sizes = len(graph.entities), len(graph.relations)
        return cls(*sizes, *(column[dated] for column in columns))

    def __getitem__(self, rows: Ints | Mask) -> TimedEdges:
        """Return some of the edges, in the given order."""
        names = ("source", "relation", "target", "time", "fact")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def extending(self, old: TimedEdges) -> TimedEdges:
        """Merge edges of times that no old one has into the old sort orders; return all edges.

        Nothing is merged where others are new, or old ones are gone: then all are sorted.
        """
        known = np.isin(self.time, old.time)
        rows, added = np.flatnonzero(known), np.flatnonzero(~known)
        same = len(rows) == len(old.time) and all(
            np.array_equal(getattr(self, name)[rows], getattr(old, name))
            for name in ("source", "relation", "target", "time")
        )
        for columns, old_order in old.orders.items() if same else ():
            key, (_, *ties) = self._key(columns[0]), columns
            new = added[np.lexsort((*(getattr(self, name)[added] for name in ties),
                                    self.time[added], key[added]))]  # fmt: skip
            before, times = rows[old_order], self.time[new]
            first, last = (np.searchsorted(key[before], key[new], s) for s in ("left", "right"))
            while (first < last).any():  # search for the time among edges of the same key
                middle = (first + last) // 2
                earlier = self.time[before[np.minimum(middle, len(before) - 1)]] < times
                first = np.where((first < last) & earlier, middle + 1, first)
                last = np.where((first < last) & ~earlier, middle, last)
            self.orders[columns] = np.insert(before, first, new)
        return self

    @cached_property
    def orders(self) -> dict[tuple[Any, ...], Ints]:
        """Orders of the edges by some columns, then by time, then by others, as far as known."""
        return {}

    def _order(self, *keys: str, ties: tuple[str, ...] = ()) -> Ints:
        """Return the order by columns, then by time, then by `ties`."""
        columns = keys, *ties
        if columns not in self.orders:
            last = (getattr(self, name) for name in ties[::-1])
            self.orders[columns] = np.lexsort((*last, self.time, self._key(keys)))
        return self.orders[columns]

    def _key(self, columns: tuple[str, ...]) -> Ints:
        """Return entities and relations in one integer for each edge."""
        key = np.zeros(len(self.time), np.int64)
        for name in columns:
            size = 2 * self.n_relations if name == "relation" else self.n_entities
            key = key * size + getattr(self, name)
        return key

    @cached_property
    def by_time(self) -> ByTime:
        """Edges by source, then time."""
        order = self._order("source")
        offsets = np.searchsorted(self.source[order], np.arange(self.n_entities + 1))
        return ByTime(offsets, self.relation[order], self.target[order], self.time[order])

    @cached_property
    def by_entity_relation(self) -> ByEntityRelation:
        """Edges by source, relation and time."""
        order, (source, relation), offsets = self._group("source", "relation")
        entity_offsets = np.searchsorted(source, np.arange(self.n_entities + 1))
        columns = (column[order] for column in (self.target, self.time, self.fact))
        return ByEntityRelation(entity_offsets, relation, offsets, *columns)

    @cached_property
    def by_pair(self) -> ByPair:
        """Edges by source, target, relation and time."""
        order, (source, target, relation), offsets = self._group("source", "target", "relation")
        entity_offsets = np.searchsorted(source, np.arange(self.n_entities + 1))
        return ByPair(entity_offsets, target, relation, offsets, self.time[order])

    @cached_property
    def by_answer(self) -> ByAnswer:
        """Edges by relation, target and time."""
        order, (relation, target), offsets = self._group("relation", "target")
        relation_offsets = np.searchsorted(relation, np.arange(2 * self.n_relations + 1))
        time, run_of = self.time[order], np.empty(len(order), np.int64)
        run_of[order] = np.repeat(np.arange(len(target)), np.diff(offsets))
        latest = self._order("relation", ties=("target",))
        first = time[offsets[:-1]]
        first = first[np.lexsort((first, relation))]
        times = time, first, self.time[latest]
        return ByAnswer(relation_offsets, target, offsets, *times, run_of[latest])

    @cached_property
    def by_relation(self) -> ByRelation:
        """Edges by relation, then time."""
        order = self._order("relation")
        offsets = np.searchsorted(self.relation[order], np.arange(2 * self.n_relations + 1))
        columns = (self.source, self.target, self.time, self.fact)
        return ByRelation(offsets, *(column[order] for column in columns))

    def _group(self, *keys: str) -> tuple[Ints, list[Ids], Ints]:
        """Return the order by keys and time, the keys of each group, and the groups' offsets."""
        order = self._order(*keys)
        columns = [getattr(self, key)[order] for key in keys]
        is_first = np.any([np.diff(column, prepend=-1) != 0 for column in columns], axis=0)
        first = np.flatnonzero(is_first)
        return order, [column[first] for column in columns], np.append(first, len(order))


@dataclass(frozen=True, eq=False)
class RuleTable(ColumnTable):
    """Rules (E1, head, E(l+1), T(l+1)) ← (E1, r1, E2, T1) ∧ … with T1 ≤ … ≤ Tl < T(l+1)."""

    head: Ints  # directed relation
    length: Ints  # of the body
    relations: Ints  # directed relations of the body, -1 past the end
    same: Ints  # for each entity position, the first position that must have the same entity
    body_support: Ints  # distinct groundings of the body that were counted
    support: Ints  # those of them that the head follows
    confidence: Floats

    def sorted(self) -> RuleTable:
        """Sort by head, then by falling confidence, then by length."""
        keys = [*self.same.T[::-1], *self.relations.T[::-1], self.length, -self.confidence]
        return self[np.lexsort((*keys, self.head))]

    def kernel_rules(self, n_directed: int, *, plain: bool = False) -> TLogicRules:
        """Return a sorted table as the kernels read it; `plain` makes them follow every walk."""
        n, length = self.relations.shape
        once = np.full((n, length), not plain)
        # A body that later returns to an entity before this position depends on the path to it.
        for position in range(length):
            later = self.same[:, position + 1 :]
            once[:, position] &= ~((later > 1) & (later < position)).any(axis=1)
        offsets = np.searchsorted(self.head, np.arange(n_directed + 1))
        returns = (self.same[:, 3:] == 1).any(axis=1) & (not plain)
        bodies = self.length, self.relations, self.same
        return TLogicRules(offsets, *bodies, self.confidence, once, returns)

    def rule_set(self, relations: Vocabulary, facts: Ints, *, sampled: bool = True) -> RuleSet:
        """Return the rules by name, in the same order; `facts` counts those of each head."""
        atoms = [Atom(name, inverse) for inverse in (False, True) for name in relations]
        rows = zip(*(column.tolist() for column in self.columns), strict=True)
        mined = []
        for head, length, body, same, body_support, support, confidence in rows:
            *earlier, last = pairwise(f"I{index}" for index in range(1, length + 2))
            times = [Constraint("no_later_than", pair) for pair in earlier]
            times.append(Constraint("earlier_than", last))
            entities = (
                Constraint("the_same_as", (f"E{first + 1}", f"E{position + 1}"))
                for position, first in enumerate(same[: length + 1])
                if first != position
            )
            atoms_of_body = tuple(atoms[relation] for relation in body[:length])
            rule = Rule(atoms[head], atoms_of_body, (*times, *entities))
            n_facts = int(facts[head])
            mined.append(MinedRule(rule, support, body_support, confidence, n_facts, sampled))
        return RuleSet(mined)


def check_relations(graph: TemporalGraph, relations: Vocabulary, unit: Unit) -> None:
    """Raise `TilpError` if a graph has other relations or another unit than a model."""
    if graph.relations != relations or graph.unit is not unit:
        raise TilpError(
            f"the model has {len(relations):,} relations in {unit.value}s, the graph has "
            f"{len(graph.relations):,} in {graph.unit.value}s; use a graph that was read with the "
            "same relations and unit"
        )
