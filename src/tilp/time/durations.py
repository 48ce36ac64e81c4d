"""*Duration*: how long the facts of each relation last, a Gaussian truncated to [0, ∞)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN

if TYPE_CHECKING:
    from tilp.graph import TemporalGraph, Vocabulary

_FEWEST = 10  # complete intervals of a relation that are enough for parameters of its own
_LEAST_SIGMA = 0.1  # of the unit; all of a relation's intervals may be of one length
# Bounds of mu / sigma. At the lower one the density is all but exponential: where lengths spread
# still more, the likelihood has no greatest value, and rises on and on towards the exponential.
_LOWEST, _HIGHEST = -10.0, 1e6
_HALVINGS = 80
_HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Durations:
    """The lengths of intervals by relation: ψ(mu, sigma, 0, ∞) in the paper's Duration.

    Relations with few complete intervals have the parameters of all relations together.

    Attributes:
        relations: their names.
        mu: of each relation, before truncation; likewise `sigma`.
        intervals: how many complete ones each relation has.
        all_mu: of all relations together; likewise `all_sigma`.
    """

    relations: Vocabulary
    mu: Numbers
    sigma: Numbers
    intervals: NDArray[np.int64]
    all_mu: float
    all_sigma: float

    @classmethod
    def fit(cls, graph: TemporalGraph) -> Durations:
        """By maximum likelihood, from the training facts both of whose ends are known.

        Ends that are estimates are not known.
        """
        relation, length = observed_lengths(graph)
        size = len(graph.relations)
        count = np.bincount(relation, minlength=size)
        first = np.bincount(relation, length, size)
        second = np.bincount(relation, length**2, size)
        mu, sigma = _most_likely(
            np.append(count, count.sum()),
            np.append(first, first.sum()),
            np.append(second, second.sum()),
        )
        few = count < _FEWEST
        return cls(
            graph.relations,
            np.where(few, mu[-1], mu[:-1]),
            np.where(few, sigma[-1], sigma[:-1]),
            count,
            float(mu[-1]),
            float(sigma[-1]),
        )

    def __repr__(self) -> str:
        own = int((self.intervals >= _FEWEST).sum())
        return f"Durations({own:,} of {len(self.mu):,} relations with parameters of their own)"

    def of(self, relations: Vocabulary) -> Durations:
        """The same by the relations of another graph; those that are new are as all together."""
        known = {name: number for number, name in enumerate(self.relations)}
        place = np.array([known.get(name, -1) for name in relations], np.int64)
        new = place < 0
        return Durations(
            relations,
            np.where(new, self.all_mu, self.mu[place]),
            np.where(new, self.all_sigma, self.sigma[place]),
            np.where(new, 0, self.intervals[place]),
            self.all_mu,
            self.all_sigma,
        )

    @property
    def mean(self) -> Numbers:
        """The expected length of each relation's intervals."""
        return self.mu + self.sigma * _hazard(self.mu / self.sigma)

    @property
    def deviation(self) -> Numbers:
        """The standard deviation of the length of each relation's intervals."""
        a = self.mu / self.sigma
        moved = _hazard(a)
        deviation: Numbers = self.sigma * np.sqrt(1.0 - moved * (a + moved))
        return deviation

    def frame(self) -> pl.DataFrame:
        """A row for each relation: its name, parameters, mean, and what they are fitted to."""
        return pl.DataFrame(
            {
                "relation": list(self.relations),
                "intervals": self.intervals,
                "mu": self.mu,
                "sigma": self.sigma,
                "mean": self.mean,
                "pooled": self.intervals < _FEWEST,
            }
        )

    def log_density(self, relation: NDArray[np.int32], length: Numbers) -> Numbers:
        """The logarithm of the density of lengths; minus infinity below 0."""
        mu, sigma = self.mu[relation], self.sigma[relation]
        inside = (
            -0.5 * ((length - mu) / sigma) ** 2
            - np.log(sigma)
            - _HALF_LOG_TAU
            - log_ndtr(mu / sigma)
        )
        return np.where(length >= 0, inside, -np.inf)

    def quantile(self, relation: NDArray[np.int32], chance: Numbers) -> Numbers:
        """The lengths that a share of the intervals falls below: draws, of chances that are drawn.

        Through the logarithm of the upper tail, which is exact however far below 0 mu is.
        """
        mu, sigma = self.mu[relation], self.sigma[relation]
        z = -ndtri_exp(np.log1p(-chance) + log_ndtr(mu / sigma))
        length: Numbers = np.maximum(mu + sigma * z, 0.0)
        return length

    def estimate(
        self,
        relation: NDArray[np.int32],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        chance: Numbers | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends, a missing one set so that the length is as estimated, in whole units.

        What has no finite end to count from stays as it is.

        Args:
            relation: of each interval.
            start: `UNKNOWN` where it is missing; likewise `end`.
            chance: for a draw of each length; without, its expected value is taken.
        """
        length = self.mean[relation] if chance is None else self.quantile(relation, chance)
        whole = np.rint(length).astype(np.int64)
        no_start, no_end = (start == UNKNOWN) & _finite(end), (end == UNKNOWN) & _finite(start)
        # Where there is nothing to count from, a sum would overflow.
        from_end, from_start = np.where(no_start, end, 0), np.where(no_end, start, 0)
        return (
            np.where(no_start, from_end - whole, start),
            np.where(no_end, from_start + whole, end),
        )


def observed_lengths(graph: TemporalGraph) -> tuple[NDArray[np.int32], Numbers]:
    """Relations and lengths of the training facts both of whose ends are known, no estimates."""
    train = graph.span("train")
    start, end = graph.start[train], graph.end[train]
    complete = _finite(start) & _finite(end) & (graph.estimated[train] == 0)
    return graph.relation[train][complete], (end - start)[complete].astype(np.float64)


def _finite(time: NDArray[np.int64]) -> NDArray[np.bool_]:
    return ~np.isin(time, (UNKNOWN, OPEN_START, OPEN_END))


def _hazard(a: Numbers) -> Numbers:
    """φ(a) / Φ(a), of which truncation moves the mean in units of sigma, for a = mu / sigma."""
    ratio: Numbers = np.exp(-0.5 * a**2 - _HALF_LOG_TAU - log_ndtr(a))
    return ratio


def _most_likely(
    count: NDArray[np.int64], first: Numbers, second: Numbers
) -> tuple[Numbers, Numbers]:
    """The parameters, from numbers, sums and sums of squares of lengths.

    The likeliest density is the one with the sample's mean and mean square. With a = mu / sigma
    the mean is sigma (a + λ) and the mean square sigma² (1 + a (a + λ)), λ = φ(a) / Φ(a), so the
    ratio of the mean square to the squared mean depends on a alone, and falls as a rises.
    """
    mean = first / np.maximum(count, 1)
    spread = np.divide(
        second * count, first**2, out=np.ones(len(first)), where=first > 0
    )  # ≥ 1; all lengths 0: no spread
    low, high = np.full(len(mean), _LOWEST), np.full(len(mean), _HIGHEST)
    for _ in range(_HALVINGS):
        a = (low + high) / 2
        moved = a + _hazard(a)
        below = (1 + a * moved) / moved**2 > spread
        low, high = np.where(below, a, low), np.where(below, high, a)
    a = (low + high) / 2
    sigma = mean / (a + _hazard(a))
    floored = sigma < _LEAST_SIGMA
    return np.where(floored, mean, a * sigma), np.maximum(sigma, _LEAST_SIGMA)
