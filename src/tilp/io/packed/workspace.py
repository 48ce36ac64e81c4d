"""Tables in Parquet files, made from one another by SQL: DuckDB joins and sorts on disk."""

import os
from collections import Counter
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from tilp.errors import TilpError

_LEAST_MEMORY = 100_000_000  # bytes; with less, DuckDB cannot join
_ATTEMPTS = 3  # each with half as much memory again
_BYTES_PER_THREAD = 250_000_000
_BYTES_PER_ROW = 2000  # of a slice, with everything that is computed from it


class Workspace:
    """Folder of temporary tables, about `memory` bytes of which are in memory at once.

    Equal queries give equal tables where they sort by unique keys, with any number of threads.
    """

    def __init__(self, folder: Path, memory: int) -> None:
        folder.mkdir()
        self.folder, self._rows = folder, max(1, memory // _BYTES_PER_ROW)
        self._parts: Counter[str] = Counter()
        self._memory = max(memory // 2, _LEAST_MEMORY)
        threads = max(1, min(os.cpu_count() or 1, memory // _BYTES_PER_THREAD))
        self._connection = duckdb.connect(
            config={
                "memory_limit": f"{self._memory}B",
                "threads": threads,
                "preserve_insertion_order": False,  # but for what ORDER BY sorts
                "temp_directory": str(folder / "spilled"),
                # A join hashes its right side, as queries are written: the sizes of tables in files
                # are guessed from the first file.
                "disabled_optimizers": "join_order,build_side_probe_side",
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )

    def add(self, table: str, part: pl.DataFrame) -> None:
        """Append rows to a table, in no order."""
        path = self.folder / f"{table}-{self._parts[table]}"
        part.write_parquet(path, compression="lz4", statistics=False)
        if not self._parts[table]:
            self._view(table, "*", f"{escape(str(self.folder))}/{table}-*", "")
        self._parts[table] += 1

    def make(self, table: str, query: str) -> None:
        """Make a table of the rows of a query; its column `row` counts them in their order."""
        path = str(self.folder / table)
        self.rows(f"COPY ({query}) TO {_quoted(path)} (FORMAT parquet, COMPRESSION lz4_raw)")
        columns = "* EXCLUDE file_row_number, file_row_number::INTEGER AS row"
        self._view(table, columns, escape(path), ", file_row_number = true")

    def _view(self, table: str, columns: str, files: str, option: str) -> None:
        source = f"read_parquet({_quoted(files)}, hive_partitioning = false{option})"
        self.rows(f"CREATE VIEW {table} AS SELECT {columns} FROM {source}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query that has few."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._connection.execute(query).fetchall()
            except duckdb.OutOfMemoryException as failure:
                if attempt == _ATTEMPTS - 1:
                    remedy = "give it more (memory=, --memory)"
                    raise TilpError(f"too little memory to sort the names; {remedy}") from failure
                self.raise_memory(self._memory // 2)
            except duckdb.IOException as failure:
                raise OSError(str(failure).partition("\n")[0]) from failure
        raise AssertionError

    def raise_memory(self, n_bytes: int) -> None:
        """Let DuckDB use so many bytes more."""
        self._memory += n_bytes
        self.rows(f"SET memory_limit = '{self._memory}B'")

    def slices(self, table: str) -> Iterator[pl.DataFrame]:
        """Iterate over the rows that `make` made, as many at a time as fit into memory."""
        lazy, begin = pl.scan_parquet(self.folder / table, glob=False), 0
        while len(part := lazy.slice(begin, self._rows).collect()):
            yield part
            begin += len(part)

    def remove(self, *tables: str) -> None:
        """Remove tables that are needed no more, for their room on disk."""
        for table in tables:
            self.rows(f"DROP VIEW {table}")
            del self._parts[table]
            for path in (self.folder / table, *self.folder.glob(f"{table}-*")):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """End the work of DuckDB."""
        self._connection.close()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
