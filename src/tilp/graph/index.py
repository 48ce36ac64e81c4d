"""`EdgeIndex`: facts and their inverses by subject and relation, as walks read them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from tilp._utils.arrays import Ids, Ints, Mask


@dataclass(frozen=True, eq=False, repr=False)
class PreparedEdges:
    """Arrays about the edges of an index that walks need beside it, computed in advance."""

    start: Ints  # of each edge's fact, its missing date as in `known_ends`
    end: Ints
    source: Ids  # entity that each edge starts from
    rank: Ids  # index of each edge in the order of relation, target and edge
    by_rank: Ids  # the edges in this order
    inverse: Ids  # the edge of the same fact in the other direction

    def __post_init__(self) -> None:
        for column in fields(self):
            getattr(self, column.name).flags.writeable = False


@dataclass(frozen=True, eq=False, repr=False)
class EdgeIndex:
    """Every fact twice: as an edge from its subject, and as the inverse edge from its object.

    The edges of entity `e` are `offsets[e]:offsets[e + 1]`, sorted by relation and then by fact.
    An inverse edge has the relation `r + n_relations`. A packed graph also has `prepared`.
    """

    n_relations: int
    offsets: Ints
    relation: Ids
    target: Ids
    fact: Ids
    prepared: PreparedEdges | None = field(default=None, kw_only=True)

    @classmethod
    def build(
        cls, n_entities: int, n_relations: int, subject: Ids, relation: Ids, object: Ids, fact: Ids
    ) -> EdgeIndex:
        """Sort the edges; `fact` holds each row's index in the graph, ascending."""
        # Only walks need the index, and only they need a compiler.
        from tilp._kernels.arrays import sort_edges

        degrees = np.bincount(subject, minlength=n_entities)
        degrees += np.bincount(object, minlength=n_entities)
        offsets = np.append(0, np.cumsum(degrees))
        edges = tuple(np.empty(2 * len(fact), dtype=np.int32) for _ in range(3))
        sort_edges(n_relations, offsets, subject, relation, object, fact, *edges)
        return cls(n_relations, offsets, *edges)

    def __post_init__(self) -> None:
        for array in (self.offsets, self.relation, self.target, self.fact):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"EdgeIndex({len(self.target):,} edges of {len(self.offsets) - 1:,} entities)"

    def without(self, new_rows: Ids) -> EdgeIndex:
        """Return the edges of the remaining facts; `new_rows` is that of `remaining_edges`."""
        mask, offsets, fact = remaining_edges(self.offsets, self.fact, new_rows)
        return EdgeIndex(self.n_relations, offsets, self.relation[mask], self.target[mask], fact)

    def edges(self, entity: int, relation: int | None = None) -> slice:
        """Return the slice of an entity's edges, or of those with one relation."""
        first, last = int(self.offsets[entity]), int(self.offsets[entity + 1])
        if relation is None:
            return slice(first, last)
        low, high = np.searchsorted(self.relation[first:last], [relation, relation + 1])
        return slice(first + int(low), first + int(high))

    def edge_ranges(self, entity: Ids, relation: Ids) -> tuple[Ints, Ints]:
        """Return where the edges of many entities' relations begin and end, as `edges` does."""
        from tilp._kernels.arrays import edge_spans

        return edge_spans(self.offsets, self.relation, entity, relation)


def remaining_edges(offsets: Ints, fact: Ids, new_rows: Ids) -> tuple[Mask, Ints, Ids]:
    """Return the mask of edges that remain, their offsets by entity, and new rows of their facts.

    `new_rows` is the new row of each fact, ascending; -1 for removed facts.
    """
    new_row = new_rows[fact]
    mask = new_row >= 0
    return mask, offsets - np.searchsorted(np.flatnonzero(~mask), offsets), new_row[mask]
