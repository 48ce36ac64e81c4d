"""`biased`: how MRR changes when a relation becomes rare, as in Figure 3 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilp._utils.files import file_name_part
from tilp.bench.experiments.base import (
    Mean,
    RankedExperiment,
    bars_of,
    mean_text,
    results_of,
    write_failures,
)
from tilp.bench.jobs import Job, Results
from tilp.bench.report import Report
from tilp.bench.schema import Share
from tilp.bench.settings import Balanced, Biased
from tilp.bench.sources import Source
from tilp.evaluation.evaluate import unique_labels
from tilp.splits import balanced, reducible
from tilp.types import ExperimentKind, Walked
from tilp.viz.charts import draw_bars


@dataclass(frozen=True, kw_only=True)
class BiasedData(RankedExperiment):
    """Methods × relations × rounds, and the balanced data that each round is compared with.

    Attributes:
        relations: Names of the relations to make rare; none for each that can be.
        removed: Share of a relation's training facts to remove.
        walked: Whether removed facts stay in the graph.
        refit: See `Biased`.
    """

    kind = ExperimentKind.BIASED

    relations: tuple[str, ...] = ()
    removed: Share = 0.5
    walked: Walked = field(default=Walked.REDUCED, metadata={"key": "graph"})
    refit: float | None = None

    def jobs(self, source: Source) -> list[Job]:
        """Return balanced data, and then each relation, for every method and round."""
        settings = [Balanced(), *self._settings(source).values()]
        return [
            job
            for runs in self.methods
            for setting in settings
            for job in self.jobs_of(source, setting, runs)
        ]

    def _settings(self, source: Source) -> dict[str, Biased]:
        """Return the setting of each relation, by its name in results."""
        relations = source.graph.relations
        if self.relations:
            ids = [relations.find(relation) for relation in self.relations]
        else:
            ids = reducible(balanced(source.graph), self.removed)
        names = unique_labels(relations)
        return {
            str(names[relation]): Biased(
                str(relations.ids[relation]),
                self.removed,
                self.walked,
                relations.label(relation),
                self.refit,
            )
            for relation in ids
        }

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        """Write a chart of the changes for each data set, and tables."""
        report.text(
            f"{self.removed:.0%} of one relation's training facts are removed. The tables show the "
            "change of MRR against the same splits with nothing removed. Answers that only removed "
            f"facts state are known to the filter. Rounds: {self.rounds}."
        )
        if self.refit is not None:
            report.text(
                "Forms of TILP refit only the relations that are affected: the rare relation, and "
                f"those of whose rules, by weight and support, at least {self.refit:.0%} use it. "
                "Other relations keep their weights, and are scored on the reduced facts."
            )
        for source in sources:
            jobs = self.jobs(source)
            report.heading(source.name, 3)
            write_failures(report, jobs, results)
            if results_of(jobs, results):
                self._write_changes(report, source, results)

    def _write_changes(self, report: Report, source: Source, results: Results) -> None:
        ranking = self.figures[0]
        settings = self._settings(source)
        header, rows = ["relation made rare"], [[relation] for relation in settings]
        changes: dict[str, list[Mean | None]] = {}
        for runs in self.methods:
            name = runs.method.name
            before = [results.of(job) for job in self.jobs_of(source, Balanced(), runs)]
            changes[name] = []
            for row, (relation, setting) in zip(rows, settings.items(), strict=True):
                after = [results.of(job) for job in self.jobs_of(source, setting, runs)]
                pairs = list(zip(before, after, strict=True))
                own = Mean.of(_change(*pair, "relations", ranking.key, relation) for pair in pairs)
                overall = Mean.of(_change(*pair, "figures", ranking.key) for pair in pairs)
                changes[name].append(own)
                row += [mean_text(own, signed=True), mean_text(overall, signed=True)]
            header += [f"{name}: its MRR", f"{name}: MRR of all"]
        bars = [bars_of(name, means) for name, means in changes.items()]
        report.chart(
            f"{self.name}-{file_name_part(source.name)}",
            lambda: draw_bars(list(settings), bars, "change of MRR"),
            f"{source.name}: change of a relation's MRR ({ranking}) when it becomes rare",
        )
        over_relations = {
            name: Mean.of(None if mean is None else mean.value for mean in means)
            for name, means in changes.items()
        }
        report.table(
            ["method", "change"],
            [[name, mean_text(mean, signed=True)] for name, mean in over_relations.items()],
            1,
            "mean change over the relations made rare (± their standard deviation); nearer to 0 "
            "is better",
        )
        report.table(header, rows, 1, f"change of MRR, {ranking}")


def _change(before: Any, after: Any, *path: str) -> float | None:
    """Return how much MRR rose from balanced to biased data, or None if either is missing."""
    for key in path:
        if before is None or after is None:
            return None
        before, after = before.get(key), after.get(key)
    return None if before is None or after is None else float(after["mrr"] - before["mrr"])
