"""Build a graph from tables of text: names become ids, dates become times, defects are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import DataError
from tilp.graph.graph import DEFECT_SCHEMA, ESTIMATED, SPLITS, WALKED_ONLY, TemporalGraph
from tilp.graph.vocabulary import Vocabulary
from tilp.time import UNKNOWN, choose_unit, parse_date
from tilp.types import OnError, Unit


class Defect(StrEnum):
    """What can be wrong with a row's dates."""

    MALFORMED_START = "malformed start"
    MALFORMED_END = "malformed end"
    START_AFTER_END = "start after end"

    @property
    def repair(self) -> str:
        """What repairing makes of it."""
        match self:
            case Defect.MALFORMED_START:
                return "start unknown"
            case Defect.MALFORMED_END:
                return "end unknown"
            case Defect.START_AFTER_END:
                return "end = start"


@dataclass(frozen=True)
class FactTable:
    """One table of facts as text.

    Attributes:
        split: the split its facts belong to.
        source: where it comes from, for messages.
        frame: columns subject, relation, object, start and end, all text; dates may be null. And
            perhaps marks: estimated, in the words of `ESTIMATED`, and walked_only, in those of
            `WALKED_ONLY`.
        lines: the line of each row in the source.
    """

    split: str
    source: str
    frame: pl.DataFrame
    lines: Sequence[int]


@dataclass(frozen=True)
class LabelTable:
    """Names from a label file: columns id, key and label, all text, ids unique."""

    source: str
    frame: pl.DataFrame


@dataclass(frozen=True)
class Dates:
    """The distinct date texts of a graph, and what each stands for in the unit."""

    texts: pl.Series
    unit: Unit
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    malformed: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: pl.Series, counts: NDArray[np.int64], unit: Unit | None) -> Dates:
        """Read each text.

        Args:
            texts: the distinct ones.
            counts: how often each stands in facts, as a start or as an end.
            unit: what times count; chosen from the dates where None.
        """
        parsed = [parse_date(text) for text in texts]
        if unit is None:
            unit = choose_unit(zip(parsed, counts.tolist(), strict=True))
        spans = [date.span(unit) for date in parsed]
        times = np.array([span or (UNKNOWN, UNKNOWN) for span in spans], dtype=np.int64)
        return cls(
            texts=texts.alias("text"),
            unit=unit,
            first=times[:, 0].copy(),
            last=times[:, 1].copy(),
            malformed=np.array([span is None for span in spans], dtype=np.bool_),
        )


def build_graph(
    tables: Sequence[FactTable],
    *,
    entities: LabelTable | None = None,
    relations: LabelTable | None = None,
    attributes: Mapping[str, tuple[pl.Series, NDArray[np.float64]]] | None = None,
    unit: Unit | None = None,
    on_error: OnError = OnError.REPAIR,
) -> TemporalGraph:
    """Build a graph from tables of text.

    Args:
        tables: the facts, in the order in which they are to be numbered within each split.
        entities: names of entities, in the order in which they are to be numbered.
        relations: likewise of relations.
        attributes: for each name, entity ids and their numbers.
        unit: what times count; chosen from the dates where None.
        on_error: what to do with a row whose dates are malformed or run backwards.

    Raises:
        DataError: a date defect, where `on_error` says so.
    """
    tables = sorted(tables, key=lambda table: SPLITS.index(table.split))
    used = _unique([table.frame[end] for table in tables for end in _ENDS])
    entity_names = make_vocabulary("entity", entities, used)
    used = _unique([table.frame["relation"] for table in tables])
    relation_names = make_vocabulary("relation", relations, used)
    dates, start_text, end_text = _read_dates(tables, unit)
    columns: dict[str, NDArray[Any]] = {
        "subject": _concatenate([entity_names.encode(t.frame["subject"]) for t in tables]),
        "relation": _concatenate([relation_names.encode(t.frame["relation"]) for t in tables]),
        "object": _concatenate([entity_names.encode(t.frame["object"]) for t in tables]),
        "start": dates.first[start_text],
        "end": dates.last[end_text],
        "start_text": start_text,
        "end_text": end_text,
        "estimated": _marks(tables, "estimated", ESTIMATED),
        "walked_only": _marks(tables, "walked_only", WALKED_ONLY).astype(np.bool_),
    }
    found = find_defects(columns, dates)
    defects = describe_defects(tables, found, columns, dates, on_error)
    bounds = np.cumsum([0, *(sum(len(t.lines) for t in tables if t.split == s) for s in SPLITS)])
    if on_error is OnError.RAISE and len(defects):
        raise DataError(first_defect(defects))
    columns, kept = mended(columns, found, dates, on_error)
    if not kept.all():
        bounds = np.concatenate([[0], np.cumsum(kept)])[bounds]
    return TemporalGraph(
        entities=entity_names,
        relations=relation_names,
        unit=dates.unit,
        texts=dates.texts,
        bounds=tuple(int(bound) for bound in bounds),  # type: ignore[arg-type]
        attributes=_place_attributes(entity_names, attributes or {}),
        defects=defects,
        **columns,
    )


_ENDS = ("subject", "object")
_DATES = ("start", "end")


def make_vocabulary(kind: str, table: LabelTable | None, used: pl.Series) -> Vocabulary:
    """Names of the label file in its order, then those that only facts have, sorted.

    Args:
        kind: 'entity' or 'relation'.
        table: the label file, where there is one.
        used: the distinct names that facts have.
    """
    if table is None:
        return Vocabulary.of(kind, _sorted_names(used).alias("id"))
    known = table.frame
    extra = _sorted_names(used.filter(~used.is_in(known["id"].implode())))
    both = pl.concat([known, pl.DataFrame({"id": extra, "key": extra, "label": extra})])
    return Vocabulary(kind, both["id"], both["key"], both["label"])


