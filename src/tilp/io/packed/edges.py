"""The index of train, and what walks need beside it, made in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilp.io.packed.external_sort import Buckets, Scatter, blocks, stable_order
from tilp.io.packed.format import PREPARED, ColumnWriter, OnDisk
from tilp.time import known_ends


def edge_file(folder: Path, name: str) -> Path:
    """The file of an array of the index."""
    return folder / f"edges.{name}.npy"


def prepared_file(folder: Path, name: str) -> Path:
    """The file of an array that walks need beside the index."""
    return folder / f"walks.{name}.npy"


def write_edges(
    folder: Path,
    work: Path,
    facts: int,
    n_entities: int,
    n_relations: int,
    rows: int,
    numbers: int,
    progress: Callable[[float], None],
) -> None:
    """Write the edges of the first facts of a pack whose columns are there.

    Args:
        folder: of the pack.
        work: for what is kept on the way.
        facts: how many: those of train.
        n_entities: how many entities there are.
        n_relations: how many relations; an inverse edge has the relation `r + n_relations`.
        rows: how many edges are held in memory with all that they have, if no entity has more.
        numbers: how many single numbers are held.
        progress: called with the share that is done.
    """
    offsets = _write_offsets(folder, facts, n_entities, rows)
    progress(0.1)
    _write_sorted(folder, work, facts, offsets, n_relations, rows)
    progress(0.5)
    _write_inverse(folder, work, facts, n_relations, rows, numbers)
    progress(0.7)
    _write_ranks(folder, work, offsets, n_relations, rows, numbers)
    progress(1.0)


def _write_offsets(folder: Path, facts: int, n_entities: int, rows: int) -> NDArray[np.int64]:
    degrees = np.zeros(n_entities, np.int64)
    for name in ("subject", "object"):
        ends = OnDisk(folder / f"{name}.npy")
        for part in blocks(facts, max(rows, n_entities)):  # a count of all entities each time
            degrees += np.bincount(ends[part], minlength=n_entities)
    offsets = np.zeros(n_entities + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    with ColumnWriter(edge_file(folder, "offsets"), np.int64) as column:
        column.append(offsets)
    return offsets


def _write_sorted(
    folder: Path,
    work: Path,
    facts: int,
    offsets: NDArray[np.int64],
    n_relations: int,
    rows: int,
) -> None:
    """Edges by entity, relation and fact; entities are taken together as far as there is room."""
    columns = {name: OnDisk(folder / f"{name}.npy") for name in ("subject", "relation", "object")}
    times = {name: OnDisk(folder / f"{name}.npy") for name in ("start", "end")}
    kinds = {
        "source": np.int32,
        "relation": np.int32,
        "target": np.int32,
        "fact": np.int32,
        "start": np.int64,
        "end": np.int64,
    }
    full = np.searchsorted(offsets, np.arange(rows, 2 * facts, rows), side="right") - 1
    bounds = np.unique(full[full > 0])
    buckets = Buckets(work, "by-entity", bounds, kinds)
    for part in blocks(facts, rows):
        subject, relation, object_ = (columns[name][part] for name in columns)
        start, end = known_ends(times["start"][part], times["end"][part])
        fact = np.arange(part.start, part.stop, dtype=np.int32)
        buckets.add(subject, relation, object_, fact, start, end)
        buckets.add(object_, relation + np.int32(n_relations), subject, fact, start, end)
    files = {
        **{name: edge_file(folder, name) for name in ("relation", "target", "fact")},
        **{name: prepared_file(folder, name) for name in ("source", "start", "end")},
    }
    writers = {name: ColumnWriter(path, kinds[name]) for name, path in files.items()}
    for edges in buckets.take():
        # Facts of one entity and relation were laid down in their order.
        first = edges["source"].min(initial=np.iinfo(np.int32).max)
        key = (edges["source"] - np.int64(first)) * (2 * n_relations) + edges["relation"]
        order = stable_order(key)
        for name, writer in writers.items():
            writer.append(edges[name][order])
    for writer in writers.values():
        writer.close()


def _write_inverse(
    folder: Path, work: Path, facts: int, n_relations: int, rows: int, numbers: int
) -> None:
    """For each edge that of the same fact the other way."""
    fact, relation = (OnDisk(edge_file(folder, name)) for name in ("fact", "relation"))
    bounds = np.arange(rows, facts, rows) if 2 * facts > numbers else np.empty(0, np.int64)
    kinds = {"fact": np.int32, "edge": np.int32, "turned": np.bool_}
    buckets = Buckets(work, "by-fact", bounds, kinds)
    pair = np.empty((facts, 2), np.int32) if 2 * facts <= numbers else None
    inverse = Scatter(
        work, prepared_file(folder, "inverse"), len(fact), PREPARED["inverse"], numbers
    )
    for part in blocks(len(fact), rows):
        edge = np.arange(part.start, part.stop, dtype=np.int32)
        turned = relation[part] >= n_relations
        if pair is None:
            buckets.add(fact[part], edge, turned)
        else:
            pair[fact[part], turned.astype(np.int8)] = edge
    if pair is not None:
        inverse.put(pair[:, 0], pair[:, 1])
        inverse.put(pair[:, 1], pair[:, 0])
    for edges in buckets.take():
        order = stable_order(edges["fact"] * np.int64(2) + edges["turned"])
        pairs = edges["edge"][order].reshape(-1, 2)
        inverse.put(pairs[:, 0], pairs[:, 1])
        inverse.put(pairs[:, 1], pairs[:, 0])
    inverse.write()


def _write_ranks(
    folder: Path,
    work: Path,
    offsets: NDArray[np.int64],
    n_relations: int,
    rows: int,
    numbers: int,
) -> None:
    """The place of each edge in the order of relation, target and edge, and this order.

    The edges to an entity are the inverses of its own, which stand together by entity and
    relation; so it is enough to lay them down relation by relation.
    """
    relation, source, inverse = (
        OnDisk(path)
        for path in (
            edge_file(folder, "relation"),
            prepared_file(folder, "source"),
            prepared_file(folder, "inverse"),
        )
    )
    counts = np.zeros(2 * n_relations, np.int64)
    for part in blocks(len(relation), rows):
        counts += np.bincount(relation[part], minlength=2 * n_relations)
    counts = np.roll(counts, n_relations)  # of the edges that these are the inverses of
    place = np.cumsum(counts) - counts
    size = len(relation)
    rank, by_rank = (
        Scatter(work, prepared_file(folder, name), size, PREPARED[name], numbers)
        for name in ("rank", "by_rank")
    )
    for part in _whole_groups(offsets, relation, rows):
        label = relation[part]
        group = (np.diff(source[part], prepend=-1) != 0) | (np.diff(label, prepend=-1) != 0)
        edge = np.sort((np.cumsum(group) << 31) | inverse[part]) & (2**31 - 1)
        turned = (label.astype(np.int64) + n_relations) % (2 * n_relations)
        order = stable_order(turned)
        turned, edge = turned[order], edge[order]
        begin = np.searchsorted(turned, np.arange(2 * n_relations + 1))
        within = np.arange(len(turned)) - np.repeat(begin[:-1], np.diff(begin))
        at = place[turned] + within
        rank.put(edge, at)
        by_rank.put(at, edge)
        place += np.diff(begin)
    rank.write()
    by_rank.write()


def _whole_groups(offsets: NDArray[np.int64], relation: OnDisk, rows: int) -> Iterator[slice]:
    """The edges cut so that those of one entity and relation stay together."""
    begin, count = 0, len(relation)
    while begin < count:
        end = min(begin + rows, count)
        # Up to the end of the last edge's entity, or to where its relation ends.
        last = int(offsets[np.searchsorted(offsets, end - 1, side="right")])
        rest = relation[slice(end - 1, last)]
        end += int(np.searchsorted(rest[1:], rest[0], side="right"))
        yield slice(begin, end)
        begin = end
