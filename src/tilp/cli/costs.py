"""What a fit will take, on the command line."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tilp.cli.console import output, print_json, progress_bar

if TYPE_CHECKING:
    from tilp.costs import FitCost
    from tilp.graph import TemporalGraph
    from tilp.model import TILP

__all__ = ["STAGES", "show_cost"]

STAGES = {
    "mine": "find rules",
    "apply": "apply them to train",
    "train": "learn their weights",
    "choose": "choose on valid",
    "fold": "learn them from each half",
    "features": "learn features",
}
"""The stages of a fit, in words."""

_WORDS = {"read": "read the facts", "prepare": "index them", **STAGES}


def show_cost(model: TILP, read: Callable[[], TemporalGraph], *, json: bool) -> None:
    """Try a fit out on samples, and print what all of it takes.

    Args:
        model: that is to be fitted.
        read: reads the facts.
        json: whether it is for programs.
    """
    from tilp.costs import dry_run
    from tilp.parallel import thread_count

    began = time.process_time()
    graph = read()
    reading = time.process_time() - began
    with progress_bar() as bar:
        task = bar.add_task("try it out on samples", total=1.0)
        found = dry_run(
            graph,
            model.settings,
            threads=thread_count(model.n_jobs),
            reading=reading,
            progress=lambda share: bar.update(task, completed=share),
        )
    if json:
        print_json(found.to_json())
    else:
        _print_cost(found)


def _print_cost(found: FitCost) -> None:
    from rich.table import Table

    console = output()
    threads = f"{found.threads} thread{'s' * (found.threads != 1)}"
    table = Table(title="what a fit takes, about; nothing was written", title_justify="left")
    table.add_column("stage")
    table.add_column("work", overflow="fold")
    for column in ("CPU time", threads, "peak memory"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found.stages:
        table.add_row(
            _WORDS[one.name],
            f"{_number(one.amount)} {one.unit}",
            _time(one.cpu),
            _time(one.seconds(found.threads)),
            _memory(found.before + one.peak),
        )
    table.add_section()
    table.add_row("all", "", _time(found.cpu), _time(found.seconds), _memory(found.peak))
    console.print(table)
    mean, most = found.walks
    facts, of = found.sample
    limited = "--limit is never met"
    if found.limited:
        limited = f"{found.limited:,} entities have more of one length than --limit"
    lines = [
        f"Walks from one entity: {_number(mean)} where queries begin, {_number(most)} at the most; "
        f"{limited}.",
        f"About {found.rules:,} rules, by those of {facts:,} of {of:,} facts.",
        f"Most of the time is to {_WORDS[found.longest.name]}"
        f" ({found.longest.seconds(found.threads) / max(found.seconds, 1e-9):.0%}).",
    ]
    for line in lines:
        console.print(line)
    for advice in found.advice:
        console.print(f"Shorter: {advice}")
    for warning in found.warnings:
        console.print(f"Warning: {warning}")


def _number(value: float) -> str:
    """A number that people read: in full up to a hundred thousand."""
    for size, word in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if value >= size:
            return f"{value / size:.3g}{word}"
    return f"{value:,.0f}"


def _time(seconds: float) -> str:
    """A time that people read."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86_400 else f"{seconds / 86_400:.1f} days"


def _memory(size: float) -> str:
    """Memory that people read."""
    return f"{size / 1e6:,.0f} MB" if size < 1e10 else f"{size / 1e9:,.1f} GB"
