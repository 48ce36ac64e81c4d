"""The command that makes harder splits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilp.cli.console import output
from tilp.cli.options import (
    Columns,
    Data,
    FormatOption,
    Header,
    OnErrorOption,
    UnitOption,
    read_data,
)
from tilp.errors import TilpError
from tilp.types import LateEnds, OnError, SplitKind, TableFormat, WalkGraph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from tilp.graph import TemporalGraph
    from tilp.splits.folders import Part

__all__ = ["split_command"]

_FEW, _BIASED, _TIME_SHIFT = (f"--kind {kind.value}" for kind in SplitKind)
_DRAWN = f"{_FEW} and biased"


def split_command(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="The folder to write; new or empty.")],
    kind: Annotated[
        SplitKind, typer.Option("--kind", show_default=False, help="Which harder setting.")
    ],
    share: Annotated[
        list[float] | None,
        typer.Option(
            "--share",
            metavar="SHARE",
            show_default="0.05, 0.1, 0.2, … 0.8",
            help="Of the training facts that are learned from; repeatable.",
            rich_help_panel=_FEW,
        ),
    ] = None,
    relation: Annotated[
        list[str] | None,
        typer.Option(
            "--relation",
            metavar="NAME",
            show_default="each",
            help="Whose training facts are removed; repeatable.",
            rich_help_panel=_BIASED,
        ),
    ] = None,
    removed: Annotated[
        float | None,
        typer.Option(
            "--removed",
            show_default="0.5",
            help="The share of them that is removed.",
            rich_help_panel=_BIASED,
        ),
    ] = None,
    balance: Annotated[
        bool | None,
        typer.Option(
            "--balance/--no-balance",
            show_default="balance",
            help="Whether test gets as many facts of each relation, or all splits stay.",
            rich_help_panel=_BIASED,
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries",
            min=1,
            show_default="size of test / relations",
            help="How many test facts of each relation.",
            rich_help_panel=_BIASED,
        ),
    ] = None,
    graph: Annotated[
        WalkGraph | None,
        typer.Option(
            "--graph",
            show_default="few: kept; biased: reduced",
            help="The graph to walk on. kept: training facts that are not learned from stay in "
            "train, marked 'walked_only'; reduced: they are gone.",
            rich_help_panel=_DRAWN,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            show_default="0",
            help="For what is drawn; one seed a round.",
            rich_help_panel=_DRAWN,
        ),
    ] = None,
    valid_from: Annotated[
        str | None,
        typer.Option(
            "--valid-from",
            metavar="DATE",
            show_default="as many facts as before",
            help="The first start in valid.",
            rich_help_panel=_TIME_SHIFT,
        ),
    ] = None,
    test_from: Annotated[
        str | None,
        typer.Option(
            "--test-from",
            metavar="DATE",
            show_default="as many facts as before",
            help="The first start in test.",
            rich_help_panel=_TIME_SHIFT,
        ),
    ] = None,
    latest: Annotated[
        str | None,
        typer.Option(
            "--latest",
            metavar="DATE",
            show_default="any",
            help="Starts after this date are taken for unknown, and counted.",
            rich_help_panel=_TIME_SHIFT,
        ),
    ] = None,
    ends: Annotated[
        LateEnds | None,
        typer.Option(
            "--ends",
            show_default="mask",
            help="Ends of training facts from the first start in valid on, which tell of the time "
            "that is asked for. mask: unknown; drop: without the fact; keep: as they are.",
            rich_help_panel=_TIME_SHIFT,
        ),
    ] = None,
    format: FormatOption = TableFormat.TSV,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Split DATA anew for a harder setting, as folders that every command reads.

    few: fewer training facts to learn from, as --share of tilp fit draws them; a folder for each
    share, a smaller sample part of a greater one.

    biased: a test with as many facts of each relation (folder balanced), and for each relation a
    folder in which half of its training facts are removed; the change against balanced is what
    is measured.

    time-shift: train, valid and test follow each other by start; facts without a start are in
    train.

    Names stay in every folder, so that entities which train never saw remain candidates. What was
    done stands beside the facts, in split.json: kind, seed, counts, fingerprints of DATA and of
    what was made of it. An example: tilp split DATA --out few --kind few, and then tilp fit
    few/0.05 --out model
    """
    given = {
        "--share": (share, (SplitKind.FEW,)),
        "--relation": (relation, (SplitKind.BIASED,)),
        "--removed": (removed, (SplitKind.BIASED,)),
        "--balance": (balance, (SplitKind.BIASED,)),
        "--queries": (queries, (SplitKind.BIASED,)),
        "--graph": (graph, (SplitKind.FEW, SplitKind.BIASED)),
        "--seed": (seed, (SplitKind.FEW, SplitKind.BIASED)),
        "--valid-from": (valid_from, (SplitKind.TIME_SHIFT,)),
        "--test-from": (test_from, (SplitKind.TIME_SHIFT,)),
        "--latest": (latest, (SplitKind.TIME_SHIFT,)),
        "--ends": (ends, (SplitKind.TIME_SHIFT,)),
    }
    for name, (value, kinds) in given.items():
        if value is not None and kind not in kinds:
            raise TilpError(
                f"{name} is for --kind {' or '.join(kinds)}, not {kind.value}; leave it out"
            )
    if queries is not None and balance is False:
        raise TilpError("--queries says how test is balanced; leave it out, or --no-balance")
    from tilp.splits import SHARES, time_shift
    from tilp.splits.folders import biased_parts, few_parts, time_shift_part, write_parts

    source: TemporalGraph = read_data(data, unit, on_error, columns, header)
    parts: Iterable[Part]
    match kind:
        case SplitKind.FEW:
            parts = few_parts(
                source, share or SHARES, seed=seed or 0, walked=graph or WalkGraph.FULL
            )
        case SplitKind.BIASED:
            parts = biased_parts(
                source,
                relation,
                removed=0.5 if removed is None else removed,
                queries=queries,
                balance=balance is not False,
                seed=seed or 0,
                walked=graph or WalkGraph.REDUCED,
            )
        case SplitKind.TIME_SHIFT:
            shift = time_shift(
                source,
                valid_from=valid_from,
                test_from=test_from,
                latest=latest,
                ends=ends or LateEnds.MASK,
            )
            parts = [time_shift_part(shift)]
    notes = write_parts(source, parts, out, format=format)
    console = output()
    console.print(_table(out, notes))
    if kind is SplitKind.TIME_SHIFT:
        for line in _dates_told(notes[0][1]):
            console.print(line)


