"""Temporal features for a terminal."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import polars as pl
from rich.table import Table

from tilp.cli.console import output
from tilp.features.wording import percent

__all__ = ["show_distributions", "show_learned"]

_PAIR = ["evidence", "query", "other"]
_AGAIN = {"between": "again with the same", "others": "again with another"}
_FEW = ("mixing", "rules", "soft walks")


def show_distributions(rows: pl.DataFrame, top: int) -> None:
    """A table for pairs, one for recurrence, one for durations, where there are such.

    Args:
        rows: of `Distributions.frame`.
        top: how many of each.
    """
    if rows.is_empty():
        output().print("nothing of the kind was seen in the training facts")
        return
    notes = []
    if "pair" in rows["feature"]:
        _show_pairs(rows, top)
        notes.append(
            "±: standard deviation. After: how often the relation named first starts later. "
            "Fitted: Gaussian N(μ, σ), or exponential Exp(λ)."
        )
    if "recurrence" in rows["feature"]:
        _show_recurrence(rows.filter(feature="recurrence"), top)
    if "duration" in rows["feature"]:
        _show_durations(rows.filter(feature="duration"), top)
        notes.append("Durations: N(μ, σ) truncated to [0, ∞).")
    notes.append("More: --relation R --other R2, --evidence, --top N, --json. See it: --plot FILE.")
    output().print("\n".join(notes), style="dim")


def show_learned(found: pl.DataFrame, top: int, *, one: bool) -> None:
    """What phase two learned: of one relation the strongest weights, of all a line each.

    Args:
        found: of `learned_weights`.
        top: how many weights.
        one: whether these are of one relation.
    """
    if found["query"].is_null().all():
        cells = [(f"{row['weight']:.3g}", row["sentence"]) for row in found.to_dicts()]
        _show("what each part counts (γ)", ("weight", "part"), cells, right=(0,))
    elif one:
        _show_one_learned(found, top)
    else:
        _show_all_learned(found)


def _show_pairs(rows: pl.DataFrame, top: int) -> None:
    pairs = rows.filter(feature="pair")
    order = rows.filter(feature="order").select(*_PAIR, after="probability")
    shown = pairs.join(order, on=_PAIR, how="left", maintain_order="left").head(top)
    cells = [
        (
            row["evidence"],
            row["sentence"],
            percent(row["after"]),
            f"N({row['mean']:.1f}, {row['deviation']:.1f})"
            if row["distribution"] == "Gaussian"
            else f"Exp({row['rate']:.3g})",
        )
        for row in shown.iter_rows(named=True)
    ]
    title = _title("time between relations (RelationPairInterval, TemporalOrder)", pairs, top)
    _show(title, ("evidence", "in words", "after", "fitted"), cells, right=(2,))


def _show_recurrence(rows: pl.DataFrame, top: int) -> None:
    by_relation = rows.pivot("evidence", index=["query", "relation", "seen"], values="probability")
    kinds = [kind for kind in _AGAIN if kind in by_relation.columns]
    cells = [
        (row["relation"], *(percent(row[kind]) for kind in kinds), f"{row['seen']:,}")
        for row in by_relation.head(top).iter_rows(named=True)
    ]
    columns = ("relation", *(_AGAIN[kind] for kind in kinds), "facts")
    title = _title("does it happen again (Recurrence)", by_relation, top)
    _show(title, columns, cells, right=range(1, len(columns)))


def _show_durations(rows: pl.DataFrame, top: int) -> None:
    cells = [
        (row["sentence"], f"N({row['mu']:.1f}, {row['sigma']:.1f})")
        for row in rows.head(top).iter_rows(named=True)
    ]
    _show(_title("how long facts last (Duration)", rows, top), ("in words", "fitted"), cells)


def _show_one_learned(found: pl.DataFrame, top: int) -> None:
    console = output()
    console.print(f"(s, {found['query'][0]}, ?)")
    for sentence in found.filter(pl.col("of").is_null())["sentence"]:
        console.print(f"  {sentence}")
    for title, rows in (
        ("facts of the candidate", found.filter(pl.col("words").is_not_null())),
        ("evidence of rules", found.filter(part="rule evidence")),
    ):
        if len(rows):
            cells = [
                (f"{row['weight']:+.2f}", row["sentence"].rpartition(": ")[0])
                for row in rows.head(top).iter_rows(named=True)
            ]
            _show(_title(title, rows, top), ("weight", "what it is added for"), cells, right=(0,))
    console.print("The strongest first. More: --top N, --json.", style="dim")


def _show_all_learned(found: pl.DataFrame) -> None:
    """One line for each relation: its few weights, and its strongest word."""
    facts = found.filter(pl.col("words").is_not_null()).unique("query", keep="first")
    strongest = dict(facts.select("query", "sentence").iter_rows())
    few = found.filter(pl.col("part").is_in(_FEW))
    weights = few.pivot("part", index="query", values="weight").fill_null(0.0)
    weights = weights.sort("mixing", descending=True, maintain_order=True)
    shown = [part for part in _FEW if part in weights.columns]
    cells = [
        (
            row["query"],
            *(f"{row[part]:.2f}" for part in shown),
            strongest.get(row["query"], ""),
        )
        for row in weights.filter(pl.col("mixing") > 0).iter_rows(named=True)
    ]
    columns = ("relation as asked", *shown, "strongest word for the candidate's facts")
    _show("what phase two learned", columns, cells, right=range(1, 1 + len(shown)))
    as_they_are = ", ".join(weights.filter(mixing=0.0)["query"])
    if as_they_are:
        output().print(f"nothing learned, the rules as they are: {as_they_are}")
    output().print("The words and rules of one relation: --relation R.", style="dim")


def _title(what: str, rows: pl.DataFrame, top: int) -> str:
    return f"{what}: {min(top, len(rows)):,} of {len(rows):,}"


def _show(
    title: str,
    columns: Sequence[str],
    cells: Iterable[Sequence[str]],
    *,
    right: Container[int] = (),
) -> None:
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place in right else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    output().print(table)
