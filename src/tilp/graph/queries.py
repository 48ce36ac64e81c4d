"""`QueryTable`: queries as columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilp.graph.temporal_graph import TemporalGraph
from tilp.intervals import known_ends

__all__ = ["QueryTable"]


@dataclass(frozen=True)
class QueryTable:
    """Queries (subject, relation, ?, interval) as columns, in any order.

    Attributes:
        subject: where walks begin.
        head: the relation asked for; past the last relation its inverse.
        start: of the query interval; likewise `end`.
        fact: the fact that the query was made from, which is not walked; -1 for none.
        answer: the known answer; -1 for none.
    """

    subject: NDArray[np.int32]
    head: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    fact: NDArray[np.int32]
    answer: NDArray[np.int32]

    @classmethod
    def of_facts(cls, graph: TemporalGraph, rows: NDArray[np.int64], *, walked: bool) -> QueryTable:
        """Facts asked in both directions: first all (s, r, ?, I), then all (o, r⁻¹, ?, I).

        Args:
            graph: whose facts.
            rows: the facts.
            walked: whether they are among the edges that are walked on, and so left out.
        """
        subject, object_ = graph.subject[rows], graph.object[rows]
        relation = graph.relation[rows]
        start, end = known_ends(graph.start[rows], graph.end[rows])
        fact = np.where(walked, rows, -1).astype(np.int32)
        return cls(
            subject=np.concatenate([subject, object_]),
            head=np.concatenate([relation, relation + np.int32(len(graph.relations))]),
            start=np.tile(start, 2),
            end=np.tile(end, 2),
            fact=np.tile(fact, 2),
            answer=np.concatenate([object_, subject]),
        )

    def unanswered(self) -> QueryTable:
        """The same queries without their answers."""
        return replace(self, answer=np.full_like(self.answer, -1))

    def __len__(self) -> int:
        return len(self.subject)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> QueryTable:
        return QueryTable(
            self.subject[rows],
            self.head[rows],
            self.start[rows],
            self.end[rows],
            self.fact[rows],
            self.answer[rows],
        )
