"""The command that gives a model new facts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.choices import (
    Backend,
    ByLabel,
    Features,
    MoreDates,
    OnError,
    Unit,
    UpdateRules,
    UpdateWeights,
)
from tilp.cli.console import output, print_json, stage_bars
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

if TYPE_CHECKING:
    from tilp.model.update_report import UpdateReport

__all__ = ["update_command"]

_STAGES = {
    "count": "count rules again",
    "mine": "find rules",
    "apply": "apply them to train",
    "train": "learn their weights on",
    "fold": "learn them from each half",
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
    weights: Annotated[
        UpdateWeights,
        typer.Option(
            "--weights",
            help="Of what is touched. keep: as they are, new rules by their confidence, in a "
            "moment; warm: learned on from there, with the features', on all facts.",
        ),
    ] = UpdateWeights.KEEP,
    rules: Annotated[
        UpdateRules,
        typer.Option(
            "--rules",
            help="Of the relations that are touched. mine: found anew, as a fit would; keep: those "
            "there are, counted again.",
        ),
    ] = UpdateRules.MINE,
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
    predicted by them, are found and counted anew; all others stay exactly as they are.

    MODEL stays as it is until the updated one is written whole, whatever happens. An example:
    tilp update model new.csv --out model-2, or first with --dry-run
    """
    from tilp.graph import join_facts
    from tilp.model.update_report import UpdateReport

    if sum((out is not None, in_place, dry_run)) != 1:
        raise TilpError("give one of --out FOLDER, --in-place and --dry-run")
    if out is not None and out.exists() and any(out.iterdir()):
        raise TilpError(f"{out} is not empty: choose another folder or remove it")
    fitted = load_model(model, threads, backend, address)
    facts = read_data(
        new_facts, _unit(new_facts, unit, fitted.graph.unit), on_error, columns, header
    )
    if dry_run:
        joined = join_facts(fitted.graph, facts, dates=dates, labels=labels)
        _tell(UpdateReport.of(fitted.graph, joined), None, json=json)
        return
    place = (out or model).resolve()
    try:
        with stage_bars(_stages(weights, rules, fitted.settings.features)) as advance:
            updated = fitted.update(
                facts, weights=weights, rules=rules, dates=dates, labels=labels, progress=advance
            )
    except KeyboardInterrupt:
        raise TilpError(f"stopped; {model} is as it was") from None
    report = updated.last_update
    assert report is not None
    if out is not None or report.anything:
        updated.save(place, replace=in_place)
    _tell(report, place, json=json)
    if not json:
        output().print(f"{place}: {updated!r}")


def _stages(weights: UpdateWeights, rules: UpdateRules, features: Features) -> dict[str, str]:
    """The stages that there will be, by name."""
    names = ["count" if rules is UpdateRules.KEEP else "mine"]
    if weights is UpdateWeights.WARM:
        names += ["apply", "train"]
        if features is Features.FULL:
            names += ["fold", "features"]
    if features is Features.PAPER:
        names.append("features")
    return {name: _STAGES[name] for name in names}


def _unit(new_facts: Path, asked: Unit | None, of_model: Unit) -> Unit:
    """The unit that new facts are read in."""
    from tilp.io.side_files import noted_unit

    noted = noted_unit(new_facts)
    if asked is None and noted is not None and noted is not of_model:
        raise TilpError(
            f"{new_facts}: times count {noted.value}s, as noted in graph.json, and {of_model.value}"
            f"s in the model; --unit {of_model.value} reads their dates as such"
        )
    return asked or of_model


def _tell(report: UpdateReport, place: Path | None, *, json: bool) -> None:
    """What was done; without a place, what would be done with facts."""
    if json:
        print_json({**asdict(report), "model": None if place is None else str(place)})
        return
    for line in report.of_facts() if place is None else str(report).splitlines():
        output().print(line)
