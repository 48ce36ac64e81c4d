"""Read dataclasses from the tables of a TOML file, with every key and value checked.

The fields of a dataclass are the keys of its table, and their types say what is allowed. A field's
metadata may name another key (`key`), or None if the plan cannot set it.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tilp.errors import TilpError
from tilp.time import parse_date
from tilp.time.dates import DateKind

T = TypeVar("T")


@dataclass(frozen=True)
class Reader:
    """What a value must be.

    Attributes:
        words: What to write in the plan, for errors.
        read: Returns the value as it is used, or None if it is not allowed.
    """

    words: str
    read: Callable[[Any], Any]


def _is_number(value: Any, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _date(value: Any) -> str | None:
    is_date = isinstance(value, str) or _is_number(value, int)
    return str(value) if is_date and parse_date(str(value)).kind is not DateKind.MALFORMED else None


def integer(least: int, most: float = inf) -> Reader:
    """Allow integers in a range."""
    return Reader(
        f"an integer from {least} " + ("on" if most == inf else f"to {most}"),
        lambda value: value if _is_number(value, int) and least <= value <= most else None,
    )


def one_of(words: Sequence[str]) -> Reader:
    """Allow some texts."""
    return Reader(
        f"one of {', '.join(words)}",
        lambda value: value if isinstance(value, str) and value in words else None,
    )


Count = Annotated[int, integer(1)]
Seed = Annotated[int, integer(0)]
Share = Annotated[
    float,
    Reader(
        "a share above 0 and at most 1",
        lambda value: float(value) if _is_number(value, int, float) and 0 < value <= 1 else None,
    ),
]
Date = Annotated[str, Reader("a date, as a text or an integer", _date)]

_TABLE = Reader("a table", lambda value: value if isinstance(value, dict) else None)
_PLAIN = {
    str: Reader("a text in quotes", lambda value: value if isinstance(value, str) else None),
    float: Reader(
        "a number from 0 on",
        lambda value: float(value) if _is_number(value, int, float) and value >= 0 else None,
    ),
}


def keys_of(cls: type) -> list[str]:
    """Return the keys that a table of a dataclass may have."""
    return [key for field in dataclasses.fields(cls) if (key := _key(field)) is not None]


def read_table(
    cls: type[T],
    table: Mapping[str, Any],
    where: str,
    *,
    given: Mapping[str, Any] | None = None,
    more_keys: Sequence[str] = (),
) -> T:
    """Make a dataclass from a table.

    Args:
        cls: The dataclass; a `ValueError` from its constructor becomes an error of the plan.
        table: The table.
        where: File, and the experiment or method, for errors.
        given: Fields that are read already.
        more_keys: Keys of the table that something else reads.

    Raises:
        TilpError: A key is missing or unknown, or a value is not allowed.
    """
    values = dict(given or {})
    types = get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        key = _key(field)
        if field.name in values or key is None:
            continue
        if key in table or field.default is dataclasses.MISSING:
            values[field.name] = read_value(types[field.name], table, key, where)
    check_keys(table, [*keys_of(cls), *more_keys], where)
    try:
        return cls(**values)
    except ValueError as failure:
        raise TilpError(f"{where}: {failure}") from failure


def check_keys(table: Mapping[str, Any], possible: Sequence[str], where: str) -> None:
    """Raise an error for the first key of a table that is not possible."""
    for key in table:
        if key not in possible:
            near = difflib.get_close_matches(key, possible, 1)
            meant = f", perhaps {near[0]!r} is meant" if near else ""
            listed = ", ".join(sorted(set(possible)))
            raise TilpError(f"{where}: there is no key {key!r}{meant}; possible here: {listed}")


def read_value(
    kind: Any, table: Mapping[str, Any], key: str, where: str, default: Any = None
) -> Any:
    """Return the value of one key, checked against a type; it must be there without a default."""
    reader = _reader(kind, f"{where}, {key}")
    if key not in table:
        if default is None:
            raise TilpError(f"{where}: the key {key!r} is missing; give {reader.words}")
        return default
    result = reader.read(table[key])
    if result is None:
        raise TilpError(f"{where}: {key} is {table[key]!r}; give {reader.words}")
    return result


def _reader(kind: Any, where: str) -> Reader:
    """Return what reads the values of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        reader: Reader = arguments[1]
        return reader
    if origin in (Union, UnionType):  # optional
        return _reader(arguments[0], where)
    if origin is tuple:
        return _list_of(_reader(arguments[0], where))
    if kind in _PLAIN:
        return _PLAIN[kind]
    if dataclasses.is_dataclass(kind):
        return Reader(
            _TABLE.words,
            lambda value: read_table(kind, value, where) if isinstance(value, dict) else None,  # type: ignore[arg-type]
        )
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        words = one_of([word.value for word in kind])
        return Reader(words.words, lambda value: kind(value) if words.read(value) else None)
    if origin is dict:
        return _TABLE
    raise TypeError(f"no values of a plan are of the type {kind}")


def _list_of(reader: Reader) -> Reader:
    def read(value: Any) -> tuple[Any, ...] | None:
        if not isinstance(value, list) or not value:
            return None
        items = tuple(reader.read(item) for item in value)
        return None if None in items else items

    return Reader(f"a list, [ … ], each of it {reader.words}", read)


def _key(field: dataclasses.Field[Any]) -> str | None:
    key: str | None = field.metadata.get("key", field.name)
    return key
