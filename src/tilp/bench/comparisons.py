"""Experiments that compare methods: `compare`, `curve` and `biased`; and their rules (`rules`).

`curve` and `biased` have fewer facts, of all or of one relation, as Figures 2 and 3 of the paper.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from tilp._utils.files import file_name_part
from tilp.bench import experiment
from tilp.bench.data import Balanced, Biased, Few, Setting, Source, Whole
from tilp.bench.experiment import EvaluationJob, Mean, MethodRuns, Ranking, mean_text
from tilp.bench.jobs import Job, Result, Results
from tilp.bench.report import Report, italic
from tilp.bench.schema import Count, Share
from tilp.evaluation.evaluate import unique_labels
from tilp.splits import balanced, reducible
from tilp.types import WalkGraph
from tilp.viz.charts import Line, Point, draw_bars, draw_lines

_METRICS = {"mrr": "MRR", "hits@1": "hits@1", "hits@10": "hits@10"}
_COSTS = ("rules", "learn, s", "ask, s")


@dataclass(frozen=True, kw_only=True)
class Compare(experiment.RankedExperiment):
    """Methods × data sets × seeds in one setting, as in Tables 1 and 2 of the paper."""

    kind = "compare"

    setting: Setting = Whole()  # noqa: RUF009 - frozen

    def settings(self, source: Source) -> Iterable[Setting]:  # noqa: ARG002
        return [self.setting]

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        report.text(f"Setting: {self.setting.description}.")
        jobs = [job for source in sources for job in self.jobs(source)]
        experiment.write_failures(report, jobs, results)
        sources = [source for source in sources if results.of_all(self.jobs(source))]
        if not sources:
            return
        for ranking in self.figures:
            self._write_table(report, sources, results, ranking)
        ranking, names = self.figures[0], [runs.method.name for runs in self.methods]
        means = [self.means(source, self.setting, results, ranking, "mrr") for source in sources]
        bars = [experiment.bars_of(s.name, own) for s, own in zip(sources, means, strict=True)]
        caption = f"{self.title}: MRR ({ranking.text})"
        report.chart(self.name, lambda: draw_bars(names, bars, "MRR"), caption)
        self._write_costs(report, sources, results)
        for source in sources:
            self._write_relations(report, source, results)

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
        published: dict[str, dict[str, experiment.Published]] = {}
        notes: dict[str, dict[str, None]] = {}  # the methods of each
        for entry in self.published_for(ranking):
            if entry.data in names:
                published.setdefault(entry.method, {})[entry.data] = entry
        rows = [list(row) for row in zip(*columns, strict=True)]
        for method, entries in published.items():
            row: list[str] = [italic(f"{method} (published)")]
            for own in map(entries.get, names):
                values = (own.mrr, own.hits_at_1, own.hits_at_10) if own else (None,) * 3
                row += [italic(experiment.share_text(value)) for value in values]
            rows.append([*row, ""])
            for entry in entries.values():
                note = f"; {entry.note}" if entry.note else ""
                text = f"measured as: {entry.protocol or ranking.text}{note}"
                notes.setdefault(text, {})[method] = None
        report.table([*header, "runs"], rows, 1, f"{ranking.text}; {self.split} split")
        if notes:
            report.items(f"{', '.join(of)} (published), {text}" for text, of in notes.items())

    def _count_text(self, sources: Sequence[Source], runs: MethodRuns, results: Results) -> str:
        own = (results.of_all(self.jobs_of(source, self.setting, runs)) for source in sources)
        return "/".join(str(count) for count in sorted({len(runs) for runs in own}))

    def _write_costs(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        header = ["method", *(f"{source.name} {cost}" for source in sources for cost in _COSTS)]
        rows = []
        for runs in self.methods:
            row = [runs.method.name]
            for source in sources:
                own = results.of_all(self.jobs_of(source, self.setting, runs))
                # What a run took before it was stopped is not known.
                complete = [result for result in own if not result["resumed"]]
                row += _cost_cells(complete[0]) if complete else [""] * len(_COSTS)
            rows.append(row)
        caption = "cost of one run: seconds to learn, and to rank all queries under every protocol"
        report.table(header, rows, 1, caption)

    def _write_relations(self, report: Report, source: Source, results: Results) -> None:
        ranking, queries = self.figures[0], dict[str, int]()
        tables: dict[str, list[Result]] = {}
        for runs in self.methods:
            own = results.of_all(self.jobs_of(source, self.setting, runs))
            tables[runs.method.name] = [result["relations"][ranking] for result in own]
            for table in tables[runs.method.name]:
                queries |= {name: int(entry["queries"]) for name, entry in table.items()}
        rows = []
        for relation in sorted(queries, key=lambda name: (-queries[name], name)):
            row = [relation, f"{queries[relation]:,}"]
            for own in tables.values():
                values = [table[relation]["mrr"] for table in own]
                row.append(experiment.share_text(statistics.fmean(values)) if values else "")
            rows.append(row)
        with report.folded(f"{source.name}: MRR of each relation ({ranking.text})"):
            report.table(["relation", "queries", *tables], rows)


def _cost_cells(result: Result) -> list[str]:
    seconds = result["seconds"]
    rules = "" if result["rules"] is None else f"{result['rules']:,}"
    learn = sum(taken for stage, taken in seconds.items() if stage != "evaluate")
    return [rules, f"{learn:.1f}" if learn else "", f"{seconds['evaluate']:.1f}"]


@dataclass(frozen=True, kw_only=True)
class Rules(experiment.Experiment):
    """Rules of each method's first seed, of the relations with the best MRR."""

    kind = "rules"
    tilp_only = True

    split: experiment.SplitName = "test"
    best: Count = 4  # count of relations
    rules: Count = 2  # of each
    setting: Setting = Whole()  # noqa: RUF009 - frozen

    def jobs(self, source: Source) -> list[Job]:
        shown, methods = (self.best, self.rules), [runs.method for runs in self.methods]
        return [EvaluationJob(source, self.setting, m, 0, self.split, shown) for m in methods]

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        for source in sources:
            for result in experiment.write_failures(report, self.jobs(source), results):
                self._write_rules(report, source.name, result["method"]["name"], result)

    def _write_rules(self, report: Report, source: str, method: str, result: Result) -> None:
        report.heading(f"{source}, {method}", 3)
        of_relations = result["examples"][: self.best]
        shown = (example for rules in of_relations for example in rules[: self.rules])
        for index, example in enumerate(shown):
            report.text(example["rule"])
            report.text(
                f"{example['sentence']} (weight {example['weight']:.3g}, confidence "
                f"{example['confidence']:.2f}, support {example['support']:,} of "
                f"{example['facts']:,} facts)"
            )
            name = file_name_part(f"{self.name}-{method}-{index}")
            caption = f"{example['asked']}: {example['answer']}, by {example['grounding']}"
            report.picture(f"{file_name_part(source)}-{name}", example["picture"], caption)


