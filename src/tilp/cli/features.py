"""Temporal features for a terminal."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.table import Table

from tilp.cli.console import output, print_json, progress_bar
from tilp.cli.options import JsonOption, Model, ThreadsOption, load_model
from tilp.errors import TilpError
from tilp.features.describe import percent
from tilp.types import EvidenceKind

if TYPE_CHECKING:
    import polars as pl

_PAIR = ["evidence", "query", "other"]
_AGAIN = {"between": "again with the same", "others": "again with another"}
_FEW = ("mixing", "rules", "random walks")


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


_SHOWN = 10


def features_command(
    model: Model,
    relation: Annotated[
        str | None,
        typer.Option("--relation", show_default="all", help="One relation; name^-1: inverse."),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option("--other", show_default="all", help="The other relation of pairs."),
    ] = None,
    evidence: Annotated[
        EvidenceKind | None,
        typer.Option(
            "--evidence",
            show_default="all",
            help="Where both relations were seen. between: in facts between the same two "
            "entities; others: in other facts of one entity; walks: on walks to the answer.",
        ),
    ] = None,
    min_seen: Annotated[
        int, typer.Option("--min-seen", min=1, help="How often something was seen at least.")
    ] = 1,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, show_default="10; JSON: all", help="How many rows of each table."
        ),
    ] = None,
    learned: Annotated[
        bool,
        typer.Option(
            "--learned",
            help="What phase two learned instead: the weights of candidates' facts, rules and "
            "walks, for one --relation as it is asked, or for all in short.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            show_default=False,
            help="Draw what was observed and what is fitted to it; .png, .svg, .pdf.",
        ),
    ] = None,
    json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Show temporal features: recurrence, order, time between relations, durations.

    They are fitted to the training facts of any model, the most often seen first. The two relations
    of a pair are read from the entity that has both: graduatedFrom starts 22 years after bornIn.
    """
    from tilp.model.feature_tables import select_features

    fitted = load_model(model, threads)
    if learned:
        if other or evidence or plot or min_seen > 1:
            raise TilpError(
                "--learned shows weights, not pairs; it goes with --relation, --top and --json"
            )
        found = fitted.feature_weights(relation)
        if json:
            print_json(_first(found, top, "query", "part"))
        else:
            show_learned(found, top or _SHOWN, one=relation is not None)
        return
    with progress_bar() as bar:
        task = bar.add_task("fit distributions", total=1.0)
        fitting = fitted.distributions(progress=lambda share: bar.update(task, completed=share))
        rows = select_features(
            fitting.frame(),
            fitted.graph,
            relation=relation,
            other=other,
            evidence=evidence,
            min_seen=min_seen,
        )
        if plot is not None:
            from tilp.viz.figures import plot_features

            task = bar.add_task("draw", total=1.0)
            plot_features(
                fitting, rows, plot, progress=lambda share: bar.update(task, completed=share)
            )
    if json:
        print_json(_first(rows, top, "feature"))
    else:
        show_distributions(rows, top or _SHOWN)
    if plot is not None and not json:
        output().print(f"{plot}: drawn")


def _first(rows: pl.DataFrame, top: int | None, *by: str) -> list[dict[str, object]]:
    """Rows for programs: all, or the first of each kind."""
    if top is not None:
        rows = rows.group_by(*by, maintain_order=True).head(top)
    return rows.to_dicts()
