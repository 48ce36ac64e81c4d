"""User-defined constraints on the steps of a walk, and on pairs of its intervals.

The paper: 'by introducing new filtering functions, this framework can have more possibilities',
such as comparing numbers of the two ends of a step. A constraint gives every step one of a few
words, or none; walks whose steps have other words fall under other rules.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ids, Ints
from tilp.errors import TilpError
from tilp.rules import Constraint

_MAX_PAIRS = 400_000_000


@dataclass(frozen=True)
class Steps:
    """Every edge of a graph as a step that a walk may take.

    Attributes:
        start: start of each step's interval; likewise `end`. Missing dates are filled as for walks.
        here: numbers of the entity that a step leaves, by attribute; NaN where there is none.
        there: numbers of the entity that a step leads to.
    """

    start: Ints
    end: Ints
    here: Mapping[str, Floats]
    there: Mapping[str, Floats]


@dataclass(frozen=True)
class StepConstraint:
    """A user-defined constraint that describes single steps.

    Attributes:
        words: the words that may describe a step.
        label: function from `Steps` to the index of each step's word, -1 for none.
        of_interval: whether words describe the step's interval, `long(I1)`; by default they
            describe its two ends, `taller(E1,E2)`.

    >>> early = StepConstraint(
    ...     ("early",), lambda steps: np.where(steps.start < 1700, 0, -1), of_interval=True
    ... )
    """

    words: tuple[str, ...]
    label: Callable[[Steps], Ints]
    of_interval: bool = False

    def labels(self, steps: Steps) -> Ints:
        """Return the index of each step's word plus 1, and 0 for none."""
        labels = np.asarray(self.label(steps))
        if labels.shape != steps.start.shape or not np.issubdtype(labels.dtype, np.integer):
            raise TilpError(
                f"the constraint {'/'.join(self.words)} must return one whole number a step, "
                f"not {labels.dtype} of shape {labels.shape}"
            )
        _check_range(self.words, labels, lowest=-1)
        return labels.astype(np.int64) + 1

    def variables(self, step: int) -> tuple[str, ...]:
        """Return the variables that a word of the n-th step, from 1, is about."""
        return (f"I{step}",) if self.of_interval else (f"E{step}", f"E{step + 1}")


@dataclass(frozen=True)
class PairConstraint:
    """User-defined classes of pairs of intervals, in place of before, touching and after.

    Attributes:
        words: the classes; exactly one of them holds for a pair.
        code: function from start, end, other start and other end (arrays that broadcast) to the
            index of each pair's class. Missing dates are filled as for walks.
    """

    words: tuple[str, ...]
    code: Callable[..., Ints]

    def table(
        self, start: Ints, end: Ints,
        other_start: Ints, other_end: Ints,
    ) -> NDArray[np.int8]:  # fmt: skip
        """Return the class of each interval (rows) against each other one (columns)."""
        if len(start) * len(other_start) > _MAX_PAIRS:
            raise TilpError(
                f"{len(start):,} different intervals are too many for user-defined classes of "
                f"pairs (at most {int(_MAX_PAIRS**0.5):,}); choose a coarser unit"
            )
        codes = np.asarray(self.code(start[:, None], end[:, None], other_start, other_end))
        if codes.shape != (len(start), len(other_start)):
            raise TilpError(
                f"the constraint {'/'.join(self.words)} must return one number a pair, "
                f"not an array of shape {codes.shape}"
            )
        _check_range(self.words, codes, lowest=0)
        return codes.astype(np.int8)


def _check_range(words: tuple[str, ...], indices: Ints, lowest: int) -> None:
    if indices.size and not (indices.min() >= lowest and indices.max() < len(words)):
        raise TilpError(
            f"the constraint {'/'.join(words)} has {len(words)} words, numbered from 0, but "
            f"returned {indices.min()} to {indices.max()}"
        )


def compare(attribute: str, words: tuple[str, str, str]) -> StepConstraint:
    """Return a constraint that compares a number of the two ends of a step.

    Args:
        attribute: name of the number, a column of the graph's attributes.
        words: words for a smaller, an equal and a larger number here than there.

    >>> height = compare("height", ("shorter", "as tall as", "taller"))
    >>> height.variables(1)
    ('E1', 'E2')
    """

    def label(steps: Steps) -> Ints:
        if attribute not in steps.here:
            known = ", ".join(steps.here) or "none"
            raise TilpError(f"no entity has a {attribute}; there are attributes: {known}")
        difference = steps.here[attribute] - steps.there[attribute]
        sign = np.sign(np.nan_to_num(difference))
        return np.where(np.isnan(difference), -1, sign + 1).astype(np.int64)

    return StepConstraint(words, label)


@dataclass(frozen=True)
class Symbols:
    """Integers that walks consist of: a directed relation and a word or none of each constraint."""

    n_directed: int
    constraints: tuple[StepConstraint, ...]

    @property
    def count(self) -> int:
        """Number of symbols."""
        return self.n_directed * int(np.prod([len(c.words) + 1 for c in self.constraints]))

    def of_edges(self, relation: Ids, steps: Steps) -> Ids:
        """Return the symbol of each edge."""
        symbols = relation.astype(np.int64)
        for constraint in self.constraints:
            symbols = symbols * (len(constraint.words) + 1) + constraint.labels(steps)
        return symbols.astype(np.int32)

    def pack(self, relation: int, words: Sequence[str | None]) -> int:
        """Return the symbol of a relation and its words."""
        for constraint, word in zip(self.constraints, words, strict=True):
            relation = relation * (len(constraint.words) + 1)
            relation += 0 if word is None else constraint.words.index(word) + 1
        return relation

    def unpack(self, symbol: int, step: int) -> tuple[int, list[Constraint]]:
        """Return the relation of a symbol, and the constraints on the n-th step that it holds."""
        constraints = []
        for constraint in reversed(self.constraints):
            symbol, label = divmod(symbol, len(constraint.words) + 1)
            if label:
                word = constraint.words[label - 1]
                constraints.append(Constraint(word, constraint.variables(step)))
        return symbol, constraints

    def split(
        self, constraints: Sequence[Constraint]
    ) -> tuple[dict[int, list[str | None]], list[Constraint]]:
        """Split a rule's constraints into the words of each step, and all others."""
        words: dict[int, list[str | None]] = {}
        others = []
        for constraint in constraints:
            step = constraint.indices[0]
            for index, own in enumerate(self.constraints):
                if constraint.word in own.words and constraint.variables == own.variables(step):
                    of_step = words.setdefault(step, [None] * len(self.constraints))
                    of_step[index] = constraint.word
                    break
            else:
                others.append(constraint)
        return words, others
