"""Training examples: for every query and rule, how many of the rule's walks end where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Ids, Indices, Mask
from tilp._utils.random import keyed_uniform
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning.candidates import KNOWN_KINDS, Mark, known_answers
from tilp.parallel import Workers
from tilp.time import FAR, known_ends
from tilp.walks import CompiledRules, Walker, chunks_by
from tilp.walks.walker import CHUNK_STEPS

_MIN_OTHER_EDGES = 2
_KNOWN_BYTES = 20  # that a known answer of a query takes, with copies on the way
_COUNTS = ("at_answer", "excluded", "at_known", "at_others")


@dataclass(frozen=True)
class TrainingExamples:
    """Walk counts by query and rule, as columns; examples of one query are together.

    Of a rule's N walks for a query, N_o end at the answer, N_K at other known answers that hold
    at the same time and are excluded, some at answers that are known at other times, and the rest
    elsewhere. A rule with N = N_K gives no example.
    """

    queries: QueryTable  # the queries, in the order of the examples
    answer_kind: NDArray[
        np.int8
    ]  # index in `KNOWN_KINDS` of each query's answer; -1 if it is not known
    offsets: Indices  # where the examples of each query begin, and where the last end
    rule: Ids  # rule of each example
    at_answer: NDArray[np.float32]  # N_o
    excluded: NDArray[np.float32]  # N_K
    at_known: NDArray[np.float32]  # walks that end at answers known at other times, by kind
    at_others: NDArray[np.float32]  # the rest of N

    def __len__(self) -> int:
        return len(self.rule)

    def of_rules(self, mask: Mask) -> TrainingExamples:
        """Return the examples of some of the rules, which are numbered anew."""
        new_rule = np.cumsum(mask, dtype=np.int32) - np.int32(1)
        selected = mask[self.rule]
        offsets = np.append(0, np.cumsum(selected))[self.offsets]
        columns = {name: getattr(self, name)[selected] for name in _COUNTS}
        return replace(self, offsets=offsets, rule=new_rule[self.rule[selected]], **columns)

    def select(self, queries: Mask) -> TrainingExamples:
        """Return the examples of some of the queries."""
        sizes = np.diff(self.offsets)
        mask = np.repeat(queries, sizes)
        columns = ("rule", *_COUNTS)
        return TrainingExamples(
            self.queries[queries],
            self.answer_kind[queries],
            np.append(0, np.cumsum(sizes[queries])),
            *(getattr(self, name)[mask] for name in columns),
        )


def forecast_queries(graph: TemporalGraph, facts: Indices, seed: int) -> QueryTable:
    """Return facts as queries in both directions whose evidence ends some time before them.

    How long before is drawn from what the facts of valid have, which may start long after train,
    and from as much again after valid: queries to come start there.
    """
    queries = QueryTable.of_facts(graph, facts, walked=True)
    start = known_ends(graph.start, graph.end)[0]
    parts = (start[graph.span(split)] for split in ("train", "valid"))
    train, valid = (part[np.abs(part) < FAR] for part in parts)
    if not len(valid) or not len(train):
        return queries.only_earlier()
    lags = np.maximum(valid - 1 - train.max(), 0)
    lags = np.sort(np.concatenate([lags, lags + max(int(valid.max() - train.max()), 0)]))
    # Another seed than that of folds: all of these have the same lags.
    lag = lags[(keyed_uniform(seed + 2, queries.fact) * len(lags)).astype(np.int64)]
    dated = np.abs(queries.start) < FAR
    return replace(queries, latest=np.where(dated, queries.start - 1 - lag, queries.latest))


def training_queries(
    graph: TemporalGraph, facts: Indices, walker: Walker | None = None
) -> QueryTable:
    """Return training facts as queries in both directions, without untypical ones.

    Without its own fact, a training query often leaves an end with no other edge; held-out facts
    nearly always leave two or more. So only queries that leave two are learned from, unless there
    are none, as in a sparse graph. Where only earlier facts are evidence, all are typical.
    """
    if walker is not None and walker.only_earlier:
        return forecast_queries(graph, facts, walker.seed)
    queries = QueryTable.of_facts(graph, facts, walked=True)
    degree = np.diff(graph.index(("train",)).offsets)
    min_degree = _MIN_OTHER_EDGES + 1  # with the query's own edge
    typical = (degree[queries.subject] >= min_degree) & (degree[queries.answer] >= min_degree)
    return queries[typical] if typical.any() else queries


def make_training_examples(
    walker: Walker, queries: QueryTable, rules: CompiledRules, workers: Workers, *, seed: int = 0,
    chunk_steps: float = CHUNK_STEPS, progress: Callable[[float], None] | None = None,
) -> TrainingExamples:  # fmt: skip
    """Apply rules to queries with answers, and count ends; `seed` draws instants to exclude."""
    chunks = chunks_by(walker, queries, queries.subject, chunk_steps=chunk_steps)
    parts = [np.empty((0, 3 + Mark.EXCLUDED + 1), np.int32)]
    kinds = [np.empty(0, np.int8)]
    n_done = 0
    counted = workers.map(partial(_count, walker, rules, seed, workers.block_bytes), chunks)
    for index, (rows, answer_kind) in enumerate(counted):
        rows[:, 0] += n_done
        parts.append(rows)
        kinds.append(answer_kind)
        n_done += len(chunks[index])
        if progress is not None:
            progress((index + 1) / len(chunks))

    def column(which: int | slice, dtype: type = np.float32) -> NDArray[Any]:
        columns = [part[:, which] for part in parts]
        return np.concatenate(columns, dtype=dtype, casting="unsafe")

    known = 3 + Mark.KNOWN
    return TrainingExamples(
        queries=QueryTable.join(chunks or [queries]),
        answer_kind=np.concatenate(kinds),
        offsets=np.searchsorted(column(0, np.int32), np.arange(len(queries) + 1)).astype(np.int64),
        rule=column(1, np.int32),
        at_answer=column(3 + Mark.ANSWER),
        excluded=column(3 + Mark.EXCLUDED),
        at_known=column(slice(known, known + len(KNOWN_KINDS))),
        at_others=column(2),
    )


def _count(
    walker: Walker, rules: CompiledRules, seed: int, block_bytes: float, queries: QueryTable
) -> tuple[Ids, NDArray[np.int8]]:
    """Return rows of query, rule, walks to others and by mark; and the kind of each answer."""
    index = walker.graph.index(("train",))
    begin, end = index.edge_ranges(queries.subject, queries.directed_relation)
    answer_kind = np.empty(len(queries), np.int8)
    parts = []
    for block in walker.blocks(queries, rules, block_bytes, _KNOWN_BYTES * (end - begin)):
        known = known_answers(walker.graph, queries[block], instant_seed=seed)
        marks = known.offsets, known.entity, known.mark
        rows = walker.count_marked(queries[block], rules, *marks)
        rows[:, 0] = block[rows[:, 0]]
        has_others = rows[:, 2] > rows[:, 3 + Mark.EXCLUDED]
        rows[:, 2] -= rows[:, 3:].sum(axis=1)
        answer_kind[block] = known.answer_kind
        parts.append(rows[has_others].astype(np.int32))
    joined = np.concatenate(parts)
    return joined[np.argsort(joined[:, 0], kind="stable")], answer_kind
