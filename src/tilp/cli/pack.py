"""The command that packs data larger than memory."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated

import typer

from tilp.cli.console import output, progress_bar, stage_bars
from tilp.cli.options import (
    Columns,
    Data,
    Header,
    OnErrorOption,
    UnitOption,
    parse_columns,
    standard_input,
)
from tilp.errors import TilpError
from tilp.types import OnError

__all__ = ["pack_command"]

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_LEAST = 16 * 10**6


def pack_command(
    data: Data,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write; new or empty.")
    ] = None,
    memory: Annotated[
        str,
        typer.Option(
            "--memory",
            metavar="BYTES",
            help="About how much memory to work in, such as 500MB or 2GB. It changes nothing in "
            "what is written; with more, it goes faster.",
        ),
    ] = "1GB",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="DATA is a packed graph: read all of it, and find damage. Packs nothing.",
        ),
    ] = False,
    unit: UnitOption = None,
    on_error: OnErrorOption = OnError.REPAIR,
    columns: Columns = None,
    header: Header = None,
) -> None:
    """Write DATA as a folder that is mapped into memory: opened in milliseconds, however large.

    DATA may be larger than memory. Every command that takes DATA takes the folder in its place,
    and says the same; processes that use it at once share what is in memory of it. A model that is
    fitted to it keeps its graph in this form.
    """
    from tilp.io.packed.format import check_files, read_metadata
    from tilp.io.packed.pack import STAGES, pack
    from tilp.io.read import warn_of_defects

    if check and out is not None:
        raise TilpError("--check packs nothing: give --out or --check, not both")
    if check:
        with progress_bar() as bar:
            task = bar.add_task("check", total=1.0)
            check_files(data, lambda share: bar.update(task, completed=share))
        output().print(f"{data}: as it was written; {_size(read_metadata(data))}")
        return
    if out is None:
        raise TilpError("say where to: tilp pack DATA --out GRAPH")
    started = time.perf_counter()
    with stage_bars(STAGES) as advance:
        graph = pack(
            standard_input(data),
            out,
            unit=unit,
            on_error=on_error,
            columns=parse_columns(columns),
            header=header,
            memory=_bytes(memory),
            progress=advance,
        )
    taken = time.perf_counter() - started
    warn_of_defects(graph)
    output().print(f"{out}: {graph}")
    output().print(f"{_size(read_metadata(out))} on disk, packed in {taken:,.1f} s")


def _bytes(text: str) -> int:
    """A number of bytes as people write it.

    >>> _bytes("500MB"), _bytes("1.5 GB")
    (500000000, 1500000000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", text.upper())
    if found is None:
        raise TilpError(f"--memory {text!r}: write a number of bytes, such as 500MB or 2GB")
    count = int(float(found[1]) * _UNITS[found[2]])
    if count < _LEAST:
        raise TilpError(f"--memory {text}: packing needs at least {_LEAST // 10**6}MB to work in")
    return count


def _size(note: dict[str, dict[str, dict[str, int]]]) -> str:
    files = note["files"]
    return f"{len(files) + 1} files, {sum(one['bytes'] for one in files.values()) / 1e6:,.1f} MB"
