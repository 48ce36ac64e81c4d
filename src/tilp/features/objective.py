"""`FeatureObjective`: the likelihood of answers among listed candidates, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.feature_likelihood import FeatureTable, FeatureValues, add_feature_likelihood
from tilp.features.evidence import KINDS, Evidence
from tilp.features.paper import PaperFeatures
from tilp.features.scoring import measure
from tilp.features.weights import FeatureWeights
from tilp.graph import QueryTable
from tilp.parallel import Workers, cut_by_cost

__all__ = ["Examples", "FeatureObjective", "FeatureValues", "feature_values"]

_PARTS = 16  # of the queries; does not depend on the number of threads


@dataclass(frozen=True)
class Examples:
    """Queries to learn from, or to be judged by.

    Attributes:
        queries: the queries.
        evidence: for the candidates that are listed for them.
        phi: φ_TLR of each candidate.
        answer_place: where each query's answer stands in the list; -1: not there, and the query
            teaches nothing.
    """

    queries: QueryTable
    evidence: Evidence
    phi: NDArray[np.float64]
    answer_place: NDArray[np.int64]


class FeatureObjective:
    """The negative logarithm of the answers' softmax over candidates, as a mean over queries.

    Args:
        features: with fitted distributions.
        examples: the queries.
    """

    def __init__(self, features: PaperFeatures, examples: Examples) -> None:
        evidence = examples.evidence
        measured = measure(features.fitted, examples.queries, evidence)
        groups = np.arange(len(evidence.candidate) * len(KINDS) + 1)
        self._table = FeatureTable(
            evidence.offsets,
            examples.answer_place,
            measured.head,
            examples.phi,
            measured.recurrence,
            np.searchsorted(measured.group, groups),
            measured.pair,
            measured.order,
            measured.interval,
        )
        pieces = self._table.begin[len(KINDS) * evidence.offsets]
        self._parts = cut_by_cost(np.diff(pieces) + np.diff(evidence.offsets) + 1.0, _PARTS)
        self.asked = int((examples.answer_place >= 0).sum())

    def __call__(self, values: FeatureValues, workers: Workers) -> tuple[float, FeatureValues]:
        """The mean loss, and its gradient."""

        def one(part: slice) -> tuple[float, FeatureValues]:
            of = FeatureValues(*(np.zeros_like(array) for array in values))
            loss = add_feature_likelihood(part.start, part.stop, self._table, values, of)
            return loss, of

        total = 0.0
        gradient = FeatureValues(*(np.zeros_like(array) for array in values))
        for loss, of in workers.map_here(one, self._parts):
            total += loss
            for whole, share in zip(gradient, of, strict=True):
                whole += share
        asked = max(self.asked, 1)
        return total / asked, FeatureValues(*(array / asked for array in gradient))


def feature_values(weights: FeatureWeights) -> FeatureValues:
    """What the objective makes scores of."""
    of_pairs = (weights.order_weight, weights.order_bias, weights.pair_weight, weights.pair_bias)
    return FeatureValues(
        np.stack([weights.recurrence_weight, weights.recurrence_bias]),
        np.stack(of_pairs, axis=1),
        weights.features * weights.evidence[:, None] * weights.mixing,
        np.array([weights.rules, 1.0 / weights.temperature]),
    )
