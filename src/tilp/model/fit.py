"""Fitting a model: rules and their weights (phase one), then temporal features (phase two)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.evaluation.filtered_ranks import best_variant
from tilp.features.log_linear_training import N_FOLDS, LogLinearSettings, fit_log_linear, fold_index
from tilp.features.paper.features import FEATURES
from tilp.features.paper.fit import FeatureTrainingSettings, fit_paper
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import PopularityPrior
from tilp.learning.attention_net import AttentionNet, flatten_parameters
from tilp.learning.examples import TrainingExamples
from tilp.learning.rule_weights import LogWeights, Objective, train_rule_weights
from tilp.learning.training_loop import LossCurve
from tilp.model.config import FitContext
from tilp.model.fitted_model import FittedFeatures, FittedModel, with_weights
from tilp.model.training_data import TrainingData, prepare_training_data
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.scoring import RuleScorer, RuleWeights, Scores
from tilp.types import Features, Part

_FAILURES = 5.0  # facts where a rule fails, added to those seen when its confidence is smoothed
_MIN_CONFIDENCE = 1e-6
_WALKS_POWERS = (0.0, 0.15, 0.3, 0.45, 0.6)


def fit_model(graph: TemporalGraph, context: FitContext) -> FittedModel:
    """Mine rules, learn their weights, then learn what temporal features add.

    The train split is learned from. The valid split, or else a tenth of train, decides when
    to stop.
    """
    data = prepare_training_data(graph, context)
    fitted = learn_rule_weights(data, context)
    return learn_features(data, fitted, context)


def learn_rule_weights(data: TrainingData, context: FitContext) -> FittedModel:
    """Learn the weights of rules from training examples."""
    settings = context.settings.training
    with context.stages("train") as advance:
        weights, curve, net = train_weights(data, data.training, context, advance, "training")
    if settings.choose_power:
        with context.stages("choose") as advance:
            weights = _choose_walks_power(data, weights, context.workers, advance)
    else:
        weights = replace(weights, walks_power=settings.walks_power)
    rules = with_weights(data.rules, weights)
    return FittedModel(rules, weights, curve, seconds=context.stages.seconds, net=net)


def learn_features(data: TrainingData, fitted: FittedModel, context: FitContext) -> FittedModel:
    """Learn what temporal features add to weighted rules."""
    settings, stages, workers = context.settings, context.stages, context.workers
    if settings.features is Features.NONE:
        return fitted
    rules = [mined.rule for mined in fitted.rules]
    scorer = RuleScorer(data.walker, rules, fitted.weights, data.missing_dates)
    features: FittedFeatures
    if settings.features is Features.PAPER:
        without = tuple(name for name in FEATURES if Part(name) in settings.without)
        with stages("features") as advance:
            features = fit_paper(
                scorer,
                data.rules,
                data.training.queries,
                data.held_out.queries,
                data.ranker,
                FeatureTrainingSettings(without=without, seed=settings.seed),
                workers,
                advance,
            )
    else:
        folds: tuple[RuleWeights, ...] = (fitted.weights,)
        if Part.OUT_OF_FOLD not in settings.without:
            with stages("fold") as advance:
                folds = cross_fit_weights(data, fitted, context, advance)
        with stages("features") as advance:
            features = fit_log_linear(
                scorer,
                folds,
                data.training.queries,
                LogLinearSettings(settings.walk_length, settings.without, seed=settings.seed),
                workers,
                folder=context.path("."),
                progress=advance,
            )
    return replace(fitted, features=features, seconds=stages.seconds)


def cross_fit_weights(
    data: TrainingData, fitted: FittedModel, context: FitContext, advance: Callable[[float], None]
) -> tuple[RuleWeights, ...]:
    """Return, for each fold of the training queries, weights learned from the other folds.

    Features trained on scores of queries that the rules were trained on would trust the rules
    too much.
    """
    fold_ids = fold_index(data.training.queries.fact, context.settings.seed)
    folds = []
    for fold in range(N_FOLDS):
        examples = data.training.select(fold_ids != fold)
        weights, _, _ = train_weights(
            data,
            examples,
            context,
            lambda share, fold=fold: advance((fold + share) / N_FOLDS),  # type: ignore[misc]
            f"fold-{fold}",
        )
        folds.append(replace(weights, walks_power=fitted.weights.walks_power))
    return tuple(folds)


def train_weights(
    data: TrainingData,
    examples: TrainingExamples,
    context: FitContext,
    advance: Callable[[float], None],
    name: str,
) -> tuple[RuleWeights, LossCurve, dict[str, NDArray[Any]] | None]:
    """Learn the weights that make the answers of examples likely.

    Return also the loss, and the parameters of the attention net if there is one. `name` is that
    of the checkpoint.
    """
    settings, n_rules = context.settings.training, len(data.rules)
    prior = PopularityPrior.from_graph(data.walker.graph)
    trained = train_rule_weights(
        AttentionNet(data.walker.encoding, settings.dimension),
        data.rows,
        smoothed_confidence(data.rules),
        Objective(examples, prior, n_rules, settings.walks_power),
        Objective(data.held_out, prior, n_rules, settings.walks_power),
        settings,
        context.workers,
        checkpoint=context.path(f"{name}-state.npz"),
        progress=advance,
    )
    net = None if trained.net is None else flatten_parameters(trained.net)
    return _scale_weights(trained.log_weights, data.rows[:, 2]), trained.curve, net


def _scale_weights(logs: LogWeights, relation: NDArray[np.int64]) -> RuleWeights:
    """Scale weights so that the heaviest rule of each directed relation has weight 1.

    The ranks of a query's candidates do not depend on the scale.
    """
    heaviest = np.full(len(logs.prior), -np.inf)
    np.maximum.at(heaviest, relation, logs.rule)
    heaviest[np.isneginf(heaviest)] = 0.0  # a relation without rules, scored by the prior alone
    return RuleWeights(
        np.exp(logs.rule - heaviest[relation]), np.exp(logs.prior - heaviest), np.exp(logs.factor)
    )


def smoothed_confidence(rules: RuleSet) -> NDArray[np.float64]:
    """Return the confidence of rules, smaller for a small body support."""
    body_support = np.array([mined.body_support for mined in rules], np.float64)
    confidence = np.array([mined.confidence for mined in rules])
    return confidence * body_support / (body_support + _FAILURES) + _MIN_CONFIDENCE


def _choose_walks_power(
    data: TrainingData, weights: RuleWeights, workers: Workers, advance: Callable[[float], None]
) -> RuleWeights:
    """Choose the power of the number of walks that ranks held-out answers best."""
    rules = [mined.rule for mined in data.rules]
    scorer = RuleScorer(data.walker, rules, weights, data.missing_dates)
    best = best_variant(data.ranker, partial(_scores_by_power, scorer), workers, advance)
    return replace(weights, walks_power=_WALKS_POWERS[best])


def _scores_by_power(scorer: RuleScorer, queries: QueryTable) -> list[Scores]:
    applied = scorer.apply_rules(queries)
    return [scorer.score(queries, applied, power) for power in _WALKS_POWERS]
