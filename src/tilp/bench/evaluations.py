"""Jobs that learn from a data set in a setting, and evaluate what was learned."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from tilp._utils.files import unique_file_name
from tilp.bench.jobs import Job, Workspace
from tilp.bench.methods import Method
from tilp.bench.rule_examples import Examples, rule_examples
from tilp.bench.settings import Setting
from tilp.bench.sources import Source
from tilp.evaluation import Evaluation, evaluate
from tilp.evaluation.evaluate import split_facts
from tilp.graph import SPLITS, TemporalGraph


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
        """Data set, setting, method, seed, and the split if it is not test."""
        parts = [unique_file_name(self.source.name), self.setting.name]
        parts += [unique_file_name(self.method.name), str(self.seed)]
        return ".".join(parts if self.split == "test" else [*parts, self.split])

    @property
    def group(self) -> str:
        """Data set, method and seed, if the setting shares a model between runs."""
        if not self.setting.shares_models:
            return self.name
        return f"{self.source.name}.{self.method.base.value}.{self.seed}"

    def identity(self) -> dict[str, Any]:
        """Return all that decides the result."""
        return {
            "data": self.source.fingerprint,
            "setting": self.setting.identity(self.source),
            "method": self.method.identity(self.seed),
            "seed": self.seed,
            "split": self.split,
        }

    def satisfied_by(self, result: dict[str, Any]) -> bool:
        """Return whether a result has the rules to show."""
        return {example.key for example in self.examples} <= set(result.get("examples", {}))

    def merged_with(self, other: Job) -> Job:
        """Return a job with the rules to show of both."""
        if not isinstance(other, EvaluationJob) or replace(other, examples=self.examples) != self:
            return super().merged_with(other)
        both = dict.fromkeys((*self.examples, *other.examples))
        return replace(self, examples=tuple(both))

    def run(self, workspace: Workspace) -> dict[str, Any]:
        """Learn and evaluate."""
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
        result: dict[str, Any] = {
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
                f"{protocol.value} {ties.value}": evaluation.metrics(protocol, ties).to_json()
                for protocol, ties in evaluation.protocols_and_ties()
            },
            "relations": _by_relation(evaluation),
            "rules": learned.rules,
            "seconds": seconds,
            "threads": workspace.threads,
            "resumed": resumed,
        }
        if learned.model is not None:
            result["examples"] = {
                wanted.key: rule_examples(learned.model, case.applied, evaluation, wanted)
                for wanted in self.examples
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


def _by_relation(evaluation: Evaluation) -> dict[str, dict[str, dict[str, float]]]:
    """Return the MRR of each relation, its two directions together."""
    result = {}
    for protocol, ties in evaluation.protocols_and_ties():
        table = (
            evaluation.by_relation(protocol, ties)
            .group_by("relation", maintain_order=True)
            .agg((pl.col("mrr") * pl.col("queries")).sum(), pl.col("queries").sum())
            .with_columns(pl.col("mrr") / pl.col("queries"))
        )
        result[f"{protocol.value} {ties.value}"] = {
            row["relation"]: {"mrr": row["mrr"], "queries": row["queries"]}
            for row in table.iter_rows(named=True)
        }
    return result
