"""`RuleEncoding`: rules as rows of numbers, as loops find and count them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.types import RuleIndex, Trie
from tilp.errors import TilpError
from tilp.graph import Vocabulary
from tilp.rules import Atom, Rule, TemporalForm
from tilp.walks.constraints import Symbols

__all__ = ["MAX_LENGTH", "NO_RULES", "NO_TRIE", "CompiledRules", "RuleEncoding"]

MAX_LENGTH = 5

NO_TRIE = Trie(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))
NO_RULES = RuleIndex(
    body_offsets=np.zeros((1, MAX_LENGTH + 2), np.int64),
    relations=np.empty(0, np.int64),
    digits=np.empty(0, np.int64),
    rule_offsets=np.zeros(1, np.int64),
    directed_relation=np.empty(0, np.int32),
    code=np.empty(0, np.int32),
)


@dataclass(frozen=True)
class CompiledRules:
    """Rules as the kernels read them, and where each rule went."""

    index: RuleIndex
    trie: Trie
    order: NDArray[np.int64]


@dataclass(frozen=True)
class RuleEncoding:
    """Rules as rows of form, length, head, relations, digits and code.

    Attributes:
        relations: the names of relations.
        symbols: what bodies are made of.
        forms: the temporal forms, by their number.
        max_length: of rules.
    """

    relations: Vocabulary
    symbols: Symbols
    forms: tuple[TemporalForm, ...]
    max_length: int

    def encode(self, rules: Sequence[Rule]) -> NDArray[np.int64]:
        """The row of each rule.

        Raises:
            TilpError: a rule is of none of the forms, is too long, or names a relation that is
                not known.
        """
        return np.array([self._row(rule) for rule in rules], np.int64).reshape(-1, 6)

    def lift(self, row: Sequence[int] | NDArray[np.int64]) -> Rule:
        """The rule that a row stands for (eq. 1)."""
        form, length, head, relations, digits, code = (int(number) for number in row)
        constraints = list(self.forms[form].constraints(length, digits, code))
        body = []
        for place, symbol in enumerate(self._unpack(length, relations), start=1):
            relation, words = self.symbols.unpack(symbol, place)
            body.append(self._atoms[relation])
            constraints += words
        return Rule(self._atoms[head], tuple(body), tuple(constraints))

    def mirrored(self, rows: NDArray[np.int64], gap: int) -> NDArray[np.int64]:
        """The rules of walks read backwards.

        Args:
            rows: what walks were lifted to; past the forms stands that of the first gap.
            gap: the form that speaks of the last gap.
        """
        turned = rows.copy()
        n_directed = self.symbols.count
        turned[:, 2] = (rows[:, 2] + n_directed // 2) % n_directed
        turned[rows[:, 0] == len(self.forms), 0] = gap
        for length in range(1, self.max_length + 1):
            of_length = rows[:, 1] == length
            relations = np.zeros(int(of_length.sum()), np.int64)
            for symbol in reversed(self.symbols_of(rows[of_length], length)):
                relations = relations * n_directed + (symbol + n_directed // 2) % n_directed
            turned[of_length, 3] = relations
            for number, form in enumerate(self.forms):
                chosen = of_length & (rows[:, 0] == number)
                if not chosen.any():
                    continue
                turned[chosen, 4], turned[chosen, 5] = form.mirrored(
                    length, rows[chosen, 4], rows[chosen, 5]
                )
        return turned

    def symbols_of(self, rows: NDArray[np.int64], length: int) -> list[NDArray[np.int64]]:
        """The symbols of bodies of one length, first to last."""
        base = self.symbols.count
        return [rows[:, 3] // base**place % base for place in reversed(range(length))]

    def compiled(self, rows: NDArray[np.int64]) -> CompiledRules:
        """Rules, each once, in the order in which kernels look them up."""
        order = np.lexsort(rows[:, [5, 2, 4, 3, 1, 0]].T)
        rows = rows[order]
        bodies, begin = np.unique(rows[:, [0, 1, 3, 4]], axis=0, return_index=True)
        first = np.zeros((len(self.forms), MAX_LENGTH + 2), np.int64)
        for form in range(len(self.forms)):
            for length in range(MAX_LENGTH + 2):
                before = (bodies[:, 0] < form) | ((bodies[:, 0] == form) & (bodies[:, 1] < length))
                first[form, length] = before.sum()
        kept = RuleIndex(
            body_offsets=first,
            relations=bodies[:, 2].copy(),
            digits=bodies[:, 3].copy(),
            rule_offsets=np.append(begin, len(rows)).astype(np.int64),
            directed_relation=rows[:, 2].astype(np.int32),
            code=rows[:, 5].astype(np.int32),
        )
        return CompiledRules(kept, self._trie(np.unique(rows[:, [1, 3]], axis=0)), order)

    def _row(self, rule: Rule) -> tuple[int, int, int, int, int, int]:
        if rule.length > self.max_length:
            raise TilpError(f"{rule} is longer than {self.max_length}")
        words, rest = self.symbols.split(rule.constraints)
        nothing = [None] * len(self.symbols.constraints)
        relations = 0
        for place, atom in enumerate(rule.body, start=1):
            symbol = self.symbols.pack(self._directed(atom), words.get(place, nothing))
            relations = relations * self.symbols.count + symbol
        for number, form in enumerate(self.forms):
            codes = form.codes(rule.length, rest)
            if codes is not None:
                return number, rule.length, self._directed(rule.head), relations, *codes
        grains = ", ".join(form.grain for form in self.forms)
        raise TilpError(f"{rule} is of none of the grains {grains}")

    def _directed(self, atom: Atom) -> int:
        return self.relations.find(atom.relation) + atom.inverse * len(self.relations)

    def _unpack(self, length: int, relations: int) -> list[int]:
        """The symbols of a body, first to last, from the number that stands for them."""
        base = self.symbols.count
        return [relations // base**place % base for place in reversed(range(length))]

    @cached_property
    def _atoms(self) -> list[Atom]:
        """The atom of each directed relation."""
        names = list(self.relations)
        return [Atom(name, inverse) for inverse in (False, True) for name in names]

    def _trie(self, bodies: NDArray[np.int64]) -> Trie:
        """The relations of bodies, given by length and number, as a prefix tree."""
        children: list[dict[int, int]] = [{}]
        for length, relations in bodies.tolist():
            node = 0
            for relation in self._unpack(length, relations):
                if relation not in children[node]:
                    children[node][relation] = len(children)
                    children.append({})
                node = children[node][relation]
        sizes = [len(one) for one in children]
        pairs = [pair for one in children for pair in sorted(one.items())]
        table = np.array(pairs, np.int32).reshape(-1, 2)
        return Trie(
            begin=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            relation=table[:, 0].copy(),
            child=table[:, 1].copy(),
        )
