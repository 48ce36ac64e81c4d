"""The command that gives a model new facts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import output, print_json, print_warning, stage_bars
from tilp.cli.options import (
    AddressOption,
    BackendOption,
    Columns,
    Header,
    JsonOption,
    Model,
    OnErrorOption,
    ThreadsOption,
    load_model,
    read_data,
)
from tilp.errors import TilpError
from tilp.types import Backend, ByLabel, Features, MoreDates, OnError, Unit

if TYPE_CHECKING:
    from tilp.model.update import UpdateReport

_STAGES = {
    "mine": "find rules",
    "features": "refresh features",
}


def update_command(
    model: Model,
    new_facts: Annotated[
        Path,
        typer.Argument(
            metavar="NEW_FACTS",
            show_default=False,
            help="Facts in any form that tilp fit takes as DATA; of a folder each split joins the "
            "model's of that name, a file joins train.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for the updated model; new or empty.")
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place",
            help="Let the updated model take the place of MODEL, once all of it is written.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would become of the facts.")
    ] = False,
    weights: Annotated[str | None, typer.Option("--weights", hidden=True)] = None,
    rules: Annotated[str | None, typer.Option("--rules", hidden=True)] = None,
    dates: Annotated[
        MoreDates,
        typer.Option(
            "--dates",
            help="Where a new fact has one date in common with one there, and tells the other, "
            "which was unknown, estimated or open. supersede: it takes its place; both: both stay.",
        ),
    ] = MoreDates.SUPERSEDE,
    labels: Annotated[
        ByLabel,
        typer.Option(
            "--labels",
            help="What a name is that is no id or key of the model's, but reads as a label. "
            "refuse: an error; match: what has that label; new: something else of that name.",
        ),
    ] = ByLabel.REFUSE,
    json: JsonOption = False,
    threads: ThreadsOption = None,
    backend: BackendOption = Backend.THREADS,
    address: AddressOption = None,
    unit: Annotated[
        Unit | None,
        typer.Option(
            "--unit",
            show_default="the model's",
            help="What times of NEW_FACTS count; it has to be what the model's do.",
        ),
    ] = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Put new facts into the graph of a model, and refresh what they touch.

    Names are found by id, then by key; all others are new, and told. Facts that are there already
    are counted and not added again. Rules of the relations that got facts, and of those that are
    predicted by them, are found and counted anew; all others stay exactly as they are. Weights
    are kept; a new rule weighs as its confidence says.

    MODEL stays as it is until the updated one is written whole, whatever happens. An example:
    tilp update model new.csv --out model-2, or first with --dry-run
    """
    from tilp.graph import merge_facts
    from tilp.model.update import UpdateReport

    _removed("--weights", weights, "keep")
    _removed("--rules", rules, "mine")
    if sum((out is not None, in_place, dry_run)) != 1:
        raise TilpError("give one of --out FOLDER, --in-place and --dry-run")
    if out is not None and out.exists() and any(out.iterdir()):
        raise TilpError(f"{out} is not empty: choose another folder or remove it")
    fitted = load_model(model, threads, backend, address)
    facts = read_data(
        new_facts, _unit(new_facts, unit, fitted.graph.unit), on_error, columns, header
    )
    if dry_run:
        joined = merge_facts(fitted.graph, facts, dates=dates, labels=labels)
        _tell(UpdateReport.of(fitted.graph, joined), None, json=json)
        return
    place = (out or model).resolve()
    try:
        with stage_bars(_stages(fitted.settings.features)) as advance:
            updated = fitted.update(facts, dates=dates, labels=labels, progress=advance)
    except KeyboardInterrupt:
        raise TilpError(f"stopped; {model} is as it was") from None
    report = updated.last_update
    assert report is not None
    if out is not None or report.anything:
        updated.save(place, replace=in_place)
    _tell(report, place, json=json)
    if not json:
        output().print(f"{place}: {updated!r}")


def _removed(option: str, value: str | None, usual: str) -> None:
    """Warn of an option of 0.1 that asks for what is done anyway; refuse other values."""
    if value is None:
        return
    if value != usual:
        raise TilpError(f"{option} {value} was removed in 0.2; leave {option} out ({usual})")
    print_warning(f"{option} is deprecated and will be removed; {usual} is all there is")


def _stages(features: Features) -> dict[str, str]:
    """The stages that there will be, by name."""
    names = ["mine", "features"] if features is Features.PAPER else ["mine"]
    return {name: _STAGES[name] for name in names}


def _unit(new_facts: Path, asked: Unit | None, of_model: Unit) -> Unit:
    """The unit that new facts are read in."""
    from tilp.io.tables import read_unit

    noted = read_unit(new_facts)
    if asked is None and noted is not None and noted is not of_model:
        raise TilpError(
            f"{new_facts}: times count {noted.value}s, as noted in graph.json, and {of_model.value}"
            f"s in the model; --unit {of_model.value} reads their dates as such"
        )
    return asked or of_model


def _tell(report: UpdateReport, place: Path | None, *, json: bool) -> None:
    """What was done; without a place, what would be done with facts."""
    from tilp.model.update import KEYS_OF_0_1

    if json:
        print_json(
            {**asdict(report), **KEYS_OF_0_1, "model": None if place is None else str(place)}
        )
        return
    for line in report.of_facts() if place is None else str(report).splitlines():
        output().print(line)
