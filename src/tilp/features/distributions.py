"""Distributions of temporal features: Bernoulli, Gaussian and exponential (Appendix A).

Each holds its parameters as arrays, one place a distribution, and gives those at some places by
`[...]`. Densities are logarithms, so that those far from the mean do not vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bernoulli", "Exponential", "Gaussian", "PairInterval"]

Floats = NDArray[np.float64]

_LEAST_SCALE = 0.5  # times are whole units; nothing is known finer


@dataclass(frozen=True)
class Bernoulli:
    """p^x (1 - p)^(1 - x).

    Attributes:
        probability: p.
    """

    probability: Floats

    @classmethod
    def fit(cls, place: NDArray[Any], x: NDArray[np.bool_], places: int) -> Bernoulli:
        """The mean of what was seen at each place, with one of each added: never 0 nor 1."""
        seen = np.bincount(place, minlength=places)
        return cls((np.bincount(place, x, places) + 1.0) / (seen + 2.0))

    def __getitem__(self, place: Any) -> Bernoulli:
        return Bernoulli(self.probability[place])

    def log_density(self, x: NDArray[np.bool_]) -> Floats:
        """The logarithm of the probability of each x."""
        logs: Floats = np.log(np.where(x, self.probability, 1.0 - self.probability))
        return logs


@dataclass(frozen=True)
class Gaussian:
    """N(x; μ, σ).

    Attributes:
        mean: μ.
        deviation: σ.

    >>> born_to_graduation = Gaussian(np.array(22.0), np.array(1.0))
    >>> print(f"{np.exp(born_to_graduation.log_density(np.array(47.0))):.3e}")
    7.654e-137
    """

    mean: Floats
    deviation: Floats

    @classmethod
    def fit(cls, place: NDArray[Any], x: Floats, places: int) -> Gaussian:
        """Mean and deviation of what was seen at each place; the deviation is never too small."""
        seen = np.maximum(np.bincount(place, minlength=places), 1)
        mean = np.bincount(place, x, places) / seen
        variance = np.bincount(place, (x - mean[place]) ** 2, places) / seen
        return cls(mean, np.maximum(np.sqrt(variance), _LEAST_SCALE))

    def __getitem__(self, place: Any) -> Gaussian:
        return Gaussian(self.mean[place], self.deviation[place])

    def log_density(self, x: Floats) -> Floats:
        """The logarithm of the density at each x."""
        away = (x - self.mean) / self.deviation
        logs: Floats = -0.5 * away * away - np.log(self.deviation) - 0.5 * np.log(2.0 * np.pi)
        return logs


@dataclass(frozen=True)
class Exponential:
    """λ exp(-λx).

    Attributes:
        rate: λ.
    """

    rate: Floats

    @classmethod
    def fit(cls, place: NDArray[Any], x: Floats, places: int) -> Exponential:
        """One over the mean of what was seen at each place; the mean is never too small."""
        seen = np.maximum(np.bincount(place, minlength=places), 1)
        return cls(1.0 / np.maximum(np.bincount(place, x, places) / seen, _LEAST_SCALE))

    def __getitem__(self, place: Any) -> Exponential:
        return Exponential(self.rate[place])

    def log_density(self, x: Floats) -> Floats:
        """The logarithm of the density at each x."""
        logs: Floats = np.log(self.rate) - self.rate * x
        return logs


@dataclass(frozen=True)
class PairInterval:
    """Gaussian or exponential, whichever makes what was seen more likely.

    Attributes:
        gaussian: what the Gaussian would be at each place; likewise `exponential`.
        is_gaussian: which of them it is.
    """

    gaussian: Gaussian
    exponential: Exponential
    is_gaussian: NDArray[np.bool_]

    @classmethod
    def fit(cls, place: NDArray[Any], x: Floats, places: int) -> PairInterval:
        """Fit both at each place; where they are equally likely, the exponential is taken."""
        gaussian = Gaussian.fit(place, x, places)
        exponential = Exponential.fit(place, x, places)
        by_gaussian, by_exponential = (
            np.bincount(place, logs, places)
            for logs in (gaussian[place].log_density(x), exponential[place].log_density(x))
        )
        return cls(gaussian, exponential, by_gaussian > by_exponential)

    def __getitem__(self, place: Any) -> PairInterval:
        return PairInterval(self.gaussian[place], self.exponential[place], self.is_gaussian[place])

    def log_density(self, x: Floats) -> Floats:
        """The logarithm of the density at each x."""
        both = self.gaussian.log_density(x), self.exponential.log_density(x)
        return np.where(self.is_gaussian, *both)
