"""`read`: one call from a file, a folder of splits or a frame to a `TemporalGraph`."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.choices import OnError, Unit
from tilp.errors import DataError, TilpError, TilpWarning
from tilp.graph import SPLITS, FactTable, LabelTable, TemporalGraph, build_graph
from tilp.io.columns import FACT_COLUMNS, assign_columns, is_header
from tilp.io.text_tables import TextTable, read_text_table

__all__ = ["read"]

logger = logging.getLogger(__name__)

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
_TEXT = (".tsv", ".txt", ".csv")
_PARQUET = (".parquet", ".pq")


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
            relation, object, and start and end, or date, and split. Files then have a header.
        header: whether files begin with a row of column names; found out by default.

    Raises:
        DataError: what cannot be read, naming file, line, column, what was found and the remedy.
    """
    try:
        on_error = OnError(on_error)
        chosen_unit = Unit(unit) if unit is not None else None
    except ValueError as failure:
        raise TilpError(
            f"{failure}; units are {_listed(Unit)}, errors {_listed(OnError)}"
        ) from None
    labels: dict[str, LabelTable] = {}
    attributes: dict[str, tuple[pl.Series, NDArray[np.float64]]] = {}
    tables: list[FactTable] = []
    if isinstance(source, (str, Path)) and Path(source).is_dir():
        folder = Path(source)
        source, extra = _find_files(folder)
        labels = {name: _read_labels(path) for name, path in extra.items() if name in _LABELS}
        if "attributes" in extra:
            attributes = _read_attributes(extra["attributes"])
        chosen_unit = chosen_unit or _noted_unit(folder)
    if not isinstance(source, Mapping):
        source = {"train": source}
    for split, part in source.items():
        if split not in SPLITS:
            raise TilpError(f"no split is named {split!r}; there are {', '.join(SPLITS)}")
        tables += _fact_tables(part, split, columns, header)
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


_LABELS = ("entities", "relations")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _find_files(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """The files of a folder by split, and the label and attribute files by name."""
    splits: dict[str, Path] = {}
    extra: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        stem, _, suffix = path.name.lower().removesuffix(".gz").rpartition(".")
        if f".{suffix}" not in (*_TEXT, *_PARQUET) or not path.is_file():
            continue
        found = splits if stem in _SPLIT_NAMES else extra
        name = _SPLIT_NAMES.get(stem, stem)
        if name in found and (found is splits or name in (*_LABELS, "attributes")):
            raise DataError(
                f"{folder}: both {found[name].name} and {path.name} could be the {name} file; "
                "remove one, or read the one you mean by its own path"
            )
        found[name] = path
    if not splits:
        listed = ", ".join(path.name for path in sorted(folder.iterdir())[:10]) or "nothing"
        raise DataError(
            f"{folder}: no fact file; a folder holds train, and perhaps valid and test, as .tsv, "
            f".txt, .csv (.gz) or .parquet. Found: {listed}"
        )
    return splits, extra


def _fact_tables(
    source: Any, split: str, columns: Mapping[str, str] | None, header: bool | None
) -> list[FactTable]:
    """Facts of one source; several tables only where a column tells the split."""
    if columns and header is None:
        header = True
    name, table = _read_table(source, header)
    roles = assign_columns(table.names, table.frame.width, name, columns)
    _note_unused(name, table, roles)
    frame = _fact_frame(name, table, roles)
    if "split" not in roles:
        return [FactTable(split, name, frame, table.lines)]
    told = _as_text(table.frame.to_series(roles["split"]), name, "split").str.to_lowercase()
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
        path = Path(source)
        if not path.is_file():
            raise DataError(f"{path}: no such file or folder")
        if path.suffix.lower() in _PARQUET:
            return str(path), _framed(_read_parquet(path), 1)
        return str(path), read_text_table(path, header, is_header)
    return "the frame", _framed(_as_polars(source), 0)


def _framed(frame: pl.DataFrame, first: int) -> TextTable:
    return TextTable(tuple(frame.columns), frame, range(first, first + len(frame)))


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
        raise DataError(f"{path}: cannot be read as Parquet: {failure}") from failure


def _as_polars(source: Any) -> pl.DataFrame:
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    if type(source).__module__.partition(".")[0] == "pandas":
        return pl.from_pandas(source)
    if hasattr(source, "__arrow_c_stream__"):
        return pl.DataFrame(source)
    raise TilpError(
        f"cannot read facts from {type(source).__name__}; give a path, a polars, pandas or Arrow "
        "frame, or a mapping from split to one of these"
    )


def _note_unused(name: str, table: TextTable, roles: Mapping[str, int]) -> None:
    unused = [
        column for place, column in enumerate(table.names or ()) if place not in roles.values()
    ]
    if unused:
        logger.info("%s: columns not used: %s", name, ", ".join(unused))


def _fact_frame(name: str, table: TextTable, roles: Mapping[str, int]) -> pl.DataFrame:
    """The five columns of facts as text; names present in every row."""
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
    return pl.DataFrame(columns)


def _as_text(column: pl.Series, source: str, role: str) -> pl.Series:
    """A column as text; whole floats (integers with gaps, in pandas) as integers."""
    dtype = column.dtype
    if dtype == pl.String:
        return column
    if dtype.is_float():
        whole = column.is_nan() | (column == column.round())
        column = column.fill_nan(None)
        return column.cast(pl.Int64 if whole.all() else dtype, strict=False).cast(pl.String)
    if dtype in (pl.Date, pl.Datetime):
        return column.dt.strftime("%Y-%m-%d")
    if dtype.is_integer() or dtype in (pl.Categorical, pl.Enum, pl.Null):
        return column.cast(pl.String)
    raise DataError(f"{source}: column {column.name!r} ({role}) holds {dtype}, not names or dates")


def _read_labels(path: Path) -> LabelTable:
    _, table = _read_plain_table(path)
    frame = table.frame.fill_null("")
    ids = frame.to_series(0)
    keys = frame.to_series(1) if frame.width > 2 else ids
    labels = frame.to_series(min(frame.width - 1, 2))
    repeated = ids.is_duplicated()
    if repeated.any():
        row = int(repeated.arg_max() or 0)
        raise DataError(
            f"{path}, line {table.lines[row]}: the id {ids[row]!r} stands there more than once; "
            "a label file has one row an id"
        )
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


def _read_attributes(path: Path) -> dict[str, tuple[pl.Series, NDArray[np.float64]]]:
    names, table = _read_plain_table(path)
    if names is None:
        raise DataError(f"{path}: attributes need a header: id, then a name for each number")
    ids = table.frame.to_series(0)
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
    if path.suffix.lower() in _PARQUET:
        frame = _read_parquet(path).cast(pl.String)
        return tuple(frame.columns), _framed(frame, 1)
    table = read_text_table(path, None, _is_label_header, least=1)
    return table.names, table


def _is_label_header(cells: tuple[str, ...]) -> bool:
    return cells[0].strip().lower() == "id"


def _noted_unit(folder: Path) -> Unit | None:
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


def _warn_of_defects(graph: TemporalGraph) -> None:
    if not len(graph.defects):
        return
    counts = graph.defects.group_by("defect", "done", maintain_order=True).len()
    listed = ", ".join(f"{count:,} × {defect} ({done})" for defect, done, count in counts.rows())
    warnings.warn(
        TilpWarning(
            f"date defects: {listed}. See each row: graph.defects, or tilp inspect DATA --defects"
        ),
        stacklevel=3,
    )
