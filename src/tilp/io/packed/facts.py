"""Facts of a packed graph: read once in batches, then written as columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from tilp.errors import DataError, TilpError
from tilp.graph import SPLITS, FactTable, build
from tilp.graph.graph import DEFECT_SCHEMA, MARKS, SORT_KEYS
from tilp.graph.sources import SourceFiles
from tilp.io import frames
from tilp.io.packed.format import COLUMNS, ColumnWriter
from tilp.io.packed.workspace import Workspace
from tilp.io.read import TableReader, regular_file, source_name
from tilp.io.records import read_records
from tilp.io.tables import PARQUET_SUFFIXES, as_polars, frame_batches, parquet_batches
from tilp.io.text import TextTable, join_tables, text_batches
from tilp.time import known_ends
from tilp.types import OnError, Unit

_MAX_FACTS = 2**30 - 1  # so that the edges in both directions fit into 32 bits
# The table of facts as they were read; the first four columns are their order.
_FACTS: dict[Any, Any] = {
    **dict.fromkeys(("split", "source", "part"), pl.Int32),
    "line": pl.Int64,
    **dict.fromkeys(frames.FACT_COLUMNS, pl.String),
    **dict.fromkeys(MARKS, pl.UInt8),
}
_TRAIN: dict[Any, Any] = dict.fromkeys(("subject", "relation", "object", "fact"), pl.Int32)
_TRAIN |= dict.fromkeys(("start", "end"), pl.Int64)
_ORDER: dict[Any, Any] = {"split": pl.Int32, "number": pl.Int64}  # split and order of reading
# One large join or sort a query, since each of them needs most of the memory.
_ENCODED = {
    "with_subjects": """
        SELECT facts.* REPLACE (entities.row AS subject, relations.index AS relation,
            starts.index AS start, ends.index AS "end")
        FROM facts
        JOIN entities ON facts.subject = entities.id
        JOIN relations ON facts.relation = relations.name
        JOIN starts ON facts.start = starts.name
        JOIN ends ON facts."end" = ends.name
    """,
    "with_objects": """
        SELECT with_subjects.* EXCLUDE (row) REPLACE (entities.row AS object)
        FROM with_subjects JOIN entities ON with_subjects.object = entities.id
    """,
    "encoded": "SELECT * EXCLUDE (row) FROM with_objects ORDER BY split, source, part, line",
}
_SOURCES = """
    SELECT source, max(line), count(*) FROM facts GROUP BY split, source ORDER BY split, source
