"""Fitting a model: rules, their weights, and what held-out queries decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilp.attention import CandidatePrior
from tilp.attention.net import AttentionNet
from tilp.attention.objective import LogWeights, Objective
from tilp.attention.state import LossCurve
from tilp.attention.training import TrainingSettings, train
from tilp.choices import Protocol, Ties
from tilp.evaluation import Ranker, Scores, rank_column
from tilp.graph import TemporalGraph
from tilp.model.preparing import Prepared, prepare
from tilp.model.settings import ModelSettings
from tilp.model.stages import Progress, Stages
from tilp.parallel import Workers
from tilp.ranking import RuleScorer, RuleWeights
from tilp.rules import RuleSet

__all__ = ["Fitted", "fit_rules", "weigh"]

_SMOOTHING = 5.0  # facts where a rule fired and failed, added to each when its confidence is taken
_LEAST_CONFIDENCE = 1e-6
_BATCH = 512
_WALKS_POWERS = (0.0, 0.15, 0.3, 0.45, 0.6)
_CHOSEN_BY = rank_column(Protocol.ENUMERATE, Ties.AVERAGE)


@dataclass(frozen=True)
class Fitted:
    """What fitting found.

    Attributes:
        rules: with their weights.
        weights: the same, as arrays, and all else that scores are made of.
        curve: the loss of training.
        seconds: that each stage took, in this run.
    """

    rules: RuleSet
    weights: RuleWeights
    curve: LossCurve
    seconds: dict[str, float] = field(default_factory=dict)


def fit_rules(
    graph: TemporalGraph,
    settings: ModelSettings,
    *,
    folder: Path,
    threads: int = 1,
    progress: Progress | None = None,
) -> Fitted:
    """Find rules and learn their weights (phase one).

    Args:
        graph: its train split is learned from, its valid split decides.
        settings: what decides the model.
        folder: to work in; what a run with the same data and settings left there is used.
        threads: do not change the result.
        progress: told how far each stage is.
    """
    stages = Stages(progress)
    prepared = prepare(graph, settings, folder, stages, threads=threads)
    checkpoint = folder / "training-state.npz"
    return weigh(prepared, settings.training, stages, threads=threads, checkpoint=checkpoint)


def weigh(
    prepared: Prepared,
    settings: TrainingSettings,
    stages: Stages,
    *,
    threads: int = 1,
    checkpoint: Path | None = None,
) -> Fitted:
    """Learn the weights of rules that were found and applied."""
    encoding, rules = prepared.walker.encoding, prepared.rules
    prior = CandidatePrior.of(prepared.walker.graph)
    training, held_out = (
        Objective(entries, prior, len(rules), settings.walks_power)
        for entries in (prepared.training, prepared.held_out)
    )
    with Workers(threads) as workers:
        with stages("train") as advance:
            trained = train(
                AttentionNet(encoding, settings.dimension, settings.cell),
                prepared.rows,
                _confidence(rules),
                training,
                held_out,
                settings,
                workers,
                checkpoint=checkpoint,
                progress=advance,
            )
        weights = _scaled(trained.logs, prepared.rows[:, 2])
        with stages("choose") as advance:
            weights = _with_walks_power(prepared, weights, workers, advance)
    weighted = (
        replace(one, weight=float(weight)) for one, weight in zip(rules, weights.rule, strict=True)
    )
    return Fitted(RuleSet(weighted), weights, trained.curve, stages.seconds)


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


def _confidence(rules: RuleSet) -> NDArray[np.float64]:
    """The confidence of rules, smaller where they fired seldom."""
    fired = np.array([one.fired for one in rules], np.float64)
    sure = np.array([one.confidence for one in rules]) * fired / (fired + _SMOOTHING)
    return sure + _LEAST_CONFIDENCE


def _with_walks_power(
    prepared: Prepared,
    weights: RuleWeights,
    workers: Workers,
    advance: Callable[[float], None],
) -> RuleWeights:
    """The weights with the power of the number of walks that ranks held-out answers best."""
    rules = [one.rule for one in prepared.rules]
    scorer = RuleScorer(prepared.walker, rules, weights, prepared.settling)
    ranker = prepared.ranker
    order = np.argsort(ranker.queries.subject, kind="stable")
    parts = [order[begin : begin + _BATCH] for begin in range(0, len(order), _BATCH)]

    def inverse_ranks(part: NDArray[np.int64]) -> NDArray[np.float64]:
        queries = ranker.queries[part]
        applied = scorer.apply(queries)
        return np.array(
            [
                _inverse_ranks(ranker, part, scorer.score(queries, applied, power))
                for power in _WALKS_POWERS
            ]
        )

    total = np.zeros(len(_WALKS_POWERS))
    for number, sums in enumerate(workers.map(inverse_ranks, parts)):
        total += sums
        advance((number + 1) / len(parts))
    return replace(weights, walks_power=_WALKS_POWERS[int(np.argmax(total))])


def _inverse_ranks(ranker: Ranker, part: NDArray[np.int64], scores: Scores) -> float:
    ranks, _ = ranker.rank(part, scores, [Protocol.ENUMERATE])
    return float((1.0 / ranks[_CHOSEN_BY]).sum())
