"""Sources of facts, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    Dates,
    describe_defects,
    find_defects,
    first_defect,
    make_vocabulary,
    mended,
)
from tilp.graph.graph import DEFECT_SCHEMA
from tilp.io.frames import by_split, fact_frame, find_roles, is_header
from tilp.io.packed.format import COLUMNS, ColumnWriter
from tilp.io.packed.names import Numbering
from tilp.io.side_files import PARQUET, frame_batches, parquet_batches
from tilp.io.sources import SPLIT_NAMES, Sources, as_polars, regular_file
from tilp.io.text import TextTable, text_batches
from tilp.types import OnError, Unit

_TO_JUDGE = 2  # rows that tell whether the first is a fact


class Batches:
    """The cells of one source.

    Args:
        name: of the source, for messages.
        size: of the source in bytes, where it is a file.
        tables: its rows, some at a time, at least one table.
        columns: column names by role, as the caller gave them.
        header: whether there is a row of column names, as the caller told.
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
        while sum(len(table.frame) for table in first) < _TO_JUDGE:
            table = next(tables, None)
            if table is None:
                break
            first.append(table)
        head = TextTable(
            first[0].names,
            pl.concat([table.frame for table in first]),
            [line for table in first for line in table.lines[:_TO_JUDGE]],
        )
        self.roles = find_roles(name, head, columns, header)
        self._tables = chain(first, tables)

    def __iter__(self) -> Iterator[TextTable]:
        return self._tables


@contextmanager
def open_batches(
    source: Any, columns: Mapping[str, str] | None, header: bool | None, size: int
) -> Iterator[Batches]:
    """The rows of whatever `read` takes for facts, about so many bytes at a time."""
    if columns and header is None:
        header = True
    if isinstance(source, (str, Path)):
        with regular_file(Path(source).expanduser()) as path:
            tables = (
                parquet_batches(path, size)
                if path.suffix.lower() in PARQUET
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
                TextTable(one.names, one.frame, range(one.lines[0] - 1, one.lines[-1]))
                if len(one.frame)
                else one
                for one in parquet_batches(path, size)
            )
            yield Batches("the frame", path.stat().st_size, tables, columns, header)
    else:
        frame = as_polars(source)
        tables = frame_batches(frame, size)
        yield Batches("the frame", int(frame.estimated_size()), tables, columns, header)


_MOST = 2**30 - 1  # so that each fact's two edges can be numbered
_MARKS = {"estimated": ESTIMATED, "walked_only": WALKED_ONLY}


