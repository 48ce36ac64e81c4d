"""Commands that measure models and scores of other tools, and compare evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from tilp.cli import options
from tilp.cli.console import output, print_json, print_table, task_bar
from tilp.errors import TilpError
from tilp.types import Backend, OnError, Protocol, Ties

if TYPE_CHECKING:
    import polars as pl

    from tilp.evaluation import Comparison, Evaluation
    from tilp.graph import TemporalGraph

_SHOWN_RELATIONS = 30
_METRICS = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank")
_METRIC_TITLES = ("mrr", "hits@1", "hits@3", "hits@10", "mean rank")

DefaultOption = Annotated[
    float,
    Option("--default", show_default="below all", help="Score of candidates that are not listed."),
]


def evaluate_command(
    model: options.ModelArgument,
    split: options.SplitOption = "test",
    known: Annotated[
        Path | None,
        Option(
            metavar="DATA",
            show_default="the model's data",
            help="Data to take the split and the known answers from. For a model of reduced data "
            "(tilp split --graph reduced): the data with all facts.",
        ),
    ] = None,
    protocol: options.ProtocolsOption = None,
    out: options.EvaluationFolderOption = None,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    backend: options.BackendOption = Backend.THREADS,
    address: options.AddressOption = None,
    seed: options.SeedOption = 0,
) -> None:
    """Measure a model: MRR, hits and mean rank, under every protocol and tie rule.

    Each fact of the split gives two queries, one for its object and one for its subject. Every
    entity is a candidate, and only train is evidence. Evaluations saved with --out can be
    compared: tilp compare A B.
    """
    fitted = options.load_model(model, threads, backend, address)
    graph = None
    if known is not None:
        graph = options.read_data(known, fitted.graph.unit, OnError.REPAIR, None, None)
    with task_bar("rank") as advance:
        evaluation = fitted.evaluate(
            split, known=graph, protocols=protocol or None, progress=advance
        )
    _report(evaluation, str(model), out, json=json, seed=seed)


def evaluate_scores_command(
    scores: Annotated[
        Path,
        Argument(
            metavar="SCORES",
            help="Scored candidates as TSV, CSV or Parquet, with the columns subject, relation, "
            "object, start, end (the fact, as in DATA), direction (object or subject: which one "
            "the query asks for), candidate, score.",
        ),
    ],
    data: Annotated[Path, Option(help="DATA that the scores belong to.")],
    split: options.SplitOption = "test",
    protocol: options.ProtocolsOption = None,
    out: options.EvaluationFolderOption = None,
    default: DefaultOption = float("-inf"),
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    seed: options.SeedOption = 0,
    unit: options.UnitOption = None,
    on_error: options.OnErrorOption = OnError.REPAIR,
    columns: options.ColumnsOption = None,
    header: options.HeaderOption = None,
) -> None:
    """Measure the scored candidates of any tool: MRR, hits and mean rank.

    Each fact of the split gives two queries, and every entity is a candidate. Metrics are printed
    for each protocol and tie rule, for each relation and direction, for subsets worth a look, and
    with a bootstrap interval.
    """
    graph = options.read_data(data, unit, on_error, columns, header)
    evaluation = _evaluate_file(scores, graph, split, protocol, default, threads)
    _report(evaluation, str(scores), out, json=json, seed=seed)


def compare_command(
    first: Annotated[Path, Argument(metavar="A", help="A saved evaluation, or a file of scores.")],
    second: Annotated[Path, Argument(metavar="B", help="Another of the same queries.")],
    protocol: Annotated[
        Protocol, Option(help="Which other true answers to filter out before ranking.")
    ] = Protocol.ENUMERATE,
    ties: Annotated[
        Ties | None, Option(show_default="average", help="Rank among equal scores.")
    ] = None,
    data: Annotated[
        Path | None, Option(help="DATA that the scores belong to, if A or B is a file.")
    ] = None,
    split: options.SplitOption = "test",
    default: DefaultOption = float("-inf"),
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
    seed: options.SeedOption = 0,
    unit: options.UnitOption = None,
    on_error: options.OnErrorOption = OnError.REPAIR,
    columns: options.ColumnsOption = None,
    header: options.HeaderOption = None,
) -> None:
    """Compare two evaluations of the same queries, A and B: paired, with significance.

    For MRR and hits: both metrics, B - A with its bootstrap interval, and the p-value of a paired
    permutation test over facts. Then the number of queries that either ranks better, and MRR for
    each relation and direction.
    """
    from tilp.evaluation import compare, load_evaluation

    graph: TemporalGraph | None = None
    evaluations: list[Evaluation] = []
    for path in (first, second):
        if not path.is_file():
            evaluations.append(load_evaluation(path))
            continue
        if data is None:
            raise TilpError(
                f"{path} is a file of scores: give --data DATA that they belong to, or give saved "
                "evaluations (tilp evaluate-scores --out FOLDER)"
            )
        if graph is None:
            graph = options.read_data(data, unit, on_error, columns, header)
        evaluations.append(_evaluate_file(path, graph, split, [protocol], default, threads))
    comparison = compare(evaluations[0], evaluations[1], protocol, ties, seed=seed)
    if json:
        print_json({"first": str(first), "second": str(second), **comparison.to_json()})
    else:
        output().print(f"A: {first}\nB: {second}")
        _print_comparison(comparison)


def _evaluate_file(
    path: Path,
    graph: TemporalGraph,
    split: str,
    protocols: Sequence[Protocol] | None,
    default: float,
    threads: int | None,
) -> Evaluation:
    from tilp.evaluation import evaluate, read_scores
    from tilp.parallel import thread_count

    scores = read_scores(path, graph, split, default=default)
    with task_bar("rank") as advance:
        return evaluate(
            scores,
            graph,
            split,
            protocols=protocols or None,
            threads=thread_count(threads),
            progress=advance,
            note=f"scores of {path.name}",
        )


def _report(evaluation: Evaluation, name: str, out: Path | None, *, json: bool, seed: int) -> None:
    """Save an evaluation if --out is given, and print it."""
    if out is not None:
        evaluation.save(out)
    if json:
        print_json(evaluation.to_json(seed=seed))
    else:
        _print_evaluation(evaluation, name, seed=seed)


def _print_evaluation(evaluation: Evaluation, name: str, *, seed: int) -> None:
    from tilp.evaluation import SUBSETS

    print_table(
        f"{name} · {len(evaluation) // 2:,} facts of {evaluation.split}, queried both ways",
        ("protocol", "ties", *_METRIC_TITLES),
        (
            (protocol.value, ties.value, *_cells(evaluation.metrics(protocol, ties).to_json()))
            for protocol, ties in evaluation.protocols_and_ties()
        ),
        right=_METRIC_TITLES,
    )
    headline = " ".join(evaluation.headline)
    mrr = evaluation.bootstrap(seed=seed)["mrr"]
    output().print(
        f"{headline}: MRR {mrr.value:.4f}, 95 % interval {mrr.low:.4f} to {mrr.high:.4f} "
        "(bootstrap over facts)\n"
    )
    figures = ("queries", *_METRIC_TITLES)
    print_table(
        f"subsets · {headline}",
        ("facts", *figures),
        (
            (
                SUBSETS[row["rows"]] if row["holds"] else "… the rest",
                f"{row['queries']:,}",
                *_cells(row),
            )
            for row in evaluation.by_subset().iter_rows(named=True)
        ),
        right=figures,
    )
    relations = evaluation.by_relation()
    print_table(
        f"relations · {headline}",
        ("relation", "query for", *figures),
        (
            (row["relation"], row["direction"], f"{row['queries']:,}", *_cells(row))
            for row in relations.head(_SHOWN_RELATIONS).iter_rows(named=True)
        ),
        right=figures,
    )
    _print_omitted(relations)


def _print_comparison(comparison: Comparison) -> None:
    setting = f"{comparison.protocol} {comparison.ties}"
    figures = ("A", "B", "B - A", "95 % interval", "p")
    print_table(
        f"{setting} · {comparison.facts:,} facts, queried both ways",
        ("metric", *figures),
        (
            (
                name,
                f"{metric.first:.4f}",
                f"{metric.second:.4f}",
                f"{metric.difference:+.4f}",
                f"{metric.low:+.4f} to {metric.high:+.4f}",
                "< 0.001" if metric.p_value < 0.001 else f"{metric.p_value:.3f}",
            )
            for name, metric in comparison.metrics.items()
        ),
        right=figures,
    )
    output().print(
        f"B ranks the answer better in {comparison.wins:,} queries, A in {comparison.losses:,}; "
        f"{comparison.draws:,} are the same.\n"
    )
    counts = ("queries", "A", "B", "B - A", "B better", "A better")
    print_table(
        f"MRR by relation · {setting}",
        ("relation", "query for", *counts),
        (
            (
                row["relation"],
                row["direction"],
                f"{row['queries']:,}",
                f"{row['first']:.4f}",
                f"{row['second']:.4f}",
                f"{row['difference']:+.4f}",
                f"{row['wins']:,}",
                f"{row['losses']:,}",
            )
            for row in comparison.by_relation.head(_SHOWN_RELATIONS).iter_rows(named=True)
        ),
        right=counts,
    )
    _print_omitted(comparison.by_relation)


def _cells(metrics: dict[str, float | None]) -> Iterable[str]:
    """Format MRR and hits to four digits, the mean rank to one; a dash if there are no queries."""
    for name in _METRICS:
        value = metrics[name]
        digits = ",.1f" if name == "mean_rank" else ".4f"
        yield "-" if value is None else format(value, digits)


def _print_omitted(relations: pl.DataFrame) -> None:
    omitted = len(relations) - _SHOWN_RELATIONS
    if omitted > 0:
        output().print(f"(and {omitted:,} rows more: --json)", style="dim")
