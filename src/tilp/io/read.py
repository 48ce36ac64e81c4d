"""`read`: one call from a file, a folder of splits or a frame to a `TemporalGraph`."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats
from tilp.errors import DataError, TilpError, TilpNotice
from tilp.graph import SPLITS, Defect, FactTable, TemporalGraph, build_graph
from tilp.graph.graph import DEFECT_SCHEMA
from tilp.io import frames, tables
from tilp.io.date_shapes import check_form, find_changes
from tilp.io.frames import SPLIT_NAMES, warn
from tilp.io.packed.open import is_packed, open_checked
from tilp.io.records import EXCEL_SUFFIXES, is_database
from tilp.io.text import TextTable
from tilp.types import OnError, Unit, choose

_TEXT = (".tsv", ".txt", ".csv", ".jsonl", ".ndjson")
_SUFFIXES = (*_TEXT, *tables.PARQUET_SUFFIXES, *EXCEL_SUFFIXES)
_ID_FILES = {"entity2id": "entities", "relation2id": "relations"}  # entities.tsv replaces them
_PADDING = ("0", "-1")  # last of five columns, in folders with such files


def read(
    source: Any,
    *,
    unit: Unit | str | None = None,
    on_error: OnError | str = OnError.REPAIR,
    columns: Mapping[str, str] | None = None,
    header: bool | None = None,
    relation_name: str | None = None,
    wide: bool = False,
    date_format: str | None = None,
    keep: Sequence[str] = (),
    sql: str | None = None,
    like: TemporalGraph | None = None,
) -> TemporalGraph:
    """Read a temporal graph.

    Args:
        source: a file, a folder with the splits (`train`, `valid`, `test`) as files, a frame
            (polars, pandas or Arrow), a networkx graph, or a mapping from split to any of these.
            Files are TSV or CSV, gzipped or not, Parquet, JSON lines, Excel, SQLite or DuckDB. A
            folder may hold `entities.tsv` and `relations.tsv` (id, key, label) and
            `attributes.tsv` (entity id, then numbers), or `entity2id.txt` and `relation2id.txt`
            with names and ids, either first, whose facts have ids and perhaps whole numbers as
            times. Or a folder that `pack` made, which is opened as it is.
        unit: what times count: year, month, day or integer; by default the finest in which at
            least 90 % of the known dates are complete.
        on_error: what to do with malformed dates, with starts after their ends and with rows
            without a name: 'repair' (unknown; end = start; left out; the default), 'skip' the
            row, or 'raise'.
        columns: column names by role, where they do not speak for themselves: subject,
            relation, object, and start and end, or date, and split, estimated and walked_only.
            Roles that are not given are recognised. Files then have a header.
        header: whether files begin with a row of column names; detected by default.
        relation_name: the relation of every row, for a table without such a column.
        wide: whether each row has a subject, in the first column unless `columns` says
            otherwise, and its attributes, which become facts with the dates of the row. The
            names of their columns are the relations. False by default.
        date_format: how dates are written: 'day-first', 'month-first', 'digits', 'seasons',
            'excel', or a format of `strptime`; by default recognised.
        keep: names of columns with numbers to keep as attributes of the subjects.
        sql: the query whose result is read from a database; by default its only table.
        like: a graph that was read before: its columns, relation name and date format count
            where they fit and no other is given.

    Raises:
        DataError: what cannot be read, naming file, line, column, what was found and the remedy.

    >>> import polars as pl
    >>> names = ["subject", "relation", "object", "start", "end"]
    >>> facts = pl.DataFrame([("Ada", "playsFor", "Rovers", 1990, 1993)], names, orient="row")
    >>> print(read(facts).fact(0))
    (Ada, playsFor, Rovers, [1990, 1993])
    """
    on_error = choose(OnError, on_error, "on_error")
    chosen_unit = None if unit is None else choose(Unit, unit, "unit")
    given = {"relation_name": relation_name, "wide": wide, "keep": tuple(keep), "sql": sql}
    given["date_format"] = date_format
    if isinstance(source, (str, Path)) and is_packed(Path(source).expanduser()):
        if columns or header is not None or any(given.values()):
            raise TilpError(f"{source}: a packed graph has no columns to choose and no header")
        graph = open_checked(Path(source).expanduser(), chosen_unit, on_error)
        warn_of_defects(graph)
        return graph
    sources = find_sources(source)
    remembered = {} if like is None else like.reading
    reader = TableReader(sources, columns or {}, header, on_error, given, remembered)
    files = dict(sources.side_files)
    attributes = files.pop("attributes", None)
    labels: dict[str, Any] = {
        k: tables.read_labels(file, either_way=_stem(file) in _ID_FILES)
        for k, file in sorted(files.items())
    }
    facts: list[FactTable] = []
    for split, part, prefix in sources.facts:
        name, table = source_name(part), reader.table(part)
        parts = reader.facts(name, table, reader.layout(name, table), split)
        facts += [
            FactTable(SPLIT_NAMES[s], name, frame, lines, prefix) for s, frame, lines in parts
        ]
    if not facts:
        raise TilpError("there is nothing to read: the table is empty")
    for each in facts if not sources.is_written else ():
        if not len(each.frame):
            warn(f"{each.source}: no facts, so {each.split} is empty")
    values = {} if attributes is None else tables.read_attributes(attributes)
    unit = chosen_unit or sources.unit
    if unit is None and sources.with_ids and all(_counts_time(table.frame) for table in facts):
        unit = Unit.INTEGER
    counts = {
        role: pl.concat(table.frame[role] for table in facts).alias("text").value_counts(name="n")
        for role in ("start", "end")
    }
    changed = reader.date_changes(counts, partial(_where, facts), unit)
    dates = [pl.col(role).replace(new) for role, new in changed.items() if new]
    facts = [replace(table, frame=table.frame.with_columns(dates)) for table in facts]
    for name, owned in reader.values.items():
        values[name] = pl.concat(ids for ids, _ in owned), np.concatenate([v for _, v in owned])
    graph = build_graph(facts, **labels, attributes=values, unit=unit, on_error=on_error)
    defects = pl.concat([*reader.defects, graph.defects])
    graph = replace(graph, reading=reader.reading, defects=defects)
    warn_of_defects(graph)
    return graph


@dataclass
class TableReader:
    """Reads tables of facts with the same options; gathers what is not in their facts."""

    sources: "Sources"
    columns: Mapping[str, str]
    header: bool | None
    on_error: OnError
    given: Mapping[str, Any]  # relation_name, wide, keep, sql, date_format
    remembered: Mapping[str, Any] = field(default_factory=dict)  # of a graph that was read alike
    reading: dict[str, Any] = field(init=False)
    called: dict[str, str] = field(default_factory=dict)  # names of columns by role
    defects: list[pl.DataFrame] = field(default_factory=list)
    values: dict[str, list[tuple[pl.Series, Floats]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check options."""
        check_form(self.given["date_format"])
        name, wide = self.given["relation_name"], self.given["wide"]
        if name is not None and (wide or "relation" in self.columns or not name):
            relation = "relation_name goes with neither wide nor a relation column"
            raise TilpError(f"{relation}, nor is it ''")
        paths = [_is_path(part) for _, part, _ in self.sources.facts]
        if self.given["sql"] is not None and not all(paths):
            raise TilpError("sql is for files of SQLite or DuckDB, not for frames")
        if self.header is None and (self.columns or wide):
            self.header = True
        self.reading = dict(self.sources.reading)

    @property
    def min_columns(self) -> int:
        """The number of columns that a table must have."""
        one_relation = self.given["relation_name"] or self.remembered.get("relation_name")
        return 2 if one_relation or self.given["wide"] else 3

    def table(self, source: Any) -> TextTable:
        """Read a whole table."""
        if _is_path(source):
            options = self.header, frames.is_header, self.min_columns, self.given["sql"]
            with regular_file(Path(source).expanduser()) as path:
                table = tables.read_table(path, *options)
        else:
            table = tables.as_table(tables.as_polars(source), 0)
        is_padded = self.sources.with_ids and table.frame.width == 5
        if is_padded and table.frame[:, 4].is_in(_PADDING).all():
            table = replace(table, frame=table.frame[:, :4])
        return table

    def facts(
        self, name: str, table: TextTable, layout: frames.Layout, split: str
    ) -> Iterator[tuple[str, pl.DataFrame, Sequence[int]]]:
        """Yield facts and their lines, with the split, or for each text in a column of splits."""
        table, roles = frames.long_table(name, table, layout)
        full = frames.full_rows(table, roles, name, self.on_error)
        if not full.all():
            defect = (Defect.EMPTY_NAME.value, "", "", "row skipped")
            rows = [(split, name, line, *defect) for line in compress(table.lines, ~full)]
            self.defects.append(pl.DataFrame(rows, schema=DEFECT_SCHEMA, orient="row"))
            lines = list(compress(table.lines, full))
            table = replace(table, frame=table.frame.filter(full), lines=lines)
        frame = frames.fact_frame(name, table, roles, layout.relation_name)
        if keep := self.given["keep"]:
            at = [table.frame.to_series((table.names or ()).index(column)) for column in keep]
            texts = [frames.as_text(c, name, "kept").alias(f"{i}") for i, c in enumerate(at)]
            kept = TextTable(("", *keep), pl.DataFrame([frame["subject"], *texts]), table.lines)
            for column, value in tables.number_columns(name, kept).items():
                known = frame["subject"].filter(~np.isnan(value)), value[~np.isnan(value)]
                self.values.setdefault(column, []).append(known)
        if "split" not in roles:
            yield split, frame, table.lines
            return
        for text, mask in frames.split_masks(name, table, roles):
            yield text, frame.filter(mask), list(compress(table.lines, mask))

    def layout(self, name: str, table: TextTable) -> frames.Layout:
        """Return which column of a table is which, given its first rows or all."""
        names, keep = table.names or (), self.given["keep"]
        if absent := [column for column in keep if column not in names]:
            raise DataError(f"{name}: no column {absent[0]!r} to keep; there are {list(names)}")
        free = set(names).difference(self.columns.values(), keep)
        shut = frames.DATE_ROLES if self.columns.keys() & frames.DATE_ROLES else frozenset()
        hints = self.remembered.get("columns", {}).items()
        columns = {role: column for role, column in hints if column in free and role not in shut}
        columns |= dict(self.columns)
        relation_name, wide = self.given["relation_name"], self.given["wide"]
        if names and "relation" not in columns.keys() | frames.name_roles(names).keys():
            wide = wide or bool(self.remembered.get("wide") and not relation_name)
            relation_name = relation_name or self.remembered.get("relation_name")
        context = columns, self.header, relation_name, keep
        layout = frames.find_layout(name, table, *context, wide=wide)
        if not self.sources.is_written:
            called = {role: names[index] for role, index in layout.roles.items() if names}
            self.called |= called
            own = {role: column for role, column in called.items() if role != column}
            reading = {"columns": own, "wide": wide, "relation_name": relation_name}
            self.reading.update({key: value for key, value in reading.items() if value})
        return layout

    def date_changes(
        self, texts: Mapping[str, pl.DataFrame], where: Callable[[str], str], unit: Unit | None
    ) -> dict[str, dict[str, str]]:
        """Return new texts of dates as `find_changes` does, with a notice; none of `write`."""
        if unit is Unit.INTEGER or self.sources.is_written:
            return {}
        form = self.given["date_format"] or self.remembered.get("date_format")
        parts = [source_name(part) for _, part, _ in self.sources.facts]
        from_excel = any(name.lower().endswith(EXCEL_SUFFIXES) for name in parts)
        changed, form, note = find_changes(
            texts, where, form, self.on_error, from_excel, self.called
        )
        self.reading.update({"date_format": form} if form else {})
        if note:
            warn(f"{parts[0]}: {note}", TilpNotice)
        return changed


