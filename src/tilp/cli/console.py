"""What commands print, and where: results to standard output, all else to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tilp.errors import TilpError

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console
    from rich.progress import Progress

    from tilp.data_quality import DateSummary, Defects, Inspection
    from tilp.graph import TemporalGraph
    from tilp.time.durations import Durations

_quiet = False


def set_quiet(quiet: bool) -> None:
    """Whether warnings and progress are kept back."""
    global _quiet
    _quiet = quiet


def output() -> Console:
    """The console for results: names are shown as they are, and in full where it is no terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_json(value: Any) -> None:
    """A result for programs."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def say(message: str) -> None:
    """What is being done, or was written, as a line on standard error."""
    if not _quiet:
        sys.stderr.write(f"{message}\n")


def print_error(message: str) -> None:
    """One paragraph on standard error."""
    sys.stderr.write(f"error: {message}\n")


def print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line, in place of Python's two with a place in the source."""
    say(f"warning: {message}")


@contextmanager
def progress_bar(*, transfer: bool = False, rate: str | None = None) -> Iterator[Progress]:
    """A progress bar on standard error; nothing where that is not a terminal.

    Args:
        transfer: whether bytes are counted.
        rate: what else is counted, to tell how many of it are done in a second.
    """
    from rich import progress
    from rich.console import Console

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> str:
            speed = task.finished_speed or task.speed
            return "" if speed is None else f"{speed:,.0f} {rate}/s"

    columns: list[progress.ProgressColumn] = [
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
    ]
    if transfer:
        columns += [progress.DownloadColumn(), progress.TransferSpeedColumn()]
    else:
        columns += [progress.TaskProgressColumn()]
    if rate is not None:
        columns += [Rate()]
    columns += [progress.TimeRemainingColumn()]
    shown = sys.stderr.isatty() and not _quiet
    with progress.Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        yield bar


@contextmanager
def stage_bars(stages: Mapping[str, str]) -> Iterator[Callable[[str, float], None]]:
    """A bar for each stage, by its words; a line as each begins where there is no terminal."""
    with progress_bar() as bar:
        tasks = (
            {}
            if bar.disable
            else {name: bar.add_task(words, total=1.0) for name, words in stages.items()}
        )
        begun: set[str] = set()

        def advance(name: str, share: float) -> None:
            if tasks:
                bar.update(tasks[name], completed=share)
            elif name not in begun:
                begun.add(name)
                say(f"{stages[name]} …")

        yield advance


