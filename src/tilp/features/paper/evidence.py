"""Evidence for candidates: the closest dated fact or walk edge of each relation (Appendix A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.nearest_facts import DatedEdges, gather_evidence
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import Floats, Ids, Indices, Ints, Mask, read_only, read_only_tuple
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers, split_by_cost
from tilp.time import known_ends
from tilp.time.relations import INCOMPARABLE, signed_differences
from tilp.types import EvidenceKind

# Facts between candidate and subject, F_{c,s}; the candidate's other facts; walks to it, S_W.
EVIDENCE_KINDS = tuple(kind.value for kind in EvidenceKind)
UNDATED = np.iinfo(np.int64).min  # difference where the fact or the query has no date
LIMIT = 100_000  # edges to read, see `Gatherer`

_MAX_CHUNKS = 256  # of queries, for workers
_CHUNK_STEPS = 1e5

Steps = tuple[tuple[int, bool], ...]  # facts, each with True if read from object to subject


class DatedEvidence(NamedTuple):
    """The pieces of evidence with a date, for queries with a date."""

    row: Indices  # index of the candidate in the list
    kind: Indices  # index in `EVIDENCE_KINDS`
    query_relation: Ids  # directed relation of the query
    relation: Ids  # directed relation of the evidence
    difference: Ints  # T_s - t_s

    @property
    def distance(self) -> Floats:
        """|T_s - t_s|."""
        return np.abs(self.difference.astype(np.float64))


@dataclass(frozen=True)
class Evidence:
    """Of each listed candidate, the start closest to the query's of each relation, by kind."""

    n_directed: int  # count of directed relations
    offsets: Indices  # where the candidates of each query begin, and where the last end
    candidate: Ids  # the listed candidates
    row: Ids  # index in the list of the candidate of each piece of evidence
    kind: NDArray[np.int8]  # its index in `EVIDENCE_KINDS`
    relation: Ids  # its directed relation, read from the candidate; on walks, in walking direction
    difference: Ints  # T_s - t_s, the earlier of two equally close starts; `UNDATED` without a date

    def __len__(self) -> int:
        return len(self.row)

    @property
    def query(self) -> Indices:
        """Query of each listed candidate."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def dated(self, queries: QueryTable) -> DatedEvidence:
        """Return the dated pieces; `queries` are those that the evidence was gathered for."""
        dated = np.flatnonzero(self.difference != UNDATED)
        row = self.row[dated].astype(np.int64)
        kind, asked = self.kind[dated].astype(np.int64), queries.directed_relation[self.query[row]]
        return DatedEvidence(row, kind, asked, self.relation[dated], self.difference[dated])

    def restrict(self, candidates: Mask) -> Evidence:
        """Keep the evidence of some candidates, as if there were none for the others."""
        mask = candidates[self.row]
        columns = ("row", "kind", "relation", "difference")
        return replace(self, **{name: getattr(self, name)[mask] for name in columns})


class Gatherer:
    """Gathers the evidence in a graph's train split.

    Its walks are simpler than those of rules: they may return to an entity and use a fact again.
    The query's own fact is never evidence. On one level of walks from a subject, and for one
    candidate, at most `limit` edges are read: the first in the index, entity by entity in the
    order in which they are reached.
    """

    def __init__(
        self, graph: TemporalGraph, walked: Mask, max_length: int, limit: int = LIMIT,
        max_chunks: int = _MAX_CHUNKS,
    ) -> None:  # fmt: skip
        index = graph.index(("train",))
        start, _ = known_ends(graph.start, graph.end)
        self._edges = read_only_tuple(
            DatedEdges(index.offsets, index.relation, index.target, index.fact, start[index.fact])
        )
        self._column = np.where(walked, np.cumsum(walked, axis=1) - 1, -1).astype(np.int32)
        self._width = walked.sum(axis=1).astype(np.int64)
        self._max_length, self._limit, self._max_chunks = max_length, limit, max_chunks
        self._degree = read_only(np.diff(index.offsets).astype(np.float64))
        # About how many steps all walks from each entity take, without the last one.
        source = np.repeat(np.arange(len(self._degree)), np.diff(index.offsets))
        steps: NDArray[Any] = self._degree
        total: NDArray[Any] = np.zeros_like(steps)
        for _ in range(1, max_length):
            total = total + np.minimum(steps, limit)
            steps = np.bincount(source, steps[index.target], len(steps))
        self._steps = read_only(total)

    def __call__(
        self, queries: QueryTable, offsets: Indices, candidate: Ids, workers: Workers, *,
        progress: Callable[[float], None] | None = None,
    ) -> Evidence:  # fmt: skip
        """Return the evidence for the candidates of queries, which begin at `offsets`."""
        columns = (getattr(queries, name) for name in ListedCandidates._fields[:6])
        listed = read_only_tuple(ListedCandidates._make([*columns, offsets, candidate]))
        edges_to_read = np.append(0.0, np.cumsum(self._degree[candidate] + 4.0))
        cost = self._steps[queries.subject] + np.diff(edges_to_read[offsets]) + 1.0
        chunks = split_by_cost(cost, min(self._max_chunks, 1 + int(cost.sum() / _CHUNK_STEPS)))
        parts: list[tuple[Any, ...]] = [tuple(np.empty((4, 0), np.int32))]
        for part in workers.map(partial(self._gather, listed), chunks):
            parts.append(part)
            if progress is not None:
                progress((len(parts) - 1) / len(chunks))
        row, kind, *others = (np.concatenate(column) for column in zip(*parts, strict=True))
        n_directed = len(self._column)
        return Evidence(n_directed, offsets, candidate, row, kind.astype(np.int8), *others)

    def _gather(self, listed: ListedCandidates, chunk: slice) -> tuple[Any, ...]:
        """Return candidate, kind, relation and difference of the evidence of some queries."""
        walks = self._column, self._width, self._max_length, self._limit
        rows = gather_evidence(chunk.start, chunk.stop, self._edges, listed, *walks)
        difference = np.where(rows[:, 3] == INCOMPARABLE, UNDATED, signed_differences(rows[:, 3]))
        return (*rows[:, :3].T.astype(np.int32), difference)


class EvidenceTracer:
    """Finds the facts behind the evidence for one candidate of a single query."""

    def __init__(
        self, graph: TemporalGraph, walked: Mask, max_length: int, query: QueryTable, candidate: int
    ) -> None:
        index = graph.index(("train",))
        self._max_length, self._candidate = max_length, candidate
        self._subject, self._query_start = int(query.subject[0]), query.start[0]
        self._n_entities, self._n_relations = len(graph.entities), len(graph.relations)
        edge = np.flatnonzero(index.fact != query.fact[0])
        source = np.repeat(np.arange(self._n_entities, dtype=np.int32), np.diff(index.offsets))
        start, _ = known_ends(graph.start, graph.end)
        self._source, self._target = source[edge], index.target[edge]
        self._relation, self._fact = index.relation[edge], index.fact[edge]
        self._start = start[self._fact]
        self._walked: Mask = walked[query.directed_relation[0]][self._relation]
        self._from_subject = self._distances(self._subject, self._source, self._target)
        self._to_candidate = self._distances(candidate, self._target, self._source)

    def __call__(self, kind: int, relation: int, difference: int | None) -> Steps:
        """Return the fact of a piece of evidence; for walks, the shortest walk that uses it."""
        mask = self._relation == relation
        if difference is not None:
            mask &= self._start == self._query_start + difference
        if EVIDENCE_KINDS[kind] == EvidenceKind.WALKS:
            length = self._from_subject[self._source] + 1 + self._to_candidate[self._target]
            mask &= self._walked & (length <= self._max_length)
            edge, source, target = _first(mask), self._source, self._target
            before = self._path(int(source[edge]), self._from_subject, target, source)
            after = self._path(int(target[edge]), self._to_candidate, source, target)
            return (*before[::-1], self._step(edge), *after)
        mask &= self._source == self._candidate
        with_subject = self._target == self._subject
        mask &= with_subject == (EVIDENCE_KINDS[kind] == EvidenceKind.BETWEEN)
        return (self._step(_first(mask)),)

    def _path(self, entity: int, distance: Indices, near: Ids, far: Ids) -> list[tuple[int, bool]]:
        """Return the steps from an entity, each nearer, to the one with distance 0."""
        steps = []
        for left in range(int(distance[entity]) - 1, -1, -1):
            edge = _first(self._walked & (near == entity) & (distance[far] == left))
            steps.append(self._step(edge))
            entity = int(far[edge])
        return steps

    def _step(self, edge: int) -> tuple[int, bool]:
        return int(self._fact[edge]), bool(self._relation[edge] >= self._n_relations)

    def _distances(self, entity: int, near: Ids, far: Ids) -> Indices:
        """Return how many walked edges each entity is away from one entity."""
        unreached = self._max_length + 1
        distance = np.full(self._n_entities, unreached)
        distance[entity] = 0
        for steps in range(1, unreached):
            reached = far[self._walked & (distance[near] == steps - 1)]
            distance[reached] = np.minimum(distance[reached], steps)
        return distance


def _first(mask: Mask) -> int:
    return int(np.flatnonzero(mask)[0])
