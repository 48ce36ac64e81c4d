"""What all experiments share: the keys of a plan, jobs of methods and seeds, and their means."""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

from tilp._utils.files import file_name_part
from tilp.bench.data import Setting, Source
from tilp.bench.evaluations import EvaluationJob
from tilp.bench.jobs import Job, Results
from tilp.bench.methods import Method
from tilp.bench.report import Report, bold
from tilp.bench.schema import Count, Reader, one_of
from tilp.evaluation import ties_of
from tilp.graph import SPLITS
from tilp.types import ExperimentKind, Protocol, Ties
from tilp.viz.charts import Bars


@dataclass(frozen=True)
class Ranking:
    """A protocol and a tie rule, by which answers are ranked.

    >>> Ranking.parse("enumerate worst")
    Ranking(protocol=<Protocol.ENUMERATE: 'enumerate'>, ties=<Ties.WORST: 'worst'>)
    """

    protocol: Protocol
    ties: Ties

    @property
    def key(self) -> str:
        """The key in plans and in the files of runs."""
        return f"{self.protocol.value} {self.ties.value}"

    def __str__(self) -> str:
        return f"{self.protocol.value}, {self.ties.value} ties"

    @classmethod
    def parse(cls, text: object) -> Ranking | None:
        """Read a protocol and a tie rule, or return None if the text is neither."""
        first, _, last = str(text).partition(" ")
        if first not in list(Protocol) or last not in ties_of(Protocol(first)):
            return None
        return cls(Protocol(first), Ties(last))


