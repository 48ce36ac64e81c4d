"""Baselines that any model must beat: popular answers, and answers that train already has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import ranges_to_indices
from tilp.graph import QueryTable, TemporalGraph
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.time import gap_lengths


def popularity(graph: TemporalGraph) -> ScoreFunction:
    """Each candidate scores the number of train facts in which it answers the relation.

    The relation is taken in the direction that is asked; the query's subject and dates are not
    looked at.
    """
    facts = _train_facts(graph)
    key = facts.directed_relation.astype(np.int64)
    order = np.lexsort((facts.answer, key))
    first = _changes(key[order], facts.answer[order])
    key, candidate = key[order][first], facts.answer[order][first]
    count = np.diff(np.append(first, len(order))).astype(np.float64)

    def score(queries: QueryTable) -> Scores:
        offsets, places = _spans(key, queries.directed_relation.astype(np.int64))
        return Scores(offsets, candidate[places], count[places])

    return score


def recurrence(graph: TemporalGraph) -> ScoreFunction:
    """Each candidate scores the train facts that give it as an answer to the query.

    A fact counts 1 / (1 + the time between its interval and the query's): 1 where they touch,
    and less the farther it is. The known end of an interval serves for both, and one of which
    nothing is known touches every other.
    """
    heads = 2 * len(graph.relations)
    facts = _train_facts(graph)
    key = facts.subject.astype(np.int64) * heads + facts.directed_relation
    order = np.lexsort((facts.answer, key))
    key, facts = key[order], facts[order]

    def score(queries: QueryTable) -> Scores:
        offsets, places = _spans(
            key, queries.subject.astype(np.int64) * heads + queries.directed_relation
        )
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        times = facts.start[places], facts.end[places]
        gap = gap_lengths(*times, queries.start[query], queries.end[query])
        candidate = facts.answer[places]
        first = _changes(query, candidate)
        begins = np.searchsorted(query[first], np.arange(len(queries) + 1))
        # No sum is asked for where nothing is listed.
        sums = np.add.reduceat(1.0 / (1.0 + gap), first) if len(first) else gap
        return Scores(begins, candidate[first], sums)

    return score


def _train_facts(graph: TemporalGraph) -> QueryTable:
    """Train's facts, as the queries that they answer."""
    return QueryTable.of_facts(graph, np.asarray(graph.rows("train"), np.int64), walked=True)


def _changes(first: NDArray[np.int64], second: NDArray[np.int32]) -> NDArray[np.int64]:
    """The places at which either column is another than before."""
    return np.flatnonzero(
        (np.diff(first, prepend=-1) != 0) | (np.diff(second, prepend=np.int32(-1)) != 0)
    )


def _spans(
    keys: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of each wanted key among ascending ones, as `ranges_to_indices` gives them."""
    return ranges_to_indices(
        np.searchsorted(keys, wanted, side="left"), np.searchsorted(keys, wanted, side="right")
    )
