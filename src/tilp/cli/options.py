"""Arguments and options of commands, each defined once, and the functions that read them.

Args:
    DataArgument: Your facts, with columns for subject, relation, object, start and end. A file of
        TSV, CSV, JSON lines, Parquet, Excel, SQLite or DuckDB; a folder with train, valid and
        test; or a folder that tilp pack wrote. - reads standard input.
    OnErrorOption: What to do with malformed dates, starts after ends, and rows without a name:
        repair them (unknown; end = start; leave the row out), skip the row, or raise an error.
    ColumnsOption: Which column has which role, if the header does not say, such as
        subject=player,start=joined. Roles that are not given are recognised.
    HeaderOption: Whether files begin with a row of column names.
    RelationNameOption: The relation of every row, for a table without such a column (player, club,
        from, to).
    WideOption: Each row has a subject, in its first column, and several attributes, each of which
        becomes a fact with the dates of the row; the relation is the name of the column.
    DateFormatOption: How dates are written; day-first, month-first, digits (20200131), seasons
        (2005-06), excel, or a format such as "%d.%m.%y".
    KeepOption: Columns of numbers to keep as attributes of the subjects.
    SqlOption: What to read from a file of SQLite or DuckDB, such as "SELECT * FROM facts".
    RelationFilterOption: Show only this relation; name^-1 is its inverse.
    GrainOption: Temporal detail of rules; repeatable. static: none; query: compare each interval
        with the query's; adjacent: also neighbouring intervals; pairs: all pairs, as in the paper;
        allen: Allen's relations to the query's interval; gap: how long before or after the query
        the last interval lies.
    MinSupportOption: Drop rules that reach the answer of fewer training facts. Raise it for noisy
        data.
    SampleOption: Mine rules from at most this many facts of each relation.
    LimitOption: Steps that walks of one length may take from one entity. Beyond it, walks are
        sampled and their rules marked as sampled.
    ProtocolsOption: Which other true answers to filter out before ranking; repeatable.
    DefaultScoreOption: Score of candidates that are not listed.
    EvaluationFolderOption: Save the evaluation, with the ranks of every query, here.
    PhrasingsOption: A TOML file that says how relations are worded: playsFor = "{subject} plays for
        {object}".
    SeedOption: Random seed. The same seed gives the same result, bit for bit.
    ThreadsOption: Number of threads. Results do not change.
    BackendOption: Where to run; the result is the same, bit for bit. serial: one thread; threads:
        --threads many; ray: processes of Ray, here or on a cluster (needs the extra 'ray').
    AddressOption: With --backend ray: a running cluster, as ray start --head prints it; auto finds
        the one on this machine.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from typer import Argument, Option

from tilp.errors import TilpError
from tilp.types import Backend, Grain, OnError, Protocol, TableFormat, Unit

if TYPE_CHECKING:
    from tilp.graph import TemporalGraph
    from tilp.model import TILP

# Data

DataArgument = Annotated[Path, Argument(metavar="DATA")]
UnitOption = Annotated[
    Unit | None,
    Option(
        show_default="the finest in which 90 % of the dates are complete; update: the model's",
        help="Unit of time.",
    ),
]
OnErrorOption = Annotated[OnError, Option()]
ColumnsOption = Annotated[str | None, Option(metavar="ROLE=NAME,…")]
HeaderOption = Annotated[bool | None, Option("--header/--no-header", show_default="detected")]
RelationNameOption = Annotated[str | None, Option(metavar="NAME")]
WideOption = Annotated[bool, Option("--wide")]
DateFormatOption = Annotated[str | None, Option(metavar="FORMAT", show_default="recognised")]
KeepOption = Annotated[str | None, Option(metavar="NAME,…")]
SqlOption = Annotated[str | None, Option(metavar="QUERY", show_default="the only table")]
_OUT_FOLDER = Option(help="The folder to write; it must be new or empty.")
OutFolderOption = Annotated[Path, _OUT_FOLDER]
OptionalOutFolderOption = Annotated[Path | None, _OUT_FOLDER]
FormatOption = Annotated[TableFormat, Option(help="File format of tables.")]
WorldSizeOption = Annotated[int, Option(help="Approximate number of facts in the synthetic world.")]

# Models and queries

ModelArgument = Annotated[Path, Argument(metavar="MODEL", help="A folder that tilp fit wrote.")]
StartOption = Annotated[str | None, Option(show_default="unknown", help="Start date of the query.")]
EndOption = Annotated[str | None, Option(show_default="unknown", help="End date of the query.")]
RelationFilterOption = Annotated[str | None, Option(show_default="all")]
GrainOption = Annotated[
    list[Grain] | None,
    Option(show_default="mine: pairs, gap; fit: pairs, gap, allen; paper: pairs"),
]
MinSupportOption = Annotated[int, Option(min=1)]
TopOption = Annotated[int, Option(min=1, help="Rules to keep per relation and direction.")]
SampleOption = Annotated[int | None, Option(min=1, show_default="all")]
LimitOption = Annotated[int, Option(min=1)]

# Evaluation

ProtocolsOption = Annotated[list[Protocol] | None, Option(show_default="all")]
SplitOption = Annotated[str, Option(help="The split whose facts are queries.")]
DefaultScoreOption = Annotated[float, Option("--default", show_default="below all")]
EvaluationFolderOption = Annotated[Path | None, Option()]

# How to run, and what to print

JsonOption = Annotated[bool, Option("--json", help="Print JSON.")]
PhrasingsOption = Annotated[
    Path | None, Option(metavar="FILE", show_default="the names of relations")
]
SeedOption = Annotated[int, Option(min=0)]
ThreadsOption = Annotated[int | None, Option(min=1, max=4096, show_default="all")]
_MEMORY = Option(
    metavar="SIZE",
    show_default="pack: 1GB; fit: what half of the available memory allows, container limits too",
    help="Memory to work in, such as 500MB or 2GB. The files written are the same.",
)
MemoryOption = Annotated[str, _MEMORY]
OptionalMemoryOption = Annotated[str | None, _MEMORY]
BackendOption = Annotated[Backend, Option()]
AddressOption = Annotated[
    str | None, Option(metavar="HOST:PORT", show_default="new local processes, --threads many")
]


def explain(documented: Any, options: Mapping[str, Any]) -> str:
    """Make the section Args of a docstring the help of options; return what comes before it."""
    about, _, section = inspect.cleandoc(str(documented.__doc__)).partition("\n\nArgs:\n")
    for option, text in re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE):
        get_args(options[option])[1].help = " ".join(text.split())
    return re.sub(r"(?<!\n)\n(?!\n| )", " ", about)  # the terminal wraps paragraphs


explain(sys.modules[__name__], globals())


@dataclass(frozen=True)
class ReadOptions:
    """How to read DATA: options that every command with DATA has (see `with_read_options`)."""

    unit: UnitOption = None
    on_error: OnErrorOption = OnError.REPAIR
    columns: ColumnsOption = None
    header: HeaderOption = None
    relation_name: RelationNameOption = None
    wide: WideOption = False
    date_format: DateFormatOption = None
    keep: KeepOption = None
    sql: SqlOption = None

    def read(self, data: Path, like: TemporalGraph | None = None) -> TemporalGraph:
        """Read DATA, - for standard input, as `like` was read where an option is not given."""
        from tilp.io import read

        keep = [name.strip() for name in self.keep.split(",")] if self.keep else ()
        return read(standard_input(data), keep=keep, like=like, **self.arguments)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that `read` and `pack` take."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        del given["keep"]
        return given | {"columns": parse_columns(self.columns)}


READ = ReadOptions()


def with_read_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameter `read` is made of options of their own."""
    parameters = inspect.signature(command).parameters
    if "read" not in parameters:
        return command
    types = get_type_hints(ReadOptions, include_extras=True)

    def run(**given: Any) -> None:
        own = {name: given.pop(name) for name in types}
        command(**given, read=ReadOptions(**own))

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    hints = {**get_type_hints(command, include_extras=True), **types}
    defaults = {name: p.default for name, p in parameters.items() if name != "read"}
    defaults |= {field.name: field.default for field in fields(ReadOptions)}
    kind = inspect.Parameter.KEYWORD_ONLY
    run.__annotations__ = {name: hints[name] for name in (*defaults, "return")}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, kind, default=d, annotation=hints[n]) for n, d in defaults.items()]
    )
    return run


