"""Candidates that are already known as answers of a query's subject and relation, at other times.

A query's other known answers must not count against a rule that reaches them, and whether an
answer comes again at another time is a question of its own, with its own factor for each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tilp.chances import chances
from tilp.graph import QueryTable, TemporalGraph
from tilp.intervals import known_ends
from tilp.spans import places_in

__all__ = ["KINDS", "KnownAnswers", "Mark", "known_answers"]

KINDS = ("before", "after", "meeting", "touching")
"""How the interval at which a candidate is known lies to the query's; of several, the last."""


class Mark(IntEnum):
    """What a marked candidate of a query is; past the last kind of known ones, out of the count."""

    ANSWER = 0
    KNOWN = 1
    LEFT_OUT = 1 + len(KINDS)


@dataclass(frozen=True)
class KnownAnswers:
    """Marked candidates of queries, by query and entity.

    Attributes:
        begin: where the candidates of each query begin, and where the last end.
        entity: each candidate, ascending in each query.
        mark: what it is.
        answer_kind: the kind of known candidate that each answer is; -1: none.
    """

    begin: NDArray[np.int64]
    entity: NDArray[np.int32]
    mark: NDArray[np.int8]
    answer_kind: NDArray[np.int8]

    def at_the_time(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The candidates that are known at a time that meets or touches their query's.

        Returns:
            Where those of each query begin, and where the last end; and these.
        """
        there = self.mark >= Mark.KNOWN + KINDS.index("meeting")
        return np.append(0, np.cumsum(there))[self.begin], self.entity[there]


def known_answers(
    graph: TemporalGraph, queries: QueryTable, *, leave_out: int | None = None
) -> KnownAnswers:
    """Mark the answers of queries, and the candidates that train knows as other answers.

    Args:
        graph: its train split is what is known.
        queries: a query's own fact is not known to it.
        leave_out: a seed; an instant is drawn from each query's interval, and other answers that
            are known to hold at it are left out of the count.
    """
    index = graph.index(("train",))
    begin, edge = places_in(*index.spans(queries.subject, queries.head))
    query = np.repeat(np.arange(len(queries)), np.diff(begin))
    other = index.fact[edge] != queries.fact[query]
    query, edge = query[other], edge[other]
    fact, entity = index.fact[edge], index.target[edge]
    start, end = known_ends(graph.start[fact], graph.end[fact])
    is_answer = entity == queries.answer[query]
    mark = Mark.KNOWN + _kinds(start, end, queries.start[query], queries.end[query])
    if leave_out is not None:
        instant = _instants(graph, queries, leave_out)[query]
        holds = (start <= instant) & (instant <= end)
        mark = np.where(holds & ~is_answer, Mark.LEFT_OUT, mark)
    answer_kind = np.full(len(queries), -1, np.int8)
    np.maximum.at(answer_kind, query[is_answer], mark[is_answer].astype(np.int8) - Mark.KNOWN)
    asked = np.flatnonzero(queries.answer >= 0)
    query = np.concatenate([query[~is_answer], asked])
    entity = np.concatenate([entity[~is_answer], queries.answer[asked]])
    mark = np.concatenate([mark[~is_answer], np.full(len(asked), Mark.ANSWER)])
    order = np.lexsort((mark, entity, query))
    query, entity, mark = query[order], entity[order], mark[order]
    last = np.append((np.diff(query) != 0) | (np.diff(entity) != 0), True)[: len(query)]
    query, entity, mark = query[last], entity[last], mark[last]
    return KnownAnswers(
        np.searchsorted(query, np.arange(len(queries) + 1)).astype(np.int64),
        entity.astype(np.int32),
        mark.astype(np.int8),
        answer_kind,
    )


def _kinds(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    query_start: NDArray[np.int64],
    query_end: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The place in `KINDS` of each interval against a query's."""
    before, after = end < query_start, start > query_end
    meeting = ((end == query_start) & (start < query_start)) | (
        (start == query_end) & (end > query_end)
    )
    return np.select([before, after, meeting], [0, 1, 2], 3)


def _instants(graph: TemporalGraph, queries: QueryTable, seed: int) -> NDArray[np.int64]:
    """An instant of each query's interval, drawn from the times that are known in train.

    What is drawn depends on the query alone, not on those beside it.
    """
    known = graph.train_times
    if not len(known):
        return queries.start
    chance = chances(
        seed, queries.subject, queries.head, queries.answer, queries.start, queries.end
    )
    low = np.searchsorted(known, queries.start)
    high = np.maximum(np.searchsorted(known, queries.end, side="right"), low + 1)
    place = low + (chance * (high - low)).astype(np.int64)
    inside = known[np.minimum(place, len(known) - 1)]
    return np.clip(inside, queries.start, queries.end)
