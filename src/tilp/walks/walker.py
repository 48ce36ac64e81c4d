"""`Walker`: constrained walks over the edges of a graph, for many queries at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels import count as counting
from tilp._kernels import walk as walking
from tilp._kernels.search import find_rules, walks_between
from tilp._kernels.types import (
    ADJACENT,
    ALL,
    NONE,
    Edges,
    IntervalClasses,
    Marks,
    QueriesByAnswer,
    QueriesBySubject,
    RuleIndex,
    SearchWorkspace,
    Trie,
    Workspace,
)
from tilp._utils.arrays import ranges_to_indices
from tilp.errors import TilpError
from tilp.graph import PreparedEdges, QueryTable, TemporalGraph
from tilp.parallel import cut_by_cost
from tilp.rules import FORMS, Rule, TemporalForm
from tilp.time import TemporalRelation, possible_intervals
from tilp.types import Grain
from tilp.walks.constraints import PairConstraint, StepConstraint, Symbols
from tilp.walks.edges import (
    ReadEdges,
    added_up,
    build_edges,
    edges_without,
    inverse_edges,
    prepared_edges,
    sum_over_targets,
)
from tilp.walks.encoding import MAX_LENGTH, NO_RULES, NO_TRIE, CompiledRules, RuleEncoding

DEFAULT_LIMIT = 1_000_000
"""Steps that one level of walks may take from one entity before it is thinned out."""

_KINDS = {Grain.ADJACENT: ADJACENT, Grain.PAIRS: ALL}
_WORDS = {Grain.ALLEN: counting.ALLEN, Grain.GAP: counting.GAP, Grain.STATIC: counting.NOTHING}

_KEYS = {walking.APPLY: 7, walking.MARK: 2}  # columns of records before those of counts
_FEWER_TO_FIND = 10
_NO_STATISTICS = np.zeros((0, 4))
NO_MARKS = Marks(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int8))


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a walk: a fact, perhaps read from object to subject."""

    fact: int
    inverse: bool


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
        every_reading: whether facts and queries of which an end is not known are walked in each
            of their `readings`; else the known end serves for both. A walk then counts for the
            rule of each reading. Rules are still found and tallied by one reading of each query.
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
        every_reading: bool = False,
    ) -> None:
        if not 1 <= max_length <= MAX_LENGTH:
            raise TilpError(f"the length of rules is {max_length}; it can be 1 to {MAX_LENGTH}")
        symbols = Symbols(2 * len(graph.relations), tuple(constraints))
        if symbols.count**max_length >= 2**62:
            raise TilpError(
                f"{len(graph.relations):,} relations (and the words of steps) are too many for "
                f"rules of length {max_length}; choose a smaller length"
            )
        self.graph = graph
        self.grains = tuple(Grain(grain) for grain in grains)
        self.max_length = max_length
        self.limit = limit
        self.seed = seed
        self.every_reading = every_reading
        self._splits = tuple(splits)
        self.classes = classes
        self.encoding = RuleEncoding(
            graph.relations,
            symbols,
            tuple(
                FORMS[grain].with_classes(classes.words) if classes else FORMS[grain]
                for grain in self.grains
            ),
            max_length,
        )
        self._n_codes = max(
            len(form.query_relations) ** len(form.query_pairs(max_length))
            for form in self.encoding.forms
        )

    @cached_property
    def edges(self) -> Edges:
        """The edges that are walked on."""
        if self._prepared is not None:
            return prepared_edges(self.graph.index(self._splits), self._prepared)
        interval = None if self.classes is None else self._intervals[0]
        return build_edges(self._read, self.encoding.symbols, self.graph.attributes, interval)

    @cached_property
    def _prepared(self) -> PreparedEdges | None:
        """What was made in advance of the edges, where they are walked as they are."""
        plain = not (self.every_reading or self.encoding.symbols.constraints or self.classes)
        return self.graph.index(self._splits).prepared if plain else None

    def without(self, facts: Iterable[int]) -> Walker:
        """The same walker on the graph without some facts; compiled rules are good for both.

        Intervals keep their numbers, so their words are not found again.

        Args:
            facts: their numbers.
        """
        gone = np.fromiter(facts, np.int64)
        edges = self.edges
        other = copy(self)
        for name in ("_read", "_prepared", "_inverse", "steps_from"):
            vars(other).pop(name, None)
        other.graph = self.graph.without(gone)
        other.edges = edges_without(edges, self.graph.rows_after_removal(gone))
        return other

    @cached_property
    def _read(self) -> ReadEdges:
        return ReadEdges.of(self.graph, self._splits, every=self.every_reading)

    @cached_property
    def _inverse(self) -> NDArray[np.int32]:
        """For each edge that of the same fact, in the same reading, the other way."""
        if self._prepared is not None:
            return self._prepared.inverse
        return inverse_edges(self._read.reading)

    def prepare_search(self) -> None:
        """Make what `find` needs, before several ask for it at once."""
        self._inverse  # noqa: B018

    def __getstate__(self) -> dict[str, Any]:
        # What every walk needs is made here, once, and what none needs stays.
        self.edges, self._class_table  # noqa: B018
        stays = {"_read", "steps_from"} | ({"_intervals"} if self.classes is None else set())
        return {name: value for name, value in vars(self).items() if name not in stays}

    @cached_property
    def _intervals(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """The number of each reading's interval, and the starts and ends of the distinct ones.

        Only words of one's own between intervals need them.
        """
        both = np.stack([self._read.start, self._read.end], axis=1)
        distinct, number = np.unique(both, axis=0, return_inverse=True)
        return number.reshape(-1).astype(np.int32), distinct[:, 0].copy(), distinct[:, 1].copy()

    @cached_property
    def _class_table(self) -> NDArray[np.int8]:
        if self.classes is None:
            return np.empty((0, 0), np.int8)
        _, start, end = self._intervals
        return self.classes.table(start, end, start, end)

    def _words_between(self, queries: QueriesBySubject | QueriesByAnswer) -> IntervalClasses:
        if self.classes is None:
            return IntervalClasses(
                len(TemporalRelation), self._class_table, np.empty((0, 0), np.int8)
            )
        _, start, end = self._intervals
        of_query = self.classes.table(start, end, queries.start, queries.end)
        return IntervalClasses(
            len(self.classes.words), self._class_table, np.ascontiguousarray(of_query.T)
        )

    def between(
        self, subject: int, answer: int, *, fact: int = -1, max_walks: int = 100_000
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
            max_walks,
        )
        size = self.encoding.symbols.count // 2
        walks = (
            tuple(
                Step(int(self.edges.fact[edge]), bool(self.edges.relation[edge] >= size))
                for edge in walk
                if edge >= 0
            )
            for walk in found
        )
        return list(dict.fromkeys(walks)), complete  # readings of a fact are the same step

    def cost(self, entity: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Each of the entities that queries are asked of, and about how many steps they take."""
        distinct, counts = np.unique(entity, return_counts=True)
        return distinct, self.steps_from[distinct] * (4 + counts) + 100

    @cached_property
    def steps_from(self) -> NDArray[Any]:
        """About how many steps all walks from each entity take."""
        steps: NDArray[Any] = np.diff(self.edges.offsets).astype(np.float64)
        total: NDArray[Any] = np.minimum(steps, self.limit)
        for _ in range(1, self.max_length):
            steps = sum_over_targets(self.edges, steps)
            total = total + np.minimum(steps, self.limit)
        return total

    def find(self, queries: QueryTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rules by which walks reach the answers of queries.

        At most a tenth of `limit` walks of each length are looked at for each query: it takes
        fewer to find rules than to count them.

        Returns:
            Rows of form, length, head, relations, digits and code, one for each rule; and the
            number of queries whose answer it reaches.
        """
        return self._find(queries, self.encoding.forms)

    def find_both_directions(
        self, queries: QueryTable
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same, where every query stands for its fact asked from the other end as well.

        Walks are the same from there, read backwards. A rule that is found both ways has two rows.

        Raises:
            TilpError: the rules of walks read backwards are not known from theirs, because of
                constraints of one's own.
        """
        if not self.can_mirror:
            raise TilpError("with constraints of one's own, ask each fact from both its ends")
        # What `gap` says of the last interval, it says of the first one when read backwards.
        gap = self.grains.index(Grain.GAP) if Grain.GAP in self.grains else -1
        last_gap = [self.encoding.forms[gap]] if gap >= 0 else []
        rows, support = self._find(queries, [*self.encoding.forms, *last_gap])
        direct = rows[:, 0] < len(self.encoding.forms)
        turned = rows[:, 0] != gap
        backwards = self.encoding.mirrored(rows[turned], gap)
        return (
            np.concatenate([rows[direct], backwards]),
            np.concatenate([support[direct], support[turned]]),
        )

    @property
    def can_mirror(self) -> bool:
        """Whether `find_both` can be used."""
        return self.classes is None and not self.encoding.symbols.constraints

    def _find(
        self, queries: QueryTable, forms: Sequence[TemporalForm]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        queries = queries[np.argsort(queries.answer, kind="stable")]
        answers, begin = np.unique(queries.answer, return_index=True)
        table = QueriesByAnswer(
            answer=answers,
            offsets=np.append(begin, len(queries)).astype(np.int64),
            subject=queries.subject,
            directed_relation=queries.directed_relation,
            fact=queries.fact,
            start=queries.start,
            end=queries.end,
        )
        return find_rules(
            self.edges,
            self._inverse,
            self._words_between(table),
            table,
            *_kinds_and_words(forms),
            len(self.encoding.forms),
            self.encoding.symbols.count,
            self.max_length,
            max(1, self.limit // _FEWER_TO_FIND),
            self.seed,
            SearchWorkspace.of(self.max_length, len(self.graph.entities), len(self.edges.fact)),
        )

    def tally(
        self, queries: QueryTable, rules: CompiledRules
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For each rule: facts whose answer it reaches, facts where it applies, sum of α there."""
        statistics = np.zeros((len(rules.order), 3))
        _, weights = self._walk(queries, rules.index, rules.trie, walking.TALLY, statistics)
        back = np.empty_like(statistics)
        back[rules.order] = statistics
        return back, weights

    def count(self, queries: QueryTable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Walks of all rules by end.

        Returns:
            Rows of query, form, length, relations, digits, code, end and count N_c; and the
            weights of counts.
        """
        records, weights = self._walk(queries, NO_RULES, NO_TRIE, walking.APPLY, _NO_STATISTICS)
        return records[:, :8], weights

    def apply(
        self, queries: QueryTable, rules: CompiledRules
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Walks of the given rules by end.

        Returns:
            Rows of query, rule, end and count N_c; and the weights of counts.
        """
        records, weights = self._walk(
            queries, rules.index, rules.trie, walking.APPLY, _NO_STATISTICS
        )
        records = records[:, [0, 3, 6, 7]]
        records[:, 1] = rules.order[records[:, 1]]
        return records, weights

    def count_marked(
        self,
        queries: QueryTable,
        rules: CompiledRules,
        begin: NDArray[np.int64],
        entity: NDArray[np.int32],
        mark: NDArray[np.int8],
    ) -> NDArray[np.int64]:
        """Walks of the given rules, and how many of them end at each kind of marked candidate.

        Args:
            queries: the queries.
            rules: the rules.
            begin: where the marked candidates of each query begin, and where the last end.
            entity: these, each once a query.
            mark: the number of each one's kind.

        Returns:
            Rows of query, rule, walks, and a count for each mark.
        """
        marks = Marks(begin, entity, mark)
        records, _ = self._walk(
            queries, rules.index, rules.trie, walking.MARK, _NO_STATISTICS, marks
        )
        records[:, 1] = rules.order[records[:, 1]]
        return records

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
        return self.encoding.compiled(self.encoding.encode(rules))

    def _walk(
        self,
        queries: QueryTable,
        kept: RuleIndex,
        trie: Trie,
        purpose: int,
        statistics: NDArray[np.float64],
        marks: Marks = NO_MARKS,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        asked = len(queries)
        number = np.arange(asked)
        if self.every_reading and purpose != walking.TALLY:
            number, start, end = possible_intervals(*queries.given_dates())
            queries, marks = queries[number].with_dates(start, end), _in_order(marks, number)
        # Queries that share counts stand together.
        heads = (
            queries.directed_relation
            if len(kept.relations)
            else np.zeros_like(queries.directed_relation)
        )
        order = np.lexsort((queries.end, queries.start, heads, queries.subject))
        subjects, begin = np.unique(queries.subject[order], return_index=True)
        table = QueriesBySubject(
            subject=subjects.astype(np.int32),
            offsets=np.append(begin, len(order)).astype(np.int64),
            directed_relation=queries.directed_relation[order],
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
            *_kinds_and_words(self.encoding.forms),
            self.encoding.symbols.count,
            self.max_length,
            self.limit,
            self.seed,
            purpose,
            _in_order(marks, order),
            statistics,
            Workspace.of(self._n_codes, len(self.graph.entities), len(self.graph)),
        )
        back = np.empty_like(weights)
        back[order] = weights
        if purpose != walking.TALLY:
            records[:, 0] = number[order[records[:, 0]]]
        if len(queries) > asked:
            records = added_up(records, _KEYS[purpose])
            back = back[np.searchsorted(number, np.arange(asked))]
        return records, back


def _kinds_and_words(forms: Sequence[TemporalForm]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """What bodies of each form look at, and what its codes are made of."""
    kinds = [_KINDS.get(form.grain, NONE) for form in forms]
    words = [_WORDS.get(form.grain, counting.CLASSES) for form in forms]
    return np.array(kinds, np.int32), np.array(words, np.int32)


def _in_order(marks: Marks, order: NDArray[np.int64]) -> Marks:
    """The marks of queries that are put into another order."""
    if not len(marks.offsets):
        return marks
    begin, place = ranges_to_indices(marks.offsets[:-1][order], marks.offsets[1:][order])
    return Marks(begin, marks.entity[place], marks.mark[place])


_CHUNK_STEPS = 1e6  # enough for the overhead of a chunk not to matter
_MOST_CHUNKS = 1024


def chunks_by(walker: Walker, queries: QueryTable, entity: NDArray[np.int32]) -> list[QueryTable]:
    """Queries with the same entity together, in chunks of about the same cost.

    Args:
        walker: knows what it costs to walk from an entity.
        queries: the queries.
        entity: of each query, where its walks begin: the subject, or the answer.
    """
    order = np.argsort(entity, kind="stable")
    distinct, cost = walker.cost(entity)
    begin = np.append(np.searchsorted(entity[order], distinct), len(order))
    parts = cut_by_cost(cost, min(_MOST_CHUNKS, 1 + int(cost.sum() / _CHUNK_STEPS)))
    return [queries[order[begin[part.start] : begin[part.stop]]] for part in parts]
