"""`QueryTable`: queries as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from tilp._utils.arrays import Ids, Ints, Mask, read_only
from tilp.graph.graph import TemporalGraph
from tilp.time import UNKNOWN, known_ends


@dataclass(frozen=True)
class QueryTable:
    """Queries (subject, relation, ?, interval) as columns, in any order.

    Attributes:
        subject: entity that the query starts from.
        directed_relation: relation of the query; `r + n_relations` is the inverse of `r`.
        start: of the query's interval; likewise `end`. If one date is missing the other stands for
            it, and if both are, all of time.
        fact: row of the fact that the query was made from, which walks leave out; -1 for none.
        answer: the known answer; -1 for none.
        unknown: two columns, whether start and end are missing; by default neither is.
    """

    subject: Ids
    directed_relation: Ids
    start: Ints
    end: Ints
    fact: Ids
    answer: Ids
    unknown: Mask = field(default_factory=lambda: np.empty((0, 2), np.bool_))

    def __post_init__(self) -> None:
        if not len(self.unknown):
            object.__setattr__(self, "unknown", np.zeros((len(self.subject), 2), np.bool_))

    @classmethod
    def from_columns(
        cls, subject: Ids, directed_relation: Ids, start: Ints, end: Ints, fact: Ids, answer: Ids
    ) -> QueryTable:
        """Return queries whose start or end may be `UNKNOWN`."""
        unknown = np.stack([start == UNKNOWN, end == UNKNOWN], axis=1)
        return cls(subject, directed_relation, *known_ends(start, end), fact, answer, unknown)

    @classmethod
    def of_facts(cls, graph: TemporalGraph, rows: Ints, *, walked: bool) -> QueryTable:
        """Return facts as queries in both directions: all (s, r, ?, I), then all (o, r⁻¹, ?, I).

        If walks see these facts, each query must leave its own out.
        """
        subject, relation, object_ = graph.subject[rows], graph.relation[rows], graph.object[rows]
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
        """Concatenate tables of queries."""
        names = (column.name for column in fields(cls))
        return cls(*(np.concatenate([getattr(table, name) for table in tables]) for name in names))

    def given_dates(self) -> tuple[Ints, Ints]:
        """Return starts and ends as given, missing ones as `UNKNOWN`."""
        no_start, no_end = self.unknown.T
        return np.where(no_start, UNKNOWN, self.start), np.where(no_end, UNKNOWN, self.end)

    def with_dates(self, start: Ints, end: Ints) -> QueryTable:
        """Return the same queries with other, known dates."""
        return replace(self, start=start, end=end, unknown=np.zeros_like(self.unknown))

    def read_only(self) -> QueryTable:
        """Return the same queries with read-only columns."""
        return QueryTable(*(read_only(getattr(self, column.name)) for column in fields(self)))

    def without_answers(self) -> QueryTable:
        """Return the same queries without their answers."""
        return replace(self, answer=np.full_like(self.answer, -1))

    def without_facts(self) -> QueryTable:
        """Return the same queries, as if their facts were not in the graph."""
        return replace(self, fact=np.full_like(self.fact, -1))

    def __len__(self) -> int:
        return len(self.subject)

    def __getitem__(self, rows: Ints | Mask) -> QueryTable:
        return QueryTable(*(getattr(self, column.name)[rows] for column in fields(self)))
