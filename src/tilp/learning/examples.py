"""Training entries: for every query and rule that fires, how many of its walks end where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tilp.graph import QueryTable, TemporalGraph
from tilp.learning.candidates import KNOWN_KINDS, Mark, known_answers
from tilp.parallel import Workers
from tilp.walks import CompiledRules, Walker, chunks_by


@dataclass(frozen=True)
class TrainingExamples:
    """Walks of queries by rule, as columns; entries of one query stand together.

    Of a rule's N walks, N_o end in the answer, N_K in other known answers that hold at the same
    time and are left out, some in candidates that are known at other times, the rest in others.
    A rule with N = N_K did not fire.

    Attributes:
        queries: in the order of the entries.
        answer_kind: the kind of known candidate that each query's answer is; -1: none.
        begin: where the entries of each query begin, and where the last end.
        rule: of each entry.
        at_answer: N_o.
        left_out: N_K.
        at_known: walks that end in candidates known at other times, by their kind.
        others: the rest of N.
    """

    queries: QueryTable
    answer_kind: NDArray[np.int8]
    offsets: NDArray[np.int64]
    rule: NDArray[np.int32]
    at_answer: NDArray[np.float32]
    excluded: NDArray[np.float32]
    at_known: NDArray[np.float32]
    at_others: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rule)

    def select(self, wanted: NDArray[np.bool_]) -> TrainingExamples:
        """The entries of some of the queries."""
        sizes = np.diff(self.offsets)
        kept = np.repeat(wanted, sizes)
        return TrainingExamples(
            queries=self.queries[wanted],
            answer_kind=self.answer_kind[wanted],
            offsets=np.append(0, np.cumsum(sizes[wanted])),
            **{
                name: getattr(self, name)[kept]
                for name in ("rule", "at_answer", "excluded", "at_known", "at_others")
            },
        )


def training_queries(graph: TemporalGraph, facts: NDArray[np.int64]) -> QueryTable:
    """Training facts in both directions, without those that a held-out fact is never like.

    With its own fact taken away, a training query often leaves an end without any other edge;
    held-out facts nearly always leave two or more. Only such queries are trained on, where there
    are any: in a few facts, or a sparse graph, there may be none.
    """
    queries = QueryTable.of_facts(graph, facts, walked=True)
    degree = np.diff(graph.index(("train",)).offsets)
    enough = _LEAST_EDGES + 1  # one of them is the query's own
    alike = (degree[queries.subject] >= enough) & (degree[queries.answer] >= enough)
    return queries[alike] if alike.any() else queries


_LEAST_EDGES = 2


def make_training_examples(
    walker: Walker,
    queries: QueryTable,
    rules: CompiledRules,
    workers: Workers,
    *,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> TrainingExamples:
    """Apply rules to queries, and keep what training needs to know.

    Args:
        walker: where to walk.
        queries: with their answers.
        rules: to apply.
        workers: do not change the result.
        seed: for the instant at which other known answers are left out.
        progress: called with the share that is done.
    """
    chunks = chunks_by(walker, queries, queries.subject)
    parts, kinds = [], []
    asked = 0
    counted = workers.map(partial(_count, walker, rules, seed), chunks)
    for number, (rows, answer_kind) in enumerate(counted):
        walks = rows[:, 2]
        rows = rows[walks > rows[:, 3 + Mark.EXCLUDED]]
        rows[:, 0] += asked
        parts.append(rows[np.argsort(rows[:, 0], kind="stable")].astype(np.int32))
        kinds.append(answer_kind)
        asked += len(chunks[number])
        if progress is not None:
            progress((number + 1) / len(chunks))
    rows = np.concatenate(parts) if parts else np.empty((0, 3 + Mark.EXCLUDED + 1), np.int32)
    query, rule, walks, counts = rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3:]
    return TrainingExamples(
        queries=QueryTable.join(chunks or [queries]),
        answer_kind=np.concatenate(kinds) if kinds else np.empty(0, np.int8),
        offsets=np.searchsorted(query, np.arange(len(queries) + 1)).astype(np.int64),
        rule=rule.astype(np.int32),
        at_answer=counts[:, Mark.ANSWER].astype(np.float32),
        excluded=counts[:, Mark.EXCLUDED].astype(np.float32),
        at_known=counts[:, Mark.KNOWN : Mark.KNOWN + len(KNOWN_KINDS)].astype(np.float32),
        at_others=(walks - counts.sum(axis=1)).astype(np.float32),
    )


def _count(
    walker: Walker, rules: CompiledRules, seed: int, queries: QueryTable
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Rows of query, rule, walks and counts by mark; and the kind that each answer is."""
    known = known_answers(walker.graph, queries, instant_seed=seed)
    rows = walker.count_marked(queries, rules, known.offsets, known.entity, known.mark)
    return rows, known.answer_kind
