"""Scorers that any model must beat: what is asked for most, and what train already says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp.evaluation.scores import Scorer, Scores
from tilp.graph import QueryTable, TemporalGraph
from tilp.spans import places_in

__all__ = ["popularity", "recurrence"]


def popularity(graph: TemporalGraph) -> Scorer:
    """Each candidate scores the number of train facts in which it answers the relation.

    The relation is taken in the direction that is asked; the query's subject and dates are not
    looked at.
    """
    lists = _Lists(graph, by_entity=False)
    return lambda queries: lists.scores(queries.head.astype(np.int64))


def recurrence(graph: TemporalGraph) -> Scorer:
    """Each candidate scores the number of train facts that give it as an answer to the query.

    The dates are not looked at.
    """
    lists = _Lists(graph, by_entity=True)
    heads = 2 * len(graph.relations)

    def score(queries: QueryTable) -> Scores:
        return lists.scores(queries.subject.astype(np.int64) * heads + queries.head)

    return score


class _Lists:
    """Train's answers by key, with how often each is one."""

    def __init__(self, graph: TemporalGraph, *, by_entity: bool) -> None:
        rows = graph.span("train")
        subject, object_ = graph.subject[rows], graph.object[rows]
        relations = len(graph.relations)
        head = np.concatenate([graph.relation[rows], graph.relation[rows] + relations])
        key = head.astype(np.int64)
        if by_entity:
            key += np.concatenate([subject, object_]).astype(np.int64) * 2 * relations
        pairs = np.stack([key, np.concatenate([object_, subject])], axis=1)
        distinct, count = np.unique(pairs, axis=0, return_counts=True)
        self._key, self._answer = distinct[:, 0], distinct[:, 1].astype(np.int32)
        self._count = count.astype(np.float64)

    def scores(self, keys: NDArray[np.int64]) -> Scores:
        """The list of each key."""
        offsets, places = places_in(
            np.searchsorted(self._key, keys, side="left"),
            np.searchsorted(self._key, keys, side="right"),
        )
        return Scores(offsets, self._answer[places], self._count[places])
