"""Frames of facts from the cells of any table: which column is which, and their text."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from tilp.errors import DataError, TilpNotice, TilpWarning
from tilp.graph import ESTIMATED, SPLITS, WALKED_ONLY
from tilp.io.date_shapes import looks_like_date, read_date
from tilp.io.text import TextTable
from tilp.time import parse_date
from tilp.time.dates import DateKind
from tilp.types import OnError

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
    "valid_from from_date from_year date_from started started_at joined startdate startyear "
    "von seit ab beginn début debut depuis",
    "end": "end end_time end_date end_year until till to valid_to valid_until to_date to_year "
    "date_to ended ended_at left finish enddate endyear bis ende fin",
    "date": "date time timestamp ts year day when point_in_time datetime event_date datum "
    "jahr année annee",
    "split": "split",
    "estimated": "estimated",
    "walked_only": "walked_only",
}
_DATE_WORDS = {  # in longer names of columns that hold dates, such as term_start
    "start": frozenset(["start", "begin", "begins", "from", "since", "started", "joined"]),
    "end": frozenset(
        [
            "end",
            "ends",
            "until",
            "till",
            "to",
            "ended",
            "left",
            "finish",
            "expires",
            "expiry",
            "completion",
        ]
    ),
    "date": frozenset(["dates", "years", "period", "season"]),
}
_KEY_ROLES = frozenset({"subject", "relation", "object"})
DATE_ROLES = frozenset({"start", "end", "date"})
_MAX_DAYS = 95_000_000  # from 1970, of a date that polars can write
_PER_DAY = {None: 1, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_REMEDY = (
    "Name the columns in a header, or say which is which with columns= "
    "(--columns subject=…,relation=…,object=…,start=…,end=…)."
)
_TITLE_ROWS = 6  # that may stand above a header
SAMPLE_ROWS = 200  # that show which column is which
_HAS_DIGIT, _DECIMAL = re.compile(r"\d"), re.compile(r"[+-]?\d+[.,]\d+")
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
    rest = set(range(len(plain))).difference(*roles.values())
    for role in [role for role in _DATE_WORDS if role not in roles]:
        if role == "date" and (roles["start"] or roles["end"]):
            continue
        named = [i for i in sorted(rest) if _DATE_WORDS[role] & set(plain[i].split("_"))]
        roles[role] = [i for i in named if sample and _holds_dates(sample[i])]
    if not {"subject", "object"} & roles.keys() and {"from", "to"} <= set(plain):
        edge = [plain.index("from"), plain.index("to")]
        few = len(rest) < 2  # other columns that may be subject and object
        if "date" in roles or not sample or not all(_holds_dates(sample[i], few) for i in edge):
            # They name the ends of an edge, not the dates of a fact.
            roles["subject"], roles["object"] = [edge[0]], [edge[1]]
            roles["start"].remove(edge[0])
            roles["end"].remove(edge[1])
    return {role: indices for role, indices in roles.items() if indices}


def _holds_dates(cells: Sequence[str], surely: bool = True) -> bool:
    """Return whether most cells that are known are dates, or, if not surely, have digits."""
    kinds = [(cell, parse_date(read_date(cell, "start")).kind) for cell in cells]
    known = [cell for cell, kind in kinds if kind not in (DateKind.UNKNOWN, DateKind.OPEN)]
    is_date = looks_like_date if surely else _HAS_DIGIT.search
    return sum(bool(is_date(cell)) for cell in known) >= _DATE_SHARE * len(known)


def is_header(cells: Sequence[str], second: Sequence[str] = ()) -> bool:
    """Return whether a first row names its columns, given the `second` row, if there is one.

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
    named = [index for index in dates if not second or _holds_dates(sample[index], surely=False)]
    return bool(named) and len(cells) > 2 and not any(map(looks_like_date, cells))


def _columns_by_order(names: Sequence[str], count: int, source: str, keys: Sequence[str]) -> Roles:
    if not 0 <= count - len(keys) <= 2:
        listed = f" ({', '.join(names)})" if names else ""
        raise DataError(
            f"{source}: {count} columns{listed}, but facts have {len(keys)} ({', '.join(keys)}), "
            f"{len(keys) + 1} (and a date) or {len(keys) + 2} (and start and end). {_REMEDY}"
        )
    dates = [[], ["date"], ["start", "end"]][count - len(keys)]
    return {role: index for index, role in enumerate([*keys, *dates])}


