"""The command line: thin commands over plain functions.

Nothing heavy is imported until a command runs, so that help comes at once.
"""

import gc
import logging
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer import Option

from tilp._version import __version__
from tilp.cli import data, evaluate, fit, inspect, options, predict, rules, serve
from tilp.cli.console import print_warning, set_quiet
from tilp.errors import TilpError

__all__ = ["app", "main"]

_GLOBAL_OPTIONS = ("--verbose", "-v", "--quiet", "-q", "--debug")

_MAX_COUNT = 2**31 - 1  # of any option that counts something

app = typer.Typer(
    name="tilp",
    help="Learn temporal rules from a table of dated facts, predict with them, and see why.",
    invoke_without_command=True,
    rich_markup_mode=None,  # plain help: panels leave too little room in 80 columns
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_FIRST_STEPS = f"""\
tilp {__version__}: learn rules from a table of dated facts, predict, and see why.

  tilp demo                         every step, on a small made-up world
  tilp inspect facts.csv            what is in your table, and what is wrong
  tilp fit facts.csv --out model    learn rules from it
  tilp serve model --open           ask questions and see reasons, in the browser

tilp --help lists all commands; tilp COMMAND --help explains one."""


def _whole_number(least: int) -> Callable[[str], int]:
    """Return the parser of an option that counts something."""

    def parse(text: str) -> int:
        with suppress(ValueError):
            if least <= int(text) <= _MAX_COUNT:
                return int(text)
        raise typer.BadParameter(f"{text!s:.40} is not a whole number from {least} on.")

    return parse


def _add_command(name: str, command: Callable[..., Any]) -> None:
    """Register a command; the section Args of its docstring is the help of its options."""
    command = options.with_read_options(command)
    types = get_type_hints(command, include_extras=True)
    for option in (part for hint in types.values() for part in get_args(hint)[1:]):
        if isinstance(getattr(option, "min", None), int):
            option.metavar = option.metavar or "N"
            if option.max is None:
                option.parser, option.min = _whole_number(option.min), None
    command.__doc__, command.__annotations__ = options.explain(command, types), types
    app.command(name, short_help=command.__doc__.partition("\n")[0])(command)


_add_command("demo", data.demo_command)
_add_command("inspect", inspect.inspect_command)
_add_command("mine", rules.mine_command)
_add_command("evaluate-scores", evaluate.evaluate_scores_command)
_add_command("compare", evaluate.compare_command)
_add_command("fit", fit.fit_command)
_add_command("update", fit.update_command)
_add_command("evaluate", evaluate.evaluate_command)
_add_command("predict", predict.predict_command)
_add_command("explain", predict.explain_command)
_add_command("when", predict.when_command)
_add_command("forecast", predict.forecast_command)
_add_command("rules", rules.rules_command)
_add_command("serve", serve.serve_command)
_add_command("split", inspect.split_command)
_add_command("bench", evaluate.bench_command)
_add_command("convert", data.convert_command)
_add_command("pack", data.pack_command)
_add_command("impute", data.impute_command)
app.add_typer(data.datasets, name="datasets")


def _print_version(requested: bool) -> None:
    from tilp._version import version_report

    if requested:
        typer.echo(version_report())
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool,
        Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the versions and the platform that a bug report needs.",
        ),
    ] = False,
    verbose: Annotated[bool, Option("--verbose", "-v", help="Log what is being done.")] = False,
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="No warnings, no progress: results and errors only.")
    ] = False,
    debug: Annotated[
        bool, Option("--debug", help="Show the traceback of an error, and all log messages.")
    ] = False,
) -> None:
    del version  # its callback has printed it
    set_quiet(quiet)
    levels = {"DEBUG": debug, "INFO": verbose, "ERROR": quiet}
    logging.basicConfig(format="%(message)s")
    logging.getLogger("tilp").setLevel(next(filter(levels.get, levels), "WARNING"))
    if context.invoked_subcommand is None:
        typer.echo(_FIRST_STEPS)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; retry later inside a gc callback, which would swallow it."""
    callbacks = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    if frame is not None and frame.f_code in callbacks:
        threading.Timer(0.01, signal.raise_signal, [number]).start()
        return
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; an error is one paragraph and exit code 2, `--debug` shows where."""
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    # Users may write global options anywhere, but they are read only at the front.
    arguments[:end] = sorted(arguments[:end], key=lambda option: option not in _GLOBAL_OPTIONS)
    warnings.showwarning = print_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # the terminal may lack signs such as ←
    with suppress(ValueError):  # only the main thread may handle signals
        signal.signal(signal.SIGINT, _interrupt)
    try:
        app(arguments)
    except Exception as error:
        if "--debug" in arguments:
            raise
        message = str(error)
        if not isinstance(error, (TilpError, OSError)):
            message = (
                f"{type(error).__name__}: {error}. This is a defect of tilp: please report it "
                "with the command, what --debug adds to it, and tilp --version; unless a packed "
                "graph is damaged, which tilp pack GRAPH --check tells."
            )
        sys.stderr.write(f"error: {message}\n")
        sys.exit(2)
