"""Queries as people ask them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from tilp.choices import Unit
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.intervals import Interval

__all__ = ["Query", "query_table", "read_queries"]


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

    def interval(self, unit: Unit) -> Interval:
        """Its dates in a unit; numbers are times already."""
        start, end = self.start, self.end
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


_COLUMNS = tuple(one.name for one in fields(Query))


def read_queries(queries: Query | Iterable[Any] | pl.DataFrame) -> list[Query]:
    """Queries from objects, mappings, or a frame with the columns of `Query`.

    Raises:
        TilpError: names the query and what it lacks.
    """
    if isinstance(queries, (Query, Mapping)):
        queries = [queries]
    if isinstance(queries, pl.DataFrame):
        strange = set(queries.columns) - set(_COLUMNS)
        if strange or "relation" not in queries.columns:
            raise TilpError(
                f"queries have the columns {', '.join(queries.columns)}; they can be "
                f"{', '.join(_COLUMNS)}, of which relation is needed"
            )
        queries = queries.to_dicts()
    found = []
    for number, one in enumerate(queries, start=1):
        try:
            query = one if isinstance(one, Query) else Query(**one)
        except TypeError as failure:
            raise TilpError(f"query {number} is {one!r}: {failure}") from failure
        if (query.subject in (None, "")) == (query.object in (None, "")):
            raise TilpError(f"query {number}, {query}: give its subject or its object, not both")
        if query.relation in (None, ""):
            raise TilpError(f"query {number}, {query}: give its relation")
        found.append(query)
    return found


def query_table(graph: TemporalGraph, queries: list[Query]) -> QueryTable:
    """The queries as columns of integers.

    Raises:
        TilpError: an unknown name, with the nearest known ones; a date that cannot be read; a
            start after its end.
    """
    n_relations = len(graph.relations)
    subject, head, start, end = [], [], [], []
    for number, query in enumerate(queries, start=1):
        try:
            asks_object = query.subject not in (None, "")
            subject.append(graph.entities.find(query.given))
            relation = graph.relations.find(str(query.relation))
            head.append(relation if asks_object else relation + n_relations)
            interval = query.interval(graph.unit)
        except TilpError as failure:
            place = f"query {number}, {query}: " if len(queries) > 1 else ""
            raise TilpError(f"{place}{failure}") from failure
        start.append(interval.start)
        end.append(interval.end)
    nothing = np.full(len(queries), -1, np.int32)
    return QueryTable.asked(
        np.array(subject, np.int32),
        np.array(head, np.int32),
        np.array(start, np.int64),
        np.array(end, np.int64),
        nothing,
        nothing,
    )
