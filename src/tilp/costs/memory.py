"""Memory of a graph and of walking on it, from the widths of its columns."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GraphSize"]

_NUMBER, _TIME = 4, 8  # bytes of an entity, a relation or a fact; of a time or an offset
_COUNTS = 4 << 18  # bytes to count in, of one worker
_PAGE = 4096
_CELLS, _CELL = 5, 16  # of a row of a table, and bytes of one beside long text
_OF_STEP = 100  # bytes of a walk under way: its edges, words, body, code and counts


@dataclass(frozen=True)
class GraphSize:
    """How large a graph is.

    Attributes:
        facts: in all splits.
        train: of these, those that are walked on.
        entities: how many.
        label_bytes: of all names of entities.
    """

    facts: int
    train: int
    entities: int
    label_bytes: int = 0

    def scaled(self, facts: int) -> GraphSize:
        """A graph of so many facts that is as dense, and has names as long."""
        times = facts / self.facts
        return GraphSize(
            facts,
            round(self.train * times),
            round(self.entities * times),
            round(self.label_bytes * times),
        )

    @property
    def edges(self) -> int:
        """Facts that are walked on, from both their ends."""
        return 2 * self.train

    @property
    def columns(self) -> int:
        """Bytes of the facts: three numbers, two times, the places of two texts, two marks."""
        return self.facts * (3 * _NUMBER + 2 * _TIME + 2 * _NUMBER + 2)

    @property
    def index(self) -> int:
        """Bytes of the edges by entity: relation, target and fact of each, offsets."""
        return self.edges * 3 * _NUMBER + (self.entities + 1) * _TIME

    @property
    def walker(self) -> int:
        """Bytes that walking adds, for all workers.

        Of each edge its times, ranks, source, interval and inverse; of each fact its times; of
        each entity its steps.
        """
        of_edge = 2 * _TIME + 5 * _NUMBER
        return self.edges * of_edge + self.facts * 2 * _TIME + self.entities * _TIME

    @property
    def whole(self) -> int:
        """Bytes of all that, and of the names, as they stay."""
        # Names are kept as text and as a table to find them by.
        return self.columns + self.index + self.walker + 2 * self.label_bytes + 24 * self.entities

    @property
    def building(self) -> int:
        """Bytes that are needed besides while the order of the edges is found."""
        return self.edges * 3 * _TIME

    @property
    def reading(self) -> int:
        """Bytes that are taken while a table of the facts is read: its cells, and the columns."""
        names = 2 * self.label_bytes // max(self.entities, 1)
        return self.facts * (_CELLS * _CELL + names) + self.columns

    def worker(self, length: int, touched: float, steps: float) -> float:
        """Bytes that one worker takes beside that, at the most.

        Its arrays have a place for each entity, fact or edge, but pages that it does not come to
        take nothing.

        Args:
            length: of walks.
            touched: entities that the walks of one chunk come to.
            steps: of the walks of one length from one entity, at the most.
        """
        pages = touched * _PAGE
        finding = (length + 1) * min(pages, self.entities * _TIME) + min(pages, self.edges * _TIME)
        walking = min(pages, self.entities * _NUMBER) + min(pages, self.facts * _NUMBER) + _COUNTS
        return max(finding, walking) + steps * _OF_STEP
