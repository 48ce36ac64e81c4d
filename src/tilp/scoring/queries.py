"""`Query` and `QueryColumns`: queries as people write them, and their integer ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Ids, Ints, Mask
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.io.date_shapes import read_query_date
from tilp.io.frames import as_text, name_roles, sample_cells, warn
from tilp.time import OPEN_END, UNKNOWN, Interval, format_time, parse_date
from tilp.types import Unit


@dataclass(frozen=True, slots=True)
class Query:
    """A query for the subject or the object of a fact: the other of the two is given.

    Attributes:
        relation: Name of the relation.
        subject: Name of the subject; None to ask for it.
        object: Name of the object; None to ask for it.
        start: Start date as text, or as an integer in the unit of the data; None if not known.
        end: End date, likewise.

    >>> print(Query("playsFor", "Ada", start="1990"))
    (Ada, playsFor, ?, [1990, ?])
    """

    relation: str
    subject: str | None = None
    object: str | None = None
    start: str | int | None = None
    end: str | int | None = None

    def __str__(self) -> str:
        start, end = ("?" if _is_empty(date) else date for date in (self.start, self.end))
        ends = self.subject or "?", self.object or "?"
        return f"({ends[0]}, {self.relation}, {ends[1]}, [{start}, {end}])"

    @property
    def given(self) -> str:
        """Name of the end that is given."""
        return str(self.object if _is_empty(self.subject) else self.subject)

    @property
    def problem(self) -> str:
        """Why the query is not complete; empty if it is."""
        no_subject, no_object = _is_empty(self.subject), _is_empty(self.object)
        if no_subject and no_object:
            return "give its subject or its object; neither is there"
        if not (no_subject or no_object):
            return "give its subject or its object, not both"
        return "give its relation" if _is_empty(self.relation) else ""

    def interval(self, unit: Unit) -> Interval:
        """Return its dates in a unit; integers are times already."""
        for time in (self.start, self.end):
            if isinstance(time, int) and not UNKNOWN <= time <= OPEN_END:
                raise TilpError(f"{time} is out of range; times are integers of 64 bits")
        text = [None if isinstance(date, int) else date for date in (self.start, self.end)]
        parsed = Interval.parse(text[0], text[1], unit)
        start = self.start if isinstance(self.start, int) else parsed.start
        return Interval(start, self.end if isinstance(self.end, int) else parsed.end)


def _is_empty(value: str | int | None) -> bool:
    return value in (None, "")


def read_queries(queries: Query | Iterable[Any]) -> list[Query]:
    """Return complete queries from objects or mappings with the fields of `Query`."""
    if isinstance(queries, (Query, Mapping)):
        queries = [queries]
    checked = []
    for position, item in enumerate(queries, start=1):
        try:
            query = item if isinstance(item, Query) else Query(**item)
        except TypeError as failure:
            raise TilpError(f"query {position} is {item!r}: {failure}") from failure
        if query.problem:
            raise TilpError(f"query {position}, {query}: {query.problem}")
        checked.append(query)
    return checked


def with_dates(query: Query, asked: QueryTable, unit: Unit) -> Query:
    """Return a query with the dates that it is asked at, the first of a table, if it has none."""
    start, end = (format_time(int(date[0]), unit) for date in asked.given_dates())
    undated = _is_empty(query.start) and _is_empty(query.end)
    return replace(query, start=start, end=end) if undated and (start or end) else query


def plain_dates(query: Query, graph: TemporalGraph) -> Query:
    """Return a query whose dates, written as those of the graph's table were, are plain ones."""
    form, dates = graph.reading.get("date_format"), {"start": query.start, "end": query.end}
    read = {
        role: read_query_date(date, role, form, graph.unit)
        for role, date in dates.items()
        if isinstance(date, str)
    }
    return replace(query, **read) if read != dates else query


def query_table(graph: TemporalGraph, queries: Sequence[Query]) -> QueryTable:
    """Encode queries as columns of integers."""
    rows = []
    for position, query in enumerate(queries, start=1):
        try:
            rows.append(encode_query(graph, query))
        except TilpError as failure:
            prefix = f"query {position}, {query}: " if len(queries) > 1 else ""
            raise TilpError(f"{prefix}{failure}") from failure
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    subject, relation = columns[:2].astype(np.int32)
    return _unanswered(subject, relation, columns[2], columns[3])


