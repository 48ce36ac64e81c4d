"""`released`: splits that others published for a data set, with the graph that walks use."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tilp.errors import TilpError, TilpWarning
from tilp.graph import SPLITS, WALKED_ONLY, FactTable, LabelTable, TemporalGraph, build_graph
from tilp.io import read

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