def _assign_columns(
    table: TextTable, source: str, chosen: Mapping[str, str], keys: Sequence[str],
    keep: Sequence[str],
) -> tuple[Roles, bool]:  # fmt: skip
    """Return the index of each role, chosen or by name, else by order; and whether by order."""
    names = table.names or ()
    roles = _chosen_columns(names, source, chosen)
    cells = sample_cells(table.frame)
    found = name_roles(names, cells)
    if {"start", "end"} & chosen.keys() or {"start", "end"} <= found.keys():
        found.pop("date", None)
    elif "date" in found and "date" not in chosen and {"start", "end"} & found.keys():
        date = names[found["date"][0]]
        raise DataError(f"{source}: {date} is a date beside a start or end. {_REMEDY}")
    for role, at in found.items():
        indices = [index for index in at if index not in roles.values()]
        no_key = role in _KEY_ROLES and role not in keys
        if role in roles or no_key or not indices or ("date" in chosen and role in DATE_ROLES):
            continue
        if len(indices) > 1:
            listed = " and ".join(names[index] for index in indices)
            raise DataError(f"{source}: {listed} could both be the {role}. {_REMEDY}")
        roles[role] = indices[0]
    missing = [role for role in keys if role not in roles]
    used = {*roles.values(), *(names.index(column) for column in keep)}
    rest = [i for i, n in enumerate(names) if n.strip() and i not in used]
    rest = [i for i in rest if not all(map(_DECIMAL.fullmatch, cells[i] or [""]))]
    if not missing:
        return roles, False
    if not chosen and len(missing) == len(keys) and not (keep or DATE_ROLES & roles.keys()):
        return _columns_by_order(names, len(names), source, keys), True
    if len(rest) == len(missing):
        return {**roles, **dict(zip(missing, rest, strict=True))}, True
    remedy = f"{_REMEDY} If each of them says something of the first: --wide (wide=True)."
    if "relation" in missing and len(rest) == len(missing) - 1:
        remedy = "If all rows have one, name it: --relation-name playsFor (relation_name=…)."
    what = f"of the columns {', '.join(names)} none is called {', '.join(missing)}"
    raise DataError(f"{source}: {what}. {remedy}")


def _chosen_columns(names: Sequence[str], source: str, chosen: Mapping[str, str]) -> Roles:
    if unknown := [role for role in chosen if role not in ROLES]:
        known = f"there are {', '.join(ROLES)}"
        raise DataError(f"columns: {', '.join(unknown)} not known as a role; {known}")
    if "date" in chosen and {"start", "end"} & chosen.keys():
        raise DataError("columns: give either date, or start and end")
    for role, name in chosen.items():
        if same := [other for other in chosen if other != role and chosen[other] == name]:
            raise DataError(f"columns: {name!r} is both {role} and {same[0]}; it can have one role")
        if names.count(name) != 1:
            count = f"{names.count(name)} columns are called" if name in names else "no column"
            raise DataError(f"{source}: {count} {name!r}; there are {', '.join(names)}")
    return {role: names.index(name) for role, name in chosen.items()}


_MARKS = {
    "estimated": (ESTIMATED, "which dates are estimates, start, end or both"),
    "walked_only": (WALKED_ONLY, "'yes' where a training fact is walked on, but not learned from"),
}


@dataclass(frozen=True)
class Layout:
    """Which column of a table is which."""

    roles: Roles
    relation_name: str | None = None  # of every row
    attributes: tuple[int, ...] = ()  # columns of a wide table, each a relation


def find_layout(
    name: str, table: TextTable, columns: Chosen, header: bool | None,
    relation_name: str | None = None, keep: Sequence[str] = (), *, wide: bool = False,
) -> Layout:  # fmt: skip
    """Return the layout of a table, of which the first rows suffice; warns about what it assumes.

    `columns` may name some roles only. With a `relation_name`, no column has the relation.
    Columns to `keep` are used otherwise.
    """
    if wide:
        return _wide_layout(name, table, columns, keep)
    keys = [role for role in FACT_COLUMNS[:3] if role != "relation" or relation_name is None]
    names = table.names
    if names is None:
        if columns or keep:
            raise DataError(f"{name}: columns are chosen by name, but the table has no header")
        roles = _columns_by_order((), table.frame.width, name, keys)
        if header is None:
            _refuse_unknown_header(name, table, roles)
        return Layout(roles, relation_name)
    roles, by_order = _assign_columns(table, name, columns or {}, keys, keep)
    if by_order:
        warn(f"{name}: columns are taken by their order: {_listed(names, roles)}", TilpNotice)
    used = {*roles.values(), *(names.index(column) for column in keep)}
    cells = sample_cells(table.frame)
    if unused := [c or "one without a name" for i, c in enumerate(names)
                  if i not in used and (c.strip() or any(cells[i]))]:  # fmt: skip
        warn(f"{name}: columns not used: {', '.join(unused)}")
    return Layout(roles, relation_name)


def _listed(names: Sequence[str], roles: Roles) -> str:
    return ", ".join(f"{role} = {names[roles[role]]}" for role in ROLES if role in roles)


