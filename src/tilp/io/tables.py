"""Tables from Parquet files and frames, the files beside the facts, and `write`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from tilp._utils.arrays import Floats
from tilp._utils.files import new_folder
from tilp.errors import DataError, TilpError
from tilp.graph import SPLITS, TemporalGraph
from tilp.io.frames import as_text
from tilp.io.records import edge_table, read_records
from tilp.io.text import IsHeader, TextTable, join_tables, text_batches
from tilp.types import TableFormat, Unit, choose

PARQUET_SUFFIXES = (".parquet", ".pq")

_BATCH_SIZE = 1 << 24  # bytes
_SAMPLE_ROWS = 1000  # to estimate the bytes of a row
_ID_NAMES = ("id", "key", "entity", "entity_id", "relation", "relation_id")


def as_polars(source: Any) -> pl.DataFrame:
    """Return a frame of any kind as one of polars."""
    try:
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        if isinstance(source, pl.DataFrame):
            return source
        if type(source).__module__.partition(".")[0] == "pandas":
            return pl.DataFrame(pl.from_pandas(source))
        if hasattr(source, "__arrow_c_stream__"):
            return pl.DataFrame(source)
        if type(source).__module__.partition(".")[0] == "networkx":
            return edge_table(source)
    except ImportError as failure:
        raise TilpError('pandas frames need an extra: pip install "tilp[pandas]"') from failure
    except (ValueError, TypeError, AttributeError, OSError, pl.exceptions.PolarsError) as failure:
        kind = type(source).__name__
        raise DataError(f"the {kind} cannot be read as a table: {failure}") from failure
    raise TilpError(
        f"cannot read facts from {type(source).__name__}; give a path, a polars, pandas or Arrow "
        "frame, a networkx graph, or a mapping from split to one of these"
    )


def is_frame(source: Any) -> bool:
    """Return whether something is a frame that `as_polars` takes."""
    return isinstance(source, (pl.DataFrame, pl.LazyFrame)) or hasattr(source, "__arrow_c_stream__")


def same_kind(frame: pl.DataFrame, like: Any) -> Any:
    """Return a frame as one of the kind that another has: pandas, pyarrow, or polars."""
    match type(like).__module__.partition(".")[0]:
        case "pandas":
            return frame.to_pandas()
        case "pyarrow":
            return frame.to_arrow()
    return frame


def as_table(frame: pl.DataFrame, first_line: int) -> TextTable:
    """Return a frame as a table whose lines are counted from `first_line`."""
    return TextTable(tuple(frame.columns), frame, range(first_line, first_line + len(frame)))


def frame_batches(frame: pl.DataFrame, size: int) -> Iterator[TextTable]:
    """Yield a frame in tables of about `size` bytes; at least one, perhaps empty."""
    step = _batch_rows(frame.head(_SAMPLE_ROWS), size)
    for begin in range(0, max(len(frame), 1), step):
        yield as_table(frame.slice(begin, step), begin)


def read_table(
    path: Path, header: bool | None, is_header: IsHeader, min_columns: int = 3,
    sql: str | None = None,
) -> TextTable:  # fmt: skip
    """Read a Parquet file or records as they are, or a delimited file as `text_batches` does."""
    if (table := read_records(path, sql)) is not None:
        return table
    if path.suffix.lower() not in PARQUET_SUFFIXES:
        return join_tables(list(text_batches(path, header, is_header, min_columns=min_columns)))
    with parquet_errors(path):
        return as_table(pl.read_parquet(path, glob=False), 1)


def parquet_batches(path: Path, size: int, first_line: int = 1) -> Iterator[TextTable]:
    """Yield a Parquet file in tables of about `size` bytes; at least one, perhaps empty."""
    with parquet_errors(path):
        lazy = pl.scan_parquet(path, glob=False)
        rows = int(lazy.select(pl.len()).collect().item())
        step = _batch_rows(lazy.head(_SAMPLE_ROWS).collect(), size)
    for begin in range(0, max(rows, 1), step):
        with parquet_errors(path):
            frame = lazy.slice(begin, step).collect()
        yield as_table(frame, begin + first_line)


def _batch_rows(sample: pl.DataFrame, size: int) -> int:
    return max(1, int(size * max(len(sample), 1) / max(sample.estimated_size(), 1)))


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """Raise errors of reading Parquet as a `DataError` that names the file."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
        raise DataError(f"{path}: cannot be read as Parquet: {failure}") from failure


