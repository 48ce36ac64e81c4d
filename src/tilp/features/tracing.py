"""`Tracer`: the facts that a piece of evidence for a candidate was read from."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp.choices import EvidenceKind
from tilp.features.evidence import KINDS
from tilp.features.paper import PaperFeatures
from tilp.graph import QueryTable
from tilp.intervals import known_ends

__all__ = ["Tracer"]

Steps = tuple[tuple[int, bool], ...]


class Tracer:
    """Finds facts again by what `Evidence` says of them.

    Args:
        features: that the evidence was gathered for.
        queries: a single query.
        candidate: of it.
    """

    def __init__(self, features: PaperFeatures, queries: QueryTable, candidate: int) -> None:
        graph = features.graph
        index = graph.index(("train",))
        self._features = features
        self._queries = queries
        self._candidate = candidate
        self._size = len(graph.entities)
        self._n_relations = len(graph.relations)
        edge = np.flatnonzero(index.fact != queries.fact[0])
        source = np.repeat(np.arange(self._size, dtype=np.int32), np.diff(index.offsets))
        start, _ = known_ends(graph.start, graph.end)
        self._source, self._target = source[edge], index.target[edge]
        self._relation, self._fact = index.relation[edge], index.fact[edge]
        self._start = start[self._fact]

    def __call__(self, kind: int, relation: int, difference: int | None) -> Steps:
        """The fact of a piece of evidence; of walks the shortest walk that it is on.

        Args:
            kind: the place in `KINDS`.
            relation: directed, as the evidence reads it.
            difference: of its start to the query's; None: any will do.

        Returns:
            The facts in order, each with whether it is read from object to subject.
        """
        wanted = self._relation == relation
        if difference is not None:
            wanted &= self._start == self._queries.start[0] + difference
        if KINDS[kind] == EvidenceKind.WALKS:
            away = self._from_subject[self._source] + 1 + self._to_candidate[self._target]
            wanted &= self._walked & (away <= self._features.max_length)
            return self._along(int(np.flatnonzero(wanted)[0]))
        with_subject = self._target == self._queries.subject[0]
        wanted &= self._source == self._candidate
        wanted &= with_subject == (KINDS[kind] == EvidenceKind.BETWEEN)
        return (self._step(int(np.flatnonzero(wanted)[0])),)

    def _along(self, edge: int) -> Steps:
        """A shortest walk over an edge."""
        before, after = [], []
        here = int(self._source[edge])
        for away in range(int(self._from_subject[here]) - 1, -1, -1):
            nearer = self._walked & (self._target == here)
            step = int(np.flatnonzero(nearer & (self._from_subject[self._source] == away))[0])
            before.append(self._step(step))
            here = int(self._source[step])
        here = int(self._target[edge])
        for away in range(int(self._to_candidate[here]) - 1, -1, -1):
            nearer = self._walked & (self._source == here)
            step = int(np.flatnonzero(nearer & (self._to_candidate[self._target] == away))[0])
            after.append(self._step(step))
            here = int(self._target[step])
        return (*before[::-1], self._step(edge), *after)

    def _step(self, edge: int) -> tuple[int, bool]:
        return int(self._fact[edge]), bool(self._relation[edge] >= self._n_relations)

    @cached_property
    def _walked(self) -> NDArray[np.bool_]:
        walked: NDArray[np.bool_] = self._features.walked[self._queries.head[0]][self._relation]
        return walked

    @cached_property
    def _from_subject(self) -> NDArray[np.int64]:
        return self._steps_away(int(self._queries.subject[0]), self._source, self._target)

    @cached_property
    def _to_candidate(self) -> NDArray[np.int64]:
        return self._steps_away(self._candidate, self._target, self._source)

    def _steps_away(
        self, entity: int, here: NDArray[np.int32], there: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """How many steps each entity is away, along the edges that are walked."""
        far = self._features.max_length + 1
        away = np.full(self._size, far)
        away[entity] = 0
        for steps in range(1, far):
            reached = there[self._walked & (away[here] == steps - 1)]
            away[reached] = np.minimum(away[reached], steps)
        return away