def _where(facts: Sequence[FactTable], text: str) -> str:
    """Return the file and line of the first fact with a date."""
    for table in facts:
        for row in zip(table.lines, table.frame["start"], table.frame["end"], strict=True):
            if text in [(cell or "").strip() for cell in row[1:]]:
                return f"{table.source}, line {row[0]}"
    return facts[0].source


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, Path))


def source_name(source: Any) -> str:
    """Return the name of a file or frame in messages."""
    return str(source) if _is_path(source) else "the frame"


def _stem(path: Path) -> str:
    return path.name.lower().removesuffix(".gz").rpartition(".")[0]


def _counts_time(frame: pl.DataFrame) -> bool:
    """Return whether times are whole numbers, which start before the year 1000."""
    times = frame["start"].drop_nulls().cast(pl.Int64, strict=False)
    return not times.has_nulls() and len(times) > 0 and cast("int", times.min()) < 1000


def warn_of_defects(graph: TemporalGraph) -> None:
    """Warn how many rows have defects, and what was done with them."""
    if not len(graph.defects):
        return
    counts = graph.defects.group_by("defect", "done", maintain_order=True).len()
    listed = ", ".join(f"{count:,} × {defect} ({done})" for defect, done, count in counts.rows())
    first = graph.defects.row(0, named=True)
    warn(
        f"rows with defects: {listed}; the first in {first['file']}, line {first['line']}: start "
        f"{first['start']!r}, end {first['end']!r}. See each row: graph.defects, or tilp inspect "
        "DATA --defects"
    )


