"""Run a plan on data sets, and write its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilp._utils.files import locked
from tilp._utils.versions import version_report
from tilp.bench.experiments import Experiment
from tilp.bench.experiments.base import RankedExperiment
from tilp.bench.jobs import Failed, Job, Results, Store, Watcher, merge_jobs, run_jobs
from tilp.bench.plan import Plan
from tilp.bench.report import Report
from tilp.bench.sources import Source
from tilp.errors import TilpError
from tilp.graph import SPLITS
from tilp.parallel import thread_count
from tilp.types import Protocol

_PROTOCOLS = {
    Protocol.ENUMERATE: "for each instant of the query's interval, the other answers of facts of "
    "any split that hold then are removed; the rank is the mean over the instants",
    Protocol.EXACT: "other answers with the same start and end are removed",
    Protocol.OVERLAP: "other answers whose interval touches the query's are removed",
    Protocol.STATIC: "all other answers are removed, whenever they hold",
    Protocol.RAW: "no other answer is removed",
    Protocol.TILP_RELEASE: "as the code released with the paper ranks: the share of the query's "
    "interval that train facts of better candidates cover is subtracted; best ties",
}
_READING = (
    "Every fact of the split is a query in both directions, and every entity is a candidate. Train "
    "alone is evidence unless the setting says otherwise; hyperparameters are chosen on valid. MRR "
    "is the mean of 1/rank, hits@k the share of ranks up to k. ± is the standard deviation over "
    "seeds, which are 0 and on; without it, there was one run. The best of our methods is bold in "
    "each column, or the best of all if none is ours; the others are baselines to compare with. "
    "Published results are in italics, beside the protocol that is nearest to theirs."
)
_TIES = (
    "Ties: best is 1 + the candidates that score higher, worst 1 + the others that score at least "
    "as high, average the mean of the two."
)
_DIGITS = 16  # of a fingerprint


@dataclass(frozen=True)
class Outcome:
    """The outcome of a plan.

    Attributes:
        page: The report as HTML.
        text: The report as Markdown.
        results: Results of the jobs.
        ran: Count of jobs that were run now; the others had results.
        missing_charts: Charts that could not be drawn without matplotlib.
    """

    page: Path
    text: Path
    results: Results
    ran: int
    missing_charts: tuple[str, ...] = ()


def plan_jobs(plan: Plan, sources: Sequence[Source]) -> tuple[list[Job], dict[str, str]]:
    """Return every job of a plan, once.

    Args:
        plan: The plan.
        sources: Data sets, with distinct names.

    Returns:
        The jobs; and why an experiment has none on some data set, by the names of both.

    Raises:
        TilpError: Two data sets have one name.
    """
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise TilpError(
                f"two data sets are named {name}, and that name identifies their runs; rename one "
                "of the folders or files"
            )
    jobs: list[Job] = []
    refused = {}
    for experiment in plan.experiments:
        for source in sources:
            try:
                jobs += experiment.jobs(source)
            except TilpError as failure:
                refused[f"{experiment.name} on {source.name}"] = str(failure)
    return merge_jobs(jobs), refused


def run_plan(
    plan: Plan,
    sources: Sequence[Source],
    out: Path,
    *,
    threads: int | None = None,
    side_by_side: int = 1,
    command: str = "",
    watcher: Watcher | None = None,
) -> Outcome:
    """Run a plan on data sets, and write its report.

    Results of earlier runs with the same data, settings and version are used again.

    Args:
        plan: The plan.
        sources: Data sets to run it on.
        out: Folder of the report and of the results.
        threads: Count of threads; by default all. Results do not depend on it.
        side_by_side: Count of runs at a time, which share the threads. Default 1.
        command: Command that runs the same again, for the report.
        watcher: Receives the progress.

    Raises:
        TilpError: The folder holds something else, cannot be written, or another process uses it.
    """
    for source in sources:
        source.fingerprint  # noqa: B018 - unreadable data raise an error before anything is run
    store, results, ran = Store(out), Results(), 0
    jobs, refused = plan_jobs(plan, sources)
    _claim(out)
    with locked(out):
        ended = run_jobs(jobs, store, thread_count(threads), side_by_side, watcher)
        for number, (job, result, is_new) in enumerate(ended, start=1):
            ran += is_new
            results.add(job, result)
            if watcher is not None:
                outcome = "run" if is_new else "kept"
                outcome = result.reason if isinstance(result, Failed) else outcome
                watcher.ends(job, outcome, number, len(jobs))
        store.clear(store.shared)
        report = Report(plan.name, plan.title)
        _write_overview(report, plan, sources, results, command)
        for experiment in plan.experiments:
            _write_section(report, experiment, sources, results, refused)
        page, text = report.write(out)
    return Outcome(page, text, results, ran, tuple(report.missing_charts))


def _claim(out: Path) -> None:
    """Make the folder of reports, or refuse a folder of something else."""
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / "runs").is_dir()):
        raise TilpError(f"{out} holds something that is no report; choose another folder")
    (out / "runs").mkdir(parents=True, exist_ok=True)


def _write_overview(
    report: Report, plan: Plan, sources: Sequence[Source], results: Results, command: str
) -> None:
    """Write what comes before the first experiment."""
    report.heading(plan.title, 1)
    if plan.about:
        report.text(plan.about)
    report.code(command)
    days = sorted({result["finished"][:10] for result in results})
    period = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
    measured = f"Measured {period}" if days else "Nothing was measured"
    report.text(f"{measured}. Every run is a file in the folder runs, beside this report.")
    _write_data(report, sources)
    methods = {
        runs.method.name: runs.method.about
        for experiment in plan.experiments
        for runs in experiment.methods
    }
    report.table(["method", "what it is"], list(methods.items()), 2)
    with report.folded("How to read it"):
        report.text(_READING)
        protocols = dict.fromkeys(
            ranking.protocol
            for experiment in plan.experiments
            if isinstance(experiment, RankedExperiment)
            for ranking in experiment.figures
        )
        if protocols:
            report.items(f"{protocol.value}: {_PROTOCOLS[protocol]}" for protocol in protocols)
        report.text(_TIES)
    with report.folded("Versions and machine"):
        report.code(version_report())


def _write_data(report: Report, sources: Sequence[Source]) -> None:
    rows = []
    for source in sources:
        graph = source.graph
        counts = [len(graph.rows(split)) for split in SPLITS]
        counts += [len(graph.entities), len(graph.relations), len(graph.defects)]
        words = [source.name, graph.unit.value, source.fingerprint[:_DIGITS]]
        rows.append([*words, *(f"{count:,}" for count in counts)])
    header = ["data", "unit", "fingerprint", *SPLITS, "entities", "relations", "date defects"]
    report.table(header, rows, 3)


def _write_section(
    report: Report,
    experiment: Experiment,
    sources: Sequence[Source],
    results: Results,
    refused: dict[str, str],
) -> None:
    report.heading(experiment.title)
    if experiment.about:
        report.text(experiment.about)
    possible = []
    for source in sources:
        reason = refused.get(f"{experiment.name} on {source.name}")
        if reason is None:
            possible.append(source)
        else:
            report.text(f"Not run on {source.name}: {reason}.")
    if possible:
        experiment.write(report, possible, results)
