"""`pack`: a graph of any size as files that are mapped into memory, made in bounded memory."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.arrays import Ints
from tilp._utils.files import new_folder
from tilp._utils.progress import Progress
from tilp.errors import DataError, TilpError
from tilp.graph import TemporalGraph
from tilp.graph.graph import graph_fingerprint
from tilp.io.packed import format as layout
from tilp.io.packed.external_sort import Buckets, ScatterWriter, blocks, stable_argsort
from tilp.io.packed.facts import encode_facts, write_facts
from tilp.io.packed.format import ArrayOnDisk, ColumnWriter
from tilp.io.packed.names import EntityIndexer
from tilp.io.packed.open import is_packed, map_graph, open_packed
from tilp.io.read import find_sources
from tilp.io.tables import attribute_batches, read_labels
from tilp.time import known_ends
from tilp.types import OnError, Unit, choose

DEFAULT_MEMORY = 1_000_000_000  # bytes that packing works in
STAGES = {  # of packing, and what they do
    "read": "read the facts",
    "names": "index the names",
    "facts": "write the columns",
    "edges": "sort the edges",
    "digest": "fingerprint and digests",
}
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

    The facts of each split are in the order of `TemporalGraph.canonical`. The input may be larger
    than memory. `read` opens the folder, and so does everything that reads data.

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
    progress = progress or (lambda _stage, _share: None)
    n_bytes, n_names = max(1, memory // _BYTES_PER_BYTE_READ), max(1, memory // _BYTES_PER_NAME)
    n_edges, n_values = max(1, memory // _BYTES_PER_EDGE), max(2, memory // _BYTES_PER_VALUE)
    with new_folder(folder) as new:
        work, files = new / "work", sources.side_files
        work.mkdir()
        labels, attribute_table = files.get("entities"), files.get("attributes")
        entities = EntityIndexer(new / "entities", work, n_names, labels, n_bytes)
        relations = read_labels(files["relations"]) if "relations" in files else None
        stage = partial(progress, "read")
        encoded = encode_facts(sources, columns, header, entities, work, n_bytes, stage)
        attributes = _AttributeWriter(new, work, attribute_table, entities, n_bytes)
        entities.finish(attribute_table)
        progress("names", 1.0)
        final_unit, stage = chosen_unit or sources.unit, partial(progress, "facts")
        facts = write_facts(new, encoded, entities, relations, final_unit, on_error, stage)
        layout.sort_facts(new, work, facts["bounds"], n_edges)
        attribute_names = attributes.write(entities, n_values)
        sizes = facts["bounds"][1], len(entities), facts["relations"]
        _EdgeWriter(new, work, *sizes, n_edges, n_values).write(partial(progress, "edges"))
        shutil.rmtree(work)
        names = entities.columns
        metadata: dict[str, Any] = {
            **facts,
            "entities": {"count": len(entities), "ordered": names.ordered, "same": names.same},
            "attributes": attribute_names,
        }
        graph = map_graph(new, metadata)
        metadata["fingerprint"] = graph_fingerprint(graph, partial(_array, new))
        progress("digest", 0.5)
        layout.write_metadata(new, metadata)
        progress("digest", 1.0)
    return open_packed(folder)


def copy_packed(graph: TemporalGraph, folder: Path) -> None:
    """Copy a packed graph to a folder that does not exist yet."""
    if graph.storage is None:
        raise TilpError("the graph was not opened from a packed one")
    shutil.copytree(graph.storage.folder, folder)


class _AttributeWriter:
    """Reads the attributes of entities from a file, if there is one, and writes them."""

    def __init__(
        self, folder: Path, work: Path, path: Path | None, entities: EntityIndexer, size: int
    ) -> None:
        self._folder, self._work = folder, work
        self._names: list[str] = []
        self._runs: list[int] = []
        for ids, values, table in attribute_batches(path, size) if path else ():
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
        files = (self._folder / f"attribute-{index}.npy" for index in range(len(self._names)))
        size = len(entities)
        columns = [ScatterWriter(self._work, f, size, np.float64, rows, np.nan) for f in files]
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


def _array(folder: Path, name: str) -> ArrayOnDisk:
    return ArrayOnDisk(folder / f"{name}.npy")


@dataclass(frozen=True)
class _EdgeWriter:
    """Writes the edges of the first facts of a packed graph whose columns are complete."""

    folder: Path
    work: Path
    n_facts: int  # those of train
    n_entities: int
    n_relations: int
    rows: int  # how many whole edges may be in memory, if no entity has more
    values: int  # how many single values may be in memory

    def write(self, progress: Callable[[float], None]) -> None:
        offsets = self._write_offsets()
        progress(0.1)
        self._write_sorted(offsets)
        progress(0.5)
        self._write_inverse()
        progress(0.7)
        self._write_ranks(offsets)
        progress(1.0)

    def _scatter(self, name: str, size: int) -> ScatterWriter:
        path = self.folder / f"walks.{name}.npy"
        return ScatterWriter(self.work, path, size, layout.PREPARED[name], self.values)

    def _write_offsets(self) -> Ints:
        degrees = np.zeros(self.n_entities, np.int64)
        for name in ("subject", "object"):
            column = _array(self.folder, name)
            # Each block costs a count of all entities.
            for part in blocks(self.n_facts, max(self.rows, self.n_entities)):
                degrees += np.bincount(column[part], minlength=self.n_entities)
        offsets = np.append(0, np.cumsum(degrees))
        with ColumnWriter(self.folder / "edges.offsets.npy", np.int64) as column_writer:
            column_writer.append(offsets)
        return offsets

    def _write_sorted(self, offsets: Ints) -> None:
        """Write edges by entity, relation and fact, as many entities at a time as fit."""
        columns = [_array(self.folder, name) for name in ("subject", "relation", "object")]
        starts, ends = _array(self.folder, "start"), _array(self.folder, "end")
        ids, times = ("source", "relation", "target", "fact"), ("start", "end")
        dtypes = {**dict.fromkeys(ids, np.int32), **dict.fromkeys(times, np.int64)}
        cuts = np.arange(self.rows, 2 * self.n_facts, self.rows)
        full = np.searchsorted(offsets, cuts, "right") - 1
        buckets = Buckets(self.work / "by-entity", np.unique(full[full > 0]), dtypes)
        for part in blocks(self.n_facts, self.rows):
            subject, relation, object_ = (column[part] for column in columns)
            start, end = known_ends(starts[part], ends[part])
            fact = np.arange(part.start, part.stop, dtype=np.int32)
            inverse = relation + np.int32(self.n_relations)
            buckets.add(subject, relation, object_, fact, start, end)
            buckets.add(object_, inverse, subject, fact, start, end)
        files = {name: self.folder / f"edges.{name}.npy" for name in ids[1:]}
        files |= {name: self.folder / f"walks.{name}.npy" for name in (ids[0], *times)}
        writers = {name: ColumnWriter(path, dtypes[name]) for name, path in files.items()}
        for edges in buckets.pop_all():
            # Facts of one entity and relation are in their order already.
            first = edges["source"].min(initial=np.iinfo(np.int32).max)
            key = (edges["source"] - np.int64(first)) * (2 * self.n_relations) + edges["relation"]
            order = stable_argsort(key)
            for name, writer in writers.items():
                writer.append(edges[name][order])
        for writer in writers.values():
            writer.close()

    def _write_inverse(self) -> None:
        """Write for each edge the edge of the same fact in the other direction."""
        fact, relation = _array(self.folder, "edges.fact"), _array(self.folder, "edges.relation")
        fits = 2 * self.n_facts <= self.values
        pair = np.empty((self.n_facts, 2), np.int32) if fits else None
        bounds = np.empty(0, np.int64) if fits else np.arange(self.rows, self.n_facts, self.rows)
        dtypes = {"fact": np.int32, "edge": np.int32, "is_inverse": np.bool_}
        buckets = Buckets(self.work / "by-fact", bounds, dtypes)
        inverse = self._scatter("inverse", len(fact))
        for part in blocks(len(fact), self.rows):
            edge = np.arange(part.start, part.stop, dtype=np.int32)
            is_inverse = relation[part] >= self.n_relations
            if pair is None:
                buckets.add(fact[part], edge, is_inverse)
            else:
                pair[fact[part], is_inverse.astype(np.int8)] = edge
        if pair is not None:
            inverse.put(pair.ravel(), pair[:, ::-1].ravel())
        for edges in buckets.pop_all():
            order = stable_argsort(edges["fact"] * np.int64(2) + edges["is_inverse"])
            pair = edges["edge"][order].reshape(-1, 2)
            inverse.put(pair.ravel(), pair[:, ::-1].ravel())
        inverse.write()

    def _write_ranks(self, offsets: Ints) -> None:
        """Write the index of each edge in the order of relation, target and edge, and this order.

        The edges to an entity are the inverses of its own, which are sorted by entity and
        relation; so it is enough to go through these, relation by relation.
        """
        n_directed = 2 * self.n_relations
        names = ("edges.relation", "walks.source", "walks.inverse")
        relation, source, inverse = (_array(self.folder, name) for name in names)
        counts = np.zeros(n_directed, np.int64)
        for part in blocks(len(relation), self.rows):
            counts += np.bincount(relation[part], minlength=n_directed)
        counts = np.roll(counts, self.n_relations)  # of the edges that these are the inverses of
        next_rank = np.cumsum(counts) - counts
        rank, by_rank = (self._scatter(name, len(relation)) for name in ("rank", "by_rank"))
        for part in _whole_groups(offsets, relation, self.rows):
            label = relation[part]
            group = (np.diff(source[part], prepend=-1) != 0) | (np.diff(label, prepend=-1) != 0)
            edge = np.sort((np.cumsum(group) << 31) | inverse[part]) & (2**31 - 1)
            inverse_label = (label.astype(np.int64) + self.n_relations) % n_directed
            order = stable_argsort(inverse_label)
            inverse_label, edge = inverse_label[order], edge[order]
            begin = np.searchsorted(inverse_label, np.arange(n_directed + 1))
            within = np.arange(len(edge)) - np.repeat(begin[:-1], np.diff(begin))
            edge_rank = next_rank[inverse_label] + within
            rank.put(edge, edge_rank)
            by_rank.put(edge_rank, edge)
            next_rank += np.diff(begin)
        rank.write()
        by_rank.write()


def _whole_groups(offsets: Ints, relation: ArrayOnDisk, rows: int) -> Iterator[slice]:
    """Yield slices of edges that keep those of one entity and relation together."""
    begin, count = 0, len(relation)
    while begin < count:
        end = min(begin + rows, count)
        # Up to the end of the last edge's entity, or to where its relation ends.
        last = int(offsets[np.searchsorted(offsets, end - 1, side="right")])
        rest = relation[slice(end - 1, last)]
        end += int(np.searchsorted(rest[1:], rest[0], side="right"))
        yield slice(begin, end)
        begin = end
