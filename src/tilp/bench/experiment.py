"""Experiments on how well methods rank: `compare`, `curve` and `biased`.

`curve` and `biased` have fewer facts, of all or of one relation, as Figures 2 and 3 of the paper.
"""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, product
from typing import Annotated, Any, ClassVar, NamedTuple

from tilp._utils.files import file_name_part, unique_file_name
from tilp.bench.data import Balanced, Biased, Few, Setting, Source, Whole
from tilp.bench.evaluation_job import EvaluationJob
from tilp.bench.jobs import Job, Result, Workspace
from tilp.bench.methods import Method
from tilp.bench.report import TEXTS, Report, bold, italic
from tilp.bench.schema import Count, Share, allow, one_of
from tilp.evaluation import ties_of
from tilp.evaluation.evaluate import unique_labels
from tilp.graph import SPLITS
from tilp.parallel import Workers
from tilp.rules import Phrasings
from tilp.splits import balanced, reducible
from tilp.time_prediction import TimePredictor, TimeTraining, fit_time_model
from tilp.time_prediction.evaluate import evaluate_times
from tilp.types import Protocol, WalkGraph
from tilp.viz.charts import Line, Point, draw_lines

_METRICS = {"mrr": "MRR", "hits@1": "hits@1", "hits@10": "hits@10"}
_TIME_METRICS = ("aeiou@1", "aeiou@5", "aeiou@10", "giou", "gaeiou", "tac", "mae_start", "mae_end")
_COSTS = ("rules", "learn, s", "ask, s")
_RANKINGS = [
    f"{protocol.value} {ties.value}" for protocol in Protocol for ties in ties_of(protocol)
]
Ranking = Annotated[str, one_of(_RANKINGS)]  # a protocol and a tie rule
SplitName = Annotated[str, one_of(SPLITS[1:])]
FileName = Annotated[
    str,
    allow("a name of letters, digits, '-' and '_'", lambda x: x and file_name_part(str(x)) == x),
]


def ranking_text(ranking: str) -> str:
    """Return a ranking in words.

    >>> ranking_text("enumerate average")
    'enumerate, average ties'
    """
    return "{}, {} ties".format(*ranking.split())


@dataclass(frozen=True, kw_only=True)
class Published:
    """A result that others published, to stand beside ours."""

    method: str
    data: str
    figure: Ranking | None = None  # to compare it with; by default the experiment's first
    protocol: str = ""  # how it was measured, in words
    mrr: float
    hits_at_1: float | None = None
    hits_at_10: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """One question of a plan."""

    kind: ClassVar[str]

    name: FileName
    title: str
    about: str = ""  # what it asks and how to read it
    methods: tuple[Method, ...]

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if len(set(names)) < len(names):
            raise ValueError(f"methods is {names!r}; give each method once")

    @abstractmethod
    def jobs(self, source: Source) -> list[Job]:
        """Return all that is run on a data set."""

    @abstractmethod
    def write(self, report: Report, sources: Sequence[Source]) -> None:
        """Write its part of a report, below the heading."""


@dataclass(frozen=True, kw_only=True)
class RankedExperiment(Experiment):
    """An experiment on how well answers are ranked."""

    seeds: Count = 1  # of each method that has no count of its own, from 0 on
    figures: tuple[Ranking, ...] = ("enumerate average",)  # first: drawn
    split: SplitName = "test"

    @abstractmethod
    def settings(self, source: Source) -> Iterable[Setting]:
        """Return the settings that every method is run in."""

    def jobs(self, source: Source) -> list[Job]:
        pairs = product(self.methods, self.settings(source))
        return [job for method, setting in pairs for job in self.jobs_of(source, setting, method)]

    def jobs_of(self, source: Source, setting: Setting, method: Method) -> list[EvaluationJob]:
        """Return the jobs of a method: one per seed, or one if seeds change nothing."""
        count = (method.seeds or self.seeds) if method.seeded or setting.seeded else 1
        return [EvaluationJob(source, setting, method, seed, self.split) for seed in range(count)]

    def results_of(self, report: Report, source: Source, setting: Setting) -> list[list[Result]]:
        """Return the results of each method."""
        jobs = (self.jobs_of(source, setting, method) for method in self.methods)
        return [report.results.of_all(own) for own in jobs]

    def means(
        self, report: Report, source: Source, setting: Setting, ranking: str, metric: str = "mrr"
    ) -> list[Mean | None]:
        """Return a metric of each method, over its seeds."""
        by_method = self.results_of(report, source, setting)
        return [Mean.of(result["figures"][ranking][metric] for result in own) for own in by_method]

    def column(self, means: Sequence[Mean | None]) -> list[str]:
        """Return a column of means, the best of our methods bold; of all if none is ours."""
        any_ours = any(method.is_ours for method in self.methods)
        compared = [method.is_ours or not any_ours for method in self.methods]
        best = max((mean.value for mean in compress(means, compared) if mean), default=None)
        return [
            bold(mean_text(mean)) if mean and own and mean.value == best else mean_text(mean)
            for mean, own in zip(means, compared, strict=True)
        ]

    def sections(self, report: Report, sources: Sequence[Source]) -> Iterator[Source]:
        """Begin a section for each data set, and yield those that have results."""
        for source in sources:
            report.heading(source.name, 3)
            if report.failures(self.jobs(source)):
                yield source

    @property
    def rounds(self) -> str:
        """The methods with their counts of seeds."""
        return ", ".join(f"{each.name} {each.seeds or self.seeds}" for each in self.methods)


