"""Durations of facts by relation (the paper's Duration): a Gaussian truncated to [0, ∞)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.special import log_ndtr, ndtri_exp

from tilp._utils.arrays import Floats, Ids, Ints, Mask
from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN
from tilp.time.interval import Times

if TYPE_CHECKING:
    from tilp.graph import TemporalGraph, Vocabulary

_MIN_INTERVALS = 10  # complete intervals that a relation needs for parameters of its own
_MIN_SIGMA = 0.1  # of the unit; all of a relation's intervals may be of one length
# Bounds of mu / sigma. At the lower one the density is all but exponential: where lengths spread
# still more, the likelihood has no maximum, and rises on and on towards the exponential.
_MIN_RATIO, _MAX_RATIO = -10.0, 1e6
_BISECTIONS = 80
_ROUNDS = 30  # of expectation and maximisation, for facts that still go on
_HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, eq=False)
class Durations:
    """Lengths of intervals by relation: ψ(mu, sigma, 0, ∞) in the paper's Duration.

    Relations with few complete intervals share the parameters of all relations together.
    """

    relations: Vocabulary
    mu: Floats  # of each relation, before truncation; likewise `sigma`
    sigma: Floats
    intervals: Ints  # count of each relation's complete intervals
    all_mu: float  # of all relations together; likewise `all_sigma`
    all_sigma: float

    @classmethod
    def fit(cls, graph: TemporalGraph) -> Durations:
        """Fit by maximum likelihood to training facts with two dates, none estimated.

        A fact whose end is open has lasted at least until the last start of all: it is censored.
        """
        relation, length = observed_lengths(graph)
        open_relation, least = _open_lengths(graph)
        size = len(graph.relations)
        count = np.bincount(relation, minlength=size)
        # The last ones are of all relations together.
        sums = _with_all(relation, size, np.ones(len(length)), length, length**2)
        mu, sigma = _most_likely(*sums)
        for _ in range(_ROUNDS if len(least) and len(length) else 0):
            parts = []
            for of in (open_relation, np.full(len(least), size)):
                # The mean and mean square of lengths above a bound (expectation maximisation).
                hazard = _hazard((mu[of] - least) / sigma[of])
                mean = mu[of] + sigma[of] * hazard
                square = mu[of] ** 2 + sigma[of] ** 2 + sigma[of] * (least + mu[of]) * hazard
                parts.append((mean, square))
            expected = _with_all(open_relation, size, np.ones(len(least)), *parts[0])
            expected[1][-1], expected[2][-1] = parts[1][0].sum(), parts[1][1].sum()
            mu, sigma = _most_likely(*(a + b for a, b in zip(sums, expected, strict=True)))
        few = count < _MIN_INTERVALS
        own = np.where(few, mu[-1], mu[:-1]), np.where(few, sigma[-1], sigma[:-1])
        return cls(graph.relations, *own, count, float(mu[-1]), float(sigma[-1]))

    def __repr__(self) -> str:
        own = int((self.intervals >= _MIN_INTERVALS).sum())
        return f"Durations({own:,} of {len(self.mu):,} relations with parameters of their own)"

    def for_relations(self, relations: Vocabulary) -> Durations:
        """Return the same for the relations of another graph; new ones share the parameters."""
        known = {name: index for index, name in enumerate(self.relations)}
        index = np.array([known.get(name, -1) for name in relations], np.int64)
        new = index < 0
        mu = np.where(new, self.all_mu, self.mu[index])
        sigma = np.where(new, self.all_sigma, self.sigma[index])
        intervals = np.where(new, 0, self.intervals[index])
        return Durations(relations, mu, sigma, intervals, self.all_mu, self.all_sigma)

    @property
    def mean(self) -> Floats:
        """Expected length of each relation's intervals."""
        return self.mu + self.sigma * _hazard(self.mu / self.sigma)

    def frame(self) -> pl.DataFrame:
        """Return a row for each relation: parameters, mean, and count of complete intervals."""
        return pl.DataFrame(
            {
                "relation": list(self.relations),
                "intervals": self.intervals,
                "mu": self.mu,
                "sigma": self.sigma,
                "mean": self.mean,
                "pooled": self.intervals < _MIN_INTERVALS,
            }
        )

    def log_density(self, relation: Ids, length: Floats) -> Floats:
        """Return the log density of lengths; minus infinity below 0."""
        mu, sigma = self.mu[relation], self.sigma[relation]
        inside = -0.5 * ((length - mu) / sigma) ** 2 - np.log(sigma) - _HALF_LOG_TAU
        inside -= log_ndtr(mu / sigma)
        return np.where(length >= 0, inside, -np.inf)

    def quantile(self, relation: Ids, probability: Floats) -> Floats:
        """Return the lengths at given quantiles; of uniform random numbers, random lengths.

        The logarithm of the upper tail keeps it exact however far below 0 mu is.
        """
        mu, sigma = self.mu[relation], self.sigma[relation]
        z = -ndtri_exp(np.log1p(-probability) + log_ndtr(mu / sigma))
        return np.asarray(np.maximum(mu + sigma * z, 0.0))

    def estimate(
        self, relation: Ids, start: Times, end: Times, uniform: Floats | None = None
    ) -> tuple[Times, Times]:
        """Return starts and ends, a missing one estimated from the other in whole units.

        Intervals without a finite date stay as they are. `uniform` holds a random number for each
        interval, to draw its length; without it, the expected length is taken.
        """
        length = self.mean[relation] if uniform is None else self.quantile(relation, uniform)
        whole = np.rint(length).astype(np.int64)
        no_start, no_end = (start == UNKNOWN) & _finite(end), (end == UNKNOWN) & _finite(start)
        # Without a finite date to count from, a sum would overflow.
        from_end, from_start = np.where(no_start, end, 0), np.where(no_end, start, 0)
        new_start = np.where(no_start, from_end - whole, start)
        return new_start, np.where(no_end, from_start + whole, end)


