"""Edge index of train, and the arrays that walks need beside it, written in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilp.io.packed.external_sort import Buckets, ScatterWriter, blocks, stable_argsort
from tilp.io.packed.format import PREPARED, ArrayOnDisk, ColumnWriter, edge_file, prepared_file
from tilp.time import known_ends


@dataclass(frozen=True)
class EdgeWriter:
    """Writes the edges of the first facts of a packed graph whose columns are complete.

    Attributes:
        folder: of the packed graph.
        work: for temporary files.
        n_facts: how many facts; those of train.
        n_entities: count of entities.
        n_relations: count of relations; an inverse edge has the relation `r + n_relations`.
        rows: how many whole edges may be in memory, if no entity has more.
        values: how many single values may be in memory.
    """

    folder: Path
    work: Path
    n_facts: int
    n_entities: int
    n_relations: int
    rows: int
    values: int

    def write(self, progress: Callable[[float], None]) -> None:
        """Write all arrays."""
        offsets = self._write_offsets()
        progress(0.1)
        self._write_sorted(offsets)
        progress(0.5)
        self._write_inverse()
        progress(0.7)
        self._write_ranks(offsets)
        progress(1.0)

    def _fact_column(self, name: str) -> ArrayOnDisk:
        return ArrayOnDisk(self.folder / f"{name}.npy")

    def _scatter(self, name: str, size: int) -> ScatterWriter:
        path = prepared_file(self.folder, name)
        return ScatterWriter(self.work, path, size, PREPARED[name], self.values)

    def _write_offsets(self) -> NDArray[np.int64]:
        degrees = np.zeros(self.n_entities, np.int64)
        for name in ("subject", "object"):
            column = self._fact_column(name)
            # Each block costs a count of all entities.
            for part in blocks(self.n_facts, max(self.rows, self.n_entities)):
                degrees += np.bincount(column[part], minlength=self.n_entities)
        offsets = np.zeros(self.n_entities + 1, np.int64)
        np.cumsum(degrees, out=offsets[1:])
        with ColumnWriter(edge_file(self.folder, "offsets"), np.int64) as column_writer:
            column_writer.append(offsets)
        return offsets

    def _write_sorted(self, offsets: NDArray[np.int64]) -> None:
        """Write edges by entity, relation and fact, as many entities at a time as fit."""
        columns = [self._fact_column(name) for name in ("subject", "relation", "object")]
        starts, ends = self._fact_column("start"), self._fact_column("end")
        dtypes = {
            "source": np.int32,
            "relation": np.int32,
            "target": np.int32,
            "fact": np.int32,
            "start": np.int64,
            "end": np.int64,
        }
        full = np.searchsorted(offsets, np.arange(self.rows, 2 * self.n_facts, self.rows), "right")
        full -= 1
        buckets = Buckets(self.work, "by-entity", np.unique(full[full > 0]), dtypes)
        for part in blocks(self.n_facts, self.rows):
            subject, relation, object_ = (column[part] for column in columns)
            start, end = known_ends(starts[part], ends[part])
            fact = np.arange(part.start, part.stop, dtype=np.int32)
            inverse = relation + np.int32(self.n_relations)
            buckets.add(subject, relation, object_, fact, start, end)
            buckets.add(object_, inverse, subject, fact, start, end)
        files = {name: edge_file(self.folder, name) for name in ("relation", "target", "fact")}
        files |= {name: prepared_file(self.folder, name) for name in ("source", "start", "end")}
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
        fact, relation = (
            ArrayOnDisk(edge_file(self.folder, name)) for name in ("fact", "relation")
        )
        fits = 2 * self.n_facts <= self.values
        pair = np.empty((self.n_facts, 2), np.int32) if fits else None
        bounds = np.empty(0, np.int64) if fits else np.arange(self.rows, self.n_facts, self.rows)
        dtypes = {"fact": np.int32, "edge": np.int32, "is_inverse": np.bool_}
        buckets = Buckets(self.work, "by-fact", bounds, dtypes)
        inverse = self._scatter("inverse", len(fact))
        for part in blocks(len(fact), self.rows):
            edge = np.arange(part.start, part.stop, dtype=np.int32)
            is_inverse = relation[part] >= self.n_relations
            if pair is None:
                buckets.add(fact[part], edge, is_inverse)
            else:
                pair[fact[part], is_inverse.astype(np.int8)] = edge
        if pair is not None:
            inverse.put(pair[:, 0], pair[:, 1])
            inverse.put(pair[:, 1], pair[:, 0])
        for edges in buckets.pop_all():
            order = stable_argsort(edges["fact"] * np.int64(2) + edges["is_inverse"])
            pairs = edges["edge"][order].reshape(-1, 2)
            inverse.put(pairs[:, 0], pairs[:, 1])
            inverse.put(pairs[:, 1], pairs[:, 0])
        inverse.write()

    def _write_ranks(self, offsets: NDArray[np.int64]) -> None:
        """Write the index of each edge in the order of relation, target and edge, and this order.

        The edges to an entity are the inverses of its own, which are sorted by entity and
        relation; so it is enough to go through these, relation by relation.
        """
        n_directed = 2 * self.n_relations
        relation = ArrayOnDisk(edge_file(self.folder, "relation"))
        source, inverse = (
            ArrayOnDisk(prepared_file(self.folder, name)) for name in ("source", "inverse")
        )
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


def _whole_groups(offsets: NDArray[np.int64], relation: ArrayOnDisk, rows: int) -> Iterator[slice]:
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
