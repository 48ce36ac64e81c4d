"""`TimeModel`: learned weights of evidence for dates, and the distributions that they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from tilp._kernels.date_evidence import N_KINDS, DateTable, add_date_likelihood, date_scores
from tilp._utils.arrays import Floats, Ints
from tilp._utils.files import check_arrays
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
    finite,
)

_POOLED = -1  # in place of a relation: all together; their weights come last
_SAME = 3  # a generic group is of the query's relation, its inverse, or any other
_N_PAIRS, _N_INTERVALS = 800, 300  # likely intervals, and those that are compared as answers


@dataclass(frozen=True)
class RelationWeights:
    """Weights of one relation, for starts or for ends."""

    dense: Floats  # of the densities
    group: Ints  # groups of evidence with a weight, ascending
    sparse: Floats  # of each group's bins

    @classmethod
    def prior(cls, of_end: bool, edges: Ints, n_groups: int = 0) -> RelationWeights:
        """Return weights that take the density of the relation as it is, and nothing else."""
        dense = np.eye(1, len(END_FEATURES if of_end else START_FEATURES))[0]
        return cls(dense, np.arange(n_groups), np.zeros((n_groups, 2 * len(edges) + 2)))


@dataclass(frozen=True)
class TimeModel:
    """Weights of evidence for starts, and for ends given the starts.

    There are those of each relation, and last those of all relations together, for evidence that
    a relation has not learned from.
    """

    relations: tuple[str, ...]
    edges: Ints  # of the bins of distances
    start: tuple[RelationWeights, ...]
    end: tuple[RelationWeights, ...]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights as arrays by their names in a saved model."""
        columns = {
            f"{side}_{index}_{name}": array
            for side in ("start", "end")
            for index, weights in enumerate(getattr(self, side))
            for name, array in vars(weights).items()
        }
        return {"edges": self.edges, **columns}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], relations: Sequence[str]) -> TimeModel:
        """Read what `to_arrays` returned."""
        if len(arrays) != 1 + 2 * 3 * (len(relations) + 1):
            raise ValueError(f"{len(arrays)} arrays of a time model of {len(relations)} relations")
        start, end = (
            tuple(
                RelationWeights(*(arrays[f"{side}_{i}_{n}"] for n in ("dense", "group", "sparse")))
                for i in range(len(relations) + 1)
            )
            for side in ("start", "end")
        )
        return cls(tuple(relations), arrays["edges"], start, end)

    def __post_init__(self) -> None:
        """Refuse weights that do not fit together: kernels trust them."""
        check_arrays({"edges": self.edges}, {"edges": ("i8", (None,))})
        width, n_relations = 2 * len(self.edges) + 2, len(self.relations)
        for side, features in ((self.start, START_FEATURES), (self.end, END_FEATURES)):
            for index, weights in enumerate(side):
                group = weights.group
                dense, rows = ("f8", (len(features),)), ("f8", (len(group), width))
                shapes = {"dense": dense, "group": ("i8", (None,)), "sparse": rows}
                check_arrays(vars(weights), shapes)
                n_groups = 3 * N_KINDS * (_SAME if index == n_relations else 2 * n_relations)
                in_order = np.all(np.diff(group, prepend=-1) > 0)
                if not in_order or np.any(group >= n_groups):
                    raise ValueError("groups of evidence are out of order or range")
                if not np.isfinite(weights.dense).all() or not np.isfinite(weights.sparse).all():
                    raise ValueError("a weight of the time model is no number")
        if np.any(np.diff(self.edges) <= 0):
            raise ValueError("edges of distances are out of order")

    def for_relations(self, relations: Sequence[str]) -> TimeModel:
        """Return the weights for the relations of another graph; new ones get the densities."""
        old_ids, new_ids = ({n: i for i, n in enumerate(x)} for x in (self.relations, relations))
        new = np.array([new_ids.get(name, -1) for name in self.relations], np.int64)
        directed = np.concatenate([new, np.where(new >= 0, new + len(relations), -1)])

        def moved(weights: RelationWeights) -> RelationWeights:
            kind, relation = np.divmod(weights.group, len(directed))
            group = kind * 2 * len(relations) + directed[relation]
            rows = np.flatnonzero(directed[relation] >= 0)
            rows = rows[np.argsort(group[rows])]
            return RelationWeights(weights.dense, group[rows], weights.sparse[rows])

        sides = []
        for of_end, side in enumerate((self.start, self.end)):
            none, ids = RelationWeights.prior(bool(of_end), self.edges), map(old_ids.get, relations)
            known = [none if index is None else moved(side[index]) for index in ids]
            sides.append((*known, side[_POOLED]))
        return TimeModel(tuple(relations), self.edges, *sides)


