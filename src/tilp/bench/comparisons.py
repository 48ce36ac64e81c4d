"""Experiments that compare methods: `compare`, `curve` and `biased`; and their rules (`rules`).

`curve` and `biased` have fewer facts, of all or of one relation, as Figures 2 and 3 of the paper.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tilp._utils.files import file_name_part
from tilp.bench import experiment
from tilp.bench.data import Balanced, Biased, Few, Setting, Source, Whole
from tilp.bench.experiment import EvaluationJob, Mean, mean_text, ranking_text, share_text
from tilp.bench.jobs import Job, Result
from tilp.bench.methods import Method
from tilp.bench.report import TEXTS, Report, italic
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

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        report.text(f"Setting: {self.setting.description}.")
        report.failures([job for source in sources for job in self.jobs(source)])
        sources = [source for source in sources if report.results.of_all(self.jobs(source))]
        if not sources:
            return
        for ranking in self.figures:
            self._write_table(report, sources, ranking)
        first, names = self.figures[0], [method.name for method in self.methods]
        means = {source.name: self.means(report, source, self.setting, first) for source in sources}
        caption = f"{self.title}: MRR ({ranking_text(first)})"
        report.chart(self.name, lambda: draw_bars(names, experiment.bars(means), "MRR"), caption)
        self._write_costs(report, sources)
        for source in sources:
            self._write_relations(report, source)

    def _write_table(self, report: Report, sources: Sequence[Source], ranking: str) -> None:
        header, columns = ["method"], [[method.name for method in self.methods]]
        counts: list[set[int]] = [set() for _ in self.methods]
        for source in sources:
            for metric, label in _METRICS.items():
                header.append(f"{source.name} {label}")
                means = self.means(report, source, self.setting, ranking, metric)
                columns.append(self.column(means))
            by_method = self.results_of(report, source, self.setting).values()
            for seen, results in zip(counts, by_method, strict=True):
                seen.add(len(results))
        columns.append(["/".join(map(str, sorted(seen))) for seen in counts])
        names = [source.name for source in sources]
        published: dict[str, dict[str, experiment.Published]] = defaultdict(dict)
        notes: dict[str, dict[str, None]] = defaultdict(dict)  # the methods of each
        for entry in self.published_for(ranking):
            if entry.data in names:
                published[entry.method][entry.data] = entry
        rows = [list(row) for row in zip(*columns, strict=True)]
        for method, entries in published.items():
            row: list[str] = [italic(f"{method} (published)")]
            for own in map(entries.get, names):
                values = (own.mrr, own.hits_at_1, own.hits_at_10) if own else (None,) * 3
                row += [italic(share_text(value)) for value in values]
            rows.append([*row, ""])
            for entry in entries.values():
                note = f"; {entry.note}" if entry.note else ""
                notes[f"measured as: {entry.protocol or ranking_text(ranking)}{note}"][method] = (
                    None
                )
        caption = f"{ranking_text(ranking)}; {self.split} split"
        report.table([*header, "runs"], rows, 1, caption)
        if notes:
            report.items(f"{', '.join(of)} (published), {text}" for text, of in notes.items())

    def _write_costs(self, report: Report, sources: Sequence[Source]) -> None:
        header = ["method", *(f"{source.name} {cost}" for source in sources for cost in _COSTS)]
        rows = [[method.name] for method in self.methods]
        for source in sources:
            results = self.results_of(report, source, self.setting).values()
            for row, own in zip(rows, results, strict=True):
                # What a run took before it was stopped is not known.
                complete = [result for result in own if not result["resumed"]]
                row += _cost_cells(complete[0]) if complete else [""] * len(_COSTS)
        caption = "cost of one run: seconds to learn, and to rank all queries under every protocol"
        report.table(header, rows, 1, caption)

    def _write_relations(self, report: Report, source: Source) -> None:
        ranking, queries = self.figures[0], dict[str, int]()
        tables: dict[str, list[Result]] = {}
        for name, results in self.results_of(report, source, self.setting).items():
            tables[name] = [result["relations"][ranking] for result in results]
            for table in tables[name]:
                queries |= {relation: int(entry["queries"]) for relation, entry in table.items()}
        rows = []
        for relation in sorted(queries, key=lambda name: (-queries[name], name)):
            values = ([table[relation]["mrr"] for table in own] for own in tables.values())
            means = (share_text(statistics.fmean(own)) if own else "" for own in values)
            rows.append([relation, f"{queries[relation]:,}", *means])
        with report.folded(f"{source.name}: MRR of each relation ({ranking_text(ranking)})"):
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
        more = 0, self.split, (self.best, self.rules)
        return [EvaluationJob(source, self.setting, method, *more) for method in self.methods]

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        for source in sources:
            for result in report.failures(self.jobs(source)):
                method = result["method"]["name"]
                report.heading(f"{source.name}, {method}", 3)
                of_relations = result["examples"][: self.best]
                shown = [example for rules in of_relations for example in rules[: self.rules]]
                for index, example in enumerate(shown):
                    name = file_name_part(f"{self.name}-{method}-{index}")
                    _write_rule(report, f"{file_name_part(source.name)}-{name}", example)


def _write_rule(report: Report, name: str, example: Result) -> None:
    report.text(example["rule"])
    report.text(
        "{sentence} (weight {weight:.3g}, confidence {confidence:.2f}, support {support:,} of "
        "{facts:,} facts)".format(**example)
    )
    caption = "{asked}: {answer}, by {grounding}".format(**example)
    report.picture(name, example["picture"], caption)


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

    def jobs_of(self, source: Source, setting: Setting, method: Method) -> list[EvaluationJob]:
        jobs = super().jobs_of(source, setting, method)
        return jobs[:1] if isinstance(setting, Whole) else jobs  # there is one sample of all facts

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        others = "stay in the graph" if self.walked is WalkGraph.FULL else "are removed"
        report.text(TEXTS["curve"].format(others=others, rounds=self.rounds))
        header = ["method", *(f"{share:.0%}" for share in self._settings)]
        names = [method.name for method in self.methods]
        for source in self.sections(report, sources):
            for ranking in self.figures:
                settings = self._settings.values()
                means = [self.means(report, source, setting, ranking) for setting in settings]
                if ranking == self.figures[0]:
                    self._write_chart(report, source, means)
                rows = zip(names, *map(self.column, means), strict=True)
                report.table(header, rows, 1, f"MRR, {ranking_text(ranking)}")

    def _write_chart(
        self, report: Report, source: Source, means: Sequence[Sequence[Mean | None]]
    ) -> None:
        lines, ranking = [], self.figures[0]
        for method, own in zip(self.methods, zip(*means, strict=True), strict=True):
            by_share = zip(self._settings, own, strict=True)
            points = (Point(share, mean.value, mean.spread) for share, mean in by_share if mean)
            lines.append(Line(method.name, tuple(points)))
        published: dict[str, list[Point]] = defaultdict(list)
        for entry in self.published_for(ranking):
            if entry.data == source.name and entry.share is not None:
                published[entry.method].append(Point(entry.share, entry.mrr))
        for name, of_others in published.items():
            in_order = tuple(sorted(of_others, key=lambda point: point.x))
            lines.append(Line(f"{name} (published)", in_order))
        x_name = "share of the training facts to learn from"
        report.chart(
            f"{self.name}-{file_name_part(source.name)}",
            lambda: draw_lines(lines, x_name, "MRR", x_log=len(means) > 2),
            f"{source.name}: MRR ({ranking_text(ranking)}) over the share of training facts; bars: "
            "the standard deviation over rounds",
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

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        report.text(TEXTS["biased"].format(removed=self.removed, rounds=self.rounds))
        if self.refit is not None:
            report.text(TEXTS["refit"].format(refit=self.refit))
        for source in self.sections(report, sources):
            self._write_changes(report, source)

    def _write_changes(self, report: Report, source: Source) -> None:
        ranking, settings = self.figures[0], self._settings(source)
        header, rows = ["relation made rare"], [[relation] for relation in settings]
        changes: dict[str, list[Mean | None]] = defaultdict(list)
        for method in self.methods:
            header += [f"{method.name}: its MRR", f"{method.name}: MRR of all"]
            before = self._figures(report, source, Balanced(), method)
            for row, (relation, setting) in zip(rows, settings.items(), strict=True):
                after = self._figures(report, source, setting, method)
                its_change, overall = (
                    Mean.of(
                        new[of] - old[of]
                        for old, new in zip(before, after, strict=True)
                        if of in old and of in new
                    )
                    for of in (relation, None)
                )
                changes[method.name].append(its_change)
                row += [mean_text(its_change, signed=True), mean_text(overall, signed=True)]
        report.chart(
            f"{self.name}-{file_name_part(source.name)}",
            lambda: draw_bars(list(settings), experiment.bars(changes), "change of MRR"),
            f"{source.name}: change of a relation's MRR ({ranking_text(ranking)}) when it becomes "
            "rare",
        )
        over_relations = []
        for name, means in changes.items():
            mean = Mean.of(mean.value for mean in means if mean is not None)
            over_relations.append([name, mean_text(mean, signed=True)])
        caption = "mean change over the relations made rare (± their standard deviation)"
        report.table(["method", "change"], over_relations, 1, f"{caption}; nearer to 0 is better")
        report.table(header, rows, 1, f"change of MRR, {ranking_text(ranking)}")

    def _figures(
        self, report: Report, source: Source, setting: Setting, method: Method
    ) -> list[dict[str | None, float]]:
        """Return the MRR of each relation, and of all under None, of each run; {} if it failed."""
        ranking, figures = self.figures[0], list[dict[str | None, float]]()
        for job in self.jobs_of(source, setting, method):
            figures.append({})
            if result := report.results.done.get(job.name):
                relations = result["relations"][ranking]
                figures[-1] = {name: float(entry["mrr"]) for name, entry in relations.items()}
                figures[-1][None] = float(result["figures"][ranking]["mrr"])
        return figures
