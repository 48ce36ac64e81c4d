"""Delimited text, plain or gzipped: read fast, with exact lines in error messages."""

import csv
import gzip
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl

from tilp.errors import DataError

_BLOCK_SIZE = 1 << 24  # bytes
_MAX_BATCH_ROWS = 100_000
_ROW_BYTES = 64  # about; decides how many quoted rows make a batch
_MAX_COLUMNS = 5  # without a header
_BOM = b"\xef\xbb\xbf"
_SEPARATORS = "\t,;|"
_UNREADABLE = (OSError, EOFError, zlib.error, csv.Error)
_OTHER_FORMATS = {
    b"PK\x03\x04": "an Excel workbook or zip archive; name it .xlsx, or save the sheet as CSV",
    b"SQLite format 3\0": "a SQLite database; tilp convert DATA --sql QUERY reads it",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8, for instance with: iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8, for instance with: iconv -f utf-16 -t utf-8",
    b"PAR1": "Parquet; name it .parquet",
}

csv.field_size_limit(1 << 30)  # of one cell, which may be long


@dataclass(frozen=True)
class TextTable:
    """Cells as text, null if empty, and the line in which each row begins."""

    names: tuple[str, ...] | None
    frame: pl.DataFrame
    lines: Sequence[int]


@dataclass(frozen=True)
class _Layout:
    """How a file is split into cells, and its first row that is not blank."""

    separator: str
    quoted: bool
    line: int
    next_line: int
    row: tuple[str, ...]
    second: tuple[str, ...]  # the row after it; empty if there is none

    @property
    def schema(self) -> dict[str, type[pl.String]]:
        return {f"{index}": pl.String for index in range(len(self.row))}


# Whether the cells of the first row are column names, given the second row too.
IsHeader = Callable[[tuple[str, ...], tuple[str, ...]], bool]


def text_batches(
    path: Path,
    header: bool | None,
    is_header: IsHeader,
    *,
    min_columns: int = 3,
    size: int = _BLOCK_SIZE,
) -> Iterator[TextTable]:
    """Yield a delimited file, gzipped or not, in tables of about `size` bytes; one if it is empty.

    If `header` is None, `is_header` decides. Tabs are never inside a cell, so tab-separated files
    hold bare quotation marks; files with commas or semicolons follow the usual quoting where they
    have any quotation mark.
    """
    layout = _find_layout(path, min_columns)
    if header is None:
        header = is_header(layout.row, layout.second)
    names, first = (layout.row, layout.next_line) if header else (None, layout.line)
    read = _quoted_batches if layout.quoted else _plain_batches
    width = len(layout.row)
    # The last column, if empty, may be but a separator at the end of each row.
    may_drop_last = not names[-1] if names else width > _MAX_COLUMNS
    if may_drop_last and not any(f[:, -1].count() for f, _ in read(path, layout, first, size)):
        width, names = width - 1, names and names[:-1]
    batches = read(path, layout, first, size)
    empty = pl.DataFrame(schema=layout.schema), range(first, first)
    for frame, lines in chain([next(batches, empty)], batches):
        yield TextTable(names, frame[:, :width], lines)


def text_slices(path: Path, rows: int, *, block_size: int = _BLOCK_SIZE) -> Iterator[TextTable]:
    """Yield a delimited file with a header in tables of so many rows; one without rows if empty."""
    rest: TextTable | None = None
    for table in text_batches(path, True, lambda *_: True, min_columns=1, size=block_size):
        rest = table if rest is None else join_tables([rest, table])
        while len(rest.frame) > rows:
            yield TextTable(rest.names, rest.frame[:rows], rest.lines[:rows])
            rest = TextTable(rest.names, rest.frame[rows:], rest.lines[rows:])
    if rest is not None:
        yield rest


def join_tables(tables: Sequence[TextTable]) -> TextTable:
    """Return several parts of a table as one; none of several is empty."""
    if len(tables) == 1:
        return tables[0]
    frame = pl.concat([table.frame for table in tables])
    begin, end = tables[0].lines[0], tables[-1].lines[-1] + 1
    if end - begin == len(frame):
        return TextTable(tables[0].names, frame, range(begin, end))
    return TextTable(tables[0].names, frame, [line for table in tables for line in table.lines])


