"""`PackedVocabulary`: names that stay on disk until they are asked for."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.graph import Vocabulary
from tilp.graph.near import NearNames
from tilp.io.packing.format import mapped, names_files

__all__ = ["PackedNames", "PackedVocabulary"]

_BLOCK = 100_000  # names that become a series at once


class PackedNames:
    """One name of each number, and the numbers in the order of the names.

    Args:
        stem: what the files are named by.
        ordered: whether the numbers are in the order of the names themselves.
    """

    def __init__(self, stem: Path, *, ordered: bool) -> None:
        files = names_files(stem)
        self._bytes: NDArray[np.uint8] = mapped(files[0])
        self._begin: NDArray[np.int64] = mapped(files[1])
        self._order: NDArray[np.int32] | None = None
        if not ordered:
            self._order = mapped(stem.with_name(f"{stem.name}.order.npy"))

    def __len__(self) -> int:
        return len(self._begin) - 1

    def __getitem__(self, number: int) -> str:
        return self._bytes[self._begin[number] : self._begin[number + 1]].tobytes().decode()

    def series(self, begin: int, end: int) -> pl.Series:
        """The names of some numbers in a row."""
        first = int(self._begin[begin])
        text = self._bytes[first : int(self._begin[end])].tobytes()
        cuts = (self._begin[begin : end + 1] - first).tolist()
        names: list[str]
        if text.isascii():  # cut after all of it is decoded, which is quicker
            letters = text.decode()
            names = [letters[a:b] for a, b in itertools.pairwise(cuts)]
        else:
            names = [text[a:b].decode() for a, b in itertools.pairwise(cuts)]
        return pl.Series(names, dtype=pl.String)

    def numbers(self, name: str) -> list[int]:
        """All that have a name, ascending."""
        first = bisect_left(range(len(self)), name, key=self._name_at)
        last = bisect_right(range(len(self)), name, lo=first, key=self._name_at)
        return sorted(self._number_at(place) for place in range(first, last))

    def _name_at(self, place: int) -> str:
        return self[self._number_at(place)]

    def _number_at(self, place: int) -> int:
        return place if self._order is None else int(self._order[place])


class PackedVocabulary(Vocabulary):
    """A vocabulary whose names are looked up where they lie.

    Whole columns are read when they are first asked for.

    Args:
        kind: 'entity' or 'relation'.
        ids: the names as fact files have them.
        keys: likewise the keys, perhaps the very same.
        labels: likewise the labels.
    """

    def __init__(self, kind: str, ids: PackedNames, keys: PackedNames, labels: PackedNames) -> None:
        self.__dict__.update(kind=kind, _packed=(ids, keys, labels))

    _packed: tuple[PackedNames, PackedNames, PackedNames]

    def __len__(self) -> int:
        return len(self._packed[0])

    def __getstate__(self) -> dict[str, Any]:
        # Columns that were read meanwhile are quickly read again.
        return {"kind": self.kind, "_packed": self._packed}

    def id(self, number: int) -> str:
        """The name as fact files have it."""
        return self._packed[0][int(number)]

    @cached_property
    def ids(self) -> pl.Series:
        """The names as fact files have them; unique."""
        return self._column(0)

    @cached_property
    def keys(self) -> pl.Series:
        """The names in a wider world."""
        return self._column(1)

    @cached_property
    def labels(self) -> pl.Series:
        """The names to show."""
        return self._column(2)

    def slices(self, rows: int) -> Iterator[pl.DataFrame]:
        """The same table, so many rows at a time, of which only these are held."""
        for begin in range(0, len(self), rows):
            end = min(begin + rows, len(self))
            columns = zip(("id", "key", "label"), self._packed, strict=True)
            yield pl.DataFrame({name: names.series(begin, end) for name, names in columns})

    def _column(self, place: int) -> pl.Series:
        first = self._packed.index(self._packed[place])
        if first < place:
            return self.ids if first == 0 else self.keys
        names = self._packed[place]
        cuts = [*range(0, len(names), _BLOCK), len(names)]
        parts = [names.series(a, b) for a, b in itertools.pairwise(cuts)]
        column = pl.concat(parts) if parts else pl.Series([], dtype=pl.String)
        return column.alias(("id", "key", "label")[place])

    def _label(self, number: int) -> str:
        return self._packed[2][number]

    def _places(self, name: str) -> Iterator[Sequence[int]]:
        for names in dict.fromkeys(self._packed):
            yield names.numbers(name)

    @cached_property
    def _near(self) -> NearNames:
        columns = (self.ids, self.keys, self.labels)
        places = {names: place for place, names in reversed(list(enumerate(self._packed)))}
        distinct = (columns[place].unique(maintain_order=True) for place in sorted(places.values()))
        return NearNames(name for names in distinct for name in names)