@dataclass(frozen=True, kw_only=True)
class Curve(experiment.RankedExperiment):
    """Methods × shares of training facts × rounds; a round seeds the sample and the method."""

    kind = "curve"

    shares: tuple[Share, ...]
    walked: WalkGraph = field(default=WalkGraph.FULL, metadata={"key": "graph"})

    @property
    def _settings(self) -> dict[float, Setting]:
        shares = sorted(set(self.shares))
        return {share: Whole() if share == 1.0 else Few(share, self.walked) for share in shares}

    def settings(self, source: Source) -> Iterable[Setting]:  # noqa: ARG002
        return self._settings.values()

    def jobs_of(self, source: Source, setting: Setting, runs: MethodRuns) -> list[EvaluationJob]:
        jobs = super().jobs_of(source, setting, runs)
        return jobs[:1] if isinstance(setting, Whole) else jobs  # there is one sample of all facts

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        others = "stay in the graph" if self.walked is WalkGraph.FULL else "are removed"
        report.text(
            "In each round a smaller sample is part of a larger one; the other training facts "
            f"{others}. Rounds: {self.rounds}; all facts are one sample, and one run."
        )
        methods, settings = [runs.method.name for runs in self.methods], self._settings
        header = ["method", *(f"{share:.0%}" for share in settings)]
        for source in self.sections(report, sources, results):
            for ranking in self.figures:
                by_share = settings.values()
                means = [self.means(source, s, results, ranking, "mrr") for s in by_share]
                if ranking is self.figures[0]:
                    self._write_chart(report, source, dict(zip(settings, means, strict=True)))
                rows = zip(methods, *map(self.column, means), strict=True)
                report.table(header, rows, 1, f"MRR, {ranking.text}")

    def _write_chart(
        self, report: Report, source: Source, means: dict[float, list[Mean | None]]
    ) -> None:
        ranking, lines = self.figures[0], []
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
            f"{source.name}: MRR ({ranking.text}) over the share of training facts; bars: the "
            "standard deviation over rounds",
        )


