"""`QueryTable`: queries as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import read_only
from tilp.graph.graph import TemporalGraph
from tilp.time import UNKNOWN, known_ends

__all__ = ["QueryTable"]


@dataclass(frozen=True)
class QueryTable:
    """Queries (subject, relation, ?, interval) as columns, in any order.

    Attributes:
        subject: where walks begin.
        head: the relation asked for; past the last relation its inverse.
        start: of the query interval; likewise `end`. Where one of them was not given the other
            stands for it, and where neither was, all of time.
        fact: the fact that the query was made from, which is not walked; -1 for none.
        answer: the known answer; -1 for none.
        unknown: two columns, whether the start and whether the end was not given; by default
            both were.
    """

    subject: NDArray[np.int32]
    directed_relation: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    fact: NDArray[np.int32]
    answer: NDArray[np.int32]
    unknown: NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, 2), np.bool_))

    def __post_init__(self) -> None:
        if not len(self.unknown):
            object.__setattr__(self, "unknown", np.zeros((len(self.subject), 2), np.bool_))

    @classmethod
    def from_columns(
        cls,
        subject: NDArray[np.int32],
        directed_relation: NDArray[np.int32],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        fact: NDArray[np.int32],
        answer: NDArray[np.int32],
    ) -> QueryTable:
        """Queries whose start or end may be `UNKNOWN`."""
        unknown = np.stack([start == UNKNOWN, end == UNKNOWN], axis=1)
        return cls(subject, directed_relation, *known_ends(start, end), fact, answer, unknown)

    @classmethod
    def of_facts(cls, graph: TemporalGraph, rows: NDArray[np.int64], *, walked: bool) -> QueryTable:
        """Facts asked in both directions: first all (s, r, ?, I), then all (o, r⁻¹, ?, I).

        Args:
            graph: whose facts.
            rows: the facts.
            walked: whether they are among the edges that are walked on, and so left out.
        """
        subject, object_ = graph.subject[rows], graph.object[rows]
        relation = graph.relation[rows]
        fact = np.where(walked, rows, -1).astype(np.int32)
        return cls.from_columns(
            subject=np.concatenate([subject, object_]),
            directed_relation=np.concatenate([relation, relation + np.int32(len(graph.relations))]),
            start=np.tile(graph.start[rows], 2),
            end=np.tile(graph.end[rows], 2),
            fact=np.tile(fact, 2),
            answer=np.concatenate([object_, subject]),
        )

    @classmethod
    def join(cls, tables: Sequence[QueryTable]) -> QueryTable:
        """The queries of several tables, one after the other."""
        columns = (
            np.concatenate([getattr(one, column.name) for one in tables]) for column in fields(cls)
        )
        return cls(*columns)

    def given_dates(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends as they were given, `UNKNOWN` among them."""
        no_start, no_end = self.unknown.T
        return np.where(no_start, UNKNOWN, self.start), np.where(no_end, UNKNOWN, self.end)

    def with_dates(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> QueryTable:
        """The same queries at other, known times."""
        return replace(self, start=start, end=end, unknown=np.zeros_like(self.unknown))

    def read_only(self) -> QueryTable:
        """The same queries, as columns that are not written to."""
        return QueryTable(*(read_only(getattr(self, column.name)) for column in fields(self)))

    def without_answers(self) -> QueryTable:
        """The same queries without their answers."""
        return replace(self, answer=np.full_like(self.answer, -1))

    def __len__(self) -> int:
        return len(self.subject)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> QueryTable:
        return QueryTable(*(getattr(self, column.name)[rows] for column in fields(self)))
