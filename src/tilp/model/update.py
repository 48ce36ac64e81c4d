"""Updating a model with new facts, and `UpdateReport` of what an update changed."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.arrays import Floats, Ints
from tilp._version import __version__
from tilp.features.paper.features import FittedPaper
from tilp.graph import SPLITS, MergedGraph, TemporalGraph
from tilp.graph.vocabulary import NearNames
from tilp.learning.rule_weights import INITIAL_LOG_PRIOR
from tilp.model import fit
from tilp.model.config import FitContext
from tilp.model.fitted_model import FittedModel, old_relations, reindex_relations, with_weights
from tilp.rules import MinedRule, RuleSet
from tilp.scoring import RuleWeights
from tilp.time.imputation import MissingDates
from tilp.types import Weights
from tilp.walks import Walker
from tilp.walks.mining import count_rules, mine_relations, mining_walker

_MIN_WEIGHT = 1e-300
_MAX_NAMES = 5


@dataclass(frozen=True)
class UpdateReport:
    """Report of the changes that an update made."""

    added: dict[str, int]  # new facts, by split
    known: dict[str, int]  # facts that were there already, by split
    less: int  # of these, how many are there with more of their dates
    superseded: int  # facts replaced by one with more of the dates
    elsewhere: int  # new facts that are in another split too, which spoils its figures
    renumbered: int  # attributes of entities whose value changed
    entities: tuple[str, ...]  # labels of new entities
    relations: tuple[str, ...]  # labels of new relations
    near: dict[str, tuple[str, ...]]  # for some of these, known relations with a similar name
    touched: tuple[str, ...] = ()  # relations whose rules were mined again
    counted: int = 0  # rules that were there before and were counted again
    new_rules: int = 0  # rules that were not there before
    dropped_rules: int = 0  # rules that are no longer among the best
    without_rules: tuple[str, ...] = ()  # touched relations that have no rule

    @classmethod
    def of(cls, before: TemporalGraph, merged: MergedGraph, **changes: Any) -> UpdateReport:
        """Return the report of merging facts, with other changes by name."""
        after = merged.graph
        relations = tuple(after.relations.labels[len(before.relations) :])
        near_names = NearNames(before.relations)
        added = np.diff(np.searchsorted(merged.added, after.bounds))
        return cls(
            added=dict(zip(SPLITS, added.tolist(), strict=True)),
            known=merged.duplicates,
            less=merged.less_dated,
            superseded=len(merged.superseded),
            elsewhere=merged.in_other_split,
            renumbered=merged.changed_attributes,
            entities=tuple(after.entities.labels[len(before.entities) :]),
            relations=relations,
            near={name: near for name in relations if (near := near_names.find(name))},
            **changes,
        )

    @property
    def anything(self) -> bool:
        """Whether the update changed anything."""
        counts = (*self.added.values(), self.superseded, self.renumbered)
        return any(counts) or bool(self.entities) or bool(self.relations)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values, with the count of new entities for their labels."""
        values = asdict(self)
        values |= {"entities": len(self.entities), "tilp": __version__}
        del values["near"]
        return {
            k: list(value) if isinstance(value, tuple) else value for k, value in values.items()
        }

    def of_facts(self) -> list[str]:
        """Return lines of text about the facts."""
        lines = [f"added: {_by_split(self.added)}"]
        if self.superseded:
            lines.append(f"replaced facts with fewer dates: {self.superseded:,}")
        if sum(self.known.values()):
            less = f", {self.less:,} of them with more of their dates" if self.less else ""
            lines.append(f"there already: {_by_split(self.known)}{less}")
        if self.elsewhere:
            lines.append(
                f"in another split too: {self.elsewhere:,}; figures of valid or test mean less "
                "where train has the same facts"
            )
        if self.renumbered:
            lines.append(f"changed attributes of entities: {self.renumbered:,}")
        if self.entities:
            lines.append(f"new entities: {_list_names(self.entities)}")
        if self.relations:
            lines.append(f"new relations: {_list_names(self.relations)}")
        lines += [
            f"{name!r} is new: was {' or '.join(map(repr, near))} meant?"
            for name, near in self.near.items()
        ]
        return lines

    def of_rules(self) -> list[str]:
        """Return lines of text about the rules."""
        if not self.touched:
            return ["no training fact is new: rules and weights are as they were"]
        lines = [
            f"touched: {_list_names(self.touched, ' relations')}; {self.counted:,} rules counted "
            f"again, {self.new_rules:,} new, {self.dropped_rules:,} no longer among the best"
        ]
        if self.without_rules:
            lines.append(
                f"no rule for {_list_names(self.without_rules, ' relations')}: "
                "too few of their facts can be reached by other facts"
            )
        return lines

    def __str__(self) -> str:
        return "\n".join([*self.of_facts(), *self.of_rules()])


