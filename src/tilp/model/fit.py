"""Fitting a model: rules and their weights (phase one), then temporal features (phase two)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ints, Mask
from tilp._utils.files import load_or_compute, write_text
from tilp._utils.memory import resident_bytes
from tilp.errors import NoRulesError, TilpError
from tilp.evaluation import Ranker
from tilp.features.entity_kinds import EntityKinds
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.log_linear_training import N_FOLDS, LogLinearSettings, fit_log_linear, fold_index
from tilp.features.paper.features import FEATURES
from tilp.features.term_weights import stack_terms
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import PopularityPrior, rule_selection
from tilp.learning.examples import TrainingExamples, make_training_examples, training_queries
from tilp.learning.rule_weights import LogWeights, Objective, train_rule_weights
from tilp.learning.training_loop import LossCurve
from tilp.model.config import FitContext, ModelSettings
from tilp.model.fitted_model import FittedModel, with_weights
from tilp.rules import MinedRule, Rule, RuleSet
from tilp.scoring import RuleScorer, RuleWeights
from tilp.time.imputation import MissingDates
from tilp.time_prediction import TimeTraining, fit_time_model
from tilp.types import Features, Grain, Part
from tilp.walks import Walker
from tilp.walks.mining import MiningCheckpoint, count_rules, mining_walker, target_facts

_SIMPLICITY = 0.3  # factor of a rule's expected weight for each atom of its body past the first
_FAILURES = 5.0  # facts where a rule fails, added to those seen when its confidence is smoothed
_MIN_CONFIDENCE, _MIN_WEIGHT = 1e-6, 1e-300
SELECTION_STEPS = 60  # of training: weights need not be exact to tell which rules matter
_PROGRAM_BYTES = 2.2e8  # of compiled loops and libraries that a fit loads
_FACT_BYTES, _ENTITY_BYTES, _EXAMPLE_BYTES = 300, 40, 58  # with copies on the way
_EXAMPLES_BY_LENGTH = 0.13  # share of the rules that apply to a query, for each atom of a body


def fit_model(
    graph: TemporalGraph, context: FitContext, given: GivenRules | None = None
) -> FittedModel:
    """Mine rules in train, or take given ones, learn their weights, then what features add."""
    check_memory(graph, context)
    data = prepare_training_data(graph, context, given)
    if context.settings.select:
        data = select_from(data, context)
    fitted, folds = learn_rule_weights(data, context)
    if folds:
        fold_ids = fold_index(data.training.queries.fact, context.settings.seed)
        judged = [(data.training.select(fold_ids == fold), w) for fold, w in enumerate(folds)]
        judged.append((data.held_out, fitted.weights))
        fitted = replace(fitted, rules=with_gains(data, fitted.rules, judged, context))
    fitted = learn_features(data, fitted, folds, context)
    if not context.settings.time_model or context.settings.mining.only_earlier:
        return fitted  # which facts are earlier is not known before the date is
    with context.stages("time") as advance:
        training = TimeTraining(seed=context.settings.seed)
        time = fit_time_model(graph, training, context.workers, advance)
    return replace(fitted, time=time, seconds=context.stages.seconds)


def check_memory(graph: TemporalGraph, context: FitContext) -> None:
    """Raise an error if a fit takes more than the memory allows, even in the smallest blocks.

    What it takes is a rough bound from the sizes of the graph: examples of the training queries,
    which grow with the rules to choose from, indices of facts and entities, and the program.
    """
    mining, workers = context.settings.mining, context.workers
    n_queries = 2 * len(target_facts(graph, mining))
    n_examples = n_queries * mining.top * min(_EXAMPLES_BY_LENGTH * mining.max_length, 1.0)
    needed = resident_bytes() + _PROGRAM_BYTES + _EXAMPLE_BYTES * n_examples
    needed += _FACT_BYTES * len(graph) + _ENTITY_BYTES * workers.threads * len(graph.entities)
    if needed > workers.memory:
        raise TilpError(
            f"the fit needs about {needed / 1e9:.2f} GB of memory in the smallest blocks, and may "
            f"take {workers.memory / 1e9:.2f} GB; allow more (--memory), learn from fewer facts "
            "(--effort quick), or find shorter rules (--max-length)"
        )


@dataclass(frozen=True)
class GivenRules:
    """Rules that a user gives; selection never drops them."""

    rules: RuleSet
    also_mine: bool = False  # learn from mined rules too

    def digest(self) -> str:
        """Return a digest, by which the checkpoints of another fit are recognised."""
        texts = [*(str(mined.rule) for mined in self.rules), str(self.also_mine)]
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def given_rules(
    rules: RuleSet | Iterable[Rule] | Path | str, also_mine: bool, graph: TemporalGraph,
    settings: ModelSettings,
) -> tuple[GivenRules, ModelSettings]:  # fmt: skip
    """Check the rules of a user, or of a file, and add the temporal detail that they have."""
    mining = settings.mining
    grains = list(dict.fromkeys([*mining.grains, *Grain]))
    encoding = mining_walker(graph, replace(mining, grains=tuple(grains))).encoding

    def encode(rule: Rule) -> int:
        return int(encoding.encode([rule])[0, 0])

    if isinstance(rules, Path | str):
        listed = RuleSet.read(rules, encode)
    else:
        listed = RuleSet(m if isinstance(m, MinedRule) else MinedRule(m) for m in rules)
    if not len(listed):
        raise TilpError("there are no rules among those given; give some, or none to mine them")
    used = {grains[encode(mined.rule)] for mined in listed} | {*mining.grains}
    mining = replace(mining, grains=tuple(grain for grain in grains if grain in used))
    return GivenRules(listed, also_mine), replace(settings, mining=mining)


@dataclass(frozen=True)
class TrainingData:
    """All that learning needs, whatever the kind of weights."""

    missing_dates: MissingDates
    walker: Walker  # on the train split, with imputed dates
    rules: RuleSet
    rows: Ints  # the rules in the walker's encoding
    training: TrainingExamples
    held_out: TrainingExamples  # decide when to stop
    ranker: Ranker  # of the answers of the held-out queries
    prior: PopularityPrior  # of the walker's graph

    def objective(self, examples: TrainingExamples, settings: ModelSettings) -> Objective:
        """Return the likelihood of the answers of some examples."""
        return Objective(examples, self.prior, len(self.rules), settings.training.walks_power)

    def scorer(self, weights: RuleWeights) -> RuleScorer:
        """Return the scorer of the rules with some weights."""
        rules = [mined.rule for mined in self.rules]
        return RuleScorer(self.walker, rules, weights, self.missing_dates)

    def of_rules(self, mask: Mask) -> TrainingData:
        """Return the data of some of the rules."""
        rules = RuleSet(mined for mined, kept in zip(self.rules, mask, strict=True) if kept)
        training, held_out = (each.of_rules(mask) for each in (self.training, self.held_out))
        rows = self.rows[mask]
        return replace(self, rules=rules, rows=rows, training=training, held_out=held_out)


def prepare_training_data(
    graph: TemporalGraph, context: FitContext, given: GivenRules | None = None
) -> TrainingData:
    """Mine rules in the train split, and apply them to training and held-out queries."""
    settings = context.settings
    _check_checkpoint_folder(context.path("fit.json"), graph, settings, given)
    usual = not settings.mining.only_earlier
    dates = MissingDates.fit(graph, settings.missing, settings.seed, usual=usual)
    dated = dates.fill_graph(graph)
    walker = mining_walker(dated, settings.mining)
    with context.stages("mine") as advance:
        rules = RuleSet()
        if given is None or given.also_mine:
            rules = _mine(dated, context, advance)
        if given is not None:
            counted = count_rules(walker, given.rules, settings.mining, context.workers)
            mined = [rule for rule in rules if rule.rule not in counted]
            rules = RuleSet([*(replace(rule, given=True) for rule in counted), *mined])
    if not len(rules):
        raise NoRulesError(
            "no rule was found: the ends of no fact are joined by other facts often enough. More "
            "facts, other relations between the same things, a smaller min_support (--min-support) "
            "or a greater max_length (--max-length) may help"
        )
    return apply_to_queries(graph, walker, dates, rules, context)


def apply_to_queries(
    graph: TemporalGraph, walker: Walker, dates: MissingDates, rules: RuleSet, context: FitContext,
    relations: Iterable[str] | None = None,
) -> TrainingData:  # fmt: skip
    """Apply rules to training and held-out queries, of all relations or of some."""
    settings = context.settings
    rows = walker.encoding.encode([mined.rule for mined in rules])
    compiled = walker.encoding.compiled(rows)
    held_out_rows, is_walked = held_out_facts(graph, settings)
    ranker = Ranker(graph, held_out_rows, walked=is_walked)
    queries = training_queries(graph, target_facts(graph, settings.mining), walker)
    if not len(graph.rows("valid")):
        queries = queries[~np.isin(queries.fact, ranker.queries.fact)]
    held_out_queries = ranker.queries
    if relations is not None:
        ids = [graph.relations.find(name) for name in relations]
        ids += [index + len(graph.relations) for index in ids]
        queries = queries[np.isin(queries.directed_relation, ids)]
        held_out_queries = held_out_queries[np.isin(held_out_queries.directed_relation, ids)]
    with context.stages("apply") as advance:

        def examples(name: str, queries: QueryTable) -> TrainingExamples:
            def make() -> TrainingExamples:
                dated = walker.with_evidence(dates.fill_queries(queries))
                return make_training_examples(
                    walker, dated, compiled, context.workers, seed=settings.seed, progress=advance
                )

            path = context.path(f"entries-{name}.npz")
            return load_or_compute(path, make, _to_arrays, _from_arrays)

        held_out = examples("held-out", held_out_queries)
        training = examples("training", queries)
    prior = PopularityPrior.from_graph(walker.graph, by_start=walker.only_earlier)
    return TrainingData(dates, walker, rules, rows, training, held_out, ranker, prior)


def _check_checkpoint_folder(
    path: Path, graph: TemporalGraph, settings: ModelSettings, given: GivenRules | None
) -> None:
    """Record the data and settings of the checkpoints; refuse those of another fit."""
    folder = path.parent
    note = {"graph": graph.fingerprint(), "settings": settings.to_json()}
    if given is not None:
        note["rules"] = given.digest()
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        if any(not file.name.startswith(".") for file in folder.iterdir()):
            raise TilpError(f"{folder} is in use: remove it, or choose another name for the model")
        write_text(path, json.dumps(note))
    try:
        is_same = json.loads(path.read_text(encoding="utf-8")) == json.loads(json.dumps(note))
    except ValueError:
        is_same = False
    if not is_same:
        raise TilpError(
            f"{folder} was begun with other data or settings; remove it to begin anew, or choose "
            "another name for the model"
        )


def _mine(graph: TemporalGraph, context: FitContext, advance: Callable[[float], None]) -> RuleSet:
    out = context.path("rules.jsonl")
    if out.exists() and not out.with_name(f"{out.name}.unfinished").exists():
        return RuleSet.read_jsonl(out)
    checkpoint = MiningCheckpoint(graph, list(graph.relations), context.settings.mining, out)
    return checkpoint.finish(workers=context.workers, progress=advance)


def held_out_facts(graph: TemporalGraph, settings: ModelSettings) -> tuple[Ints, bool]:
    """Return the rows of facts of valid, else of a tenth of train, and whether walks use them."""
    rng = np.random.default_rng([settings.seed, 10])
    rows, limit = np.asarray(graph.rows("valid"), np.int64), settings.held_out
    is_walked = not len(rows)
    if is_walked:
        rows = target_facts(graph, settings.mining)
        limit = min(limit, len(rows) // 10 + 1)
    if len(rows) > limit:
        rows = np.sort(rng.choice(rows, limit, replace=False))
    return rows, is_walked


_QUERY_COLUMNS = [column.name for column in fields(QueryTable)]
_COLUMNS = [column.name for column in fields(TrainingExamples) if column.name != "queries"]


def _to_arrays(examples: TrainingExamples) -> dict[str, Any]:
    queries = {f"query_{name}": getattr(examples.queries, name) for name in _QUERY_COLUMNS}
    return {**queries, **{name: getattr(examples, name) for name in _COLUMNS}}


def _from_arrays(arrays: dict[str, Any]) -> TrainingExamples:
    queries = QueryTable(*(arrays[f"query_{name}"] for name in _QUERY_COLUMNS))
    return TrainingExamples(queries=queries, **{name: arrays[name] for name in _COLUMNS})


def select_from(data: TrainingData, context: FitContext) -> TrainingData:
    """Keep the rules that explain answers of training queries, given the others.

    Rules go that a simpler one, or guesses, equal; the others compete for the answers they reach.
    """
    settings = context.settings
    with context.stages("select") as advance:
        given = np.array([mined.given for mined in data.rules], np.bool_)
        equal = rule_selection.equal_relations(data.walker.graph)
        distinct = rule_selection.distinct_rules(data.rows, data.training)
        distinct &= rule_selection.distinct_bodies(data.rows, data.walker.encoding, equal)
        confidence = np.array([mined.confidence for mined in data.rules])
        body_support = np.array([mined.body_support for mined in data.rules], np.float64)
        base_rate = _base_rates(data, settings)[data.rows[:, 2]]
        better = distinct & rule_selection.better_than_base(confidence, body_support, base_rate)
        data = data.of_rules((better if better.any() else distinct) | given)
        short = replace(settings.training, steps=SELECTION_STEPS)
        selecting = replace(context, settings=replace(settings, training=short))
        logs, _, _ = _train_logs(data, data.training, selecting, advance, "selection")
        gains = data.objective(data.training, settings).rule_gains(logs, context.workers)
        rows = data.walker.encoding.with_relations(data.rows, equal)
        mask = rule_selection.select_rules(rows, gains.responsibility, settings.max_rules)
        return data.of_rules(mask | np.array([mined.given for mined in data.rules], np.bool_))


def learn_rule_weights(
    data: TrainingData, context: FitContext
) -> tuple[FittedModel, tuple[RuleWeights, ...]]:
    """Learn the weights of rules from training examples, and those without each fold of them.

    Gains and features need the latter: features trained on scores of queries that the rules were
    trained on would trust the rules too much. There are no folds where neither needs them.
    """
    settings, training = context.settings.training, data.training
    fold_ids = fold_index(training.queries.fact, context.settings.seed)
    names = [f"fold-{fold}" for fold in range(N_FOLDS)] if measures_gains(context.settings) else []
    folds = {name: training.select(fold_ids != fold) for fold, name in enumerate(names)}
    parts = {"training": training, **folds}
    trained = []
    with context.stages("train") as advance:
        for done, (name, examples) in enumerate(parts.items()):

            def advance_part(share: float, done: int = done) -> None:
                advance((done + share) / len(parts))

            learned, curve, net = _train_logs(data, examples, context, advance_part, name)
            weights = _scale_weights(learned, data.rows[:, 2])
            trained.append((replace(weights, walks_power=settings.ranking_power), curve, net))
    (weights, curve, net), *others = trained
    rules = with_weights(data.rules, weights)
    fitted = FittedModel(rules, weights, curve, seconds=context.stages.seconds, net=net)
    return fitted, tuple(weights for weights, _, _ in others)


def measures_gains(settings: ModelSettings) -> bool:
    """Return whether rules get their held-out gain and lift."""
    return settings.select or settings.features is Features.FULL


def learn_features(
    data: TrainingData, fitted: FittedModel, folds: tuple[RuleWeights, ...], context: FitContext
) -> FittedModel:
    """Learn what features add to rules; `folds` are rule weights learned without each fold."""
    settings, stages, workers = context.settings, context.stages, context.workers
    if settings.features is Features.NONE:
        return replace(fitted, seconds=stages.seconds)
    scorer = data.scorer(fitted.weights)
    training, features = data.training.queries, fitted.features
    if settings.features is Features.PAPER:
        from tilp.features.paper.fit import FeatureTrainingSettings, fit_paper  # imports JAX

        without = tuple(name for name in FEATURES if Part(name) in settings.without)
        with stages("features") as advance:
            paper = FeatureTrainingSettings(without=without, seed=settings.seed)
            held_out, ranker = data.held_out.queries, data.ranker
            features = fit_paper(
                scorer, data.rules, training, held_out, ranker, paper, workers, advance
            )
    else:
        full = LogLinearSettings(settings.walk_length, settings.without, seed=settings.seed)
        counts_kinds = Part.KINDS not in settings.without and not data.walker.only_earlier
        kinds = EntityKinds(data.walker.graph) if counts_kinds else None
        with stages("features") as advance:
            *by_fold, features = fit_log_linear(
                scorer, folds, training, full, workers,
                kinds=kinds, folder=context.path("."), progress=advance,
            )  # fmt: skip
        if Part.STACKING not in settings.without:
            held_out = data.ranker.queries
            facts = target_facts(data.walker.graph, settings.mining)
            facts = facts[~np.isin(facts, held_out.fact)]  # which may be of train
            valid = (
                None if (held_out.fact >= 0).any() or Part.VALID in settings.without else held_out
            )
            both = list(zip(folds, by_fold, strict=True))
            unscaled = LogLinearScorer(scorer, features, settings.walk_length, kinds=kinds)
            with stages("stack") as advance:
                features = stack_terms(unscaled, both, facts, valid, full, workers, advance)
    return replace(fitted, features=features, seconds=stages.seconds)


def with_gains(
    data: TrainingData, rules: RuleSet, judged: Iterable[tuple[TrainingExamples, RuleWeights]],
    context: FitContext,
) -> RuleSet:  # fmt: skip
    """Return the rules with their held-out gain, and their lift over the relation's base rate.

    `rules` are those of the data, `judged` the examples to measure gains on, each with weights
    that should not have been learned from them.
    """
    relation, settings = data.rows[:, 2], context.settings
    lost, n_queries = np.zeros(len(relation)), np.zeros(2 * len(data.walker.graph.relations))
    for examples, weights in judged:
        gains = data.objective(examples, settings).rule_gains(_logs(weights), context.workers)
        lost += gains.lost
        n_queries += np.bincount(examples.queries.directed_relation, minlength=len(n_queries))
    base_rate = _base_rates(data, settings)
    gain = lost / np.maximum(n_queries, 1)[relation]
    return RuleSet(
        replace(mined, gain=float(gain[index]), lift=mined.confidence / float(base_rate[directed]))
        for index, (mined, directed) in enumerate(zip(rules, relation, strict=True))
    )


def _base_rates(data: TrainingData, settings: ModelSettings) -> Floats:
    """Return how often a guess by popularity is right, for each directed relation."""
    graph, n_directed = data.walker.graph, data.prior.n_directed
    facts = QueryTable.of_facts(graph, target_facts(graph, settings.mining), walked=True)
    guess = data.prior.answer_probabilities(facts)
    n_facts = np.bincount(facts.directed_relation, minlength=n_directed)
    # Given rules may predict a relation that has no training fact: any entity is a guess then.
    base_rate = np.bincount(facts.directed_relation, guess, n_directed) / np.maximum(n_facts, 1)
    base_rate[n_facts == 0] = data.prior.min_probability
    return base_rate


def _train_logs(
    data: TrainingData, examples: TrainingExamples, context: FitContext,
    advance: Callable[[float], None], name: str,
) -> tuple[LogWeights, LossCurve, dict[str, NDArray[Any]] | None]:  # fmt: skip
    """Learn weights that make answers likely: logarithms, loss, and parameters of a net if any."""
    settings, state = context.settings, context.path(f"{name}-state.npz")
    learn, stop = (data.objective(each, settings) for each in (examples, data.held_out))
    trained = train_rule_weights(
        data.walker.encoding, data.rows, smoothed_confidence(data.rules), learn, stop,
        settings.training, context.workers, checkpoint=state, progress=advance,
    )  # fmt: skip
    if trained.net is None:
        return trained.log_weights, trained.curve, None
    from tilp.learning.attention_net import flatten_parameters  # imports JAX

    return trained.log_weights, trained.curve, flatten_parameters(trained.net)


def _scale_weights(logs: LogWeights, relation: Ints) -> RuleWeights:
    """Scale weights so that the heaviest rule of each directed relation has weight 1."""
    heaviest = np.full(len(logs.prior), -np.inf)
    np.maximum.at(heaviest, relation, logs.rule)
    heaviest[np.isneginf(heaviest)] = 0.0  # a relation without rules, scored by the prior alone
    return RuleWeights(
        np.exp(logs.rule - heaviest[relation]), np.exp(logs.prior - heaviest), np.exp(logs.factor)
    )


def _logs(weights: RuleWeights) -> LogWeights:
    columns = (weights.rule, weights.prior, weights.factor)
    return LogWeights(*(np.log(np.maximum(column, _MIN_WEIGHT)) for column in columns))


def smoothed_confidence(rules: RuleSet) -> Floats:
    """Return the confidence of rules, smaller for a small body support and for a longer body."""
    body_support = np.array([mined.body_support for mined in rules], np.float64)
    confidence = np.array([mined.confidence for mined in rules])
    simplicity = np.array([_SIMPLICITY ** (mined.rule.length - 1) for mined in rules], np.float64)
    smoothed: Floats = confidence * body_support / (body_support + _FAILURES)
    return simplicity * smoothed + _MIN_CONFIDENCE
