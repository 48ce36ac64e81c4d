"""Build a graph from tables of text: names become ids, dates become times, defects are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ids, Ints, Mask
from tilp.errors import DataError
from tilp.graph.graph import DEFECT_SCHEMA, MARKS, SPLITS, TemporalGraph
from tilp.graph.sources import SourceFiles
from tilp.graph.vocabulary import Vocabulary
from tilp.time import UNKNOWN, choose_unit, parse_date
from tilp.types import OnError, Unit


class Defect(StrEnum):
    """Defects of a row's dates."""

    MALFORMED_START = "malformed start"
    MALFORMED_END = "malformed end"
    START_AFTER_END = "start after end"
    EMPTY_NAME = "empty subject, relation or object"


Columns = dict[str, NDArray[Any]]
Attributes = Mapping[str, tuple[pl.Series, Floats]]  # by name, ids of entities and their values

_REPAIRS = {
    Defect.MALFORMED_START: "start unknown",
    Defect.MALFORMED_END: "end unknown",
    Defect.START_AFTER_END: "end = start",
}


@dataclass(frozen=True)
class FactTable:
    """Facts of one source and split as text, and the line of each row in the source.

    The columns are subject, relation, object, start and end, whose dates may be null, and perhaps
    estimated (values of `ESTIMATED`), walked_only (of `WALKED_ONLY`) and source_line.
    `prefix` is that of the source in `SourceFiles`.
    """

    split: str
    source: str
    frame: pl.DataFrame
    lines: Sequence[int]
    prefix: str = ""


@dataclass(frozen=True)
class DateTable:
    """The distinct date texts of a graph, and the first and last time that each may mean."""

    texts: pl.Series
    unit: Unit
    first: Ints
    last: Ints
    malformed: Mask

    @classmethod
    def parse(cls, texts: pl.Series, counts: Ints, unit: Unit | None) -> DateTable:
        """Parse distinct texts; without a unit, choose it by the count of each text."""
        dates = [parse_date(text) for text in texts]
        if unit is None:
            unit = choose_unit(zip(dates, counts.tolist(), strict=True))
        spans = [date.span(unit) for date in dates]
        times = np.array([span or (UNKNOWN, UNKNOWN) for span in spans], dtype=np.int64)
        malformed = np.array([span is None for span in spans], dtype=np.bool_)
        return cls(texts.alias("text"), unit, times[:, 0].copy(), times[:, 1].copy(), malformed)


def build_graph(
    tables: Sequence[FactTable], *, entities: pl.DataFrame | None = None,
    relations: pl.DataFrame | None = None, attributes: Attributes | None = None,
    unit: Unit | None = None, on_error: OnError = OnError.REPAIR,
    source_files: SourceFiles | None = None,
) -> TemporalGraph:  # fmt: skip
    """Build a graph from tables of text, whose order the facts of each split keep.

    Label tables have the columns id, key and label, all text, ids unique. Their order decides the
    indices of names; without one, names are sorted. `attributes` are entity ids and their values
    by name. `source_files` are those of the tables' column source_line; without them, facts get
    the lines of their tables as sources.
    """
    tables = sorted(tables, key=lambda table: SPLITS.index(table.split))
    used = _unique([table.frame[role] for table in tables for role in ("subject", "object")])
    entity_names = make_vocabulary("entity", entities, used)
    used = _unique([table.frame["relation"] for table in tables])
    relation_names = make_vocabulary("relation", relations, used)
    dates, start_text, end_text = _parse_dates(tables, unit)
    columns: Columns = {
        "subject": _concatenate([entity_names.encode(t.frame["subject"]) for t in tables]),
        "relation": _concatenate([relation_names.encode(t.frame["relation"]) for t in tables]),
        "object": _concatenate([entity_names.encode(t.frame["object"]) for t in tables]),
        "start": dates.first[start_text],
        "end": dates.last[end_text],
        "start_text": start_text,
        "end_text": end_text,
    }
    for name, values in MARKS.items():
        columns[name] = np.concatenate([encode_marks(t.frame, name, values) for t in tables])
    columns["walked_only"] = columns["walked_only"].astype(np.bool_)
    files = source_files
    if files is None:
        files = SourceFiles.of((t.prefix, t.lines[-1]) for t in tables if len(t.lines))
        sources = [files.encode(t.prefix, t.lines) for t in tables if len(t.lines)]
    else:
        sources = [t.frame["source_line"].to_numpy().astype(files.dtype) for t in tables]
    columns["source_line"] = np.concatenate([np.empty(0, files.dtype), *sources])
    columns, remaining, defects = repair_defects(tables, columns, dates, on_error)
    if on_error is OnError.RAISE and len(defects):
        raise DataError(defect_message(defects))
    bounds = np.cumsum([0, *(sum(len(t.lines) for t in tables if t.split == s) for s in SPLITS)])
    return TemporalGraph(
        entities=entity_names,
        relations=relation_names,
        unit=dates.unit,
        texts=dates.texts,
        bounds=tuple(np.append(0, np.cumsum(remaining))[bounds].tolist()),
        attributes=_attribute_columns(entity_names, attributes or {}),
        defects=defects,
        source_files=files,
        **columns,
    )


