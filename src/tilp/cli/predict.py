"""`tilp predict` and `tilp explain`: answers to queries, and the reasons for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from tilp.cli import console, options
from tilp.cli.console import output, print_json, print_table, say
from tilp.errors import TilpError
from tilp.types import Backend, End, OnInvalidQuery

if TYPE_CHECKING:
    import polars as pl
    from rich.progress import TaskID

    from tilp.explanation import Explanation
    from tilp.explanation.render import Line

_MANY = 10_000  # queries from which on --out is recommended
_STAGES = {"check": "check the queries", "predict": "answer them"}


def predict_command(
    model: options.ModelArgument,
    relation: Annotated[str | None, Option(help="Relation of the query.")] = None,
    subject: Annotated[str | None, Option(help="Predict the object.")] = None,
    object: Annotated[str | None, Option(help="Predict the subject.")] = None,
    start: options.StartOption = None,
    end: options.EndOption = None,
    queries: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="A TSV, CSV (gzipped or not) or Parquet file of queries with the columns "
            "relation, subject or object, and perhaps start and end. The empty one of subject "
            "and object is predicted.",
        ),
    ] = None,
    complete: Annotated[
        str | None,
        Option(
            metavar="RELATION",
            help="Predict the object for every subject that has a fact of the relation in train; "
            "RELATION^-1: the subject for every such object. At --start and --end, if given.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            show_default="print",
            help="Write the answers here as Parquet parts. Takes any number of queries; if it is "
            "killed, the same command resumes.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        Option(
            show_default="the model's data",
            help="Apply the rules to this DATA; it must have the same relations.",
        ),
    ] = None,
    k: Annotated[int, Option("-k", min=1, help="Number of candidates per query.")] = 10,
    new_only: Annotated[
        bool, Option("--new-only", help="Leave out known answers; ranks still count all.")
    ] = False,
    explain: Annotated[
        int,
        Option(
            metavar="N",
            min=0,
            help="With --out: explain the N best candidates of each query, in a column of JSON as "
            "tilp explain --json prints it. Twenty to eighty times slower.",
        ),
    ] = 0,
    on_error: Annotated[
        OnInvalidQuery,
        Option(
            help="With --out, for queries with unknown names or unreadable dates. raise: refuse "
            "the file before any query is answered; skip: write them to skipped-*.parquet with "
            "the reasons, and answer the others."
        ),
    ] = OnInvalidQuery.RAISE,
    part_size: Annotated[
        int | None,
        Option(
            min=1,
            show_default="20,000; 500 with --explain",
            help="With --out: queries per part. A killed command repeats the part it was at.",
        ),
    ] = None,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
) -> None:
    """Predict the missing subject or object of a fact, of many, or of a whole relation.

    A candidate that train already has as an answer at that time is marked as known.
    """
    import polars as pl

    from tilp.model.query_sources import QueryFile
    from tilp.scoring import Query

    fact = (relation, subject, object)
    if queries is None and complete is None and relation is None:
        raise TilpError(
            "give --relation and --subject or --object, or a file with --queries, or a relation "
            "with --complete"
        )
    if queries is not None and any(value is not None for value in (*fact, start, end, complete)):
        raise TilpError("give one query by its options, or --queries FILE, not both")
    if complete is not None and any(value is not None for value in fact):
        raise TilpError("--complete queries a whole relation; it goes with --start and --end only")
    if out is None and (explain or part_size or on_error is not OnInvalidQuery.RAISE):
        raise TilpError("--explain, --part-size and --on-error go with --out FOLDER")
    if out is not None and queries is None and complete is None:
        raise TilpError("--out goes with --queries FILE or --complete RELATION")
    fitted = options.load_model(model, threads, backend, address)
    graph = None if data is None else options.read_data(data, fitted.graph.unit)
    source: Path | pl.DataFrame | None = queries
    if complete is not None:
        source = fitted.queries_of(complete, start, end, graph=graph)
    if out is not None and source is not None:
        predict = partial(fitted.predict_to, out, source, k, new_only=new_only, graph=graph)
        with _batch_progress(out) as bar:
            result = predict(explain=explain, on_error=on_error, part_size=part_size, progress=bar)
        if json:
            print_json(asdict(result))
            return
        before = f", {result.before:,} of them from before" if result.before else ""
        if result.before == result.parts:
            before = ", finished before"
        answered = f"{result.folder}: {result.queries - result.skipped:,} queries answered"
        output().print(f"{answered} in {result.parts:,} part{'s' * (result.parts != 1)}{before}")
        if result.skipped:
            file = f"{result.folder}/skipped-*.parquet"
            output().print(f"{result.skipped:,} queries could not be answered: see {file}")
        return
    batch: pl.DataFrame | Query
    if source is None:
        batch = Query(str(relation), subject, object, start, end)
    elif isinstance(source, pl.DataFrame):
        batch = source
    else:
        batch = QueryFile(source).frame(fitted.graph if graph is None else graph)
    if isinstance(batch, pl.DataFrame) and len(batch) > _MANY:
        console.print_warning(
            f"{len(batch):,} queries are answered in memory, and all answers printed; with --out "
            "FOLDER they are written to files, part by part, and a run that is stopped resumes"
        )
    answers = fitted.predict(batch, k, new_only=new_only, graph=graph)
    if json:
        print_json(answers.to_dicts())
    else:
        print_predictions(answers)


@contextmanager
def _batch_progress(out: Path) -> Iterator[Callable[[str, float, int], None]]:
    """Show a bar for each stage; outside a terminal, a line for each tenth of the queries."""
    with console.progress_bar(rate="queries") as bar, console.resume_hint(out):
        tasks: dict[str, TaskID] = {}
        printed: dict[str, int] = {}

        def advance(stage: str, done: float, total: int) -> None:
            if not bar.disable:
                if stage not in tasks:
                    tasks[stage] = bar.add_task(_STAGES[stage], total=total or None)
                    # Queries answered before this run do not count towards its speed.
                    bar.reset(tasks[stage], completed=int(done))
                bar.update(tasks[stage], completed=done)
                return
            tenths = int(10 * done / total) if total else 0
            if printed.get(stage, -1) < tenths:
                printed[stage] = tenths
                say(f"{_STAGES[stage]} " + (f"{done:,.0f} of {total:,}" if total else "…"))

        yield advance


def print_predictions(answers: pl.DataFrame) -> None:
    """Print a table of candidates for each query."""
    from tilp.scoring import Query

    for _, candidates in answers.group_by("query", maintain_order=True):
        first = candidates.row(0, named=True)
        query = Query(**{name: first[name] for name in Query.__match_args__})
        formats = {"rank": "", "candidate": "", "score": ".4g", "share": ".1%"}
        rows = (
            (*console.cells(row, **formats), "known" if row["known"] else "")
            for row in candidates.iter_rows(named=True)
        )
        columns = ("rank", "candidate", "score", "share", "")
        print_table(str(query), columns, rows, right=("rank", "score", "share"))


def explain_command(
    model: options.ModelArgument,
    relation: Annotated[str, Option(help="Relation of the fact.")],
    subject: Annotated[str | None, Option(help="Its subject.")] = None,
    object: Annotated[str | None, Option(help="Its object.")] = None,
    start: options.StartOption = None,
    end: options.EndOption = None,
    candidate: Annotated[
        str | None,
        Option(
            show_default="the best",
            help="The candidate to explain, if only --subject or --object is given.",
        ),
    ] = None,
    ask: Annotated[
        End | None,
        Option(
            show_default="object",
            help="If both --subject and --object are given: which of them to explain.",
        ),
    ] = None,
    groundings: Annotated[int, Option(min=0, help="Greatest number of walks per reason.")] = 3,
    reasons: Annotated[int, Option(min=1, help="Number of reasons, the largest first.")] = 10,
    html: Annotated[
        Path | None, Option(help="Write an HTML page with pictures of the facts.")
    ] = None,
    svg: Annotated[Path | None, Option(help="Draw the facts that contribute most.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Explain an answer: the rules, facts and walks whose contributions add up to its score.

    With --subject and --object, the object is explained as an answer for the subject. With one
    of them, the best answer is, or the --candidate. If it is not the best, the explanation also
    shows what the best has more.
    """
    from tilp.explanation.render import explanation_page
    from tilp.scoring import Query

    if subject is None and object is None:
        raise TilpError("give --subject or --object, or both")
    if subject is not None and object is not None:
        if candidate is not None:
            raise TilpError("with --subject and --object one of them is explained, not --candidate")
        if ask is End.SUBJECT:
            subject, candidate = None, subject
        else:
            object, candidate = None, object
    elif ask is (End.OBJECT if subject is None else End.SUBJECT):
        raise TilpError(f"the {ask.value} is given, and cannot be asked for")
    query = Query(relation, subject, object, start, end)
    fitted = options.load_model(model)
    explanation = fitted.explain(query, candidate, groundings=groundings, max_reasons=reasons)
    for path, render in ((html, explanation_page), (svg, _picture)):
        if path is not None:
            path.write_text(render(explanation), encoding="utf-8", newline="\n")
            say(f"wrote {path}")
    if json:
        print_json(explanation.to_json())
    else:
        print_explanation(explanation)