@dataclass(frozen=True, kw_only=True)
class BiasedData(experiment.RankedExperiment):
    """Methods × relations made rare × rounds, beside the same splits with nothing removed."""

    kind = "biased"

    relations: tuple[str, ...] = ()  # none for each that can be made rare
    removed: Share = 0.5
    walked: WalkGraph = field(default=WalkGraph.REDUCED, metadata={"key": "graph"})
    refit: float | None = None  # as of `Biased`
    published: tuple[experiment.Published, ...] = field(default=(), metadata={"key": None})

    def settings(self, source: Source) -> Iterable[Setting]:
        return [Balanced(), *self._settings(source).values()]

    def _settings(self, source: Source) -> dict[str, Biased]:
        """Return the setting of each relation, by its name in results."""
        relations = source.graph.relations
        if self.relations:
            ids = [relations.find(relation) for relation in self.relations]
        else:
            ids = reducible(balanced(source.graph), self.removed)
        names, settings = unique_labels(relations), {}
        for index in ids:
            relation, label = str(relations.ids[index]), relations.label(index)
            setting = Biased(relation, self.removed, self.walked, label, self.refit)
            settings[str(names[index])] = setting
        return settings

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
        ranking, settings = self.figures[0], self._settings(source)
        header, rows = ["relation made rare"], [[relation] for relation in settings]
        changes: dict[str, list[Mean | None]] = {}
        for runs in self.methods:
            name = runs.method.name
            header += [f"{name}: its MRR", f"{name}: MRR of all"]
            before = [results.done.get(job.name) for job in self.jobs_of(source, Balanced(), runs)]
            changes[name] = []
            for row, (relation, setting) in zip(rows, settings.items(), strict=True):
                after = [results.done.get(job.name) for job in self.jobs_of(source, setting, runs)]
                rises = (partial(_change, ranking, of) for of in (relation, None))
                its_change, overall = (Mean.of(map(rise, before, after)) for rise in rises)
                changes[name].append(its_change)
                row += [mean_text(its_change, signed=True), mean_text(overall, signed=True)]
        bars = [experiment.bars_of(name, means) for name, means in changes.items()]
        report.chart(
            f"{self.name}-{file_name_part(source.name)}",
            lambda: draw_bars(list(settings), bars, "change of MRR"),
            f"{source.name}: change of a relation's MRR ({ranking.text}) when it becomes rare",
        )
        over_relations = []
        for name, means in changes.items():
            mean = Mean.of(mean.value for mean in means if mean is not None)
            over_relations.append([name, mean_text(mean, signed=True)])
        caption = "mean change over the relations made rare (± their standard deviation)"
        report.table(["method", "change"], over_relations, 1, f"{caption}; nearer to 0 is better")
        report.table(header, rows, 1, f"change of MRR, {ranking.text}")


def _change(key: str, of: str | None, before: Result | None, after: Result | None) -> float | None:
    """Return how much MRR rose, of a relation or overall, or None if a result is missing."""
    if before is None or after is None:
        return None
    if of is None:
        return float(after["figures"][key]["mrr"] - before["figures"][key]["mrr"])
    old, new = (result["relations"][key].get(of) for result in (before, after))
    return None if old is None or new is None else float(new["mrr"] - old["mrr"])
