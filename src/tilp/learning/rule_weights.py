"""`Objective`: the likelihood of answers under weighted rules, and its gradient."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from numpy.typing import NDArray

from tilp._kernels.likelihood import add_likelihood
from tilp.learning.attention_net import AttentionNet, Parameters
from tilp.learning.candidates import KNOWN_KINDS, PopularityPrior
from tilp.learning.checkpoint import LossCurve, TrainingState
from tilp.learning.examples import TrainingExamples
from tilp.parallel import Workers, cut_by_cost
from tilp.types import Weights

_PARTS = 16  # of the queries; does not depend on the number of threads


@dataclass(frozen=True)
class LogWeights:
    """Logarithms of what is learned, or the gradient for them.

    Attributes:
        rule: of each rule's weight.
        prior: of the prior's weight, for each directed relation.
        factor: of the factor that known candidates count by, for each directed relation and kind.
    """

    rule: NDArray[np.float64]
    prior: NDArray[np.float64]
    factor: NDArray[np.float64]


class Objective:
    """The negative log-likelihood of the answers of queries, as a mean over them.

    Args:
        entries: of the queries.
        prior: of candidates.
        n_rules: how many rules there are.
        walks_power: a rule's weight is multiplied by the number of its walks to this power.
    """

    def __init__(
        self,
        entries: TrainingExamples,
        prior: PopularityPrior,
        n_rules: int,
        walks_power: float = 0.0,
    ) -> None:
        self._entries = entries
        self._n_rules = n_rules
        self._n_heads = prior.n_directed
        self._prior = prior.answer_probabilities(entries.queries)
        walks = entries.at_others + entries.at_answer + entries.at_known.sum(axis=1)
        self._gain = walks**walks_power
        self._parts = cut_by_cost(np.diff(entries.offsets) + 1.0, _PARTS)
        self.n_queries = int((np.diff(entries.offsets) > 0).sum())

    def __call__(self, logs: LogWeights, workers: Workers) -> tuple[float, LogWeights]:
        """The mean loss, and its gradient."""
        weight, prior_weight = np.exp(logs.rule), np.exp(logs.prior)
        factor = np.exp(logs.factor)
        entries = self._entries

        def one(part: slice) -> tuple[float, LogWeights]:
            gradient = LogWeights(
                np.zeros(self._n_rules),
                np.zeros(self._n_heads),
                np.zeros((self._n_heads, len(KNOWN_KINDS))),
            )
            loss = add_likelihood(
                part.start,
                part.stop,
                entries.offsets,
                entries.rule,
                entries.at_others,
                entries.at_answer,
                entries.at_known,
                self._gain,
                entries.queries.directed_relation,
                entries.answer_kind,
                self._prior,
                weight,
                prior_weight,
                factor,
                gradient.rule,
                gradient.prior,
                gradient.factor,
            )
            return loss, gradient

        total = 0.0
        rule = np.zeros(self._n_rules)
        prior = np.zeros(self._n_heads)
        of_factor = np.zeros((self._n_heads, len(KNOWN_KINDS)))
        for loss, gradient in workers.map_here(one, self._parts):
            total += loss
            rule += gradient.rule
            prior += gradient.prior
            of_factor += gradient.factor
        asked = max(self.n_queries, 1)
        return total / asked, LogWeights(rule / asked, prior / asked, of_factor / asked)


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingSettings:
    """What decides the weights; the same settings give the same weights.

    Attributes:
        weights: what the weight of a rule is made of. `attention`: the score of eq. 13; `free`:
            a number of its own, drawn towards the rule's confidence.
        steps: gradient steps at the most.
        patience: steps without a better loss on held-out queries before training ends.
        learning_rate: of free weights, prior and factors, falling to 0 along half a cosine.
        net_learning_rate: of the attention net, likewise.
        pull: how strongly free weights are drawn to the logarithm of the confidence.
        walks_power: in training, a rule's weight is multiplied by the number of its walks to this
            power; which power is best for ranking, held-out queries decide.
        choose_power: whether held-out queries choose the power for ranking; else it is that of
            training.
        known_factors: whether candidates that are known as answers at other times count by a
            factor; else as all others do, as in the paper.
        dimension: of the attention net.
        seed: for its first parameters.
    """

    weights: Weights = Weights.FREE
    steps: int = 150
    patience: int = 30
    learning_rate: float = 0.2
    net_learning_rate: float = 0.01
    l2: float = 1.0
    walks_power: float = 0.45
    choose_power: bool = True
    known_factors: bool = True
    dimension: int = 64
    seed: int = 0


@dataclass(frozen=True)
class TrainedWeights:
    """What training found.

    Attributes:
        logs: logarithms of weights, prior weights and factors.
        curve: of the loss.
        net: parameters of the attention net; None where weights are free.
    """

    log_weights: LogWeights
    curve: LossCurve
    net: Parameters | None = None


_MEASURED_EVERY = 5
_DECAY, _EPSILON = 0.99, 1e-10  # of the mean squared gradient, which is small for rare rules
INITIAL_LOG_PRIOR = -1.5
"""The logarithm of the prior's weight, before anything is learned."""
_PRIOR_PULL, _FACTOR_PULL = 1.0, 0.1


