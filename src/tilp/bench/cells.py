"""`Cell`: a method, a data set in a setting, a seed: learned, and asked."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from tilp._utils.files import unique_file_name
from tilp.bench.examples import Examples, rule_examples
from tilp.bench.jobs import Job, Place
from tilp.bench.methods import Method
from tilp.bench.settings import Case, Setting
from tilp.bench.sources import Source
from tilp.evaluation import Evaluation, evaluate
from tilp.evaluation.evaluate import facts_to_ask
from tilp.graph import SPLITS, TemporalGraph

__all__ = ["Cell"]


@dataclass(frozen=True)
class Cell(Job):
    """One figure of a table, under every protocol.

    Attributes:
        source: the data set.
        setting: what becomes of it.
        method: what learns from it.
        seed: for everything that is drawn.
        split: whose facts are asked.
        examples: which rules are told with a grounding each.
    """

    source: Source
    setting: Setting
    method: Method
    seed: int
    split: str = "test"
    examples: tuple[Examples, ...] = ()

    @property
    def name(self) -> str:
        """Data set, setting, method, seed, split."""
        words = [unique_file_name(self.source.name), self.setting.name]
        words.append(unique_file_name(self.method.name))
        return ".".join([*words, str(self.seed), *([] if self.split == "test" else [self.split])])

    @property
    def group(self) -> str:
        """Data set, method and seed, where the setting keeps a model for several runs."""
        if not self.setting.keeps:
            return self.name
        return f"{self.source.name}.{self.method.base.value}.{self.seed}"

    def identity(self) -> dict[str, Any]:
        """All that decides the result."""
        return {
            "data": self.source.fingerprint,
            "setting": self.setting.identity(self.source),
            "method": self.method.identity(self.seed),
            "seed": self.seed,
            "split": self.split,
        }

    def satisfied_by(self, result: dict[str, Any]) -> bool:
        """Whether it tells of the rules that are asked for."""
        return {one.key for one in self.examples} <= set(result.get("examples", {}))

    def merged_with(self, other: Job) -> Job:
        """With the rules that either asks for."""
        if not isinstance(other, Cell) or replace(other, examples=self.examples) != self:
            return super().merged_with(other)
        both = dict.fromkeys((*self.examples, *other.examples))
        return replace(self, examples=tuple(both))

    def run(self, place: Place) -> dict[str, Any]:
        """Learn, ask, and tell of it."""
        case = self.setting.case(self.source, self.seed)
        facts_to_ask(case.known, self.split)  # before anything is learned
        resumed = place.folder.exists()
        learned = self.method.learn(case, self.seed, place)
        began = time.perf_counter()
        found = evaluate(
            learned.scorer,
            case.known,
            self.split,
            threads=place.threads,
            progress=lambda share: place.advance("evaluate", share),
        )
        seconds = {**learned.seconds, "evaluate": time.perf_counter() - began}
        told: dict[str, Any] = {
            "data": self._data(case),
            "setting": {"name": self.setting.name, **self.setting.identity(self.source)},
            "method": {"name": self.method.name, **self.method.identity(self.seed)},
            "seed": self.seed,
            "split": self.split,
            "queries": len(found),
            "figures": _figures(found),
            "relations": _by_relation(found),
            "rules": learned.rules,
            "seconds": seconds,
            "threads": place.threads,
            "resumed": resumed,
        }
        if learned.model is not None:
            told["examples"] = {
                one.key: rule_examples(learned.model, case.applied, found, one)
                for one in self.examples
            }
        return told

    def _data(self, case: Case) -> dict[str, Any]:
        return {
            "name": self.source.name,
            "fingerprint": self.source.fingerprint,
            "learned_from": _told(case.learned),
            "asked": _told(case.known),
        }


def _told(graph: TemporalGraph) -> dict[str, Any]:
    return {
        "fingerprint": graph.fingerprint(),
        **{split: len(graph.rows(split)) for split in SPLITS},
        "targets": len(graph.targets),
        "entities": len(graph.entities),
        "relations": len(graph.relations),
    }


def _figures(found: Evaluation) -> dict[str, dict[str, float | None]]:
    """MRR, hits and mean rank by protocol and ties."""
    return {
        f"{protocol.value} {ties.value}": found.metrics(protocol, ties).to_json()
        for protocol, ties in found.figures()
    }


def _by_relation(found: Evaluation) -> dict[str, dict[str, dict[str, float]]]:
    """MRR of each relation, its two directions together."""
    told = {}
    for protocol, ties in found.figures():
        table = (
            found.by_relation(protocol, ties)
            .group_by("relation", maintain_order=True)
            .agg((pl.col("mrr") * pl.col("queries")).sum(), pl.col("queries").sum())
            .with_columns(pl.col("mrr") / pl.col("queries"))
        )
        told[f"{protocol.value} {ties.value}"] = {
            row["relation"]: {"mrr": row["mrr"], "queries": row["queries"]}
            for row in table.iter_rows(named=True)
        }
    return told
