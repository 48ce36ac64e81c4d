"""Printing: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from tilp._utils.progress import on_compile
from tilp.errors import TilpError, TilpNotice, WriteError

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.text import Text

_quiet = False
_noted_compilation = False


def set_quiet(quiet: bool) -> None:
    """Switch warnings and progress off or on."""
    global _quiet
    _quiet = quiet


def output() -> Console:
    """Return the console for results: no markup in names, 160 columns outside a terminal."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_json(value: Any) -> None:
    """Print a result as JSON."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def say(message: str) -> None:
    """Print a line to standard error, unless --quiet is given."""
    if not _quiet:
        sys.stderr.write(f"{message}\n")


def print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line; also replaces `warnings.showwarning`."""
    say(f"{'note' if isinstance(message, TilpNotice) else 'warning'}: {message}")


def make_table(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *,
    right: Collection[str] = (), **style: Any,
) -> Table:  # fmt: skip
    """Return a table; columns named in `right` are aligned right and never wrapped."""
    table = Table(title=title, title_justify="left", **style)
    for column in columns:
        if column in right:
            table.add_column(column, justify="right", no_wrap=True)
        else:
            table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def print_table(*args: Any, **options: Any) -> None:
    """Print a table, with the arguments of `make_table`."""
    output().print(make_table(*args, **options))


def cells(row: Mapping[str, Any], **formats: str) -> list[str]:
    """Return values of a row as text, each with its format."""
    return [format(row[name], spec) for name, spec in formats.items()]


@contextmanager
def progress_bar(*, transfer: bool = False, rate: str | None = None) -> Iterator[Progress]:
    """Show progress on a terminal, of bytes or of `rate` a second; say once that loops compile."""
    from rich import progress

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> str:
            speed = task.finished_speed or task.speed
            return "" if speed is None else f"{speed:,.0f} {rate}/s"

    columns: list[progress.ProgressColumn]
    columns = [progress.TextColumn("{task.description}"), progress.BarColumn()]
    if transfer:
        columns += [progress.DownloadColumn(), progress.TransferSpeedColumn()]
    else:
        columns += [progress.TaskProgressColumn()] + [Rate()] * (rate is not None)
    columns += [progress.TimeRemainingColumn()]
    shown = sys.stderr.isatty() and not _quiet
    with progress.Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:

        def note() -> None:
            global _noted_compilation
            if shown and not _noted_compilation:
                _noted_compilation = True
                bar.console.print("compiling loops, once on this machine …")

        with on_compile(note):
            yield bar


@contextmanager
def task_bar(description: str) -> Iterator[Callable[[float], None]]:
    """Show one progress bar; yields a function that takes the finished share."""
    with progress_bar() as bar:
        task = bar.add_task(description, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def stage_bars(stages: Mapping[str, str]) -> Iterator[Callable[[str, float], None]]:
    """Show a bar for each stage; outside a terminal, a line when a stage starts."""
    with progress_bar() as bar:
        shown = {} if bar.disable else stages
        tasks = {name: bar.add_task(text, total=1.0) for name, text in shown.items()}
        started: set[str] = set()

        def advance(name: str, share: float) -> None:
            if tasks:
                bar.update(tasks[name], completed=share)
            elif name not in started:
                started.add(name)
                say(f"{stages[name]} …")

        yield advance


@contextmanager
def resume_hint(folder: Path) -> Iterator[None]:
    """Turn Ctrl-C into an error that says how to resume from a folder."""
    try:
        yield
    except KeyboardInterrupt:
        raise TilpError(f"stopped; the same command goes on from what is in {folder}") from None
    except WriteError as error:
        raise TilpError(f"{error} The same command goes on from what is in {folder}.") from error
