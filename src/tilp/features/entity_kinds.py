"""Kinds of entities: of which relations they have facts, and which kinds a relation has."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from tilp._utils.arrays import Floats, Ids, Indices, Mask, ranges_to_indices
from tilp.graph import QueryTable, TemporalGraph

_MAX_DRAWN = 5_000  # entities from which the share of each kind is estimated
_NEVER = 2.0  # factor of the weight where no answer is of such a kind: it shall rank behind all


class EntityKinds:
    """The directed relations that entities have facts of in train, and which go together.

    An entity is of a kind that a directed relation has as an answer if it is one, or if another
    answer has a relation in common with it.
    """

    def __init__(self, graph: TemporalGraph) -> None:
        index, n = graph.index(("train",)), len(graph.entities)
        self._n_relations = len(graph.relations)
        self._object, self._subject = graph.object, graph.subject
        source = np.repeat(np.arange(n), np.diff(index.offsets))
        new = (np.diff(source, prepend=-1) != 0) | (np.diff(index.relation, prepend=-1) != 0)
        first = np.flatnonzero(new)  # edge of each entity and relation
        self._relation, self._count = index.relation[first], np.diff(first, append=len(new))
        self._offsets = np.searchsorted(first, index.offsets)
        ones = np.ones(len(first), np.int32), self._relation, self._offsets
        has = csr_array(ones, shape=(n, 2 * self._n_relations))
        self._together = (has.T @ has).toarray()  # entities that have facts of both
        self._never: dict[int, Mask] = {}  # what `_never_of` returned

    def relations(self, entity: int) -> Ids:
        """Return the directed relations that an entity has facts of."""
        return self._relation[self._offsets[entity] : self._offsets[entity + 1]]

    def usual_subjects(self, relation: int, min_share: float) -> Mask:
        """Mask entities that have one, or a relation that many subjects of a relation have too."""
        together = self._together[relation]
        usual = together >= np.maximum(min_share * together[relation], 1)
        total = np.append(0, np.cumsum(usual[self._relation]))[self._offsets]
        return np.diff(total) > 0

    def never(self, queries: QueryTable, offsets: Indices, candidate: Ids) -> Mask:
        """Mask listed candidates that have facts, but of no kind that the query's relation has.

        The query's own fact does not make its answer one.
        """
        relation, fact = queries.directed_relation, queries.fact
        is_forward = relation < self._n_relations
        as_answer = relation + np.where(is_forward, 1, -1) * self._n_relations
        sizes = np.diff(offsets)
        never = np.empty(len(candidate), np.bool_)
        of_row = np.repeat(as_answer, sizes)
        for each in np.unique(as_answer).tolist():
            rows = slice(None) if (as_answer == each).all() else of_row == each
            never[rows] = self._never_of(each)[candidate[rows]]
        answer = np.where(is_forward, self._object[fact], self._subject[fact])
        own = np.flatnonzero(candidate == np.repeat(np.where(fact >= 0, answer, -1), sizes))
        never[own] = self._never_alone(of_row[own], candidate[own])
        return never

    def _never_of(self, as_answer: int) -> Mask:
        """Mask the entities with facts, but of no kind of those that a relation leads from."""
        if as_answer not in self._never:
            fits = (self._together[as_answer] > 0)[self._relation]
            n_fitting = np.append(0, np.cumsum(fits))[self._offsets]
            self._never[as_answer] = (np.diff(n_fitting) == 0) & (np.diff(self._offsets) > 0)
        return self._never[as_answer]

    def _never_alone(self, as_answer: Indices, candidate: Ids) -> Mask:
        """Mask candidates likewise, each without one fact of the relation that it would fit by."""
        n = len(candidate)
        first, last = self._offsets[candidate], self._offsets[candidate + 1]
        row_offsets, pair = ranges_to_indices(first, last)
        row = np.repeat(np.arange(n), np.diff(row_offsets))
        of_answer = self._relation[pair] == as_answer[row]
        alone = np.zeros(n, np.bool_)  # with a single fact as an answer: its own
        alone[row[of_answer & (self._count[pair] == 1)]] = True
        counted = ~(of_answer & alone[row])
        shared = self._together[as_answer[row], self._relation[pair]] > alone[row]
        fits = np.bincount(row, counted & shared, n) > 0
        return ~fits & (np.bincount(row, counted, n) > 0)

    def weights(self, queries: QueryTable, seed: int) -> Floats:
        """Return for each directed relation what a candidate of a kind it never has loses.

        It is the logarithm of an odds ratio: how rarely the answers of queries, without their own
        facts, are of such a kind, against all entities; doubled where none is. Never above 0.
        """
        n_directed, n = 2 * self._n_relations, len(self._offsets) - 1
        never = self.never(queries, np.arange(len(queries) + 1), queries.answer)
        asked = np.bincount(queries.directed_relation, minlength=n_directed)
        odd = np.bincount(queries.directed_relation, never, n_directed)
        drawn = np.arange(n, dtype=np.int32)
        if n > _MAX_DRAWN:
            drawn = np.sort(np.random.default_rng(seed).choice(drawn, _MAX_DRAWN, replace=False))
        weights = np.zeros(n_directed)
        for relation in np.unique(queries.directed_relation):
            one = queries[np.flatnonzero(queries.directed_relation == relation)[:1]]
            one = replace(one, fact=np.array([-1], np.int32))
            others = self.never(one, np.array([0, len(drawn)]), drawn).sum()
            odds = (odd[relation] + 0.5) / (asked[relation] - odd[relation] + 0.5)
            of_all = (others + 0.5) / (len(drawn) - others + 0.5)
            strength = 1.0 if odd[relation] else _NEVER
            weights[relation] = strength * min(np.log(odds / of_all), 0.0)
        return weights
