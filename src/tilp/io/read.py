"""`read`: one call from a file, a folder of splits or a frame to a `TemporalGraph`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilp.errors import TilpError
from tilp.graph import FactTable, TemporalGraph, build_graph
from tilp.io.frames import by_split, fact_frame, find_roles, is_header
from tilp.io.packed.open import is_pack, open_as
from tilp.io.side_files import PARQUET, as_table, read_attributes, read_labels, read_parquet
from tilp.io.sources import SPLIT_NAMES, as_polars, find_sources, regular_file, warn
from tilp.io.text import TextTable, read_text_table
from tilp.types import OnError, Unit, choose


def read(
    source: Any,
    *,
    unit: Unit | str | None = None,
    on_error: OnError | str = OnError.REPAIR,
    columns: Mapping[str, str] | None = None,
    header: bool | None = None,
) -> TemporalGraph:
    """Read a temporal graph.

    Args:
        source: a file, a folder with the splits (`train`, `valid`, `test`) as files, a frame
            (polars, pandas or Arrow), or a mapping from split to any of these. Files are TSV or
            CSV, gzipped or not, or Parquet. A folder may hold `entities.tsv` and `relations.tsv`
            (id, key, label) and `attributes.tsv` (entity id, then numbers). Or a folder that
            `pack` made, which is opened as it is.
        unit: what times count: year, month, day or integer; by default the finest in which at
            least 90 % of the known dates are complete.
        on_error: what to do with malformed dates and with starts after their ends: 'repair'
            (unknown; end = start), 'skip' the row, or 'raise'.
        columns: column names by role, where they do not speak for themselves: subject,
            relation, object, and start and end, or date, and split, estimated and walked_only.
            Files then have a header.
        header: whether files begin with a row of column names; found out by default.

    Raises:
        DataError: what cannot be read, naming file, line, column, what was found and the remedy.
    """
    on_error = choose(OnError, on_error, "on_error")
    chosen_unit = None if unit is None else choose(Unit, unit, "unit")
    if isinstance(source, (str, Path)) and is_pack(Path(source).expanduser()):
        if columns or header is not None:
            raise TilpError(f"{source}: a packed graph has no columns to choose and no header")
        graph = open_as(Path(source).expanduser(), chosen_unit, on_error)
        warn_of_defects(graph)
        return graph
    sources = find_sources(source)
    labels = {
        name: read_labels(sources.beside[name])
        for name in ("entities", "relations")
        if name in sources.beside
    }
    attributes = sources.beside.get("attributes")
    tables: list[FactTable] = []
    for split, part in sources.facts:
        tables += _fact_tables(part, split, columns, header)
    if not tables:
        raise TilpError("there is nothing to read: the table is empty")
    graph = build_graph(
        tables,
        entities=labels.get("entities"),
        relations=labels.get("relations"),
        attributes=None if attributes is None else read_attributes(attributes),
        unit=chosen_unit or sources.unit,
        on_error=on_error,
    )
    warn_of_defects(graph)
    return graph


def _fact_tables(
    source: Any, split: str, columns: Mapping[str, str] | None, header: bool | None
) -> list[FactTable]:
    """Facts of one source; several tables only where a column tells the split."""
    if columns and header is None:
        header = True
    name, table = _read_table(source, header)
    roles = find_roles(name, table, columns, header)
    frame = fact_frame(name, table, roles)
    if "split" not in roles:
        return [FactTable(split, name, frame, table.lines)]
    tables = []
    for text, mask in by_split(name, table, roles):
        lines = [line for line, mine in zip(table.lines, mask, strict=True) if mine]
        tables.append(FactTable(SPLIT_NAMES[text], name, frame.filter(mask), lines))
    return tables


def _read_table(source: Any, header: bool | None) -> tuple[str, TextTable]:
    """The name of a source and its cells."""
    if isinstance(source, (str, Path)):
        with regular_file(Path(source).expanduser()) as path:
            if path.suffix.lower() in PARQUET:
                return str(source), as_table(read_parquet(path), 1)
            return str(source), read_text_table(path, header, is_header)
    return "the frame", as_table(as_polars(source), 0)


def warn_of_defects(graph: TemporalGraph) -> None:
    """Tell how many rows had defects, and what was done with them."""
    if not len(graph.defects):
        return
    counts = graph.defects.group_by("defect", "done", maintain_order=True).len()
    listed = ", ".join(f"{count:,} × {defect} ({done})" for defect, done, count in counts.rows())
    first = graph.defects.row(0, named=True)
    warn(
        f"date defects: {listed}; the first in {first['file']}, line {first['line']}: start "
        f"{first['start']!r}, end {first['end']!r}. See each row: graph.defects, or tilp inspect "
        "DATA --defects"
    )
