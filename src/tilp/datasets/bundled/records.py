"""What the records make of the truth: errors, lost dates, and the splits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp.datasets.bundled.facts import NOW, POINTS, STRUCTURAL, Facts, Ints, relation_id
from tilp.intervals import UNKNOWN

__all__ = ["lose_dates", "misreport", "split"]

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
