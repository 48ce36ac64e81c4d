"""Queries as people write them, one by one or as columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.time import OPEN_END, UNKNOWN, Interval, parse_date
from tilp.types import Unit


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
    return QueryTable.from_columns(subject, head, columns[2], columns[3], nothing, nothing)


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


QUERY_COLUMNS = tuple(one.name for one in fields(Query))
"""The columns that a table of queries can have."""

_ORDER = ("subject", "relation", "object", "start", "end")
_DATES = ("start", "end")


def check_columns(names: Sequence[str], source: str = "queries") -> None:
    """Refuse a table of something else.

    Raises:
        TilpError: what it has, and what it can have.
    """
    other = [name for name in names if name not in QUERY_COLUMNS]
    if other or "relation" not in names:
        wrong = f"{', '.join(map(repr, other))} is none of a query's" if other else "no relation"
        raise TilpError(
            f"{source} have the columns {', '.join(names)}: {wrong}. The first line names the "
            f"columns, which can be {', '.join(QUERY_COLUMNS)}; relation is needed"
        )


@dataclass(frozen=True, eq=False)
class QueryColumns:
    """Queries as columns of text.

    Attributes:
        text: subject, relation, object, start and end as they were asked, null where one was not.
        times: start and end where they were given as numbers, null elsewhere.
    """

    text: pl.DataFrame
    times: pl.DataFrame

    @classmethod
    def of(cls, frame: pl.DataFrame) -> QueryColumns:
        """From a frame with the columns of `Query`.

        Raises:
            TilpError: it has other columns, or one that holds neither names nor dates.
        """
        check_columns(frame.columns)
        text, times = {}, {}
        for name in _ORDER:
            absent = pl.repeat(None, len(frame), dtype=pl.Null, eager=True)
            column = frame.get_column(name, default=absent)
            text[name] = _as_text(column)
            if name in _DATES:
                is_number = column.dtype.is_integer() or column.dtype == pl.Boolean
                times[name] = column if is_number else absent.cast(pl.Int64)
        return cls(pl.DataFrame(text), pl.DataFrame(times))

    @classmethod
    def of_queries(cls, queries: Sequence[Query]) -> QueryColumns:
        """From objects."""
        values = {name: [getattr(one, name) for one in queries] for name in _ORDER}
        text = {
            name: pl.Series([None if one is None else str(one) for one in column], dtype=pl.String)
            for name, column in values.items()
        }
        times = {
            name: pl.Series(
                [one if isinstance(one, int) else None for one in values[name]], dtype=pl.Int64
            )
            for name in _DATES
        }
        return cls(pl.DataFrame(text), pl.DataFrame(times))

    def __len__(self) -> int:
        return len(self.text)

    def take(self, rows: NDArray[np.int64]) -> QueryColumns:
        """Some of the queries."""
        return QueryColumns(self.text[rows], self.times[rows])

    def query(self, row: int) -> Query:
        """One query."""
        told = self.text.row(row, named=True)
        times = self.times.row(row, named=True)
        numbers = {name: time for name, time in times.items() if time is not None}
        return Query(**{**told, **numbers})

    def encode(self, graph: TemporalGraph) -> tuple[QueryTable, NDArray[np.int64]]:
        """The queries that can be asked as columns of integers, and their rows.

        Names and dates are read as `query_table` reads them, each distinct one once.
        """
        given = {name: self._given(name) for name in ("subject", "object")}
        asks_object = given["subject"]
        name = self.text["subject"].zip_with(pl.Series(asks_object), self.text["object"])
        subject = graph.entities.find_all(name)
        relation = graph.relations.find_all(self.text["relation"])
        (start, no_start), (end, no_end) = (self._times(one, graph.unit) for one in _DATES)
        known = (start != UNKNOWN) & (end != UNKNOWN)
        right = (
            (given["subject"] != given["object"])
            & self._given("relation")
            & (subject >= 0)
            & (relation >= 0)
            & ~(no_start | no_end | (known & (start > end)))
        )
        rows = np.flatnonzero(right)
        head = np.where(asks_object, relation, relation + np.int32(len(graph.relations)))
        nothing = np.full(len(rows), -1, np.int32)
        table = QueryTable.from_columns(
            subject[rows], head[rows].astype(np.int32), start[rows], end[rows], nothing, nothing
        )
        return table, rows

    def table(self, graph: TemporalGraph) -> QueryTable:
        """All queries as columns of integers.

        Raises:
            TilpError: names the first that cannot be asked, and why.
        """
        found, rows = self.encode(graph)
        if len(rows) < len(self):
            row = int(np.setdiff1d(np.arange(len(self)), rows)[0])
            place = f"query {row + 1}, {self.query(row)}: " if len(self) > 1 else ""
            raise TilpError(f"{place}{self.refusal(graph, row)}")
        return found

    def refusal(self, graph: TemporalGraph, row: int, *, near: bool = True) -> TilpError:
        """Why a query cannot be asked, as it is told of a single one.

        Args:
            graph: that it cannot be asked of.
            row: of the query.
            near: whether an unknown name is told with the nearest known ones, which takes time.
        """
        query = self.query(row)
        if query.lacks:
            return TilpError(query.lacks)
        try:
            encode_query(graph, query, near=near)
        except TilpError as refused:
            return refused
        raise AssertionError(f"{query} can be asked")

    def _given(self, name: str) -> NDArray[np.bool_]:
        return (self.text[name].fill_null("") != "").to_numpy()

    def _times(self, name: str, unit: Unit) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The time of each date, and whether it cannot be read."""
        text, number = self.text[name], self.times[name]
        distinct = text.filter(number.is_null()).drop_nulls().unique(maintain_order=True)
        spans = [_span(one, unit) for one in distinct]
        which = 0 if name == "start" else 1
        # One at the end, for what was not given.
        read = np.array([UNKNOWN if one is None else one[which] for one in spans] + [UNKNOWN])
        wrong = np.array([one is None for one in spans] + [False])
        place = text.cast(pl.Enum(distinct), strict=False).to_physical()
        code = place.fill_null(len(distinct)).to_numpy()
        as_numbers = number.cast(pl.Int64, strict=False)
        is_number = number.is_not_null().to_numpy()
        time = np.where(is_number, as_numbers.fill_null(UNKNOWN).to_numpy(), read[code])
        past = is_number & as_numbers.is_null().to_numpy()
        return time, np.where(is_number, past, wrong[code])


@lru_cache(2**16)
def _span(text: str, unit: Unit) -> tuple[int, int] | None:
    return parse_date(text).span(unit)


def _as_text(column: pl.Series) -> pl.Series:
    """A column as text, as Python writes its values."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        raise TilpError(
            f"the column {column.name} of the queries holds {column.dtype}, not names or dates"
        )
    if column.dtype == pl.String or column.dtype.is_integer() or column.dtype == pl.Null:
        return column.cast(pl.String)
    values = [None if value is None else str(value) for value in column]
    return pl.Series(column.name, values, dtype=pl.String)
