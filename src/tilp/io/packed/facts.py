"""Facts of a packed graph: read once in batches, then written as columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import polars as pl

from tilp._utils.arrays import Ids
from tilp.errors import DataError, TilpError
from tilp.graph import SPLITS, FactTable, build
from tilp.graph.graph import DEFECT_SCHEMA, MARKS
from tilp.graph.sources import SourceFiles
from tilp.io.frames import SPLIT_NAMES, fact_frame, find_roles, is_header, split_masks
from tilp.io.packed.format import COLUMNS, ColumnWriter
from tilp.io.packed.names import EntityIndexer
from tilp.io.read import Sources, regular_file
from tilp.io.tables import PARQUET_SUFFIXES, as_polars, frame_batches, parquet_batches
from tilp.io.text import TextTable, join_tables, text_batches
from tilp.types import OnError, Unit

_HEADER_ROWS = 2  # rows that show whether the first is a fact
_MAX_FACTS = 2**30 - 1  # so that the edges in both directions fit into 32 bits


@contextmanager
def _open_batches(
    source: Any, columns: Mapping[str, str] | None, header: bool | None, size: int
) -> Iterator[tuple[str, int, dict[str, int], Iterator[TextTable]]]:
    """Open whatever `read` takes for facts: its name, bytes, roles of columns, and batches."""
    if columns and header is None:
        header = True
    name = "the frame"
    with ExitStack() as stack:
        if isinstance(source, (str, Path)):
            name, path = str(source), stack.enter_context(regular_file(Path(source).expanduser()))
            n_bytes = path.stat().st_size
            if path.suffix.lower() in PARQUET_SUFFIXES:
                tables = parquet_batches(path, size)
            else:
                tables = text_batches(path, header, is_header, size=size)
        elif isinstance(source, pl.LazyFrame):
            path = Path(stack.enter_context(TemporaryDirectory())) / "facts.parquet"
            try:
                source.sink_parquet(path)
            except (pl.exceptions.PolarsError, OSError) as failure:
                raise DataError(f"the LazyFrame cannot be read: {failure}") from failure
            n_bytes, tables = path.stat().st_size, parquet_batches(path, size, first_line=0)
        else:
            frame = as_polars(source)
            n_bytes, tables = int(frame.estimated_size()), frame_batches(frame, size)
        first = [next(tables)]
        while sum(len(table.frame) for table in first) < _HEADER_ROWS:
            if (table := next(tables, None)) is None:
                break
            first.append(table)
        roles = find_roles(name, join_tables(first), columns, header)
        yield name, n_bytes, roles, chain(first, tables)


class _TextEncoder:
    """Indices of texts in the order in which they come, and the count of each text."""

    def __init__(self, *texts: str) -> None:
        self._index = {text: index for index, text in enumerate(texts)}
        self.counts = np.zeros(len(texts), np.int64)

    def encode(self, column: pl.Series) -> Ids:
        distinct = column.unique()
        new = [self._index.setdefault(text, len(self._index)) for text in distinct]
        indices = np.array(new, np.int32)
        codes: Ids = indices[column.cast(pl.Enum(distinct)).to_physical().to_numpy()]
        counts = np.bincount(codes, minlength=len(self._index))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        return codes

    def series(self) -> pl.Series:
        return pl.Series("name", list(self._index), dtype=pl.String)


@dataclass(frozen=True)
class _Batch:
    """Facts that were read together."""

    order: tuple[int, int, int, int]  # sort key: split, source, table of the source, batch
    source: str
    run: int  # of the entities' names
    path: Path
    rows: int
    prefix: str  # of the source in `SourceFiles`
    last_line: int


@dataclass(frozen=True)
class EncodedFacts:
    """All facts, as indices of texts, in temporary files."""

    batches: list[_Batch]
    relations: _TextEncoder
    dates: _TextEncoder

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
    facts = EncodedFacts([], _TextEncoder(), _TextEncoder(""))
    any_table = False
    for index, (split, source, prefix) in enumerate(sources.facts):
        splits: dict[str, int] = {}
        with _open_batches(source, columns, header, size) as (name, n_bytes, roles, tables):
            done = 0
            any_table |= "split" not in roles
            for table in tables:
                frame = fact_frame(name, table, roles)
                if not len(frame):
                    continue
                run, encoded = _encode_frame(frame, table.lines, entities, facts)
                place = prefix, table.lines[-1]
                parts = [(split, 0, encoded)]
                if "split" in roles:
                    parts = [
                        (SPLIT_NAMES[text], splits.setdefault(text, len(splits)), encoded.filter(m))
                        for text, m in split_masks(name, table, roles)
                    ]
                for part_split, split_order, part in parts:
                    order = (SPLITS.index(part_split), index, split_order, len(facts.batches))
                    path = work / f"facts-{len(facts.batches)}"
                    part.write_parquet(path, compression="lz4", statistics=False)
                    facts.batches.append(_Batch(order, name, run, path, len(part), *place))
                done += size
                progress((index + min(done / max(n_bytes, 1), 1.0)) / len(sources.facts))
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
    for mark, values in MARKS.items():
        encoded[mark] = build.encode_marks(frame, mark, values)
    return run, pl.DataFrame(encoded)


def write_facts(
    folder: Path,
    facts: EncodedFacts,
    entities: EntityIndexer,
    relations: pl.DataFrame | None,
    unit: Unit | None,
    on_error: OnError,
    progress: Callable[[float], None],
) -> dict[str, Any]:
    """Write facts, relations, dates and defects as `build_graph` makes them; return metadata."""
    used = facts.relations.series()
    names = build.make_vocabulary("relation", relations, used)
    relation_index = names.encode(used)
    texts = facts.dates.series()
    order = texts.arg_sort().to_numpy()
    date_index = np.argsort(order).astype(np.int32)
    dates = build.DateTable.parse(texts.gather(order), facts.dates.counts[order], unit)
    writers = {name: ColumnWriter(folder / f"{name}.npy", kind) for name, kind in COLUMNS.items()}
    writers |= {name: ColumnWriter(folder / f"{name}.npy", np.uint8) for name in MARKS}
    files = SourceFiles.of((batch.prefix, batch.last_line) for batch in facts.batches)
    writers["source_line"] = ColumnWriter(folder / "source_line.npy", files.dtype)
    marked = dict.fromkeys(MARKS, False)
    counts = np.zeros(len(SPLITS), np.int64)
    defects = [pl.DataFrame(schema=DEFECT_SCHEMA)]
    done, run, entity_index = 0, -1, np.empty(0, np.int64)
    for batch in facts.batches:
        table = pl.read_parquet(batch.path, glob=False)
        if batch.run != run:
            run, entity_index = batch.run, entities.used_indices(batch.run)
        start_text, end_text = (date_index[table[name].to_numpy()] for name in ("start", "end"))
        columns: build.Columns = {
            "subject": entity_index[table["subject"].to_numpy()],
            "relation": relation_index[table["relation"].to_numpy()],
            "object": entity_index[table["object"].to_numpy()],
            "start": dates.first[start_text],
            "end": dates.last[end_text],
            "start_text": start_text,
            "end_text": end_text,
            **{mark: table[mark].to_numpy() for mark in MARKS},
        }
        lines = cast("Sequence[int]", table["line"])
        columns["source_line"] = files.encode(batch.prefix, lines)
        rows = FactTable(SPLITS[batch.order[0]], batch.source, pl.DataFrame(), lines)
        columns, _, found = build.repair_defects([rows], columns, dates, on_error)
        defects.append(found)
        for name, writer in writers.items():
            writer.append(columns[name])
        for mark in MARKS:
            marked[mark] |= bool(columns[mark].any())
        counts[batch.order[0]] += len(columns["subject"])
        done += batch.rows
        progress(done / max(len(facts), 1))
    all_defects = pl.concat(defects)
    if on_error is OnError.RAISE and len(all_defects):
        raise DataError(build.defect_message(all_defects))
    for name, writer in writers.items():
        writer.close()
        if name in marked and not marked[name]:
            (folder / f"{name}.npy").unlink()
    train, valid, test = np.cumsum(counts).tolist()
    names.frame().write_ipc(folder / "relations.arrow")
    dates.texts.to_frame().write_ipc(folder / "texts.arrow")
    all_defects.write_ipc(folder / "defects.arrow")
    marks = [mark for mark, any_fact in marked.items() if any_fact]  # only these have a column
    content = {"bounds": [0, train, valid, test], "marks": marks, "sources": asdict(files)}
    return {"unit": dates.unit.value, "relations": len(names), **content}
