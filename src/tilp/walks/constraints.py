"""Constraints of one's own on the steps of a walk.

The paper: 'by introducing new filtering functions, this framework can have more possibilities',
such as comparing numbers of the two ends of a step. A constraint gives every step one of a few
words, or none; walks whose steps have other words then fall under other rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.rules import Constraint

__all__ = ["PairConstraint", "StepConstraint", "Steps", "Symbols", "compare"]


@dataclass(frozen=True)
class Steps:
    """Every edge of a graph as a step that a walk may take.

    Attributes:
        start: of each step's interval; likewise `end`. Unknown ones as walks take them.
        here: numbers of the entity that a step leaves, by attribute; NaN where there is none.
        there: numbers of the entity that it leads to.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    here: Mapping[str, NDArray[np.float64]]
    there: Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class StepConstraint:
    """Words for steps.

    Attributes:
        words: what can be said of a step.
        label: gives each step the number of its word, or -1 where nothing is said.
        of_interval: whether the words speak of the step's interval, `long(I1)`, rather than of
            its two ends, `taller(E1,E2)`.
    """

    words: tuple[str, ...]
    label: Callable[[Steps], NDArray[np.int64]]
    of_interval: bool = False

    def labels(self, steps: Steps) -> NDArray[np.int64]:
        """The number of each step's word, from 1; 0 where nothing is said."""
        labels = np.asarray(self.label(steps))
        if labels.shape != steps.start.shape or not np.issubdtype(labels.dtype, np.integer):
            raise TilpError(
                f"the constraint {'/'.join(self.words)} must give one whole number a step, "
                f"not {labels.dtype} of shape {labels.shape}"
            )
        if len(labels) and not (labels.min() >= -1 and labels.max() < len(self.words)):
            raise TilpError(
                f"the constraint {'/'.join(self.words)} has {len(self.words)} words, numbered "
                f"from 0, but gave {labels.min()} to {labels.max()}"
            )
        return labels.astype(np.int64) + 1

    def variables(self, place: int) -> tuple[str, ...]:
        """The variables that a word of the step at a place speaks of."""
        return (f"I{place}",) if self.of_interval else (f"E{place}", f"E{place + 1}")


@dataclass(frozen=True)
class PairConstraint:
    """Words of one's own between two intervals, in place of before, touching and after.

    Attributes:
        words: what can be said of a pair; exactly one of them holds.
        code: gives each pair the number of its word, from start, end, other start and other end
            (arrays that broadcast; unknown ends as walks take them).
    """

    words: tuple[str, ...]
    code: Callable[..., NDArray[np.int64]]

    def table(
        self,
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        other_start: NDArray[np.int64],
        other_end: NDArray[np.int64],
    ) -> NDArray[np.int8]:
        """The word of each of some intervals against each of some others."""
        if len(start) * len(other_start) > _MOST_PAIRS:
            raise TilpError(
                f"{len(start):,} different intervals are too many for words of one's own between "
                f"them (at most {int(_MOST_PAIRS**0.5):,}); choose a coarser unit"
            )
        codes = np.asarray(self.code(start[:, None], end[:, None], other_start, other_end))
        if codes.shape != (len(start), len(other_start)):
            raise TilpError(
                f"the constraint {'/'.join(self.words)} must give one number a pair, "
                f"not an array of shape {codes.shape}"
            )
        if codes.size and not (codes.min() >= 0 and codes.max() < len(self.words)):
            raise TilpError(
                f"the constraint {'/'.join(self.words)} has {len(self.words)} words, numbered "
                f"from 0, but gave {codes.min()} to {codes.max()}"
            )
        return codes.astype(np.int8)


_MOST_PAIRS = 400_000_000


def compare(attribute: str, words: tuple[str, str, str]) -> StepConstraint:
    """Compare a number of the two ends of a step.

    Args:
        attribute: which number.
        words: where it is smaller here than there, the same, and larger, as in
            `compare("height", ("shorter", "as tall as", "taller"))`.
    """

    def label(steps: Steps) -> NDArray[np.int64]:
        if attribute not in steps.here:
            known = ", ".join(steps.here) or "none"
            raise TilpError(f"no entity has a {attribute}; there are attributes: {known}")
        difference = steps.here[attribute] - steps.there[attribute]
        known_difference = np.nan_to_num(difference)
        return np.where(np.isnan(difference), -1, np.sign(known_difference) + 1).astype(np.int64)

    return StepConstraint(words, label)


@dataclass(frozen=True)
class Symbols:
    """Relations together with the words of steps, as the numbers that walks are made of.

    A symbol is a directed relation, and for each constraint a word or none.
    """

    n_directed: int
    constraints: tuple[StepConstraint, ...]

    @property
    def count(self) -> int:
        """How many symbols there are."""
        return self.n_directed * int(np.prod([len(one.words) + 1 for one in self.constraints]))

    def of_edges(self, relation: NDArray[np.int32], steps: Steps) -> NDArray[np.int32]:
        """The symbol of each edge."""
        symbols = relation.astype(np.int64)
        for one in self.constraints:
            symbols = symbols * (len(one.words) + 1) + one.labels(steps)
        return symbols.astype(np.int32)

    def pack(self, relation: int, words: Sequence[str | None]) -> int:
        """The symbol of a relation and its words."""
        for one, word in zip(self.constraints, words, strict=True):
            relation = relation * (len(one.words) + 1)
            relation += 0 if word is None else one.words.index(word) + 1
        return relation

    def unpack(self, symbol: int, place: int) -> tuple[int, list[Constraint]]:
        """The relation of a symbol, and what its words say of the step at a place."""
        found = []
        for one in reversed(self.constraints):
            symbol, label = divmod(symbol, len(one.words) + 1)
            if label:
                found.append(Constraint(one.words[label - 1], one.variables(place)))
        return symbol, found

    def split(
        self, constraints: Sequence[Constraint]
    ) -> tuple[dict[int, list[str | None]], list[Constraint]]:
        """The words of each step among a rule's constraints, and all other constraints."""
        words: dict[int, list[str | None]] = {}
        rest = []
        for constraint in constraints:
            place = constraint.indices[0]
            for number, one in enumerate(self.constraints):
                if constraint.word in one.words and constraint.variables == one.variables(place):
                    words.setdefault(place, [None] * len(self.constraints))[number] = (
                        constraint.word
                    )
                    break
            else:
                rest.append(constraint)
        return words, rest
