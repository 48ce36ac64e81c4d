"""Jobs that learn from a data set in a setting, evaluate what was learned, and show its rules."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.files import unique_file_name
from tilp.bench.data import Setting, Source
from tilp.bench.jobs import Job, Result, Workspace
from tilp.bench.methods import Method
from tilp.bench.schema import Count
from tilp.evaluation import Evaluation, evaluate
from tilp.evaluation.evaluate import split_facts, unique_labels
from tilp.explanation import Grounding, WalkedFact
from tilp.explanation.render import draw_grounding, grounding_text
from tilp.graph import SPLITS, QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.rules import MinedRule, Notation, format_rule
from tilp.scoring import Query
from tilp.walks import Grounder, Step

_MOST_RULES = 200  # of a relation, that groundings are looked for
_MOST_FACTS = 300  # of a relation, that are tried for each rule


@dataclass(frozen=True)
class Examples:
    """Which rules to show.

    Attributes:
        relations: Names of relations; none for those whose answers rank best.
        best: Count of the latter.
        rules: Count of rules of each relation.
    """

    relations: tuple[str, ...] = ()
    best: Count = 4
    rules: Count = 2

    @property
    def key(self) -> str:
        """The key in the files of runs."""
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass(frozen=True)
class EvaluationJob(Job):
    """One method on one data set in one setting, evaluated on a split under every protocol."""

    source: Source
    setting: Setting
    method: Method
    seed: int
    split: str = "test"
    examples: tuple[Examples, ...] = ()

    @property
    def name(self) -> str:
        parts = [unique_file_name(self.source.name), self.setting.name]
        parts += [unique_file_name(self.method.name), str(self.seed)]
        return ".".join(parts if self.split == "test" else [*parts, self.split])

    @property
    def group(self) -> str:
        if not self.setting.shares_models:
            return self.name
        return f"{self.source.name}.{self.method.base.value}.{self.seed}"

    def identity(self) -> dict[str, Any]:
        return {
            "data": self.source.fingerprint,
            "setting": self.setting.identity(self.source),
            "method": self.method.identity(self.seed),
            "seed": self.seed,
            "split": self.split,
        }

    def satisfied_by(self, result: Result) -> bool:
        return {examples.key for examples in self.examples} <= set(result.get("examples", {}))

    def merged_with(self, other: Job) -> Job:
        if not isinstance(other, EvaluationJob) or replace(other, examples=self.examples) != self:
            return super().merged_with(other)
        both = dict.fromkeys((*self.examples, *other.examples))
        return replace(self, examples=tuple(both))

    def run(self, workspace: Workspace) -> Result:
        case = self.setting.case(self.source, self.seed)
        split_facts(case.known, self.split)  # an error comes before anything is learned
        resumed = workspace.folder.exists()
        learned = self.method.learn(case, self.seed, workspace)
        began = time.perf_counter()
        evaluation = evaluate(
            learned.scorer,
            case.known,
            self.split,
            threads=workspace.threads,
            progress=lambda share: workspace.advance("evaluate", share),
        )
        seconds = {**learned.seconds, "evaluate": time.perf_counter() - began}
        rankings = evaluation.protocols_and_ties()
        keys = {f"{protocol.value} {ties.value}": (protocol, ties) for protocol, ties in rankings}
        result: Result = {
            "data": {
                "name": self.source.name,
                "fingerprint": self.source.fingerprint,
                "learned_from": _graph_summary(case.learned),
                "asked": _graph_summary(case.known),
            },
            "setting": {"name": self.setting.name, **self.setting.identity(self.source)},
            "method": {"name": self.method.name, **self.method.identity(self.seed)},
            "seed": self.seed,
            "split": self.split,
            "queries": len(evaluation),
            "figures": {
                key: evaluation.metrics(*ranking).to_json() for key, ranking in keys.items()
            },
            "relations": {
                key: _mrr_by_relation(evaluation.by_relation(*ranking))
                for key, ranking in keys.items()
            },
            "rules": learned.rules,
            "seconds": seconds,
            "threads": workspace.threads,
            "resumed": resumed,
        }
        if learned.model is not None:
            result["examples"] = {
                examples.key: _rule_examples(learned.model, case.applied, evaluation, examples)
                for examples in self.examples
            }
        return result


def _graph_summary(graph: TemporalGraph) -> dict[str, Any]:
    return {
        "fingerprint": graph.fingerprint(),
        **{split: len(graph.rows(split)) for split in SPLITS},
        "targets": len(graph.targets),
        "entities": len(graph.entities),
        "relations": len(graph.relations),
    }


def _mrr_by_relation(table: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return the MRR of each relation, its two directions together."""
    table = (
        table.group_by("relation", maintain_order=True)
        .agg((pl.col("mrr") * pl.col("queries")).sum(), pl.col("queries").sum())
        .with_columns(pl.col("mrr") / pl.col("queries"))
    )
    return {
        row["relation"]: {"mrr": row["mrr"], "queries": row["queries"]}
        for row in table.iter_rows(named=True)
    }


