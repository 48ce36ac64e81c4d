"""Harder splits as folders, each with a note of what was done."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.files import file_name_part, new_folder
from tilp._version import __version__
from tilp.errors import TilpError, TilpWarning
from tilp.graph import SPLITS, TemporalGraph
from tilp.io import write
from tilp.splits.biased import balanced, biased, reducible
from tilp.splits.few import SHARES, few
from tilp.splits.time_shift import TimeShift
from tilp.time import OPEN_START, UNKNOWN, format_time
from tilp.types import SplitKind, TableFormat, Walked

NOTE = "split.json"
"""The file beside the facts that says what was done."""

_FORMAT = "tilp split"
_VERSION = 1
_NAMED = 5  # relations in a warning


@dataclass(frozen=True)
class Part:
    """One data set that a split makes.

    Attributes:
        folder: the name of its folder; empty where it is the only one.
        graph: its facts.
        done: what was done, as plain values.
    """

    folder: str
    graph: TemporalGraph
    done: dict[str, Any]


def few_parts(
    graph: TemporalGraph, shares: Sequence[float] = SHARES, *, seed: int, walked: Walked
) -> Iterator[Part]:
    """A sample for each share, as `few` draws it."""
    for share in sorted(set(shares)):
        made = few(graph, share, seed=seed, walked=walked)
        done = {
            "kind": SplitKind.FEW.value,
            "seed": seed,
            "share": share,
            "graph": walked.value,
            "set_aside": len(graph.targets) - len(made.targets),
        }
        yield Part(f"{share:g}", made, done)


def biased_parts(
    graph: TemporalGraph,
    relations: Sequence[str] | None = None,
    *,
    removed: float,
    queries: int | None,
    balance: bool,
    seed: int,
    walked: Walked,
) -> Iterator[Part]:
    """The balanced data, and then for each relation the same with part of its facts removed.

    Args:
        graph: the facts.
        relations: their names; by default all that have a fact to remove.
        removed: the share of a relation's training facts.
        queries: test facts of each relation.
        balance: whether splits are balanced first.
        seed: for what is drawn.
        walked: whether removed facts are walked on.
    """
    done: dict[str, Any] = {
        "kind": SplitKind.BIASED.value,
        "seed": seed,
        "balanced": balance,
        "relation": None,
        "set_aside": 0,
    }
    whole = balanced(graph, queries=queries, seed=seed) if balance else graph
    numbers = (
        reducible(whole, removed)
        if relations is None
        else sorted({whole.relations.find(relation) for relation in relations})
    )
    if not numbers:
        raise TilpError(
            f"no relation has so many training facts that a share of {removed:g} is one of them"
        )
    if relations is None and len(numbers) < len(whole.relations):
        few_facts = np.setdiff1d(np.arange(len(whole.relations)), numbers)
        names = ", ".join(whole.relations.label(int(number)) for number in few_facts[:_NAMED])
        more = f" and {len(few_facts) - _NAMED:,} more" if len(few_facts) > _NAMED else ""
        warnings.warn(
            TilpWarning(f"too few training facts to remove any: {names}{more}"), stacklevel=2
        )
    if balance:
        yield Part("balanced", whole, done)
    width = len(str(len(whole.relations) - 1))
    for number in numbers:
        label = whole.relations.label(number)
        made = biased(
            whole, str(whole.relations.ids[number]), removed=removed, seed=seed, walked=walked
        )
        what = {
            "relation": label,
            "relation_id": whole.relations.ids[number],
            "removed": removed,
            "graph": walked.value,
            "set_aside": len(whole.targets) - len(made.targets),
        }
        yield Part(f"{number:0{width}d}-{file_name_part(label)}", made, {**done, **what})


def time_shift_part(shift: TimeShift) -> Part:
    """A split by time."""
    graph = shift.graph
    done = {
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
    return Part("", graph, done)


def _starts(graph: TemporalGraph, split: str) -> list[str]:
    """The first and the last known start."""
    start = graph.start[graph.span(split)]
    start = np.sort(start[(start != UNKNOWN) & (start != OPEN_START)])
    return [format_time(int(one), graph.unit) for one in (*start[:1], *start[-1:])]


def write_parts(
    source: TemporalGraph,
    parts: Iterable[Part],
    out: Path,
    *,
    format: TableFormat = TableFormat.TSV,
) -> list[tuple[str, dict[str, Any]]]:
    """Write each part as a folder that every command reads; all of them appear, or none.

    Args:
        source: what was split.
        parts: what was made of it.
        out: a folder; new or empty.
        format: of tables.

    Returns:
        The name of each part's folder, and what its note says.
    """
    origin = {"facts": _counts(source), "fingerprint": source.fingerprint()}
    notes = []
    with new_folder(out) as place:
        for part in parts:
            folder = place / part.folder
            write(part.graph, folder, format=format)
            note = {
                "format": _FORMAT,
                "version": _VERSION,
                "tilp": __version__,
                **part.done,
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
