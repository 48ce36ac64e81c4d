"""`write`: a graph as a folder that `read` gives back equal."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from tilp._utils.files import new_folder
from tilp.errors import TilpError
from tilp.graph import SPLITS, TemporalGraph
from tilp.types import TableFormat


def write(
    graph: TemporalGraph, folder: Path | str, *, format: TableFormat | str = TableFormat.TSV
) -> Path:
    """Write a graph: a table for each split, names, attributes, and the unit.

    Dates are written as they were read, so defects stay visible. The folder must not exist yet
    or be empty; it appears whole or not at all.

    Raises:
        TilpError: the folder is in use, or a name does not fit the format.
    """
    if format not in list(TableFormat):
        raise TilpError(f"format is {format!r}; it can be {', '.join(TableFormat)}")
    format = TableFormat(format)
    with new_folder(Path(folder)) as place:
        for split in SPLITS:
            if len(graph.rows(split)) or split == "train":
                write_table(graph.frame(split, names="ids"), place / split, format)
        write_table(graph.entities.frame(), place / "entities", format)
        write_table(graph.relations.frame(), place / "relations", format)
        if graph.attributes:
            numbers = {name: pl.Series(values) for name, values in graph.attributes.items()}
            write_table(
                pl.DataFrame({"id": graph.entities.ids, **numbers}), place / "attributes", format
            )
        note = json.dumps({"unit": graph.unit.value})
        (place / "graph.json").write_text(note + "\n", encoding="utf-8")
    return Path(folder)


def write_table(frame: pl.DataFrame, stem: Path, format: TableFormat) -> None:
    """Write a table to the file that is named by the format.

    Raises:
        TilpError: a text that the format cannot hold.
    """
    path = stem.with_name(f"{stem.name}.{format.value}")
    match format:
        case TableFormat.PARQUET:
            frame.write_parquet(path)
        case TableFormat.CSV:
            frame.write_csv(path, quote_style="non_numeric")
        case TableFormat.TSV:
            for column in frame.select(pl.col(pl.String)):
                broken = column.str.contains(r"[\t\r\n]")
                if broken.any():
                    name = column.filter(broken)[0]
                    raise TilpError(
                        f"{name!r} holds a tab or line break, which TSV cannot; "
                        "write CSV or Parquet"
                    )
            frame.write_csv(path, separator="\t", quote_style="never")
