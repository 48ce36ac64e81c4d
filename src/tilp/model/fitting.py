"""Fitting a model, stage by stage: mining, entries, training, and what valid decides.

With a folder to work in, each stage leaves what it found there, and a run that was killed goes on
from the last of them to the same model.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilp.attention import CandidatePrior
from tilp.attention.entries import Entries, make_entries, training_queries
from tilp.attention.net import AttentionNet
from tilp.attention.objective import LogWeights, Objective
from tilp.attention.state import LossCurve
from tilp.attention.training import train
from tilp.choices import Protocol, Ties
from tilp.errors import TilpError
from tilp.evaluation import Ranker, Scores, rank_column
from tilp.graph import QueryTable, TemporalGraph
from tilp.model.settings import ModelSettings
from tilp.parallel import Workers
from tilp.ranking import RuleScorer, RuleWeights
from tilp.rules import RuleSet
from tilp.walks import Walker
from tilp.walks.mining import mining_walker, target_facts
from tilp.walks.resume import MiningRun

__all__ = ["Fitted", "Progress", "fit_rules"]

_log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the share of it that is done."""

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
        graph: its train split is learned from, its valid split decides when to stop.
        settings: what decides the model.
        folder: to work in; what another run with the same data and settings left there is used.
        threads: do not change the result.
        progress: told how far each stage is.
    """
    _claim(folder, graph, settings)
    seconds: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[Callable[[float], None]]:
        began = time.perf_counter()
        _log.info("%s …", name)
        yield lambda share: progress(name, share) if progress else None
        seconds[name] = time.perf_counter() - began
        if progress is not None:
            progress(name, 1.0)

    walker = mining_walker(graph, settings.mining)
    with stage("mine") as advance:
        rules = _mined(graph, settings, folder, threads, advance)
    if not len(rules):
        raise TilpError(
            "no rule was found: no fact's ends are joined by other facts often enough; a lower "
            "--min-support or a greater --max-length may find some"
        )
    rows = walker.encoding.encode([one.rule for one in rules])
    chosen_by = _held_out(graph, settings)
    held_out = chosen_by.queries
    prior = CandidatePrior.of(graph)
    with Workers(threads) as workers:
        with stage("apply") as advance:
            compiled = walker.encoding.compiled(rows)
            queries = training_queries(graph, target_facts(graph, settings.mining))
            if len(graph.rows("valid")) == 0:
                queries = queries[~np.isin(queries.fact, held_out.fact)]
            entries = [
                _kept(
                    folder / f"entries-{name}.npz",
                    lambda asked=asked: make_entries(  # type: ignore[misc]
                        walker, asked, compiled, workers, seed=settings.seed, progress=advance
                    ),
                )
                for name, asked in (("held-out", held_out), ("training", queries))
            ]
        with stage("train") as advance:
            trained = train(
                AttentionNet(walker.encoding, settings.training.dimension, settings.training.cell),
                rows,
                _confidence(rules),
                Objective(entries[1], prior, len(rules), settings.training.walks_power),
                Objective(entries[0], prior, len(rules), settings.training.walks_power),
                settings.training,
                workers,
                checkpoint=folder / "training-state.npz",
                progress=advance,
            )
        weights = _scaled(trained.logs, rows[:, 2])
        with stage("choose") as advance:
            weights = _with_walks_power(walker, rules, weights, chosen_by, workers, advance)
    weighted = (
        replace(one, weight=float(weight)) for one, weight in zip(rules, weights.rule, strict=True)
    )
    return Fitted(RuleSet(weighted), weights, trained.curve, seconds)


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


def _claim(folder: Path, graph: TemporalGraph, settings: ModelSettings) -> None:
    """Note whose folder it is; refuse one of other data or settings."""
    note = {"graph": graph.fingerprint(), "settings": settings.to_json()}
    path = folder / "fit.json"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        if any(folder.iterdir()):
            raise TilpError(f"{folder} is in use: remove it, or choose another name for the model")
        path.write_text(json.dumps(note), encoding="utf-8")
    try:
        same = json.loads(path.read_text(encoding="utf-8")) == json.loads(json.dumps(note))
    except ValueError:
        same = False
    if not same:
        raise TilpError(
            f"{folder} was begun with other data or settings; remove it to begin anew, or choose "
            "another name for the model"
        )


def _mined(
    graph: TemporalGraph,
    settings: ModelSettings,
    folder: Path,
    threads: int,
    advance: Callable[[float], None],
) -> RuleSet:
    out = folder / "rules.jsonl"
    if out.exists() and not out.with_name(f"{out.name}.unfinished").exists():
        return RuleSet.read_jsonl(out)
    run = MiningRun(graph, list(graph.relations), settings.mining, out)
    return run.finish(threads=threads, progress=advance)


def _held_out(graph: TemporalGraph, settings: ModelSettings) -> Ranker:
    """The facts that decide: of valid, or where there is none a tenth of train; seeded."""
    chance = np.random.default_rng([settings.seed, 10])
    split = "valid" if len(graph.rows("valid")) else "train"
    rows = np.asarray(graph.rows(split), np.int64)
    most = settings.held_out if split == "valid" else min(settings.held_out, len(rows) // 10 + 1)
    if len(rows) > most:
        rows = np.sort(chance.choice(rows, most, replace=False))
    return Ranker(graph, rows, walked=split == "train")


def _confidence(rules: RuleSet) -> NDArray[np.float64]:
    """The confidence of rules, smaller where they fired seldom."""
    fired = np.array([one.fired for one in rules], np.float64)
    sure = np.array([one.confidence for one in rules]) * fired / (fired + _SMOOTHING)
    return sure + _LEAST_CONFIDENCE


def _kept(path: Path, make: Callable[[], Entries]) -> Entries:
    """What is in the file, or else what is made, and put there."""
    queries = ("subject", "head", "start", "end", "fact", "answer")
    columns = [one.name for one in fields(Entries) if one.name != "queries"]
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            return Entries(
                queries=QueryTable(*(file[f"query_{name}"] for name in queries)),
                **{name: file[name] for name in columns},
            )
    made = make()
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        np.savez(
            file,
            **{f"query_{name}": getattr(made.queries, name) for name in queries},
            **{name: getattr(made, name) for name in columns},
        )
    partial.replace(path)
    return made


def _with_walks_power(
    walker: Walker,
    rules: RuleSet,
    weights: RuleWeights,
    ranker: Ranker,
    workers: Workers,
    advance: Callable[[float], None],
) -> RuleWeights:
    """The weights with the power of the number of walks that ranks held-out answers best."""
    scorer = RuleScorer(walker, [one.rule for one in rules], weights)
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
