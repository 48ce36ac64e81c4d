"""`Walker`: constrained walks over the edges of a graph, for many queries at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels import types as kernels
from tilp._kernels.search import find_rules
from tilp._kernels.types import Edges
from tilp._kernels.walk import ENDS, MARKED, RULE_ENDS, walk
from tilp._utils.arrays import (
    Floats,
    Ids,
    Ints,
    ranges_to_indices,
    read_only,
    read_only_tuple,
    split_by_sum,
)
from tilp.errors import TilpError
from tilp.graph import EdgeIndex, PreparedEdges, QueryTable, TemporalGraph
from tilp.graph.index import remaining_edges
from tilp.parallel import split_by_cost
from tilp.rules import FORMS, Rule, TemporalForm
from tilp.time import gap_classes, known_ends
from tilp.types import Grain
from tilp.walks.encoding import MAX_LENGTH, NO_RULES, NO_TRIE, CompiledRules, RuleEncoding

DEFAULT_LIMIT = 1_000_000
"""Steps of one length from one entity, past which walks are sampled."""

CHUNK_STEPS = 1e6
"""Steps of a chunk of queries: enough for its overhead not to matter."""

_MAX_CHUNKS = 1024
_BODY_PAIRS = {Grain.ADJACENT: kernels.ADJACENT_PAIRS, Grain.PAIRS: kernels.ALL_PAIRS}
_CODE_TYPES = {
    Grain.ALLEN: kernels.ALLEN_CODES,
    Grain.GAP: kernels.GAP_CODES,
    Grain.STATIC: kernels.NO_CODES,
}
_MIN_SLOTS = 1 << 18  # that are counted in at once; more of them would not stay in the CPU cache
_MIN_SEARCH = 5_000  # walks of one length; it takes fewer of them to find rules than to count them
_STEPS_OF_ALL = 50_000  # about as many as the rules of one relation take of one length
_RECORD_BYTES = 200  # that a record of a query and a rule takes, with copies on the way
_NO_MARKS = kernels.Marks(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int8))


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a walk: a fact, perhaps read from object to subject."""

    fact: int
    inverse: bool