def read_labels(path: Path, *, either_way: bool = False) -> pl.DataFrame:
    """Read the names of entities or relations; with `either_way`, ids may be the second column."""
    table = join_tables(list(_table_batches(path)))
    if either_way and table.frame.width == 2:
        is_id = [column.str.contains(r"^\d+$").all() for column in table.frame]
        if is_id == [False, True]:
            table = replace(table, frame=table.frame.select(reversed(table.frame.columns)))
    frame = _label_columns(table)
    _refuse_duplicates(path, table, frame["id"])
    return frame


def label_batches(path: Path, size: int) -> Iterator[tuple[pl.DataFrame, TextTable]]:
    """Yield the same some rows at a time, with their lines; ids may be duplicate."""
    for table in _table_batches(path, size):
        yield _label_columns(table), table


def _label_columns(table: TextTable) -> pl.DataFrame:
    frame = table.frame.fill_null("")
    ids = frame.to_series(0)
    keys = frame.to_series(1) if frame.width > 2 else ids
    keys = keys.zip_with(keys != "", ids)
    labels = frame.to_series(min(frame.width - 1, 2))
    return pl.DataFrame({"id": ids, "key": keys, "label": labels.zip_with(labels != "", keys)})


def _refuse_duplicates(path: Path, table: TextTable, ids: pl.Series) -> None:
    duplicate = ids.is_duplicated()
    if duplicate.any():
        row = int(duplicate.arg_max() or 0)
        raise duplicate_id_error(path, table.lines[row], ids[row])


def duplicate_id_error(path: Path, line: int, name: str | None) -> DataError:
    """Return the error about two rows of an id in a file of names or attributes."""
    twice = f"the id {name!r} stands there more than once; there is one row an id"
    return DataError(f"{path}, line {line}: {twice}")


def read_attributes(path: Path) -> dict[str, tuple[pl.Series, Floats]]:
    """Read numbers of entities: by attribute, the ids and their values."""
    table = join_tables(list(_table_batches(path)))
    values = number_columns(path, table)
    ids = table.frame.to_series(0)
    _refuse_duplicates(path, table, ids)
    return {name: (ids, column) for name, column in values.items()}


def attribute_batches(
    path: Path, size: int
) -> Iterator[tuple[pl.Series, dict[str, Floats], TextTable]]:
    """Yield ids and values some rows at a time, with their lines; ids may be duplicate."""
    for table in _table_batches(path, size):
        yield table.frame.to_series(0), number_columns(path, table), table


def number_columns(path: Path | str, table: TextTable) -> dict[str, Floats]:
    """Return the numbers of each column after the first, NaN where there is none."""
    if table.names is None:
        raise DataError(f"{path}: attributes need a header: id, then a name for each number")
    columns = {}
    for index, name in enumerate(table.names[1:], start=1):
        text = table.frame.to_series(index)
        values = text.cast(pl.Float64, strict=False)
        invalid = values.is_null() & text.is_not_null() & (text != "")
        if invalid.any():
            row = int(invalid.arg_max() or 0)
            found = f"{name} is {text[row]!r}, not a number"
            raise DataError(f"{path}, line {table.lines[row]}: {found}")
        columns[name] = values.fill_null(float("nan")).to_numpy()
    return columns


