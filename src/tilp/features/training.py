"""Training phase two: weights of temporal features, with the weights of rules as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from tilp.attention.state import LossCurve, TrainingState
from tilp.errors import TilpError
from tilp.features.evidence import KINDS, Evidence
from tilp.features.paper import PaperFeatures
from tilp.features.scoring import measure
from tilp.features.weights import FEATURES, FeatureWeights
from tilp.graph import QueryTable

__all__ = ["Examples", "FeatureTraining", "TrainedFeatures", "train_features"]

Parameters = dict[str, jax.Array]

_MEASURED_EVERY = 5
_ONE = math.log(math.e - 1.0)  # softplus of it is 1
_TEMPERATURE = 0.1  # to begin with


@dataclass(frozen=True)
class FeatureTraining:
    """What decides the weights; the same settings give the same weights.

    Attributes:
        steps: gradient steps at the most.
        patience: steps without a better loss on held-out queries before training ends.
        learning_rate: falling to 0 along half a cosine.
        pull: how strongly w and b are drawn to where they begin.
    """

    steps: int = 200
    patience: int = 30
    learning_rate: float = 0.05
    pull: float = 1.0


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
    *,
    progress: Callable[[float], None] | None = None,
) -> TrainedFeatures:
    """Learn what makes the answers likely: the softmax of φ_TILP over the listed candidates.

    Args:
        features: with fitted distributions.
        training: the queries to learn from.
        held_out: the queries that tell when to stop.
        settings: what decides the weights.
        progress: called with the share that is done.

    Raises:
        TilpError: no training query has its answer among the listed candidates.
    """
    given, n_queries = _arrays(features, training)
    if not n_queries:
        raise TilpError(
            "temporal features have nothing to learn from: no query's answer is among its "
            "candidates; list it with them"
        )
    # Where no held-out query has its answer listed they cannot decide.
    judge = held_out if (held_out.answer_place >= 0).any() else training
    judged, n_judged = _arrays(features, judge)
    values = _first(features)
    optimiser = optax.adam(optax.cosine_decay_schedule(settings.learning_rate, settings.steps))
    state = TrainingState(values, optimiser.init(values), values)
    patience = max(settings.patience, _MEASURED_EVERY)
    while state.step < settings.steps and state.step - state.best_step < patience:
        loss, slope = _slope(state.values, values, settings.pull, given, n_queries)
        updates, state.optimiser = optimiser.update(slope, state.optimiser, state.values)
        state.values = optax.apply_updates(state.values, updates)
        state.step += 1
        state.curve.train.append(float(loss))
        if state.step % _MEASURED_EVERY == 0 or state.step == settings.steps:
            state.measure(float(_loss(state.values, judged, n_judged)))
        if progress is not None:
            progress(state.step / settings.steps)
    return TrainedFeatures(_weights(state.best), state.curve)


class _Arrays(NamedTuple):
    """`Measured` and `Examples`, for those queries whose answer is listed."""

    head: jax.Array
    recurrence: jax.Array
    group: jax.Array
    pair: jax.Array
    order: jax.Array
    interval: jax.Array
    phi: jax.Array
    query: jax.Array
    answer: jax.Array


def _arrays(features: PaperFeatures, examples: Examples) -> tuple[_Arrays, int]:
    """The arrays of examples, and how many queries they have."""
    measured = measure(features.fitted, examples.queries, examples.evidence)
    asked = examples.answer_place >= 0
    number = np.cumsum(asked) - 1
    # Candidates of queries that teach nothing go past the last query, where they are dropped.
    query = np.where(asked, number, asked.sum())[examples.evidence.query]
    columns = (
        measured.head,
        measured.recurrence,
        measured.group,
        measured.pair,
        measured.order,
        measured.interval,
        examples.phi,
        query,
        examples.answer_place[asked],
    )
    return _Arrays(
        *(jnp.asarray(one, jnp.float32 if one.dtype.kind == "f" else jnp.int32) for one in columns)
    ), int(asked.sum())


def _first(features: PaperFeatures) -> Parameters:
    """Where parameters begin: probabilities as they are, everything mixed in equal parts."""
    directed, pairs = features.fitted.directed, len(features.fitted)
    return {
        "recurrence_weight": jnp.ones((2, directed)),
        "recurrence_bias": jnp.zeros((2, directed)),
        # Of each pair: w and b of order, w and b of pair interval.
        "pairs": jnp.zeros((pairs, 4)),
        "mixing": jnp.zeros((len(KINDS), len(FEATURES))),
        "evidence": jnp.full(len(KINDS), _ONE),
        "parts": jnp.full(2, _ONE),
        "temperature": jnp.log(jnp.array(_TEMPERATURE)),
    }


def _mixing(values: Parameters) -> jax.Array:
    """γ of eq. 19-21: shares of the features in each kind of evidence."""
    no_recurrence = jnp.zeros((len(KINDS), len(FEATURES))).at[KINDS.index("walks"), 0].set(-jnp.inf)
    return jax.nn.softmax(values["mixing"] + no_recurrence, axis=1)


def _scores(values: Parameters, given: _Arrays) -> jax.Array:
    """φ_TILP of each candidate (eq. 16), as `score_terms` has it."""
    of_recurrence = (
        values["recurrence_weight"][:, given.head].T * given.recurrence
        + values["recurrence_bias"][:, given.head].T
    )
    w_order, b_order, w_pair, b_pair = values["pairs"][given.pair].T
    by_order, by_pair = jnp.exp(w_order), jnp.exp(w_pair)
    n_groups = len(given.head) * len(KINDS)
    sums = jax.ops.segment_sum(
        jnp.stack(
            [by_order * (given.order + b_order), by_order, by_pair * (given.interval + b_pair),
             by_pair],
            axis=1,
        ),
        given.group,
        n_groups,
        indices_are_sorted=True,
    )  # fmt: skip
    below = jnp.where(sums[:, 1::2] > 0, sums[:, 1::2], 1.0)
    means = (sums[:, 0::2] / below).reshape(-1, len(KINDS), 2)
    recurrence = jnp.pad(of_recurrence, ((0, 0), (0, 1)))[:, :, None]
    found = jnp.concatenate([recurrence, means], axis=2)
    of_kind = (found * _mixing(values)).sum(axis=2)
    rules, features = jax.nn.softplus(values["parts"])
    scores: jax.Array = rules * given.phi + features * (
        of_kind @ jax.nn.softplus(values["evidence"])
    )
    return scores


@partial(jax.jit, static_argnums=2)
def _loss(values: Parameters, given: _Arrays, n_queries: int) -> jax.Array:
    """The mean negative log-likelihood of the answers among the listed candidates."""
    scores = _scores(values, given) / jnp.exp(values["temperature"])
    highest = jax.ops.segment_max(scores, given.query, n_queries + 1)
    highest = jax.lax.stop_gradient(highest)
    total = jax.ops.segment_sum(jnp.exp(scores - highest[given.query]), given.query, n_queries + 1)
    whole = jnp.log(total[:n_queries]) + highest[:n_queries]
    return (whole - scores[given.answer]).mean()


@partial(jax.jit, static_argnums=4)
@jax.value_and_grad
def _slope(
    values: Parameters, towards: Parameters, pull: float, given: _Arrays, n_queries: int
) -> jax.Array:
    """The loss with what draws w and b to where they began, and its gradient."""
    drawn = ("recurrence_weight", "recurrence_bias", "pairs")
    away = sum(jnp.square(values[name] - towards[name]).sum() for name in drawn)
    loss: jax.Array = _loss(values, given, n_queries) + 0.5 * pull * away / n_queries
    return loss


def _weights(values: Parameters) -> FeatureWeights:
    """What the parameters mean."""
    held = {name: np.asarray(one, np.float64) for name, one in values.items()}
    # Shares in single precision would not add up to 1.
    mixing = np.asarray(_mixing(values), np.float64)
    rules, features = np.logaddexp(0.0, held["parts"])
    return FeatureWeights(
        recurrence_weight=held["recurrence_weight"],
        recurrence_bias=held["recurrence_bias"],
        order_weight=held["pairs"][:, 0],
        order_bias=held["pairs"][:, 1],
        pair_weight=held["pairs"][:, 2],
        pair_bias=held["pairs"][:, 3],
        mixing=mixing / mixing.sum(axis=1, keepdims=True),
        evidence=np.logaddexp(0.0, held["evidence"]),
        rules=float(rules),
        features=float(features),
        temperature=float(np.exp(held["temperature"])),
    )
