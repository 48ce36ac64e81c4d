"""`SourceFiles`: the file and line that each fact was read from, as one integer a fact."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tilp._utils.arrays import Ids, Ints


@dataclass(frozen=True)
class SourceFiles:
    """Files whose lines are counted on from file to file, so that a count names file and line.

    Attributes:
        prefixes: text before a line or row of each file, such as `train.txt:`.
        bounds: count at which each file begins, and at which the last ends.

    >>> files = SourceFiles.of([("train.txt:", 17), ("the frame, row ", 4)])
    >>> files.text(17), files.text(18), files.text(-1)
    ('train.txt:17', 'the frame, row 0', 'unknown')
    """

    prefixes: tuple[str, ...] = ()
    bounds: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, parts: Iterable[tuple[str, int]]) -> SourceFiles:
        """Return the files of parts with a prefix and a last line; a file may have several."""
        last: dict[str, int] = {}
        for prefix, line in parts:
            last[prefix] = max(line, last.get(prefix, 0))
        return cls(tuple(last), tuple(accumulate((n + 1 for n in last.values()), initial=0)))

    def join(self, other: SourceFiles) -> SourceFiles:
        """Return these files, and others after them."""
        bounds = (self.bounds[-1] + bound for bound in other.bounds[1:])
        return SourceFiles(self.prefixes + other.prefixes, (*self.bounds, *bounds))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Smallest type of integer for the count of all lines."""
        return np.dtype(np.int32 if self.bounds[-1] < 2**31 else np.int64)

    def encode(self, prefix: str, lines: Sequence[int]) -> Ids | Ints:
        """Return lines of a file as counts over all files."""
        plain = np.arange(lines.start, lines.stop) if isinstance(lines, range) else lines
        counts: Ids | Ints = np.array(plain, self.dtype)
        counts += self.bounds[self.prefixes.index(prefix)]
        return counts

    def digest(self, counts: Ids | Ints) -> str:
        """Return a digest of the sources of facts."""
        return hashlib.sha256(repr(self).encode() + counts.astype(np.int64).tobytes()).hexdigest()

    def text(self, count: int) -> str:
        """Return the file and line of a count; -1 is not known."""
        file = bisect_right(self.bounds, count) - 1
        return "unknown" if file < 0 else f"{self.prefixes[file]}{count - self.bounds[file]}"
