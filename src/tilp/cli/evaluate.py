"""Evaluations and comparisons as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tilp.cli.console import output, print_json, progress_bar
from tilp.cli.options import (
    Columns,
    EvaluationFolder,
    Header,
    JsonOption,
    OnErrorOption,
    Protocols,
    ThreadsOption,
    UnitOption,
    read_data,
)
from tilp.errors import TilpError
from tilp.types import OnError, Protocol, Ties

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tilp.evaluation import Comparison, Evaluation
    from tilp.graph import TemporalGraph

_SHOWN_RELATIONS = 30
_FIGURES = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank")


def print_evaluation(
    evaluation: Evaluation, name: str, *, seed: int = 0, relations: int = _SHOWN_RELATIONS
) -> None:
    """Figures by protocol and ties, the interval of the headline's MRR, and figures of parts.

    Args:
        evaluation: what to print.
        name: what was evaluated, for the title.
        seed: for the interval.
        relations: how many rows of relations are shown at the most.
    """
    console = output()
    facts = len(evaluation) // 2
    console.print(
        _table(
            f"{name} · {facts:,} facts of {evaluation.split}, asked in both directions",
            ("protocol", "ties"),
            _FIGURES,
            (
                [protocol.value, ties.value, *_cells(metrics.values())]
                for protocol, ties in evaluation.protocols_and_ties()
                for metrics in [evaluation.metrics(protocol, ties).to_json()]
            ),
        )
    )
    headline = " ".join(evaluation.headline)
    mrr = evaluation.bootstrap(seed=seed)["mrr"]
    console.print(
        f"{headline}: MRR {mrr.value:.4f}, 95 % interval {mrr.low:.4f} to {mrr.high:.4f} "
        "(bootstrap over facts)\n"
    )
    _print_parts(evaluation, headline, relations)


def _print_parts(evaluation: Evaluation, headline: str, shown: int) -> None:
    from tilp.evaluation import SUBSETS

    rows = []
    for row in evaluation.by_subset().iter_rows(named=True):
        words = SUBSETS[row["rows"]] if row["holds"] else "… the rest"
        rows.append([words, f"{row['queries']:,}", *_cells(row[one] for one in _FIGURES)])
    console = output()
    console.print(_table(f"apart · {headline}", ("rows",), ("queries", *_FIGURES), rows))
    relations = evaluation.by_relation()
    console.print(
        _table(
            f"relations · {headline}",
            ("relation", "asked"),
            ("queries", *_FIGURES),
            (
                [
                    row["relation"],
                    row["direction"],
                    f"{row['queries']:,}",
                    *_cells(row[one] for one in _FIGURES),
                ]
                for row in relations.head(shown).iter_rows(named=True)
            ),
        )
    )
    _print_left_out(relations, shown)


def print_comparison(
    comparison: Comparison, first: str, second: str, *, relations: int = _SHOWN_RELATIONS
) -> None:
    """Both figures, their difference with interval and p-value, and relations.

    Args:
        comparison: what to print.
        first: what A is; likewise `second`, B.
        relations: how many rows of relations are shown at the most.
    """
    console = output()
    console.print(f"A: {first}\nB: {second}")
    how = f"{comparison.protocol} {comparison.ties}"
    console.print(
        _table(
            f"{how} · {comparison.facts:,} facts, asked in both directions",
            ("figure",),
            ("A", "B", "B - A", "95 % interval", "p"),
            (
                [
                    name,
                    f"{one.first:.4f}",
                    f"{one.second:.4f}",
                    f"{one.difference:+.4f}",
                    f"{one.low:+.4f} to {one.high:+.4f}",
                    "< 0.001" if one.p_value < 0.001 else f"{one.p_value:.3f}",
                ]
                for name, one in comparison.metrics.items()
            ),
        )
    )
    console.print(
        f"B ranks the answer better in {comparison.wins:,} queries, A in {comparison.losses:,}; "
        f"{comparison.draws:,} are the same.\n"
    )
    console.print(
        _table(
            f"MRR by relation · {how}",
            ("relation", "asked"),
            ("queries", "A", "B", "B - A", "B better", "A better"),
            (
                [
                    row["relation"],
                    row["direction"],
                    f"{row['queries']:,}",
                    f"{row['first']:.4f}",
                    f"{row['second']:.4f}",
                    f"{row['difference']:+.4f}",
                    f"{row['wins']:,}",
                    f"{row['losses']:,}",
                ]
                for row in comparison.by_relation.head(relations).iter_rows(named=True)
            ),
        )
    )
    _print_left_out(comparison.by_relation, relations)


def _table(
    title: str, names: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]
) -> Table:
    table = Table(title=title, title_justify="left")
    for column in names:
        table.add_column(column, overflow="fold")
    for column in figures:
        table.add_column(column.replace("_", " "), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _cells(figures: Iterable[float | None]) -> list[str]:
    """MRR and hits to four digits, the mean rank to one; a dash where there are no queries."""
    *shares, mean_rank = figures
    cells = ["-" if one is None else f"{one:.4f}" for one in shares]
    return [*cells, "-" if mean_rank is None else f"{mean_rank:,.1f}"]


def _print_left_out(relations: pl.DataFrame, shown: int) -> None:
    if len(relations) > shown:
        output().print(f"(and {len(relations) - shown:,} rows more: --json)", style="dim")


ScoreFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCORES",
        show_default=False,
        help=(
            "Scored candidates as TSV, CSV or Parquet, with the columns subject, relation, "
            "object, start, end (the fact, as in DATA), direction (object or subject: which is "
            "asked for), candidate, score."
        ),
    ),
]
SplitOption = Annotated[str, typer.Option("--split", help="Whose facts were asked.")]
DefaultOption = Annotated[
    float,
    typer.Option(
        "--default", show_default="below all", help="The score of candidates that are not listed."
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="For intervals and significance.")]


def evaluate_scores_command(
    scores: ScoreFile,
    data: Annotated[Path, typer.Option("--data", help="DATA that the candidates are of.")],
    split: SplitOption = "test",
    protocol: Protocols = None,
    out: EvaluationFolder = None,
    default: DefaultOption = float("-inf"),
    json: JsonOption = False,
    threads: ThreadsOption = None,
    seed: SeedOption = 0,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Measure the scored candidates of any tool: MRR, hits and mean rank.

    Every fact of the split is asked in both directions, and every entity is a candidate. Figures
    come for each protocol and tie rule, for each relation and direction, for rows that are worth
    a look apart, and with a bootstrap interval.
    """
    graph = read_data(data, unit, on_error, columns, header)
    evaluation = _evaluate_file(scores, graph, split, protocol, default, threads)
    report(evaluation, str(scores), out, json=json, seed=seed)


