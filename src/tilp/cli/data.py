"""Commands that convert, pack and download data; and the demonstration."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from tilp._utils.memory import parse_size
from tilp.cli import options
from tilp.cli.console import output, print_table, progress_bar, stage_bars, task_bar
from tilp.cli.fit import fit_with_progress
from tilp.cli.inspect import print_inspection
from tilp.cli.predict import print_explanation, print_predictions
from tilp.cli.rules import print_rules
from tilp.errors import TilpError
from tilp.types import Estimate, TableFormat

if TYPE_CHECKING:
    from tilp.datasets import World

_DEMO_QUERIES = 50
_NEXT_STEPS = """
Your own table (subject, relation, object, start, end) next:
  tilp inspect facts.csv
  tilp fit facts.csv --out model
  tilp serve model --open"""
_MIN_PACK_MEMORY = 16 * 10**6

datasets = typer.Typer(
    help="Download published data sets, or generate the synthetic world.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def convert_command(
    data: options.DataArgument,
    out: options.OutFolderOption,
    format: options.FormatOption = TableFormat.TSV,
    read: options.ReadOptions = options.READ,
) -> None:
    """Write DATA as a folder of tables: the splits, names, attributes, the unit.

    Dates are written as they were read. Reading the folder gives an equal graph.
    """
    from tilp.io import write

    graph = read.read(data)
    write(graph, out, format=format)
    output().print(f"{out}: {graph}")


def impute_command(
    data: options.DataArgument,
    out: options.OutFolderOption,
    model: Annotated[Path | None, Option(show_default="durations of the relation")] = None,
    estimate: Annotated[Estimate, Option()] = Estimate.EXPECTED,
    seed: options.SeedOption = 0,
    format: options.FormatOption = TableFormat.TSV,
    read: options.ReadOptions = options.READ,
) -> None:
    """Write DATA with missing starts and ends estimated, and marked as estimates.

    The length of each relation's facts is a Gaussian truncated to lengths from 0 on, fitted to the
    training facts with both dates. A missing end is the start plus such a length, a missing start
    the end minus it; facts without any date stay as they are, and so do those of relations without
    any fact with both dates. The column 'estimated' of the files
    written says which dates are estimates: start, end or both. tilp fit --missing duration does
    the same with draws, and leaves DATA alone.

    Args:
        model: Predict the dates with this model instead, as tilp when does. The file
            OUT-estimates.parquet has the 80 % credible interval of each.
        estimate: Length of a fact with one date. expected: the mean length of its relation's facts;
            drawn: a random draw for each fact.
    """
    from tilp._utils.files import new_file, new_folder
    from tilp.io.tables import write, write_tables
    from tilp.time.durations import Durations
    from tilp.time.imputation import imputation_counts, impute

    fitted = None if model is None else options.load_model(model)
    graph = read.read(data, like=None if fitted is None else fitted.graph)
    durations = Durations.fit(graph)
    if fitted is None:
        imputed = impute(graph, estimate=estimate, seed=seed, durations=durations)
        write(imputed, out, format=format)
    else:
        imputed, estimates = fitted.time_predictor().impute(graph)
        with new_folder(out) as folder, new_file(Path(f"{out}-estimates.parquet")) as file:
            write_tables(imputed, folder, format)
            estimates.write_parquet(file)
    counts = imputation_counts(imputed)
    total = int(counts["starts"].sum()) + int(counts["ends"].sum())
    figures = ("facts", "starts", "ends", "still missing", "complete in train", "mean length")
    rows = []
    for (relation, *numbers), row in zip(counts.rows(), durations.frame().to_dicts(), strict=True):
        unknown = not row["intervals"]
        note = "length unknown" if unknown else "of all relations" if row["pooled"] else ""
        numbers = [f"{count:,}" for count in (*numbers, row["intervals"])]
        rows.append((relation, *numbers, "-" if unknown else f"{row['mean']:,.1f}", note))
    print_table(f"{total:,} dates estimated", ("relation", *figures, ""), rows, right=figures)
    output().print(f"{out}: {imputed}")


def pack_command(
    data: options.DataArgument,
    out: options.OptionalOutFolderOption = None,
    memory: options.MemoryOption = "1GB",
    check: Annotated[bool, Option("--check")] = False,
    read: options.ReadOptions = options.READ,
) -> None:
    """Write DATA as a memory-mapped folder that opens quickly, however large.

    DATA may be larger than memory. Every command that takes DATA takes this folder too, with the
    same results; processes that use it at the same time share its memory. A model fitted to it
    keeps its graph in this form.

    Args:
        check: DATA is a packed graph: read all of it and report damage. Pack nothing.
    """
    from tilp.io.packed.format import check_files, read_metadata
    from tilp.io.packed.pack import STAGES, pack
    from tilp.io.read import warn_of_defects

    if check and out is not None:
        raise TilpError("--check packs nothing: give --out or --check, not both")
    if check:
        with task_bar("check") as advance_check:
            check_files(data, advance_check)
        output().print(f"{data}: as it was written; {_size(read_metadata(data))}")
        return
    if out is None:
        raise TilpError("say where to: tilp pack DATA --out GRAPH")
    if read.keep:
        remedy = "tilp convert DATA --out FOLDER --keep …, then tilp pack FOLDER"
        raise TilpError(f"tilp pack does not take --keep: {remedy}")
    started = time.perf_counter()
    with stage_bars(STAGES) as advance:
        source, size = options.standard_input(data), parse_size(memory, _MIN_PACK_MEMORY)
        graph = pack(source, out, **read.arguments, memory=size, progress=advance)
    seconds = time.perf_counter() - started
    warn_of_defects(graph)
    output().print(f"{out}: {graph}")
    output().print(f"{_size(read_metadata(out))} on disk, packed in {seconds:,.1f} s")


def _size(note: dict[str, dict[str, dict[str, int]]]) -> str:
    files = note["files"].values()
    return f"{len(files) + 1} files, {sum(file['bytes'] for file in files) / 1e6:,.1f} MB"


@datasets.command("list")
def list_command() -> None:
    """List the published data sets and show which are downloaded."""
    from tilp._utils.files import cache_folder
    from tilp.datasets import PUBLISHED

    rows = []
    for name, published in PUBLISHED.items():
        files = [cache_folder() / name / file.name for file in published.files]
        here = "yes" if all(file.is_file() for file in files) else "no"
        rows.append((name, published.description, published.licence, here))
    columns = ("name", "what it is", "licence", "downloaded")
    print_table(f"downloaded to {cache_folder()}", columns, rows)


@datasets.command("get")
def get_command(
    name: Annotated[str, Argument(help="See tilp datasets list.")],
    folder: Annotated[
        Path | None, Option(show_default="the cache", help="Where to put the files.")
    ] = None,
) -> None:
    """Download a published data set and print its folder.

    Files that are there already are not fetched again, an interrupted download resumes, and the
    SHA-256 of every file is checked.
    """
    from rich.progress import TaskID

    from tilp.datasets import get

    tasks: dict[str, TaskID] = {}
    with progress_bar(transfer=True) as bar:

        def show(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            bar.update(tasks[file], completed=done, total=total)

        path = get(name, folder, progress=show)
    typer.echo(path)


@datasets.command("world")
def world_command(
    out: options.OutFolderOption,
    size: options.WorldSizeOption = 10_000,
    seed: options.SeedOption = 0,
    format: options.FormatOption = TableFormat.TSV,
) -> None:
    """Write the synthetic world, whose rules are known."""
    from tilp.datasets import world
    from tilp.io import write

    generated = world(seed, size)
    write(generated.graph, out, format=format)
    output().print(f"{out}: {generated.graph}")
    _print_planted_rules(generated)


def _print_planted_rules(world: World) -> None:
    rows = ((f"{rule.confidence:.2f}", rule.text) for rule in world.rules)
    print_table("rules planted in this world", ("confidence", "rule"), rows, right=("confidence",))


def demo_command(size: options.WorldSizeOption = 3_000, seed: options.SeedOption = 0) -> None:
    """Show what tilp does on a small synthetic world, from facts to explanations.

    In this world people are born, study, play for teams, win prizes, marry, move and die, by
    known rules, so that you can compare what is learned with the truth.
    """
    from tilp.data_quality import inspect
    from tilp.datasets import world
    from tilp.evaluation import evaluate, popularity
    from tilp.model import TILP
    from tilp.scoring import Query

    console = output()
    console.rule("A world of dated facts")
    generated = world(seed, size)
    graph = generated.graph
    for row in range(0, len(graph), len(graph) // 5):
        console.print(str(graph.fact(row)))
    console.print(f"… {len(graph):,} facts in all, seed {seed}.\n")
    _print_planted_rules(generated)
    console.rule("What is in it, and what is wrong with it: tilp inspect")
    print_inspection(inspect(graph), f"world, seed {seed}")
    console.rule("Learned rules and their weights: tilp fit")
    model = TILP.from_options(features="none", random_state=seed)  # rules alone: plain reasons
    fit_with_progress(model, graph)
    relations = list(dict.fromkeys(rule.relation for rule in generated.rules))
    best = [rules[0] for relation in relations if len(rules := model.rules(relation))]
    title = f"the best for each of {len(relations)} relations, of {len(model.rules()):,} learned"
    print_rules(best, title)
    planted = {(rule.relation, rule.body) for rule in generated.rules}
    chains = [(m.rule.head.relation, tuple(map(str, m.rule.body))) for m in best]
    count = sum(chain in planted for chain in chains)
    console.print(f"{count} of these {len(best)} have the body of a planted rule.\n")
    console.rule("How well they predict held-out facts: tilp evaluate")
    baseline, rows = popularity(graph), []
    for name, scorer in (("this model", model.scorer()), ("popularity baseline", baseline)):
        metrics = evaluate(scorer, graph, protocols=["enumerate"]).metrics()
        figures = (metrics.mrr, metrics.hits_at_1, metrics.hits_at_10)
        rows.append((name, *(f"{figure:.3f}" for figure in figures)))
    titles = ("MRR", "hits@1", "hits@10")
    print_table("test split, protocol enumerate, average ties", ("", *titles), rows, right=titles)
    console.rule("A query, and the reasons for its answer: tilp predict, tilp explain")
    # The object of a test fact: predicted rightly, and mostly due to one reason.
    facts = graph.frame("test").head(_DEMO_QUERIES).to_dicts()
    queries = [Query(f["relation"], f["subject"], None, f["start"], f["end"]) for f in facts]

    def plainness(index: int) -> float:
        answer = model.ask(queries[index], k=1)[0]
        if answer.known or answer.candidate != facts[index]["object"]:
            return 0.0
        explained = model.explain(queries[index], max_reasons=1, ablation=False)
        return answer.share * explained.reasons[0].score / explained.score

    index = max(range(len(queries)), key=plainness)
    query, fact = queries[index], graph.fact(graph.rows("test")[index])
    print_predictions(model.predict(query, k=5), 5)
    console.print(f"The fact that was held out: {fact}\n")
    print_explanation(model.explain(query).text())
    console.print(_NEXT_STEPS)