def _picture(explanation: Explanation) -> str:
    from tilp.explanation.attribution import top_grounding
    from tilp.explanation.render import draw_grounding
    from tilp.viz import standalone

    top = top_grounding(explanation.shown)
    if top is None:
        raise TilpError(
            "there is nothing to draw: no reason shown has facts in its favour; raise --reasons "
            "or --groundings"
        )
    return standalone(draw_grounding(top[0], explanation.query, explanation.candidate))


def print_explanation(explanation: Explanation) -> None:
    """Print the reasons as a table, and what the best candidate has more."""
    from tilp.explanation.render import ablation_text, contrast_lines, reason_lines, summary_line

    screen = output()
    screen.print(f"{explanation.query}: why {explanation.candidate}?", style="bold")
    screen.print(summary_line(explanation))
    _print_reasons("adds", reason_lines(explanation))
    if explanation.ablation is not None:
        screen.print(ablation_text(explanation.ablation))
    if explanation.contrasts:
        more = f"What {explanation.winner} has more than {explanation.candidate}:"
        screen.print(more, style="bold")
        _print_reasons("more", contrast_lines(explanation))


def _print_reasons(score: str, lines: Iterable[Line]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.text import Text

    rows = []
    for line in lines:
        notes = "".join(f"\n  {note}" for note in line.notes)
        amount = Text(f"{line.score:+.4f}", style="green" if line.score > 0 else "red")
        rows.append((amount, Text(line.text).append(notes, style="dim")))
    style = {"box": SIMPLE_HEAD, "pad_edge": False, "header_style": "dim"}
    print_table(None, (score, "reason"), rows, right=(score,), **style)