def _by_split(counts: dict[str, int]) -> str:
    listed = [f"{count:,} in {split}" for split, count in counts.items() if count]
    return ", ".join(listed) or "nothing"


def _list_names(names: Sequence[str], noun: str = "") -> str:
    """Return the count of names, and the first of them."""
    more = ", …" if len(names) > _MAX_NAMES else ""
    return f"{len(names):,}{noun} ({', '.join(names[:_MAX_NAMES])}{more})"


def touched_relations(rules: RuleSet, relations: Collection[str]) -> set[str]:
    """Return changed relations, and those predicted by rules with one of them in the body."""
    bodies = ((mined.rule.head.relation, mined.rule.body) for mined in rules)
    return {*relations} | {
        head for head, body in bodies if any(atom.relation in relations for atom in body)
    }


def update_model(
    graph: TemporalGraph, fitted: FittedModel, merged: MergedGraph, context: FitContext
) -> tuple[FittedModel, UpdateReport]:
    """Mine and count again what new facts touch in a model of a graph; its weights stay."""
    update = _Update(graph, fitted, merged, context)
    updated = update.run()
    if fitted.time is not None:
        time = fitted.time.for_relations(tuple(merged.graph.relations))
        updated = replace(updated, time=time)
    report = update.report(updated.rules)
    history = (*fitted.updates, report.to_json()) if report.anything else fitted.updates
    return replace(updated, updates=history), report


