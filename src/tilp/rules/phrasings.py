"""`Phrasings`: how relations are worded, and rules as sentences without variables."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from string import Formatter

from tilp.errors import DataError, TilpError
from tilp.graph import Vocabulary
from tilp.rules.rule import Constraint, Rule
from tilp.rules.temporal import gap_parts
from tilp.time import unit_words
from tilp.types import Unit

_UNNAMED = (("someone or something", "the first"), ("another", "the other"))
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_TO_QUERY = {
    "touching": "at that time", "meets": "until that began", "met-by": "from when that ended",
    "overlaps": "from before that until within it",
    "overlapped-by": "from within that until after it",
    "starts": "from when that began, but for a shorter time",
    "started-by": "from when that began, and for a longer time",
    "during": "within that time", "contains": "before, during and after that",
    "finishes": "within that time, until it ended",
    "finished-by": "from before that, until it ended", "equals": "over exactly that time",
}  # fmt: skip
_BETWEEN = {"touching": "at the same time as", "equals": "over the same time as"}


@dataclass(frozen=True, slots=True)
class Phrasing:
    """How one relation is worded; what is empty is worded by the relation's name.

    Attributes:
        text: The fact, such as `{subject} plays for {object}`.
        inverse: The fact read from its object, such as `{object} employs {subject}`.
        subject: Noun for its subject, such as `player`.
        object: Noun for its object, such as `club`.
    """

    text: str = ""
    inverse: str = ""
    subject: str = ""
    object: str = ""


class Phrasings:
    """How relations are worded; those without a phrasing by their names.

    Args:
        by_relation: Phrasing of each relation that has one (default None: none has).

    >>> phrasings = Phrasings({"playsFor": Phrasing("{subject} plays for {object}")})
    >>> phrasings.clause("playsFor", "Ada", "Rovers"), phrasings.clause("bornIn", "Ada", "Leeds")
    ('Ada plays for Rovers', 'Ada bornIn Leeds')
    """

    def __init__(self, by_relation: Mapping[str, Phrasing] | None = None) -> None:
        self._by_relation = dict(by_relation or {})
        self._rules: dict[tuple[Rule, Unit | None], str] = {}

    @classmethod
    def read(cls, path: Path | str, relations: Vocabulary) -> Phrasings:
        """Read a TOML file with the wording of relations.

        A key is a relation; its value is the text of a fact, or a table with `text`, `inverse`,
        `subject` and `object` as in `Phrasing`.
        """
        try:
            entries = tomllib.loads(Path(path).read_text("utf-8"))
        except (ValueError, RecursionError, OSError) as failure:
            raise DataError(f"{path} cannot be read as TOML: {failure}") from failure
        by_relation = {}
        for name, entry in entries.items():
            try:
                by_relation[relations.label(relations.find(name))] = _phrasing(entry)
            except TilpError as failure:
                raise DataError(f"{path}, {name!r}: {failure}") from failure
        return cls(by_relation)

    def __getitem__(self, relation: str) -> Phrasing:
        return self._by_relation.get(relation, Phrasing())

    def clause(self, relation: str, subject: str, object_: str, *, inverse: bool = False) -> str:
        """Word a fact; `inverse` if it is read from its object."""
        phrasing = self[relation]
        template = (phrasing.inverse if inverse else "") or phrasing.text
        if not template:
            return f"{subject} {relation} {object_}"
        return template.format(subject=subject, object=object_)

    def rule(self, rule: Rule, unit: Unit | None = None) -> str:
        """Word a rule as a sentence without variables.

        Args:
            rule: The rule.
            unit: Unit of time of its gaps (default None: not known).

        >>> from tilp.rules import parse_rule
        >>> rule = parse_rule("won(E1,E2,I2) <- nominated(E1,E2,I1) & 3-4 years before(I1,I2)")
        >>> print(Phrasings().rule(rule, Unit.YEAR))
        Someone or something won another, if the first nominated the other 3 to 4 years before that.
        """
        if (rule, unit) not in self._rules:
            self._rules[rule, unit] = self._rule(rule, unit)
        return self._rules[rule, unit]

    def _rule(self, rule: Rule, unit: Unit | None) -> str:
        names, last = _Names(self._nouns(rule)), rule.length + 1
        head = self._atom(rule, names, 0)
        to_query = {c.indices[0]: c.word for c in rule.constraints if _joins_query(c, last)}
        clauses = []
        for index in range(1, last):
            clause = self._atom(rule, names, index)
            word = to_query.get(index)
            if rule.body == (rule.head,):
                kind = "" if word is None else _relation(word, unit)
                how = {"before": "already", "after": "again"}.get(kind.rsplit(" ", 1)[-1], "also")
                clause = f"this was {how} so{'' if word else ' at another time'}"
            when = "" if word is None else _TO_QUERY.get(word) or f"{_relation(word, unit)} that"
            clauses.append(f"{clause} {when}".rstrip())
        others = [c for c in rule.constraints if not _joins_query(c, last)]
        clauses += [_between(constraint, names, unit, last) for constraint in others]
        sentence = f"{head}, if {', and '.join(clauses)}."
        return sentence[0].upper() + sentence[1:]

    def entity_names(self, rule: Rule) -> tuple[str, ...]:
        """Name the entities of a rule, as its sentence refers to them."""
        names = _Names(self._nouns(rule))
        for index in range(rule.length + 1):
            self._atom(rule, names, index)
        return tuple(names(entity) for entity in range(1, rule.length + 2))

    def _nouns(self, rule: Rule) -> dict[int, str]:
        """Return a noun for each entity of a rule that an atom of it has one for."""
        nouns: dict[int, str] = {}
        for index, atom in enumerate((rule.head, *rule.body)):
            phrasing = self[atom.relation]
            words = (phrasing.subject, phrasing.object)[:: -1 if atom.inverse else 1]
            for end, noun in zip(_ends(rule, index), words, strict=True):
                if noun:
                    nouns.setdefault(end, noun)
        return nouns

    def _atom(self, rule: Rule, names: _Names, index: int) -> str:
        """Word the head (0) or an atom of the body, naming its entities in the order of words."""
        atom = rule.body[index - 1] if index else rule.head
        subject, object_ = _ends(rule, index)[:: -1 if atom.inverse else 1]
        template = self[atom.relation].text
        if template.find("{object}") < template.find("{subject}"):
            names(object_)
        return self.clause(atom.relation, names(subject), names(object_))


class _Names:
    """Names the entities of a rule: by a noun or a pronoun, later by how it is referred to."""

    def __init__(self, nouns: Mapping[int, str]) -> None:
        self._nouns, self._total = nouns, Counter(nouns.values())
        self._again: dict[int, str] = {}
        self._seen: Counter[str] = Counter()

    def __call__(self, entity: int) -> str:
        if entity in self._again:
            return self._again[entity]
        noun = self._nouns.get(entity, "")
        index = self._seen[noun]
        self._seen[noun] += 1
        if noun:
            new = f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
            again = f"the {noun}" if self._total[noun] == 1 else f"the {_ORDINALS[index]} {noun}"
            new = f"another {noun}" if index else new
        elif index < len(_UNNAMED):
            new, again = _UNNAMED[index]
        else:
            new = again = chr(ord("A") + index - len(_UNNAMED))
        self._again[entity] = again
        return new


def _phrasing(entry: object) -> Phrasing:
    """Return the phrasing of an entry of a file, checked."""
    entry = {"text": entry} if isinstance(entry, str) else entry
    names = [field.name for field in fields(Phrasing)]
    if not isinstance(entry, dict) or not set(entry) <= set(names):
        raise TilpError(f"give a text, or a table of {', '.join(names)}")
    if not all(isinstance(value, str) for value in entry.values()):
        raise TilpError(f"{', '.join(entry)} should be text")
    for template in filter(None, (entry.get("text"), entry.get("inverse"))):
        try:
            used = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
        except ValueError:
            used = set()
        if used != {"subject", "object"}:
            raise TilpError(f"{template!r} should have {{subject}} and {{object}}, and no other")
    return Phrasing(**entry)


def _ends(rule: Rule, index: int) -> tuple[int, int]:
    """Return the entities that the head (0) or an atom of the body joins."""
    return (index, index + 1) if index else (1, rule.length + 1)


def _joins_query(constraint: Constraint, last: int) -> bool:
    first, *others = constraint.indices
    return constraint.variables[0][0] == "I" and others == [last] and first != last


def _relation(word: str, unit: Unit | None) -> str:
    """Word a temporal relation: the gap class `3-4 years before` as `3 to 4 years before`."""
    parts = gap_parts(word)
    if parts is None:
        return _BETWEEN.get(word, word.replace("-by", " by"))
    length, side = parts
    text = length.replace("-", " to ").replace("+", " or more")
    if length[-1].isalpha():  # classes of 0.1 have no unit
        return f"{text} {side}"
    return f"{text} {unit_words(unit, plural=length != '1')} {side}"


def _between(constraint: Constraint, names: _Names, unit: Unit | None, last: int) -> str:
    """Word a constraint on entities, or on the times of two facts of the body."""
    indices, word = constraint.indices, constraint.word
    if constraint.variables[0][0] == "E":
        return " ".join([names(indices[0]), word, *map(names, indices[1:])])
    first, *others = (
        "that" if index == last else f"the {_ORDINALS[index - 1]} of these" for index in indices
    )
    return " ".join([first, _relation(word, unit), *others])
