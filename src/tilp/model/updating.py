"""Updating a model with new facts: what they touch is counted, mined or learned again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.attention.net import AttentionNet, Parameters, flat
from tilp.attention.training import PRIOR_AT_FIRST
from tilp.choices import ByLabel, MoreDates, UpdateRules, UpdateWeights, Weights
from tilp.errors import TilpError
from tilp.features.joint import JointWeights
from tilp.features.settling import Settling
from tilp.graph import Joined, TemporalGraph, join_facts
from tilp.model.fitting import Fitted, smoothed_confidence
from tilp.model.paper_phase import FittedPaper, refresh_paper
from tilp.model.preparing import apply_rules
from tilp.model.scorers import old_heads
from tilp.model.settings import ModelSettings
from tilp.model.stages import Progress, Stages
from tilp.model.touched import speaks_of, touched
from tilp.model.update_report import UpdateReport
from tilp.model.warming import Warm, log_weights
from tilp.parallel import Workers
from tilp.ranking import RuleScorer, RuleWeights
from tilp.rules import MinedRule, RuleSet
from tilp.walks import Walker
from tilp.walks.mining import count_again, mine_relations, mining_walker

__all__ = ["UpdateChoices", "update_model"]


@dataclass(frozen=True)
class UpdateChoices:
    """What becomes of a model.

    Attributes:
        weights: of what is touched.
        rules: of the relations that are touched.
        dates: what becomes of facts whose dates a new one tells more of.
        labels: what a name is that is no id and no key, but reads as a label.
    """

    weights: UpdateWeights = UpdateWeights.KEEP
    rules: UpdateRules = UpdateRules.MINE
    dates: MoreDates = MoreDates.SUPERSEDE
    labels: ByLabel = ByLabel.REFUSE


def update_model(
    graph: TemporalGraph,
    settings: ModelSettings,
    fitted: Fitted,
    new: TemporalGraph,
    choices: UpdateChoices,
    workers: Workers,
    *,
    progress: Progress | None = None,
) -> tuple[TemporalGraph, Fitted, UpdateReport]:
    """Put new facts into a model's graph, and refresh what they touch.

    Args:
        graph: the model's.
        settings: likewise.
        fitted: likewise.
        new: the new facts, each in its split.
        choices: what becomes of the model.
        workers: do not change the result.
        progress: told how far each stage is.

    Raises:
        TilpError: facts that do not go with the model's, or weights that training cannot go on
            from.
    """
    kind = settings.training.weights
    lacks_net = kind is not Weights.FREE and fitted.net is None
    if choices.weights is UpdateWeights.WARM and lacks_net:
        raise TilpError(
            f"the weights of this model's rules are of the kind {kind.value}, and it does not hold "
            "the net they come from, as it was written by a tilp of before; keep them "
            "(weights='keep', --weights keep), or fit a model to all facts"
        )
    joined = join_facts(graph, new, dates=choices.dates, labels=choices.labels)
    update = _Update(graph, settings, fitted, joined, choices, Stages(progress), workers)
    found = update.run()
    report = update.report(found.rules)
    history = (*fitted.updates, report.to_json()) if report.anything else fitted.updates
    return joined.graph, replace(found, updates=history), report


class _Update:
    """One update: the model as it was, and the graph that it is to fit."""

    def __init__(
        self,
        graph: TemporalGraph,
        settings: ModelSettings,
        fitted: Fitted,
        joined: Joined,
        choices: UpdateChoices,
        stages: Stages,
        workers: Workers,
    ) -> None:
        self._before, self._after = graph, joined.graph
        self._settings, self._fitted = settings, fitted
        self._joined, self._choices = joined, choices
        self._stages, self._workers = stages, workers
        self._settling = Settling.fit(joined.graph, settings.missing, settings.seed)
        self._settled = self._settling.graph(joined.graph)
        self._changed = self._changed_relations()
        self._touched = touched(fitted.rules, self._changed)

    def run(self) -> Fitted:
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
        weights, scale = self._kept_weights(rules, rows[:, 2], came_from, heads, net.of(rows))
        features = self._fitted.features
        if features is not None:
            features = features.of(heads, came_from)
        curve, parameters = self._fitted.curve, net.flat
        warm: Warm | None = None
        if self._choices.weights is UpdateWeights.WARM:
            warm = self._warm(walker, rules, rows[:, 2], net)
            weights, curve, parameters = warm.weights(weights, scale, rows[:, 2])
        found = Fitted(_weighted(rules, weights), weights, curve, net=parameters)
        if features is not None:
            found = replace(found, features=self._features(walker, found, features, warm))
        return replace(found, seconds=self._stages.seconds)

    def report(self, rules: RuleSet) -> UpdateReport:
        """What was done."""
        before, after = self._before, self._after
        held = {one.rule.head.relation for one in rules}
        changed, choices = self._changed, self._choices
        mined = choices.rules is UpdateRules.MINE
        counted = (
            one.rule.head.relation in self._touched if mined else speaks_of(one.rule, changed)
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
            weights=choices.weights,
            rules=choices.rules,
        )

    def _changed_relations(self) -> set[str]:
        """The names of relations whose training facts are others than before.

        Also where an unknown end is now taken for something else, as durations have changed.
        """
        was = Settling.fit(self._before, self._settings.missing, self._settings.seed)
        before, after, size = was.graph(self._before), self._settled, self._before.bounds[1]
        differs = (before.start[:size] != after.start[:size]) | (
            before.end[:size] != after.end[:size]
        )
        added = self._joined.added[self._joined.added < after.bounds[1]]
        relations = np.unique(after.relation[np.concatenate([np.flatnonzero(differs), added])])
        return {after.relations.label(int(one)) for one in relations}

    def _renumbered(self, heads: NDArray[np.int64]) -> Fitted:
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
            features=None if fitted.features is None else fitted.features.of(heads, everything),
        )

    def _rules(self, walker: Walker) -> RuleSet:
        """The rules of all relations; those that are touched counted or mined anew."""
        old, mining = self._fitted.rules, self._settings.mining
        if self._choices.rules is UpdateRules.KEEP:
            with self._stages("count") as advance:
                again = [one for one in old if speaks_of(one.rule, self._changed)]
                counted = count_again(walker, again, mining, self._workers, progress=advance)
                by_rule = {one.rule: one for one in counted}
                return RuleSet(by_rule.get(one.rule, one) for one in old)
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
    ) -> tuple[RuleWeights, NDArray[np.float64]]:
        """The weights as they were, and those of new rules; and the scale of each head.

        A new rule weighs as its confidence says, or the net, or the product, by the kind of
        weights. Weights of a head are given in units of its heaviest rule, and free ones are drawn
        to the confidence when they are learned. So the median of weights against what a new rule
        would have tells the scale, as a logarithm.

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
        ratio = log_weights(fitted.weights.rule)[came_from] - before
        scale = np.zeros(n_heads)
        weights = _of_heads(fitted.weights, heads)
        prior = weights.prior.copy()
        for one in np.unique(head):
            of_head = head == one
            if (of_head & known).any():
                scale[one] = np.median(ratio[of_head & known])
            else:
                scale[one] = -expected[of_head].max()
                prior[one] = np.exp(PRIOR_AT_FIRST + scale[one])
        rule = np.where(known, fitted.weights.rule[came_from], np.exp(expected + scale[head]))
        return replace(weights, rule=rule, prior=prior), scale

    def _net(self, walker: Walker, heads: NDArray[np.int64]) -> _Net:
        """The net that weights come from, where they do, for the relations there are now."""
        training = self._settings.training
        net = AttentionNet(walker.encoding, training.dimension, training.cell)
        if self._fitted.net is None:
            return _Net(net, None)
        return _Net(net, net.carried_over(self._fitted.net, heads, training.seed))

    def _warm(self, walker: Walker, rules: RuleSet, head: NDArray[np.int64], net: _Net) -> Warm:
        """What is touched, applied to the facts that it is learned from.

        A net is shared by all relations: where there is one, all are learned on.
        """
        names = list(self._after.relations)
        shared = net.parameters is not None
        relations = np.flatnonzero([shared or name in self._touched for name in names])
        mine = np.flatnonzero(np.isin(head % len(names), relations))
        prepared = apply_rules(
            self._after,
            self._settling,
            walker,
            RuleSet(rules[place] for place in mine.tolist()),
            self._settings,
            self._stages,
            self._workers,
            relations=relations,
        )
        heads = np.concatenate([relations, relations + len(names)])
        return Warm(
            prepared, mine, heads, net.parameters, self._settings, self._stages, self._workers
        )

    def _features(
        self,
        walker: Walker,
        fitted: Fitted,
        before: FittedPaper | JointWeights,
        warm: Warm | None,
    ) -> FittedPaper | JointWeights:
        """What temporal features add: statistics fitted anew, weights as they were or learned on.

        Args:
            walker: over all facts.
            fitted: the rules, with their weights.
            before: what there was, for the numbers of this graph.
            warm: what is learned on; None: nothing.
        """
        scorer = RuleScorer(
            walker, [one.rule for one in fitted.rules], fitted.weights, self._settling
        )
        if isinstance(before, JointWeights):
            return before if warm is None else warm.joint(scorer, fitted, before)
        with self._stages("features") as advance:
            refreshed = refresh_paper(
                self._settled, fitted.rules, before, self._settings, self._workers, advance
            )
            return refreshed if warm is None else warm.paper(scorer, refreshed, advance)


@dataclass(frozen=True)
class _Net:
    """An attention net with its parameters, if there are any."""

    net: AttentionNet
    parameters: Parameters | None

    @property
    def flat(self) -> dict[str, NDArray[Any]] | None:
        """The parameters by name."""
        return None if self.parameters is None else flat(self.parameters)

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """What it says of rules, as a logarithm; 0 where there is none."""
        if self.parameters is None:
            return np.zeros(len(rows))
        return np.asarray(self.net.log_scores(self.parameters, self.net.places(rows)), np.float64)


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