class _Words:
    """Words numbered as they come, and how often each came."""

    def __init__(self, *words: str) -> None:
        self._number = {word: number for number, word in enumerate(words)}
        self._counts = np.zeros(len(words), np.int64)

    def encode(self, column: pl.Series) -> NDArray[np.int32]:
        """The number of each word of a column."""
        distinct = column.unique()
        numbers = np.array(
            [self._number.setdefault(word, len(self._number)) for word in distinct], np.int32
        )
        found: NDArray[np.int32] = numbers[column.cast(pl.Enum(distinct)).to_physical().to_numpy()]
        counts = np.bincount(found, minlength=len(self._number))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        return found

    def series(self) -> pl.Series:
        """The words by their numbers."""
        return pl.Series("name", list(self._number), dtype=pl.String)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each came."""
        return self._counts


@dataclass(frozen=True)
class _Part:
    """Facts of one table that were read together.

    Attributes:
        order: where they stand among all facts: split, source, table of the source, part.
        source: its name, for messages.
        run: whose names they have.
        path: the file with their columns.
        rows: how many.
    """

    order: tuple[int, int, int, int]
    source: str
    run: int
    path: Path
    rows: int


@dataclass(frozen=True)
class Gathered:
    """What the first pass found.

    Attributes:
        parts: the facts, in their order.
        relations: the words that are relations.
        texts: the words that are dates.
    """

    parts: list[_Part]
    relations: _Words
    texts: _Words

    def __len__(self) -> int:
        return sum(part.rows for part in self.parts)


def gather(
    sources: Sources,
    columns: Mapping[str, str] | None,
    header: bool | None,
    numbering: Numbering,
    work: Path,
    size: int,
    progress: Callable[[float], None],
) -> Gathered:
    """Read all facts once; keep them as numbers of words.

    Args:
        sources: where they come from.
        columns: column names by role, as the caller gave them.
        header: whether files begin with column names, as the caller told.
        numbering: is given the names of entities.
        work: where they are kept.
        size: how many bytes are read at once.
        progress: called with the share that is done.
    """
    found = Gathered([], _Words(), _Words(""))
    tables = False
    for number, (split, source) in enumerate(sources.facts):
        words: dict[str, int] = {}
        with open_batches(source, columns, header, size) as batches:
            done = 0
            tables |= "split" not in batches.roles
            for table in batches:
                frame = fact_frame(batches.name, table, batches.roles)
                if not len(frame):
                    continue
                run, spooled = _spooled(frame, table.lines, numbering, found)
                if "split" in batches.roles:
                    told = [
                        (SPLIT_NAMES[word], words.setdefault(word, len(words)), mask)
                        for word, mask in by_split(batches.name, table, batches.roles)
                    ]
                    cut = [(name, place, spooled.filter(mask)) for name, place, mask in told]
                else:
                    cut = [(split, 0, spooled)]
                for name, place, part in cut:
                    order = (SPLITS.index(name), number, place, len(found.parts))
                    path = work / f"facts-{len(found.parts)}"
                    part.write_parquet(path, compression="lz4", statistics=False)
                    found.parts.append(_Part(order, batches.name, run, path, len(part)))
                done += size
                share = min(done / max(batches.size, 1), 1.0)
                progress((number + share) / len(sources.facts))
    if not tables and not found.parts:
        raise TilpError("there is nothing to read: the table is empty")
    if len(found) > _MOST:
        raise TilpError(f"{len(found):,} facts are more than the {_MOST:,} that can be packed")
    found.parts.sort(key=lambda part: part.order)
    return found


def _spooled(
    frame: pl.DataFrame, lines: Any, numbering: Numbering, found: Gathered
) -> tuple[int, pl.DataFrame]:
    """Facts as numbers of words; those of entities are their places in the run of their names."""
    run, (subject, object_) = numbering.use([frame["subject"], frame["object"]])
    spooled = {
        "subject": subject,
        "relation": found.relations.encode(frame["relation"]),
        "object": object_,
        # Where there is no text, the text is empty.
        "start": found.texts.encode(frame["start"].fill_null("")),
        "end": found.texts.encode(frame["end"].fill_null("")),
        "line": pl.Series(lines, dtype=pl.Int64),
    }
    for mark, words in _MARKS.items():
        if mark in frame.columns:
            spooled[mark] = frame[mark].cast(pl.Enum(words)).to_physical().cast(pl.UInt8)
        else:
            spooled[mark] = np.zeros(len(frame), np.uint8)
    return run, pl.DataFrame(spooled)


@dataclass(frozen=True)
class FactColumns:
    """What the second pass wrote, beside the columns.

    Attributes:
        relations: the names of relations.
        dates: the distinct dates.
        bounds: where the splits begin, and where the last ends.
        defects: every row whose dates were repaired or that was skipped.
        marks: which marks any fact has; only these have a column.
    """

    relations: Vocabulary
    dates: Dates
    bounds: tuple[int, int, int, int]
    defects: pl.DataFrame
    marks: tuple[str, ...]


def write_facts(
    folder: Path,
    found: Gathered,
    numbering: Numbering,
    relations: LabelTable | None,
    unit: Unit | None,
    on_error: OnError,
    progress: Callable[[float], None],
) -> FactColumns:
    """Write the columns of facts in their order.

    Args:
        folder: of the pack.
        found: what the first pass found.
        numbering: knows the numbers of entities.
        relations: names of relations, in the order in which they are to be numbered.
        unit: what times count; chosen from the dates where None.
        on_error: what to do with a row whose dates are malformed or run backwards.
        progress: called with the share that is done.

    Raises:
        DataError: a date defect, where `on_error` says so.
    """
    used = found.relations.series()
    names = make_vocabulary("relation", relations, used)
    relation_number = names.encode(used)
    texts = found.texts.series()
    order = texts.arg_sort().to_numpy()
    place_of_text = np.empty(len(order), np.int32)
    place_of_text[order] = np.arange(len(order), dtype=np.int32)
    dates = Dates.of(texts.gather(order), found.texts.counts[order], unit)

    writers = {name: ColumnWriter(folder / f"{name}.npy", kind) for name, kind in COLUMNS.items()}
    writers |= {name: ColumnWriter(folder / f"{name}.npy", np.uint8) for name in _MARKS}
    marked = dict.fromkeys(_MARKS, False)
    counts = np.zeros(len(SPLITS), np.int64)
    defects = [pl.DataFrame(schema=DEFECT_SCHEMA)]
    done, run, entity_number = 0, -1, np.empty(0, np.int64)
    for part in found.parts:
        table = pl.read_parquet(part.path, glob=False)
        if part.run != run:
            run, entity_number = part.run, numbering.numbers_of_used(part.run)
        start_text, end_text = (place_of_text[table[end].to_numpy()] for end in ("start", "end"))
        columns: dict[str, NDArray[Any]] = {
            "subject": entity_number[table["subject"].to_numpy()],
            "relation": relation_number[table["relation"].to_numpy()],
            "object": entity_number[table["object"].to_numpy()],
            "start": dates.first[start_text],
            "end": dates.last[end_text],
            "start_text": start_text,
            "end_text": end_text,
            **{mark: table[mark].to_numpy() for mark in _MARKS},
        }
        wrong = find_defects(columns, dates)
        lines = table["line"].to_list() if any(map(len, wrong.values())) else range(len(table))
        rows = FactTable(SPLITS[part.order[0]], part.source, pl.DataFrame(), lines)
        defects.append(describe_defects([rows], wrong, columns, dates, on_error))
        columns, _ = mended(columns, wrong, dates, on_error)
        for name, writer in writers.items():
            writer.append(columns[name])
        for mark in _MARKS:
            marked[mark] |= bool(columns[mark].any())
        counts[part.order[0]] += len(columns["subject"])
        done += part.rows
        progress(done / max(len(found), 1))
    all_defects = pl.concat(defects)
    if on_error is OnError.RAISE and len(all_defects):
        raise DataError(first_defect(all_defects))
    for name, writer in writers.items():
        writer.close()
        if name in marked and not marked[name]:
            (folder / f"{name}.npy").unlink()
    ends = np.cumsum(counts).tolist()
    return FactColumns(
        names,
        dates,
        (0, ends[0], ends[1], ends[2]),
        all_defects,
        tuple(mark for mark, any_has_it in marked.items() if any_has_it),
    )
