"""Evaluations and comparisons as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from tilp.cli.console import output

if TYPE_CHECKING:
    import polars as pl

    from tilp.evaluation import Comparison, Evaluation

__all__ = ["print_comparison", "print_evaluation"]

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
                for protocol, ties in evaluation.figures()
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
    from tilp.evaluation import APART

    rows = []
    for row in evaluation.apart().iter_rows(named=True):
        words = APART[row["rows"]] if row["holds"] else "… the rest"
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
                for name, one in comparison.figures.items()
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