@dataclass(frozen=True)
class Sources:
    """Parts of a data set."""

    # Each with its split, unless a column names it, and the prefix of `SourceFiles`.
    facts: tuple[tuple[str, Any, str], ...]
    side_files: Mapping[str, Path] = field(default_factory=dict)  # entities, relations, attributes
    unit: Unit | None = None
    reading: dict[str, Any] = field(default_factory=dict)  # of a graph that `write` wrote

    @property
    def with_ids(self) -> bool:
        """Whether names are in files such as `entity2id.txt`."""
        return any(_stem(file) in _ID_FILES for file in self.side_files.values())

    @property
    def is_written(self) -> bool:
        """Whether `write` wrote the folder, so that dates are as `parse_date` reads them."""
        return self.unit is not None


def find_sources(source: Any) -> Sources:
    """Split whatever `read` takes into its parts."""
    if isinstance(source, (str, Path)) and Path(source).expanduser().is_dir():
        folder = Path(source).expanduser()
        splits, side_files = _find_files(folder)
        facts = tuple((split, path, _prefix(path)) for split, path in splits.items())
        return Sources(facts, side_files, *tables.read_note(folder))
    if not isinstance(source, Mapping):
        return Sources((("train", source, _prefix(source)),))
    for split in source:
        if split not in SPLIT_NAMES:
            mapping = f"a mapping goes from {', '.join(SPLITS)} to tables"
            raise TilpError(f"no split is named {split!r}; {mapping}")
    if not source:
        raise TilpError("there is nothing to read: the mapping is empty")
    parts = ((SPLIT_NAMES[split], part) for split, part in source.items())
    return Sources(tuple((split, part, _prefix(part, split)) for split, part in parts))


