"""`tilp fit`: learn a model."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli import options
from tilp.cli.console import goes_on_from, output, print_warning, stage_bars
from tilp.cli.costs import STAGES, show_cost
from tilp.errors import TilpError
from tilp.types import DEFAULT_TOP, Backend, Features, Missing, OnError, Part, Preset, Weights

if TYPE_CHECKING:
    from tilp.graph import TemporalGraph
    from tilp.model import TILP


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
    top: options.TopOption = DEFAULT_TOP,
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
                f"{option} is deprecated and will be removed; use TILP(...) of Python for "
                "experiments"
            )
    model = TILP(
        max_length,
        preset=preset,
        grains=grain or None,
        weights=weights,
        features=features,
        without=without or (),
        soft_length=5 if soft_length is None else soft_length,
        missing=missing,
        min_support=min_support,
        top=top,
        share=share,
        sample=sample,
        limit=limit,
        seed=seed,
        threads=threads,
        backend=backend,
        address=address,
    )

    def read() -> TemporalGraph:
        return options.read_data(data, unit, on_error, columns, header)

    if dry_run:
        show_cost(
            model, lambda: options.read_data(data, unit, on_error, columns, header), json=json
        )
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
    with goes_on_from(work):
        fit_with_progress(model, graph, work)
    model.save(out)
    shutil.rmtree(work)
    seconds = ", ".join(f"{STAGES[stage]} {spent:.1f} s" for stage, spent in model.seconds.items())
    output().print(f"{out}: {model!r}")
    output().print(f"{seconds}; {len(model.curve.train)} gradients")


def fit_with_progress(model: TILP, graph: TemporalGraph, work: Path | None = None) -> None:
    """Fit a model, with a progress bar for each stage."""
    with stage_bars(STAGES) as advance:
        model.fit(graph, folder=work, progress=advance)