def generic_groups(group: Ints, relation: Ints | int, n_relations: int) -> Ints:
    """Return groups with the relation replaced: the query's own, its inverse, or another."""
    kind, directed = np.divmod(group, 2 * n_relations)
    inverse = directed == relation + n_relations
    return kind * _SAME + np.where(directed == relation, 0, np.where(inverse, 1, 2))


@dataclass(frozen=True)
class Dates:
    """A distribution over dates, ascending."""

    time: Ints
    probability: Floats

    def quantile(self, share: float) -> int:
        """Return the first date by which this share of the probability is reached."""
        at = np.searchsorted(np.cumsum(self.probability), share - 1e-12)
        return int(self.time[min(int(at), len(self.time) - 1)])

    def credible(self, share: float) -> tuple[int, int]:
        """Return the first and last date of a credible interval, as much left out on each side."""
        return self.quantile(0.5 - share / 2), self.quantile(0.5 + share / 2)

    def below(self, time: int) -> float:
        """Return the probability of all earlier dates."""
        return float(self.probability[self.time < time].sum())

    def at(self, time: int) -> float:
        """Return the probability of a date."""
        return float(self.probability[self.time == time].sum())

    @property
    def mode(self) -> int:
        """The most likely date."""
        return int(self.time[self.probability.argmax()])


@dataclass(frozen=True)
class JointDates:
    """A distribution over intervals: starts, and the ends of each."""

    starts: Dates
    ends: tuple[Dates, ...]

    def pairs(self) -> tuple[Ints, Ints, Floats]:
        """Return all intervals, and their probabilities."""
        sizes = [len(each.time) for each in self.ends]
        start = np.repeat(self.starts.time, sizes)
        end = np.concatenate([each.time for each in self.ends])
        share = np.concatenate([each.probability for each in self.ends])
        return start, end, share * np.repeat(self.starts.probability, sizes)

    @cached_property
    def end(self) -> Dates:
        """The distribution of the end."""
        _, end, share = self.pairs()
        time, index = np.unique(end, return_inverse=True)
        return Dates(time, np.bincount(index, share, len(time)).astype(np.float64))

    def holds(self, first: int, last: int) -> float:
        """Return the probability that the interval has a time from first to last in it."""
        start, end, share = self.pairs()
        return float(share[(start <= last) & (end >= first)].sum())

    def intervals(self, k: int) -> list[tuple[int, int, float]]:
        """Return the k intervals whose best expected aeIOU is highest, and their probabilities."""
        start, end, share = self.pairs()
        order = np.argsort(-share, kind="stable")[:_N_PAIRS]
        start, end, share = start[order], end[order], share[order]
        few = slice(0, _N_INTERVALS)
        value, best = aeiou(start[few, None], end[few, None], start, end), np.zeros(len(share))
        chosen = []
        for _ in range(min(k, len(value))):
            index = int((np.maximum(value, best) @ share).argmax())
            best = np.maximum(best, value[index])
            chosen.append((int(start[index]), int(end[index]), float(share[index])))
        return chosen


