"""`TemporalGraph`: a collection of facts (subject, relation, object, interval)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ids, Ints, Mask
from tilp.errors import TilpError
from tilp.graph.index import EdgeIndex
from tilp.graph.sources import SourceFiles
from tilp.graph.vocabulary import Vocabulary
from tilp.time import UNKNOWN, Interval, format_time
from tilp.time.interval import distinct_times
from tilp.types import Unit

SPLITS = ("train", "valid", "test")
"""The splits in the order in which their facts are stored."""

DEFECT_SCHEMA = {  # of a table of defects
    **dict.fromkeys(("split", "file"), pl.String),
    "line": pl.Int64,
    **dict.fromkeys(("defect", "start", "end", "done"), pl.String),
}

ESTIMATED = ("", "start", "end", "both")
"""Which dates of a fact are estimates; the bits of the index say the same."""

WALKED_ONLY = ("", "yes")
"""Whether a fact is for walks only and no training example; the index is the truth value."""

_SHOWN = 10  # facts in notebooks
MARKS = {"estimated": ESTIMATED, "walked_only": WALKED_ONLY}
_COLUMNS = (
    "subject", "relation", "object", "start", "end", "start_text", "end_text", "source_line",
)  # fmt: skip


SORT_KEYS = (*_COLUMNS[:-1], *MARKS)
"""Columns that facts are sorted by in their canonical order, the most significant first."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact with names and interval, as people read it."""

    subject: str
    relation: str
    object: str
    interval: Interval
    unit: Unit = Unit.YEAR

    def __str__(self) -> str:
        dates = self.interval.format(self.unit)
        return f"({self.subject}, {self.relation}, {self.object}, {dates})"


@dataclass(frozen=True)
class StorageLocation:
    """Folder of a packed graph; `open` opens the graph again, and checks its fingerprint."""

    folder: Path
    fingerprint: str
    open: Callable[[Path, str], TemporalGraph]


