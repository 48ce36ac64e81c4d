"""Splits as folders: write new splits, each with a note, and read splits of others."""

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tilp._utils.files import file_name_part, new_folder
from tilp._version import __version__
from tilp.errors import TilpError, TilpWarning
from tilp.graph import SPLITS, WALKED_ONLY, TemporalGraph
from tilp.graph.build import rebuild_graph
from tilp.io import read
from tilp.io.tables import write_tables
from tilp.splits.kinds import SHARES, balanced, biased, few, random_split, reducible, time_shift
from tilp.time import OPEN_START, UNKNOWN, format_time
from tilp.types import SplitKind, TableFormat, WalkGraph

_HEADER = {"format": "tilp split", "version": 1, "tilp": __version__}
_MAX_NAMED = 5  # relations in a warning


class Part(NamedTuple):
    """Data set that a split makes."""

    folder: str  # its name; empty if it is the only one
    graph: TemporalGraph
    note: dict[str, Any]  # how it was made


def random_parts(
    graph: TemporalGraph, *, valid: float = 0.1, test: float = 0.1, seed: int = 0
) -> list[Part]:
    """Return a random split as the only part."""
    note = {"kind": SplitKind.RANDOM.value, "seed": seed, "valid": valid, "test": test}
    return [Part("", random_split(graph, valid=valid, test=test, seed=seed), note)]


def few_parts(
    graph: TemporalGraph, shares: Sequence[float] = SHARES, *, seed: int = 0,
    walked: WalkGraph = WalkGraph.FULL,
) -> Iterator[Part]:  # fmt: skip
    """Yield a sample for each share, as `few` draws it."""
    for share in sorted(set(shares)):
        made = few(graph, share, seed=seed, walked=walked)
        note = {"kind": SplitKind.FEW.value, "seed": seed, "share": share, "graph": walked.value}
        note["set_aside"] = len(graph.targets) - len(made.targets)
        yield Part(f"{share:g}", made, note)


def biased_parts(
    graph: TemporalGraph, relations: Sequence[str] | None = None, *, removed: float = 0.5,
    queries: int | None = None, balance: bool = True, seed: int = 0,
    walked: WalkGraph = WalkGraph.REDUCED,
) -> Iterator[Part]:  # fmt: skip
    """Yield the balanced data, then for each relation the same without a share of its facts."""
    note = {"kind": SplitKind.BIASED.value, "seed": seed, "balanced": balance}
    note |= {"relation": None, "set_aside": 0}
    whole = balanced(graph, queries=queries, seed=seed) if balance else graph
    if relations is None:
        relation_ids = reducible(whole, removed)
    else:
        relation_ids = sorted({whole.relations.find(relation) for relation in relations})
    if not relation_ids:
        enough = f"enough training facts to remove a share of {removed:g} of them"
        raise TilpError(f"no relation has {enough}")
    if relations is None and len(relation_ids) < len(whole.relations):
        too_small = np.setdiff1d(np.arange(len(whole.relations)), relation_ids)
        names = ", ".join(whole.relations.label(int(i)) for i in too_small[:_MAX_NAMED])
        more = f" and {len(too_small) - _MAX_NAMED:,} more" if len(too_small) > _MAX_NAMED else ""
        message = f"too few training facts to remove any: {names}{more}"
        warnings.warn(TilpWarning(message), stacklevel=2)
    if balance:
        yield Part("balanced", whole, note)
    width = len(str(len(whole.relations) - 1))
    for relation_id in relation_ids:
        label, name = whole.relations.label(relation_id), whole.relations.ids[relation_id]
        made = biased(whole, str(name), removed=removed, seed=seed, walked=walked)
        changes = {"relation": label, "relation_id": name, "removed": removed}
        aside = len(whole.targets) - len(made.targets)
        changes |= {"graph": walked.value, "set_aside": aside}
        yield Part(f"{relation_id:0{width}d}-{file_name_part(label)}", made, {**note, **changes})


def time_shift_parts(source: TemporalGraph, **options: Any) -> list[Part]:
    """Return a split by time as the only part; options are those of `time_shift`."""
    shift = time_shift(source, **options)
    graph = shift.graph
    note: dict[str, Any] = {"kind": SplitKind.TIME_SHIFT.value}
    for name in ("valid_from", "test_from", "latest"):
        time = getattr(shift, name)
        note[name] = None if time is None else format_time(time, graph.unit)
    note["ends"] = shift.ends.value
    note |= {name: getattr(shift, name) for name in ("no_start", "late_starts", "late_ends")}
    note["starts"] = {split: _starts(graph, split) for split in SPLITS}
    return [Part("", graph, note)]


PARTS: Mapping[SplitKind, Callable[..., Iterable[Part]]] = {
    SplitKind.FEW: few_parts,
    SplitKind.BIASED: biased_parts,
    SplitKind.RANDOM: random_parts,
    SplitKind.TIME_SHIFT: time_shift_parts,
}


def _starts(graph: TemporalGraph, split: str) -> list[str]:
    start = graph.start[graph.span(split)]
    start = np.sort(start[(start != UNKNOWN) & (start != OPEN_START)])
    return [format_time(int(time), graph.unit) for time in (*start[:1], *start[-1:])]


def write_parts(
    source: TemporalGraph, parts: Iterable[Part], out: Path, *, format: TableFormat
) -> list[tuple[str, dict[str, Any]]]:
    """Write parts as folders, all or none; return the name of each folder, and its note."""
    origin = {"facts": _counts(source), "fingerprint": source.fingerprint()}
    notes = []
    with new_folder(out) as parent:
        for part in parts:
            folder = parent / part.folder
            folder.mkdir(parents=True, exist_ok=True)
            write_tables(part.graph, folder, format)
            note = {**_HEADER, **part.note, "facts": _counts(part.graph)}
            note["learned_from"] = len(part.graph.targets)
            note |= {"fingerprint": part.graph.fingerprint(), "source": origin}
            text = json.dumps(note, indent=2, ensure_ascii=False)
            (folder / "split.json").write_text(text + "\n", encoding="utf-8")
            notes.append((part.folder, note))
    return notes


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
