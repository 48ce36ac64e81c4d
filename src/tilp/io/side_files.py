"""What may lie beside the facts: names, numbers of entities, the unit; and Parquet for all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import DataError
from tilp.graph import LabelTable
from tilp.io.text import TextTable, read_text_table, text_batches
from tilp.types import Unit

__all__ = [
    "PARQUET",
    "as_table",
    "attribute_batches",
    "frame_batches",
    "label_batches",
    "noted_unit",
    "parquet_batches",
    "parquet_errors",
    "read_attributes",
    "read_labels",
    "read_parquet",
    "repeated_id",
]

PARQUET = (".parquet", ".pq")
"""The endings of Parquet files."""

_MEASURED = 1000  # rows that tell how many bytes a row has
_ID_NAMES = ("id", "key", "entity", "entity_id", "relation", "relation_id")


def read_parquet(path: Path) -> pl.DataFrame:
    """A Parquet file as a frame."""
    with parquet_errors(path):
        return pl.read_parquet(path, glob=False)


def parquet_batches(path: Path, size: int) -> Iterator[TextTable]:
    """The same as tables of some rows each, about `size` bytes; at least one, perhaps empty."""
    with parquet_errors(path):
        lazy = pl.scan_parquet(path, glob=False)
        rows = int(lazy.select(pl.len()).collect().item())
        step = _rows_of(lazy.head(_MEASURED).collect(), size)
    for begin in range(0, max(rows, 1), step):
        with parquet_errors(path):
            frame = lazy.slice(begin, step).collect()
        yield as_table(frame, begin + 1)


def frame_batches(frame: pl.DataFrame, size: int) -> Iterator[TextTable]:
    """A frame likewise, its rows numbered from 0."""
    step = _rows_of(frame.head(_MEASURED), size)
    for begin in range(0, max(len(frame), 1), step):
        yield as_table(frame.slice(begin, step), begin)


def _rows_of(first: pl.DataFrame, size: int) -> int:
    """About how many rows have so many bytes, by the first ones."""
    return max(1, int(size * max(len(first), 1) / max(first.estimated_size(), 1)))


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """What goes wrong with a Parquet file, told with its name."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
        raise DataError(f"{path}: cannot be read as Parquet: {failure}") from failure


def as_table(frame: pl.DataFrame, first: int) -> TextTable:
    """A frame's columns as a table whose rows are numbered from `first`."""
    return TextTable(tuple(frame.columns), frame, range(first, first + len(frame)))


def read_labels(path: Path) -> LabelTable:
    """Names of entities or relations."""
    table = _read_plain_table(path)
    frame = _labels_of(table)
    _refuse_repeated(path, table, frame["id"])
    return LabelTable(str(path), frame)


def label_batches(path: Path, size: int) -> Iterator[tuple[pl.DataFrame, TextTable]]:
    """The columns id, key and label of such a file, some rows at a time, and their lines.

    Whether an id stands there twice is not looked at.
    """
    for table in _plain_batches(path, size):
        yield _labels_of(table), table


def _labels_of(table: TextTable) -> pl.DataFrame:
    frame = table.frame.fill_null("")
    ids = frame.to_series(0)
    keys = frame.to_series(1) if frame.width > 2 else ids
    labels = frame.to_series(min(frame.width - 1, 2))
    return pl.DataFrame(
        {
            "id": ids,
            "key": keys.zip_with(keys != "", ids),
            "label": labels.zip_with(labels != "", keys.zip_with(keys != "", ids)),
        }
    )


def _refuse_repeated(path: Path, table: TextTable, ids: pl.Series) -> None:
    repeated = ids.is_duplicated()
    if repeated.any():
        row = int(repeated.arg_max() or 0)
        raise repeated_id(path, table.lines[row], ids[row])


def repeated_id(path: Path, line: int, name: str | None) -> DataError:
    """What is wrong where a file of names or numbers has two rows of an id."""
    return DataError(
        f"{path}, line {line}: the id {name!r} stands there more than once; there is one row an id"
    )


def read_attributes(path: Path) -> dict[str, tuple[pl.Series, NDArray[np.float64]]]:
    """Numbers of entities, by attribute."""
    table = _read_plain_table(path)
    numbers = _numbers_of(path, table)
    ids = table.frame.to_series(0)
    _refuse_repeated(path, table, ids)
    return {name: (ids, column) for name, column in numbers.items()}


def attribute_batches(
    path: Path, size: int
) -> Iterator[tuple[pl.Series, dict[str, NDArray[np.float64]], TextTable]]:
    """Ids and their numbers, some rows at a time, and their lines.

    Whether an id stands there twice is not looked at.
    """
    for table in _plain_batches(path, size):
        yield table.frame.to_series(0), _numbers_of(path, table), table


def _numbers_of(path: Path, table: TextTable) -> dict[str, NDArray[np.float64]]:
    if table.names is None:
        raise DataError(f"{path}: attributes need a header: id, then a name for each number")
    found = {}
    for place, name in enumerate(table.names[1:], start=1):
        text = table.frame.to_series(place)
        numbers = text.cast(pl.Float64, strict=False)
        wrong = numbers.is_null() & text.is_not_null() & (text != "")
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            raise DataError(
                f"{path}, line {table.lines[row]}: {name} is {text[row]!r}, not a number"
            )
        found[name] = numbers.fill_null(float("nan")).to_numpy()
    return found


def _read_plain_table(path: Path) -> TextTable:
    """A table of names or numbers, whose header begins with 'id'."""
    if path.suffix.lower() in PARQUET:
        return as_table(read_parquet(path).cast(pl.String), 1)
    return read_text_table(path, None, _is_label_header, least=1)


def _plain_batches(path: Path, size: int) -> Iterator[TextTable]:
    """The same, some rows at a time."""
    if path.suffix.lower() in PARQUET:
        for table in parquet_batches(path, size):
            yield TextTable(table.names, table.frame.cast(pl.String), table.lines)
        return
    yield from text_batches(path, None, _is_label_header, least=1, size=size)


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
