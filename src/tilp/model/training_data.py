"""What weights are learned from: mined rules, applied to training and held-out queries."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.files import load_or_compute, new_file
from tilp.errors import NoRulesError, TilpError
from tilp.evaluation import Ranker
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning.examples import TrainingExamples, make_training_examples, training_queries
from tilp.model.config import FitContext, ModelSettings
from tilp.rules import RuleSet
from tilp.time.imputation import MissingDates
from tilp.walks import Walker
from tilp.walks.mining import MiningCheckpoint, mining_walker, target_facts


@dataclass(frozen=True)
class TrainingData:
    """All that learning needs, whatever the kind of weights.

    Attributes:
        graph: The facts as given.
        missing_dates: How their missing dates are imputed.
        walker: Walks on the train split, with imputed dates.
        rules: That were mined.
        rows: The same in the walker's encoding.
        training: Examples to learn from.
        held_out: Examples that decide when to stop.
        ranker: Ranks the answers of the held-out queries.
    """

    graph: TemporalGraph
    missing_dates: MissingDates
    walker: Walker
    rules: RuleSet
    rows: NDArray[np.int64]
    training: TrainingExamples
    held_out: TrainingExamples
    ranker: Ranker


def prepare_training_data(graph: TemporalGraph, context: FitContext) -> TrainingData:
    """Mine rules in the train split, and apply them to training and held-out queries.

    Raises:
        NoRulesError: No rule was found.
        TilpError: The folder holds the checkpoints of another fit, or something else.
    """
    settings = context.settings
    _claim(context.path("fit.json"), graph, settings)
    dates = MissingDates.fit(graph, settings.missing, settings.seed)
    dated = dates.fill_graph(graph)
    walker = mining_walker(dated, settings.mining)
    with context.stages("mine") as advance:
        rules = _mine(dated, context, advance)
    if not len(rules):
        raise NoRulesError(
            "no rule was found: no fact's ends are joined by other facts often enough; a smaller "
            "min_support or a greater max_length may find some"
        )
    return apply_rules(graph, dates, walker, rules, context)


def apply_rules(
    graph: TemporalGraph,
    missing_dates: MissingDates,
    walker: Walker,
    rules: RuleSet,
    context: FitContext,
) -> TrainingData:
    """Apply rules to the queries to learn from, and to the held-out ones."""
    settings = context.settings
    rows = walker.encoding.encode([mined.rule for mined in rules])
    compiled = walker.encoding.compiled(rows)
    held_out_rows, is_walked = held_out_facts(graph, settings)
    ranker = Ranker(graph, held_out_rows, walked=is_walked)
    queries = training_queries(graph, target_facts(graph, settings.mining))
    if not len(graph.rows("valid")):
        queries = queries[~np.isin(queries.fact, ranker.queries.fact)]
    with context.stages("apply") as advance:

        def examples(name: str, queries: QueryTable) -> TrainingExamples:
            def make() -> TrainingExamples:
                dated = missing_dates.fill_queries(queries)
                return make_training_examples(
                    walker, dated, compiled, context.workers, seed=settings.seed, progress=advance
                )

            return load_or_compute(
                context.path(f"entries-{name}.npz"), make, _to_arrays, _from_arrays
            )

        held_out = examples("held-out", ranker.queries)
        training = examples("training", queries)
    return TrainingData(graph, missing_dates, walker, rules, rows, training, held_out, ranker)


def _claim(path: Path, graph: TemporalGraph, settings: ModelSettings) -> None:
    """Note in a folder which fit it belongs to; refuse one that belongs to another."""
    folder = path.parent
    note = {"graph": graph.fingerprint(), "settings": settings.to_json()}
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        if any(not file.name.startswith(".") for file in folder.iterdir()):
            raise TilpError(f"{folder} is in use: remove it, or choose another name for the model")
        with new_file(path) as partial:
            partial.write_text(json.dumps(note), encoding="utf-8")
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


def held_out_facts(graph: TemporalGraph, settings: ModelSettings) -> tuple[NDArray[np.int64], bool]:
    """Return the rows of held-out facts, and whether walks use these facts too.

    They are of the valid split; where there is none, a tenth of the facts to learn from.
    """
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
