"""Facts of a packed graph: read once in batches, then written as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import DataError, TilpError
from tilp.graph import ESTIMATED, SPLITS, WALKED_ONLY, FactTable, LabelTable, Vocabulary
from tilp.graph.build import (
    DateTable,
    defect_message,
    defect_table,
    find_defects,
    make_vocabulary,
    repair_defects,
)
from tilp.graph.graph import DEFECT_SCHEMA
from tilp.io.frames import SPLIT_NAMES, fact_frame, find_roles, is_header, split_masks
from tilp.io.packed.format import COLUMNS, ColumnWriter
from tilp.io.packed.names import EntityIndexer
from tilp.io.read import Sources, regular_file
from tilp.io.tables import PARQUET_SUFFIXES, as_polars, frame_batches, parquet_batches
from tilp.io.text import TextTable, text_batches
from tilp.types import OnError, Unit

_HEADER_ROWS = 2  # rows that show whether the first is a fact
_MAX_FACTS = 2**30 - 1  # so that the edges in both directions fit into 32 bits
_MARKS = {"estimated": ESTIMATED, "walked_only": WALKED_ONLY}


class Batches:
    """Cells of one source, some rows at a time.

    Attributes:
        name: of the source, for messages.
        size: of the source in bytes.
        roles: index of each role among the columns.
    """

    def __init__(
        self,
        name: str,
        size: int,
        tables: Iterator[TextTable],
        columns: Mapping[str, str] | None,
        header: bool | None,
    ) -> None:
        self.name, self.size = name, size
        first: list[TextTable] = []
        while sum(len(table.frame) for table in first) < _HEADER_ROWS:
            table = next(tables, None)
            if table is None:
                break
            first.append(table)
        frame = pl.concat([table.frame for table in first])
        lines = [line for table in first for line in table.lines[:_HEADER_ROWS]]
        self.roles = find_roles(name, TextTable(first[0].names, frame, lines), columns, header)
        self._tables = chain(first, tables)

    def __iter__(self) -> Iterator[TextTable]:
        return self._tables


@contextmanager
def open_batches(
    source: Any, columns: Mapping[str, str] | None, header: bool | None, size: int
) -> Iterator[Batches]:
    """Open whatever `read` takes for facts, to read about `size` bytes at a time."""
    if columns and header is None:
        header = True
    if isinstance(source, (str, Path)):
        with regular_file(Path(source).expanduser()) as path:
            tables = (
                parquet_batches(path, size)
                if path.suffix.lower() in PARQUET_SUFFIXES
                else text_batches(path, header, is_header, size=size)
            )
            yield Batches(str(source), path.stat().st_size, tables, columns, header)
    elif isinstance(source, pl.LazyFrame):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "facts.parquet"
            try:
                source.sink_parquet(path)
            except (pl.exceptions.PolarsError, OSError) as failure:
                raise DataError(f"the LazyFrame cannot be read: {failure}") from failure
            tables = (
                TextTable(table.names, table.frame, range(table.lines[0] - 1, table.lines[-1]))
                if len(table.frame)
                else table
                for table in parquet_batches(path, size)
            )
            yield Batches("the frame", path.stat().st_size, tables, columns, header)
    else:
        frame = as_polars(source)
        tables = frame_batches(frame, size)
        yield Batches("the frame", int(frame.estimated_size()), tables, columns, header)


class TextEncoder:
    """Indices of texts in the order in which they come, and the count of each text."""

    def __init__(self, *texts: str) -> None:
        self._index = {text: index for index, text in enumerate(texts)}
        self.counts = np.zeros(len(texts), np.int64)

    def encode(self, column: pl.Series) -> NDArray[np.int32]:
        """Return the index of each text of a column."""
        distinct = column.unique()
        indices = np.array(
            [self._index.setdefault(text, len(self._index)) for text in distinct], np.int32
        )
        codes: NDArray[np.int32] = indices[column.cast(pl.Enum(distinct)).to_physical().to_numpy()]
        counts = np.bincount(codes, minlength=len(self._index))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        return codes

    def series(self) -> pl.Series:
        """Return the texts by index."""
        return pl.Series("name", list(self._index), dtype=pl.String)


@dataclass(frozen=True)
class _Batch:
    """Facts that were read together.

    Attributes:
        order: sort key among all facts: split, source, table of the source, batch.
        source: its name, for messages.
        run: of the entities' names.
        path: the file with the columns.
        rows: how many.
    """

    order: tuple[int, int, int, int]
    source: str
    run: int
    path: Path
    rows: int


@dataclass(frozen=True)
class EncodedFacts:
    """All facts, as indices of texts, in temporary files."""

    batches: list[_Batch]
    relations: TextEncoder
    dates: TextEncoder

    def __len__(self) -> int:
        return sum(batch.rows for batch in self.batches)


def encode_facts(
    sources: Sources,
    columns: Mapping[str, str] | None,
    header: bool | None,
    entities: EntityIndexer,
    work: Path,
    size: int,
    progress: Callable[[float], None],
) -> EncodedFacts:
    """Read all facts, about `size` bytes at a time; `entities` gets the names of entities."""
    facts = EncodedFacts([], TextEncoder(), TextEncoder(""))
    any_table = False
    for index, (split, source) in enumerate(sources.facts):
        splits: dict[str, int] = {}
        with open_batches(source, columns, header, size) as batches:
            done = 0
            any_table |= "split" not in batches.roles
            for table in batches:
                frame = fact_frame(batches.name, table, batches.roles)
                if not len(frame):
                    continue
                run, encoded = _encode_frame(frame, table.lines, entities, facts)
                if "split" in batches.roles:
                    parts = [
                        (SPLIT_NAMES[text], splits.setdefault(text, len(splits)), mask)
                        for text, mask in split_masks(batches.name, table, batches.roles)
                    ]
                    frames = [(name, order, encoded.filter(mask)) for name, order, mask in parts]
                else:
                    frames = [(split, 0, encoded)]
                for name, split_order, part in frames:
                    order = (SPLITS.index(name), index, split_order, len(facts.batches))
                    path = work / f"facts-{len(facts.batches)}"
                    part.write_parquet(path, compression="lz4", statistics=False)
                    facts.batches.append(_Batch(order, batches.name, run, path, len(part)))
                done += size
                share = min(done / max(batches.size, 1), 1.0)
                progress((index + share) / len(sources.facts))
    if not any_table and not facts.batches:
        raise TilpError("there is nothing to read: the table is empty")
    if len(facts) > _MAX_FACTS:
        raise TilpError(f"{len(facts):,} facts are more than the {_MAX_FACTS:,} that can be packed")
    facts.batches.sort(key=lambda batch: batch.order)
    return facts


def _encode_frame(
    frame: pl.DataFrame, lines: Sequence[int], entities: EntityIndexer, facts: EncodedFacts
) -> tuple[int, pl.DataFrame]:
    """Return facts as indices of texts; entities as rows of the run of their names."""
    run, (subject, object_) = entities.add_used([frame["subject"], frame["object"]])
    encoded = {
        "subject": subject,
        "relation": facts.relations.encode(frame["relation"]),
        "object": object_,
        "start": facts.dates.encode(frame["start"].fill_null("")),
        "end": facts.dates.encode(frame["end"].fill_null("")),
        "line": pl.Series(lines, dtype=pl.Int64),
    }
    for mark, values in _MARKS.items():
        if mark in frame.columns:
            encoded[mark] = frame[mark].cast(pl.Enum(values)).to_physical().cast(pl.UInt8)
        else:
            encoded[mark] = np.zeros(len(frame), np.uint8)
    return run, pl.DataFrame(encoded)


@dataclass(frozen=True)
class WrittenFacts:
    """What belongs to the columns of facts that were written.

    Attributes:
        relations: names of relations.
        dates: the distinct dates.
        bounds: where the splits begin, and where the last ends.
        defects: rows whose dates were repaired or that were skipped.
        marks: marks that any fact has; only these have a column.
    """

    relations: Vocabulary
    dates: DateTable
    bounds: tuple[int, int, int, int]
    defects: pl.DataFrame
    marks: tuple[str, ...]


def write_facts(
    folder: Path,
    facts: EncodedFacts,
    entities: EntityIndexer,
    relations: LabelTable | None,
    unit: Unit | None,
    on_error: OnError,
    progress: Callable[[float], None],
) -> WrittenFacts:
    """Write the columns of facts; arguments as for `build_graph`."""
    used = facts.relations.series()
    names = make_vocabulary("relation", relations, used)
    relation_index = names.encode(used)
    texts = facts.dates.series()
    order = texts.arg_sort().to_numpy()
    date_index = np.empty(len(order), np.int32)
    date_index[order] = np.arange(len(order), dtype=np.int32)
    dates = DateTable.parse(texts.gather(order), facts.dates.counts[order], unit)

    writers = {name: ColumnWriter(folder / f"{name}.npy", kind) for name, kind in COLUMNS.items()}
    writers |= {name: ColumnWriter(folder / f"{name}.npy", np.uint8) for name in _MARKS}
    marked = dict.fromkeys(_MARKS, False)
    counts = np.zeros(len(SPLITS), np.int64)
    defects = [pl.DataFrame(schema=DEFECT_SCHEMA)]
    done, run, entity_index = 0, -1, np.empty(0, np.int64)
    for batch in facts.batches:
        table = pl.read_parquet(batch.path, glob=False)
        if batch.run != run:
            run, entity_index = batch.run, entities.used_indices(batch.run)
        start_text, end_text = (date_index[table[name].to_numpy()] for name in ("start", "end"))
        columns: dict[str, NDArray[Any]] = {
            "subject": entity_index[table["subject"].to_numpy()],
            "relation": relation_index[table["relation"].to_numpy()],
            "object": entity_index[table["object"].to_numpy()],
            "start": dates.first[start_text],
            "end": dates.last[end_text],
            "start_text": start_text,
            "end_text": end_text,
            **{mark: table[mark].to_numpy() for mark in _MARKS},
        }
        defect_rows = find_defects(columns, dates)
        any_defect = any(map(len, defect_rows.values()))
        lines = table["line"].to_list() if any_defect else range(len(table))
        rows = FactTable(SPLITS[batch.order[0]], batch.source, pl.DataFrame(), lines)
        defects.append(defect_table([rows], defect_rows, columns, dates, on_error))
        columns, _ = repair_defects(columns, defect_rows, dates, on_error)
        for name, writer in writers.items():
            writer.append(columns[name])
        for mark in _MARKS:
            marked[mark] |= bool(columns[mark].any())
        counts[batch.order[0]] += len(columns["subject"])
        done += batch.rows
        progress(done / max(len(facts), 1))
    all_defects = pl.concat(defects)
    if on_error is OnError.RAISE and len(all_defects):
        raise DataError(defect_message(all_defects))
    for name, writer in writers.items():
        writer.close()
        if name in marked and not marked[name]:
            (folder / f"{name}.npy").unlink()
    ends = np.cumsum(counts).tolist()
    bounds = (0, ends[0], ends[1], ends[2])
    marks = tuple(mark for mark, any_fact in marked.items() if any_fact)
    return WrittenFacts(names, dates, bounds, all_defects, marks)
