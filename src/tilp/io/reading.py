"""`read`: one call from a file, a folder of splits or a frame to a `TemporalGraph`."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.choices import OnError, Unit
from tilp.choosing import choose
from tilp.errors import DataError, TilpError, TilpWarning
from tilp.graph import (
    ESTIMATED,
    SPLITS,
    WALKED_ONLY,
    FactTable,
    LabelTable,
    TemporalGraph,
    build_graph,
)
from tilp.intervals.dates import DateKind, parse_date
from tilp.io.columns import FACT_COLUMNS, assign_columns, is_header
from tilp.io.side_files import (
    PARQUET,
    as_table,
    noted_unit,
    read_attributes,
    read_labels,
    read_parquet,
)
from tilp.io.text_tables import TextTable, read_text_table

__all__ = ["read"]

_SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "facts": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
    "testing": "test",
}
_MARKS = {
    "estimated": (ESTIMATED, "which dates are estimates, start, end or both"),
    "walked_only": (WALKED_ONLY, "'yes' where a training fact is walked on, but not learned from"),
}
_TEXT = (".tsv", ".txt", ".csv")
_LABELS = ("entities", "relations")
_ID_FILES = ("entity2id.txt", "relation2id.txt")  # what published sets' names were made from


def read(
    source: Any,
    *,
    unit: Unit | str | None = None,
    on_error: OnError | str = OnError.REPAIR,
    columns: Mapping[str, str] | None = None,
    header: bool | None = None,
) -> TemporalGraph:
    """Read a temporal graph.

    Args:
        source: a file, a folder with the splits (`train`, `valid`, `test`) as files, a frame
            (polars, pandas or Arrow), or a mapping from split to any of these. Files are TSV or
            CSV, gzipped or not, or Parquet. A folder may hold `entities.tsv` and `relations.tsv`
            (id, key, label) and `attributes.tsv` (entity id, then numbers).
        unit: what times count: year, month, day or integer; by default the finest in which at
            least 90 % of the known dates are complete.
        on_error: what to do with malformed dates and with starts after their ends: 'repair'
            (unknown; end = start), 'skip' the row, or 'raise'.
        columns: column names by role, where they do not speak for themselves: subject,
            relation, object, and start and end, or date, and split, estimated and walked_only.
            Files then have a header.
        header: whether files begin with a row of column names; found out by default.

    Raises:
        DataError: what cannot be read, naming file, line, column, what was found and the remedy.
    """
    on_error = choose(OnError, on_error, "on_error")
    chosen_unit = None if unit is None else choose(Unit, unit, "unit")
    labels: dict[str, LabelTable] = {}
    attributes: dict[str, tuple[pl.Series, NDArray[np.float64]]] = {}
    tables: list[FactTable] = []
    if isinstance(source, (str, Path)) and Path(source).expanduser().is_dir():
        folder = Path(source).expanduser()
        source, extra = _find_files(folder)
        labels = {name: read_labels(path) for name, path in extra.items() if name in _LABELS}
        if "attributes" in extra:
            attributes = read_attributes(extra["attributes"])
        chosen_unit = chosen_unit or noted_unit(folder)
    if not isinstance(source, Mapping):
        source = {"train": source}
    for split, part in source.items():
        if split not in _SPLIT_NAMES:
            raise TilpError(
                f"no split is named {split!r}; a mapping goes from {', '.join(SPLITS)} to tables"
            )
        tables += _fact_tables(part, _SPLIT_NAMES[split], columns, header)
    if not tables:
        raise TilpError("there is nothing to read: the mapping is empty")
    graph = build_graph(
        tables,
        entities=labels.get("entities"),
        relations=labels.get("relations"),
        attributes=attributes,
        unit=chosen_unit,
        on_error=on_error,
    )
    _warn_of_defects(graph)
    return graph


def _find_files(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """The files of a folder by split, and the label and attribute files by name."""
    found: dict[str, Path] = {}
    unread: list[str] = []
    try:
        paths = sorted(folder.iterdir())
    except OSError as failure:
        raise DataError(f"{folder}: cannot be read: {failure}") from failure
    for path in paths:
        stem, _, suffix = path.name.lower().removesuffix(".gz").rpartition(".")
        if f".{suffix}" not in (*_TEXT, *PARQUET):
            continue
        name = _SPLIT_NAMES.get(stem, stem)
        if not path.is_file() or name not in (*SPLITS, *_LABELS, "attributes"):
            unread.append(path.name)
            continue
        if name in found:
            raise DataError(
                f"{folder}: both {found[name].name} and {path.name} could be the {name} file; "
                "remove one, or read the one you mean by its own path"
            )
        found[name] = path
    splits = {split: found.pop(split) for split in SPLITS if split in found}
    if not splits:
        listed = ", ".join(path.name for path in paths[:10]) or "nothing"
        raise DataError(
            f"{folder}: no fact file; a folder holds train, and perhaps valid and test, as .tsv, "
            f".txt, .csv (.gz) or .parquet. Found: {listed}"
        )
    if unread := [name for name in unread if not (name in _ID_FILES and "entities" in found)]:
        _warn(f"{folder}: not read: {', '.join(unread)}")
    if "train" not in splits:
        _warn(f"{folder}: there is no train file, so nothing can be learned from it")
    return splits, found


def _fact_tables(
    source: Any, split: str, columns: Mapping[str, str] | None, header: bool | None
) -> list[FactTable]:
    """Facts of one source; several tables only where a column tells the split."""
    if columns and header is None:
        header = True
    name, table = _read_table(source, header)
    roles = assign_columns(table.names, table.frame.width, name, columns)
    if table.names is not None:
        _note_columns(name, table.names, roles, named=bool(columns))
    elif header is None:
        _refuse_unknown_header(name, table, roles)
    frame = _fact_frame(name, table, roles)
    if "split" not in roles:
        return [FactTable(split, name, frame, table.lines)]
    told = (
        _as_text(table.frame.to_series(roles["split"]), name, "split")
        .str.strip_chars()
        .str.to_lowercase()
    )
    tables = []
    for text in told.unique(maintain_order=True):
        if text not in _SPLIT_NAMES:
            row = int((told.eq_missing(text)).arg_max() or 0)
            raise DataError(
                f"{name}, line {table.lines[row]}: the split is {text!r}; "
                f"it can be {', '.join(SPLITS)}"
            )
        mask = told == text
        lines = [line for line, mine in zip(table.lines, mask, strict=True) if mine]
        tables.append(FactTable(_SPLIT_NAMES[text], name, frame.filter(mask), lines))
    return tables


def _read_table(source: Any, header: bool | None) -> tuple[str, TextTable]:
    """The name of a source and its cells."""
    if isinstance(source, (str, Path)):
        with _regular_file(Path(source).expanduser()) as path:
            if path.suffix.lower() in PARQUET:
                return str(source), as_table(read_parquet(path), 1)
            return str(source), read_text_table(path, header, is_header)
    return "the frame", as_table(_as_polars(source), 0)


@contextmanager
def _regular_file(path: Path) -> Iterator[Path]:
    """A file that can be read more than once; a pipe is copied first."""
    if not path.exists() or path.is_dir():
        raise DataError(f"{path}: no such file or folder")
    if path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        with path.open("rb") as pipe, copy.open("wb") as file:
            shutil.copyfileobj(pipe, file)
        yield copy


def _as_polars(source: Any) -> pl.DataFrame:
    try:
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        if isinstance(source, pl.DataFrame):
            return source
        if type(source).__module__.partition(".")[0] == "pandas":
            return pl.DataFrame(pl.from_pandas(source))
        if hasattr(source, "__arrow_c_stream__"):
            return pl.DataFrame(source)
    except ImportError as failure:
        raise TilpError('pandas frames need an extra: pip install "tilp[pandas]"') from failure
    except (ValueError, TypeError, AttributeError, OSError, pl.exceptions.PolarsError) as failure:
        kind = type(source).__name__
        raise DataError(f"the {kind} cannot be read as a table: {failure}") from failure
    raise TilpError(
        f"cannot read facts from {type(source).__name__}; give a path, a polars, pandas or Arrow "
        "frame, or a mapping from split to one of these"
    )


def _note_columns(
    name: str, columns: tuple[str, ...], roles: Mapping[str, int], *, named: bool
) -> None:
    """Say which columns were taken by their order, and which were left aside."""
    if not named and not is_header(columns):
        taken = ", ".join(f"{role} = {columns[place]}" for role, place in roles.items())
        _warn(f"{name}: columns are taken by their order: {taken}")
    unused = [column for place, column in enumerate(columns) if place not in roles.values()]
    if unused:
        _warn(f"{name}: columns not used: {', '.join(unused)}")


def _refuse_unknown_header(name: str, table: TextTable, roles: Mapping[str, int]) -> None:
    """A first row whose date is none, before one whose date is, is no fact but names columns."""
    dates = [table.frame.to_series(roles[role]) for role in ("start", "date") if role in roles]
    if not dates or len(table.frame) < 2:
        return
    first, second = (parse_date(dates[0][row] or "").kind for row in (0, 1))
    if first is DateKind.MALFORMED and second is DateKind.KNOWN:
        cells = ", ".join(cell or "" for cell in table.frame.row(0))
        raise DataError(
            f"{name}, line {table.lines[0]}: {cells} looks like a header, but its names are not "
            "known. Say which column is which with columns= (--columns subject=…,relation=…,"
            "object=…), or header=False (--no-header) if it is a fact."
        )


def _fact_frame(name: str, table: TextTable, roles: Mapping[str, int]) -> pl.DataFrame:
    """The columns of facts as text; names present in every row."""
    columns: dict[str, pl.Series] = {}
    for role in FACT_COLUMNS:
        place = roles.get(role, roles.get("date") if role in ("start", "end") else None)
        if place is None:
            columns[role] = pl.repeat(None, len(table.frame), dtype=pl.String, eager=True)
            continue
        column = _as_text(table.frame.to_series(place), name, role)
        if role in ("subject", "relation", "object"):
            absent = column.is_null() | (column == "")
            if absent.any():
                line = table.lines[int(absent.arg_max() or 0)]
                raise DataError(
                    f"{name}, line {line}: column {place + 1} ({role}) is empty; every fact has "
                    "a subject, a relation and an object. Fill it in or remove the row."
                )
        columns[role] = column
    for mark, (words, meaning) in _MARKS.items():
        if mark in roles:
            columns[mark] = _marks(name, table, mark, roles[mark], words, meaning)
    return pl.DataFrame(columns)


def _marks(
    name: str, table: TextTable, mark: str, place: int, words: tuple[str, ...], meaning: str
) -> pl.Series:
    """A column of marks, in their words."""
    found = _as_text(table.frame.to_series(place), name, mark).fill_null("")
    strange = ~found.is_in(words)
    if strange.any():
        row = int(strange.arg_max() or 0)
        raise DataError(
            f"{name}, line {table.lines[row]}: column {place + 1} ({mark}) is {found[row]!r}; "
            f"it says {meaning}, and else is empty. Correct it, or give the column another name."
        )
    return found


def _as_text(column: pl.Series, source: str, role: str) -> pl.Series:
    """A column as text; whole floats (integers with gaps, in pandas) as integers."""
    dtype = column.dtype
    if dtype == pl.String:
        return column
    if dtype.is_float():
        number = column.fill_nan(None)
        whole = (number == number.round()) & (number.abs() < 2.0**62)
        integers = number.zip_with(whole.fill_null(False), pl.Series([None], dtype=dtype))
        return integers.cast(pl.Int64).cast(pl.String).fill_null(number.cast(pl.String))
    if dtype in (pl.Date, pl.Datetime):
        return column.dt.strftime("%Y-%m-%d")
    if dtype.is_integer() or dtype in (pl.Categorical, pl.Enum, pl.Null):
        return column.cast(pl.String)
    raise DataError(f"{source}: column {column.name!r} ({role}) holds {dtype}, not names or dates")


def _warn_of_defects(graph: TemporalGraph) -> None:
    if not len(graph.defects):
        return
    counts = graph.defects.group_by("defect", "done", maintain_order=True).len()
    listed = ", ".join(f"{count:,} × {defect} ({done})" for defect, done, count in counts.rows())
    first = graph.defects.row(0, named=True)
    _warn(
        f"date defects: {listed}; the first in {first['file']}, line {first['line']}: start "
        f"{first['start']!r}, end {first['end']!r}. See each row: graph.defects, or tilp inspect "
        "DATA --defects"
    )


def _warn(message: str) -> None:
    warnings.warn(TilpWarning(message), stacklevel=4)
