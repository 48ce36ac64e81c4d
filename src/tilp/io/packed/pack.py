"""`pack`: a graph of any size as files that are mapped into memory, made in bounded memory."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.files import new_folder
from tilp._utils.progress import Progress
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.graph.graph import graph_fingerprint
from tilp.io.packed.facts import stage_facts, write_facts
from tilp.io.packed.format import EDGES, PREPARED, ArrayOnDisk, ColumnWriter, write_metadata
from tilp.io.packed.names import index_names, write_attributes, write_names
from tilp.io.packed.open import is_packed, map_graph, open_packed
from tilp.io.packed.workspace import Workspace
from tilp.io.read import TableReader, find_sources
from tilp.io.tables import read_labels
from tilp.types import OnError, Unit, choose

DEFAULT_MEMORY = 1_000_000_000  # bytes that packing works in
STAGES = {  # of packing, and what they do
    "read": "read the facts",
    "names": "index the names",
    "facts": "write the columns",
    "edges": "sort the edges",
    "digest": "fingerprint and digests",
}
_BYTES_PER_BYTE_READ = 30  # measured peak memory of reading


def pack(
    source: Any,
    folder: Path | str,
    *,
    unit: Unit | str | None = None,
    on_error: OnError | str = OnError.REPAIR,
    columns: Mapping[str, str] | None = None,
    header: bool | None = None,
    relation_name: str | None = None,
    wide: bool = False,
    date_format: str | None = None,
    sql: str | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> TemporalGraph:
    """Write the graph that `read` would give as a folder that opens at once, and open it.

    The facts of each split are in the order of `TemporalGraph.canonical`. The input may be larger
    than memory. `read` opens the folder, and so does everything that reads data.

    Args:
        source: as `read` takes it: a file, a folder of splits, a frame, or a mapping to these.
        folder: the packed graph; it must not exist yet or be empty, and appears whole or not at
            all.
        unit: as `read` takes it; likewise `on_error`, `columns`, `header`, `relation_name`, `wide`,
            `date_format` and `sql`.
        memory: about how many bytes to work in, 1 GB by default, beside some 50 for each entity.
            It changes the speed, never the result.
        progress: called with a stage of `STAGES` and the share of it that is done.

    Returns:
        The packed graph, its arrays mapped into memory.

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
    if sources.with_ids:
        raise TilpError(
            f"{source}: its names are in entity2id and relation2id; tilp convert writes it as a "
            "folder that can be packed"
        )
    given = {"relation_name": relation_name, "wide": wide, "keep": (), "sql": sql}
    given["date_format"] = date_format
    reader = TableReader(sources, columns or {}, header, on_error, given)
    progress = progress or (lambda _stage, _share: None)
    size = max(1, memory // _BYTES_PER_BYTE_READ)
    with new_folder(folder) as new:
        work, files = new / "work", sources.side_files
        relations = read_labels(files["relations"]) if "relations" in files else None
        with closing(Workspace(work, memory)) as workspace:
            stage_facts(workspace, reader, size, partial(progress, "read"))
            ordered = index_names(workspace, files.get("entities"), size)
            entities = write_names(workspace, new, ordered=ordered)
            attributes = write_attributes(workspace, new, files.get("attributes"), size)
            progress("names", 1.0)
            final_unit, stage = chosen_unit or sources.unit, partial(progress, "facts")
            facts = write_facts(workspace, new, reader, relations, final_unit, stage)
            counts = entities["count"], facts["relations"]
            write_edges(workspace, new, *counts, partial(progress, "edges"))
        shutil.rmtree(work)
        metadata: dict[str, Any] = {**facts, "entities": entities, "attributes": attributes}
        graph = map_graph(new, metadata)
        metadata["fingerprint"] = graph_fingerprint(
            graph, lambda name: ArrayOnDisk(new / f"{name}.npy")
        )
        progress("digest", 0.5)
        write_metadata(new, metadata)
        progress("digest", 1.0)
    return open_packed(folder)


def copy_packed(graph: TemporalGraph, folder: Path) -> None:
    """Copy a packed graph to a folder that does not exist yet."""
    if graph.storage is None:
        raise TilpError("the graph was not opened from a packed one")
    shutil.copytree(graph.storage.folder, folder)


_EDGES = """
    SELECT subject AS source, relation, object AS target, fact, start, "end" FROM train UNION ALL
    SELECT object, relation + {n_relations}, subject, fact, start, "end" FROM train
    ORDER BY source, relation, fact
"""
_PAIRS = """
    SELECT any_value(row) FILTER (relation < {n_relations}) AS edge,
        any_value(row) FILTER (relation >= {n_relations}) AS inverse
    FROM edges GROUP BY fact
"""
_INVERSE = """
    SELECT inverse FROM (
        SELECT edge, inverse FROM pairs UNION ALL SELECT inverse, edge FROM pairs
    ) ORDER BY edge
"""


def write_edges(
    workspace: Workspace,
    folder: Path,
    n_entities: int,
    n_relations: int,
    progress: Callable[[float], None],
) -> None:
    """Write the edges of the table `train`, sorted by entity, relation and fact.

    `inverse` is the edge of the same fact in the other direction. `by_rank` has the edges in the
    order of relation, target and edge, and `rank` is where each edge is in it.
    """
    workspace.make("edges", _EDGES.format(n_relations=n_relations))
    workspace.remove("train")
    progress(0.3)
    degrees = np.zeros(n_entities, np.int64)
    files = {name: f"edges.{name}" for name in EDGES} | {name: f"walks.{name}" for name in PREPARED}

    kinds = EDGES | PREPARED
    writers = {
        name: ColumnWriter(folder / f"{file}.npy", kinds[name]) for name, file in files.items()
    }
    for part in workspace.slices("edges"):
        source = part["source"].to_numpy()
        counts = np.bincount(source - source[0])
        degrees[source[0] : source[0] + len(counts)] += counts
        for name in part.columns:
            writers[name].append(part[name].to_numpy())
    writers["offsets"].append(np.append(0, np.cumsum(degrees)))
    progress(0.6)
    workspace.make("pairs", _PAIRS.format(n_relations=n_relations))
    workspace.make("inverse", _INVERSE)
    workspace.make("by_rank", "SELECT row AS by_rank FROM edges ORDER BY relation, target, row")
    workspace.make("rank", "SELECT row AS rank FROM by_rank ORDER BY by_rank")
    for name in ("inverse", "by_rank", "rank"):
        for part in workspace.slices(name):
            writers[name].append(part[name].to_numpy())
    for writer in writers.values():
        writer.close()
    progress(1.0)
