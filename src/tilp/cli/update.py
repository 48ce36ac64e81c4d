"""`tilp update`: add new facts to a model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli import options
from tilp.cli.console import output, print_json, print_warning, stage_bars
from tilp.errors import TilpError
from tilp.types import Backend, ByLabel, Features, MoreDates, OnError, Unit

if TYPE_CHECKING:
    from tilp.model.update import UpdateReport


def update_command(
    model: options.ModelArgument,
    new_facts: Annotated[
        Path,
        typer.Argument(
            metavar="NEW_FACTS",
            show_default=False,
            help="Facts in any form that tilp fit takes as DATA. Each split of a folder is added "
            "to the model's split of that name; a file is added to train.",
        ),
    ],
    out: options.OptionalOutFolderOption = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Replace MODEL, once the updated model is completely written."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report how the facts would be merged.")
    ] = False,
    weights: Annotated[str | None, typer.Option("--weights", hidden=True)] = None,
    rules: Annotated[str | None, typer.Option("--rules", hidden=True)] = None,
    dates: Annotated[
        MoreDates,
        typer.Option(
            "--dates",
            help="If a new fact shares one date with a fact in the model, and gives the other, "
            "which was unknown, estimated or open. supersede: replace that fact; both: keep both.",
        ),
    ] = MoreDates.SUPERSEDE,
    labels: Annotated[
        ByLabel,
        typer.Option(
            "--labels",
            help="If a name is no id or key of the model, but equals a label. refuse: an error; "
            "match: it is what has that label; new: it is something new.",
        ),
    ] = ByLabel.REFUSE,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
    unit: Annotated[
        Unit | None,
        typer.Option(
            "--unit",
            show_default="the model's",
            help="Unit of the times in NEW_FACTS; it must be the model's.",
        ),
    ] = None,
    on_error: options.OnErrorOption = OnError.REPAIR,
    columns: options.ColumnsOption = None,
    header: options.HeaderOption = None,
) -> None:
    """Add new facts to the graph of a model, and refresh what depends on them.

    Names are looked up by id, then by key; all others are new, and listed. Facts that the model
    has already are counted, not added. Rules for relations with new facts, and for those that
    they predict, are mined and counted again; all others stay exactly as they are. Weights stay;
    a new rule gets its weight from its confidence.

    MODEL stays untouched until the updated one is completely written. An example:
    tilp update model new.csv --out model-2, or first with --dry-run
    """
    from tilp.graph import merge_facts
    from tilp.model.update import UpdateReport

    _check_removed_option("--weights", weights, "keep")
    _check_removed_option("--rules", rules, "mine")
    if sum((out is not None, in_place, dry_run)) != 1:
        raise TilpError("give one of --out FOLDER, --in-place and --dry-run")
    if out is not None and out.exists() and any(out.iterdir()):
        raise TilpError(f"{out} is not empty: choose another folder or remove it")
    fitted = options.load_model(model, threads, backend, address)
    facts = options.read_data(
        new_facts, _unit(new_facts, unit, fitted.graph.unit), on_error, columns, header
    )
    if dry_run:
        merged = merge_facts(fitted.graph, facts, dates=dates, labels=labels)
        _print_report(UpdateReport.of(fitted.graph, merged), None, json=json)
        return
    folder = (out or model).resolve()
    stages = {"mine": "find rules"}
    if fitted.settings.features is Features.PAPER:
        stages["features"] = "refresh features"
    try:
        with stage_bars(stages) as advance:
            updated = fitted.update(facts, dates=dates, labels=labels, progress=advance)
    except KeyboardInterrupt:
        raise TilpError(f"stopped; {model} is unchanged") from None
    report = updated.last_update
    assert report is not None
    if out is not None or report.anything:
        updated.save(folder, replace=in_place)
    _print_report(report, folder, json=json)
    if not json:
        output().print(f"{folder}: {updated!r}")


def _check_removed_option(option: str, value: str | None, default: str) -> None:
    """Warn about an option of 0.1 with the value that remains; refuse other values."""
    if value is None:
        return
    if value != default:
        raise TilpError(f"{option} {value} was removed in 0.2; leave {option} out ({default})")
    print_warning(f"{option} is deprecated and will be removed; {default} is all there is")


def _unit(new_facts: Path, unit: Unit | None, model_unit: Unit) -> Unit:
    """Return the unit to read new facts in."""
    from tilp.io.tables import read_unit

    noted = read_unit(new_facts)
    if unit is None and noted is not None and noted is not model_unit:
        raise TilpError(
            f"{new_facts}: times count {noted.value}s, as noted in graph.json, and "
            f"{model_unit.value}s in the model; --unit {model_unit.value} reads their dates as such"
        )
    return unit or model_unit


def _print_report(report: UpdateReport, folder: Path | None, *, json: bool) -> None:
    """Print what was done; without a folder, how the facts would be merged."""
    from tilp.model.update import KEYS_OF_0_1

    if json:
        written = None if folder is None else str(folder)
        print_json({**asdict(report), **KEYS_OF_0_1, "model": written})
        return
    for line in report.of_facts() if folder is None else str(report).splitlines():
        output().print(line)
