"""`Batch`: queries cut into chunks of work that need little memory and have much in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.ranking.best import Best, BestOf
from tilp.ranking.joint import JointScorer
from tilp.ranking.model_scorer import ModelScorer, rules_of

__all__ = ["Batch", "ask_all"]

_ROOM = 2**22
"""Numbers that the scores of a chunk may take, about."""
_STEPS_A_NUMBER = 8
"""Steps of walks that leave one number behind, about: most are counted together."""
_MOST = 2**11
"""Queries of a chunk: beyond it there is nothing more to share."""


class Batch:
    """Some queries in chunks, those of one subject together, and each that is asked twice once.

    Chunks depend on the queries and the evidence alone.

    Args:
        table: the queries.
        scorer: that they are asked of; its walks tell what they cost.
        apart: whether queries that are the same stay apart.

    Attributes:
        rows: the queries of each chunk.
    """

    def __init__(self, table: QueryTable, scorer: ModelScorer, *, apart: bool = False) -> None:
        start, end = table.given()
        columns = (table.subject, table.head, start, end)
        order = np.lexsort(columns[::-1])
        new = np.full(len(order), apart)
        new[:1] = True
        for column in columns:
            new[1:] |= np.diff(column[order]) != 0
        self._table = table
        self._number = np.empty(len(order), np.int64)
        self._number[order] = np.cumsum(new) - 1
        asked = order[new]
        self.rows = np.split(asked, _cuts(table[asked], scorer))

    @property
    def chunks(self) -> list[QueryTable]:
        """The queries that are scored, at least one chunk of them."""
        return [self._table[rows] for rows in self.rows]

    def together(self, found: Sequence[Best]) -> Best:
        """What was found for each chunk, as one, in the order of the queries."""
        return Best.join(found).take(self._number)


def ask_all(ask: BestOf, table: QueryTable, workers: Workers) -> Best:
    """The best candidates of any number of queries; workers do not change them."""
    batch = Batch(table, ask.scorer)
    return batch.together(list(workers.map(ask, batch.chunks)))


def _cuts(table: QueryTable, scorer: ModelScorer) -> NDArray[np.int64]:
    """Where chunks of queries begin, but for the first."""
    rules = rules_of(scorer)
    listed = np.diff(rules.prior.begin)[table.head]
    if isinstance(scorer, JointScorer) and scorer.lists_all:
        listed = np.full(len(table), rules.prior.n_entities)
    room = listed + rules.walker.steps_from[table.subject] / _STEPS_A_NUMBER
    return np.flatnonzero(np.diff(np.cumsum(np.maximum(room, _ROOM / _MOST)) // _ROOM)) + 1