class Walker:
    """Walks over the edges of some splits of a graph, up to a length, in some temporal forms.

    Where walks of one length from one entity would take more steps than the limit, prefixes are
    sampled, all with the same chance. Methods return, for each query and length, the *weight* of a
    counted walk: 1 where the count is exact, else the factor that makes it an unbiased estimate.
    Arriving rates are of walks of one length, so the weights cancel in them.

    Args:
        graph: the graph.
        grains: the temporal forms; likewise `max_length`, `limit`, `seed`, see `MiningSettings`.
        splits: whose facts are walked on.
        only_earlier: whether only facts that start before a query are walked on for it, whose
            later ends are not known; see `QueryTable.only_earlier`.
        distinct: whether the entities of a walk all differ. A walk that comes back to an entity
            says what a shorter one says; the paper allows it, and forbids only to use a fact twice.
        gap_edges: the least gap of each class, ascending from 1; by default those of 0.1.

    >>> import tilp
    >>> Walker(tilp.datasets.world(seed=0, size=1_000).graph, max_length=1).max_length
    1
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
        only_earlier: bool = False,
        distinct: bool = True,
        gap_edges: Sequence[int] = (),
    ) -> None:
        if not 1 <= max_length <= MAX_LENGTH:
            raise TilpError(f"the length of rules is {max_length}; it can be 1 to {MAX_LENGTH}")
        if (2 * len(graph.relations)) ** max_length >= 2**62:
            raise TilpError(
                f"{len(graph.relations):,} relations are too many for rules of length "
                f"{max_length}; choose a smaller length"
            )
        self.graph, self.distinct, self.only_earlier = graph, distinct, only_earlier
        self.max_length, self.limit, self.seed = max_length, limit, seed
        self.grains = tuple(Grain(grain) for grain in grains)
        self._splits = tuple(splits)
        self.gap_edges, gaps = gap_classes(tuple(gap_edges), graph.unit)
        every = {**FORMS, Grain.GAP: replace(FORMS[Grain.GAP], query_relations=gaps)}
        forms = tuple(every[grain] for grain in self.grains)
        self.encoding = RuleEncoding(graph.relations, forms, max_length)
        self._n_codes = max(
            len(form.query_relations) ** len(form.query_pairs(max_length)) for form in forms
        )

    @cached_property
    def edges(self) -> kernels.Edges:
        """The edges that are walked on."""
        index = self.graph.index(self._splits)
        if index.prepared is not None:
            return prepared_edges(index, index.prepared)
        return build_edges(index, self.graph.start, self.graph.end)

    def without(self, facts: Iterable[int]) -> Walker:
        """Return the same walker on the graph without some facts, given by id.

        Compiled rules serve both.
        """
        excluded = np.fromiter(facts, np.int64)
        edges = self.edges  # before the copy, which takes over what this computes
        other = copy(self)
        for name in ("_inverse", "steps_from"):
            vars(other).pop(name, None)
        other.graph = self.graph.without(excluded)
        other.edges = edges_without(edges, self.graph.rows_after_removal(excluded))
        return other

    @cached_property
    def _inverse(self) -> Ids:
        """The inverse of each edge."""
        prepared = self.graph.index(self._splits).prepared
        return inverse_edges(self.edges.fact) if prepared is None else prepared.inverse

    def prepare_search(self) -> None:
        """Compute what `find` needs, before several threads need it at once."""
        self._inverse  # noqa: B018

    def __getstate__(self) -> dict[str, Any]:
        # What every walk needs is computed here, once, and what none needs is not sent.
        self.edges  # noqa: B018
        return {name: value for name, value in vars(self).items() if name != "steps_from"}

    def with_evidence(self, queries: QueryTable) -> QueryTable:
        """Return queries with dates, with the latest start of facts that are evidence for each."""
        return queries.only_earlier() if self.only_earlier else queries

    def steps(self, walk: NDArray[Any]) -> tuple[Step, ...]:
        """Return the steps of a walk, given by its edges."""
        inverse = self.edges.relation[walk] >= self.encoding.n_directed // 2
        return tuple(map(Step, self.edges.fact[walk].tolist(), inverse.tolist()))

    def cost(self, entity: Ids) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the distinct ones of queries' entities, and about how many steps each takes."""
        distinct, counts = np.unique(entity, return_counts=True)
        return distinct, self.steps_from[distinct] * (4 + counts) + 100

    @cached_property
    def steps_from(self) -> NDArray[Any]:
        """About how many steps all walks from each entity take."""
        steps: NDArray[Any] = np.diff(self.edges.offsets).astype(np.float64)
        most = max(self.limit, _STEPS_OF_ALL)
        total: NDArray[Any] = np.minimum(steps, most)
        for _ in range(1, self.max_length):
            steps = sum_over_targets(self.edges, steps)
            total = total + np.minimum(steps, most)
        return total

    def find(self, queries: QueryTable) -> tuple[Ints, Ints]:
        """Find the rules by which walks reach the answers of queries.

        Returns the row of each rule, as in `RuleEncoding`, and the number of queries whose answer
        it reaches. Of each query at most a tenth of `limit` walks of each length are read.
        """
        return self._find(queries, self.encoding.forms)

    def find_both_directions(self, queries: QueryTable) -> tuple[Ints, Ints]:
        """Find rules where every query also stands for its fact queried from the other end.

        Walks from there are the same, read backwards. A rule that is found in both directions has
        two rows.
        """
        # The gap of the last interval is that of the first one when read backwards.
        gap = self.grains.index(Grain.GAP) if Grain.GAP in self.grains else -1
        last_gap = [self.encoding.forms[gap]] if gap >= 0 else []
        rows, support = self._find(queries, [*self.encoding.forms, *last_gap])
        direct = rows[:, 0] < len(self.encoding.forms)
        turned = rows[:, 0] != gap
        backwards = self.encoding.mirrored(rows[turned], gap)
        support = np.concatenate([support[direct], support[turned]])
        return np.concatenate([rows[direct], backwards]), support

    def _find(self, queries: QueryTable, forms: Sequence[TemporalForm]) -> tuple[Ints, Ints]:
        queries = queries[np.argsort(queries.answer, kind="stable")]
        answers, begin = np.unique(queries.answer, return_index=True)
        table = _grouped(answers, begin, queries)
        n_entities, n_edges = len(self.graph.entities), len(self.edges.fact)
        arrays = np.zeros((self.max_length, n_entities)), np.zeros(n_entities, np.int64)
        space = kernels.SearchWorkspace(*arrays, np.empty(n_edges, np.int64))
        return find_rules(
            self.edges, self._inverse, table, *_describe_forms(forms), self.gap_edges,
            len(self.encoding.forms), self.encoding.n_directed, self.max_length, self.distinct,
            max(min(self.limit, _MIN_SEARCH), self.limit // 10), self.seed, space,
        )  # fmt: skip

    def blocks(
        self, queries: QueryTable, rules: CompiledRules, block_bytes: float,
        more_bytes: NDArray[Any] | float = 0.0,
    ) -> list[Ints]:  # fmt: skip
        """Return the indices of queries in blocks of bounded memory, in the order of walks.

        `more_bytes` are what each query takes beside the records of the rules of its relation.
        """
        columns = (queries.end, queries.start, queries.directed_relation, queries.subject)
        n_rules = np.bincount(rules.index.directed_relation, minlength=self.encoding.n_directed)
        size = _RECORD_BYTES * n_rules[queries.directed_relation] + more_bytes
        order = np.lexsort(columns)
        return split_by_sum(order, size[order], block_bytes)

    def tally(
        self, queries: QueryTable, rules: CompiledRules, block_bytes: float = np.inf
    ) -> tuple[Floats, Floats]:
        """Return support, body support and the sum of arriving rates of each rule, and weights."""
        sums = np.zeros((3, len(rules.order)))
        weights = np.empty((len(queries), self.max_length + 1))
        for block in self.blocks(queries, rules, block_bytes):
            part, n = queries[block], len(block)
            marks = kernels.Marks(np.arange(n + 1), part.answer, np.zeros(n, np.int8))
            records, weights[block] = self._walk(part, rules.index, rules.trie, MARKED, marks)
            rule, walks, at_answer = rules.order[records[:, 1]], records[:, 2], records[:, 3]
            # Added one after the other, so that blocks do not change the sums.
            np.add.at(sums[2], rule, at_answer / walks)
            sums[:2] += [np.bincount(rule, of, sums.shape[1]) for of in (at_answer > 0, None)]
        return sums.T, weights

    def count(self, queries: QueryTable) -> tuple[Ints, Floats]:
        """Count the walks of all rules by end.

        Returns rows of query, form, length, relations, digits, code, end and count; and weights.
        """
        records, weights = self._walk(queries, NO_RULES, NO_TRIE, ENDS)
        return records[:, :8], weights

    def apply(self, queries: QueryTable, rules: CompiledRules) -> tuple[Ints, Floats]:
        """Return rows of query, rule, end and count N_c of the given rules; and weights."""
        records, weights = self._walk(queries, rules.index, rules.trie, RULE_ENDS)
        records[:, 1] = rules.order[records[:, 1]]
        return records, weights

    def count_marked(
        self, queries: QueryTable, rules: CompiledRules, offsets: Ints,
        entity: Ids, mark: NDArray[np.int8],
    ) -> Ints:  # fmt: skip
        """Return rows of query, rule, walks, and walks that end at each kind of marked candidate.

        The marked candidates of each query stand at `offsets`, each once; `mark` is their kind.
        """
        marks = kernels.Marks(offsets, entity, mark)
        records, _ = self._walk(queries, rules.index, rules.trie, MARKED, marks)
        records[:, 1] = rules.order[records[:, 1]]
        return records

    def compile(self, rules: Sequence[Rule]) -> CompiledRules:
        """Put rules into the order in which kernels look them up."""
        return self.encoding.compiled(self.encoding.encode(rules))

    def _walk(
        self, queries: QueryTable, index: kernels.RuleIndex, trie: kernels.Trie, purpose: int,
        marks: kernels.Marks = _NO_MARKS,
    ) -> tuple[Ints, Floats]:  # fmt: skip
        # Queries that share walks stand together; without rules, those of all relations do.
        relation = queries.directed_relation * (len(index.relations) > 0)
        columns = (queries.subject, relation, queries.latest)
        order = np.lexsort((queries.end, queries.start, *columns[::-1]))
        shared = np.column_stack(columns)[order]
        new = (shared[1:] != shared[:-1]).any(axis=1)
        begin = np.flatnonzero(np.append(True, new)[: len(shared)])
        table = _grouped(shared[begin, 0].astype(np.int32), begin, queries[order])
        # Zeros on pages that are not used cost nothing.
        sizes = max(_MIN_SLOTS, 2 * self._n_codes), len(self.graph.entities), len(self.graph)
        space = kernels.Workspace(*(np.zeros(size, np.int32) for size in sizes))
        records, weights = walk(
            self.edges, trie, table, index, *_describe_forms(self.encoding.forms), self.gap_edges,
            self.encoding.n_directed, self.max_length,
            self.distinct, self.limit, self.seed, purpose, _reorder_marks(marks, order), space,
        )  # fmt: skip
        by_query = np.empty_like(weights)
        by_query[order] = weights
        records[:, 0] = order[records[:, 0]]
        return records, by_query


def _grouped(entity: Ids, begin: Ints, queries: QueryTable) -> kernels.GroupedQueries:
    offsets = np.append(begin, len(queries)).astype(np.int64)
    columns = ("subject", "directed_relation", "fact", "start", "end", "latest")
    return kernels.GroupedQueries(entity, offsets, *(getattr(queries, name) for name in columns))


def _describe_forms(forms: Sequence[TemporalForm]) -> tuple[Ids, Ids]:
    """Return which pairs the bodies of each form distinguish, and what its codes consist of."""
    body_pairs = [_BODY_PAIRS.get(form.grain, kernels.NO_PAIRS) for form in forms]
    code_types = [_CODE_TYPES.get(form.grain, kernels.CLASS_CODES) for form in forms]
    return np.array(body_pairs, np.int32), np.array(code_types, np.int32)


def _reorder_marks(marks: kernels.Marks, order: Ints) -> kernels.Marks:
    """Return the marks of queries that are put into another order."""
    if not len(marks.offsets):
        return marks
    offsets, indices = ranges_to_indices(marks.offsets[:-1][order], marks.offsets[1:][order])
    return kernels.Marks(offsets, marks.entity[indices], marks.mark[indices])


def chunks_by(
    walker: Walker, queries: QueryTable, entity: Ids, *,
    chunk_steps: float = CHUNK_STEPS,
) -> list[QueryTable]:  # fmt: skip
    """Cut queries into chunks of about the same cost, those with the same entity together.

    `entity` is where the walks of each query begin: its subject, or its answer. A chunk takes at
    least `chunk_steps`; there are at most 1,024 chunks.
    """
    order = np.argsort(entity, kind="stable")
    distinct, cost = walker.cost(entity)
    begin = np.append(np.searchsorted(entity[order], distinct), len(order))
    parts = split_by_cost(cost, min(_MAX_CHUNKS, 1 + int(cost.sum() / chunk_steps)))
    return [queries[order[begin[part.start] : begin[part.stop]]] for part in parts]


def edges_without(edges: Edges, new_fact: Ids) -> Edges:
    """Return edges in the same order, given each fact's new id, ascending; -1: left out."""
    mask, offsets, fact = remaining_edges(edges.offsets, edges.fact, new_fact)
    new_edge = np.cumsum(mask, dtype=np.int32) - np.int32(1)
    by_rank = new_edge[edges.by_rank[mask[edges.by_rank]]]
    columns = ("relation", "target", "start", "end", "source")
    remaining = {name: getattr(edges, name)[mask] for name in columns}
    rank = _inverse_permutation(by_rank)
    new = Edges(offsets=offsets, fact=fact, rank=rank, by_rank=by_rank, **remaining)
    return read_only_tuple(new)  # as before, so that the same compiled kernel serves both


def prepared_edges(index: EdgeIndex, prepared: PreparedEdges) -> Edges:
    """Return edges of which everything was computed in advance."""
    edges = Edges(
        index.offsets, index.relation, index.target, index.fact, prepared.start, prepared.end,
        prepared.rank, prepared.by_rank, prepared.source,
    )  # fmt: skip
    return read_only_tuple(edges)


def build_edges(index: EdgeIndex, start: Ints, end: Ints) -> Edges:
    """Compute all that walks need of edges, given the dates of facts."""
    start, end = (times[index.fact] for times in known_ends(start, end))
    degrees = np.diff(index.offsets)
    source = np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)
    by_rank = np.lexsort((index.target, index.relation)).astype(np.int32)  # stable: ties by edge
    built = Edges(
        index.offsets, index.relation, index.target, index.fact, start, end,
        _inverse_permutation(by_rank), by_rank, source,
    )  # fmt: skip
    return read_only_tuple(built)


def _inverse_permutation(order: Ids) -> Ids:
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order), dtype=np.int32)
    return inverse


def inverse_edges(fact: Ids) -> Ids:
    """Return the inverse of each edge, which is the other one with the same fact."""
    pairs = np.argsort(fact, kind="stable").reshape(-1, 2)
    inverse = np.empty(len(fact), np.int32)
    inverse[pairs[:, 0]], inverse[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return read_only(inverse)


def sum_over_targets(
    edges: Edges, values: NDArray[Any], *, edges_at_once: int = 1_000_000
) -> NDArray[Any]:
    """Return, for each entity, the sum of the values of its edges' targets, in bounded memory."""
    sums = np.zeros(len(values))
    first = 0
    while first < len(values):
        most = edges.offsets[first] + edges_at_once
        last = max(int(np.searchsorted(edges.offsets, most, side="right")) - 1, first + 1)
        part = slice(edges.offsets[first], edges.offsets[last])
        source = edges.source[part] - np.int32(first)
        sums[first:last] = np.bincount(source, values[edges.target[part]], last - first)
        first = last
    return sums