def sample_cells(frame: pl.DataFrame) -> list[list[str]]:
    """Return the first cells of each column as text; none of what holds neither names nor dates."""
    sample = []
    for column in frame.head(SAMPLE_ROWS):
        try:
            sample.append(as_text(column, "", "").fill_null("").to_list())
        except DataError:
            sample.append(["other"])
    return sample


def _wide_layout(name: str, table: TextTable, columns: Chosen, keep: Sequence[str]) -> Layout:
    names, columns = table.names or (), columns or {}
    if not names or {"relation", "object"} & columns.keys():
        raise DataError(f"{name}: --wide takes relations from a header, and objects from all cells")
    found = name_roles(names, sample_cells(table.frame))
    dates = {index for role in DATE_ROLES for index in found.get(role, ())}
    named = [n for i, n in enumerate(names) if n.strip() and i not in dates]
    first = {} if "subject" in columns or not named else {"subject": named[0]}
    roles, _ = _assign_columns(table, name, {**first, **columns}, ["subject"], keep)
    used = {*roles.values(), *(names.index(column) for column in keep)}
    rest = tuple(index for index, n in enumerate(names) if index not in used and n.strip())
    relations = [names[index].strip() for index in rest]
    if not rest or len(set(relations)) < len(rest):
        raise DataError(f"{name}: --wide needs other columns, each of its own name, for relations")
    warn(f"{name}: {_listed(names, roles)}; relations are {', '.join(relations)}", TilpNotice)
    return Layout(roles, attributes=rest)


def long_table(name: str, table: TextTable, layout: Layout) -> tuple[TextTable, Roles]:
    """Return a table with a row for each fact, and the roles of its columns.

    The relation of an attribute of a wide table is the name of its column.
    """
    if not layout.attributes:
        return table, layout.roles
    names, rest = table.names or (), layout.attributes
    used = [index for index in range(len(names)) if index not in rest]
    cells = {f"{i}": as_text(table.frame.to_series(i), name, names[i]) for i in range(len(names))}
    others, attributes = [f"{index}" for index in used], [f"{index}" for index in rest]
    wide = pl.DataFrame(cells).with_row_index("row")
    long = wide.unpivot(attributes, index=["row", *others], variable_name="r", value_name="o")
    long = long.filter(pl.col("o").str.strip_chars() != "").sort("row", maintain_order=True)
    relations = [names[index].strip() for index in rest]
    long = long.with_columns(pl.col("r").replace_strict(attributes, relations))
    roles = {role: used.index(index) for role, index in layout.roles.items()}
    roles |= {"relation": len(used), "object": len(used) + 1}
    lines = [table.lines[row] for row in long["row"]]
    new_names = (*(names[index] for index in used), "relation", "object")
    return TextTable(new_names, long.select(*others, "r", "o"), lines), roles


def full_rows(table: TextTable, roles: Roles, name: str, on_error: OnError) -> pl.Series:
    """Return the mask of rows whose subject, relation and object are not empty."""
    mask = pl.repeat(True, len(table.frame), dtype=pl.Boolean, eager=True)
    for role in [role for role in FACT_COLUMNS[:3] if role in roles]:
        cells = as_text(table.frame.to_series(roles[role]), name, role)
        mask &= (known := cells.fill_null("") != "")
        if on_error is OnError.RAISE and not known.all():
            raise DataError(
                f"{name}, line {first_line(table, ~known)}: column {roles[role] + 1} ({role}) is "
                "empty; every fact has a subject, a relation and an object. Fill it in or remove "
                "the row, or leave it out (--on-error skip)."
            )
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
    """Refuse a malformed date before a known one, which is a header, and dates as objects.

    So too a header below other rows, such as a title.
    """
    first_rows = table.frame.head(_TITLE_ROWS + 1).fill_null("").rows()
    for above, (row, below) in enumerate(pairwise(first_rows[1:]), start=1):
        if is_header(row, below):
            raise DataError(
                f"{name}, line {table.lines[above]}: {', '.join(row)} looks like a header below "
                f"{above} other row{'s' * (above > 1)}; remove what stands above it, or say "
                "--no-header (header=False) if it is a fact."
            )
    if "relation" in roles and len(table.frame):
        objects = table.frame.to_series(roles["object"]).head(SAMPLE_ROWS).fill_null("")
        if all(map(looks_like_date, objects)):
            raise DataError(
                f"{name}, line {table.lines[0]}: the third column holds dates, where facts have an "
                "object. If every row says the same, name it: --relation-name playsFor "
                "(relation_name=…); if dates are objects, say --no-header (header=False)."
            )
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
        columns[role] = as_text(table.frame.to_series(index), name, role)
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
