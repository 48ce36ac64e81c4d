"""Open a packed graph: read its metadata, map the rest into memory."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import DataError, TilpError
from tilp.graph import EdgeIndex, PreparedEdges, StorageLocation, TemporalGraph, Vocabulary
from tilp.graph.build import first_defect
from tilp.graph.vocabulary import NearNames
from tilp.io.packed.edges import edge_file, prepared_file
from tilp.io.packed.format import COLUMNS, EDGES, NOTE, PREPARED, mapped, names_files, read_note
from tilp.types import OnError, Unit

_BLOCK = 100_000  # names that become a series at once


class PackedNames:
    """One name of each number, and the numbers in the order of the names.

    Args:
        stem: what the files are named by.
        ordered: whether the numbers are in the order of the names themselves.
    """

    def __init__(self, stem: Path, *, ordered: bool) -> None:
        files = names_files(stem)
        self._bytes: NDArray[np.uint8] = mapped(files[0])
        self._begin: NDArray[np.int64] = mapped(files[1])
        self._order: NDArray[np.int32] | None = None
        if not ordered:
            self._order = mapped(stem.with_name(f"{stem.name}.order.npy"))

    def __len__(self) -> int:
        return len(self._begin) - 1

    def __getitem__(self, number: int) -> str:
        return self._bytes[self._begin[number] : self._begin[number + 1]].tobytes().decode()

    def series(self, begin: int, end: int) -> pl.Series:
        """The names of some numbers in a row."""
        first = int(self._begin[begin])
        text = self._bytes[first : int(self._begin[end])].tobytes()
        cuts = (self._begin[begin : end + 1] - first).tolist()
        names: list[str]
        if text.isascii():  # cut after all of it is decoded, which is quicker
            letters = text.decode()
            names = [letters[a:b] for a, b in itertools.pairwise(cuts)]
        else:
            names = [text[a:b].decode() for a, b in itertools.pairwise(cuts)]
        return pl.Series(names, dtype=pl.String)

    def numbers(self, name: str) -> list[int]:
        """All that have a name, ascending."""
        first = bisect_left(range(len(self)), name, key=self._name_at)
        last = bisect_right(range(len(self)), name, lo=first, key=self._name_at)
        return sorted(self._number_at(place) for place in range(first, last))

    def _name_at(self, place: int) -> str:
        return self[self._number_at(place)]

    def _number_at(self, place: int) -> int:
        return place if self._order is None else int(self._order[place])


class PackedVocabulary(Vocabulary):
    """A vocabulary whose names are looked up where they lie.

    Whole columns are read when they are first asked for.

    Args:
        kind: 'entity' or 'relation'.
        ids: the names as fact files have them.
        keys: likewise the keys, perhaps the very same.
        labels: likewise the labels.
    """

    def __init__(self, kind: str, ids: PackedNames, keys: PackedNames, labels: PackedNames) -> None:
        self.__dict__.update(kind=kind, _packed=(ids, keys, labels))

    _packed: tuple[PackedNames, PackedNames, PackedNames]

    def __len__(self) -> int:
        return len(self._packed[0])

    def __getstate__(self) -> dict[str, Any]:
        # Columns that were read meanwhile are quickly read again.
        return {"kind": self.kind, "_packed": self._packed}

    def id(self, number: int) -> str:
        """The name as fact files have it."""
        return self._packed[0][int(number)]

    @cached_property
    def ids(self) -> pl.Series:
        """The names as fact files have them; unique."""
        return self._column(0)

    @cached_property
    def keys(self) -> pl.Series:
        """The names in a wider world."""
        return self._column(1)

    @cached_property
    def labels(self) -> pl.Series:
        """The names to show."""
        return self._column(2)

    def slices(self, rows: int) -> Iterator[pl.DataFrame]:
        """The same table, so many rows at a time, of which only these are held."""
        for begin in range(0, len(self), rows):
            end = min(begin + rows, len(self))
            columns = zip(("id", "key", "label"), self._packed, strict=True)
            yield pl.DataFrame({name: names.series(begin, end) for name, names in columns})

    def _column(self, place: int) -> pl.Series:
        first = self._packed.index(self._packed[place])
        if first < place:
            return self.ids if first == 0 else self.keys
        names = self._packed[place]
        cuts = [*range(0, len(names), _BLOCK), len(names)]
        parts = [names.series(a, b) for a, b in itertools.pairwise(cuts)]
        column = pl.concat(parts) if parts else pl.Series([], dtype=pl.String)
        return column.alias(("id", "key", "label")[place])

    def _label(self, number: int) -> str:
        return self._packed[2][number]

    def _places(self, name: str) -> Iterator[Sequence[int]]:
        for names in dict.fromkeys(self._packed):
            yield names.numbers(name)

    @cached_property
    def _near(self) -> NearNames:
        columns = (self.ids, self.keys, self.labels)
        places = {names: place for place, names in reversed(list(enumerate(self._packed)))}
        distinct = (columns[place].unique(maintain_order=True) for place in sorted(places.values()))
        return NearNames(name for names in distinct for name in names)


_SKIPPED = "row skipped"


def is_pack(folder: Path) -> bool:
    """Whether a folder holds a packed graph."""
    return (folder / NOTE).is_file()


def open_pack(folder: Path | str, fingerprint: str | None = None) -> TemporalGraph:
    """Open a graph that `pack` wrote, equal to what `read` makes of the same data.

    The arrays of the graph are maps of the files: processes that open the same graph share them,
    and a graph that is pickled travels as its folder.

    Args:
        folder: the packed graph.
        fingerprint: what it must be, where it was opened before.

    Raises:
        DataError: no packed graph, a damaged one, or another one than before.
    """
    folder = Path(folder).expanduser().resolve()
    note = read_note(folder)
    if fingerprint not in (None, note["fingerprint"]):
        raise DataError(f"{folder}: another graph lies there than when it was opened before")
    graph = graph_in(folder, note)
    location = StorageLocation(folder, note["fingerprint"], open_pack)
    object.__setattr__(graph, "_storage", location)
    return graph


def is_still_packed(graph: TemporalGraph) -> bool:
    """Whether a graph was opened from a packed one that still lies there."""
    if graph.storage is None:
        return False
    try:
        return bool(read_note(graph.storage.folder)["fingerprint"] == graph.storage.fingerprint)
    except DataError:  # it is gone, or being written
        return False


def open_as(folder: Path, unit: Unit | None, on_error: OnError) -> TemporalGraph:
    """The same, where it is what reading with these choices would give.

    Raises:
        DataError: it was packed with others.
    """
    graph = open_pack(folder)
    if unit is not None and unit is not graph.unit:
        raise DataError(
            f"{folder}: packed with times that count {graph.unit.value}s; pack the data again "
            f"with unit={unit.value!r} (--unit {unit.value})"
        )
    if on_error is OnError.RAISE and len(graph.defects):
        raise DataError(first_defect(graph.defects))
    if on_error is OnError.SKIP and (graph.defects["done"] != _SKIPPED).any():
        raise DataError(
            f"{folder}: packed with its date defects repaired; pack the data again with "
            "on_error='skip' (--on-error skip)"
        )
    return graph


def graph_in(folder: Path, note: dict[str, Any]) -> TemporalGraph:
    """The graph that files and note make."""
    columns = {name: mapped(folder / f"{name}.npy") for name in COLUMNS}
    if "estimated" in note["marks"]:
        columns["estimated"] = mapped(folder / "estimated.npy")
    if "walked_only" in note["marks"]:
        columns["walked_only"] = mapped(folder / "walked_only.npy").view(np.bool_)
    relations = _table(folder / "relations.arrow")
    graph = TemporalGraph(
        entities=_entities(folder, note["entities"]),
        relations=Vocabulary("relation", relations["id"], relations["key"], relations["label"]),
        unit=Unit(note["unit"]),
        texts=_table(folder / "texts.arrow")["text"],
        bounds=tuple(note["bounds"]),
        attributes={
            name: mapped(attribute_file(folder, number))
            for number, name in enumerate(note["attributes"])
        },
        defects=_table(folder / "defects.arrow"),
        **columns,
    )
    graph._indexes["train",] = EdgeIndex(
        len(graph.relations),
        *(mapped(edge_file(folder, name)) for name in EDGES),
        prepared=PreparedEdges(*(mapped(prepared_file(folder, name)) for name in PREPARED)),
    )
    return graph


def attribute_file(folder: Path, number: int) -> Path:
    """The file of an attribute's numbers."""
    return folder / f"attribute-{number}.npy"


def _entities(folder: Path, note: dict[str, Any]) -> Vocabulary:
    ids = PackedNames(folder / "entities.id", ordered=note["ordered"])
    found = {"id": ids}
    for kind in ("key", "label"):
        same = note["same"].get(kind)
        found[kind] = (
            PackedNames(folder / f"entities.{kind}", ordered=False) if same is None else found[same]
        )
    return PackedVocabulary("entity", *found.values())


def _table(path: Path) -> pl.DataFrame:
    try:
        with path.open("rb") as file:  # by its path, brackets in it would be a pattern
            return pl.read_ipc(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
        raise TilpError(f"{path}: damaged ({failure}); pack the data again") from failure
