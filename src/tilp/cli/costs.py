"""`tilp fit --dry-run`: print the estimated time and memory of a fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tilp.cli.console import output, print_json, progress_bar

if TYPE_CHECKING:
    from tilp.cost_estimate import CostEstimate
    from tilp.graph import TemporalGraph
    from tilp.model import TILP

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
    """Estimate the cost of fitting a model, and print it."""
    from tilp.cost_estimate import estimate_cost
    from tilp.parallel import thread_count

    began = time.process_time()
    graph = read()
    reading = time.process_time() - began
    with progress_bar() as bar:
        task = bar.add_task("fit small samples", total=1.0)
        estimate = estimate_cost(
            graph,
            model.settings,
            threads=thread_count(model.n_jobs),
            reading=reading,
            progress=lambda share: bar.update(task, completed=share),
        )
    if json:
        print_json(estimate.to_json())
    else:
        _print_estimate(estimate)


def _print_estimate(estimate: CostEstimate) -> None:
    from rich.table import Table

    threads = estimate.threads
    table = Table(title="estimated cost of the fit; nothing was written", title_justify="left")
    table.add_column("stage")
    table.add_column("work", overflow="fold")
    for column in ("CPU time", f"{threads} thread{'s' * (threads != 1)}", "peak memory"):
        table.add_column(column, justify="right", no_wrap=True)
    for stage in estimate.stages:
        table.add_row(
            _WORDS[stage.name],
            f"{_format_count(stage.amount)} {stage.unit}",
            _format_time(stage.cpu),
            _format_time(stage.seconds(threads)),
            _format_memory(estimate.before + stage.peak),
        )
    table.add_section()
    times = _format_time(estimate.cpu), _format_time(estimate.seconds)
    table.add_row("all", "", *times, _format_memory(estimate.peak))
    mean, most = map(_format_count, estimate.walks)
    facts, of = estimate.sample
    limited = f"{estimate.limited:,} entities" if estimate.limited else "no entity"
    share = estimate.longest.seconds(threads) / max(estimate.seconds, 1e-9)
    console = output()
    console.print(table)
    for line in (
        f"Walks from one entity: {mean} on average, {most} at most; {limited} above --limit.",
        f"Estimated from fits of up to {facts:,} of {of:,} facts.",
        f"Most of the time: {_WORDS[estimate.longest.name]} ({share:.0%}).",
        *(f"Shorter: {advice}" for advice in estimate.advice),
        *(f"Warning: {warning}" for warning in estimate.warnings),
    ):
        console.print(line)


def _format_count(count: float) -> str:
    for size, word in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if count >= size:
            return f"{count / size:.3g}{word}"
    return f"{count:,.0f}"


def _format_time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86_400 else f"{seconds / 86_400:.1f} days"


def _format_memory(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if size < 1e10 else f"{size / 1e9:,.1f} GB"
