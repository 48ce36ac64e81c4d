"""`pack`: a graph of any size as files that are mapped into memory, made in bounded memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.files import new_folder
from tilp._utils.progress import Progress
from tilp.errors import DataError, TilpError
from tilp.graph import TemporalGraph
from tilp.graph.fingerprint import graph_fingerprint
from tilp.io.packed.edges import EdgeWriter
from tilp.io.packed.external_sort import ScatterWriter
from tilp.io.packed.facts import WrittenFacts, encode_facts, write_facts
from tilp.io.packed.format import ArrayOnDisk, attribute_file, write_metadata
from tilp.io.packed.names import EntityIndexer
from tilp.io.packed.open import is_packed, map_graph, open_packed
from tilp.io.read import Sources, find_sources
from tilp.io.tables import attribute_batches, read_labels
from tilp.types import OnError, Unit, choose

DEFAULT_MEMORY = 1_000_000_000
"""Bytes that packing works in."""

STAGES = {
    "read": "read the facts",
    "names": "index the names",
    "facts": "write the columns",
    "edges": "sort the edges",
    "digest": "fingerprint and digests",
}
"""Stages of packing, and what they do."""

# Measured peak memory of each kind of work, with everything that is computed on the way.
_BYTES_PER_BYTE_READ = 24
_BYTES_PER_NAME = 600
_BYTES_PER_EDGE = 200
_BYTES_PER_VALUE = 24  # in an array that is filled in any order


def pack(
    source: Any,
    folder: Path | str,
    *,
    unit: Unit | str | None = None,
    on_error: OnError | str = OnError.REPAIR,
    columns: Mapping[str, str] | None = None,
    header: bool | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> TemporalGraph:
    """Write the graph that `read` would give as a folder that opens at once, and open it.

    The input may be larger than memory. `read` opens the folder, and so does everything that
    reads data.

    Args:
        source: as `read` takes it: a file, a folder of splits, a frame, or a mapping to these.
        folder: the packed graph; it must not exist yet or be empty, and appears whole or not at
            all.
        unit: as `read` takes it; likewise `on_error`, `columns` and `header`.
        memory: about how many bytes to work in, 1 GB by default, beside some 50 for each entity.
            It changes the speed, never the result.
        progress: called with a stage of `STAGES` and the share of it that is done.

    Returns:
        The packed graph, its arrays mapped into memory.

    Raises:
        DataError: what cannot be read.
        TilpError: the folder is in use.

    >>> import polars as pl, tempfile
    >>> names = ["subject", "relation", "object", "start", "end"]
    >>> facts = pl.DataFrame([("Ada", "playsFor", "Rovers", 1990, 1993)], names, orient="row")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(pack(facts, f"{folder}/packed").fact(0))
    (Ada, playsFor, Rovers, [1990, 1993])
    """
    folder = Path(folder).expanduser()
    on_error = choose(OnError, on_error, "on_error")
    chosen_unit = None if unit is None else choose(Unit, unit, "unit")
    if isinstance(source, (str, Path)) and is_packed(Path(source).expanduser()):
        raise TilpError(f"{source} is a packed graph already")
    sources = find_sources(source)
    with new_folder(folder) as partial:
        work = partial / "work"
        work.mkdir()
        packer = _Packer(partial, work, memory, progress or (lambda _stage, _share: None))
        packer.write(sources, chosen_unit, on_error, columns, header)
    return open_packed(folder)


def copy_packed(graph: TemporalGraph, folder: Path) -> None:
    """Copy a packed graph to a folder that does not exist yet."""
    if graph.storage is None:
        raise TilpError("the graph was not opened from a packed one")
    shutil.copytree(graph.storage.folder, folder)


class _Packer:
    """Steps of packing: `work` is a folder for temporary files, `memory` a number of bytes."""

    def __init__(self, folder: Path, work: Path, memory: int, progress: Progress) -> None:
        self._folder, self._work, self._progress = folder, work, progress
        self._size = max(1, memory // _BYTES_PER_BYTE_READ)
        self._names = max(1, memory // _BYTES_PER_NAME)
        self._edges = max(1, memory // _BYTES_PER_EDGE)
        self._values = max(2, memory // _BYTES_PER_VALUE)

    def write(
        self,
        sources: Sources,
        unit: Unit | None,
        on_error: OnError,
        columns: Mapping[str, str] | None,
        header: bool | None,
    ) -> None:
        """Write all files."""
        folder, work, files = self._folder, self._work, sources.side_files
        entities = EntityIndexer(
            folder / "entities", work, self._names, files.get("entities"), self._size
        )
        relations = read_labels(files["relations"]) if "relations" in files else None
        encoded = encode_facts(
            sources, columns, header, entities, work, self._size, self._stage("read")
        )
        attributes = _AttributeWriter(folder, work, files.get("attributes"))
        attributes.read(entities, self._size)
        entities.finish(files.get("attributes"))
        self._progress("names", 1.0)
        facts = write_facts(
            folder,
            encoded,
            entities,
            relations,
            unit or sources.unit,
            on_error,
            self._stage("facts"),
        )
        attribute_names = attributes.write(entities, self._values)
        EdgeWriter(
            folder,
            work,
            n_facts=facts.bounds[1],
            n_entities=len(entities),
            n_relations=len(facts.relations),
            rows=self._edges,
            values=self._values,
        ).write(self._stage("edges"))
        shutil.rmtree(work)
        self._write_metadata(facts, entities, attribute_names)

    def _write_metadata(
        self, facts: WrittenFacts, entities: EntityIndexer, attributes: list[str]
    ) -> None:
        facts.relations.frame().write_ipc(self._folder / "relations.arrow")
        facts.dates.texts.to_frame().write_ipc(self._folder / "texts.arrow")
        facts.defects.write_ipc(self._folder / "defects.arrow")
        metadata: dict[str, Any] = {
            "unit": facts.dates.unit.value,
            "bounds": facts.bounds,
            "entities": {
                "count": len(entities),
                "ordered": entities.columns.ordered,
                "same": entities.columns.same,
            },
            "relations": len(facts.relations),
            "attributes": attributes,
            "marks": facts.marks,
        }
        metadata["fingerprint"] = graph_fingerprint(
            map_graph(self._folder, metadata),
            lambda name: ArrayOnDisk(self._folder / f"{name}.npy"),
        )
        self._progress("digest", 0.5)
        write_metadata(self._folder, metadata)
        self._progress("digest", 1.0)

    def _stage(self, name: str) -> Callable[[float], None]:
        return lambda share: self._progress(name, share)


class _AttributeWriter:
    """Writes the attributes of entities; `path` is their file, if there is one."""

    def __init__(self, folder: Path, work: Path, path: Path | None) -> None:
        self._folder, self._work, self._path = folder, work, path
        self._names: list[str] = []
        self._runs: list[int] = []

    def read(self, entities: EntityIndexer, size: int) -> None:
        """Read the file, and request the indices of its entities."""
        if self._path is None:
            return
        for ids, values, table in attribute_batches(self._path, size):
            self._names = list(values)
            if ids.null_count() and values:
                raise _owner_error(self._names[0], "no entity has the id None")
            if len(ids) and values:
                self._runs.append(entities.request(ids, table.lines))
                np.savez(self._file(self._runs[-1]), *values.values())

    def _file(self, run: int) -> Path:
        return self._work / f"attributes-{run}.npz"

    def write(self, entities: EntityIndexer, rows: int) -> list[str]:
        """Write a column for each attribute; returns their names."""
        files = [attribute_file(self._folder, index) for index in range(len(self._names))]
        columns = [
            ScatterWriter(self._work, file, len(entities), np.float64, rows, np.nan)
            for file in files
        ]
        for run in self._runs:
            try:
                owner = entities.requested_indices(run)
            except DataError as failure:
                raise _owner_error(self._names[0], str(failure)) from None
            with np.load(self._file(run)) as arrays:
                for column, values in zip(columns, arrays.values(), strict=True):
                    column.put(owner, values)
        for column in columns:
            column.write()
        return self._names


def _owner_error(name: str, reason: str) -> DataError:
    return DataError(f"attribute {name}: {reason}, so its number has no owner")
