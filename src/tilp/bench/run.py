"""Run a plan: the jobs that have no result yet, several at a time, and then the report."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import groupby, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

from tilp.bench.experiments import Experiment
from tilp.bench.jobs import Advance, Failed, Job, Result, Results, Store, Workspace, merge_jobs
from tilp.bench.overview import write_overview
from tilp.bench.plan import Plan
from tilp.bench.report import Report
from tilp.bench.sources import Source
from tilp.errors import TilpError, TilpWarning
from tilp.io.folders import held
from tilp.parallel import thread_count


class Watcher(Protocol):
    """Receives the progress of a plan."""

    def begins(self, job: Job) -> None:
        """A job begins."""

    def advances(self, stage: str, share: float) -> None:
        """A share of a stage is done."""

    def ends(self, job: Job, outcome: str, number: int, count: int) -> None:
        """Job `number` of `count` has ended: `run` now, `kept` from before, or why it failed."""


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
    with held(out):
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
        write_overview(report, plan, sources, results, command)
        for experiment in plan.experiments:
            _write_section(report, experiment, sources, results, refused)
        page, text = report.write(out)
    return Outcome(page, text, results, ran, tuple(report.missing_charts))


def _claim(out: Path) -> None:
    """Make the folder of reports, or refuse a folder of something else."""
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / "runs").is_dir()):
        raise TilpError(f"{out} holds something that is no report; choose another folder")
    (out / "runs").mkdir(parents=True, exist_ok=True)


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


Ended = tuple[Job, Result | Failed, bool]  # a job, its result, and whether it was run now


def run_jobs(
    jobs: Sequence[Job], store: Store, threads: int, processes: int, watcher: Watcher | None = None
) -> Iterator[Ended]:
    """Yield each job with its result as it ends; with several processes, that many at a time."""
    if processes > 1:
        side_by_side = (job for job in jobs if not job.alone)
        yield from _run_in_processes(side_by_side, store, threads, processes)
    for job in jobs:
        if job.alone or processes == 1:
            if watcher is not None:
                watcher.begins(job)
            yield _run_job(job, store, threads, _ignore if watcher is None else watcher.advances)


def _run_in_processes(
    jobs: Iterable[Job], store: Store, threads: int, processes: int
) -> Iterator[Ended]:
    threads = max(1, threads // processes)
    ordered = sorted(jobs, key=lambda job: job.group)
    # The first job of a group makes the model that the others use: they run one after the other.
    groups = (list(group) for _, group in groupby(ordered, lambda job: job.group))
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        under_way: dict[Future[Ended], list[Job]] = {}

        def begin(group: list[Job]) -> None:
            under_way[pool.submit(_run_quietly, group[0], store, threads)] = group[1:]

        for group in islice(groups, processes):
            begin(group)
        try:
            while under_way:
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    if following := under_way.pop(future) or next(groups, []):
                        begin(following)
                    yield future.result()
        except BrokenProcessPool as failure:
            raise TilpError(
                "the process of a run ended by itself, perhaps for lack of memory; run the same "
                "command again with fewer runs at a time: finished runs are kept"
            ) from failure
        finally:
            pool.shutdown(cancel_futures=True)


def _run_quietly(job: Job, store: Store, threads: int) -> Ended:
    with warnings.catch_warnings():
        # Warnings about the data came when the plan began.
        warnings.simplefilter("ignore", TilpWarning)
        return _run_job(job, store, threads, _ignore)


def _ignore(_stage: str, _share: float) -> None:
    """Ignore the progress of a job."""


def _run_job(job: Job, store: Store, threads: int, advance: Advance) -> Ended:
    """Return the result of a job from the store, or run it."""
    try:
        key = job.key()
        result = store.load(job, key)
        if result is not None:
            return job, result, False
        folder = store.work(job, key)
        workspace = Workspace(folder, store.shared, threads, advance)
        result = store.save(job, key, job.run(workspace))
        store.clear(folder)
    except TilpError as failure:
        return job, Failed(job.name, str(failure)), False
    return job, result, True
