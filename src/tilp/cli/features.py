"""The command that shows temporal features: what was fitted, and what was learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.choices import EvidenceKind
from tilp.cli.console import output, print_json, progress_bar
from tilp.cli.options import JsonOption, Model, ThreadsOption, load_model
from tilp.errors import TilpError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["features_command"]

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
    from tilp.cli.feature_tables import show_distributions, show_learned
    from tilp.model.reading import select_features

    fitted = load_model(model, threads)
    if learned:
        if other or evidence or plot or min_seen > 1:
            raise TilpError(
                "--learned shows weights, not pairs; it goes with --relation, --top and --json"
            )
        found = fitted.learned(relation)
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
