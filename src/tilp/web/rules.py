"""`RuleView`: the rules of a model, to be filtered, sorted and read page by page."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from tilp.choices import RuleOrder
from tilp.errors import UnknownNameError
from tilp.graph import Vocabulary
from tilp.rules import MinedRule, Notation, RuleSet, format_rule

__all__ = ["RuleChoice", "RuleView", "rule_json"]

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """Which rules are wanted; what is None leaves all.

    Attributes:
        relation: that they predict.
        inverse: whether they ask for its subject rather than its object.
        body: a relation that their bodies have, in either direction.
        temporal: a word that they say of two intervals.
        length: of their bodies.
        min_confidence: least confidence.
        min_support: least support.
        sort: by what.
        descending: whether the greatest come first.
    """

    relation: str | None = None
    inverse: bool | None = None
    body: str | None = None
    temporal: str | None = None
    length: int | None = None
    min_confidence: float = 0.0
    min_support: int = 0
    sort: RuleOrder = RuleOrder.WEIGHT
    descending: bool = True


class RuleView:
    """Rules by number, with columns to choose them by.

    Args:
        rules: in the order of their numbers.
        relations: the names that they may speak of.
    """

    def __init__(self, rules: RuleSet, relations: Vocabulary) -> None:
        self.rules = rules
        self._relations = relations
        place = {name: number for number, name in enumerate(relations)}
        bodies: list[list[int]] = [[] for _ in relations]
        words: dict[str, list[int]] = {}
        for number, one in enumerate(rules):
            for name in {atom.relation for atom in one.rule.body}:
                bodies[place[name]].append(number)
            for word in {constraint.word for constraint in one.rule.constraints}:
                words.setdefault(word, []).append(number)
        self._bodies = [np.array(numbers, np.int64) for numbers in bodies]
        self._words = {word: np.array(numbers, np.int64) for word, numbers in words.items()}
        self._head = np.array([place[one.rule.head.relation] for one in rules], np.int64)
        self._inverse = np.array([one.rule.head.inverse for one in rules], np.bool_)
        self._columns = {
            RuleOrder.WEIGHT: np.array([one.weight or 0.0 for one in rules]),
            RuleOrder.CONFIDENCE: np.array([one.confidence for one in rules]),
            RuleOrder.SUPPORT: np.array([one.support for one in rules], np.int64),
            RuleOrder.LENGTH: np.array([one.rule.length for one in rules], np.int64),
        }

    @property
    def words(self) -> tuple[str, ...]:
        """What rules say of two intervals, the most frequent first."""
        return tuple(sorted(self._words, key=lambda word: (-len(self._words[word]), word)))

    def counts(self) -> tuple[list[int], list[int]]:
        """How many rules ask for each relation's object, and how many for its subject."""
        n = len(self._relations)
        direct = np.bincount(self._head[~self._inverse], minlength=n).tolist()
        return direct, np.bincount(self._head[self._inverse], minlength=n).tolist()

    def choose(self, choice: RuleChoice) -> Numbers:
        """The numbers of the rules that are wanted, in order; equal ones by number.

        Raises:
            UnknownNameError: no such relation, or no rule has such a word.
        """
        wanted = np.ones(len(self.rules), np.bool_)
        if choice.relation is not None:
            wanted &= self._head == self._relations.find(choice.relation)
        if choice.inverse is not None:
            wanted &= self._inverse == choice.inverse
        if choice.body is not None:
            wanted &= self._among(self._bodies[self._relations.find(choice.body)])
        if choice.temporal is not None:
            wanted &= self._among(self._of_word(choice.temporal))
        if choice.length is not None:
            wanted &= self._columns[RuleOrder.LENGTH] == choice.length
        wanted &= self._columns[RuleOrder.CONFIDENCE] >= choice.min_confidence
        wanted &= self._columns[RuleOrder.SUPPORT] >= choice.min_support
        found = np.flatnonzero(wanted)
        key = self._columns[choice.sort][found]
        return found[np.argsort(-key if choice.descending else key, kind="stable")]

    def _of_word(self, word: str) -> Numbers:
        if word not in self._words:
            near = tuple(get_close_matches(word, self._words))
            raise UnknownNameError(
                f"no rule says {word!r} of two intervals; they say {', '.join(self.words)}", near
            )
        return self._words[word]

    def _among(self, numbers: Numbers) -> NDArray[np.bool_]:
        found = np.zeros(len(self.rules), np.bool_)
        found[numbers] = True
        return found


def rule_json(one: MinedRule) -> dict[str, object]:
    """A rule with its statistics, for programs."""
    return {
        "text": str(one.rule),
        "sentence": format_rule(one.rule, Notation.SENTENCE),
        "head": str(one.rule.head),
        "body": [str(atom) for atom in one.rule.body],
        "weight": one.weight,
        "confidence": one.confidence,
        "support": one.support,
        "fired": one.fired,
        "facts": one.facts,
        "length": one.rule.length,
        "sampled": one.sampled,
    }
