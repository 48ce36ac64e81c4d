"""`CandidateHistory`: what a candidate's other facts say of a query's dates, in words with weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.candidate_history import (
    FAR,
    N_ALLEN,
    DistanceBins,
    FactEdges,
    FactGroups,
    NearestFacts,
    add_history_scores,
    add_history_scores_of_all,
    list_history_features,
    nearest_facts,
)
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import read_only_tuple
from tilp.graph import QueryTable, TemporalGraph
from tilp.time import Allen, known_ends
from tilp.types import Unit

HISTORY_KINDS = ("other facts", "facts with the subject")

_EXACT = 10  # distances up to it have a word each
_GROWTH = 1.22  # from one bound to the next, past that
_SMALL = 4096  # distances whose words are looked up in a table
_SPREAD = (0.005, 0.995)  # of all times, between which distances are told apart

_MOST_KEPT = 2**24  # numbers that are kept of facts nearest to intervals that were asked for
_WORDS_SIZE = 6  # numbers that are kept for each interval of a fact

_DISTANCES = ("start to start", "end to start", "start to end")
"""Of the fact to the query."""

_VERBS = ("meets", "overlaps", "starts", "finishes", "equals", "contains")
_AT_ONCE = {
    Unit.YEAR: "in the year",
    Unit.MONTH: "in the month",
    Unit.DAY: "on the day",
    Unit.INTEGER: "when",
}


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
    return read_only_tuple(
        FactEdges(
            index.offsets,
            index.relation,
            index.target,
            index.fact,
            start[index.fact],
            end[index.fact],
            interval.reshape(-1)[index.fact].astype(np.int32),
            *(np.ascontiguousarray(one) for one in distinct),
        )
    )


def _fact_groups(edges: FactEdges) -> FactGroups:
    """The edges by entity and relation, and by relation and interval."""
    source = np.repeat(np.arange(len(edges.offsets) - 1), np.diff(edges.offsets))
    new = np.ones(len(source) + 1, np.bool_)
    new[1:-1] = (np.diff(source) != 0) | (np.diff(edges.relation) != 0)
    begin = np.flatnonzero(new)
    n_intervals = max(len(edges.starts), 1)
    key = edges.relation.astype(np.int64) * n_intervals + edges.interval
    pairs, pair = np.unique(key, return_inverse=True)
    return read_only_tuple(
        FactGroups(
            np.searchsorted(begin, edges.offsets),
            begin,
            pair.astype(np.int32),
            pairs // n_intervals,
            pairs % n_intervals,
        )
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
    return read_only_tuple(
        edges._replace(
            offsets=index.offsets,
            relation=index.relation,
            target=index.target,
            fact=index.fact,
            start=edges.start[kept],
            end=edges.end[kept],
            interval=edges.interval[kept],
        )
    )


def listed_candidates(
    queries: QueryTable, begin: NDArray[np.int64], candidate: NDArray[np.int32]
) -> ListedCandidates:
    """Queries and their listed candidates, as kernels read them."""
    start, end = (np.clip(one, -FAR, FAR) for one in (queries.start, queries.end))
    return ListedCandidates(
        queries.subject, queries.directed_relation, start, end, queries.fact, begin, candidate
    )


@dataclass(frozen=True, slots=True)
class HistoryFact:
    """A fact of a candidate that words are said of.

    Attributes:
        kind: which of `KINDS`.
        relation: directed, read from the candidate.
        edge: the fact, as a place among the edges.
        words: what is said of it.
    """

    kind: int
    relation: int
    edge: int
    words: tuple[int, ...]


def unit_word(unit: Unit) -> str:
    """What one unit of time is called."""
    return "unit" if unit is Unit.INTEGER else unit.value


class CandidateHistory:
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
        self.bounds = bounds
        small = np.arange(min(int(bounds[-1]) + 1, _SMALL))
        self._bins = DistanceBins(bounds, np.searchsorted(bounds, small, side="right"))

    @property
    def groups(self) -> int:
        """Kinds of facts times directed relations."""
        return len(HISTORY_KINDS) * self._n_directed

    @property
    def width(self) -> int:
        """How many words a group has."""
        return N_ALLEN + 1 + len(_DISTANCES) * (2 * len(self.bounds) + 1)

    def listed(self, asked: ListedCandidates) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where the words of each candidate begin; and these, as group · width + word."""
        return list_history_features(self._edges, asked, self._bins, self._n_directed)

    def facts_of_candidate(self, asked: ListedCandidates) -> list[HistoryFact]:
        """The facts that the words for a single candidate of a single query are said of."""
        _, listed = self.listed(asked)
        words: dict[int, list[int]] = {}
        for word in listed.tolist():
            words.setdefault(word // self.width, []).append(word % self.width)
        edges = self._edges
        entity = int(asked.candidate[0])
        edge = np.arange(edges.offsets[entity], edges.offsets[entity + 1])
        edge = edge[edges.fact[edge] != asked.fact[0]]
        start, end = edges.start[edge], edges.end[edge]
        group = edges.relation[edge] + self._n_directed * (edges.target[edge] == asked.subject[0])
        gap = np.maximum(np.maximum(asked.start[0] - end, start - asked.end[0]), 0)
        order = np.lexsort((edge, np.abs(start - asked.start[0]), gap, group))
        groups, first = np.unique(group[order], return_index=True)
        return [
            HistoryFact(one // self._n_directed, one % self._n_directed, nearest, tuple(words[one]))
            for one, nearest in zip(groups.tolist(), edge[order[first]].tolist(), strict=True)
        ]

    def add(
        self,
        asked: ListedCandidates,
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
        add_history_scores(
            self._edges, asked, self._bins, self._n_directed, row_of, weight, kinds, score
        )

    def add_of_all(
        self,
        asked: ListedCandidates,
        row_of: NDArray[np.int32],
        weight: NDArray[np.float64],
        score: NDArray[np.float64],
    ) -> None:
        """Add the weights of words to the scores of all entities, a row for each query."""
        order = np.lexsort((asked.directed_relation, asked.end, asked.start))
        new = (np.diff(asked.start[order]) != 0) | (np.diff(asked.end[order]) != 0)
        for queries in np.split(order, np.flatnonzero(new) + 1) if len(order) else ():
            add_history_scores_of_all(
                self._edges,
                self._groups,
                self._nearest_to(int(asked.start[queries[0]]), int(asked.end[queries[0]])),
                asked,
                queries,
                self._bins,
                self._n_directed,
                row_of,
                weight,
                score,
            )

    def __getstate__(self) -> dict[str, Any]:
        # What is kept of the intervals asked for last is of one process.
        return {name: value for name, value in vars(self).items() if name != "_nearest_to"}

    def prepare_for_all(self) -> None:
        """Make what `add_of_all` needs, before several ask for it at once."""
        self._groups  # noqa: B018

    @cached_property
    def _groups(self) -> FactGroups:
        return _fact_groups(self._edges)

    @cached_property
    def _nearest_to(self) -> Callable[[int, int], NearestFacts]:
        """The facts nearest to an interval; of the intervals asked for last they are kept."""
        numbers = len(self._groups.begin) + _WORDS_SIZE * len(self._edges.starts)

        @lru_cache(1 + _MOST_KEPT // numbers)
        def found(start: int, end: int) -> NearestFacts:
            return nearest_facts(self._edges, self._groups, start, end, self._bins)

        return found

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
        of_fact, of_query, away = self._distance(word, unit)
        if not away:
            return f"its {of_fact} at the query's {of_query}"
        return f"its {of_fact} {away} the query's {of_query}"

    def clause(self, word: int, unit: Unit) -> str:
        """The same as a clause that follows the fact: `ends in the year the query starts`."""
        if word < N_ALLEN:
            relation = tuple(Allen)[word].value
            verb = relation if relation in _VERBS else f"is {relation.replace('-by', ' by')}"
            return f"{verb} the query's time"
        if word == N_ALLEN:
            return "is at a time that is not known"
        of_fact, of_query, away = self._distance(word, unit_word(unit))
        return f"{of_fact}s {away or _AT_ONCE[unit]} the query {of_query}s"

    def _distance(self, word: int, unit: str) -> tuple[str, str, str]:
        """Which ends of fact and query a word compares, and how far apart; nothing: not at all."""
        which, place = divmod(word - N_ALLEN - 1, 2 * len(self.bounds) + 1)
        of_fact, of_query = _DISTANCES[which].split(" to ")
        steps = place - len(self.bounds)
        if not steps:
            return of_fact, of_query, ""
        low = int(self.bounds[abs(steps) - 1])
        high = int(self.bounds[abs(steps)]) - 1 if abs(steps) < len(self.bounds) else None
        length = f"{low}+" if high is None else f"{low}" if low == high else f"{low}-{high}"
        many = unit if length == "1" else f"{unit}s"
        side = "after" if steps > 0 else "before"
        return of_fact, of_query, f"{length} {many} {side}"