def _unanswered(subject: Ids, relation: Ids, start: Ints, end: Ints) -> QueryTable:
    none = np.full(len(subject), -1, np.int32)
    return QueryTable.from_columns(subject, relation, start, end, none, none)


def encode_query(
    graph: TemporalGraph, query: Query, *, near: bool = True
) -> tuple[int, int, int, int]:
    """Return the ids of a complete query: entity, directed relation, start, end; see `find`."""
    query = plain_dates(query, graph)
    subject = graph.entities.find(query.given, near=near)
    relation = graph.relations.find(str(query.relation), near=near)
    if _is_empty(query.subject):
        relation += len(graph.relations)
    interval = query.interval(graph.unit)
    return subject, relation, interval.start, interval.end


_COLUMNS = tuple(field.name for field in fields(Query))
_ORDER = ("subject", "relation", "object", "start", "end")
_DATES = ("start", "end")


def query_frame(
    frame: pl.DataFrame, reading: Mapping[str, Any] | None = None, source: str = "queries"
) -> pl.DataFrame:
    """Return a table of queries with the columns of `Query`; raise an error if it is none.

    Columns are called as those of facts may be, or as in the model's table (`reading`).
    """
    names, reading = frame.columns, reading or {}
    fields = {name: [role] for name in names for role, at in reading.get("columns", {}).items()
              if at == name and role in (*_COLUMNS, "date")}  # fmt: skip
    for role, indices in name_roles(names, sample_cells(frame)).items():
        free = [names[i] for i in indices if names[i] not in fields and names[i] not in _COLUMNS]
        for name in [name for name in names if name == role] or free[:1]:
            fields.setdefault(name, [role] if role in (*_COLUMNS, "date") else [])
    columns = {
        part: frame[name]
        for name, roles in fields.items()
        for role in roles
        for part in (_DATES if role == "date" else (role,))
    }
    if "relation" not in columns and reading.get("relation_name"):
        columns["relation"] = pl.repeat(reading["relation_name"], len(frame), eager=True)
    unused = [name for name in names if not fields.get(name)]
    if "relation" not in columns or (unused and not {"subject", "object"} & columns.keys()):
        wrong = f"{', '.join(map(repr, unused))} is none of a query's"
        raise TilpError(
            f"{source} have the columns {', '.join(names)}: {wrong if unused else 'no relation'}. "
            f"The first line names the columns, which can be {', '.join(_COLUMNS)}; relation "
            "is needed"
        )
    if unused:
        warn(f"{source}: columns not used: {', '.join(unused)}")
    return pl.DataFrame({name: column.alias(name) for name, column in columns.items()})


