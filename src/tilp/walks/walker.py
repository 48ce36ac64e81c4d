"""`Walker`: constrained walks over the edges of a graph, for many queries at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels import counting, walking
from tilp._kernels.between import walks_between
from tilp._kernels.types import Classes, Edges, Kept, Queries, Space, Trie
from tilp.choices import Grain
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.intervals import TemporalRelation, known_ends
from tilp.rules import FORMS, Atom, Rule
from tilp.walks.constraints import PairConstraint, StepConstraint, Steps, Symbols

__all__ = ["MAX_LENGTH", "CompiledRules", "Step", "Walker"]

MAX_LENGTH = 5
DEFAULT_LIMIT = 1_000_000
"""Steps that one level of walks may take from one entity before it is thinned out."""

_KINDS = {Grain.ADJACENT: walking.ADJACENT, Grain.PAIRS: walking.ALL}
_WORDS = {Grain.ALLEN: counting.ALLEN, Grain.GAP: counting.GAP, Grain.STATIC: counting.NOTHING}

NO_TRIE = Trie(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))
NO_RULES = Kept(
    first=np.zeros((1, MAX_LENGTH + 2), np.int64),
    relations=np.empty(0, np.int64),
    digits=np.empty(0, np.int64),
    begin=np.zeros(1, np.int64),
    head=np.empty(0, np.int32),
    code=np.empty(0, np.int32),
)
_NO_STATISTICS = np.zeros((0, 4))


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a walk: a fact, perhaps read from object to subject."""

    fact: int
    inverse: bool


@dataclass(frozen=True)
class CompiledRules:
    """Rules as the kernels read them, and where each rule went."""

    kept: Kept
    trie: Trie
    order: NDArray[np.int64]


