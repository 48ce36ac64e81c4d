"""Distributions of temporal features: Bernoulli, Gaussian and exponential (Appendix A).

Each class holds arrays of parameters, an element for each distribution; `[...]` selects some.
Densities are logarithms, so that those far from the mean do not vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Indices, Mask
from tilp._utils.files import check_arrays
from tilp.errors import DataError
from tilp.features.paper.evidence import EVIDENCE_KINDS, Evidence
from tilp.graph import QueryTable

_MIN_SCALE = 0.5  # times are whole units; nothing is known finer
_MIN_COUNT = 5  # observations of a pair for an interval distribution of its own


class _Distributions:
    def __getitem__(self, index: Any) -> Self:
        return type(self)(*(parameter[index] for parameter in vars(self).values()))


@dataclass(frozen=True)
class Bernoulli(_Distributions):
    """Distributions p^x (1 - p)^(1 - x)."""

    probability: Floats  # p

    @classmethod
    def fit(cls, index: NDArray[Any], x: Mask, size: int) -> Bernoulli:
        """Fit `size` distributions, x to the one at each index, with one of each value added."""
        count = np.bincount(index, minlength=size)
        return cls((np.bincount(index, x, size) + 1.0) / (count + 2.0))

    def log_density(self, x: Mask) -> Floats:
        """Return the logarithm of the probability of each x."""
        return np.asarray(np.log(np.where(x, self.probability, 1.0 - self.probability)))


@dataclass(frozen=True)
class Gaussian(_Distributions):
    """Distributions N(x; μ, σ).

    >>> born_to_graduation = Gaussian(np.array(22.0), np.array(1.0))
    >>> print(f"{np.exp(born_to_graduation.log_density(np.array(47.0))):.3e}")
    7.654e-137
    """

    mean: Floats  # μ
    deviation: Floats  # σ

    @classmethod
    def fit(cls, index: NDArray[Any], x: Floats, size: int) -> Gaussian:
        """Fit `size` distributions, x to the one at each index; the deviation has a minimum."""
        count = np.maximum(np.bincount(index, minlength=size), 1)
        mean = np.bincount(index, x, size) / count
        variance = np.bincount(index, (x - mean[index]) ** 2, size) / count
        return cls(mean, np.maximum(np.sqrt(variance), _MIN_SCALE))

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of the density at each x."""
        z = (x - self.mean) / self.deviation
        return np.asarray(-0.5 * z * z - np.log(self.deviation) - 0.5 * np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Exponential(_Distributions):
    """Distributions λ exp(-λx)."""

    rate: Floats  # λ

    @classmethod
    def fit(cls, index: NDArray[Any], x: Floats, size: int) -> Exponential:
        """Fit `size` distributions, x to the one at each index; the mean has a minimum."""
        count = np.maximum(np.bincount(index, minlength=size), 1)
        return cls(1.0 / np.maximum(np.bincount(index, x, size) / count, _MIN_SCALE))

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of the density at each x."""
        return np.asarray(np.log(self.rate) - self.rate * x)


@dataclass(frozen=True)
class PairInterval(_Distributions):
    """Distributions that are Gaussian or exponential, whichever is likelier."""

    gaussian: Gaussian
    exponential: Exponential
    is_gaussian: Mask

    @classmethod
    def fit(cls, index: NDArray[Any], x: Floats, size: int) -> PairInterval:
        """Fit both to x at each index; of equally likely ones, take the exponential."""
        both = Gaussian.fit(index, x, size), Exponential.fit(index, x, size)
        likelihood = [np.bincount(index, each[index].log_density(x), size) for each in both]
        return cls(*both, likelihood[0] > likelihood[1])

    def log_density(self, x: Floats) -> Floats:
        """Return the logarithm of the density at each x."""
        both = self.gaussian.log_density(x), self.exponential.log_density(x)
        return np.where(self.is_gaussian, *both)


@dataclass(frozen=True)
class FittedDistributions:
    """Distributions fitted to queries with their answers as candidates (Appendix A).

    A pair is a kind of evidence, a query's relation and another relation. Pairs that were observed
    come first, by their keys; after them, for each kind and query's relation, one distribution for
    all relations that were never observed with an answer.
    """

    n_directed: int  # count of directed relations
    key: Indices  # of observed pairs, ascending: (kind · n_directed + query's) · n_directed + other
    count: Indices  # observations of each distribution
    order: Bernoulli  # whether the query's fact starts earlier
    interval: PairInterval  # time between the starts; pooled by group or kind if observed rarely
    n_queries: Indices  # count of queries of each relation
    recurrence: Bernoulli  # of each relation, in facts with the subject and in others, see `recurs`

    @classmethod
    def fit(cls, n_directed: int, queries: QueryTable, evidence: Evidence) -> FittedDistributions:
        """Fit to the evidence for the answers of queries, one candidate each."""
        query_relation = queries.directed_relation[evidence.query]
        index = np.concatenate([query_relation, n_directed + query_relation])
        again = recurs(queries, evidence).T.reshape(-1)
        recurrence = Bernoulli.fit(index, again, 2 * n_directed)
        dated = evidence.dated(queries)
        n_kinds = len(EVIDENCE_KINDS)
        group = dated.kind * n_directed + dated.query_relation
        key, pair = np.unique(group * n_directed + dated.relation, return_inverse=True)
        n_pairs, n_groups = len(key), n_kinds * n_directed
        # Everything is observed for its pair, for its group, and for its kind.
        index = np.concatenate([pair, n_pairs + group, n_pairs + n_groups + dated.kind])
        size = n_pairs + n_groups + n_kinds
        count = np.bincount(index, minlength=size)
        kind_of_group = np.repeat(np.arange(n_kinds), n_directed)
        parent = np.concatenate([n_pairs + key // n_directed, n_pairs + n_groups + kind_of_group])
        interval = PairInterval.fit(index, np.tile(dated.distance, 3), size)
        source = np.arange(len(parent))
        for _ in range(2):  # from pair to group, from group to kind
            pooled = (count[source] < _MIN_COUNT) & (source < len(parent))
            source = np.where(pooled, parent[np.minimum(source, len(parent) - 1)], source)
        order = Bernoulli.fit(index, np.tile(dated.difference > 0, 3), size)[: len(parent)]
        fitted = count[: len(parent)], order, interval[source]
        n_queries = np.bincount(query_relation, minlength=n_directed)
        recurrence = Bernoulli(recurrence.probability.reshape(2, n_directed))
        return cls(n_directed, key, *fitted, n_queries, recurrence)

    def __len__(self) -> int:
        return len(self.count)

    def indices(
        self, kind: NDArray[Any], query_relation: NDArray[Any], relation: NDArray[Any]
    ) -> Indices:
        """Return the index of the distributions of each pair."""
        group = kind.astype(np.int64) * self.n_directed + query_relation
        key = group * self.n_directed + relation
        index = np.searchsorted(self.key, key)
        known = index < len(self.key)
        known[known] = self.key[index[known]] == key[known]
        return np.asarray(np.where(known, index, len(self.key) + group))

    def remap(self, relations: Indices) -> tuple[FittedDistributions, Indices]:
        """Return the distributions for relations by their old ids (-1: any), and old indices."""
        n_directed = len(relations)
        new_id = np.full(self.n_directed, -1, np.int64)
        new_id[relations[relations >= 0]] = np.flatnonzero(relations >= 0)
        kind, query_relation, other = self.pairs()
        key = (kind * n_directed + new_id[query_relation]) * n_directed + new_id[other]
        pairs = np.flatnonzero((new_id[query_relation] >= 0) & (new_id[other] >= 0))
        pairs = pairs[np.argsort(key[pairs])]
        first = np.arange(len(EVIDENCE_KINDS))[:, None] * self.n_directed
        groups = (first + np.maximum(relations, 0)).reshape(-1)
        index = np.concatenate([pairs, len(self.key) + groups])
        fitted = self.count[index], self.order[index], self.interval[index]
        n_queries = np.where(relations >= 0, self.n_queries[relations], 0)
        recurrence = Bernoulli(self.recurrence.probability[:, relations])
        return FittedDistributions(n_directed, key[pairs], *fitted, n_queries, recurrence), index

    def pairs(self) -> tuple[Indices, Indices, Indices]:
        """Return kind, query's relation and other relation of each observed pair."""
        group, other = np.divmod(self.key, self.n_directed)
        return *np.divmod(group, self.n_directed), other

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all parameters as arrays by name."""
        return {
            "directed": np.array(self.n_directed),
            "key": self.key,
            "seen": self.count,
            "order": self.order.probability,
            "mean": self.interval.gaussian.mean,
            "deviation": self.interval.gaussian.deviation,
            "rate": self.interval.exponential.rate,
            "is_gaussian": self.interval.is_gaussian,
            "asked": self.n_queries,
            "recurrence": self.recurrence.probability,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> FittedDistributions:
        """Read what `to_arrays` returned."""
        check_arrays(arrays, {"directed": ("i8", ()), "key": ("i8", (None,))})
        n_directed, key = int(arrays["directed"]), arrays["key"]
        size = len(key) + len(EVIDENCE_KINDS) * n_directed
        floats = dict.fromkeys(("order", "mean", "deviation", "rate"), ("f8", (size,)))
        counts = {"seen": ("i8", (size,)), "asked": ("i8", (n_directed,))}
        recurrence = {"recurrence": ("f8", (2, n_directed)), "is_gaussian": ("b1", (size,))}
        check_arrays(arrays, {**floats, **counts, **recurrence})
        n_keys = len(EVIDENCE_KINDS) * n_directed**2
        if len(key) and (key[0] < 0 or key[-1] >= n_keys or (np.diff(key) <= 0).any()):
            raise DataError("the array key does not rise")
        gaussian = Gaussian(arrays["mean"], arrays["deviation"])
        interval = PairInterval(gaussian, Exponential(arrays["rate"]), arrays["is_gaussian"])
        order, again = Bernoulli(arrays["order"]), Bernoulli(arrays["recurrence"])
        return cls(n_directed, key, arrays["seen"], order, interval, arrays["asked"], again)


def recurs(queries: QueryTable, evidence: Evidence) -> Mask:
    """Return whether each candidate has the query's relation again: with subject, with others.

    The relation is read from the candidate, as in the paper's example, where a query for who was
    born somewhere is about the candidate's own birth: for (s, r, ?) it is r⁻¹ of the candidate.
    """
    relation = queries.directed_relation[evidence.query]
    n_relations = np.int32(evidence.n_directed // 2)
    inverse = (relation + n_relations) % np.int32(evidence.n_directed)
    recurring = np.zeros((len(evidence.candidate), len(EVIDENCE_KINDS)), np.bool_)
    same = np.flatnonzero(evidence.relation == inverse[evidence.row])
    recurring[evidence.row[same], evidence.kind[same]] = True
    return recurring[:, :2]