def standard_input(data: Path) -> Path:
    """Return the path of standard input for -, else the path itself."""
    return Path("/dev/stdin") if str(data) == "-" else data


def parse_columns(text: str | None) -> dict[str, str] | None:
    """Parse --columns into column names by role."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(role and sign and name for role, sign, name in pairs):
        raise TilpError(f"--columns {text!r}: write ROLE=NAME, separated by commas")
    roles = [role.strip() for role, _, _ in pairs]
    if len(set(roles)) < len(roles):
        raise TilpError(f"--columns {text!r}: a role is given twice")
    return {role.strip(): name.strip() for role, _, name in pairs}


def read_like(data: Path, model: TILP) -> TemporalGraph:
    """Read DATA for a model, as the model's was read."""
    return ReadOptions(model.graph.unit).read(data, like=model.graph)


def load_model(
    model: Path, threads: int | None = None, backend: Backend = Backend.THREADS,
    address: str | None = None, phrasings: Path | None = None,
) -> TILP:  # fmt: skip
    """Load MODEL with the options of a command."""
    from tilp.model import load

    fitted = load(model)
    if phrasings is not None:
        from tilp.rules import Phrasings

        fitted.phrasings = Phrasings.read(phrasings, fitted.graph.relations)
    if threads is not None:
        fitted.n_jobs = threads
    fitted.backend, fitted.address = backend, address
    return fitted
