"""Facts of the world as integer columns, the relations, and noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Ints, Mask
from tilp.time import UNKNOWN

FIRST_YEAR = 1500  # of any fact
NOW = 2020  # last year of the world; facts that still hold end here

_words = str.split
STRUCTURAL = _words("cityIn universityIn clubOf partyOf basedIn playsInLeague governedBy")
"""Relations between places and institutions: without noise, always in train."""
POINTS = ("wonTitle", "bornIn", "graduatedFrom", "nominatedFor", "receivedAward", "diedIn")
"""Relations that hold in a single year."""
_LASTING = _words("citizenOf playsFor licensedBy livesIn memberOfClub marriedTo memberOfParty")
RELATIONS = (*STRUCTURAL, *POINTS, *_LASTING)
RELATION_IDS = {name: index for index, name in enumerate(RELATIONS)}

_N_YEARS = NOW - FIRST_YEAR + 20  # different years in a key, and one code for unknown


@dataclass(frozen=True)
class Facts:
    """Facts as columns of ids and years."""

    subject: Ints
    relation: Ints
    object: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(
        cls, name: str, subject: Ints, object: Ints, start: Ints, end: Ints | None = None
    ) -> Facts:
        """Return facts of one relation; in single years if `end` is None."""
        relation = np.full(len(subject), RELATION_IDS[name], dtype=np.int64)
        return cls(subject, relation, object, start, start if end is None else end)

    @classmethod
    def concatenate(cls, parts: Iterable[Facts]) -> Facts:
        """Concatenate parts."""
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
        """Return a number for each fact, equal for equal facts only; sorts by subject first."""
        years = [np.where(t == UNKNOWN, 0, t - FIRST_YEAR + 10) for t in (self.start, self.end)]
        # A block has 2^15 subjects, the largest world 2^22 entities: below 2^63 with room to spare.
        key = self.subject - self.subject.min(initial=np.iinfo(np.int64).max)
        key = key * len(RELATIONS) + self.relation
        key = key * (self.object.max(initial=0) + 1) + self.object
        keys: Ints = (key * _N_YEARS + years[0]) * _N_YEARS + years[1]
        return keys

    def distinct(self) -> Facts:
        """Return the sorted facts without duplicates."""
        return self[np.unique(self.keys(), return_index=True)[1]]


_WRONG_OBJECT, _WRONG_DATE = 0.03, 0.02
_MAX_SHIFT = 3
_NO_END, _NO_START, _NO_DATE = 0.15, 0.05, 0.05
_VALID, _TEST = 0.1, 0.1

_STRUCTURAL_IDS = np.array([RELATION_IDS[name] for name in STRUCTURAL])
_POINT_IDS = np.array([RELATION_IDS[name] for name in POINTS])


def add_errors(rng: np.random.Generator, truth: Facts) -> Facts:
    """Change some objects and years; never repeat a fact or relate an entity to itself."""
    chance = np.where(np.isin(truth.relation, _STRUCTURAL_IDS), 1.0, rng.random(len(truth)))
    wrong_object = chance < _WRONG_OBJECT
    wrong_date = ~wrong_object & (chance < _WRONG_OBJECT + _WRONG_DATE)
    shift = rng.integers(1, _MAX_SHIFT + 1, len(truth))
    later = (rng.random(len(truth)) < 0.5) & (truth.end + shift <= NOW)
    shift = np.where(wrong_date, np.where(later, shift, -shift), 0)
    object_ = np.where(wrong_object, _objects_of_others(rng, truth), truth.object)
    wrong = replace(truth, object=object_, start=truth.start + shift, end=truth.end + shift)
    changed = np.flatnonzero(wrong_object | wrong_date)
    known, new = np.split(Facts.concatenate([truth, wrong[changed]]).keys(), [len(truth)])
    is_new = _first_of_each(new) & ~np.isin(new, known)
    is_new &= wrong.subject[changed] != wrong.object[changed]
    return _replace_rows(truth, wrong, changed[is_new])


def remove_dates(rng: np.random.Generator, facts: Facts) -> Facts:
    """Remove some dates; of facts that differ only in these dates, all but one keep theirs."""
    structural = np.isin(facts.relation, _STRUCTURAL_IDS)
    point = np.isin(facts.relation, _POINT_IDS)
    chance = rng.random(len(facts))
    no_date = point & (chance < _NO_DATE)
    no_end = np.where(point, no_date, chance < _NO_END) & ~structural
    no_start = np.where(point, no_date, rng.random(len(facts)) < _NO_START) & ~structural
    start = np.where(no_start, UNKNOWN, facts.start)
    undated = replace(facts, start=start, end=np.where(no_end, UNKNOWN, facts.end))
    changed = np.flatnonzero(no_start | no_end)
    return _replace_rows(facts, undated, changed[_first_of_each(undated[changed].keys())])


def draw_splits(rng: np.random.Generator, facts: Facts) -> NDArray[np.uint8]:
    """Return 0 for train, 1 for valid, 2 for test; facts between places are always train."""
    chance = np.where(np.isin(facts.relation, _STRUCTURAL_IDS), 1.0, rng.random(len(facts)))
    return np.where(chance < _TEST, 2, np.where(chance < _TEST + _VALID, 1, 0)).astype(np.uint8)


def _objects_of_others(rng: np.random.Generator, facts: Facts) -> Ints:
    """Return for each fact the object of a random fact of the same relation."""
    order = np.argsort(facts.relation, kind="stable")
    count = np.bincount(facts.relation)
    first = np.cumsum(count) - count
    drawn = (rng.random(len(facts)) * count[facts.relation]).astype(np.int64)
    objects: Ints = facts.object[order[first[facts.relation] + drawn]]
    return objects


def _first_of_each(keys: Ints) -> Mask:
    """Return a mask of the first occurrence of each key."""
    return np.isin(np.arange(len(keys)), np.unique(keys, return_index=True)[1])


def _replace_rows(facts: Facts, others: Facts, rows: Ints) -> Facts:
    swap = np.isin(np.arange(len(facts)), rows)
    pairs = zip(facts.columns, others.columns, strict=True)
    return Facts(*(np.where(swap, new, old) for old, new in pairs))
