"""Commands that find rules and show them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import output, print_warning, progress_bar
from tilp.cli.options import (
    AddressOption,
    BackendOption,
    Columns,
    Data,
    Header,
    Limit,
    MaxLength,
    MinSupport,
    OnErrorOption,
    Sample,
    ThreadsOption,
    Top,
    UnitOption,
    read_data,
)
from tilp.errors import TilpError
from tilp.types import MAX_RULES, Backend, Grain, OnError

if TYPE_CHECKING:
    from rich.table import Table

    from tilp.rules import MinedRule

__all__ = ["mine_command", "rule_table"]

_SHOWN_RULES = 10
_DEFAULT_GRAINS = (Grain.PAIRS, Grain.GAP)


def mine_command(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Where the rules go, as JSON lines.")],
    max_length: MaxLength = 3,
    relation: Annotated[
        list[str] | None,
        typer.Option(
            "--relation", show_default="all", help="A relation to find rules for; repeatable."
        ),
    ] = None,
    grain: Annotated[
        list[Grain] | None,
        typer.Option(
            "--grain",
            show_default="pairs and gap",
            help=(
                "How finely rules speak of time; repeatable. static: not at all; query: each "
                "interval against the query's; adjacent: and neighbours; pairs: all pairs, as in "
                "the paper; allen: Allen's relations to the query's; gap: how long before or after "
                "the query the last interval lies."
            ),
        ),
    ] = None,
    min_support: MinSupport = 2,
    top: Top = MAX_RULES,
    sample: Sample = None,
    limit: Limit = 1_000_000,
    threads: ThreadsOption = None,
    backend: BackendOption = Backend.THREADS,
    address: AddressOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="For sampling.")] = 0,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Find temporal rules in the training facts of DATA, in both directions of each relation.

    For every rule: support (facts whose answer it reaches), fired (facts where it applies),
    confidence (mean share of its walks that arrive at the answer). Stopped with Ctrl-C, what was
    finished is in the file, and the same command goes on from there.
    """
    from tilp.parallel import Workers, thread_count
    from tilp.walks import MiningSettings
    from tilp.walks.checkpoint import MiningCheckpoint

    graph = read_data(data, unit, on_error, columns, header)
    settings = MiningSettings(
        grains=tuple(grain or _DEFAULT_GRAINS),
        max_length=max_length,
        min_support=min_support,
        top=top,
        sample=sample,
        limit=limit,
        seed=seed,
    )
    run = MiningCheckpoint(graph, relation or list(graph.relations), settings, out)
    if run.done:
        print_warning(f"going on where {run.notes} stopped: {len(run.done)} relations are done")
    with progress_bar() as bar, Workers(thread_count(threads), backend, address) as workers:
        task = bar.add_task("mine", total=1.0)
        try:
            rules = run.finish(
                workers=workers,
                progress=lambda share: bar.update(task, completed=share),
            )
        except KeyboardInterrupt:
            raise TilpError(
                f"stopped; {out} holds the rules of {len(run.done)} of {len(run.relations)} "
                "relations. The same command goes on from there."
            ) from None
    console = output()
    console.print(f"{out}: {rules}")
    best = sorted(rules, key=lambda mined: (-mined.measure, str(mined.rule)))[:_SHOWN_RULES]
    console.print(rule_table(best, "the best of them"))


def rule_table(rules: list[MinedRule], title: str, *, sentences: bool = False) -> Table:
    """Rules with what was counted of them, and their weights where these are learned."""
    from rich.table import Table

    from tilp.rules import Notation, format_rule

    weighted = any(mined.weight is not None for mined in rules)
    table = Table(title=title, title_justify="left")
    if weighted:
        table.add_column("weight", justify="right")
    for column in ("confidence", "support", "fired"):
        table.add_column(column, justify="right")
    table.add_column("rule", overflow="fold")
    for mined in rules:
        table.add_row(
            *([f"{mined.weight or 0.0:.3g}"] if weighted else []),
            f"{mined.confidence:.2f}{'~' if mined.sampled else ''}",
            f"{mined.support:,}",
            f"{mined.body_support:,}",
            format_rule(mined.rule, Notation.SENTENCE if sentences else Notation.SIGNS),
        )
    return table
