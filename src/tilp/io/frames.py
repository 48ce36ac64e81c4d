"""Frames of facts from the cells of any table: which column is which, and their text."""

import warnings
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from tilp.errors import DataError, TilpWarning
from tilp.graph import ESTIMATED, SPLITS, WALKED_ONLY
from tilp.io.text import TextTable
from tilp.time import parse_date
from tilp.time.dates import DateKind

Roles = dict[str, int]  # indices of columns by role
Chosen = Mapping[str, str] | None  # names of columns by role, if the caller says which is which

FACT_COLUMNS = ("subject", "relation", "object", "start", "end")  # as in tables without header
SPLIT_NAMES = {  # splits by the names they have in files and mappings
    **dict.fromkeys(("train", "training", "facts"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "valid"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_SYNONYMS = {
    "subject": "subject s subj head h source subject_id head_id",
    "relation": "relation r rel predicate p property relation_id relation_type edge edge_type",
    "object": "object o obj tail t target object_id tail_id",
    "start": "start start_time start_date start_year begin since from valid_from",
    "end": "end end_time end_date end_year until to valid_to valid_until",
    "date": "date time timestamp ts year day when point_in_time",
    "split": "split",
    "estimated": "estimated",
    "walked_only": "walked_only",
}
_KEY_ROLES = frozenset({"subject", "relation", "object"})
_DATE_ROLES = frozenset({"start", "end", "date"})
_MAX_DAYS = 95_000_000  # from 1970, of a date that polars can write
_PER_DAY = {None: 1, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_REMEDY = (
    "Name the columns in a header, or say which is which with columns= "
    "(--columns subject=…,relation=…,object=…,start=…,end=…)."
)
ROLES = tuple(_SYNONYMS)
"""Roles of columns; 'date' is the only date of a fact without interval, 'estimated' says which
dates are estimates, 'walked_only' which facts are no training examples."""


def warn(message: str) -> None:
    """Warn about the data."""
    warnings.warn(TilpWarning(message), stacklevel=4)


def name_roles(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of each role among column names."""
    roles: dict[str, list[int]] = {}
    plain = [name.strip().lower().replace(" ", "_").replace("-", "_") for name in names]
    for index, name in enumerate(plain):
        for role, synonyms in _SYNONYMS.items():
            if name in synonyms.split():
                roles.setdefault(role, []).append(index)
    if not _KEY_ROLES & roles.keys() and len(names) == len(FACT_COLUMNS):
        return roles  # from and to are the dates of a fact, beside three columns of other names
    if not {"subject", "object"} & roles.keys() and {"from", "to"} <= set(plain):
        # They name the ends of an edge, not the dates of a fact.
        for name, role, date in (("from", "subject", "start"), ("to", "object", "end")):
            roles[role] = [plain.index(name)]
            roles[date].remove(plain.index(name))
    return {role: indices for role, indices in roles.items() if indices}


def is_header(cells: Sequence[str]) -> bool:
    """Return whether a first row names its columns rather than states a fact.

    >>> is_header(["Subject", "predicate", "object", "since"]), is_header(["Ada", "knows", "Bob"])
    (True, False)
    """
    roles = name_roles(cells)
    return roles.keys() >= _KEY_ROLES or bool(_unnamed_facts(cells, roles))


def _unnamed_facts(
    names: Sequence[str], roles: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """Return subject, relation and object as the first three columns, if all others are dates."""
    taken = {index for indices in roles.values() for index in indices}
    others = [index for index in range(len(names)) if index not in taken]
    if _KEY_ROLES & roles.keys() or not _DATE_ROLES & roles.keys() or others != [0, 1, 2]:
        return {}
    return {role: [index] for index, role in enumerate(FACT_COLUMNS[:3])}


def _assign_columns(names: Sequence[str] | None, count: int, source: str, chosen: Chosen) -> Roles:
    """Return the index of each role: chosen by the caller, by the names, or else by order."""
    if chosen:
        return _chosen_columns(names, source, chosen)
    roles = name_roles(names or ())
    if roles.keys() >= _KEY_ROLES:
        return _single_roles(names or (), roles, source)
    if names and (by_order := _unnamed_facts(names, roles)):
        taken = ", ".join(f"{role} = {names[index]}" for role, (index,) in by_order.items())
        warn(f"{source}: columns are taken by their order: {taken}")
        return _single_roles(names, {**roles, **by_order}, source)
    if _KEY_ROLES & roles.keys():
        listed, missing = ", ".join(names or ()), ", ".join(sorted(_KEY_ROLES - roles.keys()))
        raise DataError(f"{source}: of the columns {listed} none is called {missing}. {_REMEDY}")
    if not 3 <= count <= 5:
        listed = f" ({', '.join(names)})" if names else ""
        raise DataError(
            f"{source}: {count} columns{listed}, but facts have 3 (subject, relation, object), "
            f"4 (and a date) or 5 (and start and end). {_REMEDY}"
        )
    if count == 4:
        return {"subject": 0, "relation": 1, "object": 2, "date": 3}
    return {role: index for index, role in enumerate(FACT_COLUMNS[:count])}


def _single_roles(names: Sequence[str], roles: Mapping[str, Sequence[int]], source: str) -> Roles:
    for role, indices in roles.items():
        if len(indices) > 1:
            listed = " and ".join(names[index] for index in indices)
            raise DataError(f"{source}: {listed} could both be the {role}. {_REMEDY}")
    if "date" in roles and {"start", "end"} & roles.keys():
        date = names[roles["date"][0]]
        raise DataError(f"{source}: {date} is a date beside a start or end. {_REMEDY}")
    return {role: indices[0] for role, indices in roles.items()}


def _chosen_columns(names: Sequence[str] | None, source: str, chosen: Mapping[str, str]) -> Roles:
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
    if absent := [name for name in chosen.values() if name not in names]:
        raise DataError(f"{source}: no column {absent[0]!r}; there are {', '.join(names)}")
    return {role: list(names).index(name) for role, name in chosen.items()}


_MARKS = {
    "estimated": (ESTIMATED, "which dates are estimates, start, end or both"),
    "walked_only": (WALKED_ONLY, "'yes' where a training fact is walked on, but not learned from"),
}


def find_roles(name: str, table: TextTable, columns: Chosen, header: bool | None) -> Roles:
    """Return the index of each role among a table's columns; warns about what it assumes."""
    names = table.names
    roles = _assign_columns(names, table.frame.width, name, columns)
    if names is None:
        if header is None:
            _refuse_unknown_header(name, table, roles)
        return roles
    if not columns and not is_header(names):
        taken = ", ".join(f"{role} = {names[index]}" for role, index in roles.items())
        warn(f"{name}: columns are taken by their order: {taken}")
    if unused := [column for index, column in enumerate(names) if index not in roles.values()]:
        warn(f"{name}: columns not used: {', '.join(unused)}")
    return roles


def split_masks(name: str, table: TextTable, roles: Roles) -> Iterator[tuple[str, pl.Series]]:
    """Yield each distinct text of the column of splits, and the mask of its rows."""
    texts = as_text(table.frame.to_series(roles["split"]), name, "split")
    texts = texts.str.strip_chars().str.to_lowercase()
    for text in texts.unique(maintain_order=True):
        if text not in SPLIT_NAMES:
            line = first_line(table, texts.eq_missing(text))
            choices = ", ".join(SPLITS)
            raise DataError(f"{name}, line {line}: the split is {text!r}; it can be {choices}")
        yield text, texts == text


def _refuse_unknown_header(name: str, table: TextTable, roles: Roles) -> None:
    """Refuse a first row with a malformed date before one with a known date: a header."""
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


def fact_frame(name: str, table: TextTable, roles: Roles) -> pl.DataFrame:
    """Return the columns of facts as text, with names in every row."""
    columns: dict[str, pl.Series] = {}
    for role in FACT_COLUMNS:
        index = roles.get(role, roles.get("date") if role in ("start", "end") else None)
        if index is None:
            columns[role] = pl.repeat(None, len(table.frame), dtype=pl.String, eager=True)
            continue
        column = columns[role] = as_text(table.frame.to_series(index), name, role)
        if role in _KEY_ROLES and (absent := column.fill_null("") == "").any():
            raise DataError(
                f"{name}, line {first_line(table, absent)}: column {index + 1} ({role}) is empty; "
                "every fact has a subject, a relation and an object. Fill it in or remove the row."
            )
    for mark, (values, meaning) in _MARKS.items():
        if mark not in roles:
            continue
        text = as_text(table.frame.to_series(roles[mark]), name, mark)
        column = columns[mark] = text.fill_null("")
        if (invalid := ~column.is_in(values)).any():
            raise DataError(
                f"{name}, line {first_line(table, invalid)}: column {roles[mark] + 1} ({mark}) is "
                f"{column.filter(invalid)[0]!r}; it says {meaning}, and else is empty. Correct it, "
                "or give the column another name."
            )
    return pl.DataFrame(columns)


def first_line(table: TextTable, mask: pl.Series) -> int:
    """Return the line of the first row in a mask."""
    return table.lines[int(mask.arg_max() or 0)]


def as_text(column: pl.Series, source: str, role: str) -> pl.Series:
    """Return a column as text; whole floats (integers with gaps, in pandas) as integers."""
    dtype = column.dtype
    if dtype == pl.String:
        return column
    if dtype.is_float():
        number = column.fill_nan(None)
        whole = (number == number.round()) & (number.abs() < 2.0**62)
        integers = number.zip_with(whole.fill_null(False), pl.Series([None], dtype=dtype))
        return integers.cast(pl.Int64).cast(pl.String).fill_null(number.cast(pl.String))
    if dtype in (pl.Date, pl.Datetime):
        days = column.to_physical() // _PER_DAY[getattr(dtype, "time_unit", None)]
        if not days.is_between(-_MAX_DAYS, _MAX_DAYS).all():
            what = f"column {column.name!r} ({role}) holds a date past the year 260,000"
            raise DataError(f"{source}: {what}; correct it, or leave it empty")
        return column.dt.strftime("%Y-%m-%d")
    if dtype.is_integer() or dtype in (pl.Categorical, pl.Enum, pl.Null):
        return column.cast(pl.String)
    raise DataError(f"{source}: column {column.name!r} ({role}) holds {dtype}, not names or dates")