def _prefix(part: Any, split: str = "") -> str:
    """Return the prefix of a file or frame in `SourceFiles`; one in a mapping has a split."""
    if not isinstance(part, (str, Path)):
        return f"the {split} frame, row " if split else "the frame, row "
    name = str(part) if split else Path(part).name
    by_row = (*tables.PARQUET_SUFFIXES, *EXCEL_SUFFIXES)
    is_row = Path(part).suffix.lower() in by_row or is_database(Path(part).expanduser())
    return f"{name}, row " if is_row else f"{name}:"


def _find_files(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    files: dict[str, Path] = {}
    unread: list[str] = []
    try:
        paths = sorted(folder.iterdir())
    except OSError as failure:
        raise DataError(f"{folder}: cannot be read: {failure}") from failure
    named = {_stem(path) for path in paths}
    for path in paths:
        stem, _, suffix = path.name.lower().removesuffix(".gz").rpartition(".")
        if f".{suffix}" not in _SUFFIXES:
            continue
        if stem == "stat" or (stem in _ID_FILES and _ID_FILES[stem] in named):
            continue  # counts, or what a table of names replaces
        name = SPLIT_NAMES.get(stem, _ID_FILES.get(stem, stem))
        if not path.is_file() or name not in (*SPLITS, "entities", "relations", "attributes"):
            unread.append(path.name)
            continue
        if name in files:
            raise DataError(
                f"{folder}: both {files[name].name} and {path.name} could be the {name} file; "
                "remove one, or read the one you mean by its own path"
            )
        files[name] = path
    splits = {split: files.pop(split) for split in SPLITS if split in files}
    if not splits:
        listed = ", ".join(path.name for path in paths[:10]) or "nothing"
        raise DataError(
            f"{folder}: no fact file; a folder holds train, and perhaps valid and test, as .tsv, "
            f".txt, .csv (.gz) or .parquet. Found: {listed}"
        )
    if unread:
        warn(f"{folder}: not read: {', '.join(unread)}")
    if "train" not in splits:
        warn(f"{folder}: there is no train file, so nothing can be learned from it")
    return splits, files


@contextmanager
def regular_file(path: Path) -> Iterator[Path]:
    """Yield a file that can be read more than once; a pipe is copied first."""
    if not path.exists() or path.is_dir():
        raise DataError(f"{path}: no such file or folder")
    if path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        with path.open("rb") as pipe, copy.open("wb") as file:
            shutil.copyfileobj(pipe, file)
        yield copy