class Walker:
    """Walks over the edges of some splits of a graph, up to a length, in some temporal forms.

    Where a level of walks would take more steps than the limit, prefixes are left out, all with
    the same chance. Every method returns, for each query and length, the *weight* of a counted
    walk: 1 where the count is exact, and else what it is multiplied with to be an unbiased
    estimate. Arriving rates are of walks of one length, so the weights cancel in them.

    Args:
        graph: the graph.
        grains: the temporal forms of rules.
        max_length: of walks.
        splits: whose facts are walked on.
        limit: how many steps one level may take from one entity; past it, walks are sampled.
        seed: for sampling.
        constraints: of one's own on steps.
        classes: of one's own on pairs of intervals, in place of before, touching and after.
    """

    def __init__(
        self,
        graph: TemporalGraph,
        *,
        grains: Sequence[Grain | str] = (Grain.PAIRS, Grain.GAP),
        max_length: int = 3,
        splits: Iterable[str] = ("train",),
        limit: int = DEFAULT_LIMIT,
        seed: int = 0,
        constraints: Sequence[StepConstraint] = (),
        classes: PairConstraint | None = None,
    ) -> None:
        if not 1 <= max_length <= MAX_LENGTH:
            raise TilpError(f"the length of rules is {max_length}; it can be 1 to {MAX_LENGTH}")
        self._symbols = Symbols(2 * len(graph.relations), tuple(constraints))
        if self._symbols.count**max_length >= 2**62:
            raise TilpError(
                f"{len(graph.relations):,} relations (and the words of steps) are too many for "
                f"rules of length {max_length}; choose a smaller length"
            )
        self.graph = graph
        self.grains = tuple(Grain(grain) for grain in grains)
        self.max_length = max_length
        self.limit = limit
        self.seed = seed
        self._splits = tuple(splits)
        self._classes = classes
        self._forms = [
            FORMS[grain].with_classes(classes.words) if classes else FORMS[grain]
            for grain in self.grains
        ]
        self._n_codes = max(len(f.words) ** len(f.query_pairs(max_length)) for f in self._forms)

    @cached_property
    def edges(self) -> Edges:
        """The edges that are walked on."""
        index = self.graph.index(self._splits)
        start, end = known_ends(self.graph.start, self.graph.end)
        start, end = start[index.fact], end[index.fact]
        degrees = np.diff(index.offsets)
        source = np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)
        symbol = index.relation
        if self._symbols.constraints:
            numbers = self.graph.attributes
            steps = Steps(
                start,
                end,
                here={name: values[source] for name, values in numbers.items()},
                there={name: values[index.target] for name, values in numbers.items()},
            )
            symbol = self._symbols.of_edges(index.relation, steps)
        by_rank = np.lexsort((index.target, symbol)).astype(np.int32)  # stable: ties by edge
        rank = np.empty_like(by_rank)
        rank[by_rank] = np.arange(len(by_rank), dtype=np.int32)
        return Edges(
            offsets=index.offsets,
            relation=symbol,
            target=index.target,
            fact=index.fact,
            start=start,
            end=end,
            rank=rank,
            by_rank=by_rank,
            source=source,
            interval=self._intervals[0][index.fact],
        )

    @cached_property
    def _intervals(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """The number of each fact's interval, and the starts and ends of the distinct ones.

        Only words of one's own between intervals need them.
        """
        if self._classes is None:
            nothing = np.empty(0, np.int64)
            return np.zeros(len(self.graph), np.int32), nothing, nothing
        both = np.stack(known_ends(self.graph.start, self.graph.end), axis=1)
        distinct, number = np.unique(both, axis=0, return_inverse=True)
        return number.reshape(-1).astype(np.int32), distinct[:, 0].copy(), distinct[:, 1].copy()

    @cached_property
    def _class_table(self) -> NDArray[np.int8]:
        if self._classes is None:
            return np.empty((0, 0), np.int8)
        _, start, end = self._intervals
        return self._classes.table(start, end, start, end)

    def _words_between(self, queries: Queries) -> Classes:
        if self._classes is None:
            return Classes(len(TemporalRelation), self._class_table, np.empty((0, 0), np.int8))
        _, start, end = self._intervals
        of_query = self._classes.table(start, end, queries.start, queries.end)
        return Classes(
            len(self._classes.words), self._class_table, np.ascontiguousarray(of_query.T)
        )

    def between(
        self, subject: int, answer: int, *, fact: int = -1, most: int = 100_000
    ) -> tuple[list[tuple[Step, ...]], bool]:
        """All walks from one entity to another, without a fact that is not to be walked.

        Returns:
            The walks, in depth-first order, and whether these are all of them.
        """
        found, complete = walks_between(
            self.edges.offsets,
            self.edges.target,
            self.edges.fact,
            subject,
            answer,
            self.max_length,
            fact,
            most,
        )
        size = self._symbols.count // 2
        return [
            tuple(
                Step(int(self.edges.fact[edge]), bool(self.edges.relation[edge] >= size))
                for edge in walk
                if edge >= 0
            )
            for walk in found
        ], complete

    def cost(self, queries: QueryTable) -> tuple[NDArray[Any], NDArray[Any]]:
        """Each subject of the queries, and about how many steps its queries take."""
        subjects, counts = np.unique(queries.subject, return_counts=True)
        return subjects, self._steps_from[subjects] * (4 + counts) + 100

    @cached_property
    def _steps_from(self) -> NDArray[Any]:
        """About how many steps all walks from each entity take."""
        steps: NDArray[Any] = np.diff(self.edges.offsets).astype(np.float64)
        total: NDArray[Any] = np.minimum(steps, self.limit)
        for _ in range(1, self.max_length):
            steps = np.bincount(self.edges.source, steps[self.edges.target], len(steps))
            total = total + np.minimum(steps, self.limit)
        return total

    def find(self, queries: QueryTable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rules by which walks reach the answers: a row for each query and rule.

        Returns:
            Rows of form, length, head, relations, digits and code; and the weights of counts.
        """
        records, weights = self._walk(queries, NO_RULES, NO_TRIE, walking.FIND, _NO_STATISTICS)
        return records[:, :6], weights

    def tally(
        self, queries: QueryTable, rules: CompiledRules
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each rule: facts whose answer it reaches, facts where it applies, sum of α there."""
        statistics = np.zeros((len(rules.order), 3))
        _, weights = self._walk(queries, rules.kept, rules.trie, walking.TALLY, statistics)
        back = np.empty_like(statistics)
        back[rules.order] = statistics
        return back, weights

    def count(self, queries: QueryTable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Walks of all rules by end.

        Returns:
            Rows of query, form, length, relations, digits, code, end and count N_c; and the
            weights of counts.
        """
        return self._walk(queries, NO_RULES, NO_TRIE, walking.APPLY, _NO_STATISTICS)

    def apply(
        self, queries: QueryTable, rules: CompiledRules
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Walks of the given rules by end.

        Returns:
            Rows of query, rule, end and count N_c; and the weights of counts.
        """
        records, weights = self._walk(
            queries, rules.kept, rules.trie, walking.APPLY, _NO_STATISTICS
        )
        records = records[:, [0, 3, 6, 7]]
        records[:, 1] = rules.order[records[:, 1]]
        return records, weights

    def checksum(self, queries: QueryTable) -> NDArray[Any]:
        """Walks of all rules by end, not kept: rows, rules, walks, sum of squared α."""
        sums = np.zeros((1, 4))
        self._walk(queries, NO_RULES, NO_TRIE, walking.APPLY, sums)
        return sums.reshape(-1)

    def compile(self, rules: Sequence[Rule]) -> CompiledRules:
        """Put rules into the order in which kernels look them up.

        Raises:
            TilpError: a rule is of none of the walker's forms, is too long, or names a relation
                that the graph does not have.
        """
        return self.compile_rows(
            np.array([self._encode(rule) for rule in rules], np.int64).reshape(-1, 6)
        )

    def compile_rows(self, rows: NDArray[np.int64]) -> CompiledRules:
        """The same for rules that are rows of `find`, each once."""
        order = np.lexsort(rows[:, [5, 2, 4, 3, 1, 0]].T)
        rows = rows[order]
        bodies, begin = np.unique(rows[:, [0, 1, 3, 4]], axis=0, return_index=True)
        first = np.zeros((len(self.grains), MAX_LENGTH + 2), np.int64)
        for form in range(len(self.grains)):
            for length in range(MAX_LENGTH + 2):
                before = (bodies[:, 0] < form) | ((bodies[:, 0] == form) & (bodies[:, 1] < length))
                first[form, length] = before.sum()
        kept = Kept(
            first=first,
            relations=bodies[:, 2].copy(),
            digits=bodies[:, 3].copy(),
            begin=np.append(begin, len(rows)).astype(np.int64),
            head=rows[:, 2].astype(np.int32),
            code=rows[:, 5].astype(np.int32),
        )
        return CompiledRules(kept, self._trie(np.unique(rows[:, [1, 3]], axis=0)), order)

    def lift(self, record: Sequence[int]) -> Rule:
        """The rule that a row of `find` stands for (eq. 1)."""
        form, length, head, relations, digits, code = (int(number) for number in record)
        constraints = list(self._forms[form].constraints(length, digits, code))
        body = []
        for place, symbol in enumerate(self._unpack(length, relations), start=1):
            relation, words = self._symbols.unpack(symbol, place)
            body.append(self._atoms[relation])
            constraints += words
        return Rule(self._atoms[head], tuple(body), tuple(constraints))

    def _unpack(self, length: int, relations: int) -> list[int]:
        """The symbols of a body, first to last, from the number that stands for them."""
        base = self._symbols.count
        return [relations // base**place % base for place in reversed(range(length))]

    @cached_property
    def _atoms(self) -> list[Atom]:
        """The atom of each directed relation."""
        names = list(self.graph.relations)
        return [Atom(name, inverse) for inverse in (False, True) for name in names]

    def _encode(self, rule: Rule) -> tuple[int, int, int, int, int, int]:
        if rule.length > self.max_length:
            raise TilpError(f"{rule} is longer than {self.max_length}")
        words, rest = self._symbols.split(rule.constraints)
        nothing = [None] * len(self._symbols.constraints)
        relations = 0
        for place, atom in enumerate(rule.body, start=1):
            symbol = self._symbols.pack(self._relation(atom), words.get(place, nothing))
            relations = relations * self._symbols.count + symbol
        for number, form in enumerate(self._forms):
            codes = form.codes(rule.length, rest)
            if codes is not None:
                return number, rule.length, self._relation(rule.head), relations, *codes
        raise TilpError(f"{rule} is of none of the grains {', '.join(self.grains)}")

    def _relation(self, atom: Atom) -> int:
        number = self.graph.relations.find(atom.relation)
        return number + atom.inverse * len(self.graph.relations)

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

    def _walk(
        self,
        queries: QueryTable,
        kept: Kept,
        trie: Trie,
        purpose: int,
        statistics: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        # Queries that share counts stand together.
        heads = queries.head if len(kept.relations) else np.zeros_like(queries.head)
        order = np.lexsort((queries.end, queries.start, heads, queries.subject))
        subjects, begin = np.unique(queries.subject[order], return_index=True)
        table = Queries(
            subject=subjects.astype(np.int32),
            begin=np.append(begin, len(order)).astype(np.int64),
            head=queries.head[order],
            fact=queries.fact[order],
            start=queries.start[order],
            end=queries.end[order],
            answer=queries.answer[order],
        )
        records, weights = walking.walk(
            self.edges,
            self._words_between(table),
            trie,
            table,
            kept,
            np.array([_KINDS.get(grain, walking.NONE) for grain in self.grains], np.int32),
            np.array([_WORDS.get(grain, counting.CLASSES) for grain in self.grains], np.int32),
            self._symbols.count,
            self.max_length,
            self.limit,
            self.seed,
            purpose,
            statistics,
            Space.of(self._n_codes, len(self.graph.entities), len(self.graph)),
        )
        back = np.empty_like(weights)
        back[order] = weights
        if purpose == walking.APPLY:
            records[:, 0] = order[records[:, 0]]
        return records, back
