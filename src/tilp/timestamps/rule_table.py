"""`RuleTable`: timestamp rules as rows of numbers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.timestamp_scores import Applied
from tilp.graph import Vocabulary
from tilp.rules import Atom, Constraint, MinedRule, Rule, RuleSet

__all__ = ["RuleTable"]


@dataclass(frozen=True, eq=False)
class RuleTable:
    """Rules (E1, head, E(l+1), T(l+1)) ← (E1, r1, E2, T1) ∧ … with T1 ≤ … ≤ Tl < T(l+1).

    Attributes:
        head: directed relation of each rule.
        length: of its body.
        relations: of its body, -1 past its end.
        same: of each place the first place that must have the same entity.
        bodies: how many distinct ones were sampled.
        support: how many of them the head follows.
        confidence: the share of these.
    """

    head: NDArray[np.int64]
    length: NDArray[np.int64]
    relations: NDArray[np.int64]
    same: NDArray[np.int64]
    bodies: NDArray[np.int64]
    support: NDArray[np.int64]
    confidence: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> RuleTable:
        return RuleTable(*(getattr(self, column.name)[rows] for column in fields(self)))

    @classmethod
    def join(cls, tables: Sequence[RuleTable]) -> RuleTable:
        """The rules of several tables, one after the other."""
        return cls(
            *(
                np.concatenate([getattr(one, column.name) for one in tables])
                for column in fields(cls)
            )
        )

    def sorted(self) -> RuleTable:
        """By head, the most confident first; of equally confident ones the shorter first."""
        keys = [*self.same.T[::-1], *self.relations.T[::-1], self.length, -self.confidence]
        return self[np.lexsort((*keys, self.head))]

    def applied(self, heads: int, *, plain: bool = False) -> Applied:
        """A sorted table as the loops read it.

        Args:
            heads: how many directed relations there are.
            plain: whether every body is gone through.
        """
        n, length = self.relations.shape
        once = np.full((n, length), not plain)
        # Past these places a body comes back to an entity before: how it came there matters.
        for place in range(length):
            later = self.same[:, place + 1 :]
            once[:, place] &= ~((later > 1) & (later < place)).any(axis=1)
        return Applied(
            np.searchsorted(self.head, np.arange(heads + 1)),
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
        """The rules in the words of people, in the order of the table.

        Args:
            relations: their names.
            facts: of each directed relation.
            sampled: whether bodies were.
        """
        names = list(relations)
        atoms = [Atom(name, inverse) for inverse in (False, True) for name in names]
        return RuleSet(
            MinedRule(
                Rule(
                    atoms[head],
                    tuple(atoms[one] for one in body[:length]),
                    (*_order(length), *_meetings(same[: length + 1])),
                ),
                support=support,
                fired=bodies,
                confidence=confidence,
                facts=int(facts[head]),
                sampled=sampled,
            )
            for head, length, body, same, bodies, support, confidence in zip(
                *(getattr(self, column.name).tolist() for column in fields(self)), strict=True
            )
        )


def _order(length: int) -> tuple[Constraint, ...]:
    """What every timestamp rule of a length says of times."""
    steps = [f"I{place}" for place in range(1, length + 2)]
    return (
        *(Constraint("no_later_than", pair) for pair in pairwise(steps[:-1])),
        Constraint("earlier_than", (steps[-2], steps[-1])),
    )


def _meetings(same: Sequence[int]) -> tuple[Constraint, ...]:
    """Which places of a rule have the same entity."""
    return tuple(
        Constraint("the_same_as", (f"E{first + 1}", f"E{place + 1}"))
        for place, first in enumerate(same)
        if first != place
    )
