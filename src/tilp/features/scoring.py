"""Scores of candidates by temporal features (eq. 14, 16-21)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.features.distributions import Bernoulli
from tilp.features.evidence import KINDS, Evidence
from tilp.features.fitted import FittedFeatures, recurs
from tilp.features.weights import FEATURES, FeatureWeights
from tilp.graph import QueryTable

__all__ = ["TERMS", "Measured", "measure", "score_pieces", "score_terms"]

Floats = NDArray[np.float64]

TERMS = (
    "rules",
    *(
        f"{feature}_{kind}"
        for kind in KINDS
        for feature in FEATURES
        if (feature, kind) != ("recurrence", "walks")
    ),
)
"""The parts that a score is the sum of."""


@dataclass(frozen=True)
class Measured:
    """The probabilities h of the evidence for candidates: all that scores need but the weights.

    Attributes:
        head: the query's relation, for each candidate.
        recurrence: h_rec, for each candidate, in its facts with the subject and in its others.
        group: candidate and kind of each dated piece of evidence: row · 3 + kind; never falling.
        pair: its place in `FittedFeatures`.
        order: h_order of it.
        interval: h_pair of it.
    """

    head: NDArray[np.int32]
    recurrence: Floats
    group: NDArray[np.int64]
    pair: NDArray[np.int64]
    order: Floats
    interval: Floats


def measure(fitted: FittedFeatures, queries: QueryTable, evidence: Evidence) -> Measured:
    """The probabilities of the evidence."""
    head = queries.head[evidence.query]
    again = Bernoulli(fitted.recurrence.probability[:, head].T)
    row, kind, of_row, relation, apart = evidence.dated(queries)
    pair = fitted.places(kind, of_row, relation)
    return Measured(
        head=head,
        recurrence=np.exp(again.log_density(recurs(queries, evidence))),
        group=row * len(KINDS) + kind,
        pair=pair,
        order=np.exp(fitted.order[pair].log_density(apart > 0)),
        interval=np.exp(fitted.interval[pair].log_density(np.abs(apart))),
    )


def score_terms(weights: FeatureWeights, measured: Measured, phi: Floats) -> dict[str, Floats]:
    """What each of `TERMS` adds to the score of each candidate, γ and all (eq. 14, 16, 19-21).

    Args:
        weights: what was learned.
        measured: the evidence for the candidates.
        phi: φ_TLR of each candidate.
    """
    of_recurrence = (  # eq. 18
        weights.recurrence_weight[:, measured.head].T * measured.recurrence
        + weights.recurrence_bias[:, measured.head].T
    )
    of_order = _by_kind(weights.order_weight, weights.order_bias, measured, measured.order)
    of_pair = _by_kind(weights.pair_weight, weights.pair_bias, measured, measured.interval)
    found = {"recurrence": of_recurrence, "order": of_order, "pair": of_pair}
    terms = {"rules": weights.rules * phi}
    for number, kind in enumerate(KINDS):
        for place, feature in enumerate(FEATURES):
            name = f"{feature}_{kind}"
            if name in TERMS:
                share = weights.mixing[number, place] * weights.evidence[number]
                terms[name] = weights.features * share * found[feature][:, number]
    return terms


def score_pieces(weights: FeatureWeights, measured: Measured) -> dict[str, Floats]:
    """What each dated piece of evidence adds to its candidate's terms of order and of pair."""
    kind = measured.group % len(KINDS)
    found = {}
    for feature, weight, bias, h in (
        ("order", weights.order_weight, weights.order_bias, measured.order),
        ("pair", weights.pair_weight, weights.pair_bias, measured.interval),
    ):
        mass = np.exp(weight[measured.pair])
        share = mass / np.bincount(measured.group, mass)[measured.group]
        mixing = weights.mixing[kind, FEATURES.index(feature)] * weights.evidence[kind]
        found[feature] = weights.features * mixing * share * (h + bias[measured.pair])
    return found


def _by_kind(weight: Floats, bias: Floats, measured: Measured, h: Floats) -> Floats:
    """φ of eq. 17 for each candidate and kind; 0 where there is no evidence."""
    size = len(measured.head) * len(KINDS)
    mass = np.exp(weight[measured.pair])
    above = np.bincount(measured.group, mass * (h + bias[measured.pair]), size)
    below = np.bincount(measured.group, mass, size)
    mean = np.divide(above, below, out=np.zeros(size), where=below > 0)
    return mean.reshape(-1, len(KINDS))
