"""`TemporalGraph`: a collection of facts (subject, relation, object, interval)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.graph.fingerprint import fingerprint_of
from tilp.graph.index import EdgeIndex
from tilp.graph.vocabulary import Vocabulary
from tilp.time import UNKNOWN, Interval, format_time, known_ends
from tilp.types import Unit

SPLITS = ("train", "valid", "test")
"""The splits in the order in which their facts are stored."""

DEFECT_SCHEMA = {
    "split": pl.String,
    "file": pl.String,
    "line": pl.Int64,
    "defect": pl.String,
    "start": pl.String,
    "end": pl.String,
    "done": pl.String,
}
"""The columns of a table of defects."""

ESTIMATED = ("", "start", "end", "both")
"""Which dates of a fact are estimates, in a word; at the place whose bits say the same."""

WALKED_ONLY = ("", "yes")
"""Whether a fact is walked on only, in a word; at the place of the truth value."""

_BLOCK = 1_000_000  # facts that are looked at at once
_MARKS = ("estimated", "walked_only")
_COLUMNS = ("subject", "relation", "object", "start", "end", "start_text", "end_text")


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact as people read it."""

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
    """Where a graph lies whole, so that it can be opened again rather than copied.

    Attributes:
        folder: where.
        fingerprint: of the graph.
        open: makes the graph from both.
    """

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
        start_text: place in `texts` of each fact's start; likewise `end_text`.
        bounds: where the splits begin, and where the last ends.
        attributes: numbers of entities by name, NaN where there is none.
        defects: every row whose dates were repaired or that was skipped, and what was done.
        estimated: which of each fact's dates are estimates, as the place in `ESTIMATED`.
        walked_only: training facts that are walked on, but not learned from.
    """

    entities: Vocabulary
    relations: Vocabulary
    unit: Unit
    subject: NDArray[np.int32]
    relation: NDArray[np.int32]
    object: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    texts: pl.Series
    start_text: NDArray[np.int32]
    end_text: NDArray[np.int32]
    bounds: tuple[int, int, int, int]
    attributes: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    defects: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=DEFECT_SCHEMA))
    estimated: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    walked_only: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    _indexes: dict[tuple[str, ...], EdgeIndex] = field(default_factory=dict, init=False)
    _storage: StorageLocation | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not len(self.estimated):
            object.__setattr__(self, "estimated", np.zeros(len(self), np.uint8))
        if not len(self.walked_only):
            object.__setattr__(self, "walked_only", np.zeros(len(self), np.bool_))
        if self.walked_only[self.bounds[1] :].any():
            raise TilpError(
                "a fact of valid or test is marked as walked only; only training facts are walked "
                "on and learned from, so only they can be marked"
            )
        for name in (*_COLUMNS, *_MARKS):
            getattr(self, name).flags.writeable = False
        for numbers in self.attributes.values():
            numbers.flags.writeable = False
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Processes that open the same files share their memory.
        if self._storage is not None:
            return self._storage.open, (self._storage.folder, self._storage.fingerprint)
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
        columns: Mapping[str, NDArray[np.int32] | NDArray[np.int64]],
        splits: NDArray[np.uint8],
        *,
        unit: Unit | str = Unit.YEAR,
        attributes: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> TemporalGraph:
        """A graph of facts that are integers already; the text of each date is made from its time.

        Args:
            entities: names of subjects and objects.
            relations: names of relations.
            columns: subject, relation, object, start and end, one row a fact.
            splits: place in `SPLITS` of each fact.
            unit: what times count.
            attributes: numbers of entities by name.
        """
        start, end = columns["start"], columns["end"]
        if ((start > end) & (start != UNKNOWN) & (end != UNKNOWN)).any():
            raise TilpError("a fact must not start after its end")
        if len(splits) and max(splits) >= len(SPLITS):
            raise TilpError(f"splits are 0 to {len(SPLITS) - 1}, for {', '.join(SPLITS)}")
        order = np.argsort(splits, kind="stable")
        ends = np.cumsum(np.bincount(splits, minlength=len(SPLITS)))
        start, end = columns["start"][order], columns["end"][order]
        times = np.union1d(np.unique(start), np.unique(end))
        start_text, end_text = (np.searchsorted(times, t).astype(np.int32) for t in (start, end))
        # An open start and an open end are the same word but not the same time.
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
        learned = f", {len(self.targets):,} learned from" if self.walked_only.any() else ""
        return (
            f"TemporalGraph({counts} facts{learned}; {len(self.entities):,} entities, "
            f"{len(self.relations):,} relations; unit {self.unit.value})"
        )

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, TemporalGraph):
            return NotImplemented
        return (
            self.unit is other.unit
            and self.bounds == other.bounds
            and self.entities == other.entities
            and self.relations == other.relations
            and self.attributes.keys() == other.attributes.keys()
            and all(
                np.array_equal(getattr(self, name), getattr(other, name)) for name in _COLUMNS[:5]
            )
            and all(
                np.array_equal(numbers, other.attributes[name], equal_nan=True)
                for name, numbers in self.attributes.items()
            )
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _MARKS)
            and self.date_text("start").equals(other.date_text("start"))
            and self.date_text("end").equals(other.date_text("end"))
        )

    __hash__ = None  # type: ignore[assignment]  # compared by content, never hashed

    @property
    def nbytes(self) -> int:
        """Memory of the fact columns."""
        return sum(getattr(self, name).nbytes for name in _COLUMNS)

    def fingerprint(self) -> str:
        """A digest of all that the graph holds; equal graphs have the same."""
        if self._storage is not None:
            return self._storage.fingerprint
        return fingerprint_of(self, lambda name: getattr(self, name))

    @property
    def storage(self) -> StorageLocation | None:
        """Where the graph lies whole; None where it was made or changed in memory."""
        return self._storage

    @property
    def targets(self) -> NDArray[np.int64]:
        """The numbers of the training facts that are learned from."""
        return np.flatnonzero(~self.walked_only[self.span("train")])

    @cached_property
    def train_times(self) -> NDArray[np.int64]:
        """The distinct times at which training facts start or end, as `known_ends` has them."""
        found = [np.empty(0, np.int64)]
        last = self.bounds[1]
        for begin in range(0, last, _BLOCK):
            part = slice(begin, min(begin + _BLOCK, last))
            found += [np.unique(times) for times in known_ends(self.start[part], self.end[part])]
        return np.unique(np.concatenate(found))

    def rows(self, split: str) -> range:
        """The numbers of a split's facts."""
        if split not in SPLITS:
            raise TilpError(f"no split is named {split!r}; there are {', '.join(SPLITS)}")
        place = SPLITS.index(split)
        return range(self.bounds[place], self.bounds[place + 1])

    def span(self, split: str) -> slice:
        """A split's facts as a slice of the columns."""
        rows = self.rows(split)
        return slice(rows.start, rows.stop)

    def fact(self, row: int) -> Fact:
        """One fact with its names."""
        return Fact(
            self.entities.label(int(self.subject[row])),
            self.relations.label(int(self.relation[row])),
            self.entities.label(int(self.object[row])),
            Interval(int(self.start[row]), int(self.end[row])),
            self.unit,
        )

    def facts(self, split: str | None = None) -> Iterator[Fact]:
        """Facts with their names, one after the other; only those of a split if one is named."""
        return map(self.fact, range(len(self)) if split is None else self.rows(split))

    def date_text(self, end: str, split: str | None = None) -> pl.Series:
        """The starts or ends of facts as they were written; an empty text for none.

        Args:
            end: 'start' or 'end'.
            split: only the facts of this split.
        """
        if end not in ("start", "end"):
            raise TilpError(f"a fact has a start and an end, but no {end!r}")
        codes = self.start_text if end == "start" else self.end_text
        return self.texts.gather(codes if split is None else codes[self.span(split)]).alias(end)

    def frame(self, split: str | None = None, *, names: str = "labels") -> pl.DataFrame:
        """Facts as a table of names and date texts, and the marks that any fact of the graph has.

        Args:
            split: only the facts of this split.
            names: 'labels', 'keys' or 'ids'.
        """
        rows = slice(0, len(self)) if split is None else self.span(split)
        if names not in ("labels", "keys", "ids"):
            raise TilpError(f"names are labels, keys or ids, not {names!r}")
        entities, relations = getattr(self.entities, names), getattr(self.relations, names)
        table = pl.DataFrame(
            {
                "subject": entities.gather(self.subject[rows]),
                "relation": relations.gather(self.relation[rows]),
                "object": entities.gather(self.object[rows]),
                "start": self.date_text("start", split),
                "end": self.date_text("end", split),
            }
        )
        if self.estimated.any():
            words = pl.Series("estimated", ESTIMATED).gather(self.estimated[rows])
            table = table.with_columns(words)
        if self.walked_only.any():
            words = pl.Series("walked_only", WALKED_ONLY).gather(
                self.walked_only[rows].astype(np.uint8)
            )
            table = table.with_columns(words)
        return table

    def without(self, facts: Iterable[int]) -> TemporalGraph:
        """The same graph without some facts; the others keep their order, not their numbers.

        Names stay, also those of which no fact is left.

        Args:
            facts: their numbers.

        Raises:
            TilpError: there is no such fact.
        """
        numbers = self.rows_after_removal(facts)
        kept = numbers >= 0
        columns = {name: getattr(self, name)[kept] for name in (*_COLUMNS, *_MARKS)}
        ends = np.append(0, np.cumsum(kept))[list(self.bounds)].tolist()
        left = replace(self, **columns, bounds=tuple(ends))
        for splits, index in self._indexes.items():
            left._indexes[splits] = index.without(numbers)
        return left

    def rows_after_removal(self, facts: Iterable[int]) -> NDArray[np.int32]:
        """The number that each fact has in the graph without some; -1 for these themselves."""
        gone = np.fromiter(facts, np.int64)
        strange = gone[(gone < 0) | (gone >= len(self))]
        if len(strange):
            raise TilpError(f"there is no fact {strange[0]}; facts are 0 to {len(self) - 1}")
        kept = np.ones(len(self), np.bool_)
        kept[gone] = False
        return np.where(kept, np.cumsum(kept, dtype=np.int32) - np.int32(1), np.int32(-1))

    def index(self, splits: Iterable[str] | str = "train") -> EdgeIndex:
        """The edges of the named splits by subject and relation; built once, then kept."""
        splits = {splits} if isinstance(splits, str) else set(splits)
        if not splits or splits - set(SPLITS):
            raise TilpError(f"an index is of some of the splits {', '.join(SPLITS)}")
        wanted = tuple(sorted(splits, key=SPLITS.index))
        if wanted not in self._indexes:
            spans = [self.span(split) for split in wanted]
            fact = np.concatenate([np.arange(s.start, s.stop, dtype=np.int32) for s in spans])
            rows = spans[0] if len(spans) == 1 else fact  # a slice copies nothing
            self._indexes[wanted] = EdgeIndex.build(
                len(self.entities),
                len(self.relations),
                self.subject[rows],
                self.relation[rows],
                self.object[rows],
                fact,
            )
        return self._indexes[wanted]
