"""The command `tilp bench`: run the experiments of a plan, and report them."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import output, print_warning, progress_bar, resume_hint, say
from tilp.cli.options import ThreadsOption
from tilp.errors import TilpError

if TYPE_CHECKING:
    from rich.progress import Progress

    from tilp.bench import Job


def bench_command(
    plan: Annotated[
        str | None,
        typer.Argument(
            metavar="PLAN",
            show_default=False,
            help="A TOML file, or the name of a plan that comes with tilp: see --list.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]…",
            show_default=False,
            help="Files or folders of facts, or names of published sets (tilp datasets list). "
            "Default: the bundled world.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="REPORT",
            show_default=False,
            help="Folder of the report and of the results. Runs that have a result are not run "
            "again; several plans may share a folder, one after the other.",
        ),
    ] = None,
    threads: ThreadsOption = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            min=1,
            help="Count of runs at a time, which share the threads. Much faster for many small "
            "runs, but the seconds of a single run then mean less.",
        ),
    ] = 1,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            "--rounds",
            min=1,
            show_default="as the plan says",
            help="Count of runs of each method, each with a seed of its own.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="EXPERIMENT",
            show_default="all",
            help="An experiment of the plan, by its name; repeatable.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs, and run nothing.")
    ] = False,
    list_plans: Annotated[
        bool, typer.Option("--list", help="List the plans that come with tilp, and stop.")
    ] = False,
) -> None:
    """Run the experiments of a PLAN on DATA, the paper's or your own, and write a report.

    A plan says which methods are compared, in which settings, under which protocols, with how many
    seeds. The result of every run is a file, so a plan that was stopped continues where it was. The
    report is Markdown and HTML, with tables, charts (they need tilp[plot]), the command, versions
    and fingerprints of the data. Example: tilp bench quick --out report
    """
    from tilp.bench import (
        Source,
        find_source,
        load_plan,
        plan_jobs,
        run_plan,
        shipped_plans,
        world_source,
    )

    console = output()
    if list_plans:
        for name, shipped in shipped_plans().items():
            experiments = ", ".join(experiment.name for experiment in shipped.experiments)
            console.print(f"{name:12}{shipped.title} ({experiments})")
        return
    if plan is None:
        raise TilpError("name a PLAN: a TOML file, or one of those that tilp bench --list names")
    chosen = load_plan(plan).narrowed(seeds, tuple(only or ()))
    sources: list[Source] = [find_source(name) for name in data or ()]
    sources = sources or [world_source(chosen.world)]
    if dry_run:
        planned, refused = plan_jobs(chosen, sources)
        for job in planned:
            console.print(job.name)
        for where, reason in refused.items():
            print_warning(f"{where}: {reason}")
        return
    if out is None:
        raise TilpError("name the folder of the report: --out REPORT")
    command = shlex.join(["tilp", *sys.argv[1:]])
    with resume_hint(out), progress_bar() as bar:
        done = run_plan(
            chosen,
            sources,
            out,
            threads=threads,
            side_by_side=jobs,
            command=command,
            watcher=_ProgressBars(bar),
        )
    failed = done.results.failed
    for failure in failed.values():
        print_warning(f"{failure.job}: {failure.reason}")
    if done.missing_charts:
        charts = f"{len(done.missing_charts)} charts are missing from the report"
        print_warning(f'{charts}; to draw them: pip install "tilp[plot]"')
    count = len(done.results)
    and_failed = f"; {len(failed)} more failed" if failed else ""
    console.print(f"{count} runs, {done.ran} of them now{and_failed}; {done.page} and {done.text}")
    if failed or not count:
        raise typer.Exit(1)


class _ProgressBars:
    """A bar over all runs, with the stage of the present one; and a line for each that ended."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._all = bar.add_task("runs", total=None)
        self._stage = bar.add_task("", total=1.0)
        self._began = time.perf_counter()

    def begins(self, job: Job) -> None:
        """Show the name of the run."""
        self._began = time.perf_counter()
        self._bar.update(self._all, description=job.name)

    def advances(self, stage: str, share: float) -> None:
        """Show the progress of the stage."""
        self._bar.update(self._stage, completed=share, description=f"  {stage}")

    def ends(self, job: Job, outcome: str, position: int, count: int) -> None:
        """Print the outcome of the run, and the seconds since the one before ended."""
        self._bar.update(self._all, total=count, completed=position)
        taken = f"{time.perf_counter() - self._began:.1f} s"
        self._began = time.perf_counter()
        say(f"{position}/{count} {job.name}: {outcome}, {taken}")
