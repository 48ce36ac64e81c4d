"""`join_facts`: a graph with new facts, and what became of each of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.choices import ByLabel, MoreDates
from tilp.errors import TilpError
from tilp.graph.building import FactTable, LabelTable, build_graph
from tilp.graph.matching import match_names
from tilp.graph.temporal_graph import ESTIMATED, SPLITS, WALKED_ONLY, TemporalGraph
from tilp.intervals import OPEN_END, OPEN_START, UNKNOWN

__all__ = ["Joined", "join_facts"]

_TRIPLE = ["subject", "relation", "object"]


@dataclass(frozen=True)
class Joined:
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
    known: dict[str, int]
    less: int
    elsewhere: int
    renumbered: int


def join_facts(
    graph: TemporalGraph,
    new: TemporalGraph,
    *,
    dates: MoreDates = MoreDates.SUPERSEDE,
    labels: ByLabel = ByLabel.REFUSE,
) -> Joined:
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
    return Joined(
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
