"""`NearNames`: known names that one that is not known may have been meant for."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest

import numpy as np
from numpy.typing import NDArray

__all__ = ["NearNames"]

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
