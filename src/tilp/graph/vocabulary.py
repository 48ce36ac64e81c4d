"""`NearNames`: known names that one that is not known may have been meant for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from heapq import nlargest

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import DataError, TilpError, UnknownNameError

_BUCKETS = 64
_BATCH = 50_000  # names whose letters are counted at once
_COMPARED = 200
"""Names that are compared letter by letter: those whose letters are most alike in any order."""
_CUTOFF = 0.6
_SHOWN = 3


class NearNames:
    """Finds the names that are most like a given one, whatever their case.

    Args:
        names: the known ones.
    """

    def __init__(self, names: Iterable[str]) -> None:
        by_case = {name.lower(): name for name in names}
        self._lower, self._names = list(by_case), list(by_case.values())
        self._size = np.array([len(name) for name in self._lower], np.int64)
        self._letters = np.concatenate(
            [
                _letters(self._lower[begin : begin + _BATCH])
                for begin in range(0, max(len(self._lower), 1), _BATCH)
            ]
        )

    def find(self, name: str) -> tuple[str, ...]:
        """The nearest names, the nearest first; none where nothing is near.

        >>> NearNames(["Ada", "Adele", "Ben"]).find("ade")
        ('Adele', 'Ada')
        """
        name = name.lower()
        wanted = _letters([name])
        together = np.concatenate(
            [
                np.minimum(self._letters[begin : begin + _BATCH], wanted).sum(axis=1, dtype=int)
                for begin in range(0, max(len(self._lower), 1), _BATCH)
            ]
        )
        # No order of letters makes two names more alike than these.
        alike = 2 * together / np.maximum(self._size + len(name), 1)
        close = np.flatnonzero(alike >= _CUTOFF)
        best = close[np.argsort(-alike[close], kind="stable")[:_COMPARED]]
        matcher = SequenceMatcher(b=name)
        found: list[tuple[float, str, int]] = []
        for place in best.tolist():
            matcher.set_seq1(self._lower[place])
            ratio = matcher.ratio()
            if ratio >= _CUTOFF:
                found.append((ratio, self._lower[place], place))
        return tuple(self._names[place] for _, _, place in nlargest(_SHOWN, found))


def _letters(names: list[str]) -> NDArray[np.uint8]:
    """How often each kind of letter stands in each name; a few letters share a kind."""
    codes = np.frombuffer("".join(names).encode("utf-32-le", "surrogatepass"), np.uint32)
    row = np.repeat(np.arange(len(names)), [len(name) for name in names])
    place = row * _BUCKETS + codes % _BUCKETS
    counts = np.bincount(place, minlength=len(names) * _BUCKETS)
    return np.minimum(counts, 255).astype(np.uint8).reshape(len(names), _BUCKETS)


INVERSE_MARK = "⁻¹"
"""Follows the name of a relation that is read from object to subject."""


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Names in a fixed order; a name's place is its integer.

    Attributes:
        kind: 'entity' or 'relation', for messages.
        ids: the names as fact files have them; unique.
        keys: the names in a wider world (a Wikidata id, say); the ids where there are none.
        labels: the names to show; the keys where there are none. Not always unique.
    """

    kind: str
    ids: pl.Series
    keys: pl.Series
    labels: pl.Series

    @classmethod
    def of(cls, kind: str, ids: pl.Series) -> Vocabulary:
        """A vocabulary whose ids serve as keys and labels too."""
        return cls(kind, ids, ids, ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} × {self.kind})"

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return all(
            mine.equals(theirs)
            for mine, theirs in (
                (self.ids, other.ids),
                (self.keys, other.keys),
                (self.labels, other.labels),
            )
        )

    __hash__ = None  # type: ignore[assignment]  # as large as a graph: compared, never hashed

    def label(self, number: int) -> str:
        """The name to show; a relation that is numbered past the last is an inverse one."""
        if number < len(self):
            return self._label(int(number))
        if self.kind != "relation" or number >= 2 * len(self):
            raise TilpError(f"there are {len(self):,} {self.kind} names; none has number {number}")
        return f"{self._label(int(number) - len(self))}{INVERSE_MARK}"

    def id(self, number: int) -> str:
        """The name as fact files have it."""
        return str(self.ids[int(number)])

    def find(self, name: str, *, near: bool = True) -> int:
        """The integer of a name given as id, key or label, in this order.

        Args:
            name: the name.
            near: whether the nearest names are looked for where there is no such name.

        Raises:
            UnknownNameError: no such name (the nearest ones are given), or a label of several.
        """
        for places in self._places(str(name)):
            if len(places) == 1:
                return places[0]
            if places:
                several = tuple(self.id(place) for place in places[:5])
                raise UnknownNameError(
                    f"{len(places)} {self.kind} names read {name!r}; say which by its id: "
                    f"{', '.join(map(repr, several))}",
                    several,
                )
        alike = self._near.find(str(name)) if near else ()
        hint = f"; did you mean {' or '.join(map(repr, alike))}?" if alike else ""
        raise UnknownNameError(f"no {self.kind} is named {name!r}{hint}", alike)

    def find_directed(self, name: str) -> int:
        """The integer of a relation given as `find` takes it, or of `name⁻¹` or `name^-1`.

        Raises:
            TilpError: as `find`.
        """
        plain = str(name).removesuffix(INVERSE_MARK).removesuffix("^-1")
        return self.find(plain) + (len(self) if plain != name else 0)

    def encode(self, names: pl.Series) -> NDArray[np.int32]:
        """The integers of a column of ids, all of which must be known."""
        places = names.cast(self._enum, strict=False).to_physical()
        if places.null_count():
            unknown = names.filter(places.is_null())[0]
            raise DataError(f"no {self.kind} has the id {unknown!r}")
        return places.to_numpy().astype(np.int32)

    def find_all(self, names: pl.Series) -> NDArray[np.int32]:
        """The integers of a column of names, given as for `find`; -1 where it would refuse."""
        every, place = self._found
        found = names.cast(every, strict=False).to_physical()
        numbers: NDArray[np.int32] = np.append(place, np.int32(-1))[
            found.fill_null(len(place)).to_numpy()
        ]
        return numbers

    def frame(self) -> pl.DataFrame:
        """The vocabulary as a table with the columns id, key and label."""
        return pl.DataFrame({"id": self.ids, "key": self.keys, "label": self.labels})

    def slices(self, rows: int) -> Iterator[pl.DataFrame]:
        """The same table, so many rows at a time."""
        return self.frame().iter_slices(rows)

    def _label(self, number: int) -> str:
        return str(self.labels[number])

    def _places(self, name: str) -> Iterator[Sequence[int]]:
        """The integers of those with a name as their id, then as key, then as label."""
        for names in self._lookups:
            yield names.get(name, ())

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum(self.ids)

    @cached_property
    def _lookups(self) -> tuple[dict[str, list[int]], ...]:
        lookups: list[dict[str, list[int]]] = []
        seen: list[pl.Series] = []
        for names in (self.ids, self.keys, self.labels):
            if any(names is earlier for earlier in seen):
                continue
            seen.append(names)
            places: dict[str, list[int]] = {}
            for place, name in enumerate(names):
                places.setdefault(name, []).append(place)
            lookups.append(places)
        return tuple(lookups)

    @cached_property
    def _found(self) -> tuple[pl.Enum, NDArray[np.int32]]:
        """Every name that `find` knows, and what it finds for it; -1: it stands for several."""
        found: dict[str, int] = {}
        for names in self._lookups:
            for name, places in names.items():
                found.setdefault(name, places[0] if len(places) == 1 else -1)
        return pl.Enum(list(found)), np.fromiter(found.values(), np.int32, len(found))

    @cached_property
    def _near(self) -> NearNames:
        return NearNames(name for names in self._lookups for name in names)
