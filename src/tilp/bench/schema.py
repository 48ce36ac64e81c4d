"""Read dataclasses from the tables of a TOML file, with every key and value checked.

The fields of a dataclass are the keys of its table, and their types say what is allowed. A field's
metadata may name another key (`key`), or None if the plan cannot set it.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from math import inf
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from tilp.errors import TilpError
from tilp.time import parse_date
from tilp.time.dates import DateKind

T = TypeVar("T")
Table = Mapping[str, Any]


class Reader(NamedTuple):
    """What a value must be, for errors; and what returns it, or None if it is not allowed."""

    expected: str
    read: Callable[[Any], Any]


def allow(expected: str, is_allowed: Callable[[Any], bool], convert: Any = None) -> Reader:
    """Allow the values that a function accepts, and convert them."""

    def read(value: Any) -> Any:
        if not is_allowed(value):
            return None
        return convert(value) if convert else value

    return Reader(expected, read)


def integer(least: int, most: float = inf) -> Reader:
    """Allow integers in a range."""
    span = f"{least} on" if most == inf else f"{least} to {most}"
    return allow(f"an integer from {span}", lambda x: type(x) is int and least <= x <= most)


def one_of(options: Sequence[str], convert: Any = None) -> Reader:
    """Allow some texts."""
    return allow(f"one of {', '.join(options)}", list(options).__contains__, convert)


def _number(expected: str, is_allowed: Callable[[float], bool]) -> Reader:
    return allow(expected, lambda x: type(x) in (int, float) and is_allowed(x), float)


def _is_date(value: Any) -> bool:
    return type(value) in (int, str) and parse_date(str(value)).kind is not DateKind.MALFORMED


Count = Annotated[int, integer(1)]
Seed = Annotated[int, integer(0)]
Share = Annotated[float, _number("a share above 0 and at most 1", lambda x: 0 < x <= 1)]
Date = Annotated[str, allow("a date, as a text or an integer", _is_date, str)]

_READERS = {
    str: allow("a text in quotes", lambda value: isinstance(value, str)),
    float: _number("a number from 0 on", lambda value: value >= 0),
}


def keys_of(cls: Any) -> dict[str, Field[Any]]:
    """Return the keys that a table of a dataclass may have, with their fields."""
    keys = {field.metadata.get("key", field.name): field for field in fields(cls)}
    return {key: field for key, field in keys.items() if key is not None}


def read_table(cls: type[T], table: Table, where: str, more: Sequence[str] = (), **given: Any) -> T:
    """Make a dataclass from a table and the fields in `given`; `more` keys are read elsewhere."""
    types, keys = get_type_hints(cls, include_extras=True), keys_of(cls)
    for key, field in keys.items():
        if field.name not in given and (key in table or field.default is MISSING):
            given[field.name] = read_value(types[field.name], table, key, where)
    check_keys(table, [*keys, *more], where)
    try:
        return cls(**given)
    except ValueError as failure:
        raise TilpError(f"{where}: {failure}") from failure


def check_keys(table: Table, possible: Sequence[str], where: str) -> None:
    """Raise an error for the first key of a table that is not possible."""
    for key in table:
        if key not in possible:
            near = difflib.get_close_matches(key, possible, 1)
            meant = f", perhaps {near[0]!r} is meant" if near else ""
            listed = ", ".join(sorted(set(possible)))
            raise TilpError(f"{where}: there is no key {key!r}{meant}; possible here: {listed}")


def read_value(kind: Any, table: Table, key: str, where: str, default: Any = None) -> Any:
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
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return Reader(*arguments[1])
    if origin in (Union, UnionType):  # optional
        return _reader(arguments[0], where)
    if origin is tuple:
        item = _reader(arguments[0], where)

        def read_list(values: Any) -> tuple[Any, ...] | None:
            results = tuple(map(item.read, values)) if isinstance(values, list) else ()
            return results if results and None not in results else None

        return Reader(f"a list, [ … ], each of it {item.expected}", read_list)
    if kind in _READERS:
        return _READERS[kind]
    if origin is dict or is_dataclass(kind):
        convert = None if origin is dict else lambda value: read_table(kind, value, where)
        return allow("a table", lambda value: isinstance(value, dict), convert)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return one_of(list(kind), kind)
    raise TypeError(f"no values of a plan are of the type {kind}")