_RANKINGS = "; ".join(f"{protocol.value} {', '.join(ties_of(protocol))}" for protocol in Protocol)
_EXPECTED = f'a protocol and one of its tie rules, of {_RANKINGS}, such as "enumerate average"'
RankingKey = Annotated[Ranking, Reader(_EXPECTED, Ranking.parse)]
SplitName = Annotated[str, one_of(SPLITS[1:])]
FileName = Annotated[
    str,
    Reader(
        "a name of letters, digits, '-' and '_'",
        lambda value: value if value and file_name_part(str(value)) == value else None,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Published:
    """A result that others published, to stand beside ours.

    `figure` is the ranking of ours to compare it with, by default the experiment's first;
    `protocol` says in words how it was measured; `share` is that of the training facts, on a curve.
    """

    method: str
    data: str
    figure: RankingKey | None = None
    protocol: str = ""
    mrr: float
    hits_at_1: float | None = None
    hits_at_10: float | None = None
    share: float | None = None
    note: str = ""


@dataclass(frozen=True)
class MethodRuns:
    """A method of an experiment, and its count of seeds if it is not the experiment's."""

    method: Method
    seeds: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """One question of a plan.

    Attributes:
        kind: Its kind in a plan.
        tilp_only: Whether all its methods must be forms of TILP.
        name: Name in files and on the command line.
        title: Heading of its part of the report.
        about: What it asks and how to read it.
        methods: What is compared.
    """

    kind: ClassVar[ExperimentKind]
    tilp_only: ClassVar[bool] = False

    name: FileName
    title: str
    about: str = ""
    methods: tuple[MethodRuns, ...]

    def __post_init__(self) -> None:
        names = [runs.method.name for runs in self.methods]
        if len(set(names)) < len(names):
            raise ValueError(f"methods is {names!r}; give each method once")
        others = [runs.method.name for runs in self.methods if not runs.method.is_tilp]
        if self.tilp_only and others:
            raise ValueError(
                f"methods is {others!r}; give forms of TILP alone where the kind is {self.kind}"
            )

    def with_seeds(self, seeds: int) -> Self:
        """Return the experiment with this count of seeds of every method."""
        return replace(self, methods=tuple(replace(runs, seeds=seeds) for runs in self.methods))

    @abstractmethod
    def jobs(self, source: Source) -> list[Job]:
        """Return all that is run on a data set."""

    @abstractmethod
    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        """Write its part of a report, below the heading."""


@dataclass(frozen=True, kw_only=True)
class RankedExperiment(Experiment):
    """An experiment on how well answers are ranked.

    Attributes:
        seeds: Count of runs of each method, with seeds from 0 on.
        figures: Rankings that results are given for; the first is drawn.
        split: Split whose facts are the queries.
    """

    seeds: Count = 1
    figures: tuple[RankingKey, ...] = (Ranking(Protocol.ENUMERATE, Ties.AVERAGE),)
    split: SplitName = "test"

    @abstractmethod
    def settings(self, source: Source) -> Sequence[Setting]:
        """Return the settings that every method is run in."""

    def jobs(self, source: Source) -> list[Job]:
        return [
            job
            for runs in self.methods
            for setting in self.settings(source)
            for job in self.jobs_of(source, setting, runs)
        ]

    def jobs_of(self, source: Source, setting: Setting, runs: MethodRuns) -> list[EvaluationJob]:
        """Return the jobs of a method: one per seed, or one if seeds change nothing."""
        count = self.seeds_of(runs) if runs.method.seeded or setting.seeded else 1
        return [
            EvaluationJob(source, setting, runs.method, seed, self.split) for seed in range(count)
        ]

    def seeds_of(self, runs: MethodRuns) -> int:
        """Return the count of seeds of a method."""
        return self.seeds if runs.seeds is None else runs.seeds

    def means(
        self,
        source: Source,
        setting: Setting,
        results: Results,
        ranking: Ranking,
        metric: str = "mrr",
    ) -> list[Mean | None]:
        """Return a metric of each method, over its seeds."""
        return [
            Mean.of(
                result["figures"][ranking.key][metric]
                for result in results.of_all(self.jobs_of(source, setting, runs))
            )
            for runs in self.methods
        ]

    def column(self, means: Sequence[Mean | None]) -> list[str]:
        """Return a column of means, the best of our methods bold; of all if none is ours."""
        any_ours = any(runs.method.is_ours for runs in self.methods)
        values = [
            None if mean is None or (any_ours and not runs.method.is_ours) else mean.value
            for runs, mean in zip(self.methods, means, strict=True)
        ]
        best = max((value for value in values if value is not None), default=None)
        return [
            bold(mean_text(mean)) if value is not None and value == best else mean_text(mean)
            for value, mean in zip(values, means, strict=True)
        ]

    def sections(
        self, report: Report, sources: Sequence[Source], results: Results
    ) -> Iterator[Source]:
        """Begin a section for each data set, and yield those that have results."""
        for source in sources:
            jobs = self.jobs(source)
            report.heading(source.name, 3)
            write_failures(report, jobs, results)
            if results.of_all(jobs):
                yield source

    @property
    def rounds(self) -> str:
        """The methods with their counts of seeds."""
        return ", ".join(f"{runs.method.name} {self.seeds_of(runs)}" for runs in self.methods)


@dataclass(frozen=True, kw_only=True)
class PublishedExperiment(RankedExperiment):
    """An experiment with published results beside ours."""

    published: tuple[Published, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for entry in self.published:
            if entry.figure is not None and entry.figure not in self.figures:
                possible = ", ".join(ranking.key for ranking in self.figures)
                message = f"published: figure is {entry.figure.key!r}; give one of {possible}"
                raise ValueError(message)

    def published_for(self, ranking: Ranking) -> Iterator[Published]:
        """Return the published results that belong to a ranking."""
        first = self.figures[0]
        return (entry for entry in self.published if (entry.figure or first) == ranking)


@dataclass(frozen=True)
class Mean:
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


def bars_of(name: str, means: Iterable[Mean | None]) -> Bars:
    """Return means as bars of a chart."""
    return Bars(name, tuple(None if mean is None else (mean.value, mean.spread) for mean in means))


def write_failures(report: Report, jobs: Iterable[Job], results: Results) -> None:
    """Say what could not be run, and why."""
    if reasons := results.reasons(jobs):
        report.text("Not run:")
        report.items(reasons)