class _Parameters:
    """Which parameters there are, what they mean, and what draws them where."""

    def __init__(
        self,
        net: AttentionNet,
        rows: NDArray[np.int64],
        confidence: NDArray[np.float64],
        settings: TrainingSettings,
        asked: int,
    ) -> None:
        n_heads = 2 * len(net.encoding.relations)
        self._net = net
        self._known_factors = settings.known_factors
        self._places = net.part_indices(rows)
        self._asked = max(asked, 1)
        self.first: dict[str, Any] = {
            "prior": np.full(n_heads, INITIAL_LOG_PRIOR),
            "factor": np.zeros((n_heads, len(KNOWN_KINDS))),
        }
        self._pull = {"prior": _PRIOR_PULL, "factor": _FACTOR_PULL}
        if settings.weights is Weights.FREE:
            self.first["free"] = np.log(confidence)
            self._pull["free"] = settings.l2
        self._towards = dict(self.first)
        if settings.weights is Weights.ATTENTION:
            self.first["net"] = net.initial_parameters(settings.seed)

    def logs(self, values: dict[str, Any]) -> LogWeights:
        """What the parameters mean."""
        rule = values["free"] if "free" in values else self._log_scores(values["net"])
        return LogWeights(
            np.asarray(rule, np.float64),
            np.asarray(values["prior"], np.float64),
            np.asarray(values["factor"], np.float64),
        )

    def gradient(
        self, values: dict[str, Any], objective: Objective, workers: Workers
    ) -> tuple[float, dict[str, Any]]:
        """Loss, what draws the parameters included, and the gradient for them."""
        back = None
        if "net" in values:
            _, back = jax.vjp(self._log_scores, values["net"])
        loss, of = objective(self.logs(values), workers)
        gradient: dict[str, Any] = {"prior": of.prior, "factor": of.factor}
        if "free" in values:
            gradient["free"] = of.rule
        for name, pull in self._pull.items():
            away = np.asarray(values[name], np.float64) - self._towards[name]
            loss += 0.5 * pull * float((away * away).sum()) / self._asked
            gradient[name] = gradient[name] + pull * away / self._asked
        if not self._known_factors:
            gradient["factor"] = np.zeros_like(of.factor)
        if back is not None:
            (gradient["net"],) = back(of.rule.astype(np.float32))
        return loss, gradient

    def _log_scores(self, parameters: Any) -> jax.Array:
        return self._net.log_scores(parameters, self._places)


def train_rule_weights(
    net: AttentionNet,
    rows: NDArray[np.int64],
    confidence: NDArray[np.float64],
    training: Objective,
    held_out: Objective,
    settings: TrainingSettings,
    workers: Workers,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> TrainedWeights:
    """Learn the weights of rules, of the prior, and the factors of known candidates.

    The weights of the step with the least loss on held-out queries are kept.

    Args:
        net: the attention net; of use unless weights are free.
        rows: the rules, as rows of the net's encoding.
        confidence: of the rules, smoothed: above 0.
        training: the queries to learn from.
        held_out: the queries that tell when to stop.
        settings: what decides the weights.
        workers: do not change the result.
        checkpoint: a file in which the state is kept; where it is there, training goes on.
        progress: called with the share that is done.
    """
    parameters = _Parameters(net, rows, confidence, settings, training.n_queries)
    optimiser = _optimiser(settings)
    # Where no rule fires for held-out queries they cannot decide.
    judge = held_out if held_out.n_queries else training
    values = jax.tree.map(jax.numpy.asarray, parameters.first)
    state = TrainingState(values, optimiser.init(values), values)
    if checkpoint is not None and checkpoint.is_file():
        state.read(checkpoint)
        _log.info("training goes on after step %d", state.step)
    patience = max(settings.patience, _MEASURED_EVERY)
    while state.step < settings.steps and state.step - state.best_step < patience:
        loss, gradient = parameters.gradient(state.values, training, workers)
        updates, state.optimiser = optimiser.update(gradient, state.optimiser, state.values)
        state.values = optax.apply_updates(state.values, updates)
        state.step += 1
        state.curve.train.append(loss)
        if state.step % _MEASURED_EVERY == 0 or state.step == settings.steps:
            state.measure(judge(parameters.logs(state.values), workers)[0])
            if checkpoint is not None:
                state.write(checkpoint)
        if progress is not None:
            progress(state.step / settings.steps)
    return TrainedWeights(parameters.logs(state.best), state.curve, state.best.get("net"))


def _optimiser(settings: TrainingSettings) -> optax.GradientTransformation:
    rates = {"net": settings.net_learning_rate, "other": settings.learning_rate}
    return optax.partition(
        {
            name: optax.adam(
                optax.cosine_decay_schedule(rate, settings.steps), b2=_DECAY, eps=_EPSILON
            )
            for name, rate in rates.items()
        },
        lambda values: {
            name: jax.tree.map(lambda _: "net" if name == "net" else "other", value)  # noqa: B023
            for name, value in values.items()
        },
    )
