"""Baselines that any model must beat: popular answers, and answers that recur."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import ranges_to_indices
from tilp.graph import QueryTable, TemporalGraph
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.time import gap_lengths


def popularity(graph: TemporalGraph) -> ScoreFunction:
    """Return a baseline that scores candidates by how often train has them as answers.

    Counts are by directed relation; the query's subject and dates do not matter.

    Args:
        graph: The facts, whose train split is counted.

    >>> from tilp import datasets, evaluation
    >>> graph = datasets.world(0, 1000).graph
    >>> evaluation.evaluate(popularity(graph), graph, "valid").metrics().mrr > 0
    True
    """
    facts = _train_facts(graph)
    key = facts.directed_relation.astype(np.int64)
    order = np.lexsort((facts.answer, key))
    first = _changes(key[order], facts.answer[order])
    key, candidate = key[order][first], facts.answer[order][first]
    count = np.diff(np.append(first, len(order))).astype(np.float64)

    def score(queries: QueryTable) -> Scores:
        offsets, rows = _rows_of(key, queries.directed_relation.astype(np.int64))
        return Scores(offsets, candidate[rows], count[rows])

    return score


def recurrence(graph: TemporalGraph) -> ScoreFunction:
    """Return a baseline that scores candidates by the train facts that answer the query.

    A fact counts 1 / (1 + the time between its interval and the query's): 1 if they touch, and
    less the farther it is. A missing date counts as the known one, and an interval without any
    date touches every other.

    Args:
        graph: The facts, whose train split has the answers.

    >>> from tilp import datasets, evaluation
    >>> graph = datasets.world(0, 1000).graph
    >>> evaluation.evaluate(recurrence(graph), graph, "valid").metrics().mrr > 0
    True
    """
    n_directed = 2 * len(graph.relations)
    facts = _train_facts(graph)
    key = facts.subject.astype(np.int64) * n_directed + facts.directed_relation
    order = np.lexsort((facts.answer, key))
    key, facts = key[order], facts[order]

    def score(queries: QueryTable) -> Scores:
        wanted = queries.subject.astype(np.int64) * n_directed + queries.directed_relation
        offsets, rows = _rows_of(key, wanted)
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        times = facts.start[rows], facts.end[rows]
        gap = gap_lengths(*times, queries.start[query], queries.end[query])
        candidate = facts.answer[rows]
        first = _changes(query, candidate)
        offsets = np.searchsorted(query[first], np.arange(len(queries) + 1))
        sums = np.add.reduceat(1.0 / (1.0 + gap), first) if len(first) else gap
        return Scores(offsets, candidate[first], sums)

    return score


def _train_facts(graph: TemporalGraph) -> QueryTable:
    """Return the train facts as the queries that they answer."""
    return QueryTable.of_facts(graph, np.asarray(graph.rows("train"), np.int64), walked=True)


def _changes(first: NDArray[np.int64], second: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the indices at which either column changes."""
    return np.flatnonzero(
        (np.diff(first, prepend=-1) != 0) | (np.diff(second, prepend=np.int32(-1)) != 0)
    )


def _rows_of(
    keys: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return offsets and rows of each wanted key among ascending ones."""
    return ranges_to_indices(
        np.searchsorted(keys, wanted, side="left"), np.searchsorted(keys, wanted, side="right")
    )
