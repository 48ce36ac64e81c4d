"""`tilp predict` and `tilp explain`: answers to queries, and the reasons for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

    from tilp.graph.queries import KnownFacts
    from tilp.scoring import Query

_MANY = 10_000  # queries from which on --out is recommended
_GROUNDED = 20  # reasons whose facts are looked up
_LISTED = 3  # known facts before an explanation
_STAGES = {"check": "check the queries", "predict": "answer them"}


def predict_command(
    model: options.ModelArgument,
    relation: Annotated[str | None, Option(help="Relation of the query.")] = None,
    subject: Annotated[str | None, Option(help="Predict the object.")] = None,
    object: Annotated[str | None, Option(help="Predict the subject.")] = None,
    start: options.StartOption = None,
    end: options.EndOption = None,
    queries: Annotated[Path | None, Option(metavar="FILE")] = None,
    complete: Annotated[str | None, Option(metavar="RELATION")] = None,
    all_subjects: Annotated[bool, Option("--all-subjects")] = False,
    out: Annotated[Path | None, Option(metavar="FOLDER", show_default="print")] = None,
    data: Annotated[Path | None, Option(show_default="the model's data")] = None,
    k: Annotated[int, Option("-k", min=1, help="Number of candidates per query.")] = 10,
    new_only: Annotated[bool, Option("--new-only")] = False,
    explain: Annotated[int, Option(metavar="N", min=0)] = 0,
    on_error: Annotated[OnInvalidQuery, Option()] = OnInvalidQuery.RAISE,
    part_size: Annotated[
        int | None, Option(min=1, show_default="20,000; 500 with --explain")
    ] = None,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
) -> None:
    """Predict the missing subject or object of a fact, of many, or of a whole relation.

    Facts of train that answer a query at that time come first, each with the file and line it
    was read from. Candidates that they name are marked as known.

    Args:
        queries: A file of queries, TSV, CSV (gzipped or not), Parquet, JSON lines or Excel, with
            the columns relation, subject or object, and perhaps start and end, or as they are
            called in the model's data. The empty one of subject and object is predicted.
        complete: Predict the object for every subject of the usual kinds without a fact of the
            relation at --start and --end, or at any time if they are not given; RELATION^-1: the
            subject for every such object.
        all_subjects: With --complete: for every subject that has a fact of the relation in train,
            at any time.
        out: Write the answers here as Parquet parts. Takes any number of queries; if it is killed,
            the same command resumes.
        data: Apply the rules to this DATA; it must have the same relations.
        new_only: Leave out known answers; ranks still count all.
        explain: With --out: explain the N best candidates of each query, in a column of JSON as
            tilp explain --json prints it. Twenty to eighty times slower.
        on_error: With --out, for queries with unknown names or unreadable dates. raise: refuse the
            file before any query is answered; skip: write them to skipped-*.parquet with the
            reasons, and answer the others.
        part_size: With --out: queries per part. A killed command repeats the part it was at.
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
    if all_subjects and complete is None:
        raise TilpError("--all-subjects goes with --complete RELATION")
    if out is None and (explain or part_size or on_error is not OnInvalidQuery.RAISE):
        raise TilpError("--explain, --part-size and --on-error go with --out FOLDER")
    if out is not None and queries is None and complete is None:
        raise TilpError("--out goes with --queries FILE or --complete RELATION")
    fitted = options.load_model(model, threads, backend, address)
    graph = None if data is None else options.read_like(data, fitted)
    source: Path | pl.DataFrame | None = queries
    if complete is not None:
        source = fitted.queries_of(complete, start, end, all_subjects=all_subjects, graph=graph)
    if out is not None and source is not None:
        predict = partial(fitted.predict_to, out, source, k, new_only=new_only, graph=graph)
        with _batch_progress(out) as bar:
            result = predict(explain=explain, on_error=on_error, part_size=part_size, progress=bar)
        if json:
            print_json(asdict(result))
            return
        if not result.queries:
            console.print_warning(f"{queries}: there are no queries, so there are no answers")
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
        batch = QueryFile(source, fitted.graph.reading).frame(graph or fitted.graph)
        if batch.is_empty():
            raise TilpError(f"{source}: there are column names, but no queries below them")
    if isinstance(batch, pl.DataFrame) and len(batch) > _MANY:
        console.print_warning(
            f"{len(batch):,} queries are answered in memory, and all answers printed; with --out "
            "FOLDER they are written to files, part by part, and a run that is stopped resumes"
        )
    say(f"evidence: {fitted.evidence_note}")
    answers = fitted.predict(batch, k, new_only=new_only, graph=graph)
    if json:
        print_json(answers.to_dicts())
    else:
        facts = None if new_only else partial(fitted.known_facts, graph=graph)
        print_predictions(answers, k, facts)


