"""`FeatureWeights`: what training phase two learns (eq. 14, 16-21)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError

__all__ = ["FEATURES", "FeatureWeights"]

FEATURES = ("recurrence", "order", "pair")
"""The temporal features that candidates are scored by; walks know no recurrence."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureWeights:
    """Weights of temporal features.

    Attributes:
        recurrence_weight: w of eq. 18, for the facts with the subject and for others, by relation.
        recurrence_bias: b of eq. 18, likewise.
        order_weight: w of eq. 17, for each pair of `FittedFeatures`; likewise `pair_weight`.
        order_bias: b of eq. 17, for each pair; likewise `pair_bias`.
        mixing: γ of eq. 19-21, by kind of evidence and feature; the sum of each kind is 1.
        evidence: γ_1, γ_2, γ_3 of eq. 14.
        rules: γ_TLR of eq. 16; likewise `features`, γ_tfm.
        temperature: that scores were divided by in training; ranks do not depend on it.
    """

    recurrence_weight: Floats
    recurrence_bias: Floats
    order_weight: Floats
    order_bias: Floats
    pair_weight: Floats
    pair_bias: Floats
    mixing: Floats
    evidence: Floats
    rules: float
    features: float
    temperature: float

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays by name."""
        return {one.name: np.asarray(getattr(self, one.name), np.float64) for one in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> FeatureWeights:
        """What `to_arrays` gave.

        Raises:
            TilpError: an array is missing.
        """
        names = [one.name for one in fields(cls)]
        lacking = [name for name in names if name not in arrays]
        if lacking:
            raise TilpError(f"weights of features lack {', '.join(lacking)}; fit the model anew")
        held: dict[str, Any] = {
            name: arrays[name] if arrays[name].ndim else float(arrays[name]) for name in names
        }
        return cls(**held)

    def of(self, heads: NDArray[np.int64], place: NDArray[np.int64]) -> FeatureWeights:
        """The weights for other numbers of relations and pairs.

        Args:
            heads: for each new head the old one; -1: none, which has the weights of any.
            place: for each new pair the old one.
        """
        by_head = {
            name: getattr(self, name)[:, heads] for name in ("recurrence_weight", "recurrence_bias")
        }
        names = ("order_weight", "order_bias", "pair_weight", "pair_bias")
        return replace(self, **by_head, **{name: getattr(self, name)[place] for name in names})
