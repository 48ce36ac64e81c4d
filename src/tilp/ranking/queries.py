"""Queries as people ask them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilp.choices import Unit
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.intervals import OPEN_END, UNKNOWN, Interval

__all__ = ["Query", "encode_query", "query_table", "read_queries"]


@dataclass(frozen=True, slots=True)
class Query:
    """A question for the subject or the object of a fact: one of the two is given.

    Attributes:
        relation: its name.
        subject: its name, where the object is asked for.
        object: its name, where the subject is asked for.
        start: the date as text, or as a number in the unit of the data; None: not known.
        end: likewise.
    """

    relation: str
    subject: str | None = None
    object: str | None = None
    start: str | int | None = None
    end: str | int | None = None

    def __str__(self) -> str:
        dates = f"[{self._date(self.start)}, {self._date(self.end)}]"
        return f"({self.subject or '?'}, {self.relation}, {self.object or '?'}, {dates})"

    @property
    def given(self) -> str:
        """The name of the end that is given."""
        return str(self.object if self.subject in (None, "") else self.subject)

    @property
    def lacks(self) -> str:
        """What must be given for it to be asked, in words; the empty text for nothing."""
        asks_subject, asks_object = self.subject in (None, ""), self.object in (None, "")
        if asks_subject and asks_object:
            return "give its subject or its object; neither is there"
        if not (asks_subject or asks_object):
            return "give its subject or its object, not both"
        return "give its relation" if self.relation in (None, "") else ""

    def interval(self, unit: Unit) -> Interval:
        """Its dates in a unit; numbers are times already."""
        start, end = self.start, self.end
        for number in (start, end):
            if isinstance(number, int) and not UNKNOWN <= number <= OPEN_END:
                raise TilpError(f"{number} is past every time; times are whole numbers of 64 bits")
        written = Interval.parse(
            None if isinstance(start, int) else start, None if isinstance(end, int) else end, unit
        )
        return Interval(
            start if isinstance(start, int) else written.start,
            end if isinstance(end, int) else written.end,
        )

    @staticmethod
    def _date(date: str | int | None) -> str:
        return "?" if date in (None, "") else str(date)


def read_queries(queries: Query | Iterable[Any]) -> list[Query]:
    """Queries from objects or mappings with the fields of `Query`.

    Raises:
        TilpError: names the query and what it lacks.
    """
    if isinstance(queries, (Query, Mapping)):
        queries = [queries]
    found = []
    for number, one in enumerate(queries, start=1):
        try:
            query = one if isinstance(one, Query) else Query(**one)
        except TypeError as failure:
            raise TilpError(f"query {number} is {one!r}: {failure}") from failure
        if lacks := query.lacks:
            raise TilpError(f"query {number}, {query}: {lacks}")
        found.append(query)
    return found


def query_table(graph: TemporalGraph, queries: Sequence[Query]) -> QueryTable:
    """The queries as columns of integers.

    Raises:
        TilpError: an unknown name, with the nearest known ones; a date that cannot be read; a
            start after its end.
    """
    rows = []
    for number, query in enumerate(queries, start=1):
        try:
            rows.append(encode_query(graph, query))
        except TilpError as failure:
            place = f"query {number}, {query}: " if len(queries) > 1 else ""
            raise TilpError(f"{place}{failure}") from failure
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    nothing = np.full(len(queries), -1, np.int32)
    subject, head = columns[:2].astype(np.int32)
    return QueryTable.asked(subject, head, columns[2], columns[3], nothing, nothing)


def encode_query(
    graph: TemporalGraph, query: Query, *, near: bool = True
) -> tuple[int, int, int, int]:
    """The entity, directed relation, start and end that a query asks of.

    Args:
        graph: whose names and unit.
        query: one that lacks nothing.
        near: whether an unknown name is refused with the nearest known ones.

    Raises:
        TilpError: it cannot be asked.
    """
    subject = graph.entities.find(query.given, near=near)
    relation = graph.relations.find(str(query.relation), near=near)
    asks_object = query.subject not in (None, "")
    interval = query.interval(graph.unit)
    head = relation if asks_object else relation + len(graph.relations)
    return subject, head, interval.start, interval.end