def forecast_command(
    model: options.ModelArgument,
    next_instant: Annotated[bool, Option("--next")] = False,
    k: Annotated[int, Option("-k", "--top", min=1, help="Number of facts.")] = 10,
    new_only: Annotated[bool, Option("--new")] = False,
    json: options.JsonOption = False,
) -> None:
    """List the most likely facts of the next instant over all subjects, best first.

    MODEL is a forecaster: tilp fit DATA --task forecast --out MODEL. The probability of a fact is
    how often its subject has a fact of the relation so long after the last one, times the object's
    share among all candidates. After tilp update MODEL NEW_FACTS, the next instant moves on.

    Args:
        next_instant: List facts of the first instant after the data.
        new_only: Only facts that never were before, at no time.
    """
    from tilp.model import ForecastRules

    if not next_instant:
        raise TilpError("say what to list: --next; for one question, tilp predict MODEL")
    fitted = options.load_model(model)
    if not isinstance(fitted, ForecastRules):
        raise TilpError(f"{model} does not forecast; tilp fit DATA --task forecast makes one")
    facts = fitted.forecast(k, new_only=new_only)
    if json:
        print_json(facts.to_dicts())
        return
    formats = {"subject": "", "relation": "", "object": "", "probability": ".1%"}
    rows = (console.cells(row, **formats) for row in facts.iter_rows(named=True))
    print_table(f"most likely at {fitted.now}", tuple(formats), rows, right=("probability",))


def when_command(
    model: options.ModelArgument,
    relation: Annotated[str | None, Option(help="Relation of the fact.")] = None,
    subject: Annotated[str | None, Option(help="Its subject.")] = None,
    object: Annotated[str | None, Option(help="Its object.")] = None,
    start: Annotated[str | None, Option(help="Its start: predict the end.")] = None,
    end: Annotated[str | None, Option(help="Its end: predict the start.")] = None,
    at: Annotated[str | None, Option(metavar="DATE")] = None,
    queries: Annotated[Path | None, Option(metavar="FILE")] = None,
    out: Annotated[Path | None, Option(metavar="FOLDER", show_default="print")] = None,
    data: Annotated[Path | None, Option(show_default="the model's data")] = None,
    k: Annotated[int | None, Option("-k", min=1, show_default="10; 1 with --queries")] = None,
    reasons: Annotated[int, Option(min=0, help="Number of reasons, the strongest first.")] = 5,
    on_error: Annotated[OnInvalidQuery, Option()] = OnInvalidQuery.RAISE,
    phrasings: options.PhrasingsOption = None,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
) -> None:
    """Predict when a fact starts and ends, with credible intervals and reasons.

    The amounts of the reasons for a date add up from the logit of its probability in the relation
    to that of the answer.

    Args:
        at: Print the probability that the fact holds at this date.
        queries: A TSV, CSV or Parquet file with the columns subject, relation, object, and perhaps
            start or end.
        out: With --queries: write the answers here as Parquet parts; a killed command resumes.
        data: Take the train split of this DATA as evidence.
        k: Number of intervals.
        on_error: With --queries, for unknown names and unreadable dates. raise: stop; skip: a row
            without an interval, with the reason.
    """
    if (queries is None) == (relation is None):
        raise TilpError("give --relation, --subject and --object, or a file with --queries")
    fitted = options.load_model(model, threads, backend, address, phrasings)
    graph = None if data is None else options.read_like(data, fitted)
    if queries is not None:
        table = fitted.predict_times(queries, k or 1, on_error=on_error, folder=out, graph=graph)
        if table is None:
            output().print(f"{out}: answers in Parquet parts")
        elif json:
            print_json(table.to_dicts())
        else:
            shown = ("subject", "relation", "object", "rank", "start", "end", "note")
            rows = (["" if v is None else str(v) for v in row] for row in table[shown].rows())
            print_table(None, shown, rows)
        return
    if out is not None or subject is None or object is None:
        raise TilpError("give --subject and --object; --out goes with --queries")
    fact = (subject, str(relation), object)
    if at is not None:
        holds = fitted.holds(*fact, at, start=start, end=end, graph=graph)
        if json:
            print_json({"at": at, "probability": holds})
        else:
            output().print(f"{' '.join(fact)} at {at}: {holds:.1%}")
        return
    answer = fitted.predict_time(*fact, start, end, k=k or 10, graph=graph)
    if json:
        print_json(answer.to_json())
        return
    print_explanation("\n".join(answer.lines(reasons)))
    likely = [(*answer.dates(interval), f"{share:.1%}") for interval, share in answer.intervals]
    print_table("likely intervals", ("start", "end", "probability"), likely, right=("probability",))


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


