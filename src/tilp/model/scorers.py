"""What scores the candidates of queries: rules, with the features that a model has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.features.log_linear import LogLinearWeights
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.graph import TemporalGraph
from tilp.model.config import ModelSettings
from tilp.model.fit import FittedModel
from tilp.scoring import RuleScorer, Scorer
from tilp.time.imputation import MissingDates
from tilp.walks.mining import mining_walker

__all__ = ["old_heads", "scorer_on"]


def scorer_on(
    graph: TemporalGraph, learned_from: TemporalGraph, settings: ModelSettings, fitted: FittedModel
) -> Scorer:
    """A model's scorer, with the train split of a graph as evidence.

    Args:
        graph: the one that was learned from, or another with the same relations, by their names,
            and the same unit of time; relations that the model does not know have no rules.
        learned_from: what the model was fitted to.
        settings: of the model.
        fitted: what was learned.

    Raises:
        TilpError: the other graph counts other units of time, or no rule speaks of its relations.
    """
    if graph is not learned_from:
        fitted = _elsewhere(graph, learned_from, fitted)
    settling = MissingDates.fit(learned_from, settings.missing, settings.seed).for_relations(
        graph.relations
    )
    settled = settling.fill_graph(graph)
    walker = mining_walker(settled, settings.mining)
    rules = RuleScorer(walker, [one.rule for one in fitted.rules], fitted.weights, settling)
    if fitted.features is None:
        return rules
    if isinstance(fitted.features, LogLinearWeights):
        return LogLinearScorer(rules, fitted.features, settings.soft_length)
    return PaperFeatureScorer(
        rules, fitted.features.features.with_graph(settled), fitted.features.weights
    )


def _elsewhere(
    graph: TemporalGraph, learned_from: TemporalGraph, fitted: FittedModel
) -> FittedModel:
    """What was learned, for the relations of another graph."""
    if graph.unit is not learned_from.unit:
        raise TilpError(
            f"times of the other graph count {graph.unit.value}s, of the model's "
            f"{learned_from.unit.value}s; read it with unit={learned_from.unit.value!r}"
        )
    there = set(graph.relations)
    kept = np.array(
        [
            number
            for number, one in enumerate(fitted.rules)
            if {one.rule.head.relation, *(atom.relation for atom in one.rule.body)} <= there
        ],
        np.int64,
    )
    if not len(kept):
        raise TilpError(
            "no rule of the model speaks of the other graph's relations: "
            f"{', '.join(graph.relations)}"
        )
    heads = old_heads(graph, learned_from)
    known = heads >= 0
    weights = replace(
        fitted.weights,
        rule=fitted.weights.rule[kept],
        prior=np.where(known, fitted.weights.prior[heads], 1.0),
        factor=np.where(known[:, None], fitted.weights.factor[heads], 1.0),
    )
    rules = type(fitted.rules)(fitted.rules[number] for number in kept.tolist())
    features = None if fitted.features is None else fitted.features.remap(heads, kept)
    return replace(fitted, rules=rules, weights=weights, features=features)


def old_heads(graph: TemporalGraph, learned_from: TemporalGraph) -> NDArray[np.int64]:
    """For each directed relation of a graph its number where the model was learned; -1: none."""
    here = {name: number for number, name in enumerate(learned_from.relations)}
    relations = np.array([here.get(name, -1) for name in graph.relations], np.int64)
    return np.concatenate([relations, np.where(relations >= 0, relations + len(here), -1)])
