"""`tilp inspect` and `tilp split`: contents and defects of data, and new splits of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from rich.measure import Measurement
from typer import Option

from tilp.cli import options
from tilp.cli.console import make_table, output, print_json, print_table
from tilp.errors import TilpError
from tilp.types import LateEnds, SplitKind, TableFormat

if TYPE_CHECKING:
    from tilp.data_quality import DateSummary, Defects, Inspection

_SHOWN_YEARS = 8
_DATE_COLUMNS = (
    *("first", "last", "both dates", "start only", "end only", "undated"),
    *("timestamps", "intervals"),
)


def inspect_command(
    data: options.DataArgument,
    json: options.JsonOption = False,
    defects: Annotated[bool, Option("--defects")] = False,
    read: options.ReadOptions = options.READ,
) -> None:
    """Show what is in DATA and what is wrong with it.

    Counts facts, entities and relations by split, tells which dates are known, prints a row for
    each relation, and lists defects that spoil results: starts after ends, duplicates, the same
    triple in several splits, reversed rows, entities missing from train, absurd years.

    Args:
        defects: List each row with a defect and how it was read.
    """
    from tilp.data_quality import inspect

    graph = read.read(data)
    if defects and json:
        print_json(graph.defects.to_dicts())
    elif defects:
        rows = ([str(cell) for cell in row] for row in graph.defects.iter_rows())
        title = f"{len(graph.defects):,} rows with defects"
        print_table(title, graph.defects.columns, rows, right=("line",))
    elif json:
        print_json(inspect(graph).to_json())
    else:
        print_inspection(inspect(graph), str(data))


def print_inspection(inspection: Inspection, name: str) -> None:
    """Print an inspection as three tables: splits, relations, defects."""
    rows = [
        ([split, *_counts(of.facts, of.entities, of.relations)], _date_cells(of.dates))
        for split, of in inspection.splits.items()
    ]
    columns = ("split", "facts", "entities", "relations")
    _print_fitting(f"{name} · times in {inspection.unit}s", columns, rows)
    splits = [split for split in inspection.splits if split != "all"]
    rows = []
    for relation in inspection.relations:
        facts = (relation.facts[split] for split in splits)
        counts = _counts(*facts, relation.subjects, relation.objects)
        rows.append(([relation.name, *counts], _date_cells(relation.dates)))
    _print_fitting("relations", ("relation", *splits, "subjects", "objects"), rows)
    _print_defects(inspection.defects)


def _print_fitting(
    title: str, columns: tuple[str, ...], rows: list[tuple[list[str], list[str]]]
) -> None:
    """Print a table; omit the last date columns if the terminal is narrow, but cut no figure."""
    console = output()
    unbounded = console.options.update(width=10_000)
    for omitted in range(len(_DATE_COLUMNS) + 1):
        shown = len(_DATE_COLUMNS) - omitted
        names = (*columns, *_DATE_COLUMNS[:shown])
        cells = ([*counts, *dates[:shown]] for counts, dates in rows)
        table = make_table(title, names, cells, right=names[1:])
        if Measurement.get(console, unbounded, table).maximum <= console.width:
            break
    console.print(table)
    if omitted:
        missing = ", ".join(_DATE_COLUMNS[-omitted:])
        console.print(f"(for {missing}: a wider terminal, or --json)", style="dim")


def _counts(*counts: int) -> list[str]:
    return [f"{count:,}" for count in counts]


def _date_cells(dates: DateSummary) -> list[str]:
    known = _counts(dates.both, dates.start_only, dates.end_only, dates.none)
    return [dates.first, dates.last, *known, *_counts(dates.timestamps, dates.intervals)]


def _print_defects(defects: Defects) -> None:
    years = [f"{absurd.year} ({absurd.dates:,} ×)" for absurd in defects.absurd_years]
    if len(years) > _SHOWN_YEARS:
        years[_SHOWN_YEARS:] = [f"{len(years) - _SHOWN_YEARS:,} more"]
    by_split = {
        "start after end": defects.start_after_end,
        "malformed dates": defects.malformed_dates,
        "no subject, relation or object": defects.empty_names,
        "dates that are estimates": defects.estimated,
        "walked on, but not learned from": defects.walked_only,
        "exact duplicates": defects.duplicates,
        "same fact in several splits": defects.same_fact,
        "same triple, other dates or not": defects.same_triple,
        "reversed rows": defects.reversed,
        "entities that train never saw": defects.unseen_entities,
        "entities or relations that train never saw": defects.unseen,
    }
    listed = {
        name: [f"{split}: {count:,}" for split, count in counts.items() if count]
        for name, counts in by_split.items()
    }
    listed["absurd years"] = years
    rows = [(name, ", ".join(row)) for name, row in listed.items() if row]
    title = "what to look at before learning"
    if rows:
        print_table(title, ("defect", "rows"), rows)
    else:
        output().print(f"{title}: nothing found")


_RandomOption, _TimeShiftOption = (
    partial(Option, rich_help_panel=f"--kind {kind}") for kind in ("random", "time-shift")
)
_ShareOption = partial(_RandomOption, metavar="SHARE", show_default="0.1")
_DateOption = partial(_TimeShiftOption, metavar="DATE", show_default="as many facts as before")
_LATE_ENDS = {LateEnds.MASK: "unknown", LateEnds.DROP: "left out", LateEnds.KEEP: "kept"}


def split_command(
    data: options.DataArgument,
    out: options.OutFolderOption,
    kind: Annotated[SplitKind, Option(help="How to split.")],
    valid: Annotated[float | None, _ShareOption(help="Share of the facts in valid.")] = None,
    test: Annotated[float | None, _ShareOption(help="Share of the facts in test.")] = None,
    seed: Annotated[int | None, _RandomOption(min=0, show_default="0", help="Random seed.")] = None,
    valid_from: Annotated[str | None, _DateOption(help="The first start in valid.")] = None,
    test_from: Annotated[str | None, _DateOption(help="The first start in test.")] = None,
    latest: Annotated[str | None, _DateOption(show_default="any")] = None,
    ends: Annotated[LateEnds | None, _TimeShiftOption(show_default="mask")] = None,
    format: options.FormatOption = TableFormat.TSV,
    read: options.ReadOptions = options.READ,
) -> None:
    """Split DATA anew, at random or by time, as a folder that every command reads.

    random: train, valid and test of 80, 10 and 10 %. All splits of DATA are put together and split
    anew. A fact stays in train if an entity or relation would otherwise not occur there. An
    example: tilp split DATA --out FOLDER --kind random

    time-shift: train, valid and test follow each other by start; facts without a start are in
    train.

    The folder keeps all names, so that entities missing from train remain candidates. The file
    split.json beside the facts records kind, seed, counts, and fingerprints of DATA and of the
    result.

    Args:
        latest: Treat starts after this date as unknown, and count them.
        ends: What to do with training facts that end after the first start in valid, which leak the
            time to predict. mask: make the end unknown; drop: drop the fact; keep: leave it as it
            is.
    """
    dates = {"valid_from": valid_from, "test_from": test_from, "latest": latest}
    by_kind: dict[SplitKind, dict[str, Any]] = {
        SplitKind.RANDOM: {"valid": valid, "test": test, "seed": seed},
        SplitKind.TIME_SHIFT: {**dates, "ends": ends},
    }
    for meant, own in by_kind.items():
        for option, value in own.items():
            if value is not None and meant is not kind:
                wrong = f"--{option.replace('_', '-')} is for --kind {meant}, not {kind}"
                raise TilpError(f"{wrong}; leave it out")
    from tilp.splits.folders import FOLDERS

    given = {option: value for option, value in by_kind[kind].items() if value is not None}
    note = FOLDERS[kind](read.read(data), out, format=format, **given)
    counts = ", ".join(f"{count:,} {split}" for split, count in note["facts"].items())
    output().print(f"{out}: {counts}")
    if kind is SplitKind.TIME_SHIFT:
        _print_dates(note)


def _print_dates(note: dict[str, Any]) -> None:
    console, starts = output(), note["starts"].items()
    spans = ", ".join(f"{split} {' to '.join(dates)}" for split, dates in starts if dates)
    console.print(f"starts: {spans}; {note['no_start']:,} facts without a start, in train")
    if note["latest"] is not None:
        console.print(f"starts after {note['latest']}: {note['late_starts']:,} (taken for unknown)")
    late = f"{note['late_ends']:,} ({_LATE_ENDS[LateEnds(note['ends'])]})"
    console.print(f"training facts that end from {note['valid_from']} on, or go on: {late}")