def aeiou(start: Ints, end: Ints, other_start: Ints | int, other_end: Ints | int) -> Floats:
    """Return max(1, intersection) / hull of pairs of closed intervals (broadcast)."""
    shared = np.minimum(end, other_end) - np.maximum(start, other_start) + 1
    hull = np.maximum(end, other_end) - np.minimum(start, other_start) + 1
    return np.asarray(np.maximum(shared, 1) / hull)


class DatePredictor:
    """A time model on the dated facts of a graph."""

    def __init__(self, model: TimeModel, graph: TemporalGraph) -> None:
        self.model = model.for_relations(tuple(graph.relations))
        self.facts = DatedFacts(graph)

    def table(
        self, target: DateTarget, at: tuple[Ints, Ints], of_end: bool
    ) -> tuple[DateTable, RelationWeights]:
        """Return the features of candidate dates of facts of one relation, and their weights."""
        facts, relation = self.facts, int(target.relation[0])
        side = self.model.end if of_end else self.model.start
        weights, pooled = side[relation], side[_POOLED].sparse
        drop = np.zeros(len(target), np.bool_)
        offsets, group, bins = facts.bins(target, at, self.model.edges, of_end, drop)
        row = np.searchsorted(weights.group, group)
        known = np.append(weights.group, -1)[row] == group
        row = np.where(
            known, row, len(weights.group) + generic_groups(group, relation, facts.n_relations)
        )
        table = make_table(facts.features(target, at, of_end), at[0], offsets, row, bins)
        return table, replace(weights, group=group, sparse=np.concatenate([weights.sparse, pooled]))

    def candidates(self, target: DateTarget, of_end: bool, also: int | None = None) -> list[Ints]:
        """Return the candidate dates of facts of one relation, and perhaps one date more."""
        dates = self.facts.dates
        if not of_end:
            return [dates] * len(target)
        lengths, _, horizon = self.facts.support(int(target.relation[0]), of_end=True)
        extra = np.array([] if also is None else [also], np.int64)
        found = []
        for start in target.start.tolist():
            low, high = np.searchsorted(dates, (start, start + horizon + 1))
            found.append(np.unique(np.concatenate([dates[low:high], start + lengths, extra])))
        return found

    def distributions(
        self, target: DateTarget, of_end: bool, *, prior: bool = False, also: int | None = None
    ) -> list[Dates]:
        """Return the distributions of the starts of facts of a relation, or of the ends.

        Args:
            target: The facts, with their starts if the ends are sought.
            of_end: Whether the ends are sought.
            prior: Take the relation's densities alone (default False).
            also: A further candidate (default None).
        """
        times = self.candidates(target, of_end, also)
        offsets = np.append(0, np.cumsum([len(each) for each in times]))
        at = offsets, np.concatenate(times)
        if prior:
            scores = self.facts.features(target, at, of_end)[:, 0]
        else:
            table, weights = self.table(target, at, of_end)
            scores = date_scores(table, weights.dense, weights.sparse)
        highest = np.maximum.reduceat(scores, offsets[:-1])
        shares = np.exp(scores - np.repeat(highest, np.diff(offsets)))
        shares /= np.repeat(np.add.reduceat(shares, offsets[:-1]), np.diff(offsets))
        return [Dates(*each) for each in zip(times, np.split(shares, offsets[1:-1]), strict=True)]


def make_table(
    dense: Floats, offsets: Ints, group_offsets: Ints, row: Ints, bins: Ints
) -> DateTable:
    """Return the table of a kernel, its candidates without weight and answer."""
    cells = np.append(0, np.cumsum(np.diff(group_offsets) * np.diff(offsets)))
    zeros = np.zeros(len(dense))
    return DateTable(offsets, dense, zeros, zeros, group_offsets, row, cells, bins)


