"""Seconds and memory of each stage of a fit and its answers: Appendix C of the paper.

    python benchmarks/efficiency.py [DATA …] --out REPORT [--only threads|sizes|lengths]

By threads, by the size of the graph (bundled worlds, which keep their density as they grow) and by
the length of rules. DATA are files or folders of facts, or names of published sets; by default a
bundled world. So that rules of length 5 are reached soon, the model learns from a tenth of the
training facts where the length varies, and from a quarter where threads do. All facts stay in the
graph, and all of valid is asked. REPORT is a folder as `tilp bench` writes it: a measurement that
has a result is not made again.
"""

import argparse
import shlex
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tilp._utils.files import file_name_part, unique_file_name
from tilp._utils.memory import forget_peak, peak_megabytes
from tilp.bench import Plan, Source, WorldSize, find_source, run_plan, world_source
from tilp.bench.experiment import Experiment
from tilp.bench.jobs import Job, Result, Workspace
from tilp.bench.methods import METHODS, Method
from tilp.bench.report import Report, italic
from tilp.datasets import world
from tilp.errors import TilpError, TilpWarning
from tilp.features.paper.features import PaperFeatures, walked_relations
from tilp.graph import QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.parallel import Workers
from tilp.time.imputation import MissingDates
from tilp.viz.charts import Line, Point, draw_lines
from tilp.walks.mining import target_facts

STAGES = {  # in the order of tables
    "search": "rule search",
    "arriving": "rules applied to train",
    "training": "training of rule weights",
    "distributions": "temporal distributions",
    "features": "training of features",
    "application": "rules applied to valid",
    "scoring": "feature scoring on valid",
}
AXES = {"length": "largest length of rules", "threads": "threads", "facts": "training facts"}
ABOUT = """
Each measurement is a process of its own. Everything ran once before on a small world, so that \
compilation is not counted. Memory is the peak of the whole process during a stage. Faint lines \
are the growth that the paper's Appendix C gives, drawn through the first measurement: \
N_pos N_rule (L |G| + L²) for search and N_qry N_rule (L |G| + L²) for application, N_pos L N_rule \
for distributions and N_qry L N_rule for scoring, where N_rule is the largest count of rules of \
one relation, with one walk for each rule; over threads, 1 / threads."""
# Seconds of the paper (Appendix C): rules of length 5, 4 processors.
PUBLISHED = {
    "WIKIDATA12k": {
        "search": 1740.6,
        "distributions": 44.1,
        "application": 1522.8,
        "scoring": 1713.8,
    },
    "YAGO11k": {"search": 571.9, "distributions": 6.7, "application": 529.6, "scoring": 527.8},
}
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


@dataclass(frozen=True)
class MeasurementJob(Job):
    """One fit of a form of TILP, and its model applied to valid."""

    source: Source
    method: Method  # of any length
    length: int
    threads: int
    seed: int = 0

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


def _measure(job: MeasurementJob) -> Result:
    warnings.simplefilter("ignore", TilpWarning)  # they came when the plan began
    method, graph = job._method, job.source.graph
    warm = method.with_choices(max_length=min(job.length, _WARM_LENGTH))
    small = warm.tilp(job.seed, job.threads).set_params(time_model=False)  # the paper has none
    _stages(small, world(0, _WARM_SIZE).graph, job.threads)
    forget_peak()
    before = peak_megabytes()
    model = method.tilp(job.seed, job.threads).set_params(time_model=False)
    seconds, megabytes = _stages(model, graph, job.threads)
    heads = Counter(str(mined.rule.head) for mined in model.rules())
    return {
        "seconds": seconds,
        "megabytes": megabytes,
        "megabytes_before": before,
        "facts": len(graph.rows("train")),
        "positives": 2 * len(target_facts(graph, model.settings.mining)),
        "queries": 2 * len(graph.rows("valid")),
        "relations": len(graph.relations),
        "rules": len(model.rules()),
        "rules_of_one_head": max(heads.values()),
    }


