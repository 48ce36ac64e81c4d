"""The likelihood of answers among listed candidates under weighted features, and its gradient."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["FeatureSlopes", "FeatureTable", "FeatureValues", "add_feature_likelihood"]


class FeatureTable(NamedTuple):
    """Queries, their candidates, which begin at `offsets`, and the evidence for these.

    The evidence for a candidate and kind begins at `begin[3 · candidate + kind]`. `answer` is the
    place of a query's answer among the candidates, -1 where it is not one of them.
    """

    offsets: Array
    answer: Array
    head: Array
    phi: Array
    recurrence: Array
    begin: Array
    pair: Array
    order: Array
    interval: Array


class FeatureValues(NamedTuple):
    """What scores are made of: w and b of recurrence; of each pair w and b of order and interval.

    `factor` is what φ of each kind of evidence and feature counts; `scale` what φ_TLR counts, and
    what the whole is multiplied with.
    """

    recurrence: Array
    pairs: Array
    factor: Array
    scale: Array


FeatureSlopes = FeatureValues
"""The gradient has the same shape."""


@kernel
def add_feature_likelihood(
    first: int, last: int, table: FeatureTable, values: FeatureValues, of: FeatureSlopes
) -> float:
    """Add up the gradient of the negative log-likelihood of some queries' answers (eq. 14-21).

    Args:
        first: query to begin with; likewise `last`, where to stop.
        table: the queries.
        values: what scores are made of.
        of: gets the gradient for each of them.

    Returns:
        The negative log-likelihood.
    """
    most = 0
    for query in range(first, last):
        most = max(most, table.offsets[query + 1] - table.offsets[query])
    score = np.empty(most)
    mean = np.zeros((most, 3, 3))
    below = np.empty((most, 3, 2))
    mass = np.exp(values.pairs[:, ::2])
    sharpness = values.scale[1]
    loss = 0.0
    for query in range(first, last):
        if table.answer[query] < 0:
            continue
        low, high = table.offsets[query], table.offsets[query + 1]
        highest = -np.inf
        for row in range(low, high):
            score[row - low] = _score(row, row - low, table, values, mass, mean, below)
            highest = max(highest, score[row - low])
        total = 0.0
        for row in range(low, high):
            total += np.exp(sharpness * (score[row - low] - highest))
        right = score[table.answer[query] - low]
        loss += np.log(total) - sharpness * (right - highest)
        for row in range(low, high):
            away = np.exp(sharpness * (score[row - low] - highest)) / total
            if row == table.answer[query]:
                away -= 1.0
            of.scale[1] += away * score[row - low]
            _add_slopes(row, row - low, away * sharpness, table, values, mass, mean, below, of)
    return loss


@kernel
def _score(
    row: int,
    number: int,
    table: FeatureTable,
    values: FeatureValues,
    mass: Array,
    mean: Array,
    below: Array,
) -> float:
    """φ_TILP of a candidate; φ of each kind and feature goes into `mean`, divisors into `below`.

    `number` is the candidate's among its query's; `mass` is exp(w) of order and interval, for each
    pair.
    """
    head = table.head[row]
    score = values.scale[0] * table.phi[row]
    for kind in range(3):
        if kind < 2:
            weight, bias = values.recurrence[0, kind, head], values.recurrence[1, kind, head]
            mean[number, kind, 0] = weight * table.recurrence[row, kind] + bias
        order = order_mass = interval = interval_mass = 0.0
        for place in range(table.begin[3 * row + kind], table.begin[3 * row + kind + 1]):
            pair = table.pair[place]
            order += mass[pair, 0] * (table.order[place] + values.pairs[pair, 1])
            order_mass += mass[pair, 0]
            interval += mass[pair, 1] * (table.interval[place] + values.pairs[pair, 3])
            interval_mass += mass[pair, 1]
        below[number, kind, 0] = order_mass
        below[number, kind, 1] = interval_mass
        mean[number, kind, 1] = order / order_mass if order_mass > 0.0 else 0.0
        mean[number, kind, 2] = interval / interval_mass if interval_mass > 0.0 else 0.0
        for feature in range(3):
            score += values.factor[kind, feature] * mean[number, kind, feature]
    return score


@kernel
def _add_slopes(
    row: int,
    number: int,
    slope: float,
    table: FeatureTable,
    values: FeatureValues,
    mass: Array,
    mean: Array,
    below: Array,
    of: FeatureSlopes,
) -> None:
    """Add what a candidate's score, whose own gradient is given, adds to the gradient."""
    head = table.head[row]
    of.scale[0] += slope * table.phi[row]
    for kind in range(3):
        for feature in range(3):
            of.factor[kind, feature] += slope * mean[number, kind, feature]
        if kind < 2:
            onward = slope * values.factor[kind, 0]
            of.recurrence[0, kind, head] += onward * table.recurrence[row, kind]
            of.recurrence[1, kind, head] += onward
        for place in range(table.begin[3 * row + kind], table.begin[3 * row + kind + 1]):
            pair = table.pair[place]
            share = slope * values.factor[kind, 1] * mass[pair, 0] / below[number, kind, 0]
            above = table.order[place] + values.pairs[pair, 1]
            of.pairs[pair, 0] += share * (above - mean[number, kind, 1])
            of.pairs[pair, 1] += share
            share = slope * values.factor[kind, 2] * mass[pair, 1] / below[number, kind, 1]
            above = table.interval[place] + values.pairs[pair, 3]
            of.pairs[pair, 2] += share * (above - mean[number, kind, 2])
            of.pairs[pair, 3] += share
