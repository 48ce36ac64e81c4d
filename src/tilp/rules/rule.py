"""`Rule`: a head, a chain of body atoms, and constraints on intervals and ends (eq. 1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from tilp.errors import TilpError
from tilp.graph import INVERSE_MARK

_VARIABLE = re.compile(r"(?P<kind>[EI])(?P<number>[1-9][0-9]*)")


@dataclass(frozen=True, slots=True, order=True)
class Atom:
    """A relation, or its inverse: the relation read from object to subject."""

    relation: str
    inverse: bool = False

    @property
    def converse(self) -> Atom:
        """The same edge in the other direction."""
        return Atom(self.relation, not self.inverse)

    def __str__(self) -> str:
        return self.relation + INVERSE_MARK * self.inverse


@dataclass(frozen=True, slots=True)
class Constraint:
    """A predicate over variables: `before(I1,I2)`, or `taller(E1,E2)`."""

    word: str
    variables: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.variables or not all(map(_VARIABLE.fullmatch, self.variables)):
            raise TilpError(f"{self}: variables are entities E1, E2, … and intervals I1, I2, …")

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices of the variables: 1 and 2 in `before(I1,I2)`."""
        return tuple(int(variable[1:]) for variable in self.variables)

    @property
    def order(self) -> tuple[bool, tuple[int, ...], str]:
        """Sort key within a rule: intervals before entities, then by index."""
        return self.variables[0].startswith("E"), self.indices, self.word

    def __str__(self) -> str:
        return f"{self.word}({','.join(self.variables)})"


@dataclass(frozen=True, slots=True)
class Rule:
    """A temporal logical rule of length l (eq. 1), in canonical form.

    Entity variables are E1 to E(l+1), body intervals I1 to Il, the query interval is I(l+1).
    Constraints are sorted and each is there once, so rules that mean the same compare equal.

    >>> print(Rule(Atom("won"), (Atom("nominated"),), (Constraint("touching", ("I1", "I2")),)))
    won(E1,E2,I2) ← nominated(E1,E2,I1) ∧ touching(I1,I2)
    """

    head: Atom
    body: tuple[Atom, ...]
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        if not self.body:
            raise TilpError("a rule needs at least one body atom")
        for constraint in self.constraints:
            if max(constraint.indices) > len(self.body) + 1:
                raise TilpError(
                    f"{constraint} names a variable that a rule of length {len(self.body)} lacks"
                )
        object.__setattr__(self, "constraints", _canonical(self.constraints))

    @property
    def length(self) -> int:
        """The number of body atoms."""
        return len(self.body)

    def __str__(self) -> str:
        from tilp.rules.text import format_rule

        return format_rule(self)

    def _repr_html_(self) -> str:
        from tilp.rules.picture import rule_html

        return rule_html(self)


@lru_cache(maxsize=65_536)  # tens of thousands of rules share few of these
def _canonical(constraints: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
    return tuple(sorted(set(constraints), key=lambda constraint: constraint.order))
