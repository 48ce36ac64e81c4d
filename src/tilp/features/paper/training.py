"""`FeatureObjective`: the likelihood of answers among listed candidates, and its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from tilp._kernels.likelihood import FeatureTable, FeatureValues, add_feature_likelihood
from tilp.errors import TilpError
from tilp.features.paper.evidence import EVIDENCE_KINDS, Evidence
from tilp.features.paper.features import FEATURES, FeatureWeights, PaperFeatures, measure
from tilp.graph import QueryTable
from tilp.learning.checkpoint import LossCurve, TrainingState
from tilp.parallel import Workers, cut_by_cost

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
        groups = np.arange(len(evidence.candidate) * len(EVIDENCE_KINDS) + 1)
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
        pieces = self._table.evidence_offsets[len(EVIDENCE_KINDS) * evidence.offsets]
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


Parameters = dict[str, Any]

_MEASURED_EVERY = 5
_ONE = math.log(math.e - 1.0)  # softplus of it is 1
_TEMPERATURE = 0.1  # to begin with
_NEVER = -1e9  # a logit; infinite ones have no gradient
_DRAWN = ("recurrence", "pairs")
_COOLER_TO_WARMER = 2.0 ** np.arange(-4, 2.25, 0.25)


@dataclass(frozen=True)
class FeatureTraining:
    """What decides the weights; the same settings give the same weights.

    Attributes:
        steps: gradient steps at the most.
        patience: steps without a better loss on held-out queries before training ends.
        learning_rate: falling to 0 along half a cosine.
        pull: how strongly w and b are drawn to where they begin.
        without: of `FEATURES`, those that are left out.
    """

    steps: int = 200
    patience: int = 30
    learning_rate: float = 0.05
    pull: float = 1.0
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainedFeatures:
    """What training found.

    Attributes:
        weights: of the step with the least loss on held-out queries.
        curve: of the loss.
    """

    weights: FeatureWeights
    curve: LossCurve


def train_features(
    features: PaperFeatures,
    training: Examples,
    held_out: Examples,
    settings: FeatureTraining,
    workers: Workers | None = None,
    *,
    progress: Callable[[float], None] | None = None,
) -> TrainedFeatures:
    """Learn what makes the answers likely: the softmax of φ_TILP over the listed candidates.

    Args:
        features: with fitted distributions.
        training: the queries to learn from.
        held_out: the queries that tell when to stop.
        settings: what decides the weights.
        workers: do not change the result.
        progress: called with the share that is done.

    Raises:
        TilpError: no training query has its answer among the listed candidates.
    """
    workers = workers or Workers()
    objective, judge = (FeatureObjective(features, one) for one in (training, held_out))
    if not objective.asked:
        raise TilpError(
            "temporal features have nothing to learn from: no query's answer is among its "
            "candidates; list it with them"
        )
    # Where no held-out query has its answer listed they cannot decide.
    judge = judge if judge.asked else objective
    first = _first(features, settings.without)
    optimiser = optax.adam(optax.cosine_decay_schedule(settings.learning_rate, settings.steps))
    state = TrainingState(first, optimiser.init(first), first)
    patience = max(settings.patience, _MEASURED_EVERY)
    while state.step < settings.steps and state.step - state.best_step < patience:
        loss, gradient = _gradient(state.values, first, settings.pull, objective, workers)
        updates, state.optimiser = optimiser.update(gradient, state.optimiser, state.values)
        state.values = optax.apply_updates(state.values, updates)
        state.step += 1
        state.curve.train.append(loss)
        if state.step % _MEASURED_EVERY == 0 or state.step == settings.steps:
            state.measure(judge(feature_values(_weights(state.values)), workers)[0])
        if progress is not None:
            progress(state.step / settings.steps)
    return TrainedFeatures(_weights(state.best), state.curve)


def tempered(
    features: PaperFeatures, weights: FeatureWeights, held_out: Examples, workers: Workers
) -> FeatureWeights:
    """The weights with the temperature that makes held-out answers likeliest."""
    judge = FeatureObjective(features, held_out)
    found = [replace(weights, temperature=weights.temperature * by) for by in _COOLER_TO_WARMER]
    losses = [judge(feature_values(one), workers)[0] for one in found]
    return found[int(np.argmin(losses))]


def _first(features: PaperFeatures, without: tuple[str, ...]) -> Parameters:
    """Where parameters begin: probabilities as they are, everything mixed in equal parts."""
    directed, pairs = features.fitted.directed, len(features.fitted)
    mixing = np.zeros((len(EVIDENCE_KINDS), len(FEATURES)))
    mixing[EVIDENCE_KINDS.index("walks"), FEATURES.index("recurrence")] = -np.inf
    mixing[:, [FEATURES.index(name) for name in without]] = -np.inf
    return {
        "recurrence": jnp.stack([jnp.ones((2, directed)), jnp.zeros((2, directed))]),
        "pairs": jnp.zeros((pairs, 4)),
        "mixing": jnp.asarray(mixing),
        "evidence": jnp.full(len(EVIDENCE_KINDS), _ONE),
        "parts": jnp.full(2, _ONE),
        "temperature": jnp.log(jnp.array(_TEMPERATURE)),
    }


def _gradient(
    values: Parameters,
    first: Parameters,
    pull: float,
    objective: FeatureObjective,
    workers: Workers,
) -> tuple[float, Parameters]:
    """The loss with what draws w and b to where they began, and the gradient for parameters."""
    small = {name: value for name, value in values.items() if name not in _DRAWN}
    _, back = jax.vjp(_factors, small)
    loss, of = objective(feature_values(_weights(values)), workers)
    gradient = {"recurrence": of.recurrence, "pairs": of.pairs}
    for name in _DRAWN:
        away = np.asarray(values[name] - first[name], np.float64)
        loss += 0.5 * pull * float((away * away).sum()) / objective.asked
        gradient[name] = gradient[name] + pull * away / objective.asked
    (of_small,) = back((jnp.asarray(of.factor), jnp.asarray(of.scale)))
    return loss, {**gradient, **of_small}


def _factors(values: Parameters) -> tuple[jax.Array, jax.Array]:
    """What φ of each kind and feature counts; what φ_TLR counts, and one over the temperature."""
    rules, features = jax.nn.softplus(values["parts"])
    evidence = jax.nn.softplus(values["evidence"])
    factor = features * evidence[:, None] * _mixing(values["mixing"])
    return factor, jnp.stack([rules, jnp.exp(-values["temperature"])])


def _mixing(logits: jax.Array) -> jax.Array:
    """γ of eq. 19-21: shares of the features in each kind of evidence, but those left out."""
    used = jnp.isfinite(logits)
    return jax.nn.softmax(jnp.where(used, logits, _NEVER), axis=1) * used


def _weights(values: Parameters) -> FeatureWeights:
    """What the parameters are in the equations."""
    held = {name: np.asarray(one, np.float64) for name, one in values.items()}
    # Shares in single precision would not add up to 1.
    mixing = np.asarray(_mixing(values["mixing"]), np.float64)
    rules, features = np.logaddexp(0.0, held["parts"])
    return FeatureWeights(
        recurrence_weight=held["recurrence"][0],
        recurrence_bias=held["recurrence"][1],
        order_weight=held["pairs"][:, 0],
        order_bias=held["pairs"][:, 1],
        pair_weight=held["pairs"][:, 2],
        pair_bias=held["pairs"][:, 3],
        mixing=mixing / np.where(mixing.any(axis=1), mixing.sum(axis=1), 1.0)[:, None],
        evidence=np.logaddexp(0.0, held["evidence"]),
        rules=float(rules),
        features=float(features),
        temperature=float(np.exp(held["temperature"])),
    )
