"""Experiments that show methods side by side (`compare`), and their rules (`rules`)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tilp._utils.files import file_name_part
from tilp.bench.data import Setting, Source, Whole
from tilp.bench.evaluations import EvaluationJob, Examples
from tilp.bench.experiment import (
    Experiment,
    MethodRuns,
    Published,
    PublishedExperiment,
    Ranking,
    SplitName,
    bars_of,
    share_text,
    write_failures,
)
from tilp.bench.jobs import Job, Result, Results
from tilp.bench.report import Report, italic
from tilp.bench.schema import Count
from tilp.types import ExperimentKind
from tilp.viz.charts import draw_bars

_METRICS = {"mrr": "MRR", "hits@1": "hits@1", "hits@10": "hits@10"}
_COSTS = ("rules", "learn, s", "ask, s")


@dataclass(frozen=True, kw_only=True)
class Compare(PublishedExperiment):
    """Methods × data sets × seeds in one setting, as in Tables 1 and 2 of the paper."""

    kind = ExperimentKind.COMPARE

    setting: Setting = Whole()  # noqa: RUF009 - frozen

    def settings(self, source: Source) -> Sequence[Setting]:  # noqa: ARG002
        return [self.setting]

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        report.text(f"Setting: {self.setting.description}.")
        write_failures(report, [job for source in sources for job in self.jobs(source)], results)
        sources = [source for source in sources if results.of_all(self.jobs(source))]
        if not sources:
            return
        for ranking in self.figures:
            self._write_table(report, sources, results, ranking)
        self._write_chart(report, sources, results)
        self._write_costs(report, sources, results)
        for source in sources:
            self._write_relations(report, source, results)

    def _results(self, source: Source, runs: MethodRuns, results: Results) -> list[Result]:
        return results.of_all(self.jobs_of(source, self.setting, runs))

    def _write_table(
        self, report: Report, sources: Sequence[Source], results: Results, ranking: Ranking
    ) -> None:
        header = ["method"]
        columns = [[runs.method.name for runs in self.methods]]
        for source in sources:
            for metric, label in _METRICS.items():
                header.append(f"{source.name} {label}")
                means = self.means(source, self.setting, results, ranking, metric)
                columns.append(self.column(means))
        columns.append([self._count_text(sources, runs, results) for runs in self.methods])
        names = [source.name for source in sources]
        published: dict[str, dict[str, Published]] = {}
        for entry in self.published_for(ranking):
            if entry.data in names:
                published.setdefault(entry.method, {})[entry.data] = entry
        rows = [list(row) for row in zip(*columns, strict=True)]
        rows += [_published_row(*item, names) for item in published.items()]
        report.table([*header, "runs"], rows, 1, f"{ranking}; {self.split} split")
        notes: dict[str, dict[str, None]] = {}
        for method, entries in published.items():
            for entry in entries.values():
                note = f"; {entry.note}" if entry.note else ""
                text = f"measured as: {entry.protocol or ranking}{note}"
                notes.setdefault(text, {})[method] = None
        if notes:
            report.items(f"{', '.join(of)} (published), {text}" for text, of in notes.items())

    def _count_text(self, sources: Sequence[Source], runs: MethodRuns, results: Results) -> str:
        counts = {len(self._results(source, runs, results)) for source in sources}
        return "/".join(str(count) for count in sorted(counts))

    def _write_chart(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        ranking = self.figures[0]
        bars = [
            bars_of(source.name, self.means(source, self.setting, results, ranking))
            for source in sources
        ]
        names = [runs.method.name for runs in self.methods]
        caption = f"{self.title}: MRR ({ranking})"
        report.chart(self.name, lambda: draw_bars(names, bars, "MRR"), caption)

    def _write_costs(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        header = ["method", *(f"{source.name} {cost}" for source in sources for cost in _COSTS)]
        rows = []
        for runs in self.methods:
            row = [runs.method.name]
            for source in sources:
                own = self._results(source, runs, results)
                # What a run took before it was stopped is not known.
                complete = [result for result in own if not result["resumed"]]
                row += _cost_cells(complete[0]) if complete else [""] * len(_COSTS)
            rows.append(row)
        caption = "cost of one run: seconds to learn, and to rank all queries under every protocol"
        report.table(header, rows, 1, caption)

    def _write_relations(self, report: Report, source: Source, results: Results) -> None:
        ranking = self.figures[0]
        tables = {
            runs.method.name: [
                result["relations"][ranking.key] for result in self._results(source, runs, results)
            ]
            for runs in self.methods
        }
        queries: dict[str, int] = {}
        for table in (table for own in tables.values() for table in own):
            queries |= {name: int(entry["queries"]) for name, entry in table.items()}
        rows = []
        for relation in sorted(queries, key=lambda name: (-queries[name], name)):
            row = [relation, f"{queries[relation]:,}"]
            for own in tables.values():
                values = [table[relation]["mrr"] for table in own]
                row.append(share_text(statistics.fmean(values)) if values else "")
            rows.append(row)
        with report.folded(f"{source.name}: MRR of each relation ({ranking})"):
            report.table(["relation", "queries", *tables], rows)


def _published_row(method: str, entries: dict[str, Published], names: Sequence[str]) -> list[str]:
    row: list[str] = [italic(f"{method} (published)")]
    for name in names:
        entry = entries.get(name)
        values = (entry.mrr, entry.hits_at_1, entry.hits_at_10) if entry else (None,) * 3
        row += [italic(share_text(value)) for value in values]
    return [*row, ""]


def _cost_cells(result: Result) -> list[str]:
    rules, seconds = result["rules"], result["seconds"]
    learn = sum(taken for stage, taken in seconds.items() if stage != "evaluate")
    return [
        "" if rules is None else f"{rules:,}",
        f"{learn:.1f}" if learn else "",
        f"{seconds['evaluate']:.1f}",
    ]


@dataclass(frozen=True, kw_only=True)
class Rules(Experiment):
    """Rules of each method's first seed, as `Examples` has it; other experiments share the run."""

    kind = ExperimentKind.RULES
    tilp_only = True

    split: SplitName = "test"
    relations: tuple[str, ...] = ()
    best: Count = Examples.best
    rules: Count = Examples.rules
    setting: Setting = Whole()  # noqa: RUF009 - frozen

    @property
    def _examples(self) -> Examples:
        return Examples(self.relations, self.best, self.rules)

    def jobs(self, source: Source) -> list[Job]:
        return [
            EvaluationJob(source, self.setting, runs.method, 0, self.split, (self._examples,))
            for runs in self.methods
        ]

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        for source in sources:
            jobs = self.jobs(source)
            write_failures(report, jobs, results)
            for job, runs in zip(jobs, self.methods, strict=True):
                if (result := results.of(job)) is not None:
                    self._write_rules(report, source.name, runs.method.name, result)

    def _write_rules(self, report: Report, source: str, method: str, result: Result) -> None:
        report.heading(f"{source}, {method}", 3)
        for index, example in enumerate(result["examples"][self._examples.key]):
            report.text(example["rule"])
            report.text(
                f"{example['sentence']} (weight {example['weight']:.3g}, confidence "
                f"{example['confidence']:.2f}, support {example['support']:,} of "
                f"{example['facts']:,} facts)"
            )
            name = file_name_part(f"{self.name}-{method}-{index}")
            caption = f"{example['asked']}: {example['answer']}, by {example['grounding']}"
            report.picture(f"{file_name_part(source)}-{name}", example["picture"], caption)
