"""How much there is to walk, counted from the degrees of entities before any walk is made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.graph import QueryTable
from tilp.walks import Walker

__all__ = ["WalkAmounts", "expected_steps", "steps_by_length", "walk_amounts"]


@dataclass(frozen=True)
class WalkAmounts:
    """What the time of walking from entities, for queries that are asked of them, goes by.

    Attributes:
        calls: chunks that the queries are cut into.
        entities: that are walked from; each once, for all that is asked of it.
        asked: relations and intervals that are asked of them, each once for all its queries.
        queries: that are asked.
        steps: of all walks from the entities.
        steps_asked: the same, for each relation and interval that is asked of an entity.
        steps_queried: the same, for each query.
    """

    calls: float = 0.0
    entities: float = 0.0
    asked: float = 0.0
    queries: float = 0.0
    steps: float = 0.0
    steps_asked: float = 0.0
    steps_queried: float = 0.0

    def row(self) -> NDArray[np.float64]:
        """The numbers, in order."""
        return np.array([getattr(self, one.name) for one in fields(self)])

    def __add__(self, other: WalkAmounts) -> WalkAmounts:
        return WalkAmounts(*(self.row() + other.row()))

    def __mul__(self, times: float) -> WalkAmounts:
        return WalkAmounts(*(self.row() * times))


def steps_by_length(walker: Walker, limit: int | None = None) -> NDArray[np.float64]:
    """How many steps the walks of each length take from each entity, the last step of each.

    A walk may come back here and use a fact again, so these are a little more than are taken.

    Args:
        walker: its edges and length.
        limit: past which walks of one length are sampled; the walker's own by default.
    """
    edges = walker.edges
    size = len(edges.offsets) - 1
    steps: NDArray[Any] = np.diff(edges.offsets).astype(np.float64)
    found = [steps]
    for _ in range(1, walker.max_length):
        steps = np.bincount(edges.source, steps[edges.target], size)
        found.append(steps)
    capped: NDArray[np.float64] = np.minimum(found, walker.limit if limit is None else limit)
    return capped


def expected_steps(degrees: NDArray[np.int64], length: int, limit: float) -> NDArray[np.float64]:
    """The same on average, where only the degrees of a graph are known: over the ends of facts.

    As if who is joined to whom were left to chance: an end of a fact has a degree with a chance in
    proportion to it.

    Args:
        degrees: edges from each entity.
        length: of walks, at the most.
        limit: past which walks of one length are sampled.

    >>> expected_steps(np.array([3, 3, 3, 3]), 3, limit=20)
    array([ 3.,  9., 20.])
    """
    chance = degrees / max(degrees.sum(), 1)
    further = float((degrees * chance).sum())
    each = [np.minimum(degrees * further**steps, limit) for steps in range(length)]
    return np.array([float((one * chance).sum()) for one in each])


def walk_amounts(
    steps: NDArray[np.float64],
    queries: QueryTable,
    entity: NDArray[np.int32],
    apart: NDArray[np.int64] | None = None,
    *,
    calls: float = 1.0,
) -> WalkAmounts:
    """Count what walking for queries goes by.

    Args:
        steps: of all walks from each entity.
        queries: the queries.
        entity: of each query, where its walks begin.
        apart: of each query a number; what is walked for one number serves no other.
        calls: how many chunks the queries are cut into.
    """
    if not len(queries):
        return WalkAmounts()
    apart = np.zeros(len(queries), np.int64) if apart is None else apart
    order = np.lexsort((queries.end, queries.start, queries.directed_relation, entity, apart))
    queries = queries[order]
    new_entity = _changes(entity[order], apart[order])
    new_question = new_entity | _changes(queries.end, queries.start, queries.directed_relation)
    each = steps[entity[order]]
    return WalkAmounts(
        calls=calls,
        entities=float(new_entity.sum()),
        asked=float(new_question.sum()),
        queries=float(len(queries)),
        steps=float(each[new_entity].sum()),
        steps_asked=float(each[new_question].sum()),
        steps_queried=float(each.sum()),
    )


def _changes(*columns: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows differ from the one before."""
    changes = np.zeros(len(columns[0]), np.bool_)
    changes[:1] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    return changes
