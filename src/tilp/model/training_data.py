"""What weights are learned from: rules, and how they do on training and on held-out queries.

With a folder to work in, each part is left there, and a run that was killed goes on from the last.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.files import load_or_compute, new_file
from tilp._utils.progress import Stages
from tilp.errors import NoRulesError, TilpError
from tilp.evaluation import Ranker
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning.examples import TrainingExamples, make_training_examples, training_queries
from tilp.model.config import ModelSettings
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.time.imputation import MissingDates
from tilp.walks import Walker
from tilp.walks.mining import MiningCheckpoint, mining_walker, target_facts

_QUERY_COLUMNS = [one.name for one in fields(QueryTable)]
_COLUMNS = [one.name for one in fields(TrainingExamples) if one.name != "queries"]


@dataclass(frozen=True)
class TrainingData:
    """All that does not depend on the kind of weights.

    Attributes:
        graph: the facts as they were given.
        settling: what unknown ends are taken for.
        walker: over the train split, its unknown ends settled.
        rules: that were found.
        rows: the same as rows of the walker's encoding.
        training: entries of the queries to learn from.
        held_out: entries of those that decide.
        ranker: ranks the answers of the latter.
    """

    graph: TemporalGraph
    missing_dates: MissingDates
    walker: Walker
    rules: RuleSet
    rows: NDArray[np.int64]
    training: TrainingExamples
    held_out: TrainingExamples
    ranker: Ranker


def prepare_training_data(
    graph: TemporalGraph,
    settings: ModelSettings,
    folder: Path,
    stages: Stages,
    workers: Workers,
) -> TrainingData:
    """Find rules in the train split, and apply them.

    Args:
        graph: the facts.
        settings: what decides the model.
        folder: to work in; what a run with the same data and settings left there is used.
        stages: told how far each part is.
        workers: do not change the result.

    Raises:
        NoRulesError: no rule was found.
        TilpError: the folder is of something else.
    """
    _claim(folder, graph, settings)
    settling = MissingDates.fit(graph, settings.missing, settings.seed)
    settled = settling.fill_graph(graph)
    walker = mining_walker(settled, settings.mining)
    with stages("mine") as advance:
        rules = _mined(settled, settings, folder, workers, advance)
    if not len(rules):
        raise NoRulesError(
            "no rule was found: no fact's ends are joined by other facts often enough; a smaller "
            "min_support or a greater max_length may find some"
        )
    return apply_rules(graph, settling, walker, rules, settings, stages, workers, folder=folder)


def apply_rules(
    graph: TemporalGraph,
    settling: MissingDates,
    walker: Walker,
    rules: RuleSet,
    settings: ModelSettings,
    stages: Stages,
    workers: Workers,
    *,
    folder: Path,
) -> TrainingData:
    """Apply rules to the queries that are learned from, and to those that decide.

    Args:
        graph: the facts.
        settling: what their unknown ends are taken for.
        walker: over the train split, its unknown ends settled.
        rules: to apply.
        settings: what decides the model.
        stages: told how far it is.
        workers: do not change the result.
        folder: where what was found is kept; where it is there, it is not done again.
    """
    rows = walker.encoding.encode([one.rule for one in rules])
    compiled = walker.encoding.compiled(rows)
    held_out_rows, walked = held_out_facts(graph, settings)
    ranker = Ranker(graph, held_out_rows, walked=walked)
    queries = training_queries(graph, target_facts(graph, settings.mining))
    if not len(graph.rows("valid")):
        queries = queries[~np.isin(queries.fact, ranker.queries.fact)]
    with stages("apply") as advance:

        def entries(name: str, asked: QueryTable) -> TrainingExamples:
            def make() -> TrainingExamples:
                return make_training_examples(
                    walker, asked, compiled, workers, seed=settings.seed, progress=advance
                )

            return load_or_compute(
                folder / f"entries-{name}.npz", make, _entries_arrays, _entries_of
            )

        held_out = entries("held-out", settling.fill_queries(ranker.queries))
        training = entries("training", settling.fill_queries(queries))
    return TrainingData(graph, settling, walker, rules, rows, training, held_out, ranker)


def _claim(folder: Path, graph: TemporalGraph, settings: ModelSettings) -> None:
    """Note whose folder it is; refuse one of other data or settings."""
    note = {"graph": graph.fingerprint(), "settings": settings.to_json()}
    path = folder / "fit.json"
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        if any(not one.name.startswith(".") for one in folder.iterdir()):
            raise TilpError(f"{folder} is in use: remove it, or choose another name for the model")
        with new_file(path) as partial:
            partial.write_text(json.dumps(note), encoding="utf-8")
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
    workers: Workers,
    advance: Callable[[float], None],
) -> RuleSet:
    out = folder / "rules.jsonl"
    if out.exists() and not out.with_name(f"{out.name}.unfinished").exists():
        return RuleSet.read_jsonl(out)
    run = MiningCheckpoint(graph, list(graph.relations), settings.mining, out)
    return run.finish(workers=workers, progress=advance)


def held_out_facts(graph: TemporalGraph, settings: ModelSettings) -> tuple[NDArray[np.int64], bool]:
    """The facts that decide: of valid, or where there is none a tenth of the targets; seeded.

    Returns:
        Their numbers, and whether they are among those that are walked on.
    """
    chance = np.random.default_rng([settings.seed, 10])
    rows, most = np.asarray(graph.rows("valid"), np.int64), settings.held_out
    walked = not len(rows)
    if walked:
        rows = target_facts(graph, settings.mining)
        most = min(most, len(rows) // 10 + 1)
    if len(rows) > most:
        rows = np.sort(chance.choice(rows, most, replace=False))
    return rows, walked


def _entries_arrays(made: TrainingExamples) -> dict[str, Any]:
    queries = {f"query_{name}": getattr(made.queries, name) for name in _QUERY_COLUMNS}
    return {**queries, **{name: getattr(made, name) for name in _COLUMNS}}


def _entries_of(arrays: dict[str, Any]) -> TrainingExamples:
    queries = QueryTable(*(arrays[f"query_{name}"] for name in _QUERY_COLUMNS))
    return TrainingExamples(queries=queries, **{name: arrays[name] for name in _COLUMNS})