class Mean(NamedTuple):
    """A metric over runs: its mean, standard deviation (0 of one run) and count of runs."""

    value: float
    spread: float
    runs: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Mean | None:
        """Return the mean of the values that are not None, or None if all are."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        spread = statistics.stdev(known) if len(known) > 1 else 0.0
        return cls(statistics.fmean(known), spread, len(known))


def share_text(value: float | None) -> str:
    """Return a share as tables show it.

    >>> share_text(0.4114), share_text(1.0), share_text(-0.02), share_text(None)
    ('.411', '1.000', '-.020', '')
    """
    if value is None:
        return ""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def mean_text(mean: Mean | None, *, signed: bool = False) -> str:
    """Return a mean with its deviation, if there are several runs."""
    if mean is None:
        return ""
    value = ("+" if signed and mean.value >= 0 else "") + share_text(mean.value)
    return f"{value} ± {share_text(mean.spread)}" if mean.runs > 1 else value


@dataclass(frozen=True, kw_only=True)
class Compare(RankedExperiment):
    """Methods × data sets × seeds in one setting, as in Tables 1 and 2 of the paper."""

    kind = "compare"

    setting: Setting = Whole()  # noqa: RUF009 - frozen
    published: tuple[Published, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for entry in self.published:
            if entry.figure is not None and entry.figure not in self.figures:
                wrong = f"published: figure is {entry.figure!r}"
                raise ValueError(f"{wrong}; give one of {', '.join(self.figures)}")

    def published_for(self, ranking: str) -> Iterator[Published]:
        """Return the published results that belong to a ranking."""
        return (entry for entry in self.published if (entry.figure or self.figures[0]) == ranking)

    def settings(self, source: Source) -> Iterable[Setting]:  # noqa: ARG002
        return [self.setting]

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        report.text(f"Setting: {self.setting.description}.")
        report.failures([job for source in sources for job in self.jobs(source)])
        results = {source.name: self.results_of(report, source, self.setting) for source in sources}
        sources = [source for source in sources if any(results[source.name])]
        if not sources:
            return
        for ranking in self.figures:
            self._write_table(report, sources, ranking)
        names = [method.name for method in self.methods]
        header = ["method", *(f"{source.name} {cost}" for source in sources for cost in _COSTS)]
        costs = zip(*(map(_cost_cells, results[source.name]) for source in sources), strict=True)
        rows = [[name, *chain(*cells)] for name, cells in zip(names, costs, strict=True)]
        caption = "cost of one run: seconds to learn, and to rank all queries under every protocol"
        report.table(header, rows, 1, caption)
        for source in sources:
            self._write_relations(report, source.name, results[source.name])

    def _write_table(self, report: Report, sources: Sequence[Source], ranking: str) -> None:
        header, columns = ["method"], [[method.name for method in self.methods]]
        for source, (metric, label) in product(sources, _METRICS.items()):
            header.append(f"{source.name} {label}")
            means = self.means(report, source, self.setting, ranking, metric)
            columns.append(self.column(means))
        by_source = (self.results_of(report, source, self.setting) for source in sources)
        counts = ({len(own) for own in of_method} for of_method in zip(*by_source, strict=True))
        columns.append(["/".join(map(str, sorted(seen))) for seen in counts])
        names = [source.name for source in sources]
        published: dict[str, dict[str, Published]] = defaultdict(dict)
        notes: dict[str, dict[str, None]] = defaultdict(dict)  # the methods of each
        for entry in self.published_for(ranking):
            if entry.data in names:
                published[entry.method][entry.data] = entry
        rows = [list(row) for row in zip(*columns, strict=True)]
        for method, entries in published.items():
            keys = product(map(entries.get, names), ("mrr", "hits_at_1", "hits_at_10"))
            values = [italic(share_text(getattr(own, key, None))) for own, key in keys]
            rows.append([italic(f"{method} (published)"), *values, ""])
            for entry in entries.values():
                note = f"; {entry.note}" if entry.note else ""
                text = f"measured as: {entry.protocol or ranking_text(ranking)}{note}"
                notes[text][method] = None
        caption = f"{ranking_text(ranking)}; {self.split} split"
        report.table([*header, "runs"], rows, 1, caption)
        if notes:
            report.items(f"{', '.join(of)} (published), {text}" for text, of in notes.items())

    def _write_relations(
        self, report: Report, source: str, results: Sequence[Sequence[Result]]
    ) -> None:
        ranking, queries = self.figures[0], dict[str, int]()
        tables = [[result["relations"][ranking] for result in own] for own in results]
        for table in chain(*tables):
            queries |= {relation: int(entry["queries"]) for relation, entry in table.items()}
        rows = []
        for relation in sorted(queries, key=lambda name: (-queries[name], name)):
            means = (Mean.of(table[relation]["mrr"] for table in own) for own in tables)
            texts = (share_text(mean and mean.value) for mean in means)
            rows.append([relation, f"{queries[relation]:,}", *texts])
        with report.folded(f"{source}: MRR of each relation ({ranking_text(ranking)})"):
            report.table(["relation", "queries", *(each.name for each in self.methods)], rows)


def _cost_cells(results: Sequence[Result]) -> list[str]:
    # What a run took before it was stopped is not known.
    complete = [result for result in results if not result["resumed"]]
    if not complete:
        return [""] * len(_COSTS)
    result, seconds = complete[0], complete[0]["seconds"]
    rules = "" if result["rules"] is None else f"{result['rules']:,}"
    learn = sum(taken for stage, taken in seconds.items() if stage != "evaluate")
    return [rules, f"{learn:.1f}" if learn else "", f"{seconds['evaluate']:.1f}"]


@dataclass(frozen=True, kw_only=True)
class Curve(RankedExperiment):
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
        x_name = "share of the training facts to learn from"
        report.chart(
            f"{self.name}-{file_name_part(source.name)}",
            lambda: draw_lines(lines, x_name, "MRR", x_log=len(means) > 2),
            f"{source.name}: MRR ({ranking_text(ranking)}) over the share of training facts; bars: "
            "the standard deviation over rounds",
        )


@dataclass(frozen=True, kw_only=True)
class BiasedData(RankedExperiment):
    """Methods × relations made rare × rounds, beside the same splits with nothing removed."""

    kind = "biased"

    relations: tuple[str, ...] = ()  # none for each that can be made rare
    removed: Share = 0.5
    walked: WalkGraph = field(default=WalkGraph.REDUCED, metadata={"key": "graph"})

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
            setting = Biased(relation, self.removed, self.walked, label)
            settings[str(names[index])] = setting
        return settings

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        report.text(TEXTS["biased"].format(removed=self.removed, rounds=self.rounds))
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
                pairs = [*zip(before, self._figures(report, source, setting, method), strict=True)]
                both = [
                    Mean.of(new[of] - old[of] for old, new in pairs if of in old and of in new)
                    for of in (relation, None)
                ]
                changes[method.name].append(both[0])
                row += [mean_text(change, signed=True) for change in both]
        over_relations = []
        for name, means in changes.items():
            mean = Mean.of(mean.value for mean in means if mean)
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


@dataclass(frozen=True)
class TimesJob(Job):
    """A time model, and its predictions of the intervals of a split."""

    source: Source
    split: str

    @property
    def name(self) -> str:
        return f"times.{unique_file_name(self.source.name)}.{self.split}"

    def identity(self) -> dict[str, Any]:
        return {"data": self.source.fingerprint, "split": self.split}

    def run(self, workspace: Workspace) -> Result:
        graph = self.source.graph
        with Workers(workspace.threads) as workers:
            model = fit_time_model(graph, TimeTraining(), workers)
            predictor = TimePredictor(model, graph, Phrasings())
            return evaluate_times(predictor, graph, self.split, workers).to_json()


@dataclass(frozen=True, kw_only=True)
class PublishedOverlap:
    """A published aeIOU@1, to stand beside ours."""

    method: str
    data: str
    aeiou: float


@dataclass(frozen=True, kw_only=True)
class Times(Experiment):
    """When facts start and end."""

    kind = "times"
    tilp_only = True

    split: SplitName = "test"
    published: tuple[PublishedOverlap, ...] = ()

    def jobs(self, source: Source) -> list[Job]:
        return [TimesJob(source, self.split)]

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        for source in sources:
            rows = []
            for result in report.failures(self.jobs(source)):
                values = [f"{result['metrics'][name]:.4f}" for name in _TIME_METRICS]
                rows.append([f"tilp, {result['facts']:,} facts", *values])
            entries = [entry for entry in self.published if entry.data == source.name]
            blank = [""] * (len(_TIME_METRICS) - 1)
            rows += [[italic(e.method), italic(f"{e.aeiou:.4f}"), *blank] for e in entries]
            report.table(["method", *_TIME_METRICS], rows, 1, source.name)
