"""Opening a packed graph: nothing is read but its note, the rest is mapped into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp.choices import OnError, Unit
from tilp.errors import DataError, TilpError
from tilp.graph import EdgeIndex, Origin, PreparedEdges, TemporalGraph, Vocabulary
from tilp.graph.building import first_defect
from tilp.io.packing.edges import edge_file, prepared_file
from tilp.io.packing.format import COLUMNS, EDGES, NOTE, PREPARED, mapped, read_note
from tilp.io.packing.vocabulary import PackedNames, PackedVocabulary

__all__ = ["attribute_file", "graph_in", "is_pack", "open_as", "open_pack", "still_packed"]

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
    origin = Origin(folder, note["fingerprint"], open_pack)
    object.__setattr__(graph, "_origin", origin)
    return graph


def still_packed(graph: TemporalGraph) -> bool:
    """Whether a graph was opened from a packed one that still lies there."""
    if graph.origin is None:
        return False
    try:
        return bool(read_note(graph.origin.folder)["fingerprint"] == graph.origin.fingerprint)
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
