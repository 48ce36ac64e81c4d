"""Counts of a candidate: its facts, how often it is an answer, if it is known, and its kind."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from tilp._utils.arrays import Floats, Ids, Indices
from tilp.features.entity_kinds import EntityKinds
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import KNOWN_KINDS, KnownAnswers, Mark, PopularityPrior
from tilp.learning.candidates import CountsByStart, train_starts

DEGREE, POPULARITY, KNOWN, KIND = "degree", "popularity", "known at another time", "kind"
COUNT_FEATURES = (DEGREE, POPULARITY, *(f"known {kind}" for kind in KNOWN_KINDS), KIND)
COUNT_PARTS = {
    DEGREE: slice(0, 1), POPULARITY: slice(1, 2), KNOWN: slice(2, -1), KIND: slice(-1, None)
}  # fmt: skip
"""Columns of `COUNT_FEATURES` that each contribution is made of."""


class CandidateCounts:
    """Features that count facts of candidates in train, without the query's own fact.

    `degree` is the logarithm of 1 + the candidate's facts, relative to the median of entities with
    facts; `popularity` that of 1 + the facts that have it as an answer of the query's relation. The
    next are 1 for an answer that is known at another time, by when that is. `kind` is 1 for a
    candidate of a kind that the relation never has as an answer.
    """

    def __init__(
        self, graph: TemporalGraph, prior: PopularityPrior, kinds: EntityKinds | None = None
    ) -> None:
        self._graph = graph
        self._prior = prior
        self._degree = np.diff(graph.index(("train",)).offsets)
        of_seen = np.log1p(self._degree[self._degree > 0])
        self._typical = float(np.median(of_seen)) if len(of_seen) else 0.0
        if kinds is not None:
            self.kinds = kinds
        self._by_start: CountsByStart | None = None
        if prior.starts is not None:
            train, self._typical = graph.span("train"), 0.0  # a median would be of later facts
            ends, starts = [graph.subject[train], graph.object[train]], train_starts(graph)
            self._by_start = CountsByStart(np.concatenate(ends), np.tile(starts, 2))

    @cached_property
    def kinds(self) -> EntityKinds:
        """Kinds of entities in train."""
        return EntityKinds(self._graph)

    def facts(self, query: QueryTable, candidate: int) -> int:
        """Return how many facts a candidate of a single query has."""
        return int(self._degrees(np.array([candidate], np.int32), query.latest)[0])

    def _degrees(self, candidate: Ids, latest: Indices) -> Indices:
        if self._by_start is None:
            return np.asarray(self._degree[candidate])
        return self._by_start(candidate, latest)

    def features(
        self, queries: QueryTable, known: KnownAnswers, offsets: Indices, candidate: Ids
    ) -> Floats:
        """Return the `COUNT_FEATURES` of the listed candidates of queries, a row for each."""
        graph, n_entities = self._graph, len(self._degree)
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        fact, relation = queries.fact[query], queries.directed_relation[query]
        latest = queries.latest[query]
        fact = np.where(latest >= queries.start[query], fact, -1)  # else it is not counted
        is_forward = relation < len(graph.relations)
        is_subject = (fact >= 0) & (graph.subject[fact] == candidate)
        is_object = (fact >= 0) & (graph.object[fact] == candidate)
        count, _ = self._prior.counts(relation, candidate, latest)
        degree = self._degrees(candidate, latest)
        features = np.zeros((len(candidate), len(COUNT_FEATURES)))
        features[:, 0] = np.log1p(degree - is_subject - is_object) - self._typical
        features[:, 1] = np.log1p(count - np.where(is_forward, is_object, is_subject))
        of_known = np.repeat(np.arange(len(queries)), np.diff(known.offsets))
        keys = np.append(of_known * n_entities + known.entity, -1)  # one for an index past the last
        index = np.searchsorted(keys[:-1], query * n_entities + candidate)
        row = np.flatnonzero(keys[index] == query * n_entities + candidate)
        features[row, 2 + known.mark[index[row]] - Mark.KNOWN] = 1.0
        if self._by_start is None:  # kinds would be those of later facts too
            features[:, -1] = self.kinds.never(queries, offsets, candidate)
        return features

    def add_to_all(
        self, queries: QueryTable, known: KnownAnswers, weight: Floats, score: Floats
    ) -> None:
        """Add the weighted features to the scores of all entities, a row for each query, in place.

        Those of a relation and time are the same, but for known answers and the query's own fact.
        """
        n = len(self._degree)
        of_known = np.repeat(np.arange(len(queries)), np.diff(known.offsets))
        own = np.flatnonzero(queries.fact >= 0)
        ends = (self._graph.subject[queries.fact[own]], self._graph.object[queries.fact[own]])
        query = np.concatenate([of_known, own, own])
        keys = np.unique(query * n + np.concatenate([known.entity, *ends]))
        query, entity = np.divmod(keys, n)
        offsets = np.searchsorted(query, np.arange(len(queries) + 1))
        of_relation = weight[queries.directed_relation[query]]
        exact = self.features(queries, known, offsets, entity.astype(np.int32))
        before = score[query, entity]
        alike = np.lexsort((queries.latest, queries.directed_relation))
        columns = np.stack([queries.directed_relation, queries.latest])[:, alike]
        new = (np.diff(columns) != 0).any(axis=0)
        for rows in np.split(alike, np.flatnonzero(new) + 1) if len(alike) else ():
            one = replace(queries[rows[:1]], fact=np.array([-1], np.int32))
            score[rows] += self._of_all(one, weight[one.directed_relation[0]])
        score[query, entity] = before + (exact * of_relation).sum(axis=1)

    def _of_all(self, query: QueryTable, weight: Floats) -> Floats:
        """Return the weighted features of all entities for a query without known answers."""
        n = len(self._degree)
        none = np.empty(0, np.int8)
        known = KnownAnswers(np.zeros(2, np.int64), none.astype(np.int32), none, none)
        listed = np.array([0, n]), np.arange(n, dtype=np.int32)
        return np.asarray((self.features(query, known, *listed) * weight).sum(axis=1))