"""


@contextmanager
def _open_batches(
    source: Any, reader: TableReader, size: int, work: Path
) -> Iterator[tuple[int, TextTable, Iterator[TextTable]]]:
    """Open whatever `read` takes for facts: its bytes, its first rows, and batches of all."""
    with ExitStack() as stack:
        if isinstance(source, (str, Path)):
            path = stack.enter_context(regular_file(Path(source).expanduser()))
            n_bytes = path.stat().st_size
            if (records := read_records(path, reader.given["sql"])) is not None:
                tables = iter([records])
            elif path.suffix.lower() in PARQUET_SUFFIXES:
                tables = parquet_batches(path, size)
            else:
                context = path, reader.header, frames.is_header
                tables = text_batches(*context, min_columns=reader.min_columns, size=size)
        elif isinstance(source, pl.LazyFrame):
            path = work / "frame.parquet"
            try:
                source.sink_parquet(path)
            except (pl.exceptions.PolarsError, OSError) as failure:
                raise DataError(f"the LazyFrame cannot be read: {failure}") from failure
            n_bytes, tables = path.stat().st_size, parquet_batches(path, size, first_line=0)
        else:
            frame = as_polars(source)
            n_bytes, tables = int(frame.estimated_size()), frame_batches(frame, size)
        first = [next(tables)]
        while sum(len(table.frame) for table in first) < frames.SAMPLE_ROWS:
            if (table := next(tables, None)) is None:
                break
            first.append(table)
        yield n_bytes, join_tables(first), chain(first, tables)


def stage_facts(
    workspace: Workspace, reader: TableReader, size: int, progress: Callable[[float], None]
) -> None:
    """Read all facts into the table `facts`, about `size` bytes at a time."""
    workspace.add("facts", pl.DataFrame(schema=_FACTS))
    any_table, count = False, 0
    sources = reader.sources.facts
    for index, (split, source, _) in enumerate(sources):
        parts: dict[str, int] = {}  # by the text of the split
        name = source_name(source)
        with _open_batches(source, reader, size, workspace.folder) as (n_bytes, first, tables):
            layout = reader.layout(name, first)
            any_table |= "split" not in layout.roles
            before = count
            for n_tables, table in enumerate(tables, start=1):
                for text, frame, lines in reader.facts(name, table, layout, split):
                    marks = {m: build.encode_marks(frame, m, values) for m, values in MARKS.items()}
                    rows = frame.with_columns(
                        line=pl.Series(lines, dtype=pl.Int64), source=index, **marks,
                        split=SPLITS.index(frames.SPLIT_NAMES[text]),
                        part=parts.setdefault(text, len(parts)),
                    ).fill_null("")  # fmt: skip
                    workspace.add("facts", rows.select(*_FACTS).cast(_FACTS))
                    count += len(frame)
                share = min(n_tables * size / max(n_bytes, 1), 1.0)
                progress((index + share) / len(sources))
            if count == before and not reader.sources.is_written:
                frames.warn(f"{name}: no facts, so {frames.SPLIT_NAMES[split]} is empty")
    if not any_table and not count:
        raise TilpError("there is nothing to read: the table is empty")
    if count > _MAX_FACTS:
        raise TilpError(f"{count:,} facts are more than the {_MAX_FACTS:,} that can be packed")


def _stage_dates(workspace: Workspace, reader: TableReader, unit: Unit | None) -> build.DateTable:
    """Return all dates, as `read` reads them; make tables of their indices, `starts` and `ends`."""
    schema: dict[str, Any] = {"text": pl.String, "n": pl.Int64}
    counts = {
        role: pl.DataFrame(
            workspace.rows(f'SELECT "{role}", count(*) FROM facts GROUP BY 1'), schema, orient="row"
        )
        for role in ("start", "end")
    }

    def where(date: str) -> str:
        same = [text for frame in counts.values() for text in frame["text"] if text.strip() == date]
        workspace.add("same", pl.DataFrame({"text": same}))
        found = 'start IN (SELECT text FROM same) OR "end" IN (SELECT text FROM same)'
        order = "ORDER BY source, part, line LIMIT 1"
        [(source, line)] = workspace.rows(f"SELECT source, line FROM facts WHERE {found} {order}")
        workspace.remove("same")
        return f"{source_name(reader.sources.facts[source][1])}, line {line}"

    changed = reader.date_changes(counts, where, unit)
    new = {
        role: frame.with_columns(pl.col("text").replace(changed.get(role, {})))
        for role, frame in counts.items()
    }
    every = pl.concat([*new.values(), pl.DataFrame({"text": [""], "n": [0]})])
    every = every.group_by("text").agg(pl.col("n").sum()).sort("text")
    for role, frame in counts.items():
        index = new[role]["text"].cast(pl.Enum(every["text"])).to_physical().cast(pl.Int32)
        workspace.add(f"{role}s", pl.DataFrame({"name": frame["text"], "index": index}))
    return build.DateTable.parse(every["text"], every["n"].to_numpy(), unit)


def write_facts(
    workspace: Workspace,
    folder: Path,
    reader: TableReader,
    relations: pl.DataFrame | None,
    unit: Unit | None,
    progress: Callable[[float], None],
) -> dict[str, Any]:
    """Write facts, relations, dates and defects as `build_graph` makes them; return metadata.

    The facts of each split are in the order of `TemporalGraph.canonical`. Edges are made of the
    table `train`.
    """
    used = workspace.rows("SELECT DISTINCT relation FROM facts ORDER BY relation")
    used_names = pl.Series([name for (name,) in used], dtype=pl.String)
    names = build.make_vocabulary("relation", relations, used_names)
    dates, sources = _stage_dates(workspace, reader, unit), reader.sources
    index = pl.int_range(len(names), dtype=pl.Int32, eager=True)
    workspace.add("relations", pl.DataFrame({"name": names.ids, "index": index}))
    by_source = workspace.rows(_SOURCES)
    files = SourceFiles.of((sources.facts[source][2], last) for source, last, _ in by_source)
    n_facts = max(sum(count for *_, count in by_source), 1)
    for before, (table, query) in zip(("facts", *_ENCODED), _ENCODED.items(), strict=False):
        workspace.make(table, query)
        workspace.remove(before)
    kinds: dict[str, Any] = {
        **COLUMNS,
        **dict.fromkeys(MARKS, np.uint8),
        "source_line": files.dtype,
    }
    counts, done = np.zeros(len(SPLITS), np.int64), 0
    none = {name: np.empty(0, kind) for name, kind in kinds.items()}
    workspace.add("repaired", pl.DataFrame(none | {"split": [], "number": []}).cast(_ORDER))
    defects, marks = [*reader.defects, pl.DataFrame(schema=DEFECT_SCHEMA)], set[str]()
    parts = (
        part
        for rows in workspace.slices("encoded")
        for part in rows.partition_by("split", "source", maintain_order=True)
    )
    for part in parts:
        split, (_, source, prefix) = part["split"][0], sources.facts[part["source"][0]]
        lines = cast("Sequence[int]", part["line"])
        encoded = {name: part[name].to_numpy() for name in (*frames.FACT_COLUMNS, *MARKS)}
        start, end = encoded["start"], encoded["end"]
        columns: build.Columns = {
            **encoded,
            "start": dates.first[start],
            "end": dates.last[end],
            "start_text": start,
            "end_text": end,
            "source_line": files.encode(prefix, lines),
        }
        rows = FactTable(SPLITS[split], source_name(source), part, lines)
        columns, _, found = build.repair_defects([rows], columns, dates, reader.on_error)
        defects.append(found)
        marks.update(mark for mark in MARKS if columns[mark].any())
        frame = pl.DataFrame({name: columns[name].astype(kind) for name, kind in kinds.items()})
        number = pl.int_range(done, done + len(frame))
        workspace.add("repaired", frame.with_columns(split=split, number=number).cast(_ORDER))
        counts[split] += len(columns["subject"])
        done += len(part)
        progress(done / n_facts)
    workspace.remove("encoded")
    _write_sorted(workspace, folder, kinds)
    all_defects = pl.concat(defects)
    if reader.on_error is OnError.RAISE and len(all_defects):
        raise DataError(build.defect_message(all_defects))
    for mark in set(MARKS) - marks:
        (folder / f"{mark}.npy").unlink()
    names.frame().write_ipc(folder / "relations.arrow")
    dates.texts.to_frame().write_ipc(folder / "texts.arrow")
    all_defects.write_ipc(folder / "defects.arrow")
    return {
        "unit": dates.unit.value,
        "relations": len(names),
        "bounds": [0, *np.cumsum(counts).tolist()],
        "marks": [mark for mark in MARKS if mark in marks],  # only these have a column
        "sources": asdict(files),
        "reading": reader.reading,
    }


def _write_sorted(workspace: Workspace, folder: Path, kinds: Mapping[str, Any]) -> None:
    """Write the columns of all facts, and the table `train`, in their canonical order."""
    keys = ", ".join(f'"{name}"' for name in ("split", *SORT_KEYS, "number"))
    workspace.make("sorted", f"SELECT * FROM repaired ORDER BY {keys}")
    workspace.remove("repaired")
    workspace.add("train", pl.DataFrame(schema=_TRAIN))
    n_train = 0
    with ExitStack() as stack:
        files = {name: folder / f"{name}.npy" for name in kinds}
        writers = {
            name: stack.enter_context(ColumnWriter(files[name], kind))
            for name, kind in kinds.items()
        }
        for rows in workspace.slices("sorted"):
            for name, writer in writers.items():
                writer.append(rows[name].to_numpy())
            train = rows.filter(split=SPLITS.index("train"))
            start, end = known_ends(train["start"].to_numpy(), train["end"].to_numpy())
            fact = pl.int_range(n_train, n_train + len(train), dtype=pl.Int32, eager=True)
            columns = {"fact": fact, "start": pl.Series(start), "end": pl.Series(end)}
            workspace.add("train", train.with_columns(**columns).select(*_TRAIN).cast(_TRAIN))
            n_train += len(train)
    workspace.remove("sorted")
