"""`Rule`: head, chain of body atoms and constraints (eq. 1); its text in four notations."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache

from tilp.errors import TilpError
from tilp.graph import INVERSE_MARK

_VARIABLE = re.compile(r"(?P<kind>[EI])(?P<number>[1-9][0-9]{0,8})")


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
        return format_rule(self)

    def _repr_html_(self) -> str:
        from tilp.rules.picture import rule_html

        return rule_html(self)


@lru_cache(maxsize=65_536)  # tens of thousands of rules share few of these
def _canonical(constraints: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
    return tuple(sorted(set(constraints), key=lambda constraint: constraint.order))


class Notation(StrEnum):
    """Notation of a rule."""

    SIGNS = "signs"
    ASCII = "ascii"
    LATEX = "latex"
    SENTENCE = "sentence"


_SIGNS = {  # arrow, conjunction, inverse
    Notation.SIGNS: (" ← ", " ∧ ", INVERSE_MARK),
    Notation.ASCII: (" <- ", " & ", "^-1"),
    Notation.LATEX: (r" \leftarrow ", r" \wedge ", "^{-1}"),
}

# A bare name may hold spaces and dots, but no sign that the grammar uses.
_BARE = r"[^\s\"(),∧&←<^⁻][^\"(),∧&←<^⁻\n\r]*"
_PLAIN_NAME = re.compile(rf"{_BARE}(?<!\s)")
_TOKEN = re.compile(
    rf"\s*(?:(?P<name>\"(?:[^\"\\]|\\.)*\"|{_BARE}?)\s*(?P<inverse>⁻¹|\^-1)?\s*"
    r"\((?P<variables>[^()]*)\))\s*"
)
Term = tuple[str, bool, tuple[str, ...]]

_ARROW, _AND = re.compile("←|<-"), re.compile("∧|&")


def format_rule(rule: Rule, notation: Notation = Notation.SIGNS) -> str:
    """Format a rule.

    `parse_rule` reads signs and ASCII back.

    Args:
        rule: The rule.
        notation: `signs` (default), `ascii`, `latex` or `sentence`.

    >>> rule = parse_rule("won(E1,E2,I2) <- nominated(E1,E2,I1) & before(I1,I2)")
    >>> print(format_rule(rule, Notation.SENTENCE))
    Someone or something won another, if the first nominated the other before that.
    """
    if notation == Notation.SENTENCE:
        from tilp.rules.phrasings import Phrasings

        return Phrasings().rule(rule)
    arrow, conjunction, inverse_mark = _SIGNS[notation]

    def term(name: str, inverse: bool, variables: tuple[str, ...]) -> str:
        text, listed = _quoted(name), ",".join(variables)
        if notation == Notation.LATEX:
            text = rf"\text{{{name.translate(_LATEX_SIGNS)}}}"
            listed = ", ".join(f"{variable[0]}_{{{variable[1:]}}}" for variable in variables)
        return f"{text}{inverse_mark * inverse}({listed})"

    terms = [
        term(atom.relation, atom.inverse, _body_variables(index))
        for index, atom in enumerate(rule.body, start=1)
    ]
    terms += [term(c.word, False, c.variables) for c in rule.constraints]
    head = term(rule.head.relation, rule.head.inverse, _head_variables(rule))
    return head + arrow + conjunction.join(terms)


def parse_rule(text: str) -> Rule:
    """Parse a rule in signs or ASCII; `#` after it starts a comment.

    >>> print(parse_rule("won(E1,E2,I2) <- nominated(E1,E2,I1) & before(I1,I2)"))
    won(E1,E2,I2) ← nominated(E1,E2,I1) ∧ before(I1,I2)
    """
    scanner = _Scanner(text)
    head_name, head_inverse, head_variables = scanner.term()
    scanner.expect(_ARROW, "an arrow, ← or <-")
    terms = [scanner.term()]
    while not scanner.done:
        scanner.expect(_AND, "∧ or &")
        terms.append(scanner.term())
    body = [term for term in terms if len(term[2]) == 3]
    rest = [term for term in terms if len(term[2]) != 3]
    rule = Rule(
        _atom(head_name, head_inverse),
        tuple(_atom(name, inverse) for name, inverse, _ in body),
        tuple(_constraint(name, variables) for name, _, variables in rest),
    )
    expected = [_body_variables(index) for index in range(1, rule.length + 1)]
    if [term[2] for term in body] != expected or head_variables != _head_variables(rule):
        raise TilpError(
            f"{text!r} is not a chain. Body atoms go from E1 over E2, … to the last entity, with "
            "intervals I1, I2, …, and the head joins the first entity to the last: "
            f"{rule}"
        )
    if any(inverse for _, inverse, _ in rest):
        raise TilpError(f"{text!r}: a constraint has no inverse; write its converse")
    return rule


class _Scanner:
    """Tokenizer of a rule's text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    @property
    def done(self) -> bool:
        rest = self._text[self._position :].strip()
        return not rest or rest.startswith("#")

    def term(self) -> Term:
        """Read a name, its inverse mark and its variables."""
        match = self.expect(_TOKEN, "a term such as name(E1,E2,I1)")
        try:
            return _term(match["name"], match["inverse"] is not None, match["variables"])
        except ValueError:
            raise self._error("a quoted name as JSON writes it") from None

    def expect(self, pattern: re.Pattern[str], description: str) -> re.Match[str]:
        match = pattern.match(self._text, self._position)
        if match is None:
            raise self._error(description)
        self._position = match.end()
        return match

    def _error(self, expected: str) -> TilpError:
        rest = self._text[self._position : self._position + 30]
        return TilpError(f"{self._text!r} is not a rule: expected {expected} before {rest!r}")


# Tens of thousands of rules share few terms, so terms are cached.


@lru_cache(maxsize=65_536)
def _term(name: str, inverse: bool, variables: str) -> Term:
    name = name.strip()
    listed = tuple(part.strip() for part in variables.split(","))
    return json.loads(name) if name.startswith('"') else name, inverse, listed


_atom = lru_cache(maxsize=65_536)(Atom)
_constraint = lru_cache(maxsize=65_536)(Constraint)


@cache
def _body_variables(index: int) -> tuple[str, ...]:
    return f"E{index}", f"E{index + 1}", f"I{index}"


def _head_variables(rule: Rule) -> tuple[str, ...]:
    last = rule.length + 1
    return "E1", f"E{last}", f"I{last}"


def _quoted(name: str) -> str:
    # In a file, # starts a comment, { a JSON record; a byte order mark is not text.
    is_plain = _PLAIN_NAME.fullmatch(name) and not name.startswith(("#", "{", "\ufeff"))
    return name if is_plain else json.dumps(name, ensure_ascii=False)


_LATEX_SIGNS = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "{}_&%#$"},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
    }
)
