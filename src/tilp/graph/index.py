"""`EdgeIndex`: facts and their inverses by subject and relation, as walks read them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

__all__ = ["EdgeIndex", "PreparedEdges", "remaining_edges"]


@dataclass(frozen=True, eq=False, repr=False)
class PreparedEdges:
    """What walks need of the edges of an index beside it, made in advance.

    Attributes:
        start: of each edge's fact, where it is not known its end, as `known_ends` has it;
            likewise `end`.
        source: the entity of each edge.
        rank: the place of each edge in the order of relation, target and edge.
        by_rank: the edges in this order.
        inverse: for each edge that of the same fact the other way.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    source: NDArray[np.int32]
    rank: NDArray[np.int32]
    by_rank: NDArray[np.int32]
    inverse: NDArray[np.int32]

    def __post_init__(self) -> None:
        for column in fields(self):
            getattr(self, column.name).flags.writeable = False


@dataclass(frozen=True, eq=False, repr=False)
class EdgeIndex:
    """Every fact twice: as an edge from its subject, and as the inverse edge from its object.

    The edges of entity `e` stand at `offsets[e]:offsets[e + 1]`, sorted by relation and then by
    fact. An inverse edge has the relation `r + n_relations`. Where what walks need beside it was
    made in advance, it is `prepared`.
    """

    n_relations: int
    offsets: NDArray[np.int64]
    relation: NDArray[np.int32]
    target: NDArray[np.int32]
    fact: NDArray[np.int32]
    prepared: PreparedEdges | None = field(default=None, kw_only=True)

    @classmethod
    def build(
        cls,
        n_entities: int,
        n_relations: int,
        subject: NDArray[np.int32],
        relation: NDArray[np.int32],
        object: NDArray[np.int32],
        fact: NDArray[np.int32],
    ) -> EdgeIndex:
        """Sort the edges; `fact` gives each row's number in the graph, in rising order."""
        # Only walks need the index, and only they need a compiler.
        from tilp._kernels.edges import sort_edges

        degrees = np.bincount(subject, minlength=n_entities)
        degrees += np.bincount(object, minlength=n_entities)
        offsets = np.zeros(n_entities + 1, dtype=np.int64)
        np.cumsum(degrees, out=offsets[1:])
        edges = tuple(np.empty(2 * len(fact), dtype=np.int32) for _ in range(3))
        sort_edges(n_relations, offsets, subject, relation, object, fact, *edges)
        return cls(n_relations, offsets, *edges)

    def __post_init__(self) -> None:
        for array in (self.offsets, self.relation, self.target, self.fact):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"EdgeIndex({len(self.target):,} edges of {len(self.offsets) - 1:,} entities)"

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(a.nbytes for a in (self.offsets, self.relation, self.target, self.fact))

    def repeat(self, times: NDArray[np.int64]) -> EdgeIndex:
        """The same edges, each as many times as is given for its fact."""
        copies = times[self.fact]
        return EdgeIndex(
            self.n_relations,
            np.concatenate([[0], np.cumsum(copies)])[self.offsets],
            np.repeat(self.relation, copies),
            np.repeat(self.target, copies),
            np.repeat(self.fact, copies),
        )

    def without(self, numbers: NDArray[np.int32]) -> EdgeIndex:
        """The edges of some of the facts, which are numbered anew.

        Args:
            numbers: of each fact the new one, rising; -1: it is left out.
        """
        kept, offsets, fact = remaining_edges(self.offsets, self.fact, numbers)
        return EdgeIndex(self.n_relations, offsets, self.relation[kept], self.target[kept], fact)

    def edges(self, entity: int, relation: int | None = None) -> slice:
        """Where the edges of an entity stand, or those of one of its relations."""
        first, last = int(self.offsets[entity]), int(self.offsets[entity + 1])
        if relation is None:
            return slice(first, last)
        labels = self.relation[first:last]
        low, high = np.searchsorted(labels, [relation, relation + 1])
        return slice(first + int(low), first + int(high))

    def edge_ranges(
        self, entity: NDArray[np.int32], relation: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the edges of entities' relations begin and end, as `edges` has it, for many."""
        from tilp._kernels.edges import edge_spans

        return edge_spans(self.offsets, self.relation, entity, relation)


def remaining_edges(
    offsets: NDArray[np.int64], fact: NDArray[np.int32], numbers: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int32]]:
    """What is left of edges when facts are left out.

    Args:
        offsets: where the edges of each entity begin, and where the last end.
        fact: of each edge.
        numbers: of each fact the new one; -1: it is left out.

    Returns:
        Which edges stay, where those of each entity then begin, and the new number of their facts.
    """
    number = numbers[fact]
    kept = number >= 0
    gone = np.flatnonzero(~kept)
    return kept, offsets - np.searchsorted(gone, offsets), number[kept]