@dataclass(frozen=True, eq=False, repr=False)
class TemporalGraph:
    """Facts as read-only columns, one row a fact, the splits one after the other.

    Attributes:
        entities: names of subjects and objects.
        relations: names of relations.
        unit: what times count.
        subject: entity of each fact; likewise `relation` and `object`.
        start: time of each fact's start, or a mark such as `UNKNOWN`; likewise `end`.
        texts: the distinct dates as they were written.
        start_text: index in `texts` of each fact's start; likewise `end_text`.
        bounds: where the splits begin, and where the last ends.
        attributes: values of entities by attribute name, NaN where there is none.
        defects: rows whose dates were repaired or that were skipped, and what was done.
        estimated: which of each fact's dates are estimates, as the index in `ESTIMATED`.
        walked_only: training facts that walks use, but that are no training examples.
        source_line: file and line of each fact, as `source_files` counts lines; -1 if unknown.
            Graphs that differ in it alone are equal.
        source_files: the files that facts were read from.
        reading: how the table was read that facts come from: columns by role, `relation_name`,
            `wide`, `date_format`. Graphs that differ in it alone are equal.
        storage: where the packed graph is; None if the graph was made or changed in memory.

    >>> import polars as pl, tilp
    >>> row = {"subject": "Ada", "relation": "playsFor", "object": "Rovers", "start": "1990"}
    >>> graph = tilp.read(pl.DataFrame([row]))
    >>> len(graph), list(graph.entities), graph.unit.value
    (1, ['Ada', 'Rovers'], 'year')
    >>> print(next(graph.facts()))
    (Ada, playsFor, Rovers, [1990, ?])
    >>> graph.source(0)
    'the frame, row 0'
    """

    entities: Vocabulary
    relations: Vocabulary
    unit: Unit
    subject: Ids
    relation: Ids
    object: Ids
    start: Ints
    end: Ints
    texts: pl.Series
    start_text: Ids
    end_text: Ids
    bounds: tuple[int, int, int, int]
    attributes: Mapping[str, Floats] = field(default_factory=dict)
    defects: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=DEFECT_SCHEMA))
    estimated: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    walked_only: Mask = field(default_factory=lambda: np.empty(0, np.bool_))
    source_line: Ids | Ints = field(default_factory=lambda: np.empty(0, np.int32))
    source_files: SourceFiles = field(default_factory=SourceFiles)
    reading: Any = field(default_factory=dict)
    _indexes: dict[tuple[str, ...], EdgeIndex] = field(default_factory=dict, init=False)
    storage: StorageLocation | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not len(self.estimated):
            object.__setattr__(self, "estimated", np.zeros(len(self), np.uint8))
        if not len(self.walked_only):
            object.__setattr__(self, "walked_only", np.zeros(len(self), np.bool_))
        if "source_line" in vars(self) and not len(self.source_line):  # a proxy has none yet
            object.__setattr__(self, "source_line", np.broadcast_to(np.int32(-1), len(self)))
        if self.walked_only[self.bounds[1] :].any():
            raise TilpError(
                "a fact of valid or test is marked as walked only; walks and training use only "
                "training facts, so only they can be marked"
            )
        columns = (vars(self)[name] for name in (*_COLUMNS, *MARKS) if name in vars(self))
        for values in (*columns, *self.attributes.values()):
            values.flags.writeable = False
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Processes that open the same files share their memory.
        if self.storage is not None:
            return self.storage.open, (self.storage.folder, self.storage.fingerprint)
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, Any]:
        # An index is quickly built again, and a read-only mapping cannot be copied.
        return {**self.__dict__, "attributes": dict(self.attributes), "_indexes": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @classmethod
    def from_arrays(
        cls,
        entities: Vocabulary,
        relations: Vocabulary,
        columns: Mapping[str, Ids | Ints],
        splits: NDArray[np.uint8],
        *,
        unit: Unit | str = Unit.YEAR,
        attributes: Mapping[str, Floats] | None = None,
    ) -> TemporalGraph:
        """Return a graph of facts that are integers already; date texts are made from their times.

        Args:
            entities: names of subjects and objects.
            relations: names of relations.
            columns: subject, relation, object, start and end, one row a fact.
            splits: index in `SPLITS` of each fact.
            unit: what times count; years by default.
            attributes: values of entities by attribute name; none by default.
        """
        start, end = columns["start"], columns["end"]
        if ((start > end) & (start != UNKNOWN) & (end != UNKNOWN)).any():
            raise TilpError("a fact must not start after its end")
        if len(splits) and max(splits) >= len(SPLITS):
            raise TilpError(f"splits are 0 to {len(SPLITS) - 1}, for {', '.join(SPLITS)}")
        order = np.argsort(splits, kind="stable")
        ends = np.cumsum(np.bincount(splits, minlength=len(SPLITS)))
        start, end = start[order], end[order]
        times = np.union1d(np.unique(start), np.unique(end))
        start_text, end_text = (np.searchsorted(times, t).astype(np.int32) for t in (start, end))
        # An open start and an open end have the same text, but not the same time.
        texts = pl.Series("text", [format_time(int(time), Unit(unit)) for time in times])
        return cls(
            entities=entities,
            relations=relations,
            unit=Unit(unit),
            subject=columns["subject"][order].astype(np.int32),
            relation=columns["relation"][order].astype(np.int32),
            object=columns["object"][order].astype(np.int32),
            start=start.astype(np.int64),
            end=end.astype(np.int64),
            texts=texts,
            start_text=start_text,
            end_text=end_text,
            bounds=(0, int(ends[0]), int(ends[1]), int(ends[2])),
            attributes=attributes or {},
        )

    def __len__(self) -> int:
        return self.bounds[-1]

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(self.rows(split)):,} {split}" for split in SPLITS)
        examples = f", {len(self.targets):,} learned from" if self.walked_only.any() else ""
        return (
            f"TemporalGraph({counts} facts{examples}; {len(self.entities):,} entities, "
            f"{len(self.relations):,} relations; unit {self.unit.value})"
        )

    def _repr_html_(self) -> str:
        title = escape(repr(self))
        shown = range(min(len(self), _SHOWN))
        rows = "".join(f"<tr><td>{escape(str(self.fact(row)))}</td></tr>" for row in shown)
        more = f"<tr><td>… {len(self) - _SHOWN:,} more</td></tr>" if len(self) > _SHOWN else ""
        return f"<table><caption>{title}</caption>{rows}{more}</table>"

    def to_networkx(self, split: str | None = None) -> Any:
        """Return facts as a `networkx.MultiDiGraph`, whose edges have relation, start and end.

        Args:
            split: only the facts of this split (default None: all).
        """
        try:
            import networkx
        except ImportError as failure:
            raise TilpError('this needs an extra: pip install "tilp[networkx]"') from failure
        graph = networkx.MultiDiGraph()
        for subject, relation, target, start, end, *_ in self.frame(split).iter_rows():
            dates = {name: date for name, date in (("start", start), ("end", end)) if date}
            graph.add_edge(subject, target, relation=relation, **dates)
        return graph

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, TemporalGraph):
            return NotImplemented
        values, columns = ("unit", "bounds", "entities", "relations"), (*_COLUMNS[:5], *MARKS)
        own, others = self.attributes, other.attributes
        return (
            all(getattr(self, name) == getattr(other, name) for name in values)
            and own.keys() == others.keys()
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in columns)
            and all(np.array_equal(own[name], others[name], equal_nan=True) for name in own)
            and all(self.date_text(end).equals(other.date_text(end)) for end in ("start", "end"))
        )

    __hash__ = None  # type: ignore[assignment]  # compared by content, never hashed

    def fingerprint(self) -> str:
        """Return a digest of everything in the graph; equal graphs have the same."""
        if self.storage is not None:
            return self.storage.fingerprint
        return graph_fingerprint(self, lambda name: getattr(self, name))

    @property
    def targets(self) -> Ints:
        """Rows of the training facts that are training examples."""
        return np.flatnonzero(~self.walked_only[self.span("train")])

    @cached_property
    def train_times(self) -> Ints:
        """Distinct times at which training facts start or end, as `known_ends` has them."""
        train = self.span("train")
        return distinct_times(self.start[train], self.end[train])

    def rows(self, split: str) -> range:
        """Return the rows of a split's facts."""
        if split not in SPLITS:
            raise TilpError(f"no split is named {split!r}; there are {', '.join(SPLITS)}")
        index = SPLITS.index(split)
        return range(self.bounds[index], self.bounds[index + 1])

    def span(self, split: str) -> slice:
        """Return a split's facts as a slice of the columns."""
        rows = self.rows(split)
        return slice(rows.start, rows.stop)

    def fact(self, row: int) -> Fact:
        """Return a fact with its names."""
        subject, object_ = (self.entities.label(int(c[row])) for c in (self.subject, self.object))
        relation = self.relations.label(int(self.relation[row]))
        interval = Interval(int(self.start[row]), int(self.end[row]))
        return Fact(subject, relation, object_, interval, self.unit)

    def source(self, row: int) -> str:
        """Return the file and line that a fact was read from: `train.txt:17`, or 'unknown'."""
        return self.source_files.text(int(self.source_line[row]))

    def source_column(self, begin: int = 0) -> pl.Series:
        """Return `source_line` as a column for `rebuild_graph`, its files counted from `begin`."""
        lines = np.where(self.source_line < 0, -1, self.source_line + np.int64(begin))
        return pl.Series("source_line", lines)

    def facts(self, split: str | None = None) -> Iterator[Fact]:
        """Iterate over facts with their names: all, or those of one split."""
        return map(self.fact, range(len(self)) if split is None else self.rows(split))

    def date_text(self, end: str, split: str | None = None) -> pl.Series:
        """Return the starts or ends of facts as they were written; an empty text for none.

        Args:
            end: 'start' or 'end'.
            split: only the facts of this split; all by default.
        """
        if end not in ("start", "end"):
            raise TilpError(f"a fact has a start and an end, but no {end!r}")
        codes = self.start_text if end == "start" else self.end_text
        return self.texts.gather(codes if split is None else codes[self.span(split)]).alias(end)

    def frame(self, split: str | None = None, *, names: str = "labels") -> pl.DataFrame:
        """Return facts as a table of names and date texts, with columns of marks if any is set.

        Args:
            split: only the facts of this split; all by default.
            names: 'labels' (default), 'keys' or 'ids'.
        """
        rows = slice(0, len(self)) if split is None else self.span(split)
        if names not in ("labels", "keys", "ids"):
            raise TilpError(f"names are labels, keys or ids, not {names!r}")
        entities, relations = getattr(self.entities, names), getattr(self.relations, names)
        named = {"subject": entities, "relation": relations, "object": entities}
        columns = ((name, getattr(self, name)[rows]) for name in named)
        table = pl.DataFrame({name: named[name].gather(column) for name, column in columns})
        table = table.with_columns(self.date_text(end, split) for end in ("start", "end"))
        for mark, values in MARKS.items():
            indices = getattr(self, mark).view(np.uint8)
            if indices.any():
                table = table.with_columns(pl.Series(mark, values).gather(indices[rows]))
        return table

    def canonical(self) -> TemporalGraph:
        """Return the graph with the facts of each split sorted by their content.

        Models learn from this order, so that the order of rows in the data is no matter. A packed
        graph has it already.
        """
        if self.storage is not None:
            return self
        spans = (np.asarray(self.rows(split), np.int64) for split in SPLITS)
        order = np.concatenate([rows[self.canonical_order(rows)] for rows in spans])
        if (order == np.arange(len(self))).all():
            return self
        return replace(self, **{name: getattr(self, name)[order] for name in (*_COLUMNS, *MARKS)})

    def canonical_order(self, rows: Ints) -> Ints:
        """Return the indices that sort rows of facts by content."""
        return np.lexsort([getattr(self, name)[rows] for name in SORT_KEYS[::-1]])

    def without(self, facts: Iterable[int]) -> TemporalGraph:
        """Return the graph without some facts; the others keep their order, not their rows.

        All names stay, even those without any fact left.

        Args:
            facts: rows of the facts to remove.
        """
        new_rows = self.rows_after_removal(facts)
        mask = new_rows >= 0
        columns = {name: getattr(self, name)[mask] for name in (*_COLUMNS, *MARKS)}
        bounds = np.append(0, np.cumsum(mask))[list(self.bounds)].tolist()
        graph = replace(self, **columns, bounds=tuple(bounds))
        for key, index in self._indexes.items():
            graph._indexes[key] = index.without(new_rows)
        return graph

    def rows_after_removal(self, facts: Iterable[int]) -> Ids:
        """Return the row that each fact has once some facts are removed; -1 for these."""
        removed = np.fromiter(facts, np.int64)
        invalid = removed[(removed < 0) | (removed >= len(self))]
        if len(invalid):
            raise TilpError(f"there is no fact {invalid[0]}; facts are 0 to {len(self) - 1}")
        mask = np.ones(len(self), np.bool_)
        mask[removed] = False
        return np.where(mask, np.cumsum(mask, dtype=np.int32) - np.int32(1), np.int32(-1))

    def index(self, splits: Iterable[str] | str = "train") -> EdgeIndex:
        """Return the edges of the named splits by subject and relation; built once, then cached."""
        splits = {splits} if isinstance(splits, str) else set(splits)
        if not splits or splits - set(SPLITS):
            raise TilpError(f"an index is of some of the splits {', '.join(SPLITS)}")
        key = tuple(sorted(splits, key=SPLITS.index))
        if key not in self._indexes:
            spans = [self.span(split) for split in key]
            fact = np.concatenate([np.arange(s.start, s.stop, dtype=np.int32) for s in spans])
            rows = spans[0] if len(spans) == 1 else fact  # a slice copies nothing
            columns = self.subject[rows], self.relation[rows], self.object[rows], fact
            self._indexes[key] = EdgeIndex.build(len(self.entities), len(self.relations), *columns)
        return self._indexes[key]


