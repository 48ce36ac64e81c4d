"""Merge new facts into a graph: match their names, find duplicates, supersede dates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ids, Ints
from tilp.errors import TilpError
from tilp.graph.graph import SORT_KEYS, SPLITS, TemporalGraph
from tilp.graph.vocabulary import Vocabulary
from tilp.time import OPEN_END, OPEN_START, UNKNOWN
from tilp.types import ByLabel

_MAX_SHOWN = 3
_TRIPLE = ["subject", "relation", "object"]


def _match_names(known: Vocabulary, new: Vocabulary, by_label: ByLabel) -> tuple[Vocabulary, Ids]:
    """Return the known names, the unknown ones after them, and the index of each new name."""
    if known == new:
        return known, np.arange(len(known), dtype=np.int32)
    lookup = _NameLookup(known, new)
    index = np.full(len(new), -1, np.int32)
    labels: list[tuple[str, list[int]]] = []
    for row, (name, key, label) in enumerate(new.frame().iter_rows()):
        index[row] = lookup.by_name(name, key)
        if index[row] < 0 and (similar := lookup.by_label(name, key, label)):
            labels.append((label, similar))
            if by_label is ByLabel.MATCH and len(similar) == 1:
                index[row] = similar[0]
    refused = [pair for pair in labels if by_label is ByLabel.REFUSE or len(pair[1]) > 1]
    if refused and by_label is not ByLabel.NEW:
        raise _refusal(known, refused, by_label)
    unknown = np.flatnonzero(index < 0)
    if not len(unknown):
        return known, index
    index[unknown] = len(known) + np.arange(len(unknown), dtype=np.int32)
    both = pl.concat([known.frame(), new.frame()[unknown]])
    names = Vocabulary(known.kind, both["id"], both["key"], both["label"])
    if known.kind == "relation" and (same := names.labels.is_duplicated()).any():
        label = names.labels.filter(same)[0]
        ids = ", ".join(map(repr, names.ids.filter(names.labels == label)))
        raise TilpError(
            # Rules are written with labels.
            f"the relations {ids} would both be called {label!r}, and rules could not tell them "
            "apart; give the new one another label, or take them for the same (labels='match', "
            "--labels match)"
        )
    return names, index


class _NameLookup:
    """Known names that share an id, a key or a label with new ones."""

    def __init__(self, known: Vocabulary, new: Vocabulary) -> None:
        self._known = known
        self._ids: dict[str, int] = {}
        self._keys: dict[str, list[int]] = {}
        self._labels: dict[str, list[int]] = {}
        texts = pl.concat([new.ids, new.keys, new.labels]).unique().implode()
        shared = pl.any_horizontal(pl.col("id", "key", "label").is_in(texts))
        rows = known.frame().with_row_index().filter(shared)
        for index, name, key, label in rows.iter_rows():
            self._ids[name] = index
            self._keys.setdefault(key, []).append(index)
            self._labels.setdefault(label, []).append(index)

    def by_name(self, name: str, key: str) -> int:
        """Return the index of what an id and a key stand for; -1 if unknown."""
        by_id = self._by_id_or_key(name)
        if key == name:
            return by_id
        by_key = self._by_id_or_key(key)
        if by_id < 0 or by_key == by_id:
            return by_key
        known_key = str(self._known.keys[by_id])
        if by_key >= 0 or known_key != self._known.ids[by_id]:
            raise TilpError(
                f"{self._known.kind} {name!r} has the key {key!r} in the new facts, and "
                f"{known_key!r} where it is known: the same id stands for two things. Write the "
                "new facts with keys, or with the known ids, as names."
            )
        return by_id

    def _by_id_or_key(self, name: str) -> int:
        if name in self._ids:
            return self._ids[name]
        indices = self._keys.get(name, [])
        if len(indices) > 1:
            ids = ", ".join(repr(str(self._known.ids[index])) for index in indices[:_MAX_SHOWN])
            raise TilpError(
                f"{len(indices)} known {self._known.kind} names have the key {name!r}; say in the "
                f"new facts which is meant by its id: {ids}"
            )
        return indices[0] if indices else -1

    def by_label(self, name: str, key: str, label: str) -> list[int]:
        """Return the indices of known things that the name may be meant for.

        A common label says nothing where each has an id besides: different entities may be called
        the same. Relations may not.
        """
        texts = (name, key, label) if self._known.kind == "relation" else (name, key)
        indices = {index for text in texts for index in self._labels.get(text, ())}
        if label in self._ids and self._known.labels[self._ids[label]] == label:
            indices.add(self._ids[label])  # it has no other name
        return sorted(indices)


def _refusal(known: Vocabulary, names: list[tuple[str, list[int]]], by_label: ByLabel) -> TilpError:
    listed = "; ".join(
        f"{name!r} reads as the label of {' and '.join(repr(str(known.ids[i])) for i in indices)}"
        for name, indices in names[:_MAX_SHOWN]
    )
    more = f" (and {len(names) - _MAX_SHOWN:,} more)" if len(names) > _MAX_SHOWN else ""
    choices = (
        "write these, or say what is meant: labels='match' (--labels match) takes a label for "
        "the one that has it, labels='new' (--labels new) for something new that is called the same"
    )
    if by_label is ByLabel.MATCH:
        choices = "give ids for these"
    found = f"new facts name what is known by id or key, but {listed}{more}"
    return TilpError(f"{found}; {choices}.")


@dataclass(frozen=True)
class MergedGraph:
    """A graph with new facts: names and facts are as they were, everything new comes after them."""

    graph: TemporalGraph
    added: Ints  # rows of the new facts
    superseded: Ints  # rows of the facts that a new one replaced
    duplicates: dict[str, int]  # by split, how many new facts were in it already
    less_dated: int  # how many of these are in it with more of their dates
    in_other_split: int  # how many new facts are in another split too
    changed_attributes: int  # how many values of entities changed


def merge_facts(
    graph: TemporalGraph,
    new: TemporalGraph,
    *,
    labels: ByLabel = ByLabel.REFUSE,
) -> MergedGraph:
    """Add new facts to a graph, each to its split, unless they are in it already.

    A fact is a duplicate if one of the same split has the same subject, relation, object, start
    and end. A fact that shares one date and knows more of the other, which was unknown, estimated
    or open, replaces the first such fact; one that knows less is a duplicate. The source of a
    duplicate is that of the known fact, the source of a replaced fact that of the new one.

    Args:
        graph: the known facts.
        new: the new facts; their names are matched by id, then by key.
        labels: how to treat a name that is no id and no key, but the label of a known one.
    """
    if new.unit is not graph.unit:
        raise TilpError(
            f"times of the new facts count {new.unit.value}s, of the known ones "
            f"{graph.unit.value}s; read the new ones with unit={graph.unit.value!r} "
            f"(--unit {graph.unit.value})"
        )
    entities, entity_index = _match_names(graph.entities, new.entities, labels)
    relations, relation_index = _match_names(graph.relations, new.relations, labels)
    indices = zip(_TRIPLE, (entity_index, relation_index, entity_index), strict=True)
    columns = {name: index[getattr(new, name)] for name, index in indices}
    merger = _Merger(graph, columns)
    facts = list(_iterate_facts(new, columns))
    # Facts that know more before those that know less, so that the order in the data is no matter.
    keys = [(-sum(known for _, known in own), own) for _, _, own in facts]
    for row in sorted(range(len(facts)), key=keys.__getitem__):
        merger.add(row, facts[row])
    attributes, changed = _merge_attributes(graph, new, len(entities), entity_index)
    rows, new_rows = np.array(sorted(merger.replaced.items()), np.int64).reshape(-1, 2).T
    added = np.array(sorted(merger.added), np.int64)
    content = (*columns.values(), *(getattr(new, name) for name in SORT_KEYS[len(columns) :]))
    in_split, added_rows, bounds = [], [], [0]
    for split in SPLITS:
        of_split = added[(added >= new.span(split).start) & (added < new.span(split).stop)]
        in_split.append(of_split[np.lexsort([column[of_split] for column in content[::-1]])])
        bounds.append(bounds[-1] + len(graph.rows(split)) + len(of_split))
        added_rows.append(np.arange(bounds[-1] - len(of_split), bounds[-1]))

    def join(known: NDArray[Any], others: NDArray[Any], *, replaced: bool = True) -> NDArray[Any]:
        """Return a column of the merged graph, given those of both."""
        if replaced and len(rows):
            known = known.copy()
            known[rows] = others[new_rows]
        pairs = zip(SPLITS, in_split, strict=True)
        parts = [part for s, own in pairs for part in (known[graph.span(s)], others[own])]
        return np.concatenate(parts, dtype=known.dtype)

    texts, of_known, of_new = _merge_texts(graph.texts, new.texts)
    files = graph.source_files.join(new.source_files)
    lines = (graph.source_column(), new.source_column(graph.source_files.bounds[-1]))
    merged = TemporalGraph(
        entities=entities,
        relations=relations,
        unit=graph.unit,
        texts=texts,
        bounds=(bounds[0], bounds[1], bounds[2], bounds[3]),
        attributes=attributes,
        defects=pl.concat([graph.defects, new.defects]).unique(maintain_order=True),
        source_line=join(*(line.to_numpy().astype(files.dtype) for line in lines)),
        source_files=files,
        reading=graph.reading,
        walked_only=join(graph.walked_only, new.walked_only, replaced=False),
        **{name: join(getattr(graph, name), columns[name]) for name in _TRIPLE},
        **{n: join(getattr(graph, n), getattr(new, n)) for n in ("start", "end", "estimated")},
        **{
            name: join(of_known[getattr(graph, name)], of_new[getattr(new, name)])
            for name in ("start_text", "end_text")
        },
    )
    moved = np.concatenate([np.arange(len(graph.rows(s))) + merged.rows(s).start for s in SPLITS])
    duplicates = dict(zip(SPLITS, merger.duplicates, strict=True))
    counts = merger.less_dated, merger.in_other_split, changed
    return MergedGraph(merged, np.concatenate(added_rows), moved[rows], duplicates, *counts)


def _merge_texts(known: pl.Series, new: pl.Series) -> tuple[pl.Series, Ids, Ids]:
    """Return the distinct texts of both, sorted, and the indices of those of each."""
    texts = pl.concat([known, new.alias(known.name)]).unique().sort()
    codes = (each.cast(pl.Enum(texts)).to_physical() for each in (known, new))
    of_known, of_new = (code.to_numpy().astype(np.int32) for code in codes)
    return texts, of_known, of_new


_Date = tuple[int, int]  # A time, and how much is known of it
_Dates = tuple[_Date, _Date]
_Fact = tuple[tuple[int, int, int], int, _Dates]  # triple, index of the split, start and end

_MISSING, _ESTIMATED, _OPEN, _KNOWN = range(4)


def _iterate_facts(
    graph: TemporalGraph, columns: dict[str, Ids], rows: Ints | None = None
) -> Iterator[_Fact]:
    """Iterate over facts, all or some rows, with what is known of their dates."""
    chosen = slice(None) if rows is None else rows
    split = np.repeat(np.arange(len(SPLITS)), np.diff(graph.bounds))[chosen].tolist()
    triples = zip(*(columns[name][chosen].tolist() for name in _TRIPLE), strict=True)
    dates = []
    estimated = graph.estimated[chosen]
    for bit, (column, open_) in enumerate(((graph.start, OPEN_START), (graph.end, OPEN_END))):
        times = column[chosen]
        masks = [times == UNKNOWN, (estimated >> np.uint8(bit)) & 1 == 1, times == open_]
        known = np.select(masks, [_MISSING, _ESTIMATED, _OPEN], _KNOWN)
        dates.append(zip(times.tolist(), known.tolist(), strict=True))
    return zip(triples, split, zip(*dates, strict=True), strict=True)


class _Merger:
    """Decides for each new fact whether it is added, replaces another, or is a duplicate."""

    def __init__(self, graph: TemporalGraph, columns: dict[str, Ids]) -> None:
        # By triple: dates of facts by split and row; the row is -1 - row for new facts.
        self._dates: dict[tuple[int, int, int], dict[tuple[int, int], _Dates]] = {}
        self.added: set[int] = set()
        self.replaced: dict[int, int] = {}  # from rows of known facts to rows of new ones
        self.duplicates = [0] * len(SPLITS)
        self.less_dated = self.in_other_split = 0
        # Only known facts that share a triple with a new one matter.
        triples = {name: getattr(graph, name) for name in _TRIPLE}
        known = pl.DataFrame(triples).with_row_index()
        index = known.join(pl.DataFrame(columns), on=_TRIPLE, how="semi")["index"]
        rows = np.sort(index.to_numpy().astype(np.int64))
        facts = _iterate_facts(graph, triples, rows)
        for row, (triple, split, fact_dates) in zip(rows.tolist(), facts, strict=True):
            self._dates.setdefault(triple, {})[split, row] = fact_dates

    def add(self, row: int, fact: _Fact) -> None:
        """Decide on a new fact; those that know more than it were added before."""
        triple, split, dates = fact
        all_dates = self._dates.setdefault(triple, {})
        in_split = {key: other for key, other in all_dates.items() if key[0] == split}
        if dates in in_split.values():
            self.duplicates[split] += 1
            return
        if any(_knows_more(other, dates) for other in in_split.values()):
            self.duplicates[split] += 1
            self.less_dated += 1
            return
        elsewhere = [_times(other) for key, other in all_dates.items() if key[0] != split]
        self.in_other_split += _times(dates) in elsewhere
        superseded = [key for key, other in in_split.items() if _knows_more(dates, other)]
        if superseded:
            all_dates[superseded[0]] = dates
            self.replaced[superseded[0][1]] = row
        else:
            all_dates[split, -1 - row] = dates
            self.added.add(row)


def _times(dates: _Dates) -> tuple[int, int]:
    return dates[0][0], dates[1][0]


def _knows_more(dates: _Dates, other: _Dates) -> bool:
    """Return whether both share a known date, and `dates` knows more of the other date."""
    same = [first == second for first, second in zip(dates, other, strict=True)]
    if same[0] == same[1]:
        return False
    shared = same.index(True)
    return dates[shared][1] == _KNOWN and dates[1 - shared][1] > other[1 - shared][1]


def _merge_attributes(
    graph: TemporalGraph, new: TemporalGraph, n_entities: int, index: Ids
) -> tuple[dict[str, Floats], int]:
    """Return the attributes, new values in place of old ones, and how many values changed."""
    merged: dict[str, Floats] = {}
    changed = 0
    for name in dict.fromkeys([*graph.attributes, *new.attributes]):
        column = merged[name] = np.full(n_entities, np.nan)
        if name in graph.attributes:
            column[: len(graph.entities)] = graph.attributes[name]
        if name in new.attributes:
            given = ~np.isnan(new.attributes[name])
            entities, values = index[given], new.attributes[name][given]
            before = column[entities]
            changed += int((~np.isnan(before) & (before != values)).sum())
            column[entities] = values
    return merged, changed
