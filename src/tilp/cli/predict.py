"""The command that asks a model: one question, a file of them, or a whole relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import goes_on_from, output, print_json, print_warning, progress_bar, say
from tilp.cli.options import (
    AddressOption,
    BackendOption,
    EndOption,
    JsonOption,
    Model,
    StartOption,
    ThreadsOption,
    load_model,
    read_data,
)
from tilp.errors import TilpError
from tilp.types import Backend, OnError, OnInvalidQuery

if TYPE_CHECKING:
    import polars as pl
    from rich.progress import TaskID

    from tilp.model.batch_predict import BatchResult

_MANY = 10_000


def predict_command(
    model: Model,
    relation: Annotated[
        str | None, typer.Option("--relation", show_default=False, help="The relation asked for.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", show_default=False, help="Ask for the object.")
    ] = None,
    object: Annotated[
        str | None, typer.Option("--object", show_default=False, help="Ask for the subject.")
    ] = None,
    start: StartOption = None,
    end: EndOption = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            show_default=False,
            help="A TSV, CSV (gzipped or not) or Parquet file of queries with the columns "
            "relation, subject or object, and perhaps start and end; an empty subject or object "
            "is asked for.",
        ),
    ] = None,
    complete: Annotated[
        str | None,
        typer.Option(
            "--complete",
            metavar="RELATION",
            show_default=False,
            help="Ask for the object of every subject that has a fact of the relation in train; "
            "RELATION^-1: for the subject of every such object. At --start and --end, if given.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            show_default="print",
            help="A folder for the answers as Parquet parts. It takes any number of queries; "
            "killed, the same command goes on.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            show_default="the model's own",
            help="Another DATA to apply the rules on; it has the same relations.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many candidates.")] = 10,
    new_only: Annotated[
        bool,
        typer.Option(
            "--new-only", help="Leave out what is known already; ranks stay those among all."
        ),
    ] = False,
    explain: Annotated[
        int,
        typer.Option(
            "--explain",
            metavar="N",
            min=0,
            help="With --out: explain the N best of each query, in a column of JSON as tilp "
            "explain --json prints it. Twenty to eighty times slower.",
        ),
    ] = 0,
    on_error: Annotated[
        OnInvalidQuery,
        typer.Option(
            "--on-error",
            help="With --out, of queries with unknown names or dates that cannot be read: raise "
            "refuses the file before anything is asked; skip writes them to "
            "skipped-*.parquet with the reasons, and asks the others.",
        ),
    ] = OnInvalidQuery.RAISE,
    part_size: Annotated[
        int | None,
        typer.Option(
            "--part-size",
            min=1,
            show_default="20,000; 500 with --explain",
            help="With --out: queries a part. When killed, the part under way is asked again.",
        ),
    ] = None,
    json: JsonOption = False,
    threads: ThreadsOption = None,
    backend: BackendOption = Backend.THREADS,
    address: AddressOption = None,
) -> None:
    """Ask a model for the missing end of a fact, of many, or of all of a relation.

    A candidate that train already has as an answer at that time is marked as known.
    """
    import polars as pl

    from tilp.model.query_sources import QueryFile
    from tilp.scoring import Query

    _check_options((relation, subject, object), (start, end), queries, complete)
    if out is None and (explain or part_size or on_error is not OnInvalidQuery.RAISE):
        raise TilpError("--explain, --part-size and --on-error go with --out FOLDER")
    if out is not None and queries is None and complete is None:
        raise TilpError("--out goes with --queries FILE or --complete RELATION")
    fitted = load_model(model, threads, backend, address)
    evidence = None
    if data is not None:
        evidence = read_data(data, fitted.graph.unit, OnError.REPAIR, None, None)
    source: Path | pl.DataFrame | None = queries
    if complete is not None:
        source = fitted.queries_of(complete, start, end, graph=evidence)
    if out is not None and source is not None:
        with _progress(out) as advance:
            done = fitted.predict_to(
                out,
                source,
                k,
                new_only=new_only,
                explain=explain,
                on_error=on_error,
                part_size=part_size,
                graph=evidence,
                progress=advance,
            )
        _report(done, json=json)
        return
    asked: pl.DataFrame | Query
    if source is None:
        asked = Query(str(relation), subject, object, start, end)
    else:
        graph = fitted.graph if evidence is None else evidence
        asked = source if isinstance(source, pl.DataFrame) else QueryFile(source).frame(graph)
    if isinstance(asked, pl.DataFrame) and len(asked) > _MANY:
        print_warning(
            f"{len(asked):,} queries are answered in memory, and all answers printed; with --out "
            "FOLDER they are written to files, part by part, and a run that is stopped goes on"
        )
    found = fitted.predict(asked, k, new_only=new_only, graph=evidence)
    if json:
        print_json(found.to_dicts())
    else:
        print_predictions(found)


def _check_options(
    ends: tuple[str | None, str | None, str | None],
    dates: tuple[str | None, str | None],
    queries: Path | None,
    complete: str | None,
) -> None:
    relation, *_ = ends
    if queries is None and complete is None and relation is None:
        raise TilpError(
            "give --relation and --subject or --object, or a file with --queries, or a relation "
            "with --complete"
        )
    if queries is not None and any(one is not None for one in (*ends, *dates, complete)):
        raise TilpError("give one query by its options, or --queries FILE, not both")
    if complete is not None and any(one is not None for one in ends):
        raise TilpError("--complete asks of a whole relation; it goes with --start and --end only")


@contextmanager
def _progress(out: Path) -> Iterator[Callable[[str, float, int], None]]:
    """A bar for each stage; where there is no terminal, a line for each tenth of the queries.

    Raises:
        TilpError: it was stopped; says how to go on.
    """
    words = {"check": "check the queries", "predict": "ask them"}
    with progress_bar(rate="queries") as bar:
        tasks: dict[str, TaskID] = {}
        told: dict[str, int] = {}

        def advance(stage: str, done: float, total: int) -> None:
            if not bar.disable:
                if stage not in tasks:
                    tasks[stage] = bar.add_task(words[stage], total=total or None)
                    # What was done before this run does not count for its speed.
                    bar.reset(tasks[stage], completed=int(done))
                bar.update(tasks[stage], completed=done)
                return
            tenths = int(10 * done / total) if total else 0
            if told.get(stage, -1) < tenths:
                told[stage] = tenths
                far = f"{done:,.0f} of {total:,}" if total else "…"
                say(f"{words[stage]} {far}")

        with goes_on_from(out):
            yield advance


def _report(done: BatchResult, *, json: bool) -> None:
    if json:
        print_json(asdict(done))
        return
    before = ""
    if done.before == done.parts:
        before = ", finished before"
    elif done.before:
        before = f", {done.before:,} of them from before"
    console = output()
    console.print(
        f"{done.folder}: {done.queries - done.skipped:,} queries answered in {done.parts:,} "
        f"part{'s'[: done.parts != 1]}{before}"
    )
    if done.skipped:
        console.print(
            f"{done.skipped:,} queries could not be asked: see {done.folder}/skipped-*.parquet"
        )


def print_predictions(found: pl.DataFrame) -> None:
    """Candidates as one table a query."""
    from rich.table import Table

    from tilp.scoring import Query

    for (_,), part in found.group_by("query", maintain_order=True):
        first = part.row(0, named=True)
        query = Query(**{name: first[name] for name in Query.__match_args__})
        table = Table(title=str(query), title_justify="left")
        table.add_column("rank", justify="right")
        table.add_column("candidate", overflow="fold")
        table.add_column("score", justify="right")
        table.add_column("share", justify="right")
        table.add_column("")
        for row in part.iter_rows(named=True):
            known = "known" if row["known"] else ""
            table.add_row(
                str(row["rank"]),
                row["candidate"],
                f"{row['score']:.4g}",
                f"{row['share']:.1%}",
                known,
            )
        output().print(table)
