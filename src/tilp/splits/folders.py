"""Splits as folders: write harder splits, each with a note, and read splits of others."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.files import file_name_part, new_folder
from tilp._version import __version__
from tilp.errors import TilpError, TilpWarning
from tilp.graph import SPLITS, WALKED_ONLY, FactTable, LabelTable, TemporalGraph, build_graph
from tilp.io import read, write
from tilp.splits.samples import SHARES, balanced, biased, few, reducible
from tilp.splits.time_shift import TimeShift
from tilp.time import OPEN_START, UNKNOWN, format_time
from tilp.types import SplitKind, TableFormat, WalkGraph

NOTE = "split.json"
"""Name of the note in each folder."""

_FORMAT = "tilp split"
_VERSION = 1
_MAX_NAMED = 5  # relations in a warning


@dataclass(frozen=True)
class Part:
    """Data set that a split makes.

    Attributes:
        folder: name of its folder; empty if it is the only one.
        graph: its facts.
        note: how it was made, for the note.
    """

    folder: str
    graph: TemporalGraph
    note: dict[str, Any]


def few_parts(
    graph: TemporalGraph, shares: Sequence[float] = SHARES, *, seed: int, walked: WalkGraph
) -> Iterator[Part]:
    """Yield a sample for each share, as `few` draws it."""
    for share in sorted(set(shares)):
        made = few(graph, share, seed=seed, walked=walked)
        note = {
            "kind": SplitKind.FEW.value,
            "seed": seed,
            "share": share,
            "graph": walked.value,
            "set_aside": len(graph.targets) - len(made.targets),
        }
        yield Part(f"{share:g}", made, note)


def biased_parts(
    graph: TemporalGraph,
    relations: Sequence[str] | None = None,
    *,
    removed: float,
    queries: int | None,
    balance: bool,
    seed: int,
    walked: WalkGraph,
) -> Iterator[Part]:
    """Yield the balanced data, then for each relation the same without a share of its facts.

    By default relations are all that have enough facts to remove any.
    """
    note: dict[str, Any] = {
        "kind": SplitKind.BIASED.value,
        "seed": seed,
        "balanced": balance,
        "relation": None,
        "set_aside": 0,
    }
    whole = balanced(graph, queries=queries, seed=seed) if balance else graph
    relation_ids = (
        reducible(whole, removed)
        if relations is None
        else sorted({whole.relations.find(relation) for relation in relations})
    )
    if not relation_ids:
        raise TilpError(
            f"no relation has enough training facts to remove a share of {removed:g} of them"
        )
    if relations is None and len(relation_ids) < len(whole.relations):
        too_small = np.setdiff1d(np.arange(len(whole.relations)), relation_ids)
        names = ", ".join(whole.relations.label(int(i)) for i in too_small[:_MAX_NAMED])
        more = f" and {len(too_small) - _MAX_NAMED:,} more" if len(too_small) > _MAX_NAMED else ""
        warnings.warn(
            TilpWarning(f"too few training facts to remove any: {names}{more}"), stacklevel=2
        )
    if balance:
        yield Part("balanced", whole, note)
    width = len(str(len(whole.relations) - 1))
    for relation_id in relation_ids:
        label = whole.relations.label(relation_id)
        made = biased(
            whole, str(whole.relations.ids[relation_id]), removed=removed, seed=seed, walked=walked
        )
        changes = {
            "relation": label,
            "relation_id": whole.relations.ids[relation_id],
            "removed": removed,
            "graph": walked.value,
            "set_aside": len(whole.targets) - len(made.targets),
        }
        yield Part(f"{relation_id:0{width}d}-{file_name_part(label)}", made, {**note, **changes})


def time_shift_part(shift: TimeShift) -> Part:
    """Return a split by time as a part."""
    graph = shift.graph
    note = {
        "kind": SplitKind.TIME_SHIFT.value,
        "valid_from": format_time(shift.valid_from, graph.unit),
        "test_from": format_time(shift.test_from, graph.unit),
        "latest": None if shift.latest is None else format_time(shift.latest, graph.unit),
        "ends": shift.ends.value,
        "no_start": shift.no_start,
        "late_starts": shift.late_starts,
        "late_ends": shift.late_ends,
        "starts": {split: _starts(graph, split) for split in SPLITS},
    }
    return Part("", graph, note)


def _starts(graph: TemporalGraph, split: str) -> list[str]:
    """Return the first and the last known start."""
    start = graph.start[graph.span(split)]
    start = np.sort(start[(start != UNKNOWN) & (start != OPEN_START)])
    return [format_time(int(time), graph.unit) for time in (*start[:1], *start[-1:])]


def write_parts(
    source: TemporalGraph,
    parts: Iterable[Part],
    out: Path,
    *,
    format: TableFormat = TableFormat.TSV,
) -> list[tuple[str, dict[str, Any]]]:
    """Write each part of a source as a folder; either all folders appear in `out`, or none.

    Returns:
        Name of each folder, and its note.
    """
    origin = {"facts": _counts(source), "fingerprint": source.fingerprint()}
    notes = []
    with new_folder(out) as parent:
        for part in parts:
            folder = parent / part.folder
            write(part.graph, folder, format=format)
            note = {
                "format": _FORMAT,
                "version": _VERSION,
                "tilp": __version__,
                **part.note,
                "facts": _counts(part.graph),
                "learned_from": len(part.graph.targets),
                "fingerprint": part.graph.fingerprint(),
                "source": origin,
            }
            text = json.dumps(note, indent=2, ensure_ascii=False)
            (folder / NOTE).write_text(text + "\n", encoding="utf-8")
            notes.append((part.folder, note))
    return notes


def _counts(graph: TemporalGraph) -> dict[str, int]:
    return {split: len(graph.rows(split)) for split in SPLITS}


_COLUMNS = ("subject", "relation", "object", "start", "end")
_KEY = ("subject", "relation", "object", "from", "to")


@dataclass(frozen=True)
class Released:
    """Published splits, with the names of their data set.

    Attributes:
        graph: the splits as published.
        learned: graph to learn from: its train also has the background facts that are neither in
            valid nor in test, for walks only.
        applied: graph to answer test queries with: its train also has all background facts.
    """

    graph: TemporalGraph
    learned: TemporalGraph
    applied: TemporalGraph


def released(data: TemporalGraph, folder: Path, background: str | None = None) -> Released:
    """Read a folder of splits that use the ids of a data set.

    In the files that came with the paper, `bg.txt` is the graph that walks use. If valid is part of
    it, as in its time shift, a valid query would find its own answer there. So valid queries are
    answered without these facts, and only test queries use them.

    Args:
        data: data set that gives names and unit.
        folder: folder with train, valid and test.
        background: file in the folder with the graph that walks use; None (default) uses train.

    Raises:
        TilpError: the folder or file is missing or cannot be read.
    """
    if not folder.is_dir():
        raise TilpError(f"{folder}: no such folder; give one with the files train, valid and test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilpWarning)  # the background is not a split
        published = read(folder, unit=data.unit)
        tables = {split: _facts(published, split) for split in SPLITS}
        extra = tables["train"].clear()
        if background is not None:
            facts = _facts(read(folder / background, unit=data.unit))
            extra = facts.join(tables["train"], on=_KEY, how="anti")
    held_out = pl.concat([tables["valid"], tables["test"]])
    graph = _graph(data, tables, extra.clear())
    learned = _graph(data, tables, extra.join(held_out, on=_KEY, how="anti"))
    return Released(graph, learned, _graph(data, tables, extra))


def _facts(graph: TemporalGraph, split: str | None = None) -> pl.DataFrame:
    """Return facts by ids, with dates as text and as parsed times (`from`, `to`)."""
    rows = slice(None) if split is None else graph.span(split)
    times = {"from": graph.start[rows], "to": graph.end[rows]}
    return (
        graph.frame(split, names="ids")
        .select(_COLUMNS)
        .with_columns(pl.Series(name, column) for name, column in times.items())
    )


def _graph(
    data: TemporalGraph, tables: dict[str, pl.DataFrame], extra: pl.DataFrame
) -> TemporalGraph:
    """Build the splits, with extra training facts for walks only."""
    train = pl.concat(
        part.with_columns(walked_only=pl.lit(flag))
        for part, flag in zip((tables["train"], extra), WALKED_ONLY, strict=True)
    )
    facts = [
        FactTable(split, split, part.drop("from", "to"), range(1, len(part) + 1))
        for split, part in {**tables, "train": train}.items()
    ]
    return build_graph(
        facts,
        entities=LabelTable("entities", data.entities.frame()),
        relations=LabelTable("relations", data.relations.frame()),
        unit=data.unit,
    )
