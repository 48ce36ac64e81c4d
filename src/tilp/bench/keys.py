"""`Keys`: the keys of a table in a plan, each checked as it is taken, and none left over."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NoReturn, TypeVar

from tilp.errors import TilpError
from tilp.time import parse_date
from tilp.time.dates import DateKind

__all__ = ["DATE", "NUMBER", "SHARE", "TEXT", "WHOLE", "Keys", "Reader", "list_of", "word_of"]

Word = TypeVar("Word", bound=StrEnum)
Value = TypeVar("Value")
Default = TypeVar("Default")


@dataclass(frozen=True)
class Reader(Generic[Value]):
    """What a value must be.

    Attributes:
        words: what to give.
        read: the value as it is used; None where it is something else.
    """

    words: str
    read: Callable[[object], Value | None]


def _number(value: object) -> float | None:
    right = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if right else None  # type: ignore[arg-type]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _date(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return None if parse_date(str(value)).kind is DateKind.MALFORMED else str(value)


TEXT = Reader("a text in quotes", lambda value: value if isinstance(value, str) else None)
NUMBER = Reader("a number from 0 on", _number)
SHARE = Reader(
    "a share above 0 and at most 1",
    lambda value: found if (found := _number(value)) and found <= 1.0 else None,
)
WHOLE = Reader("a whole number from 1 on", _whole)
DATE = Reader("a date, as a text or a whole number", _date)


def list_of(reader: Reader[Value]) -> Reader[tuple[Value, ...]]:
    """A list of values that are all alike, at least one."""

    def read(value: object) -> tuple[Value, ...] | None:
        if not isinstance(value, list) or not value:
            return None
        found = [reader.read(one) for one in value]
        return None if None in found else tuple(one for one in found if one is not None)

    return Reader(f"a list, [ … ], each of it {reader.words}", read)


def word_of(words: type[Word]) -> Reader[Word]:
    """One of some words."""
    by_word = {str(word): word for word in words}
    return Reader(
        f"one of {', '.join(by_word)}",
        lambda value: by_word.get(value) if isinstance(value, str) else None,
    )


class Keys:
    """A table of a plan.

    Args:
        values: the table.
        place: what it is called in errors: the file, and the experiment or method.
    """

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = values
        self._asked: list[str] = []
        self.place = place

    def take(self, name: str, reader: Reader[Value]) -> Value:
        """A value that must be there.

        Raises:
            TilpError: it is not, or it is something else.
        """
        if name not in self._values:
            raise TilpError(f"{self.place}: the key {name!r} is missing; give {reader.words}")
        return self._read(name, reader)

    def get(self, name: str, reader: Reader[Value], default: Default) -> Value | Default:
        """A value, or the default where it is not there."""
        self._asked.append(name)
        return self._read(name, reader) if name in self._values else default

    def table(self, name: str) -> Keys:
        """A table within; an empty one where it is not there."""
        found = self.get(name, _TABLE, {})
        return Keys(found, f"{self.place}, {name}")

    def tables(self, name: str) -> list[dict[str, Any]]:
        """The tables of a list; none where it is not there."""
        found = self.get(name, list_of(_TABLE), None)
        return list(found or ())

    def rest(self) -> dict[str, Any]:
        """All that was not asked for yet."""
        left = {name: one for name, one in self._values.items() if name not in self._asked}
        self._asked += left
        return left

    def finish(self) -> None:
        """See that nothing is left.

        Raises:
            TilpError: a key that nothing asked for, with those that are possible.
        """
        for name in self._values:
            if name not in self._asked:
                near = difflib.get_close_matches(name, self._asked, 1)
                meant = f", perhaps {near[0]!r} is meant" if near else ""
                possible = ", ".join(sorted(set(self._asked)))
                raise TilpError(
                    f"{self.place}: there is no key {name!r}{meant}; possible here: {possible}"
                )

    def refuse(self, name: str, found: object, words: str) -> NoReturn:
        """Say what is wrong with a value.

        Raises:
            TilpError: always.
        """
        raise TilpError(f"{self.place}: {name} is {found!r}; give {words}")

    def _read(self, name: str, reader: Reader[Value]) -> Value:
        self._asked.append(name)
        found = reader.read(self._values[name])
        if found is None:
            self.refuse(name, self._values[name], reader.words)
        return found


_TABLE: Reader[dict[str, Any]] = Reader(
    "a table", lambda value: value if isinstance(value, dict) else None
)
