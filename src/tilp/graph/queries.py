"""`QueryTable`: queries as columns, and `known_facts` that answer a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilp._utils.arrays import ColumnTable, Ids, Ints, Mask
from tilp.graph.graph import TemporalGraph
from tilp.time import FAR, OPEN_END, UNKNOWN, ends_as_of, known_ends


@dataclass(frozen=True)
class QueryTable(ColumnTable):
    """Queries (subject, relation, ?, interval) as columns, in any order.

    If one date is missing the other stands for it, and if both are, all of time.
    """

    subject: Ids  # entity that the query starts from
    directed_relation: Ids  # `r + n_relations` is the inverse of `r`
    start: Ints
    end: Ints
    fact: Ids  # row of the fact that the query was made from, which walks leave out; -1 for none
    answer: Ids  # the known one; -1 for none
    # Whether start and end are missing, two columns; by default neither is.
    unknown: Mask = field(default_factory=lambda: np.empty((0, 2), np.bool_))
    # No fact that starts later is evidence, and no later end is known.
    latest: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if not len(self.unknown):
            object.__setattr__(self, "unknown", np.zeros((len(self.subject), 2), np.bool_))
        if not len(self.latest):
            object.__setattr__(self, "latest", np.full(len(self.subject), OPEN_END))

    @classmethod
    def from_columns(
        cls, subject: Ids, directed_relation: Ids, start: Ints, end: Ints, fact: Ids, answer: Ids
    ) -> QueryTable:
        """Return queries whose start or end may be `UNKNOWN`."""
        unknown = np.stack([start == UNKNOWN, end == UNKNOWN], axis=1)
        return cls(subject, directed_relation, *known_ends(start, end), fact, answer, unknown)

    @classmethod
    def of_facts(cls, graph: TemporalGraph, rows: Ints, *, walked: bool) -> QueryTable:
        """Return facts as queries both ways: all (s, r, ?, I), then all (o, r⁻¹, ?, I)."""
        subject, relation, object_ = graph.subject[rows], graph.relation[rows], graph.object[rows]
        # If walks see these facts, each query leaves its own out.
        fact = np.where(walked, rows, -1).astype(np.int32)
        return cls.from_columns(
            subject=np.concatenate([subject, object_]),
            directed_relation=np.concatenate([relation, relation + np.int32(len(graph.relations))]),
            start=np.tile(graph.start[rows], 2),
            end=np.tile(graph.end[rows], 2),
            fact=np.tile(fact, 2),
            answer=np.concatenate([object_, subject]),
        )

    def given_dates(self) -> tuple[Ints, Ints]:
        """Return starts and ends as given, missing ones as `UNKNOWN`."""
        no_start, no_end = self.unknown.T
        return np.where(no_start, UNKNOWN, self.start), np.where(no_end, UNKNOWN, self.end)

    def with_dates(self, start: Ints, end: Ints) -> QueryTable:
        """Return the same queries with other, known dates."""
        return replace(self, start=start, end=end, unknown=np.zeros_like(self.unknown))

    def only_earlier(self) -> QueryTable:
        """Return the same queries with earlier facts as evidence; with all without a start."""
        before = np.where(self.start <= -FAR, OPEN_END, self.start - 1)
        return replace(self, latest=np.minimum(self.latest, before))

    def without_answers(self) -> QueryTable:
        """Return the same queries without their answers."""
        return replace(self, answer=np.full_like(self.answer, -1))


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A training fact that answers a query: its row, names, dates as written, and source."""

    id: int
    subject: str
    relation: str
    object: str
    start: str
    end: str
    source: str

    @classmethod
    def of(cls, graph: TemporalGraph, row: int) -> KnownFact:
        """Return a fact of a graph."""
        fact = graph.fact(row)
        start, end = (graph.texts[int(c[row])] for c in (graph.start_text, graph.end_text))
        names = fact.subject, fact.relation, fact.object
        return cls(row, *names, start, end, graph.source(row))

    def __str__(self) -> str:
        start, end = (date or "?" for date in (self.start, self.end))
        dates = start if start == end else f"{start} to {end}"
        return f"{self.subject} {self.relation} {self.object}, {dates}"


@dataclass(frozen=True, eq=False)
class KnownFacts(Sequence[KnownFact]):
    """Facts that answer a query already; each is made when it is used, for there may be many."""

    graph: TemporalGraph
    rows: Ids

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [KnownFact.of(self.graph, row) for row in self.rows[index].tolist()]
        return KnownFact.of(self.graph, int(self.rows[index]))


def known_lines(facts: Sequence[KnownFact], most: int) -> list[str]:
    """Return a line of text for each of the first known facts, and one for the others."""
    lines = [f"known: {fact} ({fact.source})" for fact in facts[:most]]
    more = len(facts) - most
    return [*lines, f"and {more:,} more known facts"] if more > 0 else lines


def known_facts(graph: TemporalGraph, queries: QueryTable, query: int) -> tuple[Ids, Ids]:
    """Return rows and answers of training facts that make candidates known, by start and row."""
    index = graph.index("train")
    edges = index.edges(int(queries.subject[query]), int(queries.directed_relation[query]))
    rows = index.fact[edges]
    start, end = known_ends(graph.start[rows], graph.end[rows])
    latest = int(queries.latest[query])
    end = ends_as_of(start, end, latest)
    meets = (end >= queries.start[query]) & (start <= min(int(queries.end[query]), latest))
    found = np.flatnonzero(meets & (rows != queries.fact[query]))
    found = found[np.lexsort((rows[found], start[found]))]
    return rows[found], index.target[edges][found]
