"""The experiment `efficiency`: seconds and memory of each stage, by length, threads and size."""

import tempfile
import time
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from tilp._utils.files import file_name_part, unique_file_name
from tilp._utils.memory import forget_peak, peak_megabytes
from tilp.bench.data import Source, WorldSize, world_source
from tilp.bench.experiment import Experiment
from tilp.bench.jobs import Job, Result, Workspace
from tilp.bench.methods import Method
from tilp.bench.report import TEXTS, Report, italic
from tilp.bench.schema import Count, integer, one_of
from tilp.datasets import world
from tilp.errors import TilpError, TilpWarning
from tilp.features.paper.features import PaperFeatures, walked_relations
from tilp.graph import QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.parallel import Workers
from tilp.time.imputation import MissingDates
from tilp.viz.charts import Line, Point, draw_lines
from tilp.walks.mining import target_facts

STAGES: Mapping[str, str] = TEXTS["stages"]
_OF_FIT = {
    "mine": "search",
    "apply": "arriving",
    **dict.fromkeys(("select", "train"), "training"),
    **dict.fromkeys(("features", "stack"), "features"),
}
_BATCH = 512
_WARM_SIZE = 1_000  # facts of the world on which everything runs once before
_WARM_LENGTH = 2

# The stages whose growth Appendix C of the paper gives.
_DRAWN = ("search", "distributions", "application", "scoring")

Length = Annotated[int, integer(1, 5)]


@dataclass(frozen=True)
class MeasurementJob(Job):
    """One fit of a form of TILP, and its model applied to valid."""

    source: Source
    method: Method  # of any length
    length: int
    threads: int
    seed: int = 0

    alone = True

    @property
    def name(self) -> str:
        source, method = unique_file_name(self.source.name), unique_file_name(self.method.name)
        return f"cost.{source}.{method}.length-{self.length}.threads-{self.threads}"

    def identity(self) -> dict[str, Any]:
        method = self._method.identity(self.seed)
        return {"data": self.source.fingerprint, "method": method, "threads": self.threads}

    @property
    def _method(self) -> Method:
        return self.method.with_choices(max_length=self.length)

    def run(self, workspace: Workspace) -> Result:  # noqa: ARG002
        # A new process, whose peak memory is that of the stages alone.
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                measured = pool.submit(_measure, self).result()
        except BrokenProcessPool as failure:
            message = "could not be measured: its process ended, perhaps for lack of memory"
            raise TilpError(f"{self.name} {message}") from failure
        return {
            "data": {"name": self.source.name, "fingerprint": self.source.fingerprint},
            "method": {"name": self.method.name, **self._method.identity(self.seed)},
            **{name: getattr(self, name) for name in ("length", "threads", "seed")},
            **measured,
        }


class _Watch:
    """Records the seconds and the peak memory of stages."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.megabytes: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        forget_peak()
        began = time.perf_counter()
        yield
        self.seconds[stage] += time.perf_counter() - began
        self.record_peak(stage)

    def record_peak(self, stage: str) -> None:
        """Record the peak since the last record as a stage's."""
        self.megabytes[stage] = max(self.megabytes.get(stage, 0.0), peak_megabytes() or 0.0)
        forget_peak()


def _measure(job: MeasurementJob) -> Result:
    warnings.simplefilter("ignore", TilpWarning)  # they came when the plan began
    method, graph = job._method, job.source.graph
    warm = method.with_choices(max_length=min(job.length, _WARM_LENGTH))
    _stages(warm, world(0, _WARM_SIZE).graph, job.threads, job.seed)
    forget_peak()
    before = peak_megabytes()
    watch, model = _stages(method, graph, job.threads, job.seed)
    heads = Counter(str(mined.rule.head) for mined in model.rules())
    return {
        "seconds": dict(watch.seconds),
        "megabytes": watch.megabytes,
        "megabytes_before": before,
        "facts": len(graph.rows("train")),
        "positives": 2 * len(target_facts(graph, model.settings.mining)),
        "queries": 2 * len(graph.rows("valid")),
        "relations": len(graph.relations),
        "rules": len(model.rules()),
        "rules_of_one_head": max(heads.values()),
    }


def _stages(method: Method, graph: TemporalGraph, threads: int, seed: int) -> tuple[_Watch, TILP]:
    """Fit a graph and score its valid split, and record each stage."""
    watch, model = _Watch(), method.tilp(seed, threads)
    forget_peak()

    def record(stage: str, share: float) -> None:
        if share >= 1.0:
            watch.record_peak(_OF_FIT[stage])

    with tempfile.TemporaryDirectory() as folder:
        model.fit(graph, folder=Path(folder) / "fit", progress=record)
    for stage, seconds in model.seconds.items():
        watch.seconds[_OF_FIT[stage]] += seconds
    settings = model.settings
    filled = MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)
    with watch("distributions"), Workers(threads) as workers:
        relations = walked_relations(filled, model.rules())
        PaperFeatures.fit(filled, relations, settings.mining.max_length, workers=workers)
    queries = QueryTable.of_facts(graph, np.asarray(graph.rows("valid"), np.int64), walked=False)
    order = np.argsort(queries.subject, kind="stable")
    parts = [queries[order[begin : begin + _BATCH]] for begin in range(0, len(order), _BATCH)]
    scorer = model.scorer()
    with Workers(threads) as workers:
        with watch("application"):
            deque(workers.map(scorer.rule_scorer.apply_rules, parts), maxlen=0)
        with watch("scoring"):
            deque(workers.map(scorer, parts), maxlen=0)
    # Scoring applies the rules too; the rest of its time is that of the features.
    watch.seconds["scoring"] = max(watch.seconds["scoring"] - watch.seconds["application"], 0.0)
    return watch, model


