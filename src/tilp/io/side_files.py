"""What may lie beside the facts: names, numbers of entities, the unit; and Parquet for all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.choices import Unit
from tilp.errors import DataError
from tilp.graph import LabelTable
from tilp.io.text_tables import TextTable, read_text_table

__all__ = ["PARQUET", "as_table", "noted_unit", "read_attributes", "read_labels", "read_parquet"]

PARQUET = (".parquet", ".pq")
"""The endings of Parquet files."""

_ID_NAMES = ("id", "key", "entity", "entity_id", "relation", "relation_id")


def read_parquet(path: Path) -> pl.DataFrame:
    """A Parquet file as a frame."""
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
        raise DataError(f"{path}: cannot be read as Parquet: {failure}") from failure


def as_table(frame: pl.DataFrame, first: int) -> TextTable:
    """A frame's columns as a table whose rows are numbered from `first`."""
    return TextTable(tuple(frame.columns), frame, range(first, first + len(frame)))


def read_labels(path: Path) -> LabelTable:
    """Names of entities or relations."""
    _, table = _read_plain_table(path)
    frame = table.frame.fill_null("")
    ids = frame.to_series(0)
    keys = frame.to_series(1) if frame.width > 2 else ids
    labels = frame.to_series(min(frame.width - 1, 2))
    _refuse_repeated(path, table, ids)
    return LabelTable(
        str(path),
        pl.DataFrame(
            {
                "id": ids,
                "key": keys.zip_with(keys != "", ids),
                "label": labels.zip_with(labels != "", keys.zip_with(keys != "", ids)),
            }
        ),
    )


def _refuse_repeated(path: Path, table: TextTable, ids: pl.Series) -> None:
    repeated = ids.is_duplicated()
    if repeated.any():
        row = int(repeated.arg_max() or 0)
        raise DataError(
            f"{path}, line {table.lines[row]}: the id {ids[row]!r} stands there more than once; "
            "there is one row an id"
        )


def read_attributes(path: Path) -> dict[str, tuple[pl.Series, NDArray[np.float64]]]:
    """Numbers of entities, by attribute."""
    names, table = _read_plain_table(path)
    if names is None:
        raise DataError(f"{path}: attributes need a header: id, then a name for each number")
    ids = table.frame.to_series(0)
    _refuse_repeated(path, table, ids)
    attributes = {}
    for place, name in enumerate(names[1:], start=1):
        text = table.frame.to_series(place)
        numbers = text.cast(pl.Float64, strict=False)
        wrong = numbers.is_null() & text.is_not_null() & (text != "")
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            raise DataError(
                f"{path}, line {table.lines[row]}: {name} is {text[row]!r}, not a number"
            )
        attributes[name] = (ids, numbers.fill_null(float("nan")).to_numpy())
    return attributes


def _read_plain_table(path: Path) -> tuple[tuple[str, ...] | None, TextTable]:
    """A table of names or numbers, whose header begins with 'id'."""
    if path.suffix.lower() in PARQUET:
        frame = read_parquet(path).cast(pl.String)
        return tuple(frame.columns), as_table(frame, 1)
    table = read_text_table(path, None, _is_label_header, least=1)
    return table.names, table


def _is_label_header(cells: tuple[str, ...]) -> bool:
    return cells[0].strip().lower() in _ID_NAMES


def noted_unit(folder: Path) -> Unit | None:
    """The unit that `write` noted beside the facts."""
    path = folder / "graph.json"
    if not path.is_file():
        return None
    try:
        return Unit(json.loads(path.read_text(encoding="utf-8"))["unit"])
    except (ValueError, KeyError, TypeError) as failure:
        raise DataError(
            f"{path}: not a note of a unit ({failure}); remove the file or write "
            '{"unit": "year"} with year, month, day or integer'
        ) from failure