def rebuild_graph(
    frames: Mapping[str, pl.DataFrame], entities: Vocabulary, relations: Vocabulary, unit: Unit,
    source_files: SourceFiles, attributes: Mapping[str, Floats] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> TemporalGraph:  # fmt: skip
    """Build a graph from the facts of each split, whose names and sources are known."""
    tables = [FactTable(s, s, part, range(1, len(part) + 1)) for s, part in frames.items()]
    values = {name: (entities.ids, column) for name, column in (attributes or {}).items()}
    graph = build_graph(
        tables, entities=entities.frame(), relations=relations.frame(), attributes=values,
        unit=unit, source_files=source_files,
    )  # fmt: skip
    return replace(graph, reading=reading or {})


def make_vocabulary(kind: str, known: pl.DataFrame | None, used: pl.Series) -> Vocabulary:
    """Return the names of the label file in its order, then sorted those that only facts have."""
    if known is None:
        return Vocabulary.of(kind, _sort_names(used).alias("id"))
    extra = _sort_names(used.filter(~used.is_in(known["id"].implode())))
    both = pl.concat([known, pl.DataFrame({"id": extra, "key": extra, "label": extra})])
    return Vocabulary(kind, both["id"], both["key"], both["label"])


def _unique(columns: Sequence[pl.Series]) -> pl.Series:
    distinct = [column.unique().alias("name") for column in columns]
    return pl.concat(distinct).unique() if distinct else pl.Series("name", [], dtype=pl.String)


def _sort_names(names: pl.Series) -> pl.Series:
    """Sort by value if all names are integers, so that dense ids are their own indices."""
    if len(names) and all_integers(names):
        return pl.DataFrame({"n": names.cast(pl.Int64), "name": names}).sort("n", "name")["name"]
    return names.sort()


def all_integers(names: pl.Series) -> bool:
    """Return whether all names are non-negative integers that fit into 64 bits."""
    return bool(names.str.contains(r"^[0-9]{1,18}$").all())


def _parse_dates(tables: Sequence[FactTable], unit: Unit | None) -> tuple[DateTable, Ids, Ids]:
    """Return the distinct dates, and the index of each fact's start and end among them."""
    starts, ends = ([table.frame[role] for table in tables] for role in ("start", "end"))
    used = _unique([*starts, *ends])
    texts = pl.concat([used.drop_nulls(), pl.Series("name", [""])]).unique().sort()
    names = pl.Enum(texts)

    def encode(column: pl.Series) -> Ids:
        # A null is the empty text, which sorts first.
        return column.cast(names).to_physical().fill_null(0).to_numpy().astype(np.int32)

    start_text, end_text = (_concatenate(list(map(encode, c))) for c in (starts, ends))
    counts = np.bincount(start_text, minlength=len(texts))
    counts += np.bincount(end_text, minlength=len(texts))
    return DateTable.parse(texts, counts, unit), start_text, end_text


def encode_marks(frame: pl.DataFrame, name: str, values: tuple[str, ...]) -> NDArray[np.uint8]:
    """Return the index of each fact's mark; 0 where the table has no such column."""
    if name not in frame.columns:
        return np.zeros(len(frame), np.uint8)
    return frame[name].cast(pl.Enum(values)).to_physical().to_numpy().astype(np.uint8)


def _concatenate(arrays: Sequence[Ids]) -> Ids:
    return np.concatenate(arrays) if len(arrays) != 1 else arrays[0]


def repair_defects(
    tables: Sequence[FactTable], columns: Columns, dates: DateTable, on_error: OnError
) -> tuple[Columns, Mask, pl.DataFrame]:
    """Repair defects of dates, or drop their rows.

    Returns the columns, the mask of remaining rows, and a row for each defect, in input order.
    """
    start, end = columns["start"], columns["end"]
    backwards = np.flatnonzero((start > end) & (start != UNKNOWN) & (end != UNKNOWN))
    defect_rows = {
        Defect.MALFORMED_START: np.flatnonzero(dates.malformed[columns["start_text"]]),
        Defect.MALFORMED_END: np.flatnonzero(dates.malformed[columns["end_text"]]),
        Defect.START_AFTER_END: backwards,
    }
    skip, remaining = on_error is OnError.SKIP, np.ones(len(start), np.bool_)
    offsets = np.cumsum([0, *(len(table.lines) for table in tables)])
    described = []
    for defect, rows in defect_rows.items():
        remaining[rows] = not skip
        done = "row skipped" if skip else _REPAIRS[defect]
        texts = (dates.texts.gather(columns[name][rows]) for name in ("start_text", "end_text"))
        for row, *written in zip(rows.tolist(), *texts, strict=True):
            index = int(np.searchsorted(offsets, row, side="right")) - 1
            table, line = tables[index], tables[index].lines[row - int(offsets[index])]
            described.append((row, table.split, table.source, line, defect.value, *written, done))
    defects = pl.DataFrame(described, schema={"row": pl.Int64, **DEFECT_SCHEMA}, orient="row")
    if not remaining.all():
        columns = {name: column[remaining] for name, column in columns.items()}
    elif not skip:
        end[backwards] = dates.last[columns["start_text"][backwards]]
    return columns, remaining, defects.sort("row", maintain_order=True).drop("row")


def defect_message(defects: pl.DataFrame) -> str:
    """Describe the first defect, how many there are, and what to do."""
    first = defects.row(0, named=True)
    return (
        f"{first['file']}, line {first['line']}: {first['defect']} "
        f"(start {first['start']!r}, end {first['end']!r}); {len(defects):,} such defects in all. "
        "Correct the rows, or let them be repaired (on_error='repair', --on-error repair) "
        "or left out (skip)."
    )


def _attribute_columns(entities: Vocabulary, attributes: Attributes) -> dict[str, Floats]:
    columns = {name: np.full(len(entities), np.nan) for name in attributes}
    for name, (ids, values) in attributes.items():
        try:
            columns[name][entities.encode(ids)] = values
        except DataError as failure:
            raise DataError(f"attribute {name}: {failure}, so its number has no owner") from None
    return columns
