"""The job that evaluates a method, and the rules it shows."""

from __future__ import annotations

import operator
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.files import unique_file_name
from tilp.bench.data import Setting, Source
from tilp.bench.jobs import Job, Result, Workspace
from tilp.bench.methods import Method
from tilp.evaluation import Evaluation, evaluate
from tilp.evaluation.evaluate import split_facts, unique_labels
from tilp.explanation import Grounding, WalkedFact
from tilp.explanation.render import draw_grounding, fact_text
from tilp.graph import SPLITS, QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.rules import MinedRule, Notation, format_rule
from tilp.scoring import Query
from tilp.types import Protocol, Ties
from tilp.walks import Grounder, Step

_MOST_RULES = 200  # of a relation, that groundings are looked for
_MOST_FACTS = 300  # of a relation, that are tried for each rule


@dataclass(frozen=True)
class EvaluationJob(Job):
    """One method on one data set in one setting, evaluated on a split under every protocol."""

    source: Source
    setting: Setting
    method: Method
    seed: int
    split: str = "test"
    shown: tuple[int, int] = (0, 0)  # rules to show: of how many relations, and of each

    @property
    def name(self) -> str:
        parts = [unique_file_name(self.source.name), self.setting.name]
        parts += [unique_file_name(self.method.name), str(self.seed)]
        return ".".join(parts if self.split == "test" else [*parts, self.split])

    @property
    def group(self) -> str:
        if not self.setting.shares_models:
            return self.name
        return f"{self.source.name}.{self.method.base}.{self.seed}"

    def identity(self) -> dict[str, Any]:
        setting, method = self.setting.identity(self.source), self.method.identity(self.seed)
        decisive = {"setting": setting, "method": method, "seed": self.seed, "split": self.split}
        return {"data": self.source.fingerprint, **decisive}

    def satisfied_by(self, result: Result) -> bool:
        return all(map(operator.le, self.shown, result.get("shown", (0, 0))))

    def merged_with(self, other: Job) -> Job:
        if not isinstance(other, EvaluationJob) or replace(other, shown=self.shown) != self:
            return super().merged_with(other)
        most = map(max, self.shown, other.shown)
        return replace(self, shown=(next(most), next(most)))

    def run(self, workspace: Workspace) -> Result:
        case = self.setting.case(self.source, self.seed)
        split_facts(case.known, self.split)  # an error comes before anything is learned
        resumed = workspace.folder.exists()
        learned = self.method.learn(case, self.seed, workspace)
        began = time.perf_counter()
        graph, threads = case.known, workspace.threads
        advance = partial(workspace.advance, "evaluate")
        evaluation = evaluate(learned.scorer, graph, self.split, threads=threads, progress=advance)
        seconds = {**learned.seconds, "evaluate": time.perf_counter() - began}
        ranked = {f"{each[0]} {each[1]}": each for each in evaluation.protocols_and_ties()}
        graphs = {"learned_from": _graph_summary(case.learned), "asked": _graph_summary(graph)}
        result: Result = {
            "data": {"name": self.source.name, "fingerprint": self.source.fingerprint, **graphs},
            "setting": {"name": self.setting.name, **self.setting.identity(self.source)},
            "method": {"name": self.method.name, **self.method.identity(self.seed)},
            "seed": self.seed,
            "split": self.split,
            "queries": len(evaluation),
            "figures": {key: evaluation.metrics(*each).to_json() for key, each in ranked.items()},
            "relations": {key: _relations_mrr(evaluation, *each) for key, each in ranked.items()},
            "rules": learned.rules,
            "seconds": seconds,
            "threads": threads,
            "resumed": resumed,
        }
        if learned.model is not None:
            examples = _rule_examples(learned.model, case.applied, evaluation, *self.shown)
            result |= {"shown": self.shown, "examples": examples}
        return result


def _graph_summary(graph: TemporalGraph) -> dict[str, Any]:
    counted = {name: len(getattr(graph, name)) for name in ("targets", "entities", "relations")}
    counts = {split: len(graph.rows(split)) for split in SPLITS}
    return {"fingerprint": graph.fingerprint(), **counts, **counted}


def _relations_mrr(
    evaluation: Evaluation, protocol: Protocol, ties: Ties
) -> dict[str, dict[str, float]]:
    """Return the MRR of each relation, its two directions together."""
    mrr, queries = pl.col("mrr"), pl.col("queries")
    table = evaluation.by_relation(protocol, ties).group_by("relation", maintain_order=True)
    sums = table.agg((mrr * queries).sum(), queries.sum())
    rows = sums.select("relation", mrr / queries, queries).iter_rows()
    return {relation: {"mrr": value, "queries": count} for relation, value, count in rows}


def _rule_examples(
    model: TILP, graph: TemporalGraph, evaluation: Evaluation, relations: int, rules: int
) -> list[list[Result]]:
    """Return the heaviest rules, of distinct bodies, of the best relations, with groundings."""
    scorer = model.scorer(graph).rule_scorer
    grounder = Grounder(scorer.walker)
    facts = np.asarray(graph.rows(evaluation.split), np.int64)
    table = evaluation.by_relation().filter(pl.col("direction") == "object")
    best = table.sort("mrr", "relation", descending=[True, False])["relation"][:relations]
    labels = unique_labels(graph.relations).to_list()
    examples: list[list[Result]] = []
    for relation in map(labels.index, best):
        examples.append([])
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
                    examples[-1].append(_example(graph, mined, row, walks[0]))
                    bodies.add(body)
                    break
            if len(bodies) == rules:
                break
    return examples


def _example(graph: TemporalGraph, mined: MinedRule, row: int, walk: tuple[Step, ...]) -> Result:
    facts = (WalkedFact(step.fact, graph.fact(step.fact), step.inverse) for step in walk)
    grounding, fact = Grounding(tuple(facts)), graph.fact(row)
    dates = [graph.date_text(end)[row] for end in ("start", "end")]
    query = Query(fact.relation, fact.subject, None, *dates)
    return {
        "relation": fact.relation,
        "rule": str(mined.rule),
        "sentence": format_rule(mined.rule, Notation.SENTENCE),
        **{name: getattr(mined, name) for name in ("weight", "confidence", "support", "facts")},
        "asked": str(replace(fact, object="?")),
        "answer": fact.object,
        "grounding": "; ".join(map(fact_text, grounding.steps)),
        "picture": draw_grounding(grounding, query, fact.object),
    }
