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

_BLOCK = 1 << 24
_BATCH = 100_000
_ROW_BYTES = 64  # about; only for how many rows make a part
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

    def followed_by(self, other: TextTable) -> TextTable:
        """The rows of this and then those of another part of the same table."""
        return TextTable(
            self.names, pl.concat([self.frame, other.frame]), [*self.lines, *other.lines]
        )


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
    layout, names, first = _begin(path, header, is_header, least)
    read = _read_quoted if layout.quoted else _read_plain
    frame, lines = read(path, layout, first)
    if _may_be_spare(layout, names) and not frame[:, -1].count():
        frame, names = frame[:, :-1], names and names[:-1]
    return TextTable(names, frame, lines)


def text_batches(
    path: Path,
    header: bool | None,
    is_header: Callable[[tuple[str, ...]], bool],
    *,
    least: int = 3,
    size: int = _BLOCK,
) -> Iterator[TextTable]:
    """The same table, a part at a time; a first one without rows where there are none.

    Args:
        path: likewise.
        header: likewise.
        is_header: likewise.
        least: likewise.
        size: about how many bytes of the file make a part.

    Raises:
        DataError: likewise.
    """
    layout, names, first = _begin(path, header, is_header, least)
    read = _quoted_batches if layout.quoted else _plain_batches
    width = len(layout.row)
    if _may_be_spare(layout, names) and not any(
        frame[:, -1].count() for frame, _ in read(path, layout, first, size)
    ):
        width, names = width - 1, names and names[:-1]
    empty = True
    for frame, lines in read(path, layout, first, size):
        empty = False
        yield TextTable(names, frame[:, :width], lines)
    if empty:
        yield TextTable(names, pl.DataFrame(schema=_schema(layout))[:, :width], range(first, first))


def text_slices(path: Path, rows: int, *, least: int = 2) -> Iterator[TextTable]:
    """A delimited file that has a header, in slices of so many rows.

    Args:
        path: a file, gzipped or not, laid out as for `read_text_table`.
        rows: of each slice; the last may have fewer, and where there are none it is the only one.
        least: how many columns there must be.

    Raises:
        DataError: naming file, line, what was found and what to do.
    """
    held: TextTable | None = None
    for table in text_batches(path, True, lambda _: True, least=least):
        held = table if held is None else held.followed_by(table)
        while len(held.frame) > rows:
            yield TextTable(held.names, held.frame[:rows], held.lines[:rows])
            held = TextTable(held.names, held.frame[rows:], held.lines[rows:])
    if held is not None:
        yield held


def _begin(
    path: Path, header: bool | None, is_header: Callable[[tuple[str, ...]], bool], least: int
) -> tuple[_Layout, tuple[str, ...] | None, int]:
    """How a file is cut, the names of its columns, and the line that its rows begin in."""
    layout = _find_layout(path, least)
    if header is None:
        header = is_header(layout.row)
    return layout, layout.row if header else None, layout.next_line if header else layout.line


def _may_be_spare(layout: _Layout, names: tuple[str, ...] | None) -> bool:
    """Whether the last column is none if it is empty: a separator at the end of every row."""
    return not names[-1] if names else len(layout.row) > _MOST_COLUMNS


def _schema(layout: _Layout) -> dict[str, type[pl.String]]:
    return {f"{place}": pl.String for place in range(len(layout.row))}


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast("BinaryIO", gzip.open(path) if zipped else path.open("rb"))


def _blocks(path: Path, size: int = _BLOCK) -> Iterator[bytes]:
    """A file in blocks of whole lines."""
    rest = b""
    try:
        with _open(path) as file:
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
    blank = set(_check_columns(path, layout, first))
    while first in blank:  # of which the first row would be taken to have one column
        first += 1
    frame = _read_csv(path, path, layout, first - 1)
    lines = np.arange(first, first + len(frame))
    if not len(blank):
        return frame, range(first, first + len(frame))
    keep = ~np.isin(lines, list(blank))
    return frame.filter(keep), lines[keep].tolist()


def _plain_batches(
    path: Path, layout: _Layout, first: int, size: int
) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
    """The same, a part at a time."""
    for line, block, ends, blank in _checked_blocks(path, layout, first, size):
        lines = np.arange(line, line + len(ends))
        keep = (lines >= first) & ~np.isin(lines, blank)
        if not keep.any():
            continue
        if not keep.all():
            signs = np.frombuffer(block, dtype=np.uint8)
            block = signs[np.repeat(keep, np.diff(ends, prepend=-1))[: len(signs)]].tobytes()
        if line == 1:
            block = block.removeprefix(_BOM)
        lines = lines[keep]
        whole = lines[-1] - lines[0] + 1 == len(lines)
        yield (
            _read_csv(block, path, layout, 0),
            range(int(lines[0]), int(lines[-1]) + 1) if whole else lines.tolist(),
        )


def _read_csv(source: Path | bytes, path: Path, layout: _Layout, skipped: int) -> pl.DataFrame:
    try:
        return pl.read_csv(
            source,
            separator=layout.separator,
            quote_char=None,
            has_header=False,
            skip_rows=skipped,
            schema=_schema(layout),
            raise_if_empty=False,
            glob=False,
        )
    except (pl.exceptions.PolarsError, OSError) as failure:
        _find_undecodable(path)
        raise DataError(f"{path}: cannot be read as a table: {failure}") from failure


def _check_columns(path: Path, layout: _Layout, first: int) -> list[int]:
    """The blank lines from line `first` on; every other must have as many columns as the first."""
    checked = _checked_blocks(path, layout, first, _BLOCK)
    return [line for _, _, _, blank in checked for line in blank]


def _checked_blocks(
    path: Path, layout: _Layout, first: int, size: int
) -> Iterator[tuple[int, bytes, NDArray[np.int64], list[int]]]:
    """Blocks of lines: the number of the first, the block, where lines end, which are blank."""
    expected = len(layout.row) - 1
    separator, newline = ord(layout.separator), ord("\n")
    line = 1
    for block in _blocks(path, size):
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
        yield line, block, ends, blank
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
    frames = [pl.DataFrame(schema=_schema(layout))]
    lines: list[int] = []
    for frame, its_lines in _quoted_batches(path, layout, first, _BLOCK):
        frames.append(frame)
        lines += its_lines
    return pl.concat(frames), lines


def _quoted_batches(
    path: Path, layout: _Layout, first: int, size: int
) -> Iterator[tuple[pl.DataFrame, Sequence[int]]]:
    """The same, a part at a time."""
    schema = _schema(layout)
    rows = (
        (line, row)
        for line, _, row in _quoted_rows(path, layout.separator)
        if line >= first and row
    )
    while batch := list(islice(rows, min(_BATCH, max(1, size // _ROW_BYTES)))):
        for line, row in batch:
            if len(row) != len(schema):
                raise _column_error(path, line, row, len(schema))
        cells = [[cell or None for cell in row] for _, row in batch]
        frame = pl.DataFrame(cells, schema=schema, orient="row")
        yield frame, [line for line, _ in batch]


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