def open_text(path: Path) -> BinaryIO:
    """Open a file, gzipped or not, to read bytes."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast("BinaryIO", gzip.open(path) if zipped else path.open("rb"))


def _blocks(path: Path, size: int = _BLOCK_SIZE) -> Iterator[bytes]:
    rest = b""
    try:
        with open_text(path) as file:
            while block := file.read(size):
                block = rest + block
                cut = block.rfind(b"\n") + 1
                rest = block[cut:]
                if cut:
                    yield block[:cut]
    except _UNREADABLE as failure:
        raise DataError(f"{path}: cannot be read: {failure}. Is the file cut short?") from failure
    if rest:
        yield rest


def _find_layout(path: Path, min_columns: int) -> _Layout:
    begin = next(_blocks(path), b"")
    for start, kind in _OTHER_FORMATS.items():
        if begin.startswith(start):
            raise DataError(f"{path}: not delimited text but {kind}")
    separator = _find_separator(begin)
    quoted = separator != "\t" and any(b'"' in block for block in _blocks(path))
    plain = ((line, line + 1, text.split(separator)) for line, text in _plain_lines(path))
    every = _quoted_rows(path, separator) if quoted else plain
    rows = (item for item in every if any(cell.strip() for cell in item[2]))
    for line, next_line, row in rows:
        if len(row) < min_columns:
            raise DataError(
                f"{path}, line {line}: {len(row)} columns ({separator.join(row)[:80]!r}), but "
                f"there must be at least {min_columns}. Separate columns by tabs, commas or "
                "semicolons."
            )
        second = tuple(next(rows, (0, 0, ()))[2])
        return _Layout(separator, quoted, line, next_line, tuple(row), second)
    raise DataError(f"{path}: no rows")


def _find_separator(begin: bytes) -> str:
    """Return the separator that splits the first rows into equally many, unquoted cells."""
    lines = begin.removeprefix(_BOM).decode(errors="replace").split("\n")

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


def _plain_batches(
    path: Path, layout: _Layout, first: int, size: int
) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
    """Read a file without quotation by polars, once every line is known to have its separators."""
    expected = len(layout.row) - 1
    separator, newline = ord(layout.separator), ord("\n")
    next_line = 1
    for block in _blocks(path, size):
        whole = block if block.endswith(b"\n") else block + b"\n"
        characters = np.frombuffer(whole, dtype=np.uint8)
        marks = np.flatnonzero((characters == separator) | (characters == newline))
        newlines = np.flatnonzero(characters[marks] == newline)
        ends = marks[newlines]
        begins = np.append(0, ends[:-1] + 1)
        lines = np.arange(next_line, next_line + len(ends))
        mask = lines >= first
        for index in np.flatnonzero(mask & (np.diff(newlines, prepend=-1) - 1 != expected)):
            text = block[begins[index] : ends[index]].rstrip(b"\r")
            if text:
                row = text.decode(errors="replace").split(layout.separator)
                raise _column_error(path, int(lines[index]), row, expected + 1)
            mask[index] = False
        if mask.any():
            if not mask.all():
                block = characters[np.repeat(mask, ends - begins + 1)].tobytes()
            if next_line == 1 and mask[0]:
                block = block.removeprefix(_BOM)
            frame, rows = _read_csv(block, path, layout), lines[mask]
            begin, end = int(rows[0]), int(rows[-1]) + 1
            yield frame, range(begin, end) if end - begin == len(rows) else rows.tolist()
        next_line += len(ends)


def _read_csv(source: bytes, path: Path, layout: _Layout) -> pl.DataFrame:
    try:
        return pl.read_csv(
            _BOM + source,  # polars drops one, which may be part of a name in the middle of a file
            separator=layout.separator,
            quote_char=None,
            has_header=False,
            schema=layout.schema,
            raise_if_empty=False,
        )
    except (pl.exceptions.PolarsError, OSError) as failure:
        deque(_plain_lines(path), maxlen=0)  # raises an error where it is not UTF-8
        raise DataError(f"{path}: cannot be read as a table: {failure}") from failure


def _column_error(path: Path, line: int, row: Sequence[str], expected: int) -> DataError:
    missing, remedy = "", "Remove the extra cells, or quote a cell that holds the separator."
    if len(row) < expected:
        missing = f", column {len(row) + 1} is missing"
        remedy = "Leave a missing date empty, but keep its separator."
    return DataError(
        f"{path}, line {line}: {len(row)} columns where {expected} are expected{missing}; found "
        f"{' | '.join(row)[:120]!r}. {remedy}"
    )


def _quoted_batches(
    path: Path, layout: _Layout, first: int, size: int
) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
    width, every = len(layout.row), _quoted_rows(path, layout.separator)
    rows = ((line, row) for line, _, row in every if line >= first and row)
    while batch := list(islice(rows, min(_MAX_BATCH_ROWS, max(1, size // _ROW_BYTES)))):
        for line, row in batch:
            if len(row) != width:
                raise _column_error(path, line, row, width)
        cells = [[cell or None for cell in row] for _, row in batch]
        yield pl.DataFrame(cells, schema=layout.schema, orient="row"), [line for line, _ in batch]


def _quoted_rows(path: Path, separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield rows with quotation, each with the line it begins in and the line after it."""
    line = 1
    try:
        with open_text(path) as file:
            text = TextIOWrapper(file, "utf-8-sig", newline="")
            reader = csv.reader(text, delimiter=separator, strict=True)
            for row in reader:
                begin, line = line, reader.line_num + 1
                yield begin, line, row
    except UnicodeDecodeError as failure:
        deque(_plain_lines(path), maxlen=0)  # raises an error with the line
        raise DataError(f"{path}: not UTF-8 text: {failure}") from failure
    except _UNREADABLE as failure:
        raise DataError(
            f"{path}, line {line}: cannot be read: {failure}. A quotation mark that is not "
            "closed, or a file cut short, does this."
        ) from failure


def _plain_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines, counted from 1, without their ends."""
    blocks = (block.removesuffix(b"\n").split(b"\n") for block in _blocks(path))
    for line, raw in enumerate(chain.from_iterable(blocks), start=1):
        text = raw.removeprefix(_BOM) if line == 1 else raw
        try:
            yield line, text.decode().removesuffix("\r")
        except UnicodeDecodeError as failure:
            raise DataError(
                f"{path}, line {line}: not UTF-8 text (byte {text[failure.start]:#04x}). "
                "Convert the file, for instance with: iconv -f latin1 -t utf-8"
            ) from failure
