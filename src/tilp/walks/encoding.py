"""`RuleEncoding`: rules as rows of integers, as kernels find and count them, and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from tilp._kernels.types import RuleIndex, Trie
from tilp._utils.arrays import Ints
from tilp.errors import TilpError
from tilp.graph import Vocabulary
from tilp.rules import Atom, Rule, TemporalForm
from tilp.types import Grain

MAX_LENGTH = 5
"""Of rules."""

Body = TypeVar("Body", int, Ints)

NO_TRIE = Trie(*(np.empty(0, dtype) for dtype in (np.int32, np.int64, np.int32, np.int32)))
NO_RULES = RuleIndex(
    np.zeros((1, MAX_LENGTH + 2), np.int64), np.empty(0, np.int64), np.empty(0, np.int64),
    np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int32),
)  # fmt: skip


@dataclass(frozen=True)
class CompiledRules:
    """Rules as kernels look them up; `order` is the original position of each indexed rule."""

    index: RuleIndex
    trie: Trie
    order: Ints


@dataclass(frozen=True)
class RuleEncoding:
    """Rules as rows of form, length, relation, relations of the body, digits and code.

    Digits encode the temporal relations between the intervals of the body, the code those to the
    query's interval. `forms` are the temporal forms, by id.
    """

    relations: Vocabulary
    forms: tuple[TemporalForm, ...]
    max_length: int

    @cached_property
    def n_directed(self) -> int:
        """Number of directed relations."""
        return 2 * len(self.relations)

    def encode(self, rules: Sequence[Rule]) -> Ints:
        """Return the row of each rule."""
        return np.array([self._row(rule) for rule in rules], np.int64).reshape(-1, 6)

    def lift(self, row: Sequence[int] | Ints) -> Rule:
        """Return the rule that a row stands for (eq. 1)."""
        form, length, relation, relations, digits, code = (int(value) for value in row)
        constraints = self.forms[form].constraints(length, digits, code)
        body = tuple(self.atoms[each] for each in self._unpack(length, relations))
        return Rule(self.atoms[relation], body, constraints)

    def mirrored(self, rows: Ints, gap_form: int) -> Ints:
        """Return the rules of walks read backwards.

        The form past the last one, of the first interval's gap, becomes `gap_form`, of the last's.
        """
        turned = rows.copy()
        n_directed = self.n_directed
        turned[:, 2] = (rows[:, 2] + n_directed // 2) % n_directed
        turned[rows[:, 0] == len(self.forms), 0] = gap_form
        for length in range(1, self.max_length + 1):
            of_length = rows[:, 1] == length
            relations = np.zeros(int(of_length.sum()), np.int64)
            for each in reversed(self.body_relations(rows[of_length], length)):
                relations = relations * n_directed + (each + n_directed // 2) % n_directed
            turned[of_length, 3] = relations
            for form_id, form in enumerate(self.forms):
                mask = of_length & (rows[:, 0] == form_id)
                if mask.any():
                    codes = form.mirrored(length, rows[mask, 4], rows[mask, 5])
                    turned[mask, 4], turned[mask, 5] = codes
        return turned

    def with_relations(self, rows: Ints, relations: Ints) -> Ints:
        """Return rules with other relations in the body, given for each directed relation."""
        changed = rows.copy()
        for length in range(1, self.max_length + 1):
            of_length = rows[:, 1] == length
            body = np.zeros(int(of_length.sum()), np.int64)
            for each in self.body_relations(rows[of_length], length):
                body = body * len(relations) + relations[each]
            changed[of_length, 3] = body
        return changed

    def body_relations(self, rows: Ints, length: int) -> list[Ints]:
        """Return the directed relations of bodies of one length, first to last."""
        return self._unpack(length, rows[:, 3])

    def _unpack(self, length: int, relations: Body) -> list[Body]:
        base = self.n_directed
        return [relations // base**power % base for power in reversed(range(length))]

    def compiled(self, rows: Ints) -> CompiledRules:
        """Put distinct rules into the order in which kernels look them up."""
        order = np.lexsort(rows[:, [5, 2, 4, 3, 1, 0]].T)
        rows = rows[order]
        bodies, begin = np.unique(rows[:, [0, 1, 3, 4]], axis=0, return_index=True)
        body_offsets = np.zeros((len(self.forms), MAX_LENGTH + 2), np.int64)
        for form in range(len(self.forms)):
            for length in range(MAX_LENGTH + 2):
                before = (bodies[:, 0] < form) | ((bodies[:, 0] == form) & (bodies[:, 1] < length))
                body_offsets[form, length] = before.sum()
        index = RuleIndex(
            body_offsets, bodies[:, 2].copy(), bodies[:, 3].copy(),
            np.append(begin, len(rows)).astype(np.int64), rows[:, 2].astype(np.int32),
            rows[:, 5].astype(np.int32),
        )  # fmt: skip
        return CompiledRules(index, self._trie(np.unique(rows[:, [2, 1, 3]], axis=0)), order)

    def _row(self, rule: Rule) -> tuple[int, int, int, int, int, int]:
        if rule.length > self.max_length:
            raise TilpError(f"{rule} is longer than {self.max_length}")
        relations = 0
        for atom in rule.body:
            relations = relations * self.n_directed + self._directed(atom)
        for form_id, form in enumerate(self.forms):
            codes = form.codes(rule.length, rule.constraints)
            if codes is not None:
                return form_id, rule.length, self._directed(rule.head), relations, *codes
        grains = ", ".join(form.grain for form in self.forms)
        gaps = [name for f in self.forms if f.grain is Grain.GAP for name in f.query_relations]
        known = f"; the gap classes of the data are {', '.join(gaps)}" if gaps else ""
        raise TilpError(f"{rule} is of none of the grains {grains}{known}")

    def _directed(self, atom: Atom) -> int:
        return self.relations.find(atom.relation) + atom.inverse * self.n_directed // 2

    @cached_property
    def atoms(self) -> list[Atom]:
        """The atom of each directed relation."""
        names = list(self.relations)
        return [Atom(name, inverse) for inverse in (False, True) for name in names]

    def _trie(self, bodies: Ints) -> Trie:
        """Return the relations of bodies, given by relation, length and body, as prefix trees."""
        children: list[dict[int, int]] = [{} for _ in range(self.n_directed)]
        for node, length, relations in bodies.tolist():
            for relation in self._unpack(length, relations):
                if relation not in children[node]:
                    children[node][relation] = len(children)
                    children.append({})
                node = children[node][relation]
        pairs = [pair for of_node in children for pair in sorted(of_node.items())]
        table = np.array(pairs, np.int32).reshape(-1, 2)
        offsets = np.cumsum([0, *map(len, children)], dtype=np.int64)
        roots = np.arange(self.n_directed, dtype=np.int32)
        return Trie(roots, offsets, table[:, 0].copy(), table[:, 1].copy())