@dataclass(frozen=True)
class TimeTraining:
    """Settings of the training of a time model."""

    max_queries: int = 6_000  # most facts of a relation to learn from
    n_by_density: int = 48  # candidate dates of each fact, sampled by the relation's density
    n_uniform: int = 24  # further ones, sampled among all
    n_bins: int = 40  # of distances, on each side of 0
    dense_l2: float = 10.0  # regularisation of the weights of densities
    sparse_l2: float = 2.0  # and of those of bins of distances
    max_steps: int = 30  # of the optimiser
    min_facts: int = 20  # fewer leave a relation with what all relations have learned
    drop: float = 0.5  # share of facts learned without the subject's others of the same start
    seed: int = 0


def fit_time_model(
    graph: TemporalGraph, settings: TimeTraining, workers: Workers,
    progress: Callable[[float], None] = lambda _: None,
) -> TimeModel:  # fmt: skip
    """Learn a time model from the dated training facts of a graph."""
    facts = DatedFacts(graph)
    runs = facts.runs[0]
    # Distances between random facts of an entity, of any relation.
    entity = np.repeat(np.arange(len(runs.offsets) - 1), np.diff(runs.start_offsets[runs.offsets]))
    order = np.lexsort((keyed_uniform(settings.seed, runs.start_fact), entity))
    distances = np.diff(runs.start[order])[np.diff(entity[order]) == 0]
    edges = make_edges(distances, graph.unit, settings.n_bins, fine=True)
    learner = DateLearner(facts, edges, settings)
    # Sums of linear algebra depend on its threads.
    with threadpool_limits(limits=1, user_api="blas"):
        pooled = tuple(workers.map(learner, [(_POOLED, False), (_POOLED, True)]))
        jobs = [(relation, end) for relation in range(facts.n_relations) for end in (False, True)]
        weights = []
        for learned in workers.map(replace(learner, pooled=pooled), jobs):
            weights.append(learned)
            progress(len(weights) / len(jobs))
    sides = ((*weights[side::2], pooled[side]) for side in (0, 1))
    return TimeModel(tuple(graph.relations), learner.edges, *sides)


