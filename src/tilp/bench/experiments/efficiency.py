"""`efficiency`: seconds and memory of each stage, by length of rules, threads and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from tilp._utils.files import file_name_part
from tilp.bench.experiments.base import Experiment, results_of, write_failures
from tilp.bench.jobs import Job, Results
from tilp.bench.measure import STAGES, MeasurementJob
from tilp.bench.methods import Method
from tilp.bench.report import Report, italic
from tilp.bench.schema import Count, Share, integer, one_of
from tilp.bench.sources import Source, WorldSize, world_source
from tilp.types import ExperimentKind
from tilp.viz.charts import Line, Point, draw_lines

Length = Annotated[int, integer(1, 5)]

_LENGTH, _FACTS = "largest length of rules", "training facts"
# The stages whose growth Appendix C of the paper gives.
_DRAWN = ("search", "distributions", "application", "scoring")
_HOW = (
    "Each measurement is a process of its own. Everything ran once before on a small world, so "
    "that compilation is not counted. Memory is the peak of the whole process during a stage. "
    "Faint lines are the growth that the paper's Appendix C gives, drawn through the first "
    "measurement: N_pos N_rule (L |G| + L²) for search and N_qry N_rule (L |G| + L²) for "
    "application, N_pos L N_rule for distributions and N_qry L N_rule for scoring, where N_rule is "
    "the largest count of rules of one relation, with one walk for each rule; over threads, "
    "1 / threads."
)


@dataclass(frozen=True)
class PublishedTime:
    """Seconds that a stage took others."""

    stage: Annotated[str, one_of(list(STAGES))]
    data: str
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class _Sweep:
    """Measurements in which one thing varies: the value of `key` in their results."""

    name: str
    title: str
    x_name: str
    key: str
    jobs: tuple[MeasurementJob, ...]


@dataclass(frozen=True, kw_only=True)
class Efficiency(Experiment):
    """Sweeps over length, threads and size, one thing at a time.

    `sizes` are those of bundled worlds, in facts; `shares` those of the training facts that there
    are at all; `length` is the largest length of rules where something else varies.
    """

    kind = ExperimentKind.EFFICIENCY
    tilp_only = True

    lengths: tuple[Length, ...] = ()
    threads: tuple[Count, ...] = ()
    sizes: tuple[Count, ...] = ()
    shares: tuple[Share, ...] = ()
    length: Length = 3
    times: tuple[PublishedTime, ...] = ()

    def jobs(self, source: Source) -> list[Job]:
        """Return the measurements of all sweeps."""
        return [job for sweep in self._sweeps(source) for job in sweep.jobs]

    def write(self, report: Report, sources: Sequence[Source], results: Results) -> None:
        """Write a chart for each sweep, and seconds and memory as tables."""
        report.text(_HOW)
        written: set[str] = set()  # the worlds are the same beside every data set
        for source in sources:
            write_failures(report, self.jobs(source), results)
            for sweep in self._sweeps(source):
                measured = results_of(sweep.jobs, results)
                if measured and sweep.name not in written:
                    written.add(sweep.name)
                    self._write_sweep(report, sweep, measured)
            self._write_published(report, source)

    def _sweeps(self, source: Source) -> list[_Sweep]:
        return [sweep for runs in self.methods for sweep in self._sweeps_of(source, runs.method)]

    def _sweeps_of(self, source: Source, method: Method) -> list[_Sweep]:
        first = MeasurementJob(source, method, self.length, max(self.threads, default=1))
        words = f"{source.name}, {method.name}"
        name = f"{file_name_part(source.name)}-{file_name_part(method.name)}"
        fixed = f"rules of length ≤ {self.length}"
        lengths = tuple(replace(first, length=length) for length in sorted(self.lengths))
        threads = tuple(replace(first, threads=count) for count in sorted(self.threads))
        shares = tuple(replace(first, share=share) for share in sorted(self.shares))
        worlds = tuple(
            replace(first, source=world_source(WorldSize(size))) for size in sorted(self.sizes)
        )
        if len(threads) == 1:  # the other sweeps use that count
            threads = ()
        world = f"world-{file_name_part(method.name)}"
        sweeps = (
            (f"{name}-lengths", f"{words}: by length of rules", _LENGTH, "length", lengths),
            (f"{name}-threads", f"{words}: by threads, {fixed}", "threads", "threads", threads),
            (f"{name}-shares", f"{words}: by size of samples, {fixed}", _FACTS, "facts", shares),
            (
                f"{world}-sizes",
                f"bundled worlds, {method.name}: by size, {fixed}",
                _FACTS,
                "facts",
                worlds,
            ),
        )
        return [_Sweep(*sweep) for sweep in sweeps if sweep[-1]]

    def _write_sweep(
        self, report: Report, sweep: _Sweep, measured: Sequence[dict[str, Any]]
    ) -> None:
        report.heading(sweep.title, 3)
        report.chart(
            f"{self.name}-{sweep.name}",
            lambda: draw_lines(
                _lines(sweep, measured), sweep.x_name, "seconds", x_log=True, y_log=True
            ),
            f"{sweep.title}: seconds of each stage, measured and predicted (faint)",
        )
        header = ["stage", *(f"{result[sweep.key]:,}" for result in measured)]
        seconds, memory = (
            [],
            [["before any", *(_integer_text(result["megabytes_before"]) for result in measured)]],
        )
        for stage, words in STAGES.items():
            if any(stage in result["seconds"] for result in measured):
                times = (_seconds_text(result["seconds"].get(stage)) for result in measured)
                peaks = (_integer_text(result["megabytes"].get(stage)) for result in measured)
                seconds.append([words, *times])
                memory.append([words, *peaks])
        seconds.append(["rules", *(f"{result['rules']:,}" for result in measured)])
        report.table(header, seconds, 1, f"seconds, by {sweep.x_name}")
        report.table(header, memory, 1, "peak memory during a stage, MB")

    def _write_published(self, report: Report, source: Source) -> None:
        times = [time for time in self.times if time.data == source.name]
        if not times:
            return
        rows = [[STAGES[time.stage], italic(f"{time.seconds:,.1f}")] for time in times]
        report.table(["stage", "seconds"], rows, 1, f"{source.name}: published")
        notes = list(dict.fromkeys(time.note for time in times if time.note))
        if notes:
            report.items(notes)


def _expected(stage: str, result: dict[str, Any], key: str) -> float:
    """Return the expected seconds up to a factor: as Appendix C gives, or 1 / threads."""
    if key == "threads":
        return 1.0 / float(result["threads"])
    length, rules = result["length"], result["rules_of_one_head"]
    count = result["queries"] if stage in ("application", "scoring") else result["positives"]
    if stage in ("search", "application"):
        return float(count * rules * (length * result["facts"] + length**2))
    return float(count * length * rules)


def _lines(sweep: _Sweep, measured: Sequence[dict[str, Any]]) -> list[Line]:
    lines, expected = [], []
    for index, stage in enumerate(_DRAWN):
        points = [Point(result[sweep.key], result["seconds"][stage]) for result in measured]
        lines.append(Line(STAGES[stage], tuple(points), index))
        predicted = [_expected(stage, result, sweep.key) for result in measured]
        factor = points[0].y / (predicted[0] or 1.0)
        scaled = (Point(point.x, factor * y) for point, y in zip(points, predicted, strict=True))
        expected.append(Line("", tuple(scaled), index, faint=True))
    return lines + expected


def _seconds_text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _integer_text(value: float | None) -> str:
    return f"{value:,.0f}" if value else ""
