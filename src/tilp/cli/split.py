"""`tilp split`: harder splits of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from tilp.cli import options
from tilp.cli.console import output, print_table
from tilp.errors import TilpError
from tilp.types import LateEnds, OnError, SplitKind, TableFormat, WalkGraph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tilp.splits.folders import Part

_FEW, _BIASED, _TIME_SHIFT = (f"--kind {kind.value}" for kind in SplitKind)
_FEW_OR_BIASED = f"{_FEW} and biased"
_LATE_ENDS = {LateEnds.MASK: "unknown", LateEnds.DROP: "left out", LateEnds.KEEP: "kept"}


def split_command(
    data: options.DataArgument,
    out: options.OutFolderOption,
    kind: Annotated[SplitKind, Option(help="The harder setting.")],
    share: Annotated[
        list[float] | None,
        Option(
            metavar="SHARE",
            show_default="0.05, 0.1, 0.2, … 0.8",
            help="Share of the training facts to learn from; repeatable.",
            rich_help_panel=_FEW,
        ),
    ] = None,
    relation: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            show_default="each",
            help="Relation whose training facts are removed; repeatable.",
            rich_help_panel=_BIASED,
        ),
    ] = None,
    removed: Annotated[
        float | None,
        Option(show_default="0.5", help="Share of them that is removed.", rich_help_panel=_BIASED),
    ] = None,
    balance: Annotated[
        bool | None,
        Option(
            "--balance/--no-balance",
            show_default="balance",
            help="Give test the same number of facts of each relation, or keep the splits.",
            rich_help_panel=_BIASED,
        ),
    ] = None,
    queries: Annotated[
        int | None,
        Option(
            min=1,
            show_default="size of test / relations",
            help="Number of test facts of each relation.",
            rich_help_panel=_BIASED,
        ),
    ] = None,
    graph: Annotated[
        WalkGraph | None,
        Option(
            show_default="few: kept; biased: reduced",
            help="The graph to walk on. kept: training facts that are not learned from stay in "
            "train, marked 'walked_only'; reduced: they are removed.",
            rich_help_panel=_FEW_OR_BIASED,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        Option(
            min=0,
            show_default="0",
            help="Random seed. Use another one for each round.",
            rich_help_panel=_FEW_OR_BIASED,
        ),
    ] = None,
    valid_from: Annotated[
        str | None,
        Option(
            metavar="DATE",
            show_default="as many facts as before",
            help="The first start in valid.",
            rich_help_panel=_TIME_SHIFT,
        ),
    ] = None,
    test_from: Annotated[
        str | None,
        Option(
            metavar="DATE",
            show_default="as many facts as before",
            help="The first start in test.",
            rich_help_panel=_TIME_SHIFT,
        ),
    ] = None,
    latest: Annotated[
        str | None,
        Option(
            metavar="DATE",
            show_default="any",
            help="Treat starts after this date as unknown, and count them.",
            rich_help_panel=_TIME_SHIFT,
        ),
    ] = None,
    ends: Annotated[
        LateEnds | None,
        Option(
            show_default="mask",
            help="What to do with training facts that end after the first start in valid, which "
            "leak the time to predict. mask: make the end unknown; drop: drop the fact; keep: "
            "leave it as it is.",
            rich_help_panel=_TIME_SHIFT,
        ),
    ] = None,
    format: options.FormatOption = TableFormat.TSV,
    unit: options.UnitOption = None,
    on_error: options.OnErrorOption = OnError.REPAIR,
    columns: options.ColumnsOption = None,
    header: options.HeaderOption = None,
) -> None:
    """Split DATA anew for a harder setting, as folders that every command reads.

    few: fewer training facts to learn from, drawn as --share of tilp fit draws them. Writes a
    folder for each share; a smaller sample is part of a larger one.

    biased: a test split with as many facts of each relation (folder balanced), and for each
    relation a folder without half of its training facts. Compare its metrics with balanced.

    time-shift: train, valid and test follow each other by start; facts without a start are in
    train.

    Every folder keeps all names, so that entities missing from train remain candidates. The file
    split.json beside the facts records kind, seed, counts, and fingerprints of DATA and of the
    result. An example: tilp split DATA --out few --kind few, and then tilp fit few/0.05 --out
    model
    """
    few, biased, shift = SplitKind.FEW, SplitKind.BIASED, SplitKind.TIME_SHIFT
    for option, value, kinds in (
        ("--share", share, (few,)),
        ("--relation", relation, (biased,)),
        ("--removed", removed, (biased,)),
        ("--balance", balance, (biased,)),
        ("--queries", queries, (biased,)),
        ("--graph", graph, (few, biased)),
        ("--seed", seed, (few, biased)),
        ("--valid-from", valid_from, (shift,)),
        ("--test-from", test_from, (shift,)),
        ("--latest", latest, (shift,)),
        ("--ends", ends, (shift,)),
    ):
        if value is not None and kind not in kinds:
            raise TilpError(
                f"{option} is for --kind {' or '.join(kinds)}, not {kind.value}; leave it out"
            )
    if queries is not None and balance is False:
        raise TilpError("--queries says how test is balanced; leave it out, or --no-balance")
    from tilp.splits import SHARES, time_shift
    from tilp.splits.folders import biased_parts, few_parts, time_shift_part, write_parts

    source = options.read_data(data, unit, on_error, columns, header)
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
            shifted = time_shift(
                source,
                valid_from=valid_from,
                test_from=test_from,
                latest=latest,
                ends=ends or LateEnds.MASK,
            )
            parts = [time_shift_part(shifted)]
    notes = write_parts(source, parts, out, format=format)
    _print_sizes(out, notes)
    if kind is SplitKind.TIME_SHIFT:
        _print_dates(notes[0][1])


def _print_sizes(out: Path, notes: list[tuple[str, dict[str, Any]]]) -> None:
    rows = []
    for folder, note in notes:
        facts = note["facts"]
        train = (facts["train"], note["learned_from"], note.get("set_aside", 0))
        counts = (*train, facts["valid"], facts["test"])
        rows.append((folder or ".", *(f"{count:,}" for count in counts)))
    figures = ("train", "learned from", "set aside", "valid", "test")
    print_table(f"written to {out}", ("folder", *figures), rows, right=figures)


def _print_dates(note: dict[str, Any]) -> None:
    console = output()
    spans = ", ".join(
        f"{split} {' to '.join(starts)}" for split, starts in note["starts"].items() if starts
    )
    console.print(f"starts: {spans}; {note['no_start']:,} facts without a start, in train")
    if note["latest"] is not None:
        console.print(f"starts after {note['latest']}: {note['late_starts']:,} (taken for unknown)")
    console.print(
        f"training facts that end from {note['valid_from']} on, or go on: {note['late_ends']:,} "
        f"({_LATE_ENDS[LateEnds(note['ends'])]})"
    )