def report(evaluation: Evaluation, name: str, out: Path | None, *, json: bool, seed: int) -> None:
    """Save an evaluation where that is asked for, and print it."""
    if out is not None:
        evaluation.save(out)
    if json:
        print_json(evaluation.to_json(seed=seed))
    else:
        print_evaluation(evaluation, name, seed=seed)


def compare_command(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="A", show_default=False, help="A saved evaluation, or a file of scores."
        ),
    ],
    second: Annotated[
        Path, typer.Argument(metavar="B", show_default=False, help="Another of the same queries.")
    ],
    protocol: Annotated[
        Protocol, typer.Option("--protocol", help="Which answers are removed.")
    ] = Protocol.ENUMERATE,
    ties: Annotated[
        Ties | None,
        typer.Option("--ties", show_default="average", help="The rank among equal scores."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="DATA that the candidates are of, where A or B is a file."),
    ] = None,
    split: SplitOption = "test",
    default: DefaultOption = float("-inf"),
    json: JsonOption = False,
    threads: ThreadsOption = None,
    seed: SeedOption = 0,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Compare two evaluations of the same queries, A and B: paired, with significance.

    For MRR and hits: both figures, B - A with its bootstrap interval, and the chance of such a
    difference if A and B were alike (a paired permutation test over facts). Then how often either
    ranks the answer better, and MRR for each relation and direction.
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
                f"{path} is a file: give --data DATA with what its candidates are of, or give "
                "saved evaluations (tilp evaluate-scores --out FOLDER)"
            )
        if graph is None:
            graph = read_data(data, unit, on_error, columns, header)
        evaluations.append(_evaluate_file(path, graph, split, [protocol], default, threads))
    comparison = compare(evaluations[0], evaluations[1], protocol, ties, seed=seed)
    if json:
        print_json({"first": str(first), "second": str(second), **comparison.to_json()})
    else:
        print_comparison(comparison, str(first), str(second))


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
    with progress_bar() as bar:
        task = bar.add_task("rank", total=1.0)
        return evaluate(
            scores,
            graph,
            split,
            protocols=protocols or None,
            threads=thread_count(threads),
            progress=lambda share: bar.update(task, completed=share),
            note=f"scores of {path.name}",
        )