@dataclass(frozen=True)
class DateLearner:
    """Learns the weights of one relation, for starts or for ends."""

    facts: DatedFacts
    edges: Ints
    settings: TimeTraining
    pooled: tuple[RelationWeights, ...] = ()  # of all relations together, for starts and for ends

    def __call__(self, job: tuple[int, bool]) -> RelationWeights:
        """Return the weights of a relation, or of all together."""
        (relation, of_end), settings, facts = job, self.settings, self.facts
        n_generic = 3 * N_KINDS * _SAME if relation == _POOLED else 0
        initial = RelationWeights.prior(of_end, self.edges, n_generic)
        target = self._target(relation, of_end)
        if len(target) < settings.min_facts:
            return initial
        each = [np.flatnonzero(target.relation == r) for r in np.unique(target.relation)]
        parts = [self._candidates(target[rows], of_end) for rows in each]
        counts, time, log_weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        at = np.append(0, np.cumsum(counts)), time
        query = np.repeat(np.arange(len(target)), counts)
        answer = time == (target.end if of_end else target.start)[query]
        if of_end:  # an open end is later than all that is known
            answer |= (target.end == OPEN_END)[query] & (time >= facts.now)
        drop = of_end & (keyed_uniform(settings.seed, target.fact) < settings.drop)
        offsets, group, bins = facts.bins(target, at, self.edges, of_end, drop)
        if relation == _POOLED:
            of_group = np.repeat(target.relation, np.diff(offsets))
            row = generic_groups(group, of_group, facts.n_relations)
        else:
            groups, row = np.unique(group, return_inverse=True)
            generic = generic_groups(groups, relation, facts.n_relations)
            initial = replace(initial, group=groups, sparse=self.pooled[of_end].sparse[generic])
        table = make_table(facts.features(target, at, of_end), at[0], offsets, row, bins)
        table = table._replace(log_weight=log_weight, is_answer=answer.astype(np.float64))
        return self._learn(table, initial)

    def _target(self, relation: int, of_end: bool) -> DateTarget:
        facts, settings = self.facts, self.settings
        usable = finite(facts.start) & ((relation == _POOLED) | (facts.relation == relation))
        # Facts without an end are often the latest ones: starts of whole intervals are earlier.
        whole = usable & (finite(facts.end) | (facts.end == OPEN_END))
        rows = np.flatnonzero(whole if of_end or whole.sum() >= settings.min_facts else usable)
        rows = rows[keyed_sample(settings.max_queries, settings.seed, rows)]
        rows = rows[np.argsort(facts.relation[rows], kind="stable")]
        columns = (facts.subject, facts.relation, facts.object)
        subject, of, object_ = (column[rows] for column in columns)
        return DateTarget(subject, of, object_, rows, facts.start[rows], facts.end[rows])

    def _candidates(self, target: DateTarget, of_end: bool) -> tuple[Ints, Ints, Floats]:
        """Sample candidates of each fact by the relation's density and evenly, and add the answer.

        Returns their counts, the candidates, and their log weights: the weight of a candidate is
        the inverse of the probability that it is sampled.
        """
        facts, settings, dates = self.facts, self.settings, self.facts.dates
        support, density, horizon = facts.support(int(target.relation[0]), of_end)
        shift = target.start if of_end else np.zeros(len(target), np.int64)
        last = shift + horizon if of_end else np.full(len(target), OPEN_END)
        low = np.searchsorted(dates, target.start) if of_end else shift
        n_dates = np.searchsorted(dates, last, side="right") - low
        uniform = keyed_uniform(settings.seed + 1, target.fact)[:, None]
        steps, evenly = (
            (uniform + np.arange(n)) / n for n in (settings.n_by_density, settings.n_uniform)
        )
        drawn = support[np.minimum(np.searchsorted(np.cumsum(density), steps), len(support) - 1)]
        index = low[:, None] + (evenly * n_dates[:, None]).astype(np.int64)
        even = dates[np.minimum(index, len(dates) - 1)]
        latest = np.where(finite(target.end), target.end, np.maximum(last, facts.now))
        answer = latest if of_end else target.start
        time = np.sort(np.column_stack([drawn + shift[:, None], even, answer]), axis=1)
        valid = np.column_stack([np.ones(len(time), np.bool_), np.diff(time, axis=1) > 0])
        valid &= time >= target.start[:, None] if of_end else True
        query, column = np.nonzero(valid)
        time = time[query, column]
        missed = (time != answer[query]).astype(np.float64)
        for values, found, chance, n in (
            (support, time - shift[query], density, settings.n_by_density),
            (dates, time, 1 / np.maximum(n_dates, 1)[query], settings.n_uniform),
        ):
            at = np.minimum(np.searchsorted(values, found), len(values) - 1)
            share = chance[at] if len(chance) == len(values) else chance
            missed *= 1 - np.minimum(n * share, 1) * (values[at] == found)
        return valid.sum(axis=1), time, -np.log1p(-missed)

    def _learn(self, table: DateTable, initial: RelationWeights) -> RelationWeights:
        """Return the most likely weights, regularised towards the initial ones."""
        size, shape, settings = len(initial.dense), initial.sparse.shape, self.settings
        l2 = np.full(size + shape[0] * shape[1], settings.sparse_l2)
        l2[:size] = settings.dense_l2

        def weights(change: Floats) -> tuple[Floats, Floats]:
            return initial.dense + change[:size], initial.sparse + change[size:].reshape(shape)

        def loss(change: Floats) -> tuple[float, Floats]:
            gradient = l2 * change
            slopes = gradient[:size], gradient[size:].reshape(shape)
            total = add_date_likelihood(table, *weights(change), *slopes)
            return total + 0.5 * float(l2 @ change**2), gradient

        options = {"maxiter": settings.max_steps, "ftol": 1e-5}
        found = minimize(loss, np.zeros(len(l2)), jac=True, method="L-BFGS-B", options=options)
        dense, sparse = weights(found.x)
        return replace(initial, dense=dense, sparse=sparse)
