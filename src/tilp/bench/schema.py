"""Read dataclasses from the tables of a TOML file, with every key and value checked.

The fields of a dataclass are the keys of its table, and their types say what is allowed. A field's
metadata may name another key (`key`), or None if the plan cannot set it.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import inf
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from tilp.errors import TilpError
from tilp.time import parse_date
from tilp.time.dates import DateKind

T = TypeVar("T")


class Reader(NamedTuple):
    """What a value must be, for errors; and what returns it, or None if it is not allowed."""

    expected: str
    read: Callable[[Any], Any]


def integer(least: int, most: float = inf) -> Reader:
    """Allow integers in a range."""
    return Reader(
        f"an integer from {least} " + ("on" if most == inf else f"to {most}"),
        lambda value: value if type(value) is int and least <= value <= most else None,
    )


def one_of(options: Sequence[str]) -> Reader:
    """Allow some texts."""
    expected = f"one of {', '.join(options)}"
    return Reader(expected, lambda value: value if value in list(options) else None)


def _number(expected: str, is_allowed: Callable[[float], bool]) -> Reader:
    def read(value: Any) -> float | None:
        return float(value) if type(value) in (int, float) and is_allowed(value) else None

    return Reader(expected, read)


def _read_date(value: Any) -> str | None:
    is_text = type(value) in (int, str)
    return str(value) if is_text and parse_date(str(value)).kind is not DateKind.MALFORMED else None


Count = Annotated[int, integer(1)]
Seed = Annotated[int, integer(0)]
Share = Annotated[float, _number("a share above 0 and at most 1", lambda value: 0 < value <= 1)]
Date = Annotated[str, Reader("a date, as a text or an integer", _read_date)]

_TABLE = Reader("a table", lambda value: value if isinstance(value, dict) else None)
_READERS = {
    str: Reader("a text in quotes", lambda value: value if isinstance(value, str) else None),
    float: _number("a number from 0 on", lambda value: value >= 0),
}


def keys_of(cls: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return the keys that a table of a dataclass may have, with their fields."""
    keys = {field.metadata.get("key", field.name): field for field in dataclasses.fields(cls)}
    return {key: field for key, field in keys.items() if key is not None}


def read_table(
    cls: type[T],
    table: Mapping[str, Any],
    where: str,
    *,
    given: Mapping[str, Any] | None = None,
    more_keys: Sequence[str] = (),
) -> T:
    """Make a dataclass from a table; a `ValueError` of its constructor is an error of the plan.

    Args:
        cls: The dataclass.
        table: The table.
        where: File, and the experiment or method, for errors.
        given: Fields that are read already.
        more_keys: Keys of the table that something else reads.
    """
    values = dict(given or {})
    types = get_type_hints(cls, include_extras=True)
    keys = keys_of(cls)
    for key, field in keys.items():
        is_needed = key in table or field.default is dataclasses.MISSING
        if field.name not in values and is_needed:
            values[field.name] = read_value(types[field.name], table, key, where)
    check_keys(table, [*keys, *more_keys], where)
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
    """Return the value of a key, checked against a type; without a default it must be there."""
    reader = _reader(kind, f"{where}, {key}")
    if key not in table:
        if default is None:
            raise TilpError(f"{where}: the key {key!r} is missing; give {reader.expected}")
        return default
    result = reader.read(table[key])
    if result is None:
        raise TilpError(f"{where}: {key} is {table[key]!r}; give {reader.expected}")
    return result


def _reader(kind: Any, where: str) -> Reader:
    """Return the reader of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return Reader(*arguments[1])
    if origin in (Union, UnionType):  # optional
        return _reader(arguments[0], where)
    if origin is dict:
        return _TABLE
    if origin is tuple:
        item = _reader(arguments[0], where)
        return Reader(
            f"a list, [ … ], each of it {item.expected}", lambda value: _read_list(value, item)
        )
    if kind in _READERS:
        return _READERS[kind]
    if dataclasses.is_dataclass(kind):
        cls: Any = kind
        return Reader(
            _TABLE.expected,
            lambda value: read_table(cls, value, where) if isinstance(value, dict) else None,
        )
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        options = one_of([option.value for option in kind])
        return Reader(options.expected, lambda value: kind(value) if options.read(value) else None)
    raise TypeError(f"no values of a plan are of the type {kind}")


def _read_list(values: Any, item: Reader) -> tuple[Any, ...] | None:
    results = tuple(map(item.read, values)) if isinstance(values, list) else ()
    return results if results and None not in results else None
