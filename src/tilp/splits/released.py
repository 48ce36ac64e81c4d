"""`released`: splits that others released beside a data set, with the graph that they walk on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tilp.errors import TilpError, TilpWarning
from tilp.graph import SPLITS, WALKED_ONLY, FactTable, LabelTable, TemporalGraph, build_graph
from tilp.io import read

__all__ = ["Released", "released"]

_FACT = ("subject", "relation", "object", "start", "end")
_SAME = ("subject", "relation", "object", "from", "to")


@dataclass(frozen=True)
class Released:
    """Splits of others, in the names of the data set that they are of.

    Attributes:
        graph: the splits as they are.
        learned: what is learned from, and walked on meanwhile: of the graph to walk on, the facts
            that are neither in valid nor in test are in train too, walked on only.
        applied: the evidence of what is asked: all of the graph to walk on.
    """

    graph: TemporalGraph
    learned: TemporalGraph
    applied: TemporalGraph


def released(data: TemporalGraph, folder: Path, background: str | None = None) -> Released:
    """Read a folder of splits, whose ids are those of a data set.

    In the files that came with the paper, `bg.txt` is the graph to walk on. Where valid is part of
    it, as in its time shift, a valid query would find itself there: so the choices that valid
    decides are made without these facts, and only test is asked with them.

    Args:
        data: the data set, whose names and unit are taken.
        folder: with train, valid and test.
        background: the file in it that holds the graph to walk on; train is, where there is none.

    Raises:
        TilpError: there is no such folder or file, or it cannot be read.
    """
    if not folder.is_dir():
        raise TilpError(f"{folder} is not there; it holds train, valid and test as files")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilpWarning)  # the graph to walk on is no split
        own = read(folder, unit=data.unit)
        tables = {split: _facts(own, split) for split in SPLITS}
        extra = tables["train"].clear()
        if background is not None:
            walked = _facts(read(folder / background, unit=data.unit))
            extra = walked.join(tables["train"], on=_SAME, how="anti")
    asked = pl.concat([tables["valid"], tables["test"]])
    graph = _graph(data, tables, extra.clear())
    learned = _graph(data, tables, extra.join(asked, on=_SAME, how="anti"))
    return Released(graph, learned, _graph(data, tables, extra))


def _facts(graph: TemporalGraph, split: str | None = None) -> pl.DataFrame:
    """Facts by ids, dates as they are written, and beside them as they are read."""
    rows = slice(None) if split is None else graph.span(split)
    read_dates = {"from": graph.start[rows], "to": graph.end[rows]}
    return (
        graph.frame(split, names="ids")
        .select(_FACT)
        .with_columns(pl.Series(name, dates) for name, dates in read_dates.items())
    )


def _graph(
    data: TemporalGraph, tables: dict[str, pl.DataFrame], extra: pl.DataFrame
) -> TemporalGraph:
    """The splits, with further training facts that are walked on only."""
    train = pl.concat(
        part.with_columns(walked_only=pl.lit(word))
        for part, word in zip((tables["train"], extra), WALKED_ONLY, strict=True)
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
