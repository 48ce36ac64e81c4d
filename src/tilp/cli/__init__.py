"""The command line: thin commands over plain functions.

Nothing heavy is imported until a command runs, so that help comes at once.
"""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
import warnings
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType
from typing import Annotated

import typer

from tilp.cli import bench, data, datasets, demo, features, pack, rules, serve, split
from tilp.cli import evaluate as evaluation
from tilp.cli import explain as explanation
from tilp.cli import fit as model
from tilp.cli import predict as prediction
from tilp.cli import update as updating
from tilp.cli.console import print_error, print_warning, set_quiet
from tilp.errors import TilpError

__all__ = ["app", "main"]

app = typer.Typer(
    name="tilp",
    help=(
        "Temporal logical rules over tables of dated facts.\n\n"
        "New here? [bold]tilp demo[/bold] shows what there is on a small made-up world; then "
        "[bold]tilp inspect DATA[/bold] tells what is in your own data and what is wrong with it."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("inspect")(data.inspect_command)
app.command("mine")(rules.mine_command)
app.command("evaluate-scores")(evaluation.evaluate_scores_command)
app.command("compare")(evaluation.compare_command)
app.command("fit")(model.fit_command)
app.command("update")(updating.update_command)
app.command("evaluate")(model.evaluate_command)
app.command("predict")(prediction.predict_command)
app.command("explain")(explanation.explain_command)
app.command("rules")(model.rules_command)
app.command("serve")(serve.serve_command)
app.command("features")(features.features_command)
app.command("split")(split.split_command)
app.command("bench")(bench.bench_command)
app.command("convert")(data.convert_command)
app.command("pack")(pack.pack_command)
app.command("impute")(data.impute_command)
app.command("import")(data.import_command)
app.add_typer(datasets.app, name="datasets")


def _print_version(wanted: bool) -> None:
    if wanted:
        from tilp._utils.versions import version_report

        typer.echo(version_report())
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print versions and platform, as a bug report needs them.",
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say what is being done.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No warnings, no progress: results and errors only.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error, and everything else.")
    ] = False,
) -> None:
    del version  # printed before anything else runs
    set_quiet(quiet)
    levels = ((debug, logging.DEBUG), (verbose, logging.INFO), (quiet, logging.ERROR))
    level = next((level for wanted, level in levels if wanted), logging.WARNING)
    logging.basicConfig(format="%(message)s")
    logging.getLogger("tilp").setLevel(level)


_GLOBAL_OPTIONS = ("--verbose", "--quiet", "--debug")


def _global_options_first(arguments: list[str]) -> list[str]:
    """Options that hold for every command may stand anywhere on the line."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    first = [one for one in arguments[:end] if one in _GLOBAL_OPTIONS]
    return first + [one for one in arguments[:end] if one not in first] + arguments[end:]


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Stop at Ctrl-C; where an exception would be ignored, as soon as it is not."""
    if frame is not None and any(
        frame.f_code is getattr(one, "__code__", None) for one in gc.callbacks
    ):
        threading.Timer(_AGAIN, signal.raise_signal, [number]).start()
        return
    raise KeyboardInterrupt


_AGAIN = 0.01  # seconds


def main() -> None:
    """Run the command line; an error is one paragraph and exit code 2, `--debug` shows where."""
    arguments = _global_options_first(sys.argv[1:])
    warnings.showwarning = print_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # signs that a terminal lacks are no failure
    with suppress(ValueError):  # only the main thread hears of signals
        signal.signal(signal.SIGINT, _interrupt)
    try:
        app(arguments)
    except Exception as error:
        if "--debug" in arguments:
            raise
        if isinstance(error, (TilpError, OSError)):
            print_error(str(error))
        else:
            print_error(
                f"{type(error).__name__}: {error}. This is a defect of tilp: please report it "
                "with the command, what --debug adds to it, and tilp --version; unless a packed "
                "graph is damaged, which tilp pack GRAPH --check tells."
            )
        sys.exit(2)
