"""Delimited text, plain or gzipped: read fast, and exact about the line where it goes wrong."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import DataError

__all__ = ["TextTable", "read_text_table", "text_slices"]

_BLOCK = 1 << 24
_BATCH = 100_000
_MOST_COLUMNS = 5  # without a header
_BOM = b"\xef\xbb\xbf"
_SEPARATORS = "\t,;"
_UNREADABLE = (OSError, EOFError, zlib.error, csv.Error)
_OTHER_KINDS = {
    b"PK\x03\x04": "an Excel workbook or zip archive; save the sheet as CSV",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8, for instance with: iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8, for instance with: iconv -f utf-16 -t utf-8",
    b"PAR1": "Parquet; name it .parquet",
}


@dataclass(frozen=True)
class TextTable:
    """Cells as text, null where a cell is empty, and the line that each row begins in."""

    names: tuple[str, ...] | None
    frame: pl.DataFrame
    lines: Sequence[int]


@dataclass(frozen=True)
class _Layout:
    """How a file is cut into cells, and its first row that is not blank."""

    separator: str
    quoted: bool
    line: int
    next_line: int
    row: tuple[str, ...]


def read_text_table(
    path: Path,
    header: bool | None,
    is_header: Callable[[tuple[str, ...]], bool],
    *,
    least: int = 3,
) -> TextTable:
    """Read a delimited file.

    Tabs are never inside a cell, so tab-separated files hold bare quotation marks; files with
    commas or semicolons follow the usual quoting where they have any quotation mark.

    Args:
        path: a file, gzipped or not.
        header: whether the first row holds column names; None lets `is_header` decide.
        is_header: called with the first row's cells.
        least: how many columns there must be.

    Raises:
        DataError: naming file, line, what was found and what to do.
    """
    layout = _find_layout(path, least)
    if header is None:
        header = is_header(layout.row)
    first = layout.next_line if header else layout.line
    read = _read_quoted if layout.quoted else _read_plain
    frame, lines = read(path, layout, first)
    names = layout.row if header else None
    spare = not names[-1] if names else len(layout.row) > _MOST_COLUMNS
    if spare and not frame[:, -1].count():  # a separator at the end of every row
        frame, names = frame[:, :-1], names and names[:-1]
    return TextTable(names, frame, lines)


def text_slices(path: Path, rows: int, *, least: int = 2) -> Iterator[TextTable]:
    """Read a delimited file that has a header in slices, never more of it than a slice or a block.

    Args:
        path: a file, gzipped or not, laid out as for `read_text_table`.
        rows: of each slice; the last may have fewer, and where there are none it is the only one.
        least: how many columns there must be.

    Raises:
        DataError: naming file, line, what was found and what to do.
    """
    layout = _find_layout(path, least)
    read = _quoted_batches if layout.quoted else _plain_batches
    held = pl.DataFrame(schema=dict.fromkeys(map(str, range(len(layout.row))), pl.String))
    lines = np.empty(0, np.int64)
    first = True
    for frame, more in read(path, layout, layout.next_line):
        held, lines = pl.concat([held, frame]), np.concatenate([lines, np.asarray(more, np.int64)])
        while len(held) >= rows:
            yield _named(layout, held[:rows], lines[:rows])
            held, lines, first = held[rows:], lines[rows:], False
    if len(held) or first:
        yield _named(layout, held, lines)


def _named(layout: _Layout, frame: pl.DataFrame, lines: NDArray[np.int64]) -> TextTable:
    names = layout.row
    if not names[-1] and not frame[:, -1].count():  # a separator at the end of every row
        frame, names = frame[:, :-1], names[:-1]
    return TextTable(names, frame, lines.tolist())


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast("BinaryIO", gzip.open(path) if zipped else path.open("rb"))


def _blocks(path: Path) -> Iterator[bytes]:
    """A file in blocks of whole lines."""
    rest = b""
    try:
        with _open(path) as file:
            while block := file.read(_BLOCK):
                block = rest + block
                cut = block.rfind(b"\n") + 1
                rest = block[cut:]
                if cut:
                    yield block[:cut]
    except _UNREADABLE as failure:
        raise DataError(f"{path}: cannot be read: {failure}. Is the file cut short?") from failure
    if rest:
        yield rest


def _find_layout(path: Path, least: int) -> _Layout:
    head = next(_blocks(path), b"")
    for start, kind in _OTHER_KINDS.items():
        if head.startswith(start):
            raise DataError(f"{path}: not delimited text but {kind}")
    separator = _find_separator(head)
    quoted = separator != "\t" and any(b'"' in block for block in _blocks(path))
    rows = _quoted_rows(path, separator) if quoted else _plain_rows(path, separator)
    for line, next_line, row in rows:
        if any(cell.strip() for cell in row):
            if len(row) < least:
                found = separator.join(row)
                raise DataError(
                    f"{path}, line {line}: {len(row)} columns ({found[:80]!r}), but there must be "
                    f"at least {least}. Separate columns by tabs, commas or semicolons."
                )
            return _Layout(separator, quoted, line, next_line, tuple(row))
    raise DataError(f"{path}: no rows")


def _find_separator(head: bytes) -> str:
    """The sign that cuts the first rows into equally many columns, and no cell at a quotation."""
    lines = head.removeprefix(_BOM).decode(errors="replace").split("\n")

    def fit(separator: str) -> tuple[bool, bool, int]:
        reader = csv.reader(
            (f"{line}\n" for line in lines),
            delimiter=separator,
            quoting=csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL,
        )
        try:
            rows = list(islice((row for row in reader if row), 20))
        except csv.Error:
            return False, False, 0
        counts = {len(row) for row in rows}
        whole = not any('"' in cell for row in rows for cell in row)
        return len(counts) == 1 and counts != {1}, whole, max(counts, default=0)

    return max(_SEPARATORS, key=fit)


def _read_plain(path: Path, layout: _Layout, first: int) -> tuple[pl.DataFrame, Sequence[int]]:
    """Cells of a file without quotation: polars cuts it, once every line has its separators."""
    blank = _check_columns(path, layout, first)
    first = _not_blank(first, blank)
    return _without_blank(_cut(path, path, layout, first - 1), first, blank)


def _not_blank(first: int, blank: Sequence[int]) -> int:
    """The first line from one on that is not blank: polars counts the columns there."""
    for line in blank:
        first += line == first
    return first


def _cut(source: Path | bytes, path: Path, layout: _Layout, skip: int) -> pl.DataFrame:
    """The cells of a file without quotation, or of a block of it, after some lines."""
    columns = [f"{place}" for place in range(len(layout.row))]
    try:
        return pl.read_csv(
            source,
            separator=layout.separator,
            quote_char=None,
            has_header=False,
            skip_rows=skip,
            schema=dict.fromkeys(columns, pl.String),
            raise_if_empty=False,
        )
    except (pl.exceptions.PolarsError, OSError) as failure:
        _find_undecodable(path)
        raise DataError(f"{path}: cannot be read as a table: {failure}") from failure


def _without_blank(
    frame: pl.DataFrame, first: int, blank: Sequence[int]
) -> tuple[pl.DataFrame, Sequence[int]]:
    """The rows of a frame that are not blank, and their lines, the first of all being `first`."""
    if not len(blank):
        return frame, range(first, first + len(frame))
    lines = np.arange(first, first + len(frame))
    keep = ~np.isin(lines, blank)
    return frame.filter(keep), lines[keep].tolist()


def _check_columns(path: Path, layout: _Layout, first: int) -> list[int]:
    """The blank lines from line `first` on; every other must have as many columns as the first."""
    return [line for _, _, blank in _checked_blocks(path, layout, first) for line in blank]


def _checked_blocks(
    path: Path, layout: _Layout, first: int
) -> Iterator[tuple[int, bytes, list[int]]]:
    """Blocks of whole lines with the number of their first one, and their blank lines, likewise."""
    expected = len(layout.row) - 1
    separator, newline = ord(layout.separator), ord("\n")
    line = 1
    for block in _blocks(path):
        blank: list[int] = []
        signs = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", dtype=np.uint8)
        marks = np.flatnonzero((signs == separator) | (signs == newline))
        ending = np.flatnonzero(signs[marks] == newline)
        found = np.diff(ending, prepend=-1) - 1
        ends = marks[ending]
        begins = np.concatenate([[0], ends[:-1] + 1])
        for place in np.flatnonzero(found != expected):
            if line + place >= first:
                text = block[begins[place] : ends[place]].rstrip(b"\r")
                if text:
                    row = text.decode(errors="replace").split(layout.separator)
                    raise _column_error(path, int(line + place), row, expected + 1)
                blank.append(int(line + place))
        yield line, block, blank
        line += len(ends)


def _column_error(path: Path, line: int, row: Sequence[str], expected: int) -> DataError:
    few = len(row) < expected
    missing = f", column {len(row) + 1} is missing" if few else ""
    remedy = (
        "Leave a missing date empty, but keep its separator."
        if few
        else "Remove the extra cells, or quote a cell that holds the separator."
    )
    return DataError(
        f"{path}, line {line}: {len(row)} columns where {expected} are expected{missing}; found "
        f"{' | '.join(row)[:120]!r}. {remedy}"
    )


def _read_quoted(path: Path, layout: _Layout, first: int) -> tuple[pl.DataFrame, Sequence[int]]:
    """Cells of a file with quotation, row by row, as Python's own reader cuts it."""
    schema = dict.fromkeys((f"{place}" for place in range(len(layout.row))), pl.String)
    batches = list(_quoted_batches(path, layout, first))
    lines = [line for _, of_batch in batches for line in of_batch]
    return pl.concat([pl.DataFrame(schema=schema), *(frame for frame, _ in batches)]), lines


