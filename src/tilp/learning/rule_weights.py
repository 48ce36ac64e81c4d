"""Phase one: learn the weights of rules that make the answers of queries likely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilp._kernels.likelihood import add_likelihood, add_rule_gains
from tilp._utils.arrays import Floats, Indices
from tilp.learning.candidates import KNOWN_KINDS, PopularityPrior
from tilp.learning.examples import TrainingExamples
from tilp.learning.training_loop import N_PARTS, Adam, LossCurve, mean_loss, run_training
from tilp.parallel import Workers, split_by_cost
from tilp.types import Weights
from tilp.walks import RuleEncoding

if TYPE_CHECKING:
    from tilp.learning.attention_net import Parameters

INITIAL_LOG_PRIOR = -1.5  # logarithm of the prior's weight before training
_DECAY, _EPSILON = 0.99, 1e-10  # of the mean squared gradient, which is small for rare rules
_PRIOR_L2, _FACTOR_L2 = 1.0, 0.1


@dataclass(frozen=True)
class LogWeights:
    """Logarithms of what is learned, or the gradient for them."""

    rule: Floats  # weight of each rule
    prior: Floats  # weight of the prior, for each directed relation
    factor: Floats  # factor of known candidates, for each directed relation and kind

    def exp(self) -> tuple[Floats, Floats, Floats]:
        """Return what these are the logarithms of."""
        return np.exp(self.rule), np.exp(self.prior), np.exp(self.factor)


class Objective:
    """The mean negative log-likelihood of the answers of queries."""

    def __init__(
        self, examples: TrainingExamples, prior: PopularityPrior, n_rules: int,
        walks_power: float = 0.0,
    ) -> None:  # fmt: skip
        n_directed = prior.n_directed
        self._shapes = (n_rules,), (n_directed,), (n_directed, len(KNOWN_KINDS))
        walks = examples.at_others + examples.at_answer + examples.at_known.sum(axis=1)
        self._columns = (
            examples.offsets, examples.rule, examples.at_others, examples.at_answer,
            examples.at_known, walks**walks_power, examples.queries.directed_relation,
            examples.answer_kind, prior.answer_probabilities(examples.queries),
        )  # fmt: skip
        sizes = np.diff(examples.offsets)
        self._parts = split_by_cost(sizes + 1.0, N_PARTS)
        self.n_queries = int((sizes > 0).sum())

    def __call__(self, logs: LogWeights, workers: Workers) -> tuple[float, LogWeights]:
        """Return the mean loss, and its gradient."""
        arguments = self._columns + logs.exp()

        def part_loss(part: slice, gradient: list[Floats]) -> float:
            return add_likelihood(part.start, part.stop, *arguments, *gradient)

        loss, gradient = mean_loss(part_loss, self._parts, self._shapes, self.n_queries, workers)
        return loss, LogWeights(*gradient)

    def rule_gains(self, logs: LogWeights, workers: Workers) -> RuleGains:
        """Return what each rule does for the likelihood, given the other rules."""
        arguments, n_rules = self._columns + logs.exp(), len(logs.rule)

        def part_gains(part: slice) -> tuple[Floats, Floats]:
            gains = np.zeros(n_rules), np.zeros(n_rules)
            add_rule_gains(part.start, part.stop, *arguments, *gains)
            return gains

        total = RuleGains(np.zeros(n_rules), np.zeros(n_rules))
        for responsibility, lost in workers.map_in_threads(part_gains, self._parts):
            total.responsibility[:] += responsibility
            total.lost[:] += lost
        return total


@dataclass(frozen=True)
class RuleGains:
    """What each rule does for the likelihood of the answers of queries."""

    responsibility: Floats  # sum over the answers of the share that comes from the rule
    lost: Floats  # by how much the log-likelihood of all answers falls without the rule


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training of rule weights; the same settings give the same weights.

    Attributes:
        weights: What the weight of a rule is. `attention`: the score of eq. 13; `free`: a number
            of its own, regularised towards the rule's confidence.
        steps: Most gradient steps.
        patience: Stop after this many steps without a better loss on held-out queries.
        learning_rate: Learning rate of free weights, prior and factors; it decays to 0 along half
            a cosine.
        net_learning_rate: Learning rate of the attention net, likewise.
        l2: Regularisation of free weights towards the logarithm of the confidence. Raise it for
            few training queries.
        walks_power: In training, a rule's weight is multiplied by the count of its walks to this
            power.
        ranking_power: The same power when candidates are ranked.
        known_factors: Learn factors for candidates that are known answers at other times; if not,
            they count like all others, as in the paper.
        dimension: Dimension of the attention net.
        seed: Seed of its first parameters.
    """

    weights: Weights = Weights.FREE
    steps: int = 150
    patience: int = 30
    learning_rate: float = 0.2
    net_learning_rate: float = 0.01
    l2: float = 1.0
    walks_power: float = 0.45
    ranking_power: float = 0.6
    known_factors: bool = True
    dimension: int = 64
    seed: int = 0