def _rule_examples(
    model: TILP, graph: TemporalGraph, evaluation: Evaluation, examples: Examples
) -> list[dict[str, Any]]:
    """Return the heaviest rules of relations, each with a grounding that leads to an answer.

    No two rules of a relation have the same body. Groundings are of facts of the evaluated split.
    """
    scorer = model.scorer(graph).rule_scorer
    grounder = Grounder(scorer.walker)
    facts = np.asarray(graph.rows(evaluation.split), np.int64)
    shown = []
    for relation in _relations_to_show(graph, evaluation, examples):
        rows = facts[graph.relation[facts] == relation][:_MOST_FACTS]
        queries = scorer.fill_dates(QueryTable.of_facts(graph, rows, walked=False))
        bodies: set[tuple[str, ...]] = set()
        for mined in list(model.rules(str(graph.relations.ids[relation])))[:_MOST_RULES]:
            body = tuple(str(atom) for atom in mined.rule.body)
            if body in bodies:
                continue
            for index, row in enumerate(rows.tolist()):
                query = queries[np.array([index])]
                walks = grounder(mined.rule, query, int(graph.object[row]), 1).walks
                if walks:
                    shown.append(_rule_example(graph, mined, row, walks[0]))
                    bodies.add(body)
                    break
            if len(bodies) == examples.rules:
                break
    return shown


def _relations_to_show(
    graph: TemporalGraph, evaluation: Evaluation, examples: Examples
) -> list[int]:
    """Return the ids of the named relations that exist, or of those whose objects rank best."""
    names = graph.relations
    if examples.relations:
        known = {*names.ids, *names.keys, *names.labels}
        return [names.find(name) for name in examples.relations if name in known]
    table = evaluation.by_relation().filter(pl.col("direction") == "object")
    best = table.sort("mrr", "relation", descending=[True, False])["relation"][: examples.best]
    labels = unique_labels(names).to_list()
    return [labels.index(name) for name in best]


def _rule_example(
    graph: TemporalGraph, mined: MinedRule, row: int, walk: tuple[Step, ...]
) -> dict[str, Any]:
    facts = (WalkedFact(step.fact, graph.fact(step.fact), step.inverse) for step in walk)
    grounding, fact = Grounding(tuple(facts)), graph.fact(row)
    dates = [graph.date_text(end)[row] for end in ("start", "end")]
    query = Query(fact.relation, fact.subject, None, *dates)
    return {
        "relation": fact.relation,
        "rule": str(mined.rule),
        "sentence": format_rule(mined.rule, Notation.SENTENCE),
        "weight": mined.weight,
        "confidence": mined.confidence,
        "support": mined.support,
        "facts": mined.facts,
        "asked": str(replace(fact, object="?")),
        "answer": fact.object,
        "grounding": grounding_text(grounding),
        "picture": draw_grounding(grounding, query, fact.object),
    }
