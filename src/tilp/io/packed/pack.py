"""`pack`: a graph of any size as files that are mapped into memory, made in bounded memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.files import new_folder
from tilp.errors import DataError, TilpError
from tilp.graph import TemporalGraph
from tilp.graph.fingerprint import fingerprint_of
from tilp.io.packed.edges import write_edges
from tilp.io.packed.external_sort import Scatter
from tilp.io.packed.facts import FactColumns, gather, write_facts
from tilp.io.packed.format import OnDisk, write_note
from tilp.io.packed.names import Numbering
from tilp.io.packed.open import attribute_file, graph_in, is_pack, open_pack
from tilp.io.side_files import attribute_batches, read_labels
from tilp.io.sources import Sources, find_sources
from tilp.types import OnError, Unit, choose

DEFAULT_MEMORY = 1_000_000_000
"""Bytes that packing works in."""

STAGES = {
    "read": "read the facts",
    "names": "number the names",
    "facts": "write the columns",
    "edges": "sort the edges",
    "digest": "fingerprint and digests",
}
"""What packing does, in words."""

# What one row of each kind of work takes, with all that is made of it on the way: measured.
_BYTES_READ = 24  # for each byte of a file
_BYTES_A_NAME = 600
_BYTES_AN_EDGE = 200
_BYTES_A_NUMBER = 24  # in an array that is filled in any order

Progress = Callable[[str, float], None]


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
        memory: about how many bytes to work in, beside some 50 for each entity. What is taken
            decides nothing but how quickly it goes.
        progress: called with a stage of `STAGES` and the share of it that is done.

    Raises:
        DataError: what cannot be read.
        TilpError: the folder is in use.
    """
    folder = Path(folder).expanduser()
    on_error = choose(OnError, on_error, "on_error")
    chosen = None if unit is None else choose(Unit, unit, "unit")
    if isinstance(source, (str, Path)) and is_pack(Path(source).expanduser()):
        raise TilpError(f"{source} is a packed graph already")
    sources = find_sources(source)
    with new_folder(folder) as place:
        work = place / "work"
        work.mkdir()
        graph = _Packer(place, work, memory, progress or (lambda _stage, _share: None))
        graph.write(sources, chosen, on_error, columns, header)
    return open_pack(folder)


def copy_pack(graph: TemporalGraph, folder: Path) -> None:
    """A packed graph once more, in a folder that is not there yet."""
    if graph.storage is None:
        raise TilpError("the graph was not opened from a packed one")
    shutil.copytree(graph.storage.folder, folder)


class _Packer:
    """The steps of packing.

    Args:
        folder: to write.
        work: for what is kept on the way; it is removed.
        memory: bytes to work in.
        progress: called with stages and shares.
    """

    def __init__(self, folder: Path, work: Path, memory: int, progress: Progress) -> None:
        self._folder, self._work, self._progress = folder, work, progress
        self._size = max(1, memory // _BYTES_READ)
        self._names = max(1, memory // _BYTES_A_NAME)
        self._edges = max(1, memory // _BYTES_AN_EDGE)
        self._numbers = max(2, memory // _BYTES_A_NUMBER)

    def write(
        self,
        sources: Sources,
        unit: Unit | None,
        on_error: OnError,
        columns: Mapping[str, str] | None,
        header: bool | None,
    ) -> None:
        """Write all files."""
        beside = sources.beside
        numbering = Numbering(
            self._folder / "entities",
            self._work,
            self._names,
            beside.get("entities"),
            self._size,
        )
        relations = read_labels(beside["relations"]) if "relations" in beside else None
        found = gather(
            sources, columns, header, numbering, self._work, self._size, self._at("read")
        )
        asked = _Attributes(self._folder, self._work, beside.get("attributes"))
        asked.read(numbering, self._size)
        numbering.finish(beside.get("attributes"))
        self._progress("names", 1.0)
        facts = write_facts(
            self._folder,
            found,
            numbering,
            relations,
            unit or sources.unit,
            on_error,
            self._at("facts"),
        )
        names = asked.write(numbering, self._numbers)
        write_edges(
            self._folder,
            self._work,
            facts.bounds[1],
            len(numbering),
            len(facts.relations),
            self._edges,
            self._numbers,
            self._at("edges"),
        )
        shutil.rmtree(self._work)
        self._write_note(facts, numbering, names)

    def _write_note(self, facts: FactColumns, numbering: Numbering, attributes: list[str]) -> None:
        facts.relations.frame().write_ipc(self._folder / "relations.arrow")
        facts.dates.texts.to_frame().write_ipc(self._folder / "texts.arrow")
        facts.defects.write_ipc(self._folder / "defects.arrow")
        note: dict[str, Any] = {
            "unit": facts.dates.unit.value,
            "bounds": facts.bounds,
            "entities": {
                "count": len(numbering),
                "ordered": numbering.columns.ordered,
                "same": numbering.columns.same,
            },
            "relations": len(facts.relations),
            "attributes": attributes,
            "marks": facts.marks,
        }
        note["fingerprint"] = fingerprint_of(
            graph_in(self._folder, note), lambda name: OnDisk(self._folder / f"{name}.npy")
        )
        self._progress("digest", 0.5)
        write_note(self._folder, note)
        self._progress("digest", 1.0)

    def _at(self, stage: str) -> Callable[[float], None]:
        return lambda share: self._progress(stage, share)


class _Attributes:
    """The numbers of entities, put to their places.

    Args:
        folder: of the pack.
        work: for what is kept on the way.
        path: the file of attributes, if there is one.
    """

    def __init__(self, folder: Path, work: Path, path: Path | None) -> None:
        self._folder, self._work, self._path = folder, work, path
        self._names: list[str] = []
        self._runs: list[int] = []

    def read(self, numbering: Numbering, size: int) -> None:
        """Ask for the numbers of their entities."""
        if self._path is None:
            return
        for ids, numbers, table in attribute_batches(self._path, size):
            self._names = list(numbers)
            if ids.null_count() and numbers:
                raise _no_owner(self._names[0], "no entity has the id None")
            if len(ids) and numbers:
                self._runs.append(numbering.ask(ids, table.lines))
                np.savez(self._file(self._runs[-1]), *numbers.values())

    def _file(self, run: int) -> Path:
        return self._work / f"attributes-{run}.npz"

    def write(self, numbering: Numbering, rows: int) -> list[str]:
        """Write a column for each attribute; gives their names."""
        columns = [
            Scatter(
                self._work,
                attribute_file(self._folder, number),
                len(numbering),
                np.float64,
                rows,
                np.nan,
            )
            for number in range(len(self._names))
        ]
        for run in self._runs:
            try:
                owner = numbering.numbers_of_asked(run)
            except DataError as failure:
                raise _no_owner(self._names[0], str(failure)) from None
            with np.load(self._file(run)) as numbers:
                for column, values in zip(columns, numbers.values(), strict=True):
                    column.put(owner, values)
        for column in columns:
            column.write()
        return self._names


def _no_owner(name: str, why: str) -> DataError:
    return DataError(f"attribute {name}: {why}, so its number has no owner")
