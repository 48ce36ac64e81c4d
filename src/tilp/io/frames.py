"""Frames of facts from the cells of any table: which column is which, and their text."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from tilp.errors import DataError, TilpNotice, TilpWarning
from tilp.graph import ESTIMATED, SPLITS, WALKED_ONLY
from tilp.io.date_shapes import looks_like_date
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
    "subject": "subject s subj head h source subject_id head_id subject_name head_entity src",
    "relation": "relation r rel predicate p property relation_id relation_type edge edge_type "
    "relation_name relationship",
    "object": "object o obj tail t target object_id tail_id object_name tail_entity dst",
    "start": "start start_time start_date start_year begin begin_date begin_year since from "
    "valid_from from_date from_year date_from started started_at joined startdate startyear",
    "end": "end end_time end_date end_year until till to valid_to valid_until to_date to_year "
    "date_to ended ended_at left finish enddate endyear",
    "date": "date time timestamp ts year day when point_in_time datetime event_date",
    "split": "split",
    "estimated": "estimated",
    "walked_only": "walked_only",
}
_DATE_WORDS = {  # in longer names of columns that hold dates, such as term_start
    "start": frozenset("start begin begins from since started joined".split()),
    "end": frozenset("end ends until till to ended left finish expires".split()),
}
_KEY_ROLES = frozenset({"subject", "relation", "object"})
DATE_ROLES = frozenset({"start", "end", "date"})
_REMEDY = (
    "Name the columns in a header, or say which is which with columns= "
    "(--columns subject=…,relation=…,object=…,start=…,end=…)."
)
_SAMPLE_ROWS = 200
_DATE_SHARE = 0.8  # of the cells of a column of dates
ROLES = tuple(_SYNONYMS)
"""Roles of columns; 'date' is the only date of a fact without interval, 'estimated' says which
dates are estimates, 'walked_only' which facts are no training examples."""


def warn(message: str, kind: type[TilpWarning] = TilpWarning) -> None:
    """Warn about the data."""
    warnings.warn(kind(message), stacklevel=4)


def name_roles(
    names: Sequence[str], sample: Sequence[Sequence[str]] | None = None
) -> dict[str, list[int]]:
    """Return the indices of each role among column names; `sample` has some cells of each."""
    roles: dict[str, list[int]] = {}
    split = [re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name) for name in names]
    plain = [re.sub(r"[\W_]+", "_", name).strip("_").lower() for name in split]
    for index, name in enumerate(plain):
        for role, synonyms in _SYNONYMS.items():
            if name in synonyms.split() or name == role:
                roles.setdefault(role, []).append(index)
    taken = {index for indices in roles.values() for index in indices}
    for role in [role for role in _DATE_WORDS if sample and role not in roles]:
        for index, name in enumerate(plain):
            is_named = index not in taken and _DATE_WORDS[role] & set(name.split("_"))
            if is_named and sample and _holds_dates(sample[index]):
                roles.setdefault(role, []).append(index)
    if not {"subject", "object"} & roles.keys() and {"from", "to"} <= set(plain):
        edge = [plain.index("from"), plain.index("to")]
        if "date" in roles or not sample or not all(_holds_dates(sample[i]) for i in edge):
            # They name the ends of an edge, not the dates of a fact.
            for index, role, date in zip(edge, ("subject", "object"), ("start", "end"), strict=True):
                roles[role] = [index]
                roles[date].remove(index)
    return {role: indices for role, indices in roles.items() if indices}


def _holds_dates(cells: Sequence[str]) -> bool:
    """Return whether most cells that are known are dates."""
    kinds = [(cell, parse_date(cell).kind) for cell in cells]
    known = [cell for cell, kind in kinds if kind not in (DateKind.UNKNOWN, DateKind.OPEN)]
    return not known or sum(map(looks_like_date, known)) >= _DATE_SHARE * len(known)


def is_header(cells: Sequence[str], second: Sequence[str] = ()) -> bool:
    """Return whether a first row names its columns rather than states a fact.

    Args:
        cells: The first row.
        second: The row after it, whose dates show what the columns hold; empty if there is none.

    >>> is_header(["Subject", "predicate", "object", "since"]), is_header(["Ada", "knows", "Bob"])
    (True, False)
    >>> is_header(["who", "what", "of", "from"], ["Ada", "playsFor", "Rovers", "1990"])
    True
    """
    sample = [[cell] for cell in second] if len(second) == len(cells) else [[""] for _ in cells]
    roles = name_roles(cells, sample)
    if roles.keys() >= _KEY_ROLES:
        return True
    dates = [index for role in DATE_ROLES & roles.keys() for index in roles[role]]
    named = [index for index in dates if not second or looks_like_date(sample[index][0])]
    return bool(named) and len(cells) > 2 and not any(map(looks_like_date, cells))


def _columns_by_order(
    names: Sequence[str] | None, count: int, source: str, relation_name: str | None
) -> Roles:
    """Return the roles of columns whose names say nothing: keys, then dates."""
    keys = [role for role in FACT_COLUMNS[:3] if role != "relation" or relation_name is None]
    if not 0 <= count - len(keys) <= 2:
        listed = f" ({', '.join(names)})" if names else ""
        raise DataError(
            f"{source}: {count} columns{listed}, but facts have {len(keys)} ({', '.join(keys)}), "
            f"{len(keys) + 1} (and a date) or {len(keys) + 2} (and start and end). {_REMEDY}"
        )
    dates = [[], ["date"], ["start", "end"]][count - len(keys)]
    return {role: index for index, role in enumerate([*keys, *dates])}


def _assign_columns(
    names: Sequence[str], source: str, chosen: Mapping[str, str], sample: Sequence[Sequence[str]],
    relation_name: str | None = None, *, wide: bool = False,
) -> tuple[Roles, bool]:  # fmt: skip
    """Return the index of each role, chosen or by name, else by order; and whether by order."""
    roles = _chosen_columns(names, source, chosen)
    found = {r: [i for i in at if i not in roles.values()] for r, at in
             name_roles(names, sample).items() if r not in roles}  # fmt: skip
    found = {role: indices for role, indices in found.items() if indices}
    if "date" in roles:
        found = {role: at for role, at in found.items() if role not in ("start", "end")}
    elif {"start", "end"} & roles.keys() or {"start", "end"} <= found.keys():
        found.pop("date", None)
    needed = [r for r in FACT_COLUMNS[:3] if not (r == "relation" and relation_name is not None)]
    if wide:
        needed = ["subject"]
        found = {role: at for role, at in found.items() if role not in _KEY_ROLES}
    elif relation_name is not None:
        found.pop("relation", None)
    if "date" in found and {"start", "end"} & found.keys() and not wide:
        date = names[found["date"][0]]
        raise DataError(f"{source}: {date} is a date beside a start or end. {_REMEDY}")
    for role, indices in found.items():
        if len(indices) > 1:
            listed = " and ".join(names[index] for index in indices)
            raise DataError(f"{source}: {listed} could both be the {role}. {_REMEDY}")
        roles[role] = indices[0]
    missing = [role for role in needed if role not in roles]
    rest = [index for index in range(len(names)) if index not in roles.values()]
    if not missing:
        return roles, False
    if wide and rest:
        return {**roles, "subject": rest[0]}, False
    if not chosen and len(missing) == len(needed) and not DATE_ROLES & roles.keys():
        return _columns_by_order(names, len(names), source, relation_name), True
    if len(rest) == len(missing) and (chosen or len(missing) == len(needed)):
        return {**roles, **dict(zip(missing, rest, strict=True))}, True
    listed = ", ".join(names)
    what = f"of the columns {listed} none is called {', '.join(missing)}"
    if "relation" in missing and len(rest) == len(missing) - 1:
        remedy = "If every row says the same, name it: --relation-name playsFor (relation_name=…)."
    else:
        remedy = f"{_REMEDY} If each of them says something of the first: --wide (wide=True)."
    raise DataError(f"{source}: {what}. {remedy}")


def _chosen_columns(names: Sequence[str], source: str, chosen: Mapping[str, str]) -> Roles:
    if unknown := [role for role in chosen if role not in ROLES]:
        known = f"there are {', '.join(ROLES)}"
        raise DataError(f"columns: {', '.join(unknown)} not known as a role; {known}")
    if "date" in chosen and {"start", "end"} & chosen.keys():
        raise DataError("columns: give either date, or start and end")
    by_name: dict[str, str] = {}
    for role, name in chosen.items():
        if name in by_name:
            both = f"both {by_name[name]} and {role}"
            raise DataError(f"columns: {name!r} is {both}; a column has one role")
        by_name[name] = role
        if names.count(name) != 1:
            count = f"{names.count(name)} columns are called" if name in names else "no column"
            raise DataError(f"{source}: {count} {name!r}; there are {', '.join(names)}")
    return {role: names.index(name) for role, name in chosen.items()}


_MARKS = {
    "estimated": (ESTIMATED, "which dates are estimates, start, end or both"),
    "walked_only": (WALKED_ONLY, "'yes' where a training fact is walked on, but not learned from"),
}


def find_roles(
    name: str, table: TextTable, columns: Chosen, header: bool | None,
    relation_name: str | None = None, keep: Sequence[str] = (),
) -> Roles:  # fmt: skip
    """Return the index of each role among a table's columns; warns about what it assumes.

    Args:
        name: Of the table, in messages.
        table: Some rows at least.
        columns: Names by role, of some roles or all (default None: by the header).
        header: Whether the caller says that there is one.
        relation_name: The relation of every row, if no column has it (default None).
        keep: Names of columns that are used otherwise.
    """
    names = table.names
    if names is None:
        if columns or keep:
            raise DataError(f"{name}: columns are chosen by name, but the table has no header")
        roles = _columns_by_order(None, table.frame.width, name, relation_name)
        if header is None:
            _refuse_unknown_header(name, table, roles)
            if relation_name is None:
                _refuse_dates_as_names(name, table, roles)
        return roles
    sample = _sample(table)
    roles, by_order = _assign_columns(names, name, columns or {}, sample, relation_name)
    if by_order:
        taken = _listed(names, roles)
        warn(f"{name}: columns are taken by their order: {taken}", TilpNotice)
    used = {*roles.values(), *(names.index(column) for column in keep)}
    if unused := [column for index, column in enumerate(names) if index not in used]:
        warn(f"{name}: columns not used: {', '.join(unused)}")
    return roles


def _listed(names: Sequence[str], roles: Roles) -> str:
    return ", ".join(f"{role} = {names[roles[role]]}" for role in ROLES if role in roles)


def _sample(table: TextTable) -> list[list[str]]:
    """Return the first cells of each column as text."""
    head = table.frame.head(_SAMPLE_ROWS)
    return [["" if cell is None else str(cell) for cell in column] for column in head]


def long_table(
    name: str, table: TextTable, columns: Chosen, keep: Sequence[str] = ()
) -> tuple[TextTable, Roles]:
    """Return a wide table with a row for each cell that holds an attribute of the row's subject.

    The relation is the name of the column. Empty cells give no row.
    """
    names = table.names
    if names is None:
        raise DataError(f"{name}: --wide takes relations from column names; the table has none")
    if wrong := [role for role in columns or {} if role in ("relation", "object")]:
        raise DataError(f"columns: --wide has no {wrong[0]}; every other column is a relation")
    roles, _ = _assign_columns(names, name, columns or {}, _sample(table), wide=True)
    used = sorted({*roles.values(), *(names.index(column) for column in keep)})
    rest = [index for index in range(len(names)) if index not in used]
    if not rest:
        raise DataError(f"{name}: no column is left that --wide could make a relation of")
    if len({names[index] for index in rest}) < len(rest):
        raise DataError(f"{name}: two columns have the same name, and would be one relation")
    cells = [as_text(table.frame.to_series(index), name, names[index]) for index in rest]
    relations = ", ".join(column.strip() for column in (names[index] for index in rest))
    warn(f"{name}: {_listed(names, roles)}; relations are {relations}", TilpNotice)
    others = [table.frame.to_series(index).alias(f"{index}") for index in used]
    lines = pl.Series("line", table.lines, dtype=pl.Int64)
    parts = [
        pl.DataFrame([*others, lines, column.alias("object")])
        .with_columns(pl.lit(names[index].strip()).alias("relation"))
        .with_row_index("row")
        .filter(pl.col("object").str.strip_chars() != "")
        for index, column in zip(rest, cells, strict=True)
    ]
    long = pl.concat(parts).sort("row", maintain_order=True)
    new_names = [*(names[index] for index in used), "relation", "object"]
    frame = long.select(*(f"{index}" for index in used), "relation", "object")
    at = {index: position for position, index in enumerate(used)}
    new_roles = {role: at[index] for role, index in roles.items()}
    new_roles |= {"relation": len(used), "object": len(used) + 1}
    return TextTable(tuple(new_names), frame, long["line"].to_list()), new_roles


def full_rows(table: TextTable, roles: Roles, name: str) -> pl.Series:
    """Return the mask of rows whose subject, relation and object are not empty."""
    mask = pl.repeat(True, len(table.frame), dtype=pl.Boolean, eager=True)
    for role in sorted(_KEY_ROLES & roles.keys()):
        mask &= as_text(table.frame.to_series(roles[role]), name, role).fill_null("") != ""
    return mask


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
    first, second = (dates[0][row] or "" for row in (0, 1))
    malformed = parse_date(first).kind is DateKind.MALFORMED and not looks_like_date(first)
    if malformed and (looks_like_date(second) or parse_date(second).kind is DateKind.KNOWN):
        cells = ", ".join(cell or "" for cell in table.frame.row(0))
        raise DataError(
            f"{name}, line {table.lines[0]}: {cells} looks like a header, but its names are not "
            "known. Say which column is which with columns= (--columns subject=…,relation=…,"
            "object=…), or header=False (--no-header) if it is a fact."
        )


def _refuse_dates_as_names(name: str, table: TextTable, roles: Roles) -> None:
    """Refuse a column of objects that are all dates: the table has no relations."""
    cells = table.frame.to_series(roles["object"]).head(_SAMPLE_ROWS)
    if len(cells) and all(looks_like_date(cell or "") for cell in cells):
        raise DataError(
            f"{name}, line {table.lines[0]}: the third column holds dates, where facts have an "
            "object. If every row says the same, name it: --relation-name playsFor "
            "(relation_name=…); if dates are objects, say --no-header (header=False)."
        )


def fact_frame(
    name: str, table: TextTable, roles: Roles, relation_name: str | None = None
) -> pl.DataFrame:
    """Return the columns of facts as text, with names in every row."""
    columns: dict[str, pl.Series] = {}
    for role in FACT_COLUMNS:
        index = roles.get(role, roles.get("date") if role in ("start", "end") else None)
        if index is None:
            value = relation_name if role == "relation" else None
            columns[role] = pl.repeat(value, len(table.frame), dtype=pl.String, eager=True)
            continue
        column = columns[role] = as_text(table.frame.to_series(index), name, role)
        if role in _KEY_ROLES and (absent := column.fill_null("") == "").any():
            raise DataError(
                f"{name}, line {first_line(table, absent)}: column {index + 1} ({role}) is empty; "
                "every fact has a subject, a relation and an object. Fill it in, remove the row, or "
                "leave such rows out (--on-error skip)."
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
        return column.dt.strftime("%Y-%m-%d")
    if dtype.is_integer() or dtype in (pl.Categorical, pl.Enum, pl.Null):
        return column.cast(pl.String)
    raise DataError(f"{source}: column {column.name!r} ({role}) holds {dtype}, not names or dates")
