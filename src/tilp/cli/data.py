"""Commands that look at data and turn it from one form into another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import output, print_json, print_warning, progress_bar
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
from tilp.types import DumpFormat, Estimate, OnError, TableFormat

if TYPE_CHECKING:
    from tilp.io.dumps import ImportReport
    from tilp.io.rdf import RdfFormat

_SHOWN_PROBLEMS = 20

__all__ = ["convert_command", "import_command", "impute_command", "inspect_command"]


def inspect_command(
    data: Data,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    defects: Annotated[
        bool,
        typer.Option("--defects", help="List each row with a date defect and what was done."),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw facts over time (.png, .svg or .pdf)."),
    ] = None,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Tell what is in DATA and what is wrong with it.

    Facts, entities and relations by split, how dates are known, a row for each relation, and the
    defects that spoil results: starts after ends, duplicates, the same triple in several splits,
    reversed rows, entities that train never saw, absurd years.
    """
    from tilp.data_quality import inspect

    graph = read_data(data, unit, on_error, columns, header)
    if plot is not None:
        from tilp.viz.figures import plot_facts_over_time

        plot_facts_over_time(graph, plot)
    if defects:
        from tilp.cli.console import defect_table

        if json:
            print_json(graph.defects.to_dicts())
        else:
            output().print(defect_table(graph.defects))
        return
    inspection = inspect(graph)
    if json:
        print_json(inspection.to_json())
    else:
        from tilp.cli.console import print_inspection

        print_inspection(inspection, str(data))


def convert_command(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="The folder to write; new or empty.")],
    format: FormatOption = TableFormat.TSV,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Write DATA as a folder of tables: the splits, names, attributes, the unit.

    Dates are written as they were read. Reading the folder gives an equal graph.
    """
    from tilp.io import write

    graph = read_data(data, unit, on_error, columns, header)
    write(graph, out, format=format)
    output().print(f"{out}: {graph}")


def impute_command(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="The folder to write; new or empty.")],
    estimate: Annotated[
        Estimate,
        typer.Option(
            "--estimate",
            help="How long a fact is taken to last. expected: as long as its relation's facts do "
            "in the mean; drawn: a draw for each fact.",
        ),
    ] = Estimate.EXPECTED,
    seed: Annotated[int, typer.Option("--seed", min=0, help="For draws.")] = 0,
    format: FormatOption = TableFormat.TSV,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Write DATA with its missing starts and ends estimated, and marked as estimates.

    How long the facts of each relation last is learned from the training facts with both dates: a
    Gaussian truncated to lengths from 0 on. A missing end is the start and such a length, a missing
    start the end without it; facts without any date stay as they are. The column 'estimated' of
    the files written says which dates are estimates: start, end or both. tilp fit --missing
    duration does the same with draws, and leaves DATA alone.
    """
    from tilp.cli.console import imputation_table
    from tilp.io import write
    from tilp.time.durations import Durations
    from tilp.time.imputation import impute

    graph = read_data(data, unit, on_error, columns, header)
    durations = Durations.fit(graph)
    imputed = impute(graph, estimate=estimate, seed=seed, durations=durations)
    write(imputed, out, format=format)
    output().print(imputation_table(imputed, durations))
    output().print(f"{out}: {imputed}")


def import_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            show_default=False,
            help=(
                "A Wikidata JSON dump (one entity a line; plain, .gz or .bz2; - for standard "
                "input), or N-Triples or Turtle (.nt, .ttl, .gz)."
            ),
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to write; new or empty.")],
    language: Annotated[str, typer.Option("--language", help="The language of labels.")] = "en",
    properties: Annotated[
        str | None,
        typer.Option(
            "--properties", metavar="P,P,…", help="Keep only these, such as P39,P54,P166."
        ),
    ] = None,
    undated: Annotated[
        bool, typer.Option("--undated", help="Keep statements without any date too.")
    ] = False,
    format: Annotated[
        DumpFormat | None,
        typer.Option("--format", show_default="by the name", help="What SOURCE holds."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first malformed line; do not count it.")
    ] = False,
) -> None:
    """Turn a Wikidata dump, JSON or RDF, into DATA.

    Takes the statements with a start (P580), end (P582) or point in time (P585), and the labels
    of the entities in them. JSON is streamed in bounded memory; of RDF the statement nodes of the
    chosen properties are held. Malformed lines are counted, the first of them listed.
    """
    import sys

    from tilp.io.rdf import import_rdf, rdf_format
    from tilp.io.wikidata import import_wikidata

    if format is None:
        format = DumpFormat(rdf_format(source) or DumpFormat.JSON)
    with progress_bar(transfer=True) as bar:
        task = bar.add_task("import", total=source.stat().st_size if source.is_file() else None)
        importer: Callable[..., ImportReport] = import_wikidata
        if format is not DumpFormat.JSON:
            kind: RdfFormat = "turtle" if format is DumpFormat.TURTLE else "ntriples"
            importer = partial(import_rdf, format=kind)
        report = importer(
            sys.stdin.buffer if str(source) == "-" else source,
            out,
            language=language,
            properties={one.strip() for one in properties.split(",")} if properties else None,
            undated=undated,
            on_error="raise" if strict else "skip",
            progress=lambda done: bar.update(task, completed=done),
        )
    _print_import(report, out)


def _print_import(report: ImportReport, out: Path) -> None:
    console = output()
    undated = f", {report.undated:,} of them without a date" if report.undated else ""
    console.print(f"{out}: {report.facts:,} facts from {report.statements:,} statements{undated}")
    for reason, count in report.skipped.items():
        console.print(f"left out: {count:,} × {reason}")
    for problem in report.problems[:_SHOWN_PROBLEMS]:
        place = problem.file if problem.line is None else f"{problem.file}, line {problem.line}"
        print_warning(f"{place}: {problem.found} ({problem.done})")
    if report.malformed > _SHOWN_PROBLEMS:
        print_warning(f"… and {report.malformed - _SHOWN_PROBLEMS:,} more malformed places")
    if not report.facts:
        raise TilpError(
            f"{out} holds no facts: no dated Wikidata statement was found. Is the source a "
            "Wikidata dump (see --format), and do --properties name what is in it?"
        )
