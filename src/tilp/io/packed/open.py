"""Opening of packed graphs: metadata is read, everything else is mapped into memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Ids, Ints
from tilp.errors import DataError
from tilp.graph import EdgeIndex, PreparedEdges, StorageLocation, TemporalGraph, Vocabulary
from tilp.graph.build import defect_message
from tilp.graph.sources import SourceFiles
from tilp.graph.vocabulary import NearNames
from tilp.io.packed import format as layout
from tilp.io.packed.format import COLUMNS, EDGES, PREPARED, map_array, read_metadata
from tilp.types import OnError, Unit

_BLOCK_SIZE = 100_000  # names that become a series at once


class PackedNames:
    """Names in files, by index, and their indices in the order of the names."""

    def __init__(self, stem: Path, *, ordered: bool) -> None:
        files = layout.names_files(stem)
        self._bytes: NDArray[np.uint8] = map_array(files[0])
        self._begin: Ints = map_array(files[1])
        order = None if ordered else map_array(layout.order_file(stem))
        self._order: Ids | None = order

    def __len__(self) -> int:
        return len(self._begin) - 1

    def __getitem__(self, index: int) -> str:
        return self._bytes[self._begin[index] : self._begin[index + 1]].tobytes().decode()

    def series(self, begin: int, end: int) -> pl.Series:
        """Return the names of a range of indices."""
        first = int(self._begin[begin])
        text = self._bytes[first : int(self._begin[end])].tobytes()
        offsets = (self._begin[begin : end + 1] - first).tolist()
        if text.isascii():  # it is faster to decode everything at once
            letters = text.decode()
            return pl.Series([letters[a:b] for a, b in pairwise(offsets)], dtype=pl.String)
        return pl.Series([text[a:b].decode() for a, b in pairwise(offsets)], dtype=pl.String)

    def find(self, name: str) -> list[int]:
        """Return all indices that have a name, ascending."""
        order = range(len(self)) if self._order is None else self._order
        first = bisect_left(order, name, key=self.__getitem__)
        last = bisect_right(order, name, lo=first, key=self.__getitem__)
        return sorted(int(index) for index in order[first:last])


class PackedVocabulary(Vocabulary):
    """Vocabulary that looks names up in files; whole columns are read when first needed."""

    def __init__(self, kind: str, ids: PackedNames, keys: PackedNames, labels: PackedNames) -> None:
        self.__dict__.update(kind=kind, _packed=(ids, keys, labels))

    _packed: tuple[PackedNames, PackedNames, PackedNames]

    def __len__(self) -> int:
        return len(self._packed[0])

    def __getstate__(self) -> dict[str, Any]:
        # Columns that were read are quickly read again.
        return {"kind": self.kind, "_packed": self._packed}

    def id(self, index: int) -> str:
        """Return the name in fact files."""
        return self._packed[0][int(index)]

    ids = cached_property[pl.Series](lambda self: self._column(0))
    keys = cached_property[pl.Series](lambda self: self._column(1))
    labels = cached_property[pl.Series](lambda self: self._column(2))

    def slices(self, rows: int) -> Iterator[pl.DataFrame]:
        """Iterate over the table of names; only the rows of one slice are in memory."""
        for begin in range(0, len(self), rows):
            end = min(begin + rows, len(self))
            columns = zip(("id", "key", "label"), self._packed, strict=True)
            yield pl.DataFrame({name: names.series(begin, end) for name, names in columns})

    def _column(self, column: int) -> pl.Series:
        first = self._packed.index(self._packed[column])
        if first < column:
            return self.ids if first == 0 else self.keys
        names = self._packed[column]
        bounds = [*range(0, len(names), _BLOCK_SIZE), len(names)]
        parts = [names.series(a, b) for a, b in pairwise(bounds)]
        series = pl.concat(parts) if parts else pl.Series([], dtype=pl.String)
        return series.alias(("id", "key", "label")[column])

    def _label(self, index: int) -> str:
        return self._packed[2][index]

    def _indices(self, name: str) -> Iterator[Sequence[int]]:
        for names in dict.fromkeys(self._packed):
            yield names.find(name)

    @cached_property
    def _near(self) -> NearNames:
        columns = dict(zip(self._packed, (self.ids, self.keys, self.labels), strict=True))
        distinct = (column.unique(maintain_order=True) for column in columns.values())
        return NearNames(name for column in distinct for name in column)


def is_packed(folder: Path) -> bool:
    """Return whether a folder holds a packed graph."""
    return (folder / layout.METADATA).is_file()


def open_packed(folder: Path | str, fingerprint: str | None = None) -> TemporalGraph:
    """Open a graph that `pack` wrote, equal to what `read` makes of the data, `canonical`.

    The arrays of the graph are maps of the files: processes that open the same graph share them,
    and a pickled graph is only its folder.
    """
    folder = Path(folder).expanduser().resolve()
    metadata = read_metadata(folder)
    if fingerprint not in (None, metadata["fingerprint"]):
        raise DataError(f"{folder}: the graph there is another than when it was opened before")
    graph = map_graph(folder, metadata)
    location = StorageLocation(folder, metadata["fingerprint"], open_packed)
    object.__setattr__(graph, "storage", location)
    return graph


def is_still_packed(graph: TemporalGraph) -> bool:
    """Return whether a graph was opened from a packed one that is still there."""
    if graph.storage is None:
        return False
    try:
        return bool(read_metadata(graph.storage.folder)["fingerprint"] == graph.storage.fingerprint)
    except DataError:  # it is gone, or being written
        return False


def open_checked(folder: Path, unit: Unit | None, on_error: OnError) -> TemporalGraph:
    """Open a packed graph, if reading its data with these choices would give the same."""
    graph = open_packed(folder)
    if unit is not None and unit is not graph.unit:
        raise DataError(
            f"{folder}: packed with times that count {graph.unit.value}s; pack the data again "
            f"with unit={unit.value!r} (--unit {unit.value})"
        )
    if on_error is OnError.RAISE and len(graph.defects):
        raise DataError(defect_message(graph.defects))
    if on_error is OnError.SKIP and (graph.defects["done"] != "row skipped").any():
        raise DataError(
            f"{folder}: packed with its date defects repaired; pack the data again with "
            "on_error='skip' (--on-error skip)"
        )
    return graph


def map_graph(folder: Path, metadata: dict[str, Any]) -> TemporalGraph:
    """Return the graph in the files of a folder."""
    sources = metadata.get("sources", {})  # none in a graph packed before facts had sources
    stored = (*COLUMNS, *metadata["marks"], *(["source_line"] if sources else []))
    columns = {name: map_array(folder / f"{name}.npy") for name in stored}
    if "walked_only" in columns:
        columns["walked_only"] = columns["walked_only"].view(np.bool_)
    numbered = enumerate(metadata["attributes"])
    relations, entities = _read_arrow(folder / "relations.arrow"), metadata["entities"]
    names = {"id": PackedNames(folder / "entities.id", ordered=entities["ordered"])}
    for kind in ("key", "label"):
        same, stem = entities["same"].get(kind), folder / f"entities.{kind}"
        names[kind] = names[same] if same else PackedNames(stem, ordered=False)
    graph = TemporalGraph(
        entities=PackedVocabulary("entity", *names.values()),
        relations=Vocabulary("relation", relations["id"], relations["key"], relations["label"]),
        unit=Unit(metadata["unit"]),
        texts=_read_arrow(folder / "texts.arrow")["text"],
        bounds=tuple(metadata["bounds"]),
        attributes={name: map_array(folder / f"attribute-{index}.npy") for index, name in numbered},
        defects=_read_arrow(folder / "defects.arrow"),
        source_files=SourceFiles(**{name: tuple(each) for name, each in sources.items()}),
        **columns,
    )
    graph._indexes["train",] = EdgeIndex(
        len(graph.relations),
        *(map_array(folder / f"edges.{name}.npy") for name in EDGES),
        prepared=PreparedEdges(*(map_array(folder / f"walks.{name}.npy") for name in PREPARED)),
    )
    return graph


def _read_arrow(path: Path) -> pl.DataFrame:
    try:
        with path.open("rb") as file:  # by its path, brackets in it would be a pattern
            return pl.read_ipc(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
        raise layout.damage_error(path, str(failure)) from failure
