"""`curve`: MRR over shares of the training facts, as in Figure 2 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilp._utils.files import file_name_part
from tilp.bench.evaluations import EvaluationJob
from tilp.bench.experiments.base import (
    Mean,
    MethodRuns,
    PublishedExperiment,
    Ranking,
    column_of,
    mean_metric,
    results_of,
    write_failures,
)
from tilp.bench.jobs import Job, Results
from tilp.bench.report import Report
from tilp.bench.schema import Share
from tilp.bench.settings import Few, Whole
from tilp.bench.sources import Source
from tilp.types import ExperimentKind, Walked
from tilp.viz.charts import Line, Point, draw_lines


@dataclass(frozen=True, kw_only=True)
class Curve(PublishedExperiment):
    """Methods × shares × rounds; a round is a seed, of the sample and of the method.

    Attributes:
        shares: Shares of the training facts.
        walked: Whether the other training facts stay in the graph.
    """

    kind = ExperimentKind.CURVE

    shares: tuple[Share, ...]
    walked: Walked = field(default=Walked.KEPT, metadata={"key": "graph"})

    def jobs(self, source: Source) -> list[Job]:
        """Return every method at every share, once per round."""
        return [
            job
            for runs in self.methods
            for share in self._shares
            for job in self._jobs_at(source, runs, share)
        ]

    @property
    def _shares(self) -> list[float]:
        return sorted(set(self.shares))

    def _jobs_at(self, source: Source, runs: MethodRuns, share: float) -> list[EvaluationJob]:
        if share == 1.0:  # there is one sample of all facts
            return self.jobs_of(source, Whole(), runs, seeds=1)
        return self.jobs_of(source, Few(share, self.walked), runs)

    def _mean(
        self, source: Source, runs: MethodRuns, share: float, results: Results, ranking: Ranking
    ) -> Mean | None:
        return mean_metric(self._jobs_at(source, runs, share), results, ranking, "mrr")

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        """Write a chart for each data set, and its points as a table."""
        others = "stay in the graph" if self.walked is Walked.KEPT else "are removed"
        report.text(
            "In each round a smaller sample is part of a larger one; the other training facts "
            f"{others}. Rounds: {self.rounds}; all facts are one sample, and one run."
        )
        for source in sources:
            jobs = self.jobs(source)
            report.heading(source.name, 3)
            write_failures(report, jobs, results)
            if results_of(jobs, results):
                self._write_chart(report, source, results)
                for ranking in self.figures:
                    self._write_table(report, source, results, ranking)

    def _write_chart(self, report: Report, source: Source, results: Results) -> None:
        ranking = self.figures[0]
        lines = []
        for runs in self.methods:
            means = {
                share: self._mean(source, runs, share, results, ranking) for share in self._shares
            }
            points = (Point(x, mean.value, mean.spread) for x, mean in means.items() if mean)
            lines.append(Line(runs.method.name, tuple(points)))
        published: dict[str, list[Point]] = {}
        for entry in self.published_for(ranking):
            if entry.data == source.name and entry.share is not None:
                published.setdefault(entry.method, []).append(Point(entry.share, entry.mrr))
        for method, own in published.items():
            in_order = tuple(sorted(own, key=lambda point: point.x))
            lines.append(Line(f"{method} (published)", in_order))
        x_name = "share of the training facts to learn from"
        report.chart(
            f"{self.name}-{file_name_part(source.name)}",
            lambda: draw_lines(lines, x_name, "MRR", x_log=len(self._shares) > 2),
            f"{source.name}: MRR ({ranking}) over the share of training facts; bars: the standard "
            "deviation over rounds",
        )

    def _write_table(
        self, report: Report, source: Source, results: Results, ranking: Ranking
    ) -> None:
        columns = [[runs.method.name for runs in self.methods]]
        for share in self._shares:
            means = [self._mean(source, runs, share, results, ranking) for runs in self.methods]
            columns.append(column_of(self.methods, means))
        header = ["method", *(f"{share:.0%}" for share in self._shares)]
        report.table(header, list(zip(*columns, strict=True)), 1, f"MRR, {ranking}")
