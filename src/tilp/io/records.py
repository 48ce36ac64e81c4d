"""Tables from JSON lines, Excel, SQLite, DuckDB and networkx."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from tilp.errors import DataError, TilpError
from tilp.io.text import TextTable, open_text

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
EXCEL_SUFFIXES = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_SQLITE, _DUCKDB = b"SQLite format 3\0", b"DUCK"
_TABLES = {
    True: "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name",
    False: "SELECT table_name FROM information_schema.tables ORDER BY table_name",
}
_EDGE_DATA = ("start", "end", "date", "split")


def is_database(path: Path) -> bool:
    """Return whether a file is a database of SQLite or DuckDB."""
    begin = b""
    if path.is_file():
        with path.open("rb") as file:
            begin = file.read(16)
    return begin == _SQLITE or begin[8:12] == _DUCKDB


def read_records(path: Path, sql: str | None = None) -> TextTable | None:
    """Read a file of records with named fields, of a database by a query; None for other files."""
    if is_database(path):
        return _read_database(path, sql)
    if sql is not None:
        raise TilpError(f"{path}: --sql (sql=…) is for files of SQLite or DuckDB, and this is none")
    if Path(path.name.lower().removesuffix(".gz")).suffix in JSON_SUFFIXES:
        return _read_json(path)
    return _read_excel(path) if path.suffix.lower() in EXCEL_SUFFIXES else None


def _text_table(
    names: Sequence[str], rows: Iterable[Sequence[Any]], lines: Sequence[int], source: str
) -> TextTable:
    """Return rows of any values as a table of text."""
    cells = []
    for line, row in zip(lines, rows, strict=True):
        try:
            cells.append([_text(value) for value in row])
        except DataError as failure:
            raise DataError(f"{source}, line {line}: {failure}") from None
    schema = {f"{index}": pl.String for index in range(len(names))}
    return TextTable(tuple(names), pl.DataFrame(cells, schema=schema, orient="row"), lines)


def _text(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**62:
        return str(int(value))
    if isinstance(value, date):  # or with a time of day
        return value.isoformat()[:10]
    if isinstance(value, (dict, list, tuple, bytes)):
        kind, found = type(value).__name__, str(value)[:40]
        raise DataError(
            f"a cell holds {kind} {found!r}, not a name or a date; leave it out, or flatten it"
        )
    return None if value is None else str(value)


def _read_json(path: Path) -> TextTable:
    """Read an object a line, or an array of objects."""
    records: list[Any] = []
    lines: list[int] = []
    line = 1
    try:
        with open_text(path) as file:
            for line, raw in enumerate(file, start=1):
                text = raw.decode("utf-8-sig").strip()
                if line == 1 and text.startswith("["):
                    records = json.loads(text + file.read().decode())
                    lines = list(range(1, len(records) + 1))
                elif text:
                    records.append(json.loads(text))
                    lines.append(line)
    except (ValueError, RecursionError, OSError, EOFError) as failure:
        form = "there is one object a line, or an array of objects"
        raise DataError(f"{path}, line {line}: not JSON ({failure}); {form}") from failure
    for line, record in zip(lines, records, strict=True):
        if not isinstance(record, dict):
            found = f"{path}, line {line}: {type(record).__name__}"
            raise DataError(f'{found}, not an object such as {{"subject": "Ada", "relation": …}}')
    if not records:
        raise DataError(f"{path}: no rows")
    names = list(dict.fromkeys(name for record in records for name in record))
    return _text_table(names, ([r.get(n) for n in names] for r in records), lines, str(path))


def _read_excel(path: Path) -> TextTable:
    """Read the first sheet, whose first row names the columns."""
    try:
        frame = pl.read_excel(path, sheet_id=1, infer_schema_length=None)
    except ImportError as failure:
        raise TilpError('Excel files need an extra: pip install "tilp[excel]"') from failure
    except (Exception, pl.exceptions.PanicException) as failure:
        raise DataError(f"{path}: cannot be read as an Excel workbook: {failure}") from failure
    return TextTable(tuple(frame.columns), frame, range(2, len(frame) + 2))


def _read_database(path: Path, sql: str | None) -> TextTable:
    with path.open("rb") as file:
        is_sqlite = file.read(16) == _SQLITE
    connection: Any = None
    try:
        if is_sqlite:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        else:
            import duckdb

            connection = duckdb.connect(str(path), read_only=True)
        tables = [str(name) for (name,) in connection.execute(_TABLES[is_sqlite]).fetchall()]
        if sql is None and len(tables) != 1:
            remedy = f'say what to read: --sql "SELECT * FROM {tables[0] if tables else "…"}"'
            raise DataError(f"{path}: a database with {len(tables)} tables {tables[:9]}; {remedy}")
        cursor = connection.execute(sql or f'SELECT * FROM "{tables[0]}"')
        names, rows = [str(column[0]) for column in cursor.description or ()], cursor.fetchall()
    except Exception as failure:
        text = str(failure) if isinstance(failure, TilpError) else f"{path}: {failure}"
        raise DataError(text) from failure
    finally:
        if connection is not None:
            connection.close()
    if not names:
        raise DataError(f"{path}: {sql!r} gives no table; write a SELECT")
    return _text_table(names, rows, range(1, len(rows) + 1), str(path))


def edge_table(graph: Any) -> pl.DataFrame:
    """Return the edges of a networkx graph as facts.

    The relation of an edge is its `relation` (or `label`, `type`), or else its key.
    """
    rows = []
    keys = {"keys": True} if graph.is_multigraph() else {}
    for subject, target, *key, data in graph.edges(data=True, **keys):
        kinds = [data[name] for name in ("relation", "label", "type") if name in data]
        relation = next(iter([*kinds, *key]), None)
        rows.append((subject, relation, target, *(data.get(name) for name in _EDGE_DATA)))
    if any(row[1] is None for row in rows):
        raise DataError("an edge of the graph has no relation; give each edge relation=…")
    names = ("subject", "relation", "object", *_EDGE_DATA)
    frame = _text_table(names, rows, range(len(rows)), "the graph").frame
    frame.columns = list(names)
    return frame.select(c.name for c in frame if c.name in names[:3] or c.count())
