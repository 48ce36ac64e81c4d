"""`tilp inspect`: contents and defects of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.measure import Measurement
from rich.text import Text
from typer import Option

from tilp.cli import options
from tilp.cli.console import make_table, output, print_json, print_table
from tilp.types import OnError

if TYPE_CHECKING:
    from rich.table import Table

    from tilp.data_quality import DateSummary, Defects, Inspection

_SHOWN_YEARS = 8
_DATE_COLUMNS = (
    "both dates",
    "start only",
    "end only",
    "undated",
    "first",
    "last",
    "timestamps",
    "intervals",
)


def inspect_command(
    data: options.DataArgument,
    json: options.JsonOption = False,
    defects: Annotated[
        bool, Option("--defects", help="List each row with a date defect and how it was read.")
    ] = False,
    plot: Annotated[
        Path | None, Option(metavar="FILE", help="Draw facts over time (.png, .svg or .pdf).")
    ] = None,
    unit: options.UnitOption = None,
    on_error: options.OnErrorOption = OnError.REPAIR,
    columns: options.ColumnsOption = None,
    header: options.HeaderOption = None,
) -> None:
    """Show what is in DATA and what is wrong with it.

    Counts facts, entities and relations by split, tells which dates are known, prints a row for
    each relation, and lists defects that spoil results: starts after ends, duplicates, the same
    triple in several splits, reversed rows, entities missing from train, absurd years.
    """
    from tilp.data_quality import inspect

    graph = options.read_data(data, unit, on_error, columns, header)
    if plot is not None:
        from tilp.viz.figures import plot_facts_over_time

        plot_facts_over_time(graph, plot)
    if defects and json:
        print_json(graph.defects.to_dicts())
    elif defects:
        rows = ([str(cell) for cell in row] for row in graph.defects.iter_rows())
        title = f"{len(graph.defects):,} date defects"
        print_table(title, graph.defects.columns, rows, right=("line",))
    elif json:
        print_json(inspect(graph).to_json())
    else:
        print_inspection(inspect(graph), str(data))


def print_inspection(inspection: Inspection, name: str) -> None:
    """Print an inspection as three tables: splits, relations, defects."""
    split_rows = [
        (
            [split, *_counts(summary.facts, summary.entities, summary.relations)],
            _date_cells(summary.dates),
        )
        for split, summary in inspection.splits.items()
    ]
    _print_fitting(
        f"{name} · times in {inspection.unit}s",
        ("split", "facts", "entities", "relations"),
        split_rows,
    )
    splits = [split for split in inspection.splits if split != "all"]
    relation_rows = [
        (
            [
                relation.name,
                *_counts(*(relation.facts[split] for split in splits)),
                *_counts(relation.subjects, relation.objects),
            ],
            _date_cells(relation.dates),
        )
        for relation in inspection.relations
    ]
    _print_fitting("relations", ("relation", *splits, "subjects", "objects"), relation_rows)
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
        table: Table = make_table(
            title, names, ([*cells, *dates[:shown]] for cells, dates in rows), right=names[1:]
        )
        if Measurement.get(console, unbounded, table).maximum <= console.width:
            break
    console.print(table)
    if omitted:
        missing = ", ".join(_DATE_COLUMNS[-omitted:])
        console.print(f"(for {missing}: a wider terminal, or --json)", style="dim")


def _counts(*counts: int) -> list[str]:
    return [f"{count:,}" for count in counts]


def _date_cells(dates: DateSummary) -> list[str]:
    return [
        *_counts(dates.both, dates.start_only, dates.end_only, dates.none),
        dates.first,
        dates.last,
        *_counts(dates.timestamps, dates.intervals),
    ]


def _print_defects(defects: Defects) -> None:
    years = [f"{absurd.year} ({absurd.dates:,} ×)" for absurd in defects.absurd_years]
    if len(years) > _SHOWN_YEARS:
        years[_SHOWN_YEARS:] = [f"{len(years) - _SHOWN_YEARS:,} more"]
    rows = {
        "start after end": _by_split(defects.start_after_end),
        "malformed dates": _by_split(defects.malformed_dates),
        "dates that are estimates": _by_split(defects.estimated),
        "walked on, but not learned from": _by_split(defects.walked_only),
        "exact duplicates": _by_split(defects.duplicates),
        "same fact in several splits": _by_split(defects.same_fact),
        "same triple, other dates or not": _by_split(defects.same_triple),
        "reversed rows": _by_split(defects.reversed),
        "entities that train never saw": _by_split(defects.unseen_entities),
        "entities or relations that train never saw": _by_split(defects.unseen),
        "absurd years": ", ".join(years),
    }
    none = Text("none", style="green")
    cells = ((name, counts or none) for name, counts in rows.items())
    print_table("what to look at before learning", ("defect", "rows"), cells)


def _by_split(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{split}: {count:,}" for split, count in counts.items() if count)
