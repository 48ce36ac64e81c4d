"""The columns that every part of the world fills: facts as integers, and the relations' names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.intervals import UNKNOWN

__all__ = ["FIRST_YEAR", "NOW", "POINTS", "RELATIONS", "STRUCTURAL", "Facts", "Ints", "relation_id"]

Ints = NDArray[np.int64]

FIRST_YEAR = 1500
"""No fact of the truth starts earlier."""
NOW = 2020
"""The year of the records: what still holds ends here."""

STRUCTURAL = (
    "cityIn",
    "universityIn",
    "clubOf",
    "partyOf",
    "basedIn",
    "playsInLeague",
    "governedBy",
)
"""Relations between places and institutions: always known, always in train."""
POINTS = ("wonTitle", "bornIn", "graduatedFrom", "nominatedFor", "receivedAward", "diedIn")
"""Relations that hold in a single year."""
RELATIONS = (
    *STRUCTURAL,
    *POINTS,
    "citizenOf",
    "playsFor",
    "licensedBy",
    "livesIn",
    "memberOfClub",
    "marriedTo",
    "memberOfParty",
)

_ID = {name: number for number, name in enumerate(RELATIONS)}
_SPAN = NOW - FIRST_YEAR + 20  # years that a key can tell apart, and one code for unknown


def relation_id(name: str) -> int:
    """The relation's place in `RELATIONS`."""
    return _ID[name]


@dataclass(frozen=True)
class Facts:
    """Facts as columns of the same length; entities and relations are numbers."""

    subject: Ints
    relation: Ints
    object: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(
        cls, name: str, subject: Ints, object: Ints, start: Ints, end: Ints | None = None
    ) -> Facts:
        """Facts of one relation; of single years where there is no end."""
        return cls(
            subject,
            np.full(len(subject), _ID[name], dtype=np.int64),
            object,
            start,
            start if end is None else end,
        )

    @classmethod
    def concatenate(cls, parts: Iterable[Facts]) -> Facts:
        """All parts, one after the other."""
        columns = zip(*(part.columns for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    @property
    def columns(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Subject, relation, object, start, end."""
        return self.subject, self.relation, self.object, self.start, self.end

    def __len__(self) -> int:
        return len(self.subject)

    def __getitem__(self, rows: NDArray[Any] | slice) -> Facts:
        return Facts(*(column[rows] for column in self.columns))

    def keys(self) -> Ints:
        """One number for each fact, the same for the same fact only; sorts by subject first."""
        years = [np.where(t == UNKNOWN, 0, t - FIRST_YEAR + 10) for t in (self.start, self.end)]
        # A block has 2^15 subjects, the largest world 2^22 entities: below 2^63 with room to spare.
        key = self.subject - self.subject.min(initial=np.iinfo(np.int64).max)
        key = key * len(RELATIONS) + self.relation
        key = key * (self.object.max(initial=0) + 1) + self.object
        keys: Ints = (key * _SPAN + years[0]) * _SPAN + years[1]
        return keys

    def distinct(self) -> Facts:
        """The facts sorted, each once."""
        return self[np.unique(self.keys(), return_index=True)[1]]
