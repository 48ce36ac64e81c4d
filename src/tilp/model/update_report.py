"""`UpdateReport`: what an update of a model did, so that nothing is lost silently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._version import __version__
from tilp.graph import SPLITS, MergedGraph, TemporalGraph
from tilp.graph.vocabulary import NearNames

__all__ = ["KEYS_OF_0_1", "UpdateReport"]

KEYS_OF_0_1 = {"weights": "keep", "rules": "mine"}
"""What 0.1 let choose, which is in the JSON of a report for one more version."""

_SHOWN = 5


@dataclass(frozen=True)
class UpdateReport:
    """What an update did.

    Attributes:
        added: for each split, facts that are new.
        known: for each split, facts that were there already.
        less: of these, those that are there with more of their dates.
        superseded: facts whose place one with more of the dates took.
        elsewhere: new facts that are in another split too, whose figures they spoil.
        renumbered: attributes of entities that have another number now.
        entities: the labels of new entities.
        relations: the labels of new relations.
        near: for some of these, known ones that are named like it.
        touched: relations whose rules were mined again.
        counted: rules that were there and were counted again.
        new_rules: rules that were not there.
        dropped_rules: rules that are no longer among the best.
        without_rules: of the touched relations, those that no rule speaks for.
    """

    added: dict[str, int]
    known: dict[str, int]
    less: int
    superseded: int
    elsewhere: int
    renumbered: int
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    near: dict[str, tuple[str, ...]]
    touched: tuple[str, ...] = ()
    counted: int = 0
    new_rules: int = 0
    dropped_rules: int = 0
    without_rules: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: TemporalGraph, joined: MergedGraph, **done: Any) -> UpdateReport:
        """What joining facts did, and what was done besides, by name."""
        after = joined.graph
        relations = tuple(after.relations.labels[len(before.relations) :])
        names = NearNames(before.relations)
        near = {name: found for name in relations if (found := names.find(name))}
        return cls(
            added={split: _in_split(joined.added, after, split) for split in SPLITS},
            known=joined.duplicates,
            less=joined.less_dated,
            superseded=len(joined.superseded),
            elsewhere=joined.in_other_split,
            renumbered=joined.changed_attributes,
            entities=tuple(after.entities.labels[len(before.entities) :]),
            relations=relations,
            near=near,
            **done,
        )

    @property
    def anything(self) -> bool:
        """Whether anything is not as it was."""
        changed = (*self.added.values(), self.superseded, self.renumbered)
        return any(changed) or bool(self.entities) or bool(self.relations)

    def to_json(self) -> dict[str, Any]:
        """As plain values; new entities as their number, of which there can be very many."""
        values = {
            **asdict(self),
            **KEYS_OF_0_1,
            "entities": len(self.entities),
            "tilp": __version__,
        }
        del values["near"]
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    def of_facts(self) -> list[str]:
        """What became of the new facts, in lines to read."""
        lines = [f"added: {_by_split(self.added)}"]
        if self.superseded:
            lines.append(
                f"in the place of facts of whose dates they tell more: {self.superseded:,}"
            )
        if sum(self.known.values()):
            less = f", {self.less:,} of them with more of their dates" if self.less else ""
            lines.append(f"there already: {_by_split(self.known)}{less}")
        if self.elsewhere:
            lines.append(
                f"in another split too: {self.elsewhere:,}; figures of valid or test tell less "
                "where train has the same facts"
            )
        if self.renumbered:
            lines.append(f"attributes of entities with another number: {self.renumbered:,}")
        if self.entities:
            lines.append(f"new entities: {_listed(self.entities)}")
        if self.relations:
            lines.append(f"new relations: {_listed(self.relations)}")
        lines += [
            f"{name!r} is new: was {' or '.join(map(repr, near))} meant?"
            for name, near in self.near.items()
        ]
        return lines

    def of_rules(self) -> list[str]:
        """What became of rules, in lines to read."""
        if not self.touched:
            return ["no training fact is new: rules and weights are as they were"]
        lines = [
            f"touched: {_listed(self.touched, 'relations')}; {self.counted:,} rules counted again, "
            f"{self.new_rules:,} new, {self.dropped_rules:,} no longer among the best"
        ]
        if self.without_rules:
            lines.append(
                f"no rule speaks for {_listed(self.without_rules, 'relations')}: "
                "too few facts that others lead to"
            )
        return lines

    def __str__(self) -> str:
        return "\n".join([*self.of_facts(), *self.of_rules()])


def _in_split(facts: NDArray[np.int64], graph: TemporalGraph, split: str) -> int:
    rows = graph.rows(split)
    return int(((facts >= rows.start) & (facts < rows.stop)).sum())


def _by_split(counts: dict[str, int]) -> str:
    told = ", ".join(f"{count:,} in {split}" for split, count in counts.items() if count)
    return told or "nothing"


def _listed(names: Sequence[str], what: str = "") -> str:
    """How many names, and the first of them."""
    shown = ", ".join(names[:_SHOWN])
    more = ", …" if len(names) > _SHOWN else ""
    return f"{len(names):,}{' ' if what else ''}{what} ({shown}{more})"
