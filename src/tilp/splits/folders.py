"""Splits as folders: write new splits, each with a note, and read splits of others."""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.files import new_folder, write_text
from tilp._version import __version__
from tilp.errors import TilpError, TilpWarning
from tilp.graph import SPLITS, WALKED_ONLY, TemporalGraph
from tilp.graph.build import rebuild_graph
from tilp.io import read
from tilp.io.tables import write_tables
from tilp.splits.kinds import random_split, time_shift
from tilp.time import OPEN_START, UNKNOWN, format_time
from tilp.types import SplitKind, TableFormat

_HEADER = {"format": "tilp split", "version": 1, "tilp": __version__}


def random_folder(
    source: TemporalGraph, out: Path, *, valid: float = 0.1, test: float = 0.1, seed: int = 0,
    format: TableFormat = TableFormat.TSV,
) -> dict[str, Any]:  # fmt: skip
    """Write a random split as a folder; return its note."""
    made = random_split(source, valid=valid, test=test, seed=seed)
    note = {"kind": SplitKind.RANDOM.value, "seed": seed, "valid": valid, "test": test}
    return _write(source, made, note, out, format)


def time_shift_folder(
    source: TemporalGraph, out: Path, *, format: TableFormat = TableFormat.TSV, **options: Any
) -> dict[str, Any]:
    """Write a split by time as a folder; options are those of `time_shift`. Return its note."""
    shift = time_shift(source, **options)
    graph = shift.graph
    note: dict[str, Any] = {"kind": SplitKind.TIME_SHIFT.value}
    for name in ("valid_from", "test_from", "latest"):
        time = getattr(shift, name)
        note[name] = None if time is None else format_time(time, graph.unit)
    note["ends"] = shift.ends.value
    note |= {name: getattr(shift, name) for name in ("no_start", "late_starts", "late_ends")}
    note["starts"] = {split: _starts(graph, split) for split in SPLITS}
    return _write(source, graph, note, out, format)


FOLDERS: Mapping[SplitKind, Callable[..., dict[str, Any]]] = {
    SplitKind.RANDOM: random_folder,
    SplitKind.TIME_SHIFT: time_shift_folder,
}


def _starts(graph: TemporalGraph, split: str) -> list[str]:
    start = graph.start[graph.span(split)]
    start = np.sort(start[(start != UNKNOWN) & (start != OPEN_START)])
    return [format_time(int(time), graph.unit) for time in (*start[:1], *start[-1:])]


def _write(
    source: TemporalGraph, made: TemporalGraph, how: dict[str, Any], out: Path, format: TableFormat
) -> dict[str, Any]:
    """Write a split with a note on how it was made, or nothing."""
    note = {**_HEADER, **how, "facts": _counts(made), "fingerprint": made.fingerprint()}
    note["source"] = {"facts": _counts(source), "fingerprint": source.fingerprint()}
    with new_folder(out) as folder:
        write_tables(made, folder, format)
        write_text(folder / "split.json", json.dumps(note, indent=2, ensure_ascii=False) + "\n")
    return note


def _counts(graph: TemporalGraph) -> dict[str, int]:
    return {split: len(graph.rows(split)) for split in SPLITS}


_COLUMNS = ("subject", "relation", "object", "start", "end")
_KEY = ("subject", "relation", "object", "from", "to")


@dataclass(frozen=True)
class Released:
    """Published splits, with the names of their data set."""

    graph: TemporalGraph  # the splits as published
    # To learn from: train also has, for walks, background facts that are not in valid or test.
    learned: TemporalGraph
    applied: TemporalGraph  # to answer test queries: train also has all background facts


def released(data: TemporalGraph, folder: Path, background: str | None = None) -> Released:
    """Read a folder of splits that use the ids of a data set.

    In the files that came with the paper, `bg.txt` is the graph that walks use. If valid is part of
    it, as in its time shift, a valid query would find its own answer there. So valid queries are
    answered without these facts, and only test queries use them.

    Args:
        data: data set that gives names and unit.
        folder: folder with train, valid and test.
        background: file in the folder with the graph that walks use; None (default) uses train.
    """
    if not folder.is_dir():
        raise TilpError(f"{folder}: no such folder; give one with the files train, valid and test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilpWarning)  # the background is not a split
        published = read(folder, unit=data.unit)
        files = published.source_files
        tables = {split: _facts(published, split) for split in SPLITS}
        extra = tables["train"].clear()
        if background is not None:
            walks = read(folder / background, unit=data.unit)
            facts, files = _facts(walks, begin=files.bounds[-1]), files.join(walks.source_files)
            extra = facts.join(tables["train"], on=_KEY, how="anti")
    held_out = pl.concat([tables["valid"], tables["test"]])

    def build(walked: pl.DataFrame) -> TemporalGraph:
        """Build the splits, with extra training facts for walks only."""
        parts = zip((tables["train"], walked), WALKED_ONLY, strict=True)
        train = pl.concat(part.with_columns(walked_only=pl.lit(flag)) for part, flag in parts)
        splits = {**tables, "train": train}
        frames = {split: part.drop("from", "to") for split, part in splits.items()}
        names = data.entities, data.relations
        return rebuild_graph(frames, *names, data.unit, files, reading=data.reading)

    learned = build(extra.join(held_out, on=_KEY, how="anti"))
    return Released(build(extra.clear()), learned, build(extra))


def _facts(graph: TemporalGraph, split: str | None = None, begin: int = 0) -> pl.DataFrame:
    """Return facts by ids, with dates as text and as parsed times (`from`, `to`), and sources."""
    rows = slice(None) if split is None else graph.span(split)
    times = pl.Series("from", graph.start[rows]), pl.Series("to", graph.end[rows])
    table = graph.frame(split, names="ids").select(_COLUMNS)
    return table.with_columns(*times, graph.source_column(begin)[rows])
