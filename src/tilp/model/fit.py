"""Fitting a model: rules, their weights, and what held-out queries decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.progress import Progress, Stages
from tilp.evaluation.filtered_ranks import best_variant
from tilp.features.log_linear import LogLinearWeights
from tilp.features.log_linear_training import N_FOLDS, LogLinearSettings, fit_log_linear, fold_index
from tilp.features.paper.features import FEATURES, FittedPaper
from tilp.features.paper.fit import fit_paper
from tilp.features.paper.training import FeatureTrainingSettings
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import PopularityPrior
from tilp.learning.attention_net import AttentionNet, flatten_parameters
from tilp.learning.examples import TrainingExamples
from tilp.learning.rule_weights import LogWeights, Objective, TrainingSettings, train_rule_weights
from tilp.learning.training_loop import LossCurve
from tilp.model.config import ModelSettings
from tilp.model.training_data import TrainingData, prepare_training_data
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.scoring import RuleScorer, RuleWeights, Scores
from tilp.types import Features, Part

_SMOOTHING = 5.0  # facts where a rule fired and failed, added to each when its confidence is taken
_LEAST_CONFIDENCE = 1e-6
_WALKS_POWERS = (0.0, 0.15, 0.3, 0.45, 0.6)


@dataclass(frozen=True)
class FittedModel:
    """What fitting found.

    Attributes:
        rules: with their weights.
        weights: the same, as arrays, and all else that scores are made of.
        curve: the loss of training.
        features: what temporal features add; None: nothing.
        seconds: that each stage took, in this run.
        net: parameters of the attention net by name; None where weights are free.
        updates: with new facts since the model was fitted, as plain values.
    """

    rules: RuleSet
    weights: RuleWeights
    curve: LossCurve
    features: FittedPaper | LogLinearWeights | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    net: dict[str, NDArray[Any]] | None = None
    updates: tuple[dict[str, Any], ...] = ()


def fit_model(
    graph: TemporalGraph,
    settings: ModelSettings,
    *,
    folder: Path,
    workers: Workers,
    progress: Progress | None = None,
) -> FittedModel:
    """Find rules and learn their weights (phase one), then what features add (phase two).

    Args:
        graph: its train split is learned from, its valid split decides.
        settings: what decides the model.
        folder: to work in; what a run with the same data and settings left there is used.
        workers: do not change the result.
        progress: told how far each stage is.
    """
    stages = Stages(progress)
    prepared = prepare_training_data(graph, settings, folder, stages, workers)
    fitted = learn_rule_weights(prepared, settings.training, stages, workers, folder=folder)
    return learn_features(prepared, fitted, settings, stages, workers, folder=folder)


def learn_rule_weights(
    prepared: TrainingData,
    settings: TrainingSettings,
    stages: Stages,
    workers: Workers,
    *,
    folder: Path | None = None,
) -> FittedModel:
    """Learn the weights of rules that were found and applied.

    Args:
        prepared: the rules.
        settings: what decides the weights.
        stages: told how far each part is.
        workers: do not change the result.
        folder: where the state is kept; where it is there, training goes on.
    """
    rules = prepared.rules
    with stages("train") as advance:
        weights, curve, net = train_weights(
            prepared, prepared.training, settings, workers, advance, folder, "training"
        )
    if settings.choose_power:
        with stages("choose") as advance:
            weights = _with_walks_power(prepared, weights, workers, advance)
    else:
        weights = replace(weights, walks_power=settings.walks_power)
    weighted = (
        replace(one, weight=float(weight)) for one, weight in zip(rules, weights.rule, strict=True)
    )
    return FittedModel(RuleSet(weighted), weights, curve, seconds=stages.seconds, net=net)


def learn_features(
    prepared: TrainingData,
    fitted: FittedModel,
    settings: ModelSettings,
    stages: Stages,
    workers: Workers,
    *,
    folder: Path,
) -> FittedModel:
    """Learn what temporal features add to weighted rules.

    Args:
        prepared: the rules, found and applied.
        fitted: with their weights.
        settings: which features, and what decides their weights.
        stages: told how far each part is.
        workers: do not change the result.
        folder: to work in; what a run that was killed left there is used.
    """
    if settings.features is Features.NONE:
        return fitted
    scorer = RuleScorer(
        prepared.walker, [one.rule for one in fitted.rules], fitted.weights, prepared.missing_dates
    )
    found: FittedPaper | LogLinearWeights
    if settings.features is Features.PAPER:
        with stages("features") as advance:
            without = tuple(name for name in FEATURES if Part(name) in settings.without)
            found = fit_paper(
                scorer,
                prepared.rules,
                prepared.training.queries,
                prepared.held_out.queries,
                prepared.ranker,
                FeatureTrainingSettings(without=without, seed=settings.seed),
                workers,
                advance,
            )
    else:
        folds: tuple[RuleWeights, ...] = (fitted.weights,)
        if Part.OUT_OF_FOLD not in settings.without:
            with stages("fold") as advance:
                folds = cross_fit_weights(prepared, fitted, settings, workers, advance, folder)
        with stages("features") as advance:
            found = fit_log_linear(
                scorer,
                folds,
                prepared.training.queries,
                LogLinearSettings(settings.soft_length, settings.without, seed=settings.seed),
                workers,
                folder=folder,
                progress=advance,
            )
    return replace(fitted, features=found, seconds=stages.seconds)


def cross_fit_weights(
    prepared: TrainingData,
    fitted: FittedModel,
    settings: ModelSettings,
    workers: Workers,
    advance: Callable[[float], None],
    folder: Path,
) -> tuple[RuleWeights, ...]:
    """For each fold of the training queries, weights that were learned from the others.

    Features that are trained on scores of queries which the rules were trained on trust the rules
    too much.
    """
    fold = fold_index(prepared.training.queries.fact, settings.seed)
    found = []
    for number in range(N_FOLDS):
        weights, _, _ = train_weights(
            prepared,
            prepared.training.select(fold != number),
            settings.training,
            workers,
            lambda share, number=number: advance((number + share) / N_FOLDS),  # type: ignore[misc]
            folder,
            f"fold-{number}",
        )
        found.append(replace(weights, walks_power=fitted.weights.walks_power))
    return tuple(found)


def train_weights(
    prepared: TrainingData,
    training: TrainingExamples,
    settings: TrainingSettings,
    workers: Workers,
    advance: Callable[[float], None],
    folder: Path | None,
    name: str,
) -> tuple[RuleWeights, LossCurve, dict[str, NDArray[Any]] | None]:
    """The weights of rules that make the answers of some training queries likely.

    Besides, the loss, and the parameters of the net where there is one.

    Args:
        prepared: the rules.
        training: the queries.
        settings: what decides the weights.
        workers: do not change the result.
        advance: called with the share that is done.
        folder: where the state is kept; where it is there, training goes on.
        name: of the state.
    """
    rules, prior = prepared.rules, PopularityPrior.from_graph(prepared.walker.graph)
    found = train_rule_weights(
        AttentionNet(prepared.walker.encoding, settings.dimension),
        prepared.rows,
        smoothed_confidence(rules),
        Objective(training, prior, len(rules), settings.walks_power),
        Objective(prepared.held_out, prior, len(rules), settings.walks_power),
        settings,
        workers,
        checkpoint=None if folder is None else folder / f"{name}-state.npz",
        progress=advance,
    )
    net = None if found.net is None else flatten_parameters(found.net)
    return _scaled(found.log_weights, prepared.rows[:, 2]), found.curve, net


def _scaled(logs: LogWeights, head: NDArray[np.int64]) -> RuleWeights:
    """The weights, so scaled that the heaviest rule of each directed relation has 1.

    Ranks do not depend on the scale of what candidates of one query are scored by.
    """
    heaviest = np.full(len(logs.prior), -np.inf)
    np.maximum.at(heaviest, head, logs.rule)
    heaviest[np.isneginf(heaviest)] = 0.0  # no rule: the prior decides alone
    return RuleWeights(
        np.exp(logs.rule - heaviest[head]), np.exp(logs.prior - heaviest), np.exp(logs.factor)
    )


def smoothed_confidence(rules: RuleSet) -> NDArray[np.float64]:
    """The confidence of rules, smaller where they fired seldom."""
    fired = np.array([one.body_support for one in rules], np.float64)
    sure = np.array([one.confidence for one in rules]) * fired / (fired + _SMOOTHING)
    return sure + _LEAST_CONFIDENCE


def _with_walks_power(
    prepared: TrainingData,
    weights: RuleWeights,
    workers: Workers,
    advance: Callable[[float], None],
) -> RuleWeights:
    """The weights with the power of the number of walks that ranks held-out answers best."""
    rules = [one.rule for one in prepared.rules]
    scorer = RuleScorer(prepared.walker, rules, weights, prepared.missing_dates)
    best = best_variant(prepared.ranker, partial(_by_power, scorer), workers, advance)
    return replace(weights, walks_power=_WALKS_POWERS[best])


def _by_power(scorer: RuleScorer, queries: QueryTable) -> list[Scores]:
    """The scores of queries by each power of the number of walks."""
    applied = scorer.apply_rules(queries)
    return [scorer.score(queries, applied, power) for power in _WALKS_POWERS]
