"""Tables from JSON lines, Excel, SQLite, DuckDB and networkx."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from tilp.errors import DataError, TilpError
from tilp.io.text import TextTable, open_text

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
EXCEL_SUFFIXES = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_SQLITE, _DUCKDB = b"SQLite format 3\0", b"DUCK"
_SHOWN = 10


def suffix_of(path: Path) -> str:
    """Return the suffix of a file without that of gzip, in small letters."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_database(path: Path) -> bool:
    """Return whether a file is a database of SQLite or DuckDB."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begin = file.read(16)
    return begin == _SQLITE or begin[8:12] == _DUCKDB


def read_records(path: Path, sql: str | None = None) -> TextTable | None:
    """Read a file of records with named fields; None if it is of another kind.

    Args:
        path: The file.
        sql: The query of a database (default None: its only table).
    """
    if is_database(path):
        return _read_database(path, sql)
    if sql is not None:
        raise TilpError(
            f"{path}: --sql (sql=…) is for files of SQLite or DuckDB, and it is neither"
        )
    if suffix_of(path) in JSON_SUFFIXES:
        return _read_json(path)
    return _read_excel(path) if path.suffix.lower() in EXCEL_SUFFIXES else None


def records_table(names: Sequence[str], rows: Iterable[Sequence[Any]], lines: Sequence[int],
                  name: str) -> TextTable:  # fmt: skip
    """Return rows of any values as a table of text; `name` is that of the file, in messages."""
    cells = [[_text(value, name, lines[index]) for value in row] for index, row in enumerate(rows)]
    schema = {f"{index}": pl.String for index in range(len(names))}
    return TextTable(tuple(names), pl.DataFrame(cells, schema=schema, orient="row"), lines)


def _text(value: Any, name: str, line: int) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**62 else str(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()[:10]
    if isinstance(value, int) or type(value).__name__ in ("Decimal", "UUID"):
        return str(value)
    raise DataError(
        f"{name}, line {line}: a cell holds {type(value).__name__}, not a name or a date"
    )


def _read_json(path: Path) -> TextTable:
    """Read an object a line, or an array of objects."""
    records: list[tuple[int, Any]] = []
    line = 1
    try:
        with open_text(path) as file:
            for line, raw in enumerate(file, start=1):
                text = raw.decode("utf-8-sig" if line == 1 else "utf-8").strip()
                if line == 1 and text.startswith("["):
                    whole = json.loads(text + file.read().decode())
                    records = list(enumerate(whole, start=1))
                    break
                if text:
                    records.append((line, json.loads(text)))
    except (ValueError, RecursionError, OSError, EOFError) as failure:
        raise DataError(
            f"{path}, line {line}: not JSON ({failure}); there is one object a line, or an array "
            "of objects"
        ) from failure
    if wrong := [(line, item) for line, item in records if not isinstance(item, dict)]:
        found = f"{path}, line {wrong[0][0]}: {type(wrong[0][1]).__name__}"
        raise DataError(f'{found}, not an object such as {{"subject": "Ada", "relation": …}}')
    if not records:
        raise DataError(f"{path}: no rows")
    names = list(dict.fromkeys(name for _, record in records for name in record))
    rows = ([record.get(name) for name in names] for _, record in records)
    return records_table(names, rows, [line for line, _ in records], str(path))


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
    if is_sqlite:
        tables = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    else:
        tables = "SELECT table_name FROM information_schema.tables ORDER BY table_name"
    connection: Any = None
    try:
        if is_sqlite:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        else:
            import duckdb

            connection = duckdb.connect(str(path), read_only=True)
        if sql is None:
            found = [str(name) for (name,) in connection.execute(tables).fetchall()]
            if len(found) != 1:
                listed = ", ".join(found[:_SHOWN]) or "none"
                remedy = f'say what to read: --sql "SELECT * FROM {found[0] if found else "…"}"'
                raise DataError(f"{path}: a database with the tables {listed}; {remedy}")
            sql = 'SELECT * FROM "{}"'.format(found[0].replace('"', '""'))
        cursor = connection.execute(sql)
        names = [str(column[0]) for column in cursor.description or ()]
        rows = cursor.fetchall()
    except TilpError:
        raise
    except Exception as failure:
        raise DataError(f"{path}: the database says: {failure}") from failure
    finally:
        if connection is not None:
            connection.close()
    if not names:
        raise DataError(f"{path}: {sql!r} gives no table; write a SELECT")
    return records_table(names, rows, range(1, len(rows) + 1), str(path))


def edge_table(graph: Any) -> pl.DataFrame:
    """Return the edges of a networkx graph as facts; their data name relation and dates.

    The relation of an edge is its `relation` (or `label`, `type`), or else its key.
    """
    rows = []
    keys = graph.is_multigraph()
    for subject, target, *key, data in graph.edges(data=True, **({"keys": True} if keys else {})):
        kinds = (data[name] for name in ("relation", "label", "type") if name in data)
        known = {"subject": subject, "relation": next(kinds, key[0] if key else None)}
        rows.append({**known, "object": target, **{n: data.get(n) for n in _EDGE_DATES}})
    if any(row["relation"] is None for row in rows):
        raise DataError("an edge of the graph has no relation; give each edge relation=…")
    names = ["subject", "relation", "object", *_EDGE_DATES]
    used = [n for n in names if n not in _EDGE_DATES or any(row[n] is not None for row in rows)]
    cells = [[row[name] for name in used] for row in rows]
    table = records_table(used, cells, range(len(rows)), "the graph")
    return table.frame.rename(dict(zip(table.frame.columns, used, strict=True)))


_EDGE_DATES = ("start", "end", "date", "split")
