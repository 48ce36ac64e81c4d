"""`tilp fit`: learn a model."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli import options
from tilp.cli.console import (
    make_table,
    output,
    print_json,
    print_warning,
    resume_hint,
    stage_bars,
    task_bar,
)
from tilp.errors import TilpError
from tilp.types import MAX_RULES, Backend, Features, Missing, OnError, Part, Preset, Weights

if TYPE_CHECKING:
    from tilp.cost_estimate import CostEstimate
    from tilp.graph import TemporalGraph
    from tilp.model import TILP

_STAGES = {
    "mine": "find rules",
    "apply": "apply them to train",
    "train": "learn their weights",
    "choose": "choose on valid",
    "fold": "learn them from each half",
    "features": "learn features",
}
_COST_STAGES = {"read": "read the facts", "prepare": "index them", **_STAGES}


def fit_command(
    data: options.DataArgument,
    out: options.OptionalOutFolderOption = None,
    preset: Annotated[
        Preset,
        typer.Option(
            "--preset",
            help="Defaults of the options that are not given. paper: the system of the paper "
            "(length 5, pairs, attention, its features, missing dates by duration).",
        ),
    ] = Preset.DEFAULT,
    max_length: Annotated[
        int | None,
        typer.Option(
            "--max-length",
            min=1,
            max=5,
            show_default="3; paper: 5",
            help="Greatest length of rules. Longer rules reach further and take much longer.",
        ),
    ] = None,
    features: Annotated[
        Features | None,
        typer.Option(
            "--features",
            show_default="full",
            help="Temporal features that are added to the rules. none: rules alone; paper: "
            "recurrence, order and time between relations; full: candidate history at the "
            "query's dates, evidence of rules together, and random walk scores.",
        ),
    ] = None,
    without: Annotated[list[Part] | None, typer.Option("--without", hidden=True)] = None,
    soft_length: Annotated[
        int | None, typer.Option("--soft-length", min=1, max=5, hidden=True)
    ] = None,
    weights: Annotated[
        Weights | None,
        typer.Option(
            "--weights",
            show_default="free; paper: attention",
            help="How the weight of a rule is learned. free: a parameter of its own, regularised "
            "towards the rule's confidence; attention: as in the paper, shared between rules.",
        ),
    ] = None,
    missing: Annotated[
        Missing | None,
        typer.Option(
            "--missing",
            show_default="point; paper: duration",
            help="How to impute a missing start or end, in facts and in queries. point: the known "
            "date; duration: as in the paper, a draw from the lengths of the relation's facts; "
            "open: no bound on that side; unknown: no imputation, a rule counts if it may hold.",
        ),
    ] = None,
    grain: options.GrainOption = None,
    min_support: options.MinSupportOption = 2,
    top: options.TopOption = MAX_RULES,
    share: Annotated[
        float,
        typer.Option(
            "--share",
            min=0.0,
            max=1.0,
            help="Learn from this share of the training facts; walks still use all of them.",
        ),
    ] = 1.0,
    sample: options.SampleOption = None,
    limit: options.LimitOption = 1_000_000,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
    seed: options.SeedOption = 0,
    unit: options.UnitOption = None,
    on_error: options.OnErrorOption = OnError.REPAIR,
    columns: options.ColumnsOption = None,
    header: options.HeaderOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Estimate time and memory of each stage from samples of the work. Writes "
            "nothing; needs no --out.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON.")] = False,
) -> None:
    """Mine rules from the training facts of DATA, and learn weights for rules and features.

    The valid split decides when to stop; without one, a tenth of train does. If the command is
    stopped or killed, running it again resumes, and gives the same model.
    """
    from tilp.model import TILP

    if json and not dry_run:
        raise TilpError("--json is what --dry-run prints; a fit writes a model to --out")
    for option, value in (("--without", without), ("--soft-length", soft_length)):
        if value:
            print_warning(
                f"{option} is deprecated and will be removed; use TILPConfig(...) in Python for "
                "experiments"
            )
    model = TILP.from_options(
        preset,
        max_length=max_length,
        temporal_detail=grain or None,
        rule_weights=weights,
        features=features,
        without=without or None,
        walk_length=soft_length,
        missing=missing,
        min_support=min_support,
        max_rules=top,
        share=share,
        sample=sample,
        walk_limit=limit,
        random_state=seed,
        n_jobs=threads,
        backend=backend,
        address=address,
    )

    def read() -> TemporalGraph:
        return options.read_data(data, unit, on_error, columns, header)

    if dry_run:
        _show_cost(model, read, json=json)
        return
    if out is None:
        raise TilpError("give a folder for the model, --out; or see what it takes, --dry-run")
    out = out.resolve()
    work = out.with_name(f"{out.name}.unfinished")
    if out.exists() and any(out.iterdir()):
        if not work.exists():
            raise TilpError(f"{out} is not empty: choose another folder or remove it")
        shutil.rmtree(work)  # the model was saved, and the fit killed before it could clean up
        output().print(f"{out} is finished")
        return
    graph = read()
    if work.exists():
        print_warning(f"going on where {work} stopped")
    with resume_hint(work):
        fit_with_progress(model, graph, work)
    model.save(out)
    shutil.rmtree(work)
    seconds = ", ".join(f"{_STAGES[stage]} {spent:.1f} s" for stage, spent in model.seconds.items())
    output().print(f"{out}: {model!r}")
    output().print(f"{seconds}; {len(model.curve.train)} gradients")


def fit_with_progress(model: TILP, graph: TemporalGraph, work: Path | None = None) -> None:
    """Fit a model, with a progress bar for each stage."""
    with stage_bars(_STAGES) as advance:
        model.fit(graph, folder=work, progress=advance)


def _show_cost(model: TILP, read: Callable[[], TemporalGraph], *, json: bool) -> None:
    """Estimate the cost of fitting a model, and print it."""
    from tilp.cost_estimate import estimate_cost
    from tilp.parallel import thread_count

    started = time.process_time()
    graph = read()
    reading = time.process_time() - started
    with task_bar("fit small samples") as advance:
        estimate = estimate_cost(
            graph,
            model.settings,
            threads=thread_count(model.n_jobs),
            reading=reading,
            progress=advance,
        )
    if json:
        print_json(estimate.to_json())
    else:
        _print_estimate(estimate)


def _print_estimate(estimate: CostEstimate) -> None:
    threads = estimate.threads
    figures = ("CPU time", f"{threads} thread{'s' * (threads != 1)}", "peak memory")
    rows = (
        (
            _COST_STAGES[stage.name],
            f"{_format_count(stage.amount)} {stage.unit}",
            _format_time(stage.cpu),
            _format_time(stage.seconds(threads)),
            _format_memory(estimate.before + stage.peak),
        )
        for stage in estimate.stages
    )
    title = "estimated cost of the fit; nothing was written"
    table = make_table(title, ("stage", "work", *figures), rows, right=figures)
    table.add_section()
    times = _format_time(estimate.cpu), _format_time(estimate.seconds)
    table.add_row("all", "", *times, _format_memory(estimate.peak))
    mean, most = map(_format_count, estimate.walks)
    facts, of = estimate.sample
    limited = f"{estimate.limited:,} entities" if estimate.limited else "no entity"
    share = estimate.longest.seconds(threads) / max(estimate.seconds, 1e-9)
    console = output()
    console.print(table)
    for line in (
        f"Walks from one entity: {mean} on average, {most} at most; {limited} above --limit.",
        f"Estimated from fits of up to {facts:,} of {of:,} facts.",
        f"Most of the time: {_COST_STAGES[estimate.longest.name]} ({share:.0%}).",
        *(f"Shorter: {advice}" for advice in estimate.advice),
        *(f"Warning: {warning}" for warning in estimate.warnings),
    ):
        console.print(line)


def _format_count(count: float) -> str:
    for size, word in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if count >= size:
            return f"{count / size:.3g}{word}"
    return f"{count:,.0f}"


def _format_time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86_400 else f"{seconds / 86_400:.1f} days"


def _format_memory(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if size < 1e10 else f"{size / 1e9:,.1f} GB"
