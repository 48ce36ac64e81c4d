"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.errors import TilpError
from tilp.types import Backend, OnError, Protocol, TableFormat, Unit

if TYPE_CHECKING:
    from tilp.graph import TemporalGraph
    from tilp.model import TILP

__all__ = [
    "AddressOption",
    "BackendOption",
    "Columns",
    "Data",
    "EndOption",
    "EvaluationFolder",
    "FormatOption",
    "Header",
    "JsonOption",
    "Limit",
    "MaxLength",
    "MinSupport",
    "Model",
    "OnErrorOption",
    "Protocols",
    "Sample",
    "StartOption",
    "ThreadsOption",
    "Top",
    "UnitOption",
    "load_model",
    "parse_columns",
    "read_data",
    "standard_input",
]


Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help=(
            "A file of facts (subject, relation, object, start, end; or one date; or none) as "
            "TSV, CSV, gzipped or not, or Parquet; or a folder with train, valid and test, and "
            "perhaps entities.tsv and relations.tsv with names; or a folder that tilp pack wrote; "
            "- for standard input."
        ),
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A folder that tilp fit wrote.")
]
UnitOption = Annotated[
    Unit | None,
    typer.Option(
        "--unit",
        show_default="the finest in which 90 % of the dates are complete",
        help="What times count.",
    ),
]
OnErrorOption = Annotated[
    OnError,
    typer.Option(
        "--on-error",
        help=(
            "Malformed dates, and starts after their ends: repair (unknown; end = start), skip "
            "the row, or raise an error."
        ),
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="ROLE=NAME,…",
        help=(
            "Which column is what, where the header does not say: "
            "subject=player,relation=kind,object=team,start=joined,end=left"
        ),
    ),
]


Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        show_default="found out",
        help="Whether files begin with a row of column names.",
    ),
]


MaxLength = Annotated[
    int, typer.Option("--max-length", min=1, max=5, help="The greatest length of rules.")
]
MinSupport = Annotated[
    int, typer.Option("--min-support", min=1, help="Facts whose answer a rule must reach.")
]
Top = Annotated[
    int, typer.Option("--top", min=1, help="Rules kept for each relation and direction.")
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample", min=1, show_default="all", help="Facts asked of each relation at most."
    ),
]
Limit = Annotated[
    int,
    typer.Option(
        "--limit",
        min=1,
        help="Steps that walks of one length may take from one entity; past it they are sampled, "
        "and the rules marked so.",
    ),
]
Protocols = Annotated[
    list[Protocol] | None,
    typer.Option("--protocol", show_default="all", help="Which answers are removed; repeatable."),
]
EvaluationFolder = Annotated[
    Path | None,
    typer.Option("--out", help="A folder for the evaluation with every query's ranks."),
]
FormatOption = Annotated[TableFormat, typer.Option("--format", help="How tables are written.")]
StartOption = Annotated[
    str | None, typer.Option("--start", show_default="not known", help="When it began.")
]
EndOption = Annotated[
    str | None, typer.Option("--end", show_default="not known", help="When it ended.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", min=1, show_default="all", help="They do not change the result."),
]
BackendOption = Annotated[
    Backend,
    typer.Option(
        "--backend",
        help="What works on the parts of the job, to the same result bit for bit. serial: one "
        "thread; threads: as many as --threads says; ray: processes of Ray, here or on the "
        "machines of a cluster; it needs tilp installed with the extra ray.",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        show_default="processes of its own, as many as --threads",
        help="With --backend ray: a cluster that is running (ray start --head), as ray start "
        "prints it; auto for the one on this machine.",
    ),
]


def read_data(
    data: Path, unit: Unit | None, on_error: OnError, columns: str | None, header: bool | None
) -> TemporalGraph:
    """Read what a command was given; - is standard input."""
    from tilp.io import read

    return read(
        standard_input(data),
        unit=unit,
        on_error=on_error,
        columns=parse_columns(columns),
        header=header,
    )


def standard_input(data: Path) -> Path:
    """What a command was given, or standard input for -."""
    return Path("/dev/stdin") if str(data) == "-" else data


def load_model(
    model: Path,
    threads: int | None,
    backend: Backend = Backend.THREADS,
    address: str | None = None,
) -> TILP:
    """Load the model that a command was given."""
    from tilp.model import load

    fitted = load(model)
    if threads is not None:
        fitted.n_jobs = threads
    fitted.backend, fitted.address = backend, address
    return fitted


def parse_columns(text: str | None) -> dict[str, str] | None:
    """Column names by role, as they were given."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(role and sign and name for role, sign, name in pairs):
        raise TilpError(f"--columns {text!r}: write ROLE=NAME, separated by commas")
    return {role.strip(): name.strip() for role, _, name in pairs}
