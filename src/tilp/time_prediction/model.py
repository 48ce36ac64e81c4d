"""`TimeModel`: the learned weights of evidence for dates. `DatePredictor`: what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.date_evidence import N_KINDS, DateTable, date_scores
from tilp._utils.arrays import Floats, Ints
from tilp.graph import TemporalGraph
from tilp.time_prediction.evidence import (
    END_FEATURES,
    START_FEATURES,
    DatedFacts,
    DateTarget,
)

POOLED = -1  # in place of a relation: all together; their weights come last
_SIDES = ("start", "end")
_SAME = 3  # a generic group is of the query's relation, its inverse, or any other
N_GENERIC = 3 * N_KINDS * _SAME
_N_PAIRS, _N_INTERVALS = 800, 300


@dataclass(frozen=True)
class RelationWeights:
    """Weights of one relation, for starts or for ends."""

    dense: Floats  # of the densities
    group: Ints  # groups of evidence with a weight, ascending
    sparse: Floats  # of each group's bins


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
        arrays: dict[str, NDArray[Any]] = {"edges": self.edges}
        for side in _SIDES:
            weights = getattr(self, side)
            arrays[f"{side}_offsets"] = np.append(0, np.cumsum([len(w.group) for w in weights]))
            for name in ("dense", "group", "sparse"):
                join = np.stack if name == "dense" else np.concatenate
                arrays[f"{side}_{name}"] = join([getattr(w, name) for w in weights])
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], relations: Sequence[str]) -> TimeModel:
        """Read what `to_arrays` returned."""
        sides = []
        for side in _SIDES:
            dense, group, sparse = (arrays[f"{side}_{n}"] for n in ("dense", "group", "sparse"))
            bounds = arrays[f"{side}_offsets"]
            if len(dense) != len(relations) + 1:
                raise ValueError(f"weights of {len(dense)} relations for the {side}")
            slices = [slice(a, b) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
            sides.append(
                tuple(RelationWeights(dense[i], group[s], sparse[s]) for i, s in enumerate(slices))
            )
        return cls(tuple(relations), arrays["edges"], *sides)

    def for_relations(self, relations: Sequence[str]) -> TimeModel:
        """Return the weights for the relations of another graph; new ones get the densities."""
        if tuple(relations) == self.relations:
            return self
        new_ids = {name: index for index, name in enumerate(relations)}
        new = np.array([new_ids.get(name, -1) for name in self.relations], np.int64)
        directed = np.concatenate([new, np.where(new >= 0, new + len(relations), -1)])
        old = {name: index for index, name in enumerate(self.relations)}

        def moved(weights: RelationWeights) -> RelationWeights:
            kind, relation = np.divmod(weights.group, len(directed))
            group = kind * 2 * len(relations) + directed[relation]
            rows = np.flatnonzero(directed[relation] >= 0)
            rows = rows[np.argsort(group[rows])]
            return RelationWeights(weights.dense, group[rows], weights.sparse[rows])

        sides = []
        for side, features in zip(_SIDES, (START_FEATURES, END_FEATURES), strict=True):
            weights = getattr(self, side)
            none = prior_weights(len(features), self.edges)
            known = (moved(weights[old[name]]) if name in old else none for name in relations)
            sides.append((*known, weights[POOLED]))
        return TimeModel(tuple(relations), self.edges, *sides)


def prior_weights(n_dense: int, edges: Ints, n_groups: int = 0) -> RelationWeights:
    """Return weights that take the density of the relation as it is, and nothing else."""
    none = np.zeros((n_groups, 2 * len(edges) + 2))
    return RelationWeights(np.eye(1, n_dense)[0], np.arange(n_groups), none)


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


class DatePredictor:
    """A time model on the dated facts of a graph."""

    def __init__(self, model: TimeModel, graph: TemporalGraph) -> None:
        self.model = model.for_relations(tuple(graph.relations))
        self.facts = DatedFacts(graph)

    def table(
        self, target: DateTarget, offsets: Ints, time: Ints, of_end: bool, *, prior: bool = False
    ) -> tuple[DateTable, RelationWeights]:
        """Return the features of candidate dates of facts of one relation, and their weights."""
        facts, relation = self.facts, int(target.relation[0])
        weights = (self.model.end if of_end else self.model.start)[relation]
        if prior:
            weights = prior_weights(len(weights.dense), self.model.edges)
        features = facts.end_features if of_end else facts.start_features
        queries = facts.queries(target, offsets, time, np.zeros(len(target), np.bool_))
        group_offsets, group, bins = facts.bins(queries, self.model.edges, of_end)
        known = np.append(weights.group, -1)
        row = np.searchsorted(weights.group, group)
        generic = generic_groups(group, relation, facts.n_relations)
        row = np.where(known[row] == group, row, len(weights.group) + generic)
        cells = np.append(0, np.cumsum(np.diff(group_offsets) * np.diff(offsets)))
        zeros = np.zeros(len(time))
        table = DateTable(
            offsets, features(target, offsets, time), zeros, zeros, group_offsets, row, cells, bins
        )
        pooled = (self.model.end if of_end else self.model.start)[POOLED].sparse
        sparse = np.concatenate([weights.sparse, pooled * (not prior)])
        return table, RelationWeights(weights.dense, group, sparse)

    def _distributions(
        self, target: DateTarget, candidates: Sequence[Ints], of_end: bool, prior: bool
    ) -> list[Dates]:
        offsets = np.append(0, np.cumsum([len(each) for each in candidates]))
        table, weights = self.table(
            target, offsets, np.concatenate(candidates), of_end, prior=prior
        )
        scores = date_scores(table, weights.dense, weights.sparse)
        highest = np.maximum.reduceat(scores, offsets[:-1])
        shares = np.exp(scores - np.repeat(highest, np.diff(offsets)))
        shares /= np.repeat(np.add.reduceat(shares, offsets[:-1]), np.diff(offsets))
        return [
            Dates(times, shares[low:high])
            for times, low, high in zip(candidates, offsets[:-1], offsets[1:], strict=True)
        ]

    def candidates(
        self, target: DateTarget, of_end: bool, also: int | None = None
    ) -> list[Ints]:
        """Return the candidate dates of facts of one relation."""
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

    def starts(self, target: DateTarget, *, prior: bool = False) -> list[Dates]:
        """Return the distribution of the start of facts of one relation."""
        return self._distributions(target, self.candidates(target, False), False, prior)

    def ends(
        self, target: DateTarget, *, prior: bool = False, also: int | None = None
    ) -> list[Dates]:
        """Return the distribution of the end of facts of one relation, given their starts.

        Args:
            target: The facts.
            prior: Take the relation's durations alone (default False).
            also: A further candidate date (default None).
        """
        return self._distributions(target, self.candidates(target, True, also), True, prior)


@dataclass(frozen=True)
class JointDates:
    """A distribution over intervals: starts, and the ends of each."""

    starts: Dates
    ends: tuple[Dates, ...]

    @cached_property
    def end(self) -> Dates:
        """The distribution of the end."""
        times = np.concatenate([each.time for each in self.ends])
        shares = zip(self.starts.probability, self.ends, strict=True)
        weights = np.concatenate([share * each.probability for share, each in shares])
        time, index = np.unique(times, return_inverse=True)
        return Dates(time, np.bincount(index, weights, len(time)))

    def holds(self, at: int) -> float:
        """Return the probability that start and end have a time between them."""
        pairs = zip(self.starts.time, self.starts.probability, self.ends, strict=True)
        return float(sum(share * (1 - ends.below(at)) for time, share, ends in pairs if time <= at))

    def intervals(self, k: int) -> list[tuple[int, int, float]]:
        """Return the k intervals whose best expected aeIOU is highest, and their probabilities."""
        sizes = [len(each.time) for each in self.ends]
        start = np.repeat(self.starts.time, sizes)
        end = np.concatenate([each.time for each in self.ends])
        share = np.repeat(self.starts.probability, sizes)
        share = share * np.concatenate([each.probability for each in self.ends])
        order = np.argsort(-share, kind="stable")[:_N_PAIRS]
        start, end, share = start[order], end[order], share[order]
        few = slice(0, _N_INTERVALS)
        value = aeiou(start[few, None], end[few, None], start, end)
        chosen: list[tuple[int, int, float]] = []
        best = np.zeros(len(share))
        for _ in range(min(k, len(value))):
            index = int((np.maximum(value, best) @ share).argmax())
            best = np.maximum(best, value[index])
            chosen.append((int(start[index]), int(end[index]), float(share[index])))
        return chosen


def aeiou(start: Ints, end: Ints, other_start: Ints, other_end: Ints) -> Floats:
    """Return max(1, intersection) / hull of pairs of closed intervals (broadcast)."""
    shared = np.minimum(end, other_end) - np.maximum(start, other_start) + 1
    hull = np.maximum(end, other_end) - np.minimum(start, other_start) + 1
    return np.maximum(shared, 1) / hull
