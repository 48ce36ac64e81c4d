"""`RuleTable`: rules over events as arrays of relation ids, and back as a `RuleSet`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.tlogic import TLogicRules
from tilp.errors import TilpError
from tilp.graph import TemporalGraph, Vocabulary
from tilp.rules import Atom, Constraint, MinedRule, Rule, RuleSet
from tilp.types import Unit


@dataclass(frozen=True, eq=False)
class RuleTable:
    """Rules (E1, head, E(l+1), T(l+1)) ← (E1, r1, E2, T1) ∧ … with T1 ≤ … ≤ Tl < T(l+1).

    Attributes:
        head: directed head relation of each rule.
        length: length of its body.
        relations: directed relations of its body, -1 past the end.
        same: for each entity position, the first position that must have the same entity.
        body_support: number of distinct groundings of the body that were counted.
        support: number of them that the head follows.
        confidence: share of them that the head follows.
    """

    head: NDArray[np.int64]
    length: NDArray[np.int64]
    relations: NDArray[np.int64]
    same: NDArray[np.int64]
    body_support: NDArray[np.int64]
    support: NDArray[np.int64]
    confidence: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> RuleTable:
        return RuleTable(*(getattr(self, column.name)[rows] for column in fields(self)))

    @classmethod
    def join(cls, tables: Sequence[RuleTable]) -> RuleTable:
        """Concatenate tables."""
        names = [column.name for column in fields(cls)]
        return cls(*(np.concatenate([getattr(table, name) for table in tables]) for name in names))

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
        return TLogicRules(
            np.searchsorted(self.head, np.arange(n_directed + 1)),
            self.length,
            self.relations,
            self.same,
            self.confidence,
            once,
            (self.same[:, 3:] == 1).any(axis=1) & (not plain),
        )

    def rule_set(
        self, relations: Vocabulary, facts: NDArray[np.int64], *, sampled: bool = True
    ) -> RuleSet:
        """Return the rules by name, in the same order; `facts` counts those of each head."""
        atoms = [Atom(name, inverse) for inverse in (False, True) for name in relations]
        columns = (getattr(self, column.name).tolist() for column in fields(self))
        return RuleSet(
            MinedRule(
                Rule(
                    atoms[head],
                    tuple(atoms[relation] for relation in body[:length]),
                    (*_time_constraints(length), *_entity_constraints(same[: length + 1])),
                ),
                support=support,
                body_support=body_support,
                confidence=confidence,
                facts=int(facts[head]),
                sampled=sampled,
            )
            for head, length, body, same, body_support, support, confidence in zip(
                *columns, strict=True
            )
        )


def _time_constraints(length: int) -> tuple[Constraint, ...]:
    """Return the order of times that every rule of a length has."""
    intervals = [f"I{index}" for index in range(1, length + 2)]
    return (
        *(Constraint("no_later_than", pair) for pair in pairwise(intervals[:-1])),
        Constraint("earlier_than", (intervals[-2], intervals[-1])),
    )


def _entity_constraints(same: Sequence[int]) -> tuple[Constraint, ...]:
    """Return which positions of a rule have the same entity."""
    return tuple(
        Constraint("the_same_as", (f"E{first + 1}", f"E{position + 1}"))
        for position, first in enumerate(same)
        if first != position
    )


def check_relations(graph: TemporalGraph, relations: Vocabulary, unit: Unit) -> None:
    """Raise `TilpError` if a graph has other relations or another unit than a model."""
    if graph.relations != relations or graph.unit is not unit:
        raise TilpError(
            f"the model has {len(relations):,} relations in {unit.value}s, the graph has "
            f"{len(graph.relations):,} in {graph.unit.value}s; use a graph that was read with the "
            "same relations and unit"
        )