class _Update:
    """One update: the fitted model, and the graph with the new facts."""

    def __init__(
        self, graph: TemporalGraph, fitted: FittedModel, merged: MergedGraph, context: FitContext
    ) -> None:
        self._before, self._after, self._merged = graph, merged.graph, merged
        self._fitted, self._context, self._settings = fitted, context, context.settings
        self._dated = self._impute(merged.graph)
        self._changed = self._changed_relations()
        touched = touched_relations(fitted.rules, self._changed)
        self._touched = tuple(name for name in merged.graph.relations if name in touched)

    def run(self) -> FittedModel:
        """Return the updated model."""
        fitted, context = self._fitted, self._context
        relations = old_relations(self._after, self._before)
        if not self._changed and len(relations) == len(fitted.weights.prior):
            return fitted
        walker = mining_walker(self._dated, self._settings.mining)
        training = self._settings.training
        parameters = flat_net = None
        if fitted.net is not None:
            from tilp.learning.attention_net import AttentionNet, flatten_parameters  # imports JAX

            net = AttentionNet(walker.encoding, training.dimension)
            parameters = net.transfer_parameters(fitted.net, relations, training.seed)
            flat_net = flatten_parameters(parameters)
        if not self._changed:  # the new relations have no training facts
            weights = reindex_relations(fitted.weights, relations)
            every_rule = np.arange(len(fitted.rules))
            features = fitted.features and fitted.features.remap(relations, every_rule)
            return replace(fitted, net=flat_net, weights=weights, features=features)
        rules, data = self._mine(walker)
        index = {mined.rule: row for row, mined in enumerate(fitted.rules)}
        old_rules = np.array([index.get(mined.rule, -1) for mined in rules], np.int64)
        rows = walker.encoding.encode([mined.rule for mined in rules])
        net_scores = np.zeros(len(rows))
        if parameters is not None:
            net_scores = np.asarray(net.log_scores(parameters, net.part_indices(rows)), np.float64)
        weights = self._weights(rules, rows[:, 2], old_rules, relations, net_scores)
        rules = with_weights(rules, weights)
        if data is not None:
            rules = self._with_gains(rules, weights, data)
        features = fitted.features and fitted.features.remap(relations, old_rules)
        if isinstance(features, FittedPaper):
            length = self._settings.mining.max_length
            with context.stages("features") as advance:
                features = features.refresh(self._dated, rules, length, context.workers, advance)
        seconds = context.stages.seconds
        return FittedModel(rules, weights, fitted.curve, features, seconds, flat_net)

    def report(self, rules: RuleSet) -> UpdateReport:
        """Return what the update changed, given the rules of the updated model."""
        old_rules, touched = self._fitted.rules, set(self._touched)
        with_rules = {mined.rule.head.relation for mined in rules}
        return UpdateReport.of(
            self._before,
            self._merged,
            touched=self._touched,
            counted=sum(m.rule in old_rules and m.rule.head.relation in touched for m in rules),
            new_rules=sum(mined.rule not in old_rules for mined in rules),
            dropped_rules=sum(mined.rule not in rules for mined in old_rules),
            without_rules=tuple(name for name in self._touched if name not in with_rules),
        )

    def _impute(self, graph: TemporalGraph) -> TemporalGraph:
        settings = self._settings
        return MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)

    def _changed_relations(self) -> set[str]:
        """Return the relations whose training facts, or their imputed dates, changed."""
        before, after, size = self._impute(self._before), self._dated, self._before.bounds[1]
        is_changed = before.start[:size] != after.start[:size]
        is_changed |= before.end[:size] != after.end[:size]
        added = self._merged.added[self._merged.added < after.bounds[1]]
        rows = np.concatenate([np.flatnonzero(is_changed), added])
        return {after.relations.label(int(index)) for index in np.unique(after.relation[rows])}

    def _mine(self, walker: Walker) -> tuple[RuleSet, fit.TrainingData | None]:
        """Return all rules, touched relations mined again; and these as applied, for gains."""
        mining, workers = self._settings.mining, self._context.workers
        by_relation: dict[str, list[MinedRule]] = {}
        for old in self._fitted.rules:
            by_relation.setdefault(old.rule.head.relation, []).append(old)
        given = RuleSet(mined for mined in self._fitted.rules if mined.given)
        with self._context.stages("mine") as advance:
            mined = dict(mine_relations(walker, self._touched, mining, workers, progress=advance))
            given = given.filter(lambda mined: mined.rule.head.relation in self._touched)
            for rule in count_rules(walker, given, mining, workers):
                others = (m for m in mined[rule.rule.head.relation] if m.rule != rule.rule)
                mined[rule.rule.head.relation] = [rule, *others]
        touched, data = RuleSet(rule for listed in mined.values() for rule in listed), None
        if len(touched) and fit.measures_gains(self._settings):
            data = self._apply(walker, touched)
            touched = data.rules
        kept = {name: [m for m in listed if m.rule in touched] for name, listed in mined.items()}
        by_relation |= kept
        names = self._after.relations
        return RuleSet(rule for name in names for rule in by_relation.get(name, ())), data

    def _apply(self, walker: Walker, rules: RuleSet) -> fit.TrainingData:
        """Apply rules of touched relations to queries, and keep those that a fit would keep."""
        with tempfile.TemporaryDirectory() as folder:
            context = replace(self._context, folder=Path(folder))
            usual = not self._settings.mining.only_earlier
            dates = MissingDates.fit(
                self._after, self._settings.missing, self._settings.seed, usual=usual
            )
            data = fit.apply_to_queries(self._after, walker, dates, rules, context, self._touched)
            return fit.select_from(data, context) if self._settings.select else data

    def _with_gains(self, rules: RuleSet, weights: RuleWeights, data: fit.TrainingData) -> RuleSet:
        """Return all rules, those of touched relations with their gain and lift."""
        index = {mined.rule: row for row, mined in enumerate(rules)}
        touched = np.array([index[mined.rule] for mined in data.rules], np.int64)
        weights = replace(weights, rule=weights.rule[touched])
        held_out, training = (
            examples.queries.directed_relation for examples in (data.held_out, data.training)
        )
        others = data.training.select(~np.isin(training, held_out))
        judged = [(data.held_out, weights), (others, weights)]
        weighted = RuleSet(rules[mined.rule] for mined in data.rules)
        measured = {m.rule: m for m in fit.with_gains(data, weighted, judged, self._context)}
        return RuleSet(measured.get(mined.rule, mined) for mined in rules)

    def _weights(
        self,
        rules: RuleSet,
        relation: Ints,  # directed, of each rule
        old_rules: Ints,  # the old index of each rule, or -1
        relations: Ints,  # the old id of each directed relation, or -1
        net_scores: Floats,  # logarithms, 0 without a net
    ) -> RuleWeights:
        """Return the weights of old rules as they were, and those of new rules.

        The weight of a new rule comes from its confidence, or from the net, by the kind of
        weights. Weights are relative to the heaviest rule of their directed relation, and free
        ones are regularised towards the confidence. So the median ratio of known weights to what
        they would be as new ones gives the scale.
        """
        fitted = self._fitted
        is_old = old_rules >= 0
        expected = expected_before = net_scores
        if fitted.net is None or self._settings.training.weights is not Weights.ATTENTION:
            expected = net_scores + np.log(fit.smoothed_confidence(rules))
            confidence = np.log(fit.smoothed_confidence(fitted.rules))
            expected_before = net_scores + confidence[old_rules]
        old_weights = np.log(np.maximum(fitted.weights.rule, _MIN_WEIGHT))
        ratio = old_weights[old_rules] - expected_before
        scale = np.zeros(len(relations))
        weights = reindex_relations(fitted.weights, relations)
        prior = weights.prior.copy()
        for directed in np.unique(relation):
            mask = relation == directed
            if (mask & is_old).any():
                scale[directed] = np.median(ratio[mask & is_old])
            else:
                scale[directed] = -expected[mask].max()
                prior[directed] = np.exp(INITIAL_LOG_PRIOR + scale[directed])
        rule = np.where(is_old, fitted.weights.rule[old_rules], np.exp(expected + scale[relation]))
        return replace(weights, rule=rule, prior=prior)
