"""Commands for data sets: the bundled world and the published ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilp.cli.console import output, progress_bar
from tilp.cli.options import FormatOption
from tilp.types import TableFormat

__all__ = ["app"]

app = typer.Typer(
    help="The bundled world, and data sets that others published.", no_args_is_help=True
)


@app.command("list")
def list_command() -> None:
    """List the published data sets and where they are kept."""
    from rich.table import Table

    from tilp._utils.files import cache_folder
    from tilp.datasets import PUBLISHED

    table = Table(title=f"kept in {cache_folder()}", title_justify="left")
    for column in ("name", "what it is", "licence", "here"):
        table.add_column(column)
    for name, published in PUBLISHED.items():
        files = [cache_folder() / name / file.name for file in published.files]
        here = "yes" if all(file.is_file() for file in files) else "no"
        table.add_row(name, published.description, published.licence, here)
    output().print(table)


@app.command("get")
def get_command(
    name: Annotated[str, typer.Argument(show_default=False, help="See tilp datasets list.")],
    folder: Annotated[
        Path | None,
        typer.Option("--folder", show_default="the cache", help="Where to put the files."),
    ] = None,
) -> None:
    """Download a published data set, and print the folder that holds it.

    What is there already is not fetched again, a download that was cut off goes on, and every
    file is checked against its SHA-256.
    """
    from rich.progress import TaskID

    from tilp.datasets import get

    tasks: dict[str, TaskID] = {}
    with progress_bar(transfer=True) as bar:

        def show(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            bar.update(tasks[file], completed=done, total=total)

        path = get(name, folder, progress=show)
    typer.echo(path)


@app.command("world")
def world_command(
    out: Annotated[Path, typer.Option("--out", help="The folder to write; new or empty.")],
    size: Annotated[int, typer.Option("--size", help="About how many facts.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, another world.")] = 0,
    format: FormatOption = TableFormat.TSV,
) -> None:
    """Write the bundled world: people, clubs, prizes and places, with rules planted in it."""
    from tilp.cli.demo import print_planted_rules
    from tilp.datasets import world
    from tilp.io import write

    made = world(seed, size)
    write(made.graph, out, format=format)
    output().print(f"{out}: {made.graph}")
    print_planted_rules(made)
