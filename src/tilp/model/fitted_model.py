"""`FittedModel`: what a fit learned, and how it scores queries on any graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Ints
from tilp.errors import TilpError
from tilp.features.log_linear import LogLinearWeights
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.paper.features import FittedPaper
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.graph import TemporalGraph
from tilp.learning.training_loop import LossCurve
from tilp.model.config import ModelSettings
from tilp.rules import RuleSet
from tilp.scoring import RuleScorer, RuleWeights, Scorer
from tilp.time.imputation import MissingDates
from tilp.time_prediction import TimeModel
from tilp.walks.mining import mining_walker

FittedFeatures = FittedPaper | LogLinearWeights
"""Temporal features, and the weights that phase two learned for them."""


@dataclass(frozen=True)
class FittedModel:
    """Rules, weights and features that a fit learned."""

    rules: RuleSet  # with their weights
    weights: RuleWeights  # the same as arrays, with all else that scores are made of
    curve: LossCurve  # the loss of training
    features: FittedFeatures | None = None
    seconds: dict[str, float] = field(default_factory=dict)  # that each stage took in this run
    net: dict[str, NDArray[Any]] | None = None  # parameters of the attention net, if there is one
    updates: tuple[dict[str, Any], ...] = ()  # reports of the updates since the fit
    time: TimeModel | None = None  # when facts start and end

    def scorer(
        self, graph: TemporalGraph, fitted_to: TemporalGraph, settings: ModelSettings
    ) -> Scorer:
        """Return the scorer with the train split of a graph as evidence.

        Another graph than the model was fitted to has the same unit of time and relations of the
        same names. Relations that the model does not know have no rules.
        """
        fitted = self if graph is fitted_to else self._for_graph(graph, fitted_to)
        usual = not settings.mining.only_earlier
        dates = MissingDates.fit(fitted_to, settings.missing, settings.seed, usual=usual)
        dates = dates if graph is fitted_to else dates.for_graph(graph)
        walker = mining_walker(dates.fill_graph(graph), settings.mining)
        rules = RuleScorer(walker, [mined.rule for mined in fitted.rules], fitted.weights, dates)
        if isinstance(fitted.features, FittedPaper):
            features = replace(fitted.features.features, graph=walker.graph)
            return PaperFeatureScorer(rules, features, fitted.features.weights)
        if fitted.features is None:
            return rules
        return LogLinearScorer(rules, fitted.features, settings.walk_length)

    def _for_graph(self, graph: TemporalGraph, fitted_to: TemporalGraph) -> FittedModel:
        """Return what was learned, for the relations of another graph."""
        if graph.unit is not fitted_to.unit:
            raise TilpError(
                f"times of the other graph count {graph.unit.value}s, of the model's "
                f"{fitted_to.unit.value}s; read it with unit={fitted_to.unit.value!r}"
            )
        known = set(graph.relations)
        usable = [
            index
            for index, mined in enumerate(self.rules)
            if {mined.rule.head.relation, *(atom.relation for atom in mined.rule.body)} <= known
        ]
        if not usable:
            names = ", ".join(graph.relations)
            raise TilpError(f"no rule of the model uses the other graph's relations: {names}")
        relations, rules = old_relations(graph, fitted_to), np.array(usable, np.int64)
        weights = replace(self.weights, rule=self.weights.rule[rules])
        weights = reindex_relations(weights, relations)
        features = self.features and self.features.remap(relations, rules)
        left = RuleSet(self.rules[index] for index in usable)
        return replace(self, rules=left, weights=weights, features=features)


def with_weights(rules: RuleSet, weights: RuleWeights) -> RuleSet:
    """Return rules with their learned weights."""
    pairs = zip(rules, weights.rule, strict=True)
    return RuleSet(replace(mined, weight=float(weight)) for mined, weight in pairs)


def old_relations(graph: TemporalGraph, fitted_to: TemporalGraph) -> Ints:
    """Return, for each directed relation of a graph, its id in another one; -1: it has none."""
    ids = {name: index for index, name in enumerate(fitted_to.relations)}
    relations = np.array([ids.get(name, -1) for name in graph.relations], np.int64)
    return np.concatenate([relations, np.where(relations >= 0, relations + len(ids), -1)])


def reindex_relations(weights: RuleWeights, relations: Ints) -> RuleWeights:
    """Return weights for relations given by their old ids; new relations (-1) get neutral ones."""
    known = relations >= 0
    prior = np.where(known, weights.prior[relations], 1.0)
    factor = np.where(known[:, None], weights.factor[relations], 1.0)
    return replace(weights, prior=prior, factor=factor)
