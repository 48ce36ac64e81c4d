"""Sources of facts, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from tilp.errors import DataError
from tilp.io.columns import is_header
from tilp.io.fact_frames import find_roles
from tilp.io.side_files import PARQUET, frame_batches, parquet_batches
from tilp.io.sources import as_polars, regular_file
from tilp.io.text_tables import TextTable, text_batches

__all__ = ["Batches", "open_batches"]

_TO_JUDGE = 2  # rows that tell whether the first is a fact


class Batches:
    """The cells of one source.

    Args:
        name: of the source, for messages.
        size: of the source in bytes, where it is a file.
        tables: its rows, some at a time, at least one table.
        columns: column names by role, as the caller gave them.
        header: whether there is a row of column names, as the caller told.
    """

    def __init__(
        self,
        name: str,
        size: int,
        tables: Iterator[TextTable],
        columns: Mapping[str, str] | None,
        header: bool | None,
    ) -> None:
        self.name, self.size = name, size
        first: list[TextTable] = []
        while sum(len(table.frame) for table in first) < _TO_JUDGE:
            table = next(tables, None)
            if table is None:
                break
            first.append(table)
        head = TextTable(
            first[0].names,
            pl.concat([table.frame for table in first]),
            [line for table in first for line in table.lines[:_TO_JUDGE]],
        )
        self.roles = find_roles(name, head, columns, header)
        self._tables = chain(first, tables)

    def __iter__(self) -> Iterator[TextTable]:
        return self._tables


@contextmanager
def open_batches(
    source: Any, columns: Mapping[str, str] | None, header: bool | None, size: int
) -> Iterator[Batches]:
    """The rows of whatever `read` takes for facts, about so many bytes at a time."""
    if columns and header is None:
        header = True
    if isinstance(source, (str, Path)):
        with regular_file(Path(source).expanduser()) as path:
            tables = (
                parquet_batches(path, size)
                if path.suffix.lower() in PARQUET
                else text_batches(path, header, is_header, size=size)
            )
            yield Batches(str(source), path.stat().st_size, tables, columns, header)
    elif isinstance(source, pl.LazyFrame):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "facts.parquet"
            try:
                source.sink_parquet(path)
            except (pl.exceptions.PolarsError, OSError) as failure:
                raise DataError(f"the LazyFrame cannot be read: {failure}") from failure
            tables = (
                TextTable(one.names, one.frame, range(one.lines[0] - 1, one.lines[-1]))
                if len(one.frame)
                else one
                for one in parquet_batches(path, size)
            )
            yield Batches("the frame", path.stat().st_size, tables, columns, header)
    else:
        frame = as_polars(source)
        tables = frame_batches(frame, size)
        yield Batches("the frame", int(frame.estimated_size()), tables, columns, header)