def _quoted_batches(
    path: Path, layout: _Layout, first: int
) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
    schema = dict.fromkeys((f"{place}" for place in range(len(layout.row))), pl.String)
    rows = (
        (line, row)
        for line, _, row in _quoted_rows(path, layout.separator)
        if line >= first and row
    )
    while batch := list(islice(rows, _BATCH)):
        for line, row in batch:
            if len(row) != len(schema):
                raise _column_error(path, line, row, len(schema))
        cells = [[cell or None for cell in row] for _, row in batch]
        yield pl.DataFrame(cells, schema=schema, orient="row"), [line for line, _ in batch]


def _plain_batches(
    path: Path, layout: _Layout, first: int
) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
    for line, block, blank in _checked_blocks(path, layout, first):
        begin = _not_blank(max(line, first), blank)
        yield _without_blank(_cut(block, path, layout, begin - line), begin, blank)


def _plain_rows(path: Path, separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """Rows without quotation, each with the line it begins in and the one after it."""
    for line, raw in _lines(path):
        text = _decode(raw.removeprefix(_BOM) if line == 1 else raw, path, line)
        yield line, line + 1, text.removesuffix("\r").split(separator)


def _quoted_rows(path: Path, separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """Rows with quotation, each with the line it begins in and the one after it."""
    line = 1
    csv.field_size_limit(1 << 30)
    try:
        with _open(path) as file:
            text = TextIOWrapper(file, "utf-8-sig", newline="")
            reader = csv.reader(text, delimiter=separator, strict=True)
            for row in reader:
                begin, line = line, reader.line_num + 1
                yield begin, line, row
    except UnicodeDecodeError as failure:
        _find_undecodable(path)
        raise DataError(f"{path}: not UTF-8 text: {failure}") from failure
    except _UNREADABLE as failure:
        raise DataError(
            f"{path}, line {line}: cannot be read: {failure}. A quotation mark that is not "
            "closed, or a file cut short, does this."
        ) from failure


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as failure:
        raise DataError(
            f"{path}, line {number}: not UTF-8 text (byte {line[failure.start]:#04x}). "
            "Convert the file, for instance with: iconv -f latin1 -t utf-8"
        ) from failure


def _find_undecodable(path: Path) -> None:
    for line, raw in _lines(path):
        _decode(raw, path, line)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    line = 0
    for block in _blocks(path):
        for raw in block.removesuffix(b"\n").split(b"\n"):
            line += 1
            yield line, raw
