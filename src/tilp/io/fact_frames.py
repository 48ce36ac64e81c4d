"""From the cells of a table to the columns of facts, all text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from tilp.errors import DataError
from tilp.graph import ESTIMATED, SPLITS, WALKED_ONLY
from tilp.intervals.dates import DateKind, parse_date
from tilp.io.columns import FACT_COLUMNS, assign_columns, is_header
from tilp.io.sources import SPLIT_NAMES, warn
from tilp.io.text_tables import TextTable

__all__ = ["by_split", "fact_frame", "find_roles"]

_MARKS = {
    "estimated": (ESTIMATED, "which dates are estimates, start, end or both"),
    "walked_only": (WALKED_ONLY, "'yes' where a training fact is walked on, but not learned from"),
}


def find_roles(
    name: str, table: TextTable, columns: Mapping[str, str] | None, header: bool | None
) -> dict[str, int]:
    """The place of each role among a table's columns; what was found out by itself is told.

    Args:
        name: of the source, for messages.
        table: at least its first two rows.
        columns: column names by role, as the caller gave them.
        header: whether there is a row of column names, as the caller told.

    Raises:
        DataError: the columns cannot be told apart, or the first row is no fact.
    """
    roles = assign_columns(table.names, table.frame.width, name, columns)
    if table.names is not None:
        _note_columns(name, table.names, roles, named=bool(columns))
    elif header is None:
        _refuse_unknown_header(name, table, roles)
    return roles


def by_split(
    name: str, table: TextTable, roles: Mapping[str, int]
) -> Iterator[tuple[str, pl.Series]]:
    """What the column of splits says, each word once, and which rows have it.

    Raises:
        DataError: a word that is no split.
    """
    told = (
        _as_text(table.frame.to_series(roles["split"]), name, "split")
        .str.strip_chars()
        .str.to_lowercase()
    )
    for text in told.unique(maintain_order=True):
        if text not in SPLIT_NAMES:
            row = int((told.eq_missing(text)).arg_max() or 0)
            raise DataError(
                f"{name}, line {table.lines[row]}: the split is {text!r}; "
                f"it can be {', '.join(SPLITS)}"
            )
        yield text, told == text


def _note_columns(
    name: str, columns: tuple[str, ...], roles: Mapping[str, int], *, named: bool
) -> None:
    """Say which columns were taken by their order, and which were left aside."""
    if not named and not is_header(columns):
        taken = ", ".join(f"{role} = {columns[place]}" for role, place in roles.items())
        warn(f"{name}: columns are taken by their order: {taken}")
    unused = [column for place, column in enumerate(columns) if place not in roles.values()]
    if unused:
        warn(f"{name}: columns not used: {', '.join(unused)}")


def _refuse_unknown_header(name: str, table: TextTable, roles: Mapping[str, int]) -> None:
    """A first row whose date is none, before one whose date is, is no fact but names columns."""
    dates = [table.frame.to_series(roles[role]) for role in ("start", "date") if role in roles]
    if not dates or len(table.frame) < 2:
        return
    first, second = (parse_date(dates[0][row] or "").kind for row in (0, 1))
    if first is DateKind.MALFORMED and second is DateKind.KNOWN:
        cells = ", ".join(cell or "" for cell in table.frame.row(0))
        raise DataError(
            f"{name}, line {table.lines[0]}: {cells} looks like a header, but its names are not "
            "known. Say which column is which with columns= (--columns subject=…,relation=…,"
            "object=…), or header=False (--no-header) if it is a fact."
        )


def fact_frame(name: str, table: TextTable, roles: Mapping[str, int]) -> pl.DataFrame:
    """The columns of facts as text; names present in every row."""
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
    for mark, (words, meaning) in _MARKS.items():
        if mark in roles:
            columns[mark] = _marks(name, table, mark, roles[mark], words, meaning)
    return pl.DataFrame(columns)


def _marks(
    name: str, table: TextTable, mark: str, place: int, words: tuple[str, ...], meaning: str
) -> pl.Series:
    """A column of marks, in their words."""
    found = _as_text(table.frame.to_series(place), name, mark).fill_null("")
    strange = ~found.is_in(words)
    if strange.any():
        row = int(strange.arg_max() or 0)
        raise DataError(
            f"{name}, line {table.lines[row]}: column {place + 1} ({mark}) is {found[row]!r}; "
            f"it says {meaning}, and else is empty. Correct it, or give the column another name."
        )
    return found


def _as_text(column: pl.Series, source: str, role: str) -> pl.Series:
    """A column as text; whole floats (integers with gaps, in pandas) as integers."""
    dtype = column.dtype
    if dtype == pl.String:
        return column
    if dtype.is_float():
        number = column.fill_nan(None)
        whole = (number == number.round()) & (number.abs() < 2.0**62)
        integers = number.zip_with(whole.fill_null(False), pl.Series([None], dtype=dtype))
        return integers.cast(pl.Int64).cast(pl.String).fill_null(number.cast(pl.String))
    if dtype in (pl.Date, pl.Datetime):
        return column.dt.strftime("%Y-%m-%d")
    if dtype.is_integer() or dtype in (pl.Categorical, pl.Enum, pl.Null):
        return column.cast(pl.String)
    raise DataError(f"{source}: column {column.name!r} ({role}) holds {dtype}, not names or dates")