def observed_lengths(graph: TemporalGraph) -> tuple[Ids, Floats]:
    """Return relation and length of training facts with two known dates, none estimated."""
    train = graph.span("train")
    start, end = graph.start[train], graph.end[train]
    complete = _finite(start) & _finite(end) & (graph.estimated[train] == 0)
    return graph.relation[train][complete], (end - start)[complete].astype(np.float64)


def _open_lengths(graph: TemporalGraph) -> tuple[Ids, Floats]:
    """Return relation and least length, until the last start, of training facts still going on."""
    train = graph.span("train")
    start, end = graph.start[train], graph.end[train]
    is_open = _finite(start) & (end == OPEN_END)
    least = last_start(graph) - start[is_open]
    return graph.relation[train][is_open], least.astype(np.float64)


def last_start(graph: TemporalGraph) -> int:
    """Return the last start in train, which counts as now; `OPEN_END` if no start is known.

    Ends do not count: a planned one may lie in the future.
    """
    start = graph.start[graph.span("train")]
    known = start[_finite(start)]
    return int(known.max()) if len(known) else OPEN_END


def _with_all(relation: Ids, size: int, *values: Floats) -> list[Floats]:
    """Return the sums of values by relation, and of all relations last."""
    sums = (np.bincount(relation, value, size) for value in values)
    return [np.append(of_relation, of_relation.sum()) for of_relation in sums]


def _finite(time: Ints) -> Mask:
    return ~np.isin(time, (UNKNOWN, OPEN_START, OPEN_END))


def _hazard(ratio: Floats) -> Floats:
    """Return φ(a) / Φ(a): by how many sigma truncation moves the mean, for a = mu / sigma."""
    return np.asarray(np.exp(-0.5 * ratio**2 - _HALF_LOG_TAU - log_ndtr(ratio)))


def _most_likely(count: Ints | Floats, total: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Return mu and sigma from counts, sums and sums of squares of lengths.

    The likeliest density is the one with the sample's mean and mean square. With a = mu / sigma
    the mean is sigma (a + λ) and the mean square sigma² (1 + a (a + λ)), λ = φ(a) / Φ(a), so the
    ratio of the mean square to the squared mean depends on a alone, and falls as a rises.
    """
    mean = total / np.maximum(count, 1)
    # At least 1; where all lengths are 0, there is no spread.
    spread = np.divide(squares * count, total**2, out=np.ones(len(total)), where=total > 0)
    low, high = np.full(len(mean), _MIN_RATIO), np.full(len(mean), _MAX_RATIO)
    for _ in range(_BISECTIONS):
        ratio = (low + high) / 2
        moved = ratio + _hazard(ratio)
        below = (1 + ratio * moved) / moved**2 > spread
        low, high = np.where(below, ratio, low), np.where(below, high, ratio)
    ratio = (low + high) / 2
    sigma = mean / (ratio + _hazard(ratio))
    return np.where(sigma < _MIN_SIGMA, mean, ratio * sigma), np.maximum(sigma, _MIN_SIGMA)
