"""`tilp features`: temporal distributions, and the weights of features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli import options
from tilp.cli.console import output, print_json, print_table, progress_bar
from tilp.errors import TilpError
from tilp.types import EvidenceKind

if TYPE_CHECKING:
    import polars as pl

_SHOWN_ROWS = 10
_PAIR = ["evidence", "query", "other"]
_RECURRENCE = {"between": "again with the same", "others": "again with another"}


def features_command(
    model: options.ModelArgument,
    relation: options.RelationFilterOption = None,
    other: Annotated[
        str | None, typer.Option("--other", show_default="all", help="The other relation of pairs.")
    ] = None,
    evidence: Annotated[
        EvidenceKind | None,
        typer.Option(
            "--evidence",
            show_default="all",
            help="Where both relations were observed. between: in facts between the same two "
            "entities; others: in other facts of one entity; walks: on walks to the answer.",
        ),
    ] = None,
    min_seen: Annotated[
        int, typer.Option("--min-seen", min=1, help="Least number of observations.")
    ] = 1,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, show_default="10; JSON: all", help="Number of rows in each table."
        ),
    ] = None,
    learned: Annotated[
        bool,
        typer.Option(
            "--learned",
            help="Show the learned weights instead: of candidate history, rules and random "
            "walks, in full for one --relation, in short for all.",
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            show_default=False,
            help="Draw the observations and the fitted distributions; .png, .svg, .pdf.",
        ),
    ] = None,
    json: options.JsonOption = False,
    threads: options.ThreadsOption = None,
) -> None:
    """Show temporal features: recurrence, order, time between relations, durations.

    They are fitted to the training facts of any model, and sorted by the number of observations.
    The two relations of a pair are read from the entity that has both: graduatedFrom starts 22
    years after bornIn.
    """
    from tilp.model.feature_tables import select_features

    fitted = options.load_model(model, threads)
    if learned:
        if other or evidence or plot or min_seen > 1:
            raise TilpError(
                "--learned shows weights, not pairs; it goes with --relation, --top and --json"
            )
        weights = fitted.feature_weights(relation)
        if json:
            print_json(_top_rows(weights, top, "query", "part"))
        else:
            _print_learned(weights, top or _SHOWN_ROWS, in_full=relation is not None)
        return
    with progress_bar() as bar:
        task = bar.add_task("fit distributions", total=1.0)
        distributions = fitted.distributions(
            progress=lambda share: bar.update(task, completed=share)
        )
        rows = distributions.frame()
        rows = select_features(rows, fitted.graph, relation, other, evidence, min_seen)
        if plot is not None:
            from tilp.viz.figures import plot_features

            task = bar.add_task("draw", total=1.0)
            plot_features(
                distributions, rows, plot, progress=lambda share: bar.update(task, completed=share)
            )
    if json:
        print_json(_top_rows(rows, top, "feature"))
        return
    _print_distributions(rows, top or _SHOWN_ROWS)
    if plot is not None:
        output().print(f"{plot}: drawn")


def _top_rows(rows: pl.DataFrame, top: int | None, *by: str) -> list[dict[str, object]]:
    """Return all rows, or the first of each group, for JSON."""
    if top is not None:
        rows = rows.group_by(*by, maintain_order=True).head(top)
    return rows.to_dicts()


def _print_distributions(rows: pl.DataFrame, top: int) -> None:
    if rows.is_empty():
        output().print("nothing of the kind was seen in the training facts")
        return
    notes = []
    if "pair" in rows["feature"]:
        _print_pairs(rows, top)
        notes.append(
            "±: standard deviation. After: how often the relation named first starts later. "
            "Fitted: Gaussian N(μ, σ), or exponential Exp(λ)."
        )
    if "recurrence" in rows["feature"]:
        _print_recurrence(rows.filter(feature="recurrence"), top)
    if "duration" in rows["feature"]:
        _print_durations(rows.filter(feature="duration"), top)
        notes.append("Durations: N(μ, σ) truncated to [0, ∞).")
    notes.append("More: --relation R --other R2, --evidence, --top N, --json. See it: --plot FILE.")
    output().print("\n".join(notes), style="dim")


def _print_pairs(rows: pl.DataFrame, top: int) -> None:
    from tilp.features.describe import percent

    pairs = rows.filter(feature="pair")
    order = rows.filter(feature="order").select(*_PAIR, after="probability")
    shown = pairs.join(order, on=_PAIR, how="left", maintain_order="left").head(top)
    cells = (
        (
            row["evidence"],
            row["sentence"],
            percent(row["after"]),
            f"N({row['mean']:.1f}, {row['deviation']:.1f})"
            if row["distribution"] == "Gaussian"
            else f"Exp({row['rate']:.3g})",
        )
        for row in shown.iter_rows(named=True)
    )
    title = _title("time between relations (RelationPairInterval, TemporalOrder)", pairs, top)
    print_table(title, ("evidence", "in words", "after", "fitted"), cells, right=("after",))


def _print_recurrence(rows: pl.DataFrame, top: int) -> None:
    from tilp.features.describe import percent

    by_relation = rows.pivot("evidence", index=["query", "relation", "seen"], values="probability")
    kinds = [kind for kind in _RECURRENCE if kind in by_relation.columns]
    cells = (
        (row["relation"], *(percent(row[kind]) for kind in kinds), f"{row['seen']:,}")
        for row in by_relation.head(top).iter_rows(named=True)
    )
    figures = (*(_RECURRENCE[kind] for kind in kinds), "facts")
    title = _title("does it happen again (Recurrence)", by_relation, top)
    print_table(title, ("relation", *figures), cells, right=figures)


def _print_durations(rows: pl.DataFrame, top: int) -> None:
    cells = (
        (row["sentence"], f"N({row['mu']:.1f}, {row['sigma']:.1f})")
        for row in rows.head(top).iter_rows(named=True)
    )
    print_table(_title("how long facts last (Duration)", rows, top), ("in words", "fitted"), cells)


def _print_learned(weights: pl.DataFrame, top: int, *, in_full: bool) -> None:
    if weights["query"].is_null().all():
        cells = ((f"{row['weight']:.3g}", row["sentence"]) for row in weights.to_dicts())
        print_table("weight of each part (γ)", ("weight", "part"), cells, right=("weight",))
    elif in_full:
        _print_weights_of_relation(weights, top)
    else:
        _print_weights_in_short(weights)


def _print_weights_of_relation(weights: pl.DataFrame, top: int) -> None:
    import polars as pl

    output().print(f"(s, {weights['query'][0]}, ?)")
    for sentence in weights.filter(pl.col("of").is_null())["sentence"]:
        output().print(f"  {sentence}")
    for title, rows in (
        ("candidate history", weights.filter(pl.col("words").is_not_null())),
        ("evidence of rules", weights.filter(part="rule evidence")),
    ):
        if len(rows):
            cells = (
                (f"{row['weight']:+.2f}", row["sentence"].rpartition(": ")[0])
                for row in rows.head(top).iter_rows(named=True)
            )
            columns = ("weight", "what it is added for")
            print_table(_title(title, rows, top), columns, cells, right=("weight",))
    output().print("The strongest first. More: --top N, --json.", style="dim")


def _print_weights_in_short(weights: pl.DataFrame) -> None:
    """Print a row for each relation: its single weights, and its strongest history feature."""
    import polars as pl

    history = weights.filter(pl.col("words").is_not_null()).unique("query", keep="first")
    strongest = dict(history.select("query", "sentence").iter_rows())
    single = weights.filter(pl.col("of").is_null())
    by_relation = single.pivot("part", index="query", values="weight").fill_null(0.0)
    by_relation = by_relation.sort("mixing", descending=True, maintain_order=True)
    parts = by_relation.columns[1:]
    cells = (
        (row["query"], *(f"{row[part]:.2f}" for part in parts), strongest.get(row["query"], ""))
        for row in by_relation.filter(pl.col("mixing") > 0).iter_rows(named=True)
    )
    columns = ("relation of the query", *parts, "strongest feature of candidate history")
    print_table("learned weights", columns, cells, right=parts)
    unmixed = ", ".join(by_relation.filter(mixing=0.0)["query"])
    if unmixed:
        output().print(f"nothing learned, the rules as they are: {unmixed}")
    output().print("All weights of one relation: --relation R.", style="dim")


def _title(name: str, rows: pl.DataFrame, top: int) -> str:
    return f"{name}: {min(top, len(rows)):,} of {len(rows):,}"
