"""What commands print, and where: results to standard output, all else to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilp.errors import TilpError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = [
    "goes_on_from",
    "output",
    "print_error",
    "print_json",
    "print_warning",
    "progress_bar",
    "say",
    "set_quiet",
    "stage_bars",
]

_quiet = False


def set_quiet(quiet: bool) -> None:
    """Whether warnings and progress are kept back."""
    global _quiet
    _quiet = quiet


def output() -> Console:
    """The console for results: names are shown as they are, and in full where it is no terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_json(value: Any) -> None:
    """A result for programs."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def say(message: str) -> None:
    """What is being done, or was written, as a line on standard error."""
    if not _quiet:
        sys.stderr.write(f"{message}\n")


def print_error(message: str) -> None:
    """One paragraph on standard error."""
    sys.stderr.write(f"error: {message}\n")


def print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line, in place of Python's two with a place in the source."""
    say(f"warning: {message}")


@contextmanager
def progress_bar(*, transfer: bool = False, rate: str | None = None) -> Iterator[Progress]:
    """A progress bar on standard error; nothing where that is not a terminal.

    Args:
        transfer: whether bytes are counted.
        rate: what else is counted, to tell how many of it are done in a second.
    """
    from rich import progress
    from rich.console import Console

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> str:
            speed = task.finished_speed or task.speed
            return "" if speed is None else f"{speed:,.0f} {rate}/s"

    columns: list[progress.ProgressColumn] = [
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
    ]
    if transfer:
        columns += [progress.DownloadColumn(), progress.TransferSpeedColumn()]
    else:
        columns += [progress.TaskProgressColumn()]
    if rate is not None:
        columns += [Rate()]
    columns += [progress.TimeRemainingColumn()]
    shown = sys.stderr.isatty() and not _quiet
    with progress.Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        yield bar


@contextmanager
def stage_bars(stages: Mapping[str, str]) -> Iterator[Callable[[str, float], None]]:
    """A bar for each stage, by its words; a line as each begins where there is no terminal."""
    with progress_bar() as bar:
        tasks = (
            {}
            if bar.disable
            else {name: bar.add_task(words, total=1.0) for name, words in stages.items()}
        )
        begun: set[str] = set()

        def advance(name: str, share: float) -> None:
            if tasks:
                bar.update(tasks[name], completed=share)
            elif name not in begun:
                begun.add(name)
                say(f"{stages[name]} …")

        yield advance


@contextmanager
def goes_on_from(place: Path) -> Iterator[None]:
    """Work that leaves what it has done in a place, for the same command to go on from.

    Raises:
        TilpError: it was stopped; says how to go on.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise TilpError(f"stopped; the same command goes on from what is in {place}") from None
