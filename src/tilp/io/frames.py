"""From the cells of any table to the columns of facts: which column is which, and their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from tilp.errors import DataError
from tilp.graph import ESTIMATED, SPLITS, WALKED_ONLY
from tilp.io.sources import SPLIT_NAMES, warn
from tilp.io.text import TextTable
from tilp.time import parse_date
from tilp.time.dates import DateKind

FACT_COLUMNS = ("subject", "relation", "object", "start", "end")
"""The columns of a fact, in the order of a table without header."""

_SYNONYMS: Mapping[str, frozenset[str]] = {
    "subject": frozenset({"subject", "s", "subj", "head", "h", "source", "subject_id", "head_id"}),
    "relation": frozenset(
        {"relation", "r", "rel", "predicate", "p", "property", "relation_id", "edge", "edge_type"}
    ),
    "object": frozenset({"object", "o", "obj", "tail", "t", "target", "object_id", "tail_id"}),
    "start": frozenset(
        {"start", "start_time", "start_date", "start_year", "begin", "since", "from", "valid_from"}
    ),
    "end": frozenset(
        {"end", "end_time", "end_date", "end_year", "until", "to", "valid_to", "valid_until"}
    ),
    "date": frozenset({"date", "time", "timestamp", "year", "day", "when", "point_in_time"}),
    "split": frozenset({"split"}),
    "estimated": frozenset({"estimated"}),
    "walked_only": frozenset({"walked_only"}),
}
_KEY_ROLES = frozenset({"subject", "relation", "object"})
_REMEDY = (
    "Name the columns in a header, or say which is which with columns= "
    "(--columns subject=…,relation=…,object=…,start=…,end=…)."
)
ROLES = tuple(_SYNONYMS)
"""What a column can be; 'date' is the one date of a fact that has no interval, 'estimated' says
which dates are estimates, 'walked_only' which facts are not learned from."""


def name_roles(names: Sequence[str]) -> dict[str, list[int]]:
    """The places of each role among column names."""
    roles: dict[str, list[int]] = {}
    plain = [name.strip().lower().replace(" ", "_").replace("-", "_") for name in names]
    for place, name in enumerate(plain):
        for role, synonyms in _SYNONYMS.items():
            if name in synonyms:
                roles.setdefault(role, []).append(place)
    if not {"subject", "object"} & roles.keys() and {"from", "to"} <= set(plain):
        # Of a graph's edges rather than of a fact's dates.
        for name, role, date in (("from", "subject", "start"), ("to", "object", "end")):
            roles[role] = [plain.index(name)]
            roles[date].remove(plain.index(name))
    return {role: places for role, places in roles.items() if places}


def is_header(cells: Sequence[str]) -> bool:
    """Whether a first row names its columns rather than states a fact.

    >>> is_header(["Subject", "predicate", "object", "since"]), is_header(["Ada", "knows", "Bob"])
    (True, False)
    """
    return name_roles(cells).keys() >= _KEY_ROLES


def assign_columns(
    names: Sequence[str] | None, count: int, source: str, chosen: Mapping[str, str] | None
) -> dict[str, int]:
    """The place of each role: chosen by the caller, by the names, or else by order.

    Args:
        names: the column names, where the table has any.
        count: how many columns there are.
        source: where the table comes from, for messages.
        chosen: column names by role, as the caller gave them.

    Raises:
        DataError: the columns cannot be told apart.
    """
    if chosen:
        return _chosen_columns(names, source, chosen)
    roles = name_roles(names or ())
    if roles.keys() >= _KEY_ROLES:
        return _single_roles(names or (), roles, source)
    if _KEY_ROLES & roles.keys():
        missing = ", ".join(sorted(_KEY_ROLES - roles.keys()))
        raise DataError(
            f"{source}: of the columns {', '.join(names or ())} none is called {missing}. {_REMEDY}"
        )
    if not 3 <= count <= 5:
        listed = f" ({', '.join(names)})" if names else ""
        raise DataError(
            f"{source}: {count} columns{listed}, but facts have 3 (subject, relation, object), "
            f"4 (and a date) or 5 (and start and end). {_REMEDY}"
        )
    if count == 4:
        return {"subject": 0, "relation": 1, "object": 2, "date": 3}
    return {role: place for place, role in enumerate(FACT_COLUMNS[:count])}


def _single_roles(
    names: Sequence[str], roles: Mapping[str, Sequence[int]], source: str
) -> dict[str, int]:
    """Each role's one place."""
    for role, places in roles.items():
        if len(places) > 1:
            listed = " and ".join(names[place] for place in places)
            raise DataError(f"{source}: {listed} could both be the {role}. {_REMEDY}")
    if "date" in roles and {"start", "end"} & roles.keys():
        raise DataError(
            f"{source}: {names[roles['date'][0]]} is a date beside a start or end. {_REMEDY}"
        )
    return {role: places[0] for role, places in roles.items()}


def _chosen_columns(
    names: Sequence[str] | None, source: str, chosen: Mapping[str, str]
) -> dict[str, int]:
    missing = [role for role in FACT_COLUMNS[:3] if role not in chosen]
    unknown = [role for role in chosen if role not in ROLES]
    if "date" in chosen and {"start", "end"} & chosen.keys():
        raise DataError("columns: give either date, or start and end")
    if missing or unknown:
        raise DataError(
            f"columns: {', '.join(missing or unknown)} {'missing' if missing else 'not known'}; "
            f"give subject, relation and object, and where there are any {', '.join(ROLES[3:])}"
        )
    if names is None:
        raise DataError(f"{source}: columns are chosen by name, but the table has no header")
    absent = [name for name in chosen.values() if name not in names]
    if absent:
        raise DataError(f"{source}: no column {absent[0]!r}; there are {', '.join(names)}")
    return {role: list(names).index(name) for role, name in chosen.items()}


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
