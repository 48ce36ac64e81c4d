"""Learn the weights of evidence for starts, and for ends given the starts, relation by relation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from tilp._kernels.date_evidence import DateTable, add_date_likelihood
from tilp._utils.arrays import Floats, Ids, Ints, Mask
from tilp._utils.random import keyed_sample, keyed_uniform
from tilp.graph import TemporalGraph
from tilp.parallel import Workers
from tilp.time import OPEN_END
from tilp.time.bins import make_edges
from tilp.time_prediction.evidence import (
    END_FEATURES,
    START_FEATURES,
    DatedFacts,
    DateTarget,
    Values,
    finite,
)
from tilp.time_prediction.model import (
    N_GENERIC,
    POOLED,
    RelationWeights,
    TimeModel,
    generic_groups,
    prior_weights,
)


@dataclass(frozen=True)
class TimeTraining:
    """Settings of the training of a time model."""

    max_queries: int = 6_000  # most facts of a relation to learn from
    n_by_density: int = 48  # candidate dates of each fact, sampled by the relation's density
    n_uniform: int = 24  # further ones, sampled among all
    n_bins: int = 40  # of distances, on each side of 0
    dense_l2: float = 10.0  # regularisation of the weights of densities
    sparse_l2: float = 4.0  # and of those of bins of distances
    max_steps: int = 30  # of the optimiser
    min_facts: int = 20  # fewer leave a relation with the densities alone
    drop: float = 0.5  # share of facts learned without the subject's others of the same start
    seed: int = 0


def fit_time_model(
    graph: TemporalGraph, settings: TimeTraining, workers: Workers,
    progress: Callable[[float], None] = lambda _: None,
) -> TimeModel:  # fmt: skip
    """Learn a time model from the dated training facts of a graph."""
    facts = DatedFacts(graph)
    edges = make_edges(_typical_distances(facts, settings.seed), graph.unit, settings.n_bins)
    learner = DateLearner(facts, edges, settings)
    weights = []
    # Sums of linear algebra depend on its threads.
    with threadpool_limits(limits=1, user_api="blas"):
        pooled = tuple(workers.map(learner, [(POOLED, 0), (POOLED, 1)]))
        jobs = [(relation, of_end) for relation in range(facts.n_relations) for of_end in (0, 1)]
        for index, of_relation in enumerate(workers.map(replace(learner, pooled=pooled), jobs)):
            weights.append(of_relation)
            progress((index + 1) / len(jobs))
    sides = ((*weights[side::2], pooled[side]) for side in (0, 1))
    return TimeModel(tuple(graph.relations), edges, *sides)


def _typical_distances(facts: DatedFacts, seed: int) -> Ints:
    """Return distances between successive starts of an entity's facts, of any relation."""
    runs = facts.runs[0]
    if not len(runs.start):
        return np.empty(0, np.int64)
    entity = np.repeat(np.arange(len(runs.offsets) - 1), np.diff(runs.start_offsets[runs.offsets]))
    order = np.lexsort((keyed_uniform(seed, runs.start_fact), entity))
    differences = np.diff(runs.start[order])
    return differences[np.diff(entity[order]) == 0]


