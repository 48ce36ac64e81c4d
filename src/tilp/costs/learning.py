"""The stages of a fit that learn the weights of rules: from all queries, and from each half."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tilp.costs.calibration import cpu_seconds
from tilp.costs.situation import Situation
from tilp.costs.stage import StageCost
from tilp.costs.walking import kept_bytes
from tilp.features.log_linear_training import N_FOLDS
from tilp.learning import PopularityPrior
from tilp.learning.attention_net import AttentionNet
from tilp.learning.examples import TrainingExamples
from tilp.learning.rule_weights import LogWeights, Objective, train_rule_weights
from tilp.parallel import Workers
from tilp.types import Weights

__all__ = ["learning_stages"]

_ENTRIES = 1_000_000  # that a gradient is tried with, so that they do not stay in the cache
_SHORT, _LONG = 3, 8  # steps of two trainings, whose difference is what a step takes
_JUDGED = 5  # steps after which held-out queries are asked
_LEAST = 1e-6


def learning_stages(now: Situation, *, folds: bool) -> list[StageCost]:
    """Training, and where features follow, training without each half."""
    made, of_query = now.entries
    settings = now.settings.training
    rules = now.sample.rules
    rows = now.walker.encoding.encode([one.rule for one in rules])
    confidence = np.array([one.confidence for one in rules]) + _LEAST
    prior = PopularityPrior.from_graph(now.walker.graph)
    wanted = int(min(_ENTRIES, of_query * len(now.training)))
    entries = repeated(made, max(1, round(wanted / max(len(made), 1))))
    objective = Objective(entries, prior, len(rules), settings.walks_power)
    heads = 2 * len(now.graph.relations)
    logs = LogWeights(
        np.log(confidence), np.zeros(heads), np.zeros((heads, entries.at_known.shape[1]))
    )
    workers = Workers()
    objective(logs, workers)
    _, gradient = cpu_seconds(lambda: objective(logs, workers))
    of_entry = gradient / max(len(entries), 1)

    def learn(steps: int) -> float:
        few = Objective(made, prior, len(rules), settings.walks_power)
        net = AttentionNet(now.walker.encoding, settings.dimension)
        chosen = replace(settings, steps=steps, patience=steps)
        return cpu_seconds(
            lambda: train_rule_weights(net, rows, confidence, few, few, chosen, workers)
        )[1]

    first = learn(_SHORT)
    again = learn(_SHORT)
    step = max(learn(_LONG) - again, 0.0) / (_LONG - _SHORT) - of_entry * len(made)
    more_rules = sum(now.rules_of_all().values()) / max(len(rules), 1)
    if settings.weights is not Weights.FREE:
        step *= max(more_rules, 1.0)  # the net is asked for the score of each rule
    step = max(step, 0.0)
    training = of_query * len(now.training)
    held_out = of_query * 2 * len(now.held_out) / _JUDGED
    peak = kept_bytes(now)

    def stage(name: str, times: int, share: float) -> StageCost:
        visits = times * settings.steps * (share * training + held_out)
        alone = times * settings.steps * step
        if share == 1.0:
            alone += max(first - again, 0.0)  # compiled once
        return StageCost(
            name,
            visits,
            f"entries in {times * settings.steps:,} gradients at the most",
            cpu=visits * of_entry + alone,
            serial=alone,
            peak=peak * (1 if share == 1.0 else 1 + share / 2),
        )

    found = [stage("train", 1, 1.0)]
    if folds:
        found.append(stage("fold", N_FOLDS, 1.0 - 1.0 / N_FOLDS))
    return found


def repeated(made: TrainingExamples, times: int) -> TrainingExamples:
    """The same entries so many times."""
    queries = np.tile(np.arange(len(made.queries)), times)

    def column(name: str) -> NDArray[np.float32]:
        values = getattr(made, name)
        return np.tile(values, (times,) + (1,) * (values.ndim - 1))

    sizes = np.tile(np.diff(made.offsets), times)
    return TrainingExamples(
        queries=made.queries[queries],
        answer_kind=made.answer_kind[queries],
        offsets=np.append(0, np.cumsum(sizes)),
        rule=np.tile(made.rule, times),
        at_answer=column("at_answer"),
        excluded=column("excluded"),
        at_known=column("at_known"),
        at_others=column("at_others"),
    )
