"""`compare`: methods side by side on each data set, as in Tables 1 and 2 of the paper."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tilp.bench.experiments.base import (
    MethodRuns,
    Published,
    PublishedExperiment,
    Ranking,
    bars_of,
    column_of,
    mean_metric,
    results_of,
    share_text,
    write_failures,
)
from tilp.bench.jobs import Job, Result, Results
from tilp.bench.report import Report, italic
from tilp.bench.settings import Setting, Whole
from tilp.bench.sources import Source
from tilp.types import ExperimentKind
from tilp.viz.charts import draw_bars

_METRICS = {"mrr": "MRR", "hits@1": "hits@1", "hits@10": "hits@10"}
_COSTS = ("rules", "learn, s", "ask, s")


@dataclass(frozen=True, kw_only=True)
class Compare(PublishedExperiment):
    """Methods × data sets × seeds, in one setting."""

    kind = ExperimentKind.COMPARE

    setting: Setting = Whole()  # noqa: RUF009 - frozen

    def jobs(self, source: Source) -> list[Job]:
        """Return every method, once per seed."""
        return [job for runs in self.methods for job in self.jobs_of(source, self.setting, runs)]

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        """Write a table for each ranking, a chart of the first, and the costs."""
        report.text(f"Setting: {self.setting.description}.")
        write_failures(report, [job for source in sources for job in self.jobs(source)], results)
        sources = [source for source in sources if results_of(self.jobs(source), results)]
        if not sources:
            return
        for ranking in self.figures:
            self._write_table(report, sources, results, ranking)
        self._write_chart(report, sources, results)
        self._write_costs(report, sources, results)
        for source in sources:
            self._write_relations(report, source, results)

    def _results(self, source: Source, runs: MethodRuns, results: Results) -> list[Result]:
        return results_of(self.jobs_of(source, self.setting, runs), results)

    def _write_table(
        self, report: Report, sources: Sequence[Source], results: Results, ranking: Ranking
    ) -> None:
        header = ["method"]
        columns = [[runs.method.name for runs in self.methods]]
        for source in sources:
            jobs = [self.jobs_of(source, self.setting, runs) for runs in self.methods]
            for metric, word in _METRICS.items():
                means = [mean_metric(own, results, ranking, metric) for own in jobs]
                header.append(f"{source.name} {word}")
                columns.append(column_of(self.methods, means))
        columns.append([self._count_text(sources, runs, results) for runs in self.methods])
        names = [source.name for source in sources]
        by_method: dict[str, dict[str, Published]] = {}
        for entry in self.published_for(ranking):
            if entry.data in names:
                by_method.setdefault(entry.method, {})[entry.data] = entry
        rows = [list(row) for row in zip(*columns, strict=True)]
        rows += [_published_row(*item, names) for item in by_method.items()]
        report.table([*header, "runs"], rows, 1, f"{ranking}; {self.split} split")
        notes: dict[str, dict[str, None]] = {}
        for method, entries in by_method.items():
            for entry in entries.values():
                note = f"; {entry.note}" if entry.note else ""
                words = f"measured as: {entry.protocol or ranking}{note}"
                notes.setdefault(words, {})[method] = None
        if notes:
            report.items(f"{', '.join(of)} (published), {words}" for words, of in notes.items())

    def _count_text(self, sources: Sequence[Source], runs: MethodRuns, results: Results) -> str:
        counts = {len(self._results(source, runs, results)) for source in sources}
        return "/".join(str(count) for count in sorted(counts))

    def _write_chart(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        ranking = self.figures[0]
        bars = []
        for source in sources:
            jobs = [self.jobs_of(source, self.setting, runs) for runs in self.methods]
            means = [mean_metric(own, results, ranking, "mrr") for own in jobs]
            bars.append(bars_of(source.name, means))
        names = [runs.method.name for runs in self.methods]
        caption = f"{self.title}: MRR ({ranking})"
        report.chart(self.name, lambda: draw_bars(names, bars, "MRR"), caption)

    def _write_costs(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        header = ["method", *(f"{source.name} {word}" for source in sources for word in _COSTS)]
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
