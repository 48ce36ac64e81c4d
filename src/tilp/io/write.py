"""`write`: a graph as a folder that `read` gives back equal."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from tilp._utils.files import new_folder
from tilp.errors import TilpError
from tilp.graph import SPLITS, TemporalGraph
from tilp.types import TableFormat, choose


def write(
    graph: TemporalGraph, folder: Path | str, *, format: TableFormat | str = TableFormat.TSV
) -> Path:
    """Write a graph: a table for each split, names, attributes, and the unit.

    Dates are written as they were read, so defects stay visible.

    Args:
        graph: the facts.
        folder: must not exist yet or be empty; it appears whole or not at all.
        format: 'tsv' (default), 'csv' or 'parquet'.

    Returns:
        The folder, which `read` reads back as an equal graph.

    Raises:
        TilpError: the folder is in use, or a name does not fit the format.

    >>> import tempfile, tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tilp.read(write(graph, f"{folder}/facts")) == graph
    True
    """
    format = choose(TableFormat, format, "format")
    with new_folder(Path(folder)) as partial:
        for split in SPLITS:
            if len(graph.rows(split)) or split == "train":
                write_table(graph.frame(split, names="ids"), partial / split, format)
        write_table(graph.entities.frame(), partial / "entities", format)
        write_table(graph.relations.frame(), partial / "relations", format)
        if graph.attributes:
            values = {name: pl.Series(column) for name, column in graph.attributes.items()}
            table = pl.DataFrame({"id": graph.entities.ids, **values})
            write_table(table, partial / "attributes", format)
        unit = json.dumps({"unit": graph.unit.value})
        (partial / "graph.json").write_text(unit + "\n", encoding="utf-8")
    return Path(folder)


def write_table(frame: pl.DataFrame, stem: Path, format: TableFormat) -> None:
    """Write a table; the format is the file's suffix."""
    path = stem.with_name(f"{stem.name}.{format.value}")
    match format:
        case TableFormat.PARQUET:
            frame.write_parquet(path)
        case TableFormat.CSV:
            frame.write_csv(path, quote_style="non_numeric")
        case TableFormat.TSV:
            for column in frame.select(pl.col(pl.String)):
                invalid = column.str.contains(r"[\t\r\n]")
                if invalid.any():
                    name = column.filter(invalid)[0]
                    raise TilpError(
                        f"{name!r} holds a tab or line break, which TSV cannot; "
                        "write CSV or Parquet"
                    )
            frame.write_csv(path, separator="\t", quote_style="never")
