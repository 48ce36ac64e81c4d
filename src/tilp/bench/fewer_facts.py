"""Experiments with fewer facts: MRR over shares of them (`curve`), or of one relation's (`biased`).

They are those of Figures 2 and 3 of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilp._utils.files import file_name_part
from tilp.bench.data import Balanced, Biased, Few, Setting, Source, Whole
from tilp.bench.evaluations import EvaluationJob
from tilp.bench.experiment import (
    Mean,
    MethodRuns,
    PublishedExperiment,
    RankedExperiment,
    Ranking,
    bars_of,
    mean_text,
)
from tilp.bench.jobs import Result, Results
from tilp.bench.report import Report
from tilp.bench.schema import Share
from tilp.evaluation.evaluate import unique_labels
from tilp.splits import balanced, reducible
from tilp.types import ExperimentKind, WalkGraph
from tilp.viz.charts import Line, Point, draw_bars, draw_lines


@dataclass(frozen=True, kw_only=True)
class Curve(PublishedExperiment):
    """Methods × shares × rounds; a round is a seed, of the sample and of the method.

    Attributes:
        shares: Shares of the training facts.
        walked: Whether the other training facts stay in the graph.
    """

    kind = ExperimentKind.CURVE

    shares: tuple[Share, ...]
    walked: WalkGraph = field(default=WalkGraph.FULL, metadata={"key": "graph"})

    @property
    def _settings(self) -> dict[float, Setting]:
        shares = sorted(set(self.shares))
        return {share: Whole() if share == 1.0 else Few(share, self.walked) for share in shares}

    def settings(self, source: Source) -> Sequence[Setting]:  # noqa: ARG002
        return list(self._settings.values())

    def jobs_of(self, source: Source, setting: Setting, runs: MethodRuns) -> list[EvaluationJob]:
        jobs = super().jobs_of(source, setting, runs)
        return jobs[:1] if isinstance(setting, Whole) else jobs  # there is one sample of all facts

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        others = "stay in the graph" if self.walked is WalkGraph.FULL else "are removed"
        report.text(
            "In each round a smaller sample is part of a larger one; the other training facts "
            f"{others}. Rounds: {self.rounds}; all facts are one sample, and one run."
        )
        methods = [runs.method.name for runs in self.methods]
        for source in self.sections(report, sources, results):
            self._write_chart(report, source, self._means(source, results, self.figures[0]))
            for ranking in self.figures:
                means = self._means(source, results, ranking)
                rows = zip(methods, *map(self.column, means.values()), strict=True)
                header = ["method", *(f"{share:.0%}" for share in means)]
                report.table(header, rows, 1, f"MRR, {ranking}")

    def _means(
        self, source: Source, results: Results, ranking: Ranking
    ) -> dict[float, list[Mean | None]]:
        """Return the MRR of each method, by share."""
        return {
            share: self.means(source, setting, results, ranking)
            for share, setting in self._settings.items()
        }

    def _write_chart(
        self, report: Report, source: Source, means: dict[float, list[Mean | None]]
    ) -> None:
        ranking = self.figures[0]
        lines = []
        for index, runs in enumerate(self.methods):
            of_method = {share: by_method[index] for share, by_method in means.items()}
            points = (Point(x, mean.value, mean.spread) for x, mean in of_method.items() if mean)
            lines.append(Line(runs.method.name, tuple(points)))
        published: dict[str, list[Point]] = {}
        for entry in self.published_for(ranking):
            if entry.data == source.name and entry.share is not None:
                published.setdefault(entry.method, []).append(Point(entry.share, entry.mrr))
        for method, of_others in published.items():
            in_order = tuple(sorted(of_others, key=lambda point: point.x))
            lines.append(Line(f"{method} (published)", in_order))
        x_name = "share of the training facts to learn from"
        report.chart(
            f"{self.name}-{file_name_part(source.name)}",
            lambda: draw_lines(lines, x_name, "MRR", x_log=len(means) > 2),
            f"{source.name}: MRR ({ranking}) over the share of training facts; bars: the standard "
            "deviation over rounds",
        )


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
    walked: WalkGraph = field(default=WalkGraph.REDUCED, metadata={"key": "graph"})
    refit: float | None = None

    def settings(self, source: Source) -> Sequence[Setting]:
        return [Balanced(), *self._settings(source).values()]

    def _settings(self, source: Source) -> dict[str, Biased]:
        """Return the setting of each relation, by its name in results."""
        relations = source.graph.relations
        if self.relations:
            ids = [relations.find(relation) for relation in self.relations]
        else:
            ids = reducible(balanced(source.graph), self.removed)
        names = unique_labels(relations)
        return {
            str(names[index]): Biased(
                str(relations.ids[index]),
                self.removed,
                self.walked,
                relations.label(index),
                self.refit,
            )
            for index in ids
        }

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
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
        for source in self.sections(report, sources, results):
            self._write_changes(report, source, results)

    def _write_changes(self, report: Report, source: Source, results: Results) -> None:
        ranking = self.figures[0]
        settings = self._settings(source)
        header, rows = ["relation made rare"], [[relation] for relation in settings]
        changes: dict[str, list[Mean | None]] = {}
        for runs in self.methods:
            name = runs.method.name
            header += [f"{name}: its MRR", f"{name}: MRR of all"]
            before = [results.of(job) for job in self.jobs_of(source, Balanced(), runs)]
            changes[name] = []
            for row, (relation, setting) in zip(rows, settings.items(), strict=True):
                after = [results.of(job) for job in self.jobs_of(source, setting, runs)]
                pairs = list(zip(before, after, strict=True))
                its_change, overall = (
                    Mean.of(_change(*pair, ranking.key, of) for pair in pairs)
                    for of in (relation, None)
                )
                changes[name].append(its_change)
                row += [mean_text(its_change, signed=True), mean_text(overall, signed=True)]
        bars = [bars_of(name, means) for name, means in changes.items()]
        report.chart(
            f"{self.name}-{file_name_part(source.name)}",
            lambda: draw_bars(list(settings), bars, "change of MRR"),
            f"{source.name}: change of a relation's MRR ({ranking}) when it becomes rare",
        )
        over_relations = {
            name: Mean.of(mean.value for mean in means if mean is not None)
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


def _change(
    before: Result | None, after: Result | None, ranking: str, relation: str | None
) -> float | None:
    """Return how much MRR rose, of a relation or overall, or None if a result is missing."""
    if before is None or after is None:
        return None
    if relation is None:
        return float(after["figures"][ranking]["mrr"] - before["figures"][ranking]["mrr"])
    old, new = (result["relations"][ranking].get(relation) for result in (before, after))
    return None if old is None or new is None else float(new["mrr"] - old["mrr"])