def _table(out: Path, notes: list[tuple[str, dict[str, Any]]]) -> Table:
    """The size of each folder's splits."""
    from rich.table import Table

    table = Table(title=f"written to {out}", title_justify="left")
    table.add_column("folder", overflow="fold")
    for name in ("train", "learned from", "set aside", "valid", "test"):
        table.add_column(name, justify="right")
    for folder, note in notes:
        facts = note["facts"]
        counts = (facts["train"], note["learned_from"], note.get("set_aside", 0))
        cells = (*counts, facts["valid"], facts["test"])
        table.add_row(folder or ".", *(f"{count:,}" for count in cells))
    return table


_DONE = {LateEnds.MASK: "unknown", LateEnds.DROP: "left out", LateEnds.KEEP: "kept"}


def _dates_told(note: dict[str, Any]) -> list[str]:
    """What became of dates in a split by time."""
    spans = ", ".join(
        f"{split} {' to '.join(starts)}" for split, starts in note["starts"].items() if starts
    )
    told = [
        f"starts: {spans}; {note['no_start']:,} facts without a start, in train",
        f"training facts that end from {note['valid_from']} on, or go on: {note['late_ends']:,} "
        f"({_DONE[LateEnds(note['ends'])]})",
    ]
    if note["latest"] is not None:
        late = f"starts after {note['latest']}: {note['late_starts']:,} (taken for unknown)"
        told.insert(1, late)
    return told
