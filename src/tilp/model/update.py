"""What a change of the facts of some relations touches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.progress import Progress, Stages
from tilp.features.log_linear import LogLinearWeights
from tilp.features.paper.features import FittedPaper
from tilp.features.paper.fit import refresh_paper
from tilp.graph import MergedGraph, TemporalGraph
from tilp.learning.attention_net import AttentionNet, Parameters, flatten_parameters
from tilp.learning.rule_weights import INITIAL_LOG_PRIOR
from tilp.model.config import ModelSettings
from tilp.model.fit import FittedModel, smoothed_confidence
from tilp.model.scorers import old_heads
from tilp.model.update_report import UpdateReport
from tilp.parallel import Workers
from tilp.rules import MinedRule, RuleSet
from tilp.scoring import RuleWeights
from tilp.time.imputation import MissingDates
from tilp.types import Weights
from tilp.walks import Walker
from tilp.walks.mining import mine_relations, mining_walker


def touched(rules: RuleSet, relations: Collection[str], least: float = 0.0) -> set[str]:
    """The relations themselves, and those that are predicted by them to some part.

    Args:
        rules: with their weights.
        relations: their names.
        least: of the weight of a relation's rules, each times its support, the share of those
            whose bodies have one of the relations; 0: any such rule.
    """
    whole: defaultdict[str, float] = defaultdict(float)
    through: defaultdict[str, float] = defaultdict(float)
    for one in rules:
        head, said = one.rule.head.relation, (one.weight or 0.0) * one.support
        whole[head] += said
        if any(atom.relation in relations for atom in one.rule.body):
            through[head] += said
    return {*relations} | {head for head in through if through[head] >= least * whole[head]}


_LEAST_WEIGHT = 1e-300


def update_model(
    graph: TemporalGraph,
    settings: ModelSettings,
    fitted: FittedModel,
    joined: MergedGraph,
    workers: Workers,
    *,
    progress: Progress | None = None,
) -> tuple[FittedModel, UpdateReport]:
    """Refresh what new facts touch in a model; its weights are kept.

    Args:
        graph: the model's.
        settings: likewise.
        fitted: likewise.
        joined: the graph with the new facts.
        workers: do not change the result.
        progress: told how far each stage is.
    """
    update = _Update(graph, settings, fitted, joined, Stages(progress), workers)
    found = update.run()
    report = update.report(found.rules)
    history = (*fitted.updates, report.to_json()) if report.anything else fitted.updates
    return replace(found, updates=history), report


class _Update:
    """One update: the model as it was, and the graph that it is to fit."""

    def __init__(
        self,
        graph: TemporalGraph,
        settings: ModelSettings,
        fitted: FittedModel,
        joined: MergedGraph,
        stages: Stages,
        workers: Workers,
    ) -> None:
        self._before, self._after = graph, joined.graph
        self._settings, self._fitted = settings, fitted
        self._joined, self._stages, self._workers = joined, stages, workers
        settling = MissingDates.fit(joined.graph, settings.missing, settings.seed)
        self._settled = settling.fill_graph(joined.graph)
        self._changed = self._changed_relations()
        self._touched = touched(fitted.rules, self._changed)

    def run(self) -> FittedModel:
        """What the model learned, refreshed."""
        heads = old_heads(self._after, self._before)
        if not self._changed:
            return self._renumbered(heads)
        walker = mining_walker(self._settled, self._settings.mining)
        rules = self._rules(walker)
        number = {one.rule: place for place, one in enumerate(self._fitted.rules)}
        came_from = np.array([number.get(one.rule, -1) for one in rules], np.int64)
        rows = walker.encoding.encode([one.rule for one in rules])
        net = self._net(walker, heads)
        weights = self._kept_weights(rules, rows[:, 2], came_from, heads, net.of(rows))
        features = self._fitted.features
        if features is not None:
            features = features.remap(heads, came_from)
        found = FittedModel(_weighted(rules, weights), weights, self._fitted.curve, net=net.flat)
        if features is not None:
            found = replace(found, features=self._features(found, features))
        return replace(found, seconds=self._stages.seconds)

    def report(self, rules: RuleSet) -> UpdateReport:
        """What was done."""
        before, after = self._before, self._after
        held = {one.rule.head.relation for one in rules}
        counted = (
            one.rule.head.relation in self._touched
            for one in rules
            if one.rule in self._fitted.rules
        )
        return UpdateReport.of(
            before,
            self._joined,
            touched=tuple(name for name in after.relations if name in self._touched),
            counted=sum(counted),
            new_rules=sum(one.rule not in self._fitted.rules for one in rules),
            dropped_rules=sum(one.rule not in rules for one in self._fitted.rules),
            without_rules=tuple(
                name for name in after.relations if name in self._touched and name not in held
            ),
        )

    def _changed_relations(self) -> set[str]:
        """The names of relations whose training facts are others than before.

        Also where an unknown end is now taken for something else, as durations have changed.
        """
        was = MissingDates.fit(self._before, self._settings.missing, self._settings.seed)
        before, after, size = was.fill_graph(self._before), self._settled, self._before.bounds[1]
        differs = (before.start[:size] != after.start[:size]) | (
            before.end[:size] != after.end[:size]
        )
        added = self._joined.added[self._joined.added < after.bounds[1]]
        relations = np.unique(after.relation[np.concatenate([np.flatnonzero(differs), added])])
        return {after.relations.label(int(one)) for one in relations}

    def _renumbered(self, heads: NDArray[np.int64]) -> FittedModel:
        """All as it was, for relations that may be more."""
        fitted = self._fitted
        if len(heads) == len(fitted.weights.prior):
            return fitted
        everything = np.arange(len(fitted.rules))
        walker = mining_walker(self._settled, self._settings.mining)
        return replace(
            fitted,
            net=self._net(walker, heads).flat,
            weights=_of_heads(fitted.weights, heads),
            features=None if fitted.features is None else fitted.features.remap(heads, everything),
        )

    def _rules(self, walker: Walker) -> RuleSet:
        """The rules of all relations; those that are touched mined anew."""
        old, mining = self._fitted.rules, self._settings.mining
        names = [name for name in self._after.relations if name in self._touched]
        with self._stages("mine") as advance:
            mined = dict(mine_relations(walker, names, mining, self._workers, progress=advance))
        of_relation: dict[str, list[MinedRule]] = {}
        for one in old:
            of_relation.setdefault(one.rule.head.relation, []).append(one)
        of_relation.update(mined)
        return RuleSet(one for name in self._after.relations for one in of_relation.get(name, ()))

    def _kept_weights(
        self,
        rules: RuleSet,
        head: NDArray[np.int64],
        came_from: NDArray[np.int64],
        heads: NDArray[np.int64],
        of_net: NDArray[np.float64],
    ) -> RuleWeights:
        """The weights as they were, and those of new rules.

        A new rule weighs as its confidence says, or the net, by the kind of weights. Weights of a
        head are given in units of its heaviest rule, and free ones are drawn to the confidence
        when they are learned. So the median of weights against what a new rule would have tells
        the scale, as a logarithm.

        Args:
            rules: all there are now.
            head: of each.
            came_from: its place among those there were; -1: new.
            heads: for each head the old one; -1: new.
            of_net: what the net says of each, as a logarithm.
        """
        fitted, n_heads = self._fitted, len(heads)
        known = came_from >= 0
        expected, before = of_net, of_net
        if fitted.net is None or self._settings.training.weights is not Weights.ATTENTION:
            expected = of_net + np.log(smoothed_confidence(rules))
            before = of_net + np.log(smoothed_confidence(fitted.rules))[came_from]
        ratio = np.log(np.maximum(fitted.weights.rule, _LEAST_WEIGHT))[came_from] - before
        scale = np.zeros(n_heads)
        weights = _of_heads(fitted.weights, heads)
        prior = weights.prior.copy()
        for one in np.unique(head):
            of_head = head == one
            if (of_head & known).any():
                scale[one] = np.median(ratio[of_head & known])
            else:
                scale[one] = -expected[of_head].max()
                prior[one] = np.exp(INITIAL_LOG_PRIOR + scale[one])
        rule = np.where(known, fitted.weights.rule[came_from], np.exp(expected + scale[head]))
        return replace(weights, rule=rule, prior=prior)

    def _net(self, walker: Walker, heads: NDArray[np.int64]) -> _Net:
        """The net that weights come from, where they do, for the relations there are now."""
        training = self._settings.training
        net = AttentionNet(walker.encoding, training.dimension)
        if self._fitted.net is None:
            return _Net(net, None)
        return _Net(net, net.transfer_parameters(self._fitted.net, heads, training.seed))

    def _features(
        self, fitted: FittedModel, before: FittedPaper | LogLinearWeights
    ) -> FittedPaper | LogLinearWeights:
        """What temporal features add: statistics fitted anew, weights as they were.

        Args:
            fitted: the rules, with their weights.
            before: what there was, for the numbers of this graph.
        """
        if isinstance(before, LogLinearWeights):
            return before
        with self._stages("features") as advance:
            return refresh_paper(
                self._settled,
                fitted.rules,
                before,
                self._settings.mining.max_length,
                self._workers,
                advance,
            )


@dataclass(frozen=True)
class _Net:
    """An attention net with its parameters, if there are any."""

    net: AttentionNet
    parameters: Parameters | None

    @property
    def flat(self) -> dict[str, NDArray[Any]] | None:
        """The parameters by name."""
        return None if self.parameters is None else flatten_parameters(self.parameters)

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """What it says of rules, as a logarithm; 0 where there is none."""
        if self.parameters is None:
            return np.zeros(len(rows))
        return np.asarray(
            self.net.log_scores(self.parameters, self.net.part_indices(rows)), np.float64
        )


def _of_heads(weights: RuleWeights, heads: NDArray[np.int64]) -> RuleWeights:
    """Weights for other numbers of relations; those of new ones count nothing yet."""
    known = heads >= 0
    return replace(
        weights,
        prior=np.where(known, weights.prior[heads], 1.0),
        factor=np.where(known[:, None], weights.factor[heads], 1.0),
    )


def _weighted(rules: RuleSet, weights: RuleWeights) -> RuleSet:
    return RuleSet(
        replace(one, weight=float(weight)) for one, weight in zip(rules, weights.rule, strict=True)
    )
