"""The columns that every part of the world fills: facts as integers, and the relations' names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.time import UNKNOWN

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


_WRONG_OBJECT, _WRONG_DATE = 0.03, 0.02
_FARTHEST_SHIFT = 3
_NO_END, _NO_START, _NO_DATE = 0.15, 0.05, 0.05
_VALID, _TEST = 0.1, 0.1

_STRUCTURAL_IDS = np.array([relation_id(name) for name in STRUCTURAL])
_POINT_IDS = np.array([relation_id(name) for name in POINTS])


def misreport(rng: np.random.Generator, truth: Facts) -> Facts:
    """Give 3 % of the facts another's object and move 2 % by up to 3 years; places stay true.

    Never makes a fact that is there already, nor relates somebody to themselves.
    """
    chance = np.where(np.isin(truth.relation, _STRUCTURAL_IDS), 1.0, rng.random(len(truth)))
    wrong_object = chance < _WRONG_OBJECT
    wrong_date = ~wrong_object & (chance < _WRONG_OBJECT + _WRONG_DATE)
    shift = rng.integers(1, _FARTHEST_SHIFT + 1, len(truth))
    later = (rng.random(len(truth)) < 0.5) & (truth.end + shift <= NOW)
    shift = np.where(wrong_date, np.where(later, shift, -shift), 0)
    reported = Facts(
        truth.subject,
        truth.relation,
        np.where(wrong_object, _objects_of_others(rng, truth), truth.object),
        truth.start + shift,
        truth.end + shift,
    )
    changed = np.flatnonzero(wrong_object | wrong_date)
    keys = Facts.concatenate([truth, reported[changed]]).keys()
    known, new = keys[: len(truth)], keys[len(truth) :]
    fresh = _first_of_each(new) & ~np.isin(new, known)
    fresh &= reported.subject[changed] != reported.object[changed]
    return _replaced(truth, reported, changed[fresh])


def lose_dates(rng: np.random.Generator, facts: Facts) -> Facts:
    """Lose 15 % of the ends and 5 % of the starts, of single years 5 % as a whole; none of places.

    Of facts that only the lost dates told apart, all but one keep theirs.
    """
    structural = np.isin(facts.relation, _STRUCTURAL_IDS)
    point = np.isin(facts.relation, _POINT_IDS)
    chance = rng.random(len(facts))
    no_date = point & (chance < _NO_DATE)
    no_end = np.where(point, no_date, chance < _NO_END) & ~structural
    no_start = np.where(point, no_date, rng.random(len(facts)) < _NO_START) & ~structural
    bare = Facts(
        facts.subject,
        facts.relation,
        facts.object,
        np.where(no_start, UNKNOWN, facts.start),
        np.where(no_end, UNKNOWN, facts.end),
    )
    changed = np.flatnonzero(no_start | no_end)
    return _replaced(facts, bare, changed[_first_of_each(bare[changed].keys())])


def split(rng: np.random.Generator, facts: Facts) -> NDArray[np.uint8]:
    """0 train, 1 valid, 2 test; what holds between places is always train."""
    chance = np.where(np.isin(facts.relation, _STRUCTURAL_IDS), 1.0, rng.random(len(facts)))
    return np.where(chance < _TEST, 2, np.where(chance < _TEST + _VALID, 1, 0)).astype(np.uint8)


def _objects_of_others(rng: np.random.Generator, facts: Facts) -> Ints:
    """For each fact the object of a random fact of the same relation: of the right kind."""
    order = np.argsort(facts.relation, kind="stable")
    count = np.bincount(facts.relation)
    first = np.cumsum(count) - count
    drawn = (rng.random(len(facts)) * count[facts.relation]).astype(np.int64)
    objects: Ints = facts.object[order[first[facts.relation] + drawn]]
    return objects


def _first_of_each(keys: Ints) -> NDArray[np.bool_]:
    first = np.zeros(len(keys), dtype=np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _replaced(facts: Facts, others: Facts, rows: Ints) -> Facts:
    """The facts, but those rows from the others."""
    swap = np.zeros(len(facts), dtype=np.bool_)
    swap[rows] = True
    pairs = zip(facts.columns, others.columns, strict=True)
    return Facts(*(np.where(swap, new, old) for old, new in pairs))