def _table_batches(path: Path, size: int = _BATCH_SIZE) -> Iterator[TextTable]:
    """Yield a table of names or attributes, whose header begins with 'id'."""
    if path.suffix.lower() not in PARQUET_SUFFIXES:
        return text_batches(path, None, _is_header, min_columns=1, size=size)
    tables = parquet_batches(path, size)
    return (replace(t, frame=t.frame.select(_column_as_text(t.frame, path))) for t in tables)


def _column_as_text(frame: pl.DataFrame, path: Path) -> list[pl.Series]:
    return [as_text(column, str(path), "a name or a number") for column in frame]


def _is_header(cells: tuple[str, ...], _second: tuple[str, ...] = ()) -> bool:
    return cells[0].strip().lower() in _ID_NAMES


def read_note(folder: Path) -> tuple[Unit | None, dict[str, Any]]:
    """Read what `write` wrote beside the facts: their unit, and how they were read before."""
    path = folder / "graph.json"
    if not path.is_file():
        return None, {}
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        return Unit(note["unit"]), checked_reading(note.get("reading"))
    except (ValueError, KeyError, TypeError, RecursionError) as failure:
        raise DataError(
            f"{path}: does not name a unit ({failure}); remove the file or write "
            '{"unit": "year"} with year, month, day or integer'
        ) from failure


def checked_reading(reading: Any) -> dict[str, Any]:
    """Return what there is to know of how a table was read; nothing that is of another type."""
    kinds = {"columns": dict, "wide": bool, "relation_name": str, "date_format": str}
    items = reading.items() if isinstance(reading, dict) else ()
    return {name: value for name, value in items if isinstance(value, kinds.get(name, ()))}


def write(
    graph: TemporalGraph, folder: Path | str, *, format: TableFormat | str = TableFormat.TSV
) -> Path:
    """Write a graph: a table for each split, names, attributes, and the unit.

    Dates are written as they were read, so defects stay visible.

    Args:
        graph: the facts.
        folder: must not exist yet or be empty; it appears whole or not at all.
        format: 'tsv' (default), 'csv' or 'parquet'.

    Returns:
        The folder, which `read` reads back as an equal graph.

    Raises:
        TilpError: the folder is in use, or a name does not fit the format.

    >>> import tempfile, tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tilp.read(write(graph, f"{folder}/facts")) == graph
    True
    """
    format = choose(TableFormat, format, "format")
    with new_folder(Path(folder)) as partial:
        write_tables(graph, partial, format)
    return Path(folder)


def write_tables(graph: TemporalGraph, folder: Path, format: TableFormat) -> None:
    """Write the files of `write` to a folder that is there."""
    for split in SPLITS:
        if len(graph.rows(split)) or split == "train":
            write_table(graph.frame(split, names="ids"), folder / split, format)
    write_table(graph.entities.frame(), folder / "entities", format)
    write_table(graph.relations.frame(), folder / "relations", format)
    if graph.attributes:
        values = {name: pl.Series(column) for name, column in graph.attributes.items()}
        table = pl.DataFrame({"id": graph.entities.ids, **values})
        write_table(table, folder / "attributes", format)
    about = {"unit": graph.unit.value, **({"reading": graph.reading} if graph.reading else {})}
    (folder / "graph.json").write_text(json.dumps(about) + "\n", encoding="utf-8")


def write_table(frame: pl.DataFrame, stem: Path, format: TableFormat) -> None:
    """Write a table; the format is the file's suffix."""
    path = stem.with_name(f"{stem.name}.{format.value}")
    match format:
        case TableFormat.PARQUET:
            frame.write_parquet(path)
        case TableFormat.CSV:
            frame.write_csv(path, quote_style="non_numeric")
        case TableFormat.TSV:
            for column in frame.select(pl.col(pl.String)):
                invalid = column.str.contains(r"[\t\r\n]")
                if invalid.any():
                    held = f"{column.filter(invalid)[0]!r} holds a tab or line break"
                    raise TilpError(f"{held}, which TSV cannot; write CSV or Parquet")
            frame.write_csv(path, separator="\t", quote_style="never")