def _stages(
    model: TILP, graph: TemporalGraph, threads: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Fit a graph and score its valid split; return the seconds and peak memory of each stage."""
    seconds, megabytes = defaultdict[str, float](float), defaultdict[str, float](float)

    def record_peak(stage: str) -> None:
        megabytes[stage] = max(megabytes[stage], peak_megabytes() or 0.0)
        forget_peak()

    def note_progress(stage: str, share: float) -> None:
        if share >= 1.0:
            record_peak(_OF_FIT[stage])

    @contextmanager
    def measured(stage: str) -> Iterator[None]:
        forget_peak()
        began = time.perf_counter()
        yield
        seconds[stage] = time.perf_counter() - began
        record_peak(stage)

    forget_peak()
    with tempfile.TemporaryDirectory() as folder:
        model.fit(graph, folder=Path(folder) / "fit", progress=note_progress)
    for stage, taken in model.seconds.items():
        seconds[_OF_FIT[stage]] += taken
    settings = model.settings
    filled = MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)
    with measured("distributions"), Workers(threads) as workers:
        relations = walked_relations(filled, model.rules())
        PaperFeatures.fit(filled, relations, settings.mining.max_length, workers=workers)
    queries = QueryTable.of_facts(graph, np.asarray(graph.rows("valid"), np.int64), walked=False)
    order = np.argsort(queries.subject, kind="stable")
    parts = [queries[order[begin : begin + _BATCH]] for begin in range(0, len(order), _BATCH)]
    scorer = model.scorer()
    with Workers(threads) as workers:
        with measured("application"):
            deque(workers.map(scorer.rule_scorer.apply_rules, parts), maxlen=0)
        with measured("scoring"):
            deque(workers.map(scorer, parts), maxlen=0)
    # Scoring applies the rules too; the rest of its time is that of the features.
    seconds["scoring"] = max(seconds["scoring"] - seconds["application"], 0.0)
    return dict(seconds), dict(megabytes)


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

    lengths: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()  # of bundled worlds, in facts
    length: int = 3  # where something else varies

    def jobs(self, source: Source) -> list[Job]:
        return [job for sweep in self._sweeps(source) for job in sweep.jobs]

    def write(self, report: Report, sources: Sequence[Source]) -> None:
        report.text(ABOUT)
        written: set[str] = set()  # the worlds are the same beside every data set
        for source in sources:
            report.failures(self.jobs(source))
            for sweep in self._sweeps(source):
                measured = report.results.of_all(sweep.jobs)
                if measured and sweep.name not in written:
                    written.add(sweep.name)
                    self._write_sweep(report, sweep, measured)
            if self.lengths and source.name in PUBLISHED:
                times = PUBLISHED[source.name].items()
                rows = [[STAGES[stage], italic(f"{seconds:,.1f}")] for stage, seconds in times]
                report.table(["stage", "seconds"], rows, 1, f"{source.name}: published")
                report.items(["rules of length 5, 4 processors (Appendix C)"])

    def _sweeps(self, source: Source) -> Iterator[_Sweep]:
        fixed = f"rules of length ≤ {self.length}"
        for method in self.methods:
            first = MeasurementJob(source, method, self.length, max(self.threads, default=1))
            lengths = tuple(replace(first, length=length) for length in sorted(self.lengths))
            threads = tuple(replace(first, threads=count) for count in sorted(self.threads))
            worlds = (world_source(WorldSize(size)) for size in sorted(self.sizes))
            sizes = tuple(replace(first, source=world) for world in worlds)
            own, title = file_name_part(method.name), f"{source.name}, {method.name}"
            name, of_worlds = file_name_part(source.name), f"bundled worlds, {method.name}"
            if lengths:
                how = f"{title}: by length of rules"
                yield _Sweep(f"{name}-{own}-lengths", how, "length", lengths)
            if len(threads) > 1:  # the other sweeps use a single count
                how = f"{title}: by threads, {fixed}"
                yield _Sweep(f"{name}-{own}-threads", how, "threads", threads)
            if sizes:
                how = f"{of_worlds}: by size, {fixed}"
                yield _Sweep(f"world-{own}-sizes", how, "facts", sizes)

    def _write_sweep(self, report: Report, sweep: _Sweep, measured: Sequence[Result]) -> None:
        report.heading(sweep.title, 3)
        lines, x_name = _lines(sweep, measured), AXES[sweep.key]
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


def plan() -> Plan:
    """Return the measurements by threads, by size and by length."""
    quarter = Method(
        "full-quarter",
        "full",
        {"share": 0.25},
        "tilp with default settings, learned from a quarter of the training facts",
    )
    tenth = Method(
        "paper-tenth",
        "paper",
        {"share": 0.1},
        "the system of the paper, learned from a tenth of the training facts",
    )
    kinds = (
        Efficiency(name="threads", title="By threads", methods=(quarter,), threads=(1, 2)),
        Efficiency(
            name="sizes",
            title="By size of the graph",
            about="Bundled worlds, which keep their density as they grow.",
            methods=(METHODS["full"],),
            sizes=(1_000, 2_000, 4_000, 8_000),
            threads=(2,),
            length=2,
        ),
        Efficiency(
            name="lengths",
            title="By length of rules",
            methods=(tenth,),
            lengths=(1, 2, 3, 4, 5),
            threads=(2,),
        ),
    )
    about = (
        "By the length of rules, by threads and by the size of the graph, against the growth that "
        "the paper's Appendix C gives. To reach rules of length 5 in reasonable time, the model "
        "learns from a tenth of the training facts where the length varies, and from a quarter "
        "where threads do. All facts stay in the graph, and all of valid is evaluated."
    )
    title = "What it costs: seconds and memory of each stage"
    return Plan("efficiency", kinds, title, about, WorldSize(3_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    given = parser.parse_args()
    chosen = plan().narrowed(only=tuple(given.only))
    sources = [find_source(name) for name in given.data] or [world_source(chosen.world)]
    command = shlex.join(["python", "benchmarks/efficiency.py", *sys.argv[1:]])
    done = run_plan(chosen, sources, given.out, command=command)
    for name, reason in done.results.failed.items():
        print(f"{name}: {reason}")
    print(f"{len(done.results.done)} runs, {done.ran} of them now; {done.page} and {done.text}")


if __name__ == "__main__":
    main()
