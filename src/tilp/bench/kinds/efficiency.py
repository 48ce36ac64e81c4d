"""`efficiency`: seconds and memory of each stage, by length of rules, threads and size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilp._utils.files import file_name_part
from tilp.bench.jobs import Job, Results
from tilp.bench.keys import NUMBER, SHARE, TEXT, WHOLE, Keys, Reader, list_of
from tilp.bench.kinds.base import Kind, not_done
from tilp.bench.measuring import STAGES, Measurement
from tilp.bench.methods import Method
from tilp.bench.plans import Experiment
from tilp.bench.report.blocks import Block, Entry, Figure, Heading, Items, Table, Text
from tilp.bench.sources import Source, WorldSize, world_source
from tilp.pictures.chart import Line, Point, draw_lines

__all__ = ["Efficiency"]

_LENGTH = Reader(
    "a whole number from 1 to 5",
    lambda value: value if isinstance(value, int) and 1 <= value <= 5 else None,
)
# What is drawn: the stages whose growth the paper's Appendix C tells.
_DRAWN = ("search", "distributions", "application", "scoring")


@dataclass(frozen=True)
class PublishedTime:
    """What a stage took others."""

    stage: str
    data: str
    seconds: float
    note: str


@dataclass(frozen=True)
class EfficiencyOptions:
    """What is varied, one at a time.

    Attributes:
        lengths: of rules at the most.
        threads: numbers of them.
        sizes: of the bundled world, in facts.
        shares: of each data set's training facts, the others gone.
        length: of rules where something else is varied.
        times: what others published.
    """

    lengths: tuple[int, ...]
    threads: tuple[int, ...]
    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    length: int
    times: tuple[PublishedTime, ...]


@dataclass(frozen=True)
class _Sweep:
    """One thing varied.

    Attributes:
        name: in the names of pictures.
        title: in words.
        x_name: below a chart.
        x: what is varied, of a result.
        predicted: what a stage should take, of a result, up to a factor.
        jobs: in the order of what is varied.
    """

    name: str
    title: str
    x_name: str
    x: Callable[[dict[str, Any]], float]
    predicted: Callable[[str, dict[str, Any]], float]
    jobs: tuple[Measurement, ...]


class Efficiency(Kind):
    """Each measurement in a process of its own, so that its peak memory is its own too."""

    tilp_only = True
    uses = frozenset()

    def read(self, keys: Keys) -> EfficiencyOptions:
        """What is varied."""
        return EfficiencyOptions(
            keys.get("lengths", list_of(_LENGTH), ()),
            keys.get("threads", list_of(WHOLE), ()),
            keys.get("sizes", list_of(WHOLE), ()),
            keys.get("shares", list_of(SHARE), ()),
            keys.get("length", _LENGTH, 3),
            tuple(_time(one, f"{keys.place}, times") for one in keys.tables("times")),
        )

    def jobs(self, experiment: Experiment, source: Source) -> list[Job]:
        """All sweeps."""
        return [
            job
            for asked in experiment.methods
            for sweep in _sweeps(experiment.options, source, asked.method)
            for job in sweep.jobs
        ]

    def blocks(
        self, experiment: Experiment, sources: Sequence[Source], results: Results
    ) -> list[Block]:
        """For each sweep a chart against what is predicted, seconds and memory as tables."""
        blocks: list[Block] = [Text(_HOW, quiet=True)]
        told: list[str] = []  # the world is the same beside every data set
        for source in sources:
            blocks += not_done(self.jobs(experiment, source), results)
            for asked in experiment.methods:
                for sweep in _sweeps(experiment.options, source, asked.method):
                    name = f"{experiment.name}-{sweep.name}"
                    found = [one for job in sweep.jobs if (one := results.of(job)) is not None]
                    if found and name not in told:
                        told.append(name)
                        blocks += _shown(sweep, found, name)
            blocks += _published(experiment.options.times, source)
        return blocks


_HOW = (
    "Each measurement is a process of its own, in which everything ran once before on a small "
    "world, so that no compiling is counted. Memory is the most that the whole process took "
    "during a stage. Faint lines are the growth that the paper's Appendix C gives, drawn through "
    "the first measurement: N_pos N_rule (L |G| + L²) for search and N_qry N_rule (L |G| + L²) for "
    "application, N_pos L N_rule for distributions and N_qry L N_rule for scoring, with N_rule the "
    "most rules that one relation has, as counted, and one walk for each rule; over threads, "
    "1 / threads."
)


def _sweeps(options: EfficiencyOptions, source: Source, method: Method) -> list[_Sweep]:
    """What is varied on a data set; sizes are those of worlds, whatever the data."""
    most = max(options.threads, default=1)
    first = Measurement(source, method, options.length, most)
    words = f"{source.name}, {method.name}"
    name = f"{file_name_part(source.name)}-{file_name_part(method.name)}"
    lengths = tuple(replace(first, length=one) for one in sorted(options.lengths))
    threads = tuple(replace(first, threads=one) for one in sorted(options.threads))
    shares = tuple(replace(first, share=one) for one in sorted(options.shares))
    worlds = tuple(
        replace(first, source=world_source(WorldSize(size))) for size in sorted(options.sizes)
    )
    fixed = f"rules of length ≤ {options.length}"
    facts = "training facts"
    found = [
        _Sweep(
            f"{name}-lengths",
            f"{words}: by length of rules",
            "greatest length of rules",
            lambda one: one["length"],
            _formula,
            lengths,
        ),
        _Sweep(
            f"{name}-threads",
            f"{words}: by threads, {fixed}",
            "threads",
            lambda one: one["threads"],
            lambda _stage, one: 1.0 / one["threads"],
            threads,
        ),
        _Sweep(
            f"{name}-shares",
            f"{words}: by size of samples, {fixed}",
            facts,
            lambda one: one["facts"],
            _formula,
            shares,
        ),
        _Sweep(
            f"world-{file_name_part(method.name)}-sizes",
            f"bundled worlds, {method.name}: by size, {fixed}",
            facts,
            lambda one: one["facts"],
            _formula,
            worlds,
        ),
    ]
    # A single number of threads is what the other sweeps use.
    return [one for one in found if len(one.jobs) > (one.jobs == threads)]


def _formula(stage: str, one: dict[str, Any]) -> float:
    """The growth of Appendix C, with what was counted in its place."""
    length, rules = one["length"], one["rules_of_one_head"]
    asked = one["queries"] if stage in ("application", "scoring") else one["positives"]
    if stage in ("search", "application"):
        return float(asked * rules * (length * one["facts"] + length**2))
    return float(asked * length * rules)


def _shown(sweep: _Sweep, found: list[dict[str, Any]], name: str) -> list[Block]:
    lines = []
    for number, stage in enumerate(_DRAWN):
        measured = [Point(sweep.x(one), one["seconds"][stage]) for one in found]
        lines.append(Line(STAGES[stage], tuple(measured), number))
    for number, stage in enumerate(_DRAWN):
        predicted = [sweep.predicted(stage, one) for one in found]
        factor = found[0]["seconds"][stage] / (predicted[0] or 1.0)
        points = (
            Point(sweep.x(one), factor * value) for one, value in zip(found, predicted, strict=True)
        )
        lines.append(Line("", tuple(points), number, faint=True))
    title = f"{sweep.title}: seconds of each stage, measured and predicted (faint)"
    picture = draw_lines(title, lines, sweep.x_name, "seconds", x_log=True, y_log=True)
    columns = [f"{sweep.x(one):,}" for one in found]
    stages = {
        stage: words
        for stage, words in STAGES.items()
        if any(stage in one["seconds"] for one in found)
    }
    seconds = [
        [words, *(_short(one["seconds"].get(stage)) for one in found)]
        for stage, words in stages.items()
    ]
    memory = [
        [words, *(_whole(one["megabytes"].get(stage)) for one in found)]
        for stage, words in stages.items()
    ]
    before = ["before any", *(_whole(one["megabytes_before"]) for one in found)]
    rules = ["rules", *(f"{one['rules']:,}" for one in found)]
    return [
        Heading(sweep.title, 3),
        Figure(name, picture, title),
        Table.of(["stage", *columns], [*seconds, rules], 1, f"seconds, by {sweep.x_name}"),
        Table.of(["stage", *columns], [before, *memory], 1, "most memory during a stage, MB"),
    ]


def _published(times: Sequence[PublishedTime], source: Source) -> list[Block]:
    found = [one for one in times if one.data == source.name]
    if not found:
        return []
    rows: list[list[str | Entry]] = [
        [STAGES[one.stage], Entry(f"{one.seconds:,.1f}", slanted=True)] for one in found
    ]
    notes = tuple(dict.fromkeys(one.note for one in found if one.note))
    return [
        Table.of(["stage", "seconds"], rows, 1, f"{source.name}: published"),
        *([Items(notes)] if notes else []),
    ]


def _time(values: dict[str, Any], place: str) -> PublishedTime:
    keys = Keys(values, place)
    stage = Reader(
        f"one of {', '.join(STAGES)}",
        lambda one: one if isinstance(one, str) and one in STAGES else None,
    )
    found = PublishedTime(
        keys.take("stage", stage),
        keys.take("data", TEXT),
        keys.take("seconds", NUMBER),
        keys.get("note", TEXT, ""),
    )
    keys.finish()
    return found


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _whole(value: float | None) -> str:
    return "" if not value else f"{value:,.0f}"