@contextmanager
def goes_on_from(place: Path) -> Iterator[None]:
    """Work that leaves what it has done in a place, for the same command to go on from.

    Raises:
        TilpError: it was stopped; says how to go on.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise TilpError(f"stopped; the same command goes on from what is in {place}") from None


_SHOWN_YEARS = 8


def print_inspection(inspection: Inspection, name: str) -> None:
    """An inspection as three tables."""
    console = output()
    _print_fitting(console, _split_table(inspection, name))
    _print_fitting(console, _relation_table(inspection))
    console.print(_problem_table(inspection.defects))


def imputation_table(graph: TemporalGraph, durations: Durations) -> Table:
    """What was estimated of each relation, and from what."""
    from tilp.time.imputation import imputation_counts

    counts, fitted = imputation_counts(graph), durations.frame()
    total = int(counts["starts"].sum()) + int(counts["ends"].sum())
    table = Table(title=f"{total:,} dates estimated", title_justify="left")
    table.add_column("relation", overflow="fold")
    for name in ("facts", "starts", "ends", "still missing", "complete in train", "mean length"):
        table.add_column(name, justify="right")
    table.add_column("")
    for (name, *numbers), row in zip(counts.rows(), fitted.iter_rows(named=True), strict=True):
        table.add_row(
            name,
            *(f"{number:,}" for number in (*numbers, row["intervals"])),
            f"{row['mean']:,.1f}",
            "of all relations" if row["pooled"] else "",
        )
    return table


def defect_table(defects: pl.DataFrame) -> Table:
    """Every row with a date defect."""
    table = Table(title=f"{len(defects):,} date defects", title_justify="left")
    for column in defects.columns:
        table.add_column(column, justify="right" if column == "line" else "left")
    for row in defects.iter_rows():
        table.add_row(*(str(cell) for cell in row))
    return table


def _split_table(inspection: Inspection, name: str) -> Callable[[int], Table]:
    def make(dropped: int) -> Table:
        table = _counted_table(
            f"{name} · times in {inspection.unit}s",
            "split",
            ("facts", "entities", "relations", *_kept(_DATE_COLUMNS, dropped)),
        )
        for split, summary in inspection.splits.items():
            counts = (summary.facts, summary.entities, summary.relations)
            cells = _kept(_date_cells(summary.dates), dropped)
            table.add_row(split, *(f"{count:,}" for count in counts), *cells)
        return table

    return make


def _relation_table(inspection: Inspection) -> Callable[[int], Table]:
    splits = tuple(split for split in inspection.splits if split != "all")

    def make(dropped: int) -> Table:
        table = _counted_table(
            "relations",
            "relation",
            (*splits, "subjects", "objects", *_kept(_DATE_COLUMNS, dropped)),
        )
        for relation in inspection.relations:
            facts = [relation.facts[split] for split in splits]
            counts = (*facts, relation.subjects, relation.objects)
            cells = _kept(_date_cells(relation.dates), dropped)
            table.add_row(relation.name, *(f"{count:,}" for count in counts), *cells)
        return table

    return make


def _print_fitting(console: Console, make: Callable[[int], Table]) -> None:
    """Leave out the last columns that a narrow terminal has no room for; never cut a figure."""
    unbounded = console.options.update(width=10_000)
    for dropped in range(len(_DATE_COLUMNS) + 1):
        table = make(dropped)
        if Measurement.get(console, unbounded, table).maximum <= console.width:
            break
    console.print(table)
    if dropped:
        left_out = ", ".join(_DATE_COLUMNS[-dropped:])
        console.print(f"(for {left_out}: a wider terminal, or --json)", style="dim")


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


def _kept(columns: Sequence[str], dropped: int) -> Sequence[str]:
    return columns[: len(columns) - dropped]


def _counted_table(title: str, first: str, rest: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first, overflow="fold")
    for column in rest:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _date_cells(dates: DateSummary) -> list[str]:
    known = (dates.both, dates.start_only, dates.end_only, dates.none)
    return [
        *(f"{count:,}" for count in known),
        dates.first,
        dates.last,
        f"{dates.timestamps:,}",
        f"{dates.intervals:,}",
    ]


def _problem_table(defects: Defects) -> Table:
    table = Table(title="what to look at before learning", title_justify="left")
    table.add_column("defect")
    table.add_column("rows")
    years = ", ".join(
        f"{one.year} ({one.dates:,} ×)" for one in defects.absurd_years[:_SHOWN_YEARS]
    )
    more = len(defects.absurd_years) - _SHOWN_YEARS
    for words, found in (
        ("start after end", _listed(defects.start_after_end)),
        ("malformed dates", _listed(defects.malformed_dates)),
        ("dates that are estimates", _listed(defects.estimated)),
        ("walked on, but not learned from", _listed(defects.walked_only)),
        ("exact duplicates", _listed(defects.duplicates)),
        ("same fact in several splits", _listed(defects.same_fact)),
        ("same triple, other dates or not", _listed(defects.same_triple)),
        ("reversed rows", _listed(defects.reversed)),
        ("entities that train never saw", _listed(defects.unseen_entities)),
        ("entities or relations that train never saw", _listed(defects.unseen)),
        ("absurd years", years + (f", {more:,} more" if more > 0 else "")),
    ):
        table.add_row(words, found or Text("none", style="green"))
    return table


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items() if count)
