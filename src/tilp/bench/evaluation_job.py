"""The job that evaluates a method."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from tilp._utils.files import unique_file_name
from tilp.bench.data import Setting, Source
from tilp.bench.jobs import Job, Result, Workspace
from tilp.bench.methods import Method
from tilp.evaluation import Evaluation, evaluate
from tilp.evaluation.evaluate import split_facts
from tilp.graph import SPLITS, TemporalGraph
from tilp.types import Protocol, Ties


@dataclass(frozen=True)
class EvaluationJob(Job):
    """One method on one data set in one setting, evaluated on a split under every protocol."""

    source: Source
    setting: Setting
    method: Method
    seed: int
    split: str = "test"

    @property
    def name(self) -> str:
        parts = [unique_file_name(self.source.name), self.setting.name]
        parts += [unique_file_name(self.method.name), str(self.seed)]
        return ".".join(parts if self.split == "test" else [*parts, self.split])

    def identity(self) -> dict[str, Any]:
        setting, method = self.setting.identity(self.source), self.method.identity(self.seed)
        decisive = {"setting": setting, "method": method, "seed": self.seed, "split": self.split}
        return {"data": self.source.fingerprint, **decisive}

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
        return {
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
