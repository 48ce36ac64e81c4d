"""`tilp fit` and `tilp update`: learn a model, and add new facts to it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from tilp import types
from tilp.cli import console, options
from tilp.cli.console import output, print_json, print_warning, say
from tilp.errors import TilpError

if TYPE_CHECKING:
    from tilp.graph import TemporalGraph
    from tilp.model import TILP
    from tilp.model.update import UpdateReport

_STAGES = {
    "mine": "find rules",
    "apply": "apply them to train",
    "select": "keep few, distinct ones",
    "train": "learn their weights",
    "features": "learn features",
    "stack": "weigh both on facts left out",
    "time": "learn when facts start and end",
    "fit": "learn from train, day by day",
    "count": "count the new facts",
}
_FEW_FACTS = 200
_COST_STAGES = {"read": "read the facts", **_STAGES}


def fit_command(
    data: options.DataArgument,
    out: options.OptionalOutFolderOption = None,
    task: Annotated[types.Task, Option()] = types.Task.COMPLETE,
    preset: Annotated[types.Preset, Option()] = types.Preset.DEFAULT,
    max_length: Annotated[int | None, Option(min=1, max=5, show_default="3; paper: 5")] = None,
    features: Annotated[types.Features | None, Option(show_default="full")] = None,
    weights: Annotated[types.Weights | None, Option(show_default="free; paper: attention")] = None,
    missing: Annotated[types.Missing | None, Option(show_default="point; paper: duration")] = None,
    only_earlier: Annotated[bool, Option("--only-earlier")] = False,
    grain: options.GrainOption = None,
    min_support: options.MinSupportOption = 2,
    top: Annotated[int | None, Option(min=1, show_default="300; paper: 3000")] = None,
    time_model: Annotated[bool, Option("--time-model/--no-time-model")] = True,
    rules: Annotated[Path | None, Option()] = None,
    also_mine: Annotated[bool, Option("--also-mine")] = False,
    effort: Annotated[types.Effort | None, Option(show_default="normal; paper: thorough")] = None,
    share: Annotated[float, Option(min=0.0, max=1.0)] = 1.0,
    sample: options.SampleOption = None,
    limit: Annotated[
        int | None, Option(min=1, show_default="3000; quick: 1000; thorough: 1000000")
    ] = None,
    threads: options.ThreadsOption = None,
    memory: options.OptionalMemoryOption = None,
    backend: options.BackendOption = types.Backend.THREADS,
    address: options.AddressOption = None,
    seed: options.SeedOption = 0,
    read: options.ReadOptions = options.READ,
    dry_run: Annotated[bool, Option("--dry-run")] = False,
    json: Annotated[bool, Option("--json", help="With --dry-run: print JSON.")] = False,
) -> None:
    """Mine rules from the training facts of DATA, and learn weights for rules and features.

    The valid split decides when to stop; without one, a tenth of train does. If the command is
    stopped or killed, running it again resumes, and gives the same model.

    Args:
        task: What the model is for. complete: missing facts at any time; forecast: what comes next,
            by how long ago and how often things happened. The options about rules and features are
            of complete alone.
        preset: Defaults of the options that are not given. paper: the system of the paper (length
            5, pairs, attention, its features, missing dates by duration).
        max_length: Greatest length of rules. Longer rules reach further and take much longer.
        features: Temporal features that are added to the rules. none: rules alone; paper:
            recurrence, order and time between relations; full: candidate history at the query's
            dates, evidence of rules together, and random walk scores.
        weights: How the weight of a rule is learned. free: a parameter of its own, regularised
            towards the rule's confidence; attention: as in the paper, shared between rules.
        missing: How to impute a missing start or end, in facts and in queries. point: the known
            date; duration: as in the paper, a draw from the lengths of the relation's facts; open:
            no bound on that side.
        only_earlier: Learn and answer with facts that started before the query's start alone; ends
            from then on are not known. For queries about a time that the data do not reach.
        top: Most rules to keep for a relation and direction. Most relations keep far fewer: a rule
            must explain answers that the others do not.
        time_model: Learn when facts start and end, too, for tilp when.
        rules: Learn weights for the rules of this file, and mine none: JSON lines as tilp mine and
            tilp rules --out write them, or one rule a line, with # before comments.
        also_mine: With --rules: mine rules too. Given rules all stay.
        effort: Facts to learn from in a large graph, of all relations together: normal at most
            50,000, quick 5,000, thorough all. All facts are walked on. It also sets --limit.
        share: Learn from this share of the training facts; walks still use all of them.
        limit: Steps that walks may take from one entity along one chain of relations. Beyond it,
            walks are sampled.
        dry_run: Estimate time and memory of each stage from samples of the work. Writes nothing;
            needs no --out.
    """
    from tilp._utils.files import locked
    from tilp.model import TILP, ForecastRules

    forecast = task is types.Task.FORECAST
    if forecast and (dry_run or rules is not None):
        raise TilpError("--task forecast takes neither --dry-run nor --rules; it fits in a minute")
    if json and not dry_run:
        raise TilpError("--json is what --dry-run prints; a fit writes a model to --out")
    if also_mine and rules is None:
        raise TilpError("--also-mine goes with --rules, a file of rules")
    form = {"max_length": max_length, "temporal_detail": grain or None, "max_rules": top}
    mining = {"effort": effort, "min_support": min_support, "sample": sample, "walk_limit": limit}
    parts = {"features": features, "only_earlier": only_earlier, "time_model": time_model}
    learning = {"rule_weights": weights, "missing": missing, "share": share, "random_state": seed}
    running = {"n_jobs": threads, "memory": memory, "backend": backend, "address": address}
    if forecast:
        model: TILP = ForecastRules(
            random_state=seed, n_jobs=threads, memory=memory, backend=backend, address=address
        )
    else:
        model = TILP.from_options(preset, **form, **mining, **parts, **learning, **running)
    read_facts = partial(read.read, data)
    if dry_run:
        _show_cost(model, read_facts, json=json)
        return
    if out is None:
        raise TilpError("give a folder for the model, --out; or see what it takes, --dry-run")
    out = out.resolve()
    with locked(out, beside=True):
        _fit(model, read_facts, out, rules, also_mine)


def _fit(
    model: TILP, read: Callable[[], TemporalGraph], out: Path, rules: Path | None, also_mine: bool
) -> None:
    """Fit a model and save it; go on from what a stopped fit left."""
    work = out.with_name(f"{out.name}.unfinished")
    if out.exists() and any(out.iterdir()):
        if not work.exists():
            raise TilpError(f"{out} is not empty: choose another folder or remove it")
        shutil.rmtree(work)  # the model was saved, and the fit killed before it could clean up
        output().print(f"{out} is finished")
        return
    graph = read()
    if (n_facts := len(graph.targets)) < _FEW_FACTS:
        say(f"note: {n_facts:,} training facts are few: most rules rest on a handful of them, and "
            "ranks are hints at best")  # fmt: skip
    if not len(graph.rows("test")):
        say("there is no test split; to make one: tilp split DATA --out FOLDER --kind random")
    if work.exists():
        print_warning(f"going on where {work} stopped")
    if model.forecasts:
        with console.stage_bars(_STAGES) as advance:
            model.fit(graph, progress=advance)
        model.save(out)
        output().print(f"{out}: {model!r}\n{_STAGES['fit']} {model.seconds['fit']:.1f} s")
        return
    with console.resume_hint(work):
        fit_with_progress(model, graph, work, rules=rules, also_mine=also_mine)
    model.save(out)
    shutil.rmtree(work)
    seconds = ", ".join(f"{_STAGES[stage]} {spent:.1f} s" for stage, spent in model.seconds.items())
    output().print(f"{out}: {model!r}")
    output().print(f"{seconds}; {len(model.curve.train)} gradients")


def fit_with_progress(
    model: TILP, graph: TemporalGraph, work: Path | None = None, rules: Path | None = None,
    also_mine: bool = False,
) -> None:  # fmt: skip
    """Fit a model, with a progress bar for each stage."""
    with console.stage_bars(_STAGES) as advance:
        model.fit(graph, rules=rules, also_mine=also_mine, folder=work, progress=advance)
    mining = model.settings.mining
    if mining.sample is not None:
        say(
            f"learned from at most {mining.sample:,} facts of each relation, of "
            f"{len(graph.targets):,} in all; --effort thorough learns from all"
        )


def _show_cost(model: TILP, read: Callable[[], TemporalGraph], *, json: bool) -> None:
    """Estimate the cost of fitting a model, and print it."""
    from tilp.cost_estimate import estimate_cost
    from tilp.parallel import thread_count

    started = time.process_time()
    graph = read()
    reading, threads = time.process_time() - started, thread_count(model.n_jobs)
    with console.task_bar("fit small samples") as advance:
        estimate = estimate_cost(
            graph, model.settings_for(graph), threads=threads, memory=model.memory,
            reading=reading, progress=advance,
        )  # fmt: skip
    if json:
        print_json(estimate.to_json())
        return
    rows = [
        (
            _COST_STAGES[stage.name],
            f"{stage.cpu:,.1f}",
            f"{(estimate.before + stage.peak) / 1e6:,.0f}",
        )
        for stage in estimate.stages
    ]
    title, figures = "estimated cost of the fit; nothing was written", ("CPU s", "peak MB")
    table = console.make_table(title, ("stage", *figures), rows, right=figures)
    table.add_section()
    table.add_row("all", f"{estimate.cpu:,.1f}", f"{estimate.peak / 1e6:,.0f}")
    facts, of = estimate.sample
    output().print(
        table,
        f"Estimated from fits of up to {facts:,} of {of:,} facts.",
        *(f"Warning: {warning}" for warning in estimate.warnings),
        sep="\n",
    )


def update_command(
    model: options.ModelArgument,
    new_facts: Annotated[Path, Argument(metavar="NEW_FACTS")],
    out: options.OptionalOutFolderOption = None,
    in_place: Annotated[bool, Option("--in-place")] = False,
    dry_run: Annotated[bool, Option("--dry-run")] = False,
    labels: Annotated[types.ByLabel, Option()] = types.ByLabel.REFUSE,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = types.Backend.THREADS,
    address: options.AddressOption = None,
    read: options.ReadOptions = options.READ,
) -> None:
    """Add new facts to the graph of a model, and refresh what depends on them.

    Names are looked up by id, then by key; all others are new, and listed. Facts that the model
    has already are counted, not added. A new fact that shares one date with a fact in the model,
    and gives the other, which was unknown, estimated or open, replaces that fact. Rules for
    relations with new facts, and for those that they predict, are mined and counted again; all
    others stay exactly as they are. Weights stay; a new rule gets its weight from its confidence.
    Columns and dates are read as those of the model's data were, where no option says otherwise.

    A forecaster counts the new facts, and keeps its weights.

    MODEL stays untouched until the updated one is completely written. An example:
    tilp update model new.csv --out model-2, or first with --dry-run

    Args:
        new_facts: Facts in any form that tilp fit takes as DATA. Each split of a folder is added to
            the model's split of that name; a file is added to train.
        in_place: Replace MODEL, once the updated model is completely written.
        dry_run: Only report how the facts would be merged.
        labels: If a name is no id or key of the model, but equals a label. refuse: an error; match:
            it is what has that label; new: it is something new.
    """
    from tilp._utils.files import locked
    from tilp.graph import merge_facts
    from tilp.model.update import UpdateReport

    if (out is not None) + in_place != 1 and not (dry_run and out is None):
        raise TilpError("give one of --out FOLDER, --in-place and --dry-run")
    folder = (out or model).resolve()
    # From before the model is read: nothing that another adds meanwhile is lost.
    is_locked = not dry_run and (out is not None or (in_place and model.parent.exists()))
    with locked(folder, beside=True) if is_locked else nullcontext():
        if is_locked and out is not None and out.exists() and any(out.iterdir()):
            raise TilpError(f"{out} is not empty: choose another folder or remove it")
        fitted = options.load_model(model, threads, backend, address)
        unit = _unit(new_facts, read.unit, fitted.graph.unit)
        facts = replace(read, unit=unit).read(new_facts, like=fitted.graph)
        if dry_run:
            merged = merge_facts(fitted.graph, facts, labels=labels)
            _print_report(UpdateReport.of(fitted.graph, merged), None, json=json)
            return
        stages = {"count": _STAGES["count"]}
        if not fitted.forecasts:
            names = ("mine", "apply", "select") if fitted.settings.select else ("mine",)
            stages = {name: _STAGES[name] for name in names}
            if fitted.settings.features is types.Features.PAPER:
                stages["features"] = "refresh features"
        try:
            with console.stage_bars(stages) as advance:
                updated = fitted.update(facts, labels=labels, progress=advance)
        except KeyboardInterrupt:
            raise TilpError(f"stopped; {model} is unchanged") from None
        report = updated.last_update
        assert report is not None
        if out is not None or report.anything:
            updated.save(folder, replace=in_place)
        _print_report(report, folder, json=json)
        if not json:
            output().print(f"{folder}: {updated!r}")


def _unit(new_facts: Path, unit: types.Unit | None, model_unit: types.Unit) -> types.Unit:
    """Return the unit to read new facts in."""
    from tilp.io.tables import read_note

    noted, _ = read_note(new_facts)
    if unit is None and noted is not None and noted is not model_unit:
        raise TilpError(
            f"{new_facts}: times count {noted.value}s, as noted in graph.json, and "
            f"{model_unit.value}s in the model; --unit {model_unit.value} reads their dates as such"
        )
    return unit or model_unit


def _print_report(report: UpdateReport, folder: Path | None, *, json: bool) -> None:
    """Print what was done; without a folder, how the facts would be merged."""
    if json:
        written = None if folder is None else str(folder)
        print_json({**asdict(report), "model": written})
        return
    for line in report.of_facts() if folder is None else str(report).splitlines():
        output().print(line)