@dataclass(frozen=True, eq=False)
class QueryColumns:
    """Queries as columns of text, and of dates that were given as integers; null elsewhere."""

    text: pl.DataFrame  # subject, relation, object, start and end
    times: pl.DataFrame  # start and end

    @classmethod
    def of(cls, frame: pl.DataFrame, reading: Mapping[str, Any] | None = None) -> QueryColumns:
        """Read a frame with columns as `query_frame` takes them."""
        frame = query_frame(frame, reading)
        text, times = {}, {}
        for name in _ORDER:
            absent = pl.repeat(None, len(frame), dtype=pl.Null, eager=True)
            column = frame.get_column(name, default=absent)
            text[name] = _as_text(column)
            if name in _DATES:
                is_integer = column.dtype.is_integer() or column.dtype == pl.Boolean
                times[name] = column if is_integer else absent.cast(pl.Int64)
        return cls(pl.DataFrame(text), pl.DataFrame(times))

    @classmethod
    def of_queries(cls, queries: Sequence[Query]) -> QueryColumns:
        """Read `Query` objects."""
        text, times = {}, {}
        for name in _ORDER:
            values = [getattr(query, name) for query in queries]
            strings = [None if value is None else str(value) for value in values]
            text[name] = pl.Series(strings, dtype=pl.String)
            if name in _DATES:
                integers = [value if isinstance(value, int) else None for value in values]
                times[name] = pl.Series(integers, dtype=pl.Int64)
        return cls(pl.DataFrame(text), pl.DataFrame(times))

    def __len__(self) -> int:
        return len(self.text)

    def query(self, row: int) -> Query:
        """Return the query of a row."""
        times = self.times.row(row, named=True)
        integers = {name: time for name, time in times.items() if time is not None}
        return Query(**{**self.text.row(row, named=True), **integers})

    def encode(self, graph: TemporalGraph) -> tuple[QueryTable, Ints]:
        """Encode the valid queries as columns of integers, and return their rows as well."""
        has_subject, has_object = self._is_given("subject"), self._is_given("object")
        name = self.text["subject"].zip_with(pl.Series(has_subject), self.text["object"])
        subject = graph.entities.find_all(name)
        relation = graph.relations.find_all(self.text["relation"])
        form = graph.reading.get("date_format")
        times = (self._times(date, graph.unit, form) for date in _DATES)
        (start, wrong_start), (end, wrong_end) = times
        both_known = (start != UNKNOWN) & (end != UNKNOWN)
        valid = (
            (has_subject != has_object)
            & self._is_given("relation")
            & (subject >= 0)
            & (relation >= 0)
            & ~(wrong_start | wrong_end | (both_known & (start > end)))
        )
        rows = np.flatnonzero(valid)
        relation = np.where(has_subject, relation, relation + np.int32(len(graph.relations)))
        relation = relation[rows].astype(np.int32)
        return _unanswered(subject[rows], relation, start[rows], end[rows]), rows

    def table(self, graph: TemporalGraph) -> QueryTable:
        """Encode all queries as columns of integers; raise an error for the first wrong one."""
        table, rows = self.encode(graph)
        if len(rows) < len(self):
            row = int(np.setdiff1d(np.arange(len(self)), rows)[0])
            prefix = f"query {row + 1}, {self.query(row)}: " if len(self) > 1 else ""
            raise TilpError(f"{prefix}{self.error_of(graph, row)}")
        return table

    def error_of(self, graph: TemporalGraph, row: int, *, near: bool = True) -> TilpError:
        """Return why a query is not valid; for `near` see `encode_query`."""
        query = self.query(row)
        if query.problem:
            return TilpError(query.problem)
        try:
            encode_query(graph, query, near=near)
        except TilpError as error:
            return error
        raise AssertionError(f"{query} is valid")

    def _is_given(self, name: str) -> Mask:
        return (self.text[name].fill_null("") != "").to_numpy()

    def _times(self, name: str, unit: Unit, form: str | None) -> tuple[Ints, Mask]:
        """Return the time of each date, and a mask of those that cannot be read."""
        text, integer = self.text[name], self.times[name]
        distinct = text.filter(integer.is_null()).drop_nulls().unique(maintain_order=True)
        spans = [_span(date, unit, name, form) for date in distinct]
        end = 0 if name == "start" else 1
        # The last element is for dates that are not given.
        parsed = np.array([UNKNOWN if span is None else span[end] for span in spans] + [UNKNOWN])
        wrong = np.array([span is None for span in spans] + [False])
        codes = text.cast(pl.Enum(distinct), strict=False).to_physical()
        code = codes.fill_null(len(distinct)).to_numpy()
        as_int64 = integer.cast(pl.Int64, strict=False)
        is_integer = integer.is_not_null().to_numpy()
        time = np.where(is_integer, as_int64.fill_null(UNKNOWN).to_numpy(), parsed[code])
        return time, np.where(is_integer, is_integer & as_int64.is_null().to_numpy(), wrong[code])


@lru_cache(2**16)
def _span(text: str, unit: Unit, role: str, form: str | None) -> tuple[int, int] | None:
    try:
        return parse_date(read_query_date(text, role, form, unit)).span(unit)
    except TilpError:  # day or month first
        return None


def _as_text(column: pl.Series) -> pl.Series:
    """Return a column as text, as Python writes its values."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        holds = f"{column.name} of the queries holds {column.dtype}"
        raise TilpError(f"the column {holds}, not names or dates")
    if column.dtype == pl.String or column.dtype.is_integer() or column.dtype == pl.Null:
        return column.cast(pl.String)
    if column.dtype in (pl.Date, pl.Datetime):
        return as_text(column, "the queries", column.name)
    values = [None if value is None else str(value) for value in column]
    return pl.Series(column.name, values, dtype=pl.String)
