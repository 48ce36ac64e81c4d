"""`OwnFacts`: what a candidate's other facts say of a query's dates, in words with weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.own_facts import (
    FAR,
    N_ALLEN,
    AskedAt,
    Bins,
    FactEdges,
    add_own_facts,
    list_own_facts,
)
from tilp.graph import QueryTable, TemporalGraph
from tilp.intervals import Allen, known_ends

__all__ = ["KINDS", "OwnFacts", "asked_at", "distance_bounds", "fact_edges", "fact_edges_without"]

KINDS = ("other facts", "facts with the subject")

_EXACT = 10  # distances up to it have a word each
_GROWTH = 1.22  # from one bound to the next, past that
_SMALL = 4096  # distances whose words are looked up in a table
_SPREAD = (0.005, 0.995)  # of all times, between which distances are told apart

_DISTANCES = ("start to start", "end to start", "start to end")
"""Of the fact to the query."""


def distance_bounds(graph: TemporalGraph) -> NDArray[np.int64]:
    """From which distances of times on a new word begins: single units first, then ever longer."""
    train = graph.span("train")
    times = np.concatenate(known_ends(graph.start[train], graph.end[train]))
    times = times[np.abs(times) < FAR]
    low, high = np.quantile(times, _SPREAD) if len(times) else (0.0, 0.0)
    bounds = list(range(1, _EXACT + 1))
    while bounds[-1] < high - low:
        bounds.append(max(bounds[-1] + 1, round(bounds[-1] * _GROWTH)))
    return np.array(bounds, np.int64)


def fact_edges(graph: TemporalGraph) -> FactEdges:
    """The edges of a graph's train split, with their times."""
    index = graph.index(("train",))
    start, end = (np.clip(one, -FAR, FAR) for one in known_ends(graph.start, graph.end))
    distinct, interval = np.unique(np.stack([start, end]), axis=1, return_inverse=True)
    return FactEdges(
        index.offsets,
        index.relation,
        index.target,
        index.fact,
        start[index.fact],
        end[index.fact],
        interval.reshape(-1)[index.fact].astype(np.int32),
        distinct.shape[1],
    )


def fact_edges_without(
    edges: FactEdges, numbers: NDArray[np.int32], left: TemporalGraph
) -> FactEdges:
    """The edges of a graph that is left without some facts; intervals keep their numbers.

    Args:
        edges: all of them.
        numbers: of each fact the new one; -1: it is left out.
        left: the graph without these.
    """
    index = left.index(("train",))
    kept = numbers[edges.fact] >= 0
    return edges._replace(
        offsets=index.offsets,
        relation=index.relation,
        target=index.target,
        fact=index.fact,
        start=edges.start[kept],
        end=edges.end[kept],
        interval=edges.interval[kept],
    )


def asked_at(
    queries: QueryTable, begin: NDArray[np.int64], candidate: NDArray[np.int32]
) -> AskedAt:
    """Queries and their listed candidates, as kernels read them."""
    start, end = (np.clip(one, -FAR, FAR) for one in (queries.start, queries.end))
    return AskedAt(queries.subject, queries.head, start, end, queries.fact, begin, candidate)


class OwnFacts:
    """Describes the facts of candidates by their times against the query's.

    Of each relation that a candidate has facts of, the one nearest to the query's interval is
    described, facts with the query's subject apart from others: by Allen's relation, and by three
    signed distances. A group is a kind of facts and a relation, and has a weight for each word.

    Args:
        edges: the facts.
        n_directed: directed relations.
        bounds: of distances.
    """

    def __init__(self, edges: FactEdges, n_directed: int, bounds: NDArray[np.int64]) -> None:
        self._edges = edges
        self._n_directed = n_directed
        self._bounds = bounds
        small = np.arange(min(int(bounds[-1]) + 1, _SMALL))
        self._bins = Bins(bounds, np.searchsorted(bounds, small, side="right"))

    @property
    def groups(self) -> int:
        """Kinds of facts times directed relations."""
        return len(KINDS) * self._n_directed

    @property
    def width(self) -> int:
        """How many words a group has."""
        return N_ALLEN + 1 + len(_DISTANCES) * (2 * len(self._bounds) + 1)

    def listed(self, asked: AskedAt) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where the words of each candidate begin; and these, as group · width + word."""
        return list_own_facts(self._edges, asked, self._bins, self._n_directed)

    def add(
        self,
        asked: AskedAt,
        row_of: NDArray[np.int32],
        weight: NDArray[np.float64],
        kinds: NDArray[np.bool_],
        score: NDArray[np.float64],
    ) -> None:
        """Add the weights of words to the scores of candidates.

        Args:
            asked: the queries.
            row_of: for each head and group the row of its weights; -1: none.
            weight: of words, row by row.
            kinds: which of `KINDS` are added.
            score: of each candidate.
        """
        add_own_facts(
            self._edges, asked, self._bins, self._n_directed, row_of, weight, kinds, score
        )

    def describe(self, word: int, unit: str) -> str:
        """What a word says of a fact and the query.

        Args:
            word: its number in a group.
            unit: of times.
        """
        if word < N_ALLEN:
            return f"{tuple(Allen)[word].value} the query's time"
        if word == N_ALLEN:
            return "at a time that is not known"
        which, place = divmod(word - N_ALLEN - 1, 2 * len(self._bounds) + 1)
        of_fact, of_query = _DISTANCES[which].split(" to ")
        steps = place - len(self._bounds)
        if not steps:
            return f"its {of_fact} at the query's {of_query}"
        low = int(self._bounds[abs(steps) - 1])
        high = int(self._bounds[abs(steps)]) - 1 if abs(steps) < len(self._bounds) else None
        length = f"{low}+" if high is None else f"{low}" if low == high else f"{low}-{high}"
        many = unit if length == "1" else f"{unit}s"
        side = "after" if steps > 0 else "before"
        return f"its {of_fact} {length} {many} {side} the query's {of_query}"
