"""`Evidence`: the facts and walks that speak for candidates, as times (Appendix A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.nearest_facts import DatedEdges, gather_evidence
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import read_only, read_only_tuple
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers, cut_by_cost
from tilp.time import known_ends
from tilp.time.relations import INCOMPARABLE, signed_differences
from tilp.types import EvidenceKind

EVIDENCE_KINDS = tuple(kind.value for kind in EvidenceKind)
"""Facts between candidate and subject, F_{c,s}; the candidate's other facts; walks to it, S_W."""

UNDATED = np.iinfo(np.int32).min
"""The difference of facts that have no time, or of queries that have none."""

DEFAULT_LIMIT = 100_000

_MOST_CHUNKS = 256
_CHUNK_STEPS = 1e5


class Dated(NamedTuple):
    """The pieces of evidence that have a time, for queries that have one.

    Attributes:
        row: the candidate's place in the list.
        kind: the place in `KINDS`.
        head: the query's relation.
        relation: the directed relation of the evidence.
        difference: T_s - t_s.
    """

    row: NDArray[np.int64]
    kind: NDArray[np.int64]
    head: NDArray[np.int32]
    relation: NDArray[np.int32]
    difference: NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Of each listed candidate, the start closest to the query's of each relation, by kind.

    Relations of facts are read from the candidate, those of walks in walking direction.

    Attributes:
        directed: how many directed relations there are.
        offsets: where the candidates of each query begin, and where the last end.
        candidate: the listed candidates.
        row: of each piece of evidence, its candidate's place in the list.
        kind: its place in `KINDS`.
        relation: its directed relation.
        difference: T_s - t_s, of equally close starts the earlier one's; `UNDATED`: no time.
    """

    directed: int
    offsets: NDArray[np.int64]
    candidate: NDArray[np.int32]
    row: NDArray[np.int32]
    kind: NDArray[np.int8]
    relation: NDArray[np.int32]
    difference: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def query(self) -> NDArray[np.int64]:
        """The query of each listed candidate."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def dated(self, queries: QueryTable) -> Dated:
        """What has a time, of the evidence that was gathered for these queries."""
        dated = np.flatnonzero(self.difference != UNDATED)
        row = self.row[dated].astype(np.int64)
        return Dated(
            row,
            self.kind[dated].astype(np.int64),
            queries.directed_relation[self.query[row]],
            self.relation[dated],
            self.difference[dated].astype(np.float64),
        )

    def only(self, listed: NDArray[np.bool_]) -> Evidence:
        """What there is for some of the candidates, as if there were nothing for the others."""
        kept = listed[self.row]
        return replace(
            self,
            row=self.row[kept],
            kind=self.kind[kept],
            relation=self.relation[kept],
            difference=self.difference[kept],
        )

    def places_of(self, entity: NDArray[np.int32]) -> NDArray[np.int64]:
        """Where one entity of each query stands in the list of candidates; -1: it is not listed."""
        query = self.query
        places = np.full(len(self.offsets) - 1, -1, np.int64)
        listed = np.flatnonzero(self.candidate == entity[query])
        places[query[listed]] = listed
        return places


class Gatherer:
    """Gathers the evidence in a graph's train split.

    It is simpler than the walks that rules are made of: a walk may come back and use a fact again.
    The query's own fact is never evidence. At most `limit` edges are read on one level of walks
    from a subject, and of one candidate: those that stand first in the index, entity by entity in
    the order in which they are reached.

    Args:
        graph: the facts.
        walked: for each head, which directed relations are walked along.
        max_length: of walks.
        limit: edges to read at the most.
    """

    def __init__(
        self,
        graph: TemporalGraph,
        walked: NDArray[np.bool_],
        max_length: int,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        directed = 2 * len(graph.relations)
        if walked.shape != (directed, directed):
            raise TilpError(
                f"which relations are walked is told for {directed} heads and {directed} directed "
                f"relations, not in the shape {walked.shape}"
            )
        if max_length < 1 or limit < 1:
            raise TilpError(
                f"walks have at least one step, and at least one edge is read; the length is "
                f"{max_length}, the limit {limit}"
            )
        index = graph.index(("train",))
        start, _ = known_ends(graph.start, graph.end)
        self._edges = read_only_tuple(
            DatedEdges(index.offsets, index.relation, index.target, index.fact, start[index.fact])
        )
        self._column = np.where(walked, np.cumsum(walked, axis=1) - 1, -1).astype(np.int32)
        self._width = walked.sum(axis=1).astype(np.int64)
        self._max_length, self._limit = max_length, limit
        self._degree = read_only(np.diff(index.offsets).astype(np.float64))
        self._steps = read_only(self._walk_steps())

    def __call__(
        self,
        queries: QueryTable,
        offsets: NDArray[np.int64],
        candidate: NDArray[np.int32],
        workers: Workers,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Evidence:
        """The evidence for the candidates of queries.

        Args:
            queries: the queries.
            offsets: where the candidates of each query begin, and where the last end.
            candidate: these.
            workers: do not change the result.
            progress: called with the share that is done.
        """
        asked = read_only_tuple(
            ListedCandidates(
                queries.subject,
                queries.directed_relation,
                queries.start,
                queries.end,
                queries.fact,
                offsets,
                candidate,
            )
        )
        to_read = np.append(0.0, np.cumsum(self._degree[candidate] + 4.0))
        cost = self._steps[queries.subject] + np.diff(to_read[offsets]) + 1.0
        chunks = cut_by_cost(cost, min(_MOST_CHUNKS, 1 + int(cost.sum() / _CHUNK_STEPS)))
        parts: list[tuple[NDArray[np.int32], ...]] = [tuple(np.empty((4, 0), np.int32))]
        for number, part in enumerate(workers.map(partial(self._gather, asked), chunks)):
            parts.append(part)
            if progress is not None:
                progress((number + 1) / len(chunks))
        row, kind, relation, difference = (np.concatenate(one) for one in zip(*parts, strict=True))
        return Evidence(
            len(self._column), offsets, candidate, row, kind.astype(np.int8), relation, difference
        )

    def _gather(self, asked: ListedCandidates, chunk: slice) -> tuple[NDArray[np.int32], ...]:
        """The candidates, kinds, relations and differences that some of the queries have."""
        rows = gather_evidence(
            chunk.start,
            chunk.stop,
            self._edges,
            asked,
            self._column,
            self._width,
            self._max_length,
            self._limit,
        )
        apart = np.where(rows[:, 3] == INCOMPARABLE, UNDATED, signed_differences(rows[:, 3]))
        return (*rows[:, :3].T.astype(np.int32), apart.astype(np.int32))

    def _walk_steps(self) -> NDArray[np.float64]:
        """About how many steps all walks from each entity take, but for the last one."""
        source = np.repeat(np.arange(len(self._degree)), np.diff(self._edges.offsets))
        steps: NDArray[Any] = self._degree
        total: NDArray[Any] = np.zeros_like(steps)
        for _ in range(1, self._max_length):
            total = total + np.minimum(steps, self._limit)
            steps = np.bincount(source, steps[self._edges.target], len(steps))
        return total