@dataclass(frozen=True)
class PublishedTime:
    """Seconds that a stage took others."""

    stage: Annotated[str, one_of(list(STAGES))]
    data: str
    seconds: float
    note: str = ""


class _Sweep(NamedTuple):
    """Measurements in which one thing varies: the value of `key` in their results."""

    name: str
    title: str
    key: str
    jobs: tuple[MeasurementJob, ...]


@dataclass(frozen=True, kw_only=True)
class Efficiency(Experiment):
    """Sweeps over length, threads and size, one thing at a time."""

    kind = "efficiency"
    tilp_only = True

    lengths: tuple[Length, ...] = ()
    threads: tuple[Count, ...] = ()
    sizes: tuple[Count, ...] = ()  # of bundled worlds, in facts
    length: Length = 3  # where something else varies
    times: tuple[PublishedTime, ...] = ()

    def jobs(self, source: Source) -> list[Job]:
        return [job for sweep in self._sweeps(source) for job in sweep.jobs]

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        report.text(TEXTS["efficiency"])
        written: set[str] = set()  # the worlds are the same beside every data set
        for source in sources:
            report.failures(self.jobs(source))
            for sweep in self._sweeps(source):
                measured = report.results.of_all(sweep.jobs)
                if measured and sweep.name not in written:
                    written.add(sweep.name)
                    self._write_sweep(report, sweep, measured)
            if times := [entry for entry in self.times if entry.data == source.name]:
                rows = [[STAGES[entry.stage], italic(f"{entry.seconds:,.1f}")] for entry in times]
                report.table(["stage", "seconds"], rows, 1, f"{source.name}: published")
                if notes := dict.fromkeys(entry.note for entry in times if entry.note):
                    report.items(notes)

    def _sweeps(self, source: Source) -> list[_Sweep]:
        return [sweep for each in self.methods for sweep in self._sweeps_of(source, each)]

    def _sweeps_of(self, source: Source, method: Method) -> list[_Sweep]:
        first = MeasurementJob(source, method, self.length, max(self.threads, default=1))
        title = f"{source.name}, {method.name}"
        name = f"{file_name_part(source.name)}-{file_name_part(method.name)}"
        fixed = f"rules of length ≤ {self.length}"
        lengths = tuple(replace(first, length=length) for length in sorted(self.lengths))
        threads = tuple(replace(first, threads=count) for count in sorted(self.threads))
        sources = (world_source(WorldSize(size)) for size in sorted(self.sizes))
        worlds = tuple(replace(first, source=source) for source in sources)
        if len(threads) == 1:  # the other sweeps use that count
            threads = ()
        world, of_worlds = f"world-{file_name_part(method.name)}", f"bundled worlds, {method.name}"
        sweeps = (
            (f"{name}-lengths", f"{title}: by length of rules", "length", lengths),
            (f"{name}-threads", f"{title}: by threads, {fixed}", "threads", threads),
            (f"{world}-sizes", f"{of_worlds}: by size, {fixed}", "facts", worlds),
        )
        return [_Sweep(*sweep) for sweep in sweeps if sweep[-1]]

    def _write_sweep(self, report: Report, sweep: _Sweep, measured: Sequence[Result]) -> None:
        report.heading(sweep.title, 3)
        lines, x_name = _lines(sweep, measured), TEXTS["axes"][sweep.key]
        draw = partial(draw_lines, lines, x_name, "seconds", x_log=True, y_log=True)
        caption = f"{sweep.title}: seconds of each stage, measured and predicted (faint)"
        report.chart(f"{self.name}-{sweep.name}", draw, caption)
        header = ["stage", *(f"{result[sweep.key]:,}" for result in measured)]
        seconds = []
        memory = [["before any", *(_integer_text(each["megabytes_before"]) for each in measured)]]
        for stage, label in STAGES.items():
            if any(stage in result["seconds"] for result in measured):
                times = (_seconds_text(result["seconds"].get(stage)) for result in measured)
                peaks = (_integer_text(result["megabytes"].get(stage)) for result in measured)
                seconds.append([label, *times])
                memory.append([label, *peaks])
        seconds.append(["rules", *(f"{result['rules']:,}" for result in measured)])
        report.table(header, seconds, 1, f"seconds, by {x_name}")
        report.table(header, memory, 1, "peak memory during a stage, MB")


def _expected(stage: str, result: Result, key: str) -> float:
    """Return the expected seconds up to a factor: as Appendix C gives, or 1 / threads."""
    if key == "threads":
        return 1.0 / float(result["threads"])
    length, rules = result["length"], result["rules_of_one_head"]
    count = result["queries"] if stage in ("application", "scoring") else result["positives"]
    if stage in ("search", "application"):
        return float(count * rules * (length * result["facts"] + length**2))
    return float(count * length * rules)


def _lines(sweep: _Sweep, measured: Sequence[Result]) -> list[Line]:
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
    return f"{value:.2f}" if value is not None and value < 10 else _integer_text(value)


def _integer_text(value: float | None) -> str:
    return f"{value:,.0f}" if value else ""