def graph_fingerprint(
    graph: TemporalGraph, column: Callable[[str], Any], block_size: int = 200_000
) -> str:
    """Return the SHA-256 digest of a graph; `column` returns its fact columns, or their readers."""
    digest = hashlib.sha256(f"{graph.unit.value} {graph.bounds}".encode())

    def update(values: Any) -> None:
        for begin in range(0, len(values), block_size):
            digest.update(np.ascontiguousarray(values[begin : begin + block_size]).data)

    for name in ("subject", "relation", "object", "start", "end"):
        update(column(name))
    for names in (graph.entities, graph.relations):
        # As `write_json` would write all names at once.
        digest.update(b"[")
        for index, table in enumerate(names.slices(block_size)):
            digest.update((b"," if index else b"") + table.write_json().encode()[1:-1])
        digest.update(b"]")
    for name in ("start_text", "end_text"):
        indices = column(name)
        for begin in range(0, len(indices), block_size):
            texts = graph.texts.gather(indices[begin : begin + block_size])
            digest.update((b"\n" if begin else b"") + texts.str.join("\n").item().encode())
    if graph.estimated.any():
        update(graph.estimated)
    if graph.walked_only.any():
        digest.update(b"walked only")
        update(graph.walked_only)
    for name, values in sorted(graph.attributes.items()):
        digest.update(name.encode())
        update(values)
    return digest.hexdigest()
