"""Delimited text, plain or gzipped: fast where it is well-formed, exact about where it is not."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl

from tilp.errors import DataError

__all__ = ["TextTable", "read_text_table"]

_PEEK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_UNREADABLE = (OSError, EOFError, zlib.error, csv.Error)


@dataclass(frozen=True)
class TextTable:
    """Cells as text, null where a cell is empty, and the line that each row begins in."""

    names: tuple[str, ...] | None
    frame: pl.DataFrame
    lines: Sequence[int]


@dataclass(frozen=True)
class _Layout:
    """How a file is cut into cells."""

    separator: str
    first_line: int
    first_row: tuple[str, ...]

    @property
    def quote(self) -> str | None:
        # Names in tab-separated files hold bare quotation marks; nobody quotes there.
        return None if self.separator == "\t" else '"'


def read_text_table(
    path: Path,
    header: bool | None,
    is_header: Callable[[tuple[str, ...]], bool],
    *,
    least: int = 3,
) -> TextTable:
    """Read a delimited file.

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
        header = is_header(layout.first_row)
    names = layout.first_row if header else None
    skipped = layout.first_line - 1 + header
    columns = [f"{place}" for place in range(len(layout.first_row))]
    try:
        frame = pl.read_csv(
            path,
            separator=layout.separator,
            quote_char=layout.quote,
            has_header=False,
            skip_rows=skipped,
            schema=dict.fromkeys(columns, pl.String),
            raise_if_empty=False,
        )
    except (pl.exceptions.PolarsError, OSError) as failure:
        _check_rows(path, layout)
        raise DataError(f"{path}: cannot be read as a table: {failure}") from failure
    if frame.width != len(columns):
        _check_rows(path, layout)
        raise DataError(f"{path}: {frame.width} columns where {len(columns)} are expected")
    lines = _line_numbers(frame, skipped + 1, layout)
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    # An empty last cell and a row that ends too early look the same by now.
    if frame[columns[-1]].null_count() > blank.sum() and not _is_even(path, layout, frame, names):
        _check_rows(path, layout)
    if blank.any():
        frame = frame.filter(~blank)
        lines = [line for line, empty in zip(lines, blank, strict=True) if not empty]
    return TextTable(names, frame, lines)


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast("BinaryIO", gzip.open(path) if zipped else path.open("rb"))


def _find_layout(path: Path, least: int) -> _Layout:
    """Look at the first row that is not blank."""
    separator = _find_separator(path)
    for line, row in _rows(path, separator):
        if any(cell.strip() for cell in row):
            if len(row) < least:
                found = separator.join(row)
                raise DataError(
                    f"{path}, line {line}: {len(row)} columns ({found[:80]!r}), but a fact has at "
                    "least 3: subject, relation, object. Separate columns by tabs or commas."
                )
            return _Layout(separator, line, tuple(row))
    raise DataError(f"{path}: no rows; a table of facts has one fact a line")


def _find_separator(path: Path) -> str:
    """The tab if the first line that is not blank has one, else its more frequent rival."""
    try:
        with _open(path) as file:
            head = file.read(_PEEK)
    except _UNREADABLE as failure:
        raise DataError(f"{path}: cannot be read: {failure}") from failure
    first = next((line for line in head.removeprefix(_BOM).split(b"\n") if line.strip()), b"")
    return "\t" if b"\t" in first else max(",;", key=lambda sign: first.count(sign.encode()))


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as failure:
        raise DataError(
            f"{path}, line {number}: not UTF-8 text (byte {line[failure.start]:#04x}). "
            "Convert the file, for instance with: iconv -f latin1 -t utf-8"
        ) from failure


def _line_numbers(frame: pl.DataFrame, first: int, layout: _Layout) -> Sequence[int]:
    if layout.quote is not None:
        inside = frame.select(
            pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0))
        ).to_series()
        if inside.sum():
            earlier = inside.cum_sum() - inside
            return [first + row + shift for row, shift in enumerate(earlier)]
    return range(first, first + len(frame))


def _is_even(
    path: Path, layout: _Layout, frame: pl.DataFrame, names: tuple[str, ...] | None
) -> bool:
    """Whether the separators are as many as whole rows need; no row has more than it needs."""
    separator = layout.separator
    rows = len(frame) + (names is not None)
    within = sum(name.count(separator) for name in names or ())
    if layout.quote is not None:
        counts = frame.select(pl.all().str.count_matches(separator, literal=True).sum())
        within += sum(counts.row(0))
    found = 0
    with _open(path) as file:
        while block := file.read(_PEEK):
            found += block.count(separator.encode())
    return found == rows * (len(layout.first_row) - 1) + within


def _check_rows(path: Path, layout: _Layout) -> None:
    """Go through a file row by row, and name the first that has not as many columns as the first.

    Raises:
        DataError: such a row, text that is not UTF-8, or a cut-off file.
    """
    expected = len(layout.first_row)
    for line, row in _rows(path, layout.separator):
        if row not in ([], [""]) and len(row) != expected:
            few = len(row) < expected
            cells = layout.separator.join(row)
            raise DataError(
                f"{path}, line {line}: {len(row)} columns where {expected} are expected"
                f"{f', column {len(row) + 1} is missing' if few else ''}; found {cells[:120]!r}. "
                + (
                    "Leave a missing date empty, but keep its separator."
                    if few
                    else "Remove the extra cells, or quote a cell that holds the separator."
                )
            )


def _rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file, one by one, and the line that each begins in."""
    line = 0
    try:
        with _open(path) as file:
            if separator == "\t":
                for line, raw in enumerate(file, start=1):
                    text = raw.removeprefix(_BOM) if line == 1 else raw
                    yield line, _decode(text, path, line).rstrip("\r\n").split(separator)
                return
            reader = csv.reader(
                TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=separator, strict=True
            )
            for row in reader:
                yield line + 1, row
                line = reader.line_num
    except UnicodeDecodeError as failure:
        _find_undecodable(path)
        raise DataError(f"{path}: not UTF-8 text: {failure}") from failure
    except _UNREADABLE as failure:
        raise DataError(
            f"{path}, line {line + 1}: cannot be read: {failure}. A quotation mark that is not "
            "closed, or a file cut short, does this."
        ) from failure


def _find_undecodable(path: Path) -> None:
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            _decode(line, path, number)
