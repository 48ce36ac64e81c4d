"""Opening of packed graphs: metadata is read, everything else is mapped into memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from tilp._utils.arrays import Ids, Ints
from tilp.errors import DataError
from tilp.graph import EdgeIndex, PreparedEdges, StorageLocation, TemporalGraph, Vocabulary
from tilp.graph.build import defect_message
from tilp.graph.graph import DEFECT_SCHEMA, MARKS
from tilp.graph.sources import SourceFiles
from tilp.graph.vocabulary import NearNames
from tilp.io.packed import format as layout
from tilp.io.packed.format import COLUMNS, EDGES, PREPARED, damage_error, map_array, read_metadata
from tilp.io.tables import checked_reading
from tilp.types import OnError, Unit

_BLOCK_SIZE = 100_000  # names that become a series at once


class PackedNames:
    """Names in files, by index, and their indices in the order of the names."""

    def __init__(self, stem: Path, count: int | None = None, *, ordered: bool) -> None:
        files = layout.names_files(stem)
        self._bytes: NDArray[np.uint8] = checked_array(files[0], np.uint8)
        size = None if count is None else count + 1
        self._begin: Ints = checked_offsets(files[1], size, len(self._bytes))
        check_names(files[0], self._bytes, self._begin)
        self._order: Ids | None = None
        if not ordered:
            path = layout.order_file(stem)
            self._order = checked_array(path, np.int32, len(self), high=len(self))

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
            f"{folder}: packed with its defects repaired; pack the data again with "
            "on_error='skip' (--on-error skip)"
        )
    return graph


def map_graph(folder: Path, metadata: dict[str, Any]) -> TemporalGraph:
    """Return the graph in the files of a folder, once all that kernels rely on is checked."""
    try:
        return _map_graph(folder, metadata)
    except (LookupError, TypeError, ValueError, AttributeError) as failure:
        reason = f"it is not as one of a graph: {failure!r}"
        raise layout.damage_error(folder / layout.METADATA, reason) from failure


def _map_graph(folder: Path, metadata: dict[str, Any]) -> TemporalGraph:
    first, n_train, n_known, n_facts = map(int, metadata["bounds"])
    entities, n_entities = metadata["entities"], int(metadata["entities"]["count"])
    if not first == 0 <= n_train <= n_known <= n_facts:
        raise ValueError(f"bounds {metadata['bounds']}")
    names_schema = dict.fromkeys(("id", "key", "label"), pl.String)
    relations = _read_arrow(folder / "relations.arrow", names_schema)
    texts = _read_arrow(folder / "texts.arrow", {"text": pl.String})["text"]
    sources = metadata.get("sources", {})  # none in a graph packed before facts had sources
    source_files = SourceFiles(**{name: tuple(each) for name, each in sources.items()})

    def mapped(name: str, dtype: DTypeLike, size: int, high: int | None, low: int = 0) -> Any:
        return checked_array(folder / f"{name}.npy", dtype, size, low=low, high=high)

    highs = {"subject": n_entities, "object": n_entities, "relation": len(relations)}
    highs |= dict.fromkeys(("start_text", "end_text"), len(texts))
    columns = {name: mapped(name, kind, n_facts, highs.get(name)) for name, kind in COLUMNS.items()}
    for mark in metadata["marks"]:
        columns[mark] = mapped(mark, np.uint8, n_facts, len(MARKS[mark]))
    if "walked_only" in columns:
        columns["walked_only"] = columns["walked_only"].view(np.bool_)
    if sources:
        end = source_files.bounds[len(source_files.prefixes)]
        columns["source_line"] = mapped("source_line", source_files.dtype, n_facts, end, low=-1)
    names: dict[str, PackedNames] = {}
    for kind in names_schema:
        same, ordered = entities["same"].get(kind), kind == "id" and entities["ordered"]
        stem = folder / f"entities.{kind}"
        names[kind] = names[same] if same else PackedNames(stem, n_entities, ordered=ordered)
    graph = TemporalGraph(
        entities=PackedVocabulary("entity", *names.values()),
        relations=Vocabulary("relation", relations["id"], relations["key"], relations["label"]),
        unit=Unit(metadata["unit"]),
        texts=texts,
        bounds=(first, n_train, n_known, n_facts),
        attributes={
            name: mapped(f"attribute-{index}", np.float64, n_entities, None)
            for index, name in enumerate(metadata["attributes"])
        },
        defects=_read_arrow(folder / "defects.arrow", DEFECT_SCHEMA),
        source_files=source_files,
        reading=checked_reading(metadata.get("reading")),
        **columns,
    )
    highs = {"relation": 2 * len(relations), "target": n_entities, "fact": n_train}
    highs |= {"source": n_entities} | dict.fromkeys(("rank", "by_rank", "inverse"), 2 * n_train)
    arrays = {
        name: mapped(f"{stem}.{name}", kind, 2 * n_train, highs.get(name))
        for stem, kinds in (("edges", EDGES), ("walks", PREPARED))
        for name, kind in kinds.items()
        if name != "offsets"
    }
    offsets = checked_offsets(folder / "edges.offsets.npy", n_entities + 1, 2 * n_train)
    check_edges(folder, offsets, arrays)
    prepared = PreparedEdges(**{name: arrays.pop(name) for name in PREPARED})
    index = EdgeIndex(len(relations), offsets, **arrays, prepared=prepared)
    graph._indexes["train",] = index
    return graph


def _read_arrow(path: Path, schema: Mapping[str, Any]) -> pl.DataFrame:
    if not path.is_file():
        raise layout.damage_error(path, "it is missing, or no regular file")
    try:
        with path.open("rb") as file:  # by its path, brackets in it would be a pattern
            frame = pl.read_ipc(file)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
        raise layout.damage_error(path, str(failure)) from failure
    if frame.schema != dict(schema) or any(frame.null_count().row(0)):
        raise layout.damage_error(path, f"its columns are not {', '.join(schema)}, without nulls")
    return frame


_BLOCK = 1 << 18  # values


def checked_array(
    path: Path, dtype: DTypeLike, size: int | None = None, *, low: int = 0, high: int | None = None,
    rises: bool = False,
) -> NDArray[Any]:  # fmt: skip
    """Map an array of known type and size, whose values lie in [low, high) and perhaps rise."""
    array = map_array(path)
    expected = f"{'any number of' if size is None else size} values of the type {np.dtype(dtype)}"
    if array.dtype != dtype or array.shape != (len(array) if size is None else size,):
        found = f"{' × '.join(map(str, array.shape))} of the type {array.dtype}"
        raise damage_error(path, f"it holds {found}, and {expected} are expected")
    for begin, block in _blocks(path, array) if high is not None else ():
        if int(block.min()) < low or int(block.max()) >= (high or 0):
            raise damage_error(path, f"a value is not at least {low} and less than {high}")
        if rises and (np.diff(block, prepend=array[max(begin - 1, 0)]) < 0).any():
            raise damage_error(path, "its values do not rise")
    return array


def checked_offsets(path: Path, size: int | None, end: int) -> NDArray[np.int64]:
    """Map offsets that rise from 0 to `end`."""
    offsets = checked_array(path, np.int64, size, high=end + 1, rises=True)
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != end:
        raise damage_error(path, f"its values do not go from 0 to {end}")
    return offsets


def check_edges(folder: Path, offsets: Ints, edges: Mapping[str, Ids]) -> None:
    """Check that the arrays of edges, each in its range, agree with one another."""
    path = folder / "walks.source.npy"
    for begin, block in _blocks(path, edges["source"]):
        edge = np.arange(begin, begin + len(block))
        if (offsets[block] > edge).any() or (offsets[block + 1] <= edge).any():
            raise damage_error(path, "it is not as the offsets of edges")
    for name, inverse in (("rank", "by_rank"), ("inverse", "inverse")):
        path = folder / f"walks.{name}.npy"
        for begin, block in _blocks(path, edges[name]):
            if (edges[inverse][block] != np.arange(begin, begin + len(block))).any():
                raise damage_error(path, f"{inverse} does not lead back from it")


def check_names(path: Path, letters: NDArray[np.uint8], begin: NDArray[np.int64]) -> None:
    """Check that the bytes of each name are UTF-8."""
    count = len(begin) - 1
    for first in range(0, count, _BLOCK):
        offsets = begin[first : min(first + _BLOCK, count) + 1]
        text = letters[offsets[0] : offsets[-1]]
        starts = offsets[:-1][np.diff(offsets) > 0] - offsets[0]
        try:
            text.tobytes().decode()
        except UnicodeDecodeError as failure:
            raise damage_error(path, f"not UTF-8 text: {failure}") from None
        if ((text[starts] & 0xC0) == 0x80).any():
            raise damage_error(path, "a name begins within a character")


def _blocks(path: Path, array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield blocks of an array with their first index, read so that no page of it stays mapped."""
    with path.open("rb") as file:
        file.seek(-array.nbytes, 2)
        for begin in range(0, len(array), _BLOCK):
            yield begin, np.fromfile(file, array.dtype, min(_BLOCK, len(array) - begin))
