"""`Warm`: learns on from the weights that a model has."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.attention.entries import training_queries
from tilp.attention.net import Parameters
from tilp.attention.objective import LogWeights
from tilp.attention.state import LossCurve
from tilp.attention.training import Beginning
from tilp.choices import Part
from tilp.features.joint import JointWeights
from tilp.features.training import FeatureTraining
from tilp.model.fitting import Fitted, out_of_fold, trained
from tilp.model.joint_phase import JointSettings, fit_joint
from tilp.model.paper_phase import FittedPaper, fit_paper
from tilp.model.preparing import Prepared
from tilp.model.settings import ModelSettings
from tilp.model.stages import Stages
from tilp.parallel import Workers
from tilp.ranking import RuleScorer, RuleWeights
from tilp.walks.mining import target_facts

__all__ = ["Warm", "log_weights"]

_LEAST_WEIGHT = 1e-300
# Weights are near to where they end: few steps, and small ones.
_STEPS, _SLOWER = 30, 0.25
_FEATURE_STEPS = 40


@dataclass(frozen=True)
class Warm:
    """Learns on from the weights there are.

    Attributes:
        prepared: the rules that are touched, applied to the queries of their heads.
        rules: their places among all rules.
        heads: those that are touched.
        net: parameters of the attention net, where weights have one.
        settings: of the model.
        stages: told how far each part is.
        workers: do not change the result.
    """

    prepared: Prepared
    rules: NDArray[np.int64]
    heads: NDArray[np.int64]
    net: Parameters | None
    settings: ModelSettings
    stages: Stages
    workers: Workers

    def weights(
        self, begin: RuleWeights, scale: NDArray[np.float64], head: NDArray[np.int64]
    ) -> tuple[RuleWeights, LossCurve, dict[str, NDArray[Any]] | None]:
        """All weights, those of what is touched learned on; the loss of that; and the net.

        Args:
            begin: the weights to begin with.
            scale: of each head's weights, against those that are learned, as a logarithm.
            head: of each rule.
        """
        logs = LogWeights(
            (log_weights(begin.rule) - scale[head])[self.rules],
            log_weights(begin.prior) - scale,
            log_weights(begin.factor),
        )
        training = self.settings.training
        training = replace(
            training,
            steps=_STEPS,
            learning_rate=_SLOWER * training.learning_rate,
            net_learning_rate=_SLOWER * training.net_learning_rate,
        )
        with self.stages("train") as advance:
            found, curve, net = trained(
                self.prepared,
                self.prepared.training,
                training,
                self.workers,
                advance,
                None,
                "",
                Beginning(logs, self.net),
            )
        return self._among_all(found, begin), curve, net

    def joint(self, scorer: RuleScorer, fitted: Fitted, begin: JointWeights) -> JointWeights:
        """The joint weights, those of touched heads learned on."""
        settings = self.settings
        folds: tuple[RuleWeights, ...] = (fitted.weights,)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            if Part.OUT_OF_FOLD not in settings.without:
                # Not begun with weights that were learned from both halves.
                with self.stages("fold") as advance:
                    found = out_of_fold(
                        self.prepared, fitted, settings, self.workers, advance, folder
                    )
                folds = tuple(self._among_all(one, fitted.weights) for one in found)
            with self.stages("features") as advance:
                return fit_joint(
                    scorer,
                    folds,
                    self.prepared.training.queries,
                    JointSettings(settings.soft_length, settings.without, seed=settings.seed),
                    self.workers,
                    folder=folder,
                    progress=advance,
                    begin=begin,
                )

    def paper(
        self, scorer: RuleScorer, begin: FittedPaper, advance: Callable[[float], None]
    ) -> FittedPaper:
        """The weights of the paper's features, most of which all relations share, learned on."""
        prepared = self.prepared
        asked = training_queries(prepared.graph, target_facts(prepared.graph, self.settings.mining))
        held_out = prepared.ranker.queries
        if not len(prepared.graph.rows("valid")):
            asked = asked[~np.isin(asked.fact, held_out.fact)]
        settled = (prepared.settling.queries(asked), prepared.settling.queries(held_out))
        training = FeatureTraining(steps=_FEATURE_STEPS)
        return fit_paper(
            prepared,
            scorer,
            self.settings,
            self.workers,
            advance,
            begin=begin,
            training=training,
            asked=settled,
        )

    def _among_all(self, found: RuleWeights, others: RuleWeights) -> RuleWeights:
        """Weights of what is touched in the place of those there were."""
        rule, prior, factor = others.rule.copy(), others.prior.copy(), others.factor.copy()
        rule[self.rules] = found.rule
        prior[self.heads] = found.prior[self.heads]
        factor[self.heads] = found.factor[self.heads]
        return replace(others, rule=rule, prior=prior, factor=factor)


def log_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of weights, some of which may be next to nothing."""
    logs: NDArray[np.float64] = np.log(np.maximum(weights, _LEAST_WEIGHT))
    return logs
