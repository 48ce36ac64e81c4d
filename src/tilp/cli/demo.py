"""`tilp demo`: everything that works, once, on the bundled world."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import output, progress_bar

if TYPE_CHECKING:
    from tilp.datasets import World

__all__ = ["demo", "print_planted_rules"]

_SHOWN_FACTS = 5
_MINED_FACTS = 200


def demo(
    size: Annotated[int, typer.Option("--size", help="About how many facts.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, another world.")] = 0,
) -> None:
    """Show on a small made-up world what tilp does, from facts onwards.

    People are born, study, play for teams, win prizes, marry, move and die in it, by rules that
    are known, so that what is learned can be checked against the truth.
    """
    from tilp.cli.tables import print_inspection
    from tilp.datasets import world
    from tilp.inspection import inspect

    console = output()
    console.rule("A world of dated facts")
    made = world(seed, size)
    for row in range(0, len(made.graph), len(made.graph) // _SHOWN_FACTS):
        console.print(str(made.graph.fact(row)))
    console.print(f"… {len(made.graph):,} facts in all, seed {seed}.\n")
    print_planted_rules(made)
    console.rule("What is in it, and what is wrong with it: tilp inspect")
    print_inspection(inspect(made.graph), f"world, seed {seed}")
    console.rule("Rules found in its training facts: tilp mine")
    _show_mining(made)


def _show_mining(made: World) -> None:
    """The best rule for each relation that rules were planted for, from a sample of its facts."""
    from tilp.choices import Grain
    from tilp.cli.rules import rule_table
    from tilp.walks import MiningSettings, mine

    heads = list(dict.fromkeys(rule.relation for rule in made.rules))
    settings = MiningSettings(grains=(Grain.PAIRS,), sample=_MINED_FACTS)
    with progress_bar() as bar:
        task = bar.add_task("mine (the first time, this compiles)", total=1.0)
        rules = mine(
            made.graph,
            heads,
            settings,
            threads=os.cpu_count() or 1,
            progress=lambda share: bar.update(task, completed=share),
        )
    best = [one for head in heads for one in list(rules.filter(relation=head).sort())[:1]]
    planted = {rule.text for rule in made.rules}
    title = f"the best for each of {len(heads)} relations, of {len(rules):,} found"
    output().print(rule_table(best, title))
    found = sum(str(one.rule) in planted for one in best)
    output().print(f"{found} of these {len(best)} were planted.")


def print_planted_rules(made: World) -> None:
    """The rules that the world was made by, and how often each holds."""
    from rich.table import Table

    table = Table(title="rules planted in this world", title_justify="left")
    table.add_column("confidence", justify="right")
    table.add_column("rule", overflow="fold")
    for rule in made.rules:
        table.add_row(f"{rule.confidence:.2f}", rule.text)
    output().print(table)