@dataclass(frozen=True)
class DateLearner:
    """Learns the weights of one relation, for starts or for ends."""

    facts: DatedFacts
    edges: Ints
    settings: TimeTraining
    pooled: tuple[RelationWeights, ...] = ()  # of all relations together, for starts and for ends

    def __call__(self, job: tuple[int, int]) -> RelationWeights:
        """Return the weights of a relation, or of all together."""
        relation, of_end = job
        target = self._target(relation, bool(of_end))
        n_dense = len(END_FEATURES if of_end else START_FEATURES)
        if relation == POOLED:
            initial = prior_weights(n_dense, self.edges, n_groups=N_GENERIC)
        else:
            initial = prior_weights(n_dense, self.edges)
            pooled = self.pooled[of_end]
        if len(target) < self.settings.min_facts:
            return initial
        table, group = self.table(target, bool(of_end))
        if relation == POOLED:
            of_query = np.repeat(target.relation, np.diff(table.group_offsets))
            row = generic_groups(group, of_query, self.facts.n_relations)
        else:
            groups, row = np.unique(group, return_inverse=True)
            generic = generic_groups(groups, relation, self.facts.n_relations)
            initial = RelationWeights(initial.dense, groups, pooled.sparse[generic])
        return self._learn(table._replace(row=row.astype(np.int64)), initial)

    def _target(self, relation: int, of_end: bool) -> DateTarget:
        facts, graph = self.facts, self.facts.graph
        train = graph.span("train")
        usable = finite(facts.start)
        if relation != POOLED:
            usable &= graph.relation[train] == relation
        # Facts without an end are often the latest ones: starts of whole intervals are earlier.
        whole = usable & (finite(facts.end) | (facts.end == OPEN_END))
        if of_end or whole.sum() >= self.settings.min_facts:
            usable = whole
        rows = np.flatnonzero(usable)
        rows = rows[keyed_sample(self.settings.max_queries, self.settings.seed, rows)]
        rows = rows[np.argsort(graph.relation[train][rows], kind="stable")]
        columns = (graph.subject, graph.relation, graph.object)
        ids = (column[train][rows].astype(np.int64) for column in columns)
        return DateTarget(*ids, rows, facts.start[rows], facts.end[rows])

    def table(self, target: DateTarget, of_end: bool) -> tuple[DateTable, Ints]:
        """Return candidates and features of facts, and the groups of their evidence."""
        facts, settings = self.facts, self.settings
        of_relation = [np.flatnonzero(target.relation == each) for each in np.unique(target.relation)]
        parts = [self._candidates(target[rows], of_end) for rows in of_relation]
        counts, time, log_weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        offsets = np.append(0, np.cumsum(counts))
        query = np.repeat(np.arange(len(target)), np.diff(offsets))
        if of_end:
            is_open = target.end == OPEN_END
            answer = np.where(is_open[query], time >= facts.now, time == target.end[query])
            dense = facts.end_features(target, offsets, time)
            drop = keyed_uniform(settings.seed, target.fact) < settings.drop
        else:
            answer = time == target.start[query]
            dense = facts.start_features(target, offsets, time)
            drop = np.zeros(len(target), np.bool_)
        queries = facts.queries(target, offsets, time, drop)
        group_offsets, group, bins = facts.bins(queries, self.edges, of_end)
        cells = np.append(0, np.cumsum(np.diff(group_offsets) * np.diff(offsets)))
        return DateTable(
            offsets, dense, log_weight, answer.astype(np.float64), group_offsets, group, cells, bins
        ), group

    def _candidates(self, target: DateTarget, of_end: bool) -> tuple[Ints, Ints, Floats]:
        """Sample candidates of each fact by the relation's density and evenly, and add the answer.

        The weight of a candidate is the inverse of the probability that it is sampled.
        """
        facts, settings, relation = self.facts, self.settings, int(target.relation[0])
        shift = target.start if of_end else np.zeros(len(target), np.int64)
        support, density, horizon = facts.support(relation, of_end)
        last = shift + horizon if of_end else np.full(len(target), np.iinfo(np.int64).max)
        low = np.searchsorted(facts.dates, target.start) if of_end else shift
        high = np.searchsorted(facts.dates, last, side="right")
        uniform = keyed_uniform(settings.seed + 1, target.fact)[:, None]
        steps = (uniform + np.arange(settings.n_by_density)) / settings.n_by_density
        drawn = support[np.minimum(np.searchsorted(np.cumsum(density), steps), len(support) - 1)]
        evenly = (uniform + np.arange(settings.n_uniform)) / settings.n_uniform
        at = low[:, None] + (evenly * (high - low)[:, None]).astype(np.int64)
        dates = facts.dates[np.minimum(at, len(facts.dates) - 1)]
        latest = np.maximum(last, facts.now)  # of those that go on
        answer = np.where(finite(target.end), target.end, latest) if of_end else target.start
        time = np.sort(np.column_stack([drawn + shift[:, None], dates, answer]), axis=1)
        valid = np.column_stack([np.ones(len(time), np.bool_), np.diff(time, axis=1) > 0])
        if of_end:
            valid &= time >= target.start[:, None]
        query, column = np.nonzero(valid)
        time = time[query, column]
        index = np.minimum(np.searchsorted(support, time - shift[query]), len(support) - 1)
        by_density = density[index] * (support[index] == time - shift[query])
        at = np.minimum(np.searchsorted(facts.dates, time), len(facts.dates) - 1)
        by_date = (facts.dates[at] == time) / np.maximum(high - low, 1)[query]
        missed = (1 - np.minimum(settings.n_by_density * by_density, 1)) * (
            1 - np.minimum(settings.n_uniform * by_date, 1)
        )
        missed[time == answer[query]] = 0.0
        return valid.sum(axis=1), time, -np.log1p(-missed)

    def _learn(self, table: DateTable, initial: RelationWeights) -> RelationWeights:
        """Return the most likely weights, regularised towards the initial ones."""
        size, shape, settings = len(initial.dense), initial.sparse.shape, self.settings
        l2 = np.full(size + shape[0] * shape[1], settings.sparse_l2)
        l2[:size] = settings.dense_l2

        def loss(change: Floats) -> tuple[float, Floats]:
            gradient = l2 * change
            sparse = initial.sparse + change[size:].reshape(shape)
            slopes = gradient[:size], gradient[size:].reshape(shape)
            total = add_date_likelihood(table, initial.dense + change[:size], sparse, *slopes)
            return total + 0.5 * float(l2 @ change**2), gradient

        options = {"maxiter": settings.max_steps, "ftol": 1e-5}
        start = np.zeros(len(l2))
        change = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
        sparse = initial.sparse + change[size:].reshape(shape)
        return RelationWeights(initial.dense + change[:size], initial.group, sparse)
