"""Merge new facts into a graph: match their names, find duplicates, supersede dates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.graph.build import FactTable, LabelTable, build_graph
from tilp.graph.graph import ESTIMATED, SPLITS, WALKED_ONLY, TemporalGraph
from tilp.graph.vocabulary import Vocabulary
from tilp.time import OPEN_END, OPEN_START, UNKNOWN
from tilp.types import ByLabel, MoreDates

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


_TRIPLE = ["subject", "relation", "object"]


@dataclass(frozen=True)
class MergedGraph:
    """A graph with new facts.

    Attributes:
        graph: all facts; names, numbers of names and the order of facts are as they were, and what
            is new stands after that.
        added: the numbers of the facts that are new.
        superseded: those of the facts that a new one took the place of.
        known: for each split, how many new facts were there already.
        less: of these, those that are there with more of their dates.
        elsewhere: new facts that are in another split too.
        renumbered: attributes of entities that have another number now.
    """

    graph: TemporalGraph
    added: NDArray[np.int64]
    superseded: NDArray[np.int64]
    duplicates: dict[str, int]
    less_dated: int
    in_other_split: int
    changed_attributes: int


def merge_facts(
    graph: TemporalGraph,
    new: TemporalGraph,
    *,
    dates: MoreDates = MoreDates.SUPERSEDE,
    labels: ByLabel = ByLabel.REFUSE,
) -> MergedGraph:
    """Put new facts into a graph, each into its split, unless they are there already.

    A fact is there already if one of the same split has the same subject, relation, object, start
    and end. One that has one end in common and tells more of the other, which was unknown,
    estimated or open, takes its place, of several the first one's; and one that tells less is there
    already.

    Args:
        graph: the facts that are known.
        new: the new ones; their names are found by id, then by key.
        dates: whether facts that tell more of the dates of another take its place, or stand beside.
        labels: what a name is that is no id and no key, but reads as the label of a known one.

    Raises:
        TilpError: other units of time, or names that could stand for two things.
    """
    if new.unit is not graph.unit:
        raise TilpError(
            f"times of the new facts count {new.unit.value}s, of the known ones "
            f"{graph.unit.value}s; read the new ones with unit={graph.unit.value!r} "
            f"(--unit {graph.unit.value})"
        )
    entities = match_names(graph.entities, new.entities, labels)
    relations = match_names(graph.relations, new.relations, labels)
    columns = {
        "subject": entities.number[new.subject],
        "relation": relations.number[new.relation],
        "object": entities.number[new.object],
    }
    sorting = _Sorting(graph, dates)
    sorting.know(columns)
    facts = list(_facts(new, columns))
    # One that tells more before one that tells less, so that their order in the data is all one.
    for row in sorted(range(len(facts)), key=lambda row: _most_known_first(facts[row][2])):
        sorting.take(row, facts[row])
    attributes, renumbered = _attributes(graph, new, len(entities.names), entities.number)
    ids, names = entities.names.ids, relations.names.ids
    table, more = (
        one.frame(names="ids").with_columns(
            estimated=pl.Series(ESTIMATED).gather(one.estimated),
            walked_only=pl.Series(WALKED_ONLY).gather(one.walked_only.astype(np.uint8)),
        )
        for one in (graph, new)
    )
    more = more.with_columns(
        subject=ids.gather(columns["subject"]),
        relation=names.gather(columns["relation"]),
        object=ids.gather(columns["object"]),
    )
    rows, by = np.array(sorted(sorting.replaced.items()), np.int64).reshape(-1, 2).T
    for name in ("start", "end", "estimated"):
        table = table.with_columns(table[name].scatter(rows, more[name].gather(by)))
    added = np.array(sorted(sorting.added), np.int64)
    tables, numbers, begin = [], [], 0
    for split in SPLITS:
        fresh = added[(added >= new.span(split).start) & (added < new.span(split).stop)]
        part = pl.concat([table[graph.span(split)], more[fresh]])
        tables.append(FactTable(split, split, part, range(1, len(part) + 1)))
        begin += len(part)
        numbers.append(np.arange(begin - len(fresh), begin))
    whole = build_graph(
        tables,
        entities=LabelTable("entities", entities.names.frame()),
        relations=LabelTable("relations", relations.names.frame()),
        attributes={name: (ids, numbers) for name, numbers in attributes.items()},
        unit=graph.unit,
    )
    moved = np.concatenate([np.arange(len(graph.rows(s))) + whole.rows(s).start for s in SPLITS])
    return MergedGraph(
        whole,
        np.concatenate(numbers),
        moved[rows],
        dict(zip(SPLITS, sorting.known, strict=True)),
        sorting.less,
        sorting.elsewhere,
        renumbered,
    )


_End = tuple[int, int]
"""A time, and how much is known of it."""
_Dated = tuple[_End, _End]
_Fact = tuple[tuple[int, int, int], int, _Dated]
"""Subject, relation and object; the place of the split; start and end."""

_NOTHING, _GUESSED, _OPEN, _KNOWN = range(4)


def _facts(
    graph: TemporalGraph,
    columns: dict[str, NDArray[np.int32]],
    rows: NDArray[np.int64] | None = None,
) -> Iterator[_Fact]:
    """Facts with what is known of their ends; all, or those that are named."""
    chosen = slice(None) if rows is None else rows
    split = np.repeat(np.arange(len(SPLITS)), np.diff(graph.bounds))[chosen].tolist()
    triples = zip(*(columns[name][chosen].tolist() for name in _TRIPLE), strict=True)
    ends = []
    for bit, (times, open_) in enumerate(((graph.start, OPEN_START), (graph.end, OPEN_END))):
        guessed = (graph.estimated >> np.uint8(bit)) & 1
        known = np.where(times == open_, _OPEN, _KNOWN)
        known = np.where(guessed == 1, _GUESSED, known)
        known = np.where(times == UNKNOWN, _NOTHING, known)
        ends.append(zip(times[chosen].tolist(), known[chosen].tolist(), strict=True))
    dates = zip(*ends, strict=True)
    return zip(triples, split, dates, strict=True)


class _Sorting:
    """Sorts new facts into those that are added, take the place of others, or are there already."""

    def __init__(self, graph: TemporalGraph, dates: MoreDates) -> None:
        self._graph = graph
        self._supersede = dates is MoreDates.SUPERSEDE
        self._held: dict[tuple[int, int, int], dict[tuple[int, int], _Dated]] = {}
        """By triple: the dates of facts, by their split and number; -1 - row for those added."""
        self.added: set[int] = set()
        self.replaced: dict[int, int] = {}
        """By the number of a known fact that of the new one in its place."""
        self.known = [0] * len(SPLITS)
        self.less = 0
        self.elsewhere = 0

    def know(self, columns: dict[str, NDArray[np.int32]]) -> None:
        """Take note of the known facts that have a triple of the new ones."""
        graph = self._graph
        mine = pl.DataFrame({name: getattr(graph, name) for name in _TRIPLE}).with_row_index()
        rows = mine.join(pl.DataFrame(columns), on=_TRIPLE, how="semi")["index"]
        numbers = np.sort(rows.to_numpy().astype(np.int64))
        own = {name: getattr(graph, name) for name in _TRIPLE}
        for number, (triple, split, dated) in zip(
            numbers.tolist(), _facts(graph, own, numbers), strict=True
        ):
            self._held.setdefault(triple, {})[split, number] = dated

    def take(self, row: int, fact: _Fact) -> None:
        """Sort in a new fact; those that tell more than it were taken before."""
        triple, split, dated = fact
        held = self._held.setdefault(triple, {})
        mine = {place: other for place, other in held.items() if place[0] == split}
        if dated in mine.values():
            self.known[split] += 1
            return
        if self._supersede and any(_tells_more(other, dated) for other in mine.values()):
            self.known[split] += 1
            self.less += 1
            return
        self.elsewhere += any(
            _times(other) == _times(dated) for place, other in held.items() if place[0] != split
        )
        behind = [place for place, other in mine.items() if _tells_more(dated, other)]
        if self._supersede and behind:
            held[behind[0]] = dated
            self.replaced[behind[0][1]] = row
        else:
            held[split, -1 - row] = dated
            self.added.add(row)


def _most_known_first(dated: _Dated) -> tuple[int, _Dated]:
    (_, first), (_, second) = dated
    return -first - second, dated


def _times(dated: _Dated) -> tuple[int, int]:
    return dated[0][0], dated[1][0]


def _tells_more(one: _Dated, other: _Dated) -> bool:
    """Whether one has a known end in common with another, and more is known of its other end."""
    same = [first == second for first, second in zip(one, other, strict=True)]
    if same[0] == same[1]:
        return False
    shared = same.index(True)
    return one[shared][1] == _KNOWN and one[1 - shared][1] > other[1 - shared][1]


def _attributes(
    graph: TemporalGraph, new: TemporalGraph, size: int, number: NDArray[np.int32]
) -> tuple[dict[str, NDArray[np.float64]], int]:
    """The numbers of entities, new ones in place of others; and how many of these changed."""
    held: dict[str, NDArray[np.float64]] = {}
    changed = 0
    for name in dict.fromkeys([*graph.attributes, *new.attributes]):
        held[name] = np.full(size, np.nan)
        if name in graph.attributes:
            held[name][: len(graph.entities)] = graph.attributes[name]
        if name in new.attributes:
            given = ~np.isnan(new.attributes[name])
            places, numbers = number[given], new.attributes[name][given]
            before = held[name][places]
            changed += int((~np.isnan(before) & (before != numbers)).sum())
            held[name][places] = numbers
    return held, changed