@dataclass(frozen=True)
class TrainedWeights:
    """Result of training."""

    log_weights: LogWeights  # logarithms of weights, prior weights and factors
    curve: LossCurve  # losses
    net: Parameters | None = None  # parameters of the attention net; None for free weights


def train_rule_weights(
    encoding: RuleEncoding, rows: Indices, confidence: Floats, training: Objective,
    held_out: Objective, settings: TrainingSettings, workers: Workers, *,
    checkpoint: Path | None = None, progress: Callable[[float], None] | None = None,
) -> TrainedWeights:  # fmt: skip
    """Learn weights of rules and prior, and factors of known candidates; keep the best step."""
    n_directed, n_queries = 2 * len(encoding.relations), max(training.n_queries, 1)
    initial: dict[str, Any] = {
        "prior": np.full(n_directed, INITIAL_LOG_PRIOR),
        "factor": np.zeros((n_directed, len(KNOWN_KINDS))),
    }
    regularised = {"prior": _PRIOR_L2, "factor": _FACTOR_L2}
    rates = dict.fromkeys(("prior", "factor", "free"), settings.learning_rate)
    if settings.weights is Weights.FREE:
        initial["free"], regularised["free"] = np.log(confidence), settings.l2
    else:
        from tilp.learning.attention_net import AttentionNet  # imports JAX

        net = AttentionNet(encoding, settings.dimension)
        indices = net.part_indices(rows)
        initial["net"] = net.initial_parameters(settings.seed)
        rates["net"] = settings.net_learning_rate

    def log_weights(values: dict[str, Any]) -> LogWeights:
        """Return the weights that parameters stand for."""
        rule = values["free"] if "free" in values else net.log_scores(values["net"], indices)
        logs = rule, values["prior"], values["factor"]
        return LogWeights(*(np.asarray(log, np.float64) for log in logs))

    def regularised_loss(values: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Return the regularised loss, and its gradient for the parameters."""
        loss, slopes = training(log_weights(values), workers)
        gradient: dict[str, Any] = {
            "prior": slopes.prior,
            "factor": slopes.factor,
            "free": slopes.rule,
        }
        for name, l2 in regularised.items():
            distance = np.asarray(values[name], np.float64) - initial[name]
            loss += 0.5 * l2 * float((distance * distance).sum()) / n_queries
            gradient[name] = gradient[name] + l2 * distance / n_queries
        if not settings.known_factors:
            gradient["factor"] = np.zeros_like(slopes.factor)
        if "net" in values:
            gradient["net"] = net.gradient(values["net"], indices, slopes.rule)
        return loss, {name: gradient[name] for name in values}

    def held_out_loss(values: dict[str, Any]) -> float:
        # Where no rule reaches any held-out query, training queries decide.
        judge = held_out if held_out.n_queries else training
        return judge(log_weights(values), workers)[0]

    state = run_training(
        initial,
        Adam(rates, settings.steps, _DECAY, _EPSILON),
        regularised_loss,
        held_out_loss,
        steps=settings.steps,
        patience=settings.patience,
        checkpoint=checkpoint,
        progress=progress,
    )
    return TrainedWeights(log_weights(state.best), state.curve, state.best.get("net"))
