"""`Vocabulary`: names and their indices; `NearNames`: known names similar to an unknown one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from heapq import nlargest, nsmallest
from unicodedata import combining, normalize

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Ids
from tilp.errors import DataError, TilpError, UnknownNameError

_BUCKETS = 64
_MAX_COMPARED = 200  # names, those with the most letters in common, are compared letter by letter
_CUTOFF = 0.6
_MAX_NEAR = 3
_MIN_PART = 3  # letters of a name that others may contain


def _fold(name: str) -> str:
    """Return a name without case and accents."""
    if name.isascii():
        return name.lower()
    return "".join(c for c in normalize("NFKD", name.casefold()) if not combining(c))


class NearNames:
    """Finds the known names most similar to a given one, whatever their case and accents.

    Names that contain the given one come first, then those with all its words, then those that
    are spelled alike.
    """

    def __init__(self, names: Iterable[str], batch_size: int = 50_000) -> None:
        by_case = {_fold(name): name for name in names}
        self._lower, self._names = list(by_case), list(by_case.values())
        self._size = np.array([len(name) for name in self._lower], np.int64)
        begins = range(0, max(len(self._lower), 1), batch_size)
        self._batches = [slice(begin, begin + batch_size) for begin in begins]
        self._letters = np.concatenate([_letters(self._lower[rows]) for rows in self._batches])

    def find(self, name: str) -> tuple[str, ...]:
        """Return up to three similar names, the most similar first.

        >>> NearNames(["Ada", "Adele", "Ben"]).find("ade")
        ('Adele', 'Ada')
        >>> NearNames(["Marie Curie, née Sklodowska", "Ben"]).find("curie marie")
        ('Marie Curie, née Sklodowska',)
        """
        name = _fold(name)
        first = self._with_words(name)
        similar = (index for index in self._alike(name) if index not in first)
        return tuple(self._names[index] for index in [*first, *similar][:_MAX_NEAR])

    def _with_words(self, name: str) -> list[int]:
        """Return the names that contain a name, then those with its words, the shortest first."""
        words = set(re.findall(r"\w+", name))
        if not words or len(name.strip()) < _MIN_PART:
            return []
        all_words = [i for i, known in enumerate(self._lower) if all(w in known for w in words)]
        found = [
            (name not in self._lower[index], len(self._lower[index]), index)
            for index in all_words
            if name in self._lower[index] or words <= set(re.findall(r"\w+", self._lower[index]))
        ]
        return [index for *_, index in nsmallest(_MAX_NEAR, found)]

    def _alike(self, name: str) -> list[int]:
        """Return the names that are spelled most alike."""
        letters = _letters([name])
        shared = (np.minimum(self._letters[rows], letters) for rows in self._batches)
        common = np.concatenate([counts.sum(axis=1, dtype=int) for counts in shared])
        # An upper bound of the similarity, whatever the order of letters.
        bound = 2 * common / np.maximum(self._size + len(name), 1)
        close = np.flatnonzero(bound >= _CUTOFF)
        best = close[np.argsort(-bound[close], kind="stable")[:_MAX_COMPARED]]
        matcher = SequenceMatcher(b=name)
        similar: list[tuple[float, str, int]] = []
        for index in best.tolist():
            matcher.set_seq1(self._lower[index])
            if (ratio := matcher.ratio()) >= _CUTOFF:
                similar.append((ratio, self._lower[index], index))
        return [index for _, _, index in nlargest(_MAX_NEAR, similar)]


def _letters(names: list[str]) -> NDArray[np.uint8]:
    """Count the letters of each name in buckets that a few letters share."""
    codes = np.frombuffer("".join(names).encode("utf-32-le", "surrogatepass"), np.uint32)
    row = np.repeat(np.arange(len(names)), [len(name) for name in names])
    counts = np.bincount(row * _BUCKETS + codes % _BUCKETS, minlength=len(names) * _BUCKETS)
    return np.minimum(counts, 255).astype(np.uint8).reshape(len(names), _BUCKETS)


INVERSE_MARK = "⁻¹"
"""Suffix of a relation that is read from object to subject."""


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Names in a fixed order; the index of a name stands for it everywhere else."""

    kind: str  # 'entity' or 'relation', for messages
    ids: pl.Series  # the names in fact files; unique
    keys: pl.Series  # names in a wider context (a Wikidata id, say); the ids by default
    labels: pl.Series  # the names to show; the keys by default. Not always unique.

    @classmethod
    def of(cls, kind: str, ids: pl.Series) -> Vocabulary:
        """Return a vocabulary whose ids are keys and labels too."""
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
        columns = ("ids", "keys", "labels")
        return all(getattr(self, name).equals(getattr(other, name)) for name in columns)

    __hash__ = None  # type: ignore[assignment]  # as large as a graph: compared, never hashed

    def label(self, index: int) -> str:
        """Return the name to show; a relation's index past the last stands for its inverse."""
        if index < len(self):
            return self._label(int(index))
        if self.kind != "relation" or index >= 2 * len(self):
            raise TilpError(f"there are {len(self):,} {self.kind} names; none has index {index}")
        return f"{self._label(int(index) - len(self))}{INVERSE_MARK}"

    def id(self, index: int) -> str:
        """Return the name in fact files."""
        return str(self.ids[int(index)])

    def find(self, name: str, *, near: bool = True) -> int:
        """Return the index of a name given as id, key or label, in this order.

        Args:
            name: the name.
            near: whether the error about an unknown name lists similar ones; True by default.
        """
        for indices in self._indices(str(name)):
            if len(indices) == 1:
                return indices[0]
            if indices:
                several = tuple(self.id(index) for index in indices[:5])
                raise UnknownNameError(
                    f"{len(indices)} {self.kind} names read {name!r}; say which by its id: "
                    f"{', '.join(map(repr, several))}",
                    several,
                )
        similar = self._near.find(str(name)) if near else ()
        hint = f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""
        raise UnknownNameError(f"no {self.kind} is named {name!r}{hint}", similar)

    def find_directed(self, name: str) -> int:
        """Return the index of a relation given as for `find`, or of `name⁻¹` or `name^-1`.

        A name in quotation marks is that of a relation, whatever it ends in: `"r⁻¹"^-1`.
        """
        name = str(name)
        plain = name.removesuffix(INVERSE_MARK).removesuffix("^-1")
        offset = len(self) if plain != name else 0
        same = [f"{plain}{mark}" for mark in (INVERSE_MARK, "^-1") if offset]
        named = [other for other in same if any(self._indices(other))]
        if len(plain) > 2 and plain[0] == plain[-1] == '"':
            plain = plain[1:-1]
        elif named and any(self._indices(plain)):
            raise UnknownNameError(
                f"{name!r} may be the relation {named[0]!r} or the inverse of {plain!r}; say which "
                f"with quotation marks: '\"{named[0]}\"' or '\"{plain}\"^-1'",
                (named[0], plain),
            )
        elif named:
            return self.find(named[0])
        return self.find(plain) + offset

    def encode(self, names: pl.Series) -> Ids:
        """Return the indices of a column of ids, all of which must be known."""
        indices = names.cast(self._enum, strict=False).to_physical()
        if indices.null_count():
            raise DataError(f"no {self.kind} has the id {names.filter(indices.is_null())[0]!r}")
        return indices.to_numpy().astype(np.int32)

    def find_all(self, names: pl.Series) -> Ids:
        """Return the indices of a column of names, given as for `find`; -1 where it would raise."""
        enum, index = self._all_names
        code = names.cast(enum, strict=False).to_physical().fill_null(len(index)).to_numpy()
        indices: Ids = np.append(index, np.int32(-1))[code]
        return indices

    def frame(self) -> pl.DataFrame:
        """Return the vocabulary as a table with the columns id, key and label."""
        return pl.DataFrame({"id": self.ids, "key": self.keys, "label": self.labels})

    def slices(self, rows: int) -> Iterator[pl.DataFrame]:
        """Iterate over this table, some rows at a time."""
        return self.frame().iter_slices(rows)

    def _label(self, index: int) -> str:
        return str(self.labels[index])

    def _indices(self, name: str) -> Iterator[Sequence[int]]:
        """Yield the indices of those with a name as their id, then as key, then as label."""
        for lookup in self._lookups:
            yield lookup.get(name, ())

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum(self.ids)

    @cached_property
    def _lookups(self) -> tuple[dict[str, list[int]], ...]:
        columns = {id(names): names for names in (self.ids, self.keys, self.labels)}
        lookups: tuple[dict[str, list[int]], ...] = tuple({} for _ in columns)
        for lookup, names in zip(lookups, columns.values(), strict=True):
            for index, name in enumerate(names):
                lookup.setdefault(name, []).append(index)
        return lookups

    @cached_property
    def _all_names(self) -> tuple[pl.Enum, Ids]:
        """Every name that `find` knows, and the index it returns; -1 if several share the name."""
        first: dict[str, int] = {}
        for lookup in self._lookups:
            for name, indices in lookup.items():
                first.setdefault(name, indices[0] if len(indices) == 1 else -1)
        return pl.Enum(list(first)), np.fromiter(first.values(), np.int32, len(first))

    @cached_property
    def _near(self) -> NearNames:
        return NearNames(name for lookup in self._lookups for name in lookup)
