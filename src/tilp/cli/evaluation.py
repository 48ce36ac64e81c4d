"""Commands that measure scores and compare evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.choices import OnError, Protocol, Ties
from tilp.cli.console import print_json, progress_bar
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilp.evaluation import Evaluation
    from tilp.graph import TemporalGraph

__all__ = ["compare_command", "evaluate_scores_command", "report"]

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
        from tilp.cli.evaluation_tables import print_evaluation

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
        from tilp.cli.evaluation_tables import print_comparison

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
