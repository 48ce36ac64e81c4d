"""`run_plan`: run what is not there yet, and write the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilp._utils.files import locked
from tilp.bench.jobs import Job, Results, Store, merged
from tilp.bench.kinds import KINDS
from tilp.bench.plans import Experiment, Plan
from tilp.bench.report.blocks import Block, Heading, Text
from tilp.bench.report.opening import opening
from tilp.bench.report.writing import write_report
from tilp.bench.side_by_side import Runner, Watcher
from tilp.bench.sources import Source
from tilp.errors import TilpError
from tilp.parallel import thread_count

__all__ = ["Outcome", "plan_jobs", "run_plan"]


@dataclass(frozen=True)
class Outcome:
    """What came of a plan.

    Attributes:
        page: the report as HTML.
        text: the same as Markdown.
        results: of the jobs.
        ran: how many jobs were run now; the others were there.
    """

    page: Path
    text: Path
    results: Results
    ran: int


def plan_jobs(plan: Plan, sources: Sequence[Source]) -> tuple[list[Job], dict[str, str]]:
    """Every job of a plan, once; and why an experiment has none on some data set, by both names.

    Raises:
        TilpError: two data sets have one name.
    """
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise TilpError(
                f"two data sets are named {name}, and runs are told apart by that name; rename "
                "one of the folders or files"
            )
    jobs: list[Job] = []
    refused = {}
    for experiment in plan.experiments:
        for source in sources:
            try:
                jobs += KINDS[experiment.kind].jobs(experiment, source)
            except TilpError as failure:
                refused[f"{experiment.name} on {source.name}"] = str(failure)
    return merged(jobs), refused


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
    """Run a plan on data sets, as far as it was not run before, and write its report.

    Args:
        plan: what to run.
        sources: on what.
        out: a folder; results that are there and of the same data, settings and version are used.
        threads: None for all; they change nothing but time.
        side_by_side: runs at a time, which share the threads.
        command: that asks for the same again, for the report.
        watcher: told how far it is.

    Raises:
        TilpError: the folder is not one of reports, cannot be written, or another process is at
            work in it.
    """
    for source in sources:
        source.fingerprint  # noqa: B018 - what cannot be read is told before anything is run
    store, results, ran = Store(out), Results(), 0
    jobs, refused = plan_jobs(plan, sources)
    _claim(out)
    runner = Runner(store, thread_count(threads), side_by_side)
    with locked(out):
        for number, (job, outcome) in enumerate(runner.run(jobs, watcher), start=1):
            ran += outcome.now
            results.add(job, outcome.found)
            if watcher is not None:
                watcher.ends(job, outcome.words, number, len(jobs))
        store.clear(store.shared)
        blocks = opening(plan, sources, results, command)
        for experiment in plan.experiments:
            blocks += _section(experiment, sources, results, refused)
        page, text = write_report(out, plan.name, plan.title, blocks)
    return Outcome(page, text, results, ran)


def _claim(out: Path) -> None:
    """Make the folder of reports, or refuse one of something else."""
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / "runs").is_dir()):
        raise TilpError(f"{out} holds something that is no report: choose another folder for it")
    (out / "runs").mkdir(parents=True, exist_ok=True)


def _section(
    experiment: Experiment,
    sources: Sequence[Source],
    results: Results,
    refused: dict[str, str],
) -> list[Block]:
    """An experiment's part of the report."""
    blocks: list[Block] = [Heading(experiment.title)]
    if experiment.about:
        blocks.append(Text(experiment.about))
    possible = []
    for source in sources:
        why = refused.get(f"{experiment.name} on {source.name}")
        if why is None:
            possible.append(source)
        else:
            blocks.append(Text(f"Not run on {source.name}: {why}."))
    if possible:
        blocks += KINDS[experiment.kind].blocks(experiment, possible, results)
    return blocks
