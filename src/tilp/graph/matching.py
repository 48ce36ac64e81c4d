"""`match_names`: which names of a new vocabulary stand for known things, and which for new ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.choices import ByLabel
from tilp.errors import TilpError
from tilp.graph.vocabulary import Vocabulary

__all__ = ["Matched", "match_names"]

_SHOWN = 3


@dataclass(frozen=True)
class Matched:
    """Two vocabularies as one.

    Attributes:
        names: the known ones, in their places and as they were, and then the new ones.
        number: for each name of the new vocabulary its place among them.
    """

    names: Vocabulary
    number: NDArray[np.int32]


def match_names(known: Vocabulary, new: Vocabulary, by_label: ByLabel) -> Matched:
    """Find the names of a new vocabulary in a known one, by id and then by key.

    Args:
        known: whose names stay as they are.
        new: whose names are looked for; an id or key of it may be an id or key of the other.
        by_label: what a name is that is found by neither, but reads as the label of a known one.

    Raises:
        TilpError: a name that stands for two things, or is a label where these are refused.
    """
    if known == new:
        return Matched(known, np.arange(len(known), dtype=np.int32))
    look = _Look(known)
    number = np.full(len(new), -1, np.int32)
    labels: list[tuple[str, list[int]]] = []
    for place, (name, key, label) in enumerate(new.frame().iter_rows()):
        number[place] = look.by_name(name, key)
        if number[place] < 0 and (alike := look.by_label(name, key, label)):
            labels.append((label, alike))
            if by_label is ByLabel.MATCH and len(alike) == 1:
                number[place] = alike[0]
    refused = [one for one in labels if by_label is ByLabel.REFUSE or len(one[1]) > 1]
    if refused and by_label is not ByLabel.NEW:
        raise TilpError(_labels_refused(known, refused, by_label))
    unknown = np.flatnonzero(number < 0)
    number[unknown] = len(known) + np.arange(len(unknown), dtype=np.int32)
    both = pl.concat([known.frame(), new.frame()[unknown]])
    names = Vocabulary(known.kind, both["id"], both["key"], both["label"])
    if known.kind == "relation":
        _refuse_same_labels(names)
    return Matched(names, number)


class _Look:
    """Places of known names."""

    def __init__(self, known: Vocabulary) -> None:
        self._known = known
        self._ids = {name: place for place, name in enumerate(known.ids)}
        self._keys: dict[str, list[int]] = {}
        self._labels: dict[str, list[int]] = {}
        self.plain: set[str] = set()
        """Labels of things that have no other name."""
        for place, (name, key, label) in enumerate(known.frame().iter_rows()):
            self._keys.setdefault(key, []).append(place)
            if label == name:
                self.plain.add(name)
            else:
                self._labels.setdefault(label, []).append(place)

    def by_name(self, name: str, key: str) -> int:
        """The place of what an id and a key stand for; -1: nothing known."""
        found = self._by_id_or_key(name)
        if key == name:
            return found
        by_key = self._by_id_or_key(key)
        if found < 0 or by_key == found:
            return by_key
        own = str(self._known.keys[found])
        if by_key >= 0 or own != self._known.ids[found]:
            kind = self._known.kind
            raise TilpError(
                f"{kind} {name!r} has the key {key!r} in the new facts, and {own!r} where it is "
                "known: the same id stands for two things. Write the new facts with keys, or "
                "with the known ids, as names."
            )
        return found

    def _by_id_or_key(self, name: str) -> int:
        if name in self._ids:
            return self._ids[name]
        places = self._keys.get(name, [])
        if len(places) > 1:
            ids = ", ".join(repr(str(self._known.ids[place])) for place in places[:_SHOWN])
            raise TilpError(
                f"{len(places)} known {self._known.kind} names have the key {name!r}; say in the "
                f"new facts which is meant by its id: {ids}"
            )
        return places[0] if places else -1

    def by_label(self, name: str, key: str, label: str) -> list[int]:
        """Known things that the name may have been written for.

        That both have the same label says nothing where each has an id besides: different
        entities may be called the same. Relations may not.
        """
        read = (name, key, label) if self._known.kind == "relation" else (name, key)
        alike = {place for one in read for place in self._labels.get(one, ())}
        if label in self.plain:
            alike.add(self._ids[label])
        return sorted(alike)


def _labels_refused(
    known: Vocabulary, refused: list[tuple[str, list[int]]], by_label: ByLabel
) -> str:
    told = "; ".join(
        f"{name!r} reads as the label of {' and '.join(repr(str(known.ids[p])) for p in places)}"
        for name, places in refused[:_SHOWN]
    )
    more = f" (and {len(refused) - _SHOWN:,} more)" if len(refused) > _SHOWN else ""
    choices = (
        "give ids for these"
        if by_label is ByLabel.MATCH
        else "write these, or say what is meant: labels='match' (--labels match) takes a label for "
        "the one that has it, labels='new' (--labels new) for something new that is called the same"
    )
    return f"new facts name what is known by id or key, but {told}{more}; {choices}."


def _refuse_same_labels(names: Vocabulary) -> None:
    """Rules are written with the labels of relations, which therefore tell them apart."""
    same = names.labels.is_duplicated()
    if same.any():
        label = names.labels.filter(same)[0]
        ids = ", ".join(map(repr, names.ids.filter(names.labels == label)))
        raise TilpError(
            f"the relations {ids} would both be called {label!r}, and rules could not tell them "
            "apart; give the new one another label, or take them for the same (labels='match', "
            "--labels match)"
        )