def _unique(columns: Sequence[pl.Series]) -> pl.Series:
    distinct = [column.unique().alias("name") for column in columns]
    return pl.concat(distinct).unique() if distinct else pl.Series("name", [], dtype=pl.String)


def _sorted_names(names: pl.Series) -> pl.Series:
    """By number where all names are whole numbers, so that dense ids keep their places."""
    if len(names) and are_numbers(names):
        return pl.DataFrame({"n": names.cast(pl.Int64), "name": names}).sort("n", "name")["name"]
    return names.sort()


def are_numbers(names: pl.Series) -> bool:
    """Whether all names are whole numbers that fit into 64 bits."""
    return bool(names.str.contains(r"^[0-9]{1,18}$").all())


def _read_dates(
    tables: Sequence[FactTable], unit: Unit | None
) -> tuple[Dates, NDArray[np.int32], NDArray[np.int32]]:
    """The distinct dates, and the place of each fact's start and end among them."""
    columns = {end: [table.frame[end] for table in tables] for end in _DATES}
    used = _unique([column for end in _DATES for column in columns[end]])
    # Where there is no text, the text is empty.
    texts = pl.concat([used.drop_nulls(), pl.Series("name", [""])]).unique().sort()
    names = pl.Enum(texts)
    start_text, end_text = (
        _concatenate(
            [c.cast(names).to_physical().fill_null(0).to_numpy().astype(np.int32) for c in both]
        )
        for both in columns.values()
    )
    counts = np.bincount(start_text, minlength=len(texts))
    counts += np.bincount(end_text, minlength=len(texts))
    return Dates.of(texts, counts, unit), start_text, end_text


def _marks(tables: Sequence[FactTable], name: str, words: tuple[str, ...]) -> NDArray[np.uint8]:
    """The place of each fact's mark among the words; 0 where a table has no such marks."""
    places = [
        table.frame[name].cast(pl.Enum(words)).to_physical().to_numpy()
        if name in table.frame.columns
        else np.zeros(len(table.frame), np.uint8)
        for table in tables
    ]
    return np.concatenate(places).astype(np.uint8)


def _concatenate(arrays: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate(arrays) if len(arrays) != 1 else arrays[0]


def find_defects(
    columns: Mapping[str, NDArray[Any]], dates: Dates
) -> dict[Defect, NDArray[np.int64]]:
    """The rows that have each kind of defect."""
    start, end = columns["start"], columns["end"]
    backwards = (start > end) & (start != UNKNOWN) & (end != UNKNOWN)
    return {
        Defect.MALFORMED_START: np.flatnonzero(dates.malformed[columns["start_text"]]),
        Defect.MALFORMED_END: np.flatnonzero(dates.malformed[columns["end_text"]]),
        Defect.START_AFTER_END: np.flatnonzero(backwards),
    }


def describe_defects(
    tables: Sequence[FactTable],
    found: Mapping[Defect, NDArray[np.int64]],
    columns: Mapping[str, NDArray[Any]],
    dates: Dates,
    on_error: OnError,
) -> pl.DataFrame:
    """One row for each defect, in the order of the input."""
    begins = np.cumsum([0, *(len(table.lines) for table in tables)])
    described = []
    for defect, rows in found.items():
        done = "row skipped" if on_error is OnError.SKIP else defect.repair
        for row, start, end in zip(
            rows.tolist(),
            dates.texts.gather(columns["start_text"][rows]),
            dates.texts.gather(columns["end_text"][rows]),
            strict=True,
        ):
            number = int(np.searchsorted(begins, row, side="right")) - 1
            table, line = tables[number], tables[number].lines[row - int(begins[number])]
            described.append((row, table.split, table.source, line, defect.value, start, end, done))
    schema = {"row": pl.Int64, **DEFECT_SCHEMA}
    listed = pl.DataFrame(described, schema=schema, orient="row")
    return listed.sort("row", maintain_order=True).drop("row")


def mended(
    columns: dict[str, NDArray[Any]],
    found: Mapping[Defect, NDArray[np.int64]],
    dates: Dates,
    on_error: OnError,
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """The columns with their defects repaired, or without the rows that have any; and who stays."""
    kept = np.ones(len(columns["start"]), np.bool_)
    if on_error is OnError.SKIP:
        for rows in found.values():
            kept[rows] = False
        if not kept.all():
            columns = {name: column[kept] for name, column in columns.items()}
    else:
        backwards = found[Defect.START_AFTER_END]
        columns["end"][backwards] = dates.last[columns["start_text"][backwards]]
    return columns, kept


def first_defect(defects: pl.DataFrame) -> str:
    """What is wrong with the first of them, how many there are, and what to do."""
    first = defects.row(0, named=True)
    return (
        f"{first['file']}, line {first['line']}: {first['defect']} "
        f"(start {first['start']!r}, end {first['end']!r}); {len(defects):,} such defects in all. "
        "Correct the rows, or let them be repaired (on_error='repair', --on-error repair) "
        "or left out (skip)."
    )


def _place_attributes(
    entities: Vocabulary, attributes: Mapping[str, tuple[pl.Series, NDArray[np.float64]]]
) -> dict[str, NDArray[np.float64]]:
    placed = {}
    for name, (ids, numbers) in attributes.items():
        column = np.full(len(entities), np.nan)
        try:
            column[entities.encode(ids)] = numbers
        except DataError as failure:
            raise DataError(f"attribute {name}: {failure}, so its number has no owner") from None
        placed[name] = column
    return placed