def print_predictions(
    answers: pl.DataFrame, k: int, known_facts: Callable[[Query], KnownFacts] | None = None
) -> None:
    """Print for each query at most k facts that answer it already, and a table of candidates."""
    from tilp.graph.queries import known_lines
    from tilp.scoring import Query

    for _, candidates in answers.group_by("query", maintain_order=True):
        first = candidates.row(0, named=True)
        query = Query(**{name: first[name] for name in Query.__match_args__})
        for line in () if known_facts is None else known_lines(known_facts(query), k):
            output().print(line)
        formats = {"rank": "", "candidate": "", "score": ".4g", "share": ".1%"}
        mark = ("",) if candidates["known"].any() else ()  # a column for what is known already
        rows = (
            (*console.cells(row, **formats), *("known" if row["known"] else m for m in mark))
            for row in candidates.iter_rows(named=True)
        )
        # A title of the table would be wrapped to the width of its columns.
        output().print(str(query), style="italic", highlight=False, markup=False, soft_wrap=True)
        print_table("", (*formats, *mark), rows, right=("rank", "score", "share"))
    meaning = "share: the model's probability of a candidate; scores compare within one query"
    output().print(f"({meaning})", style="dim")


def explain_command(
    model: options.ModelArgument,
    relation: Annotated[str, Option(help="Relation of the fact.")],
    subject: Annotated[str | None, Option(help="Its subject.")] = None,
    object: Annotated[str | None, Option(help="Its object.")] = None,
    start: options.StartOption = None,
    end: options.EndOption = None,
    candidate: Annotated[str | None, Option(show_default="the best")] = None,
    ask: Annotated[End | None, Option(show_default="object")] = None,
    against: Annotated[str | None, Option(show_default="the best, or the second")] = None,
    without: Annotated[list[int] | None, Option(metavar="FACT", show_default="none")] = None,
    reasons: Annotated[int, Option(min=1, help="Number of reasons, those that decide first.")] = 3,
    every: Annotated[bool, Option("--all", help="Show all reasons.")] = False,
    formal: Annotated[bool, Option("--formal")] = False,
    groundings: Annotated[int, Option(min=0)] = 3,
    html: Annotated[Path | None, Option()] = None,
    phrasings: options.PhrasingsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Explain an answer: reasons with names and dates, whose amounts add up to its score.

    Facts that answer the query already come first, each with the file and line it was read from.

    With --subject and --object, the object is explained as an answer for the subject. With one
    of them, the best answer is, or the --candidate. Reasons stand in the order of what decides
    between it and another candidate: the second best, or the best if it is not the best itself.

    Args:
        candidate: The candidate to explain, if only --subject or --object is given.
        ask: If both --subject and --object are given: which of them to explain.
        against: The candidate to compare it with.
        without: Leave out this fact, as if it were not known; repeatable. FACT is the number after
            # in an explanation.
        formal: Show the rules of each reason in formal notation.
        groundings: Greatest number of walks per reason, in --html and --json.
        html: Write an HTML page with pictures of the facts.
    """
    from tilp._utils.files import write_text
    from tilp.explanation.render import explanation_page
    from tilp.graph.queries import known_lines
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
    fitted = options.load_model(model, phrasings=phrasings)
    explanation = fitted.explain(
        query, candidate, against=against, without=without or (), groundings=groundings,
        max_reasons=None if every else max(reasons, _GROUNDED),
    )  # fmt: skip
    if html is not None:
        write_text(html, explanation_page(explanation))
        say(f"wrote {html}")
    known = fitted.known_facts(query, without=without or ())
    if json:
        facts = [asdict(fact) for fact in known[:_GROUNDED]]
        print_json({**explanation.to_json(), "known_facts": facts})
    else:
        for line in known_lines(known, _LISTED):
            output().print(line)
        print_explanation(explanation.text(None if every else reasons, formal=formal))


def print_explanation(text: str) -> None:
    """Print an explanation; long lines keep their indent."""
    from rich.padding import Padding
    from rich.text import Text

    screen = output()
    for index, line in enumerate(text.split("\n")):
        words = line.lstrip()
        is_fact = words.startswith("#")
        style = "bold" if not index else "dim" if is_fact else ""
        indent = len(line) - len(words)
        if not words:
            screen.print()
            continue
        screen.print(Padding(Text(words, style=style), (0, 0, 0, indent), expand=False))
