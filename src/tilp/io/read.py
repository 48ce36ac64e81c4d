"""`read`: one call from a file, a folder of splits or a frame to a `TemporalGraph`."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any, cast

import polars as pl

from tilp.errors import DataError, TilpError
from tilp.graph import SPLITS, FactTable, TemporalGraph, build_graph
from tilp.io import tables
from tilp.io.frames import SPLIT_NAMES, Chosen, fact_frame, find_roles, is_header, split_masks, warn
from tilp.io.packed.open import is_packed, open_checked
from tilp.types import OnError, Unit, choose

_SUFFIXES = (".tsv", ".txt", ".csv", *tables.PARQUET_SUFFIXES)
_ID_FILES = {"entity2id": "entities", "relation2id": "relations"}  # entities.tsv replaces them
_PADDING = ("0", "-1")  # last of five columns, in folders with such files


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
            (id, key, label) and `attributes.tsv` (entity id, then numbers), or `entity2id.txt` and
            `relation2id.txt` with names and ids, either first, whose facts have ids and perhaps
            whole numbers as times. Or a folder that `pack` made, which is opened as it is.
        unit: what times count: year, month, day or integer; by default the finest in which at
            least 90 % of the known dates are complete.
        on_error: what to do with malformed dates and with starts after their ends: 'repair'
            (unknown; end = start; the default), 'skip' the row, or 'raise'.
        columns: column names by role, where they do not speak for themselves: subject,
            relation, object, and start and end, or date, and split, estimated and walked_only.
            Files then have a header.
        header: whether files begin with a row of column names; detected by default.

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
    if isinstance(source, (str, Path)) and is_packed(Path(source).expanduser()):
        if columns or header is not None:
            raise TilpError(f"{source}: a packed graph has no columns to choose and no header")
        graph = open_checked(Path(source).expanduser(), chosen_unit, on_error)
        warn_of_defects(graph)
        return graph
    sources = find_sources(source)
    files = dict(sources.side_files)
    attributes = files.pop("attributes", None)
    with_ids = sources.with_ids
    labels: dict[str, Any] = {
        k: tables.read_labels(file, either_way=_stem(file) in _ID_FILES)
        for k, file in sorted(files.items())
    }
    facts: list[FactTable] = []
    for split, part, prefix in sources.facts:
        facts += _fact_tables(part, split, columns, header, prefix, with_ids=with_ids)
    if not facts:
        raise TilpError("there is nothing to read: the table is empty")
    values = None if attributes is None else tables.read_attributes(attributes)
    unit = chosen_unit or sources.unit
    if unit is None and with_ids and all(_counts_time(table.frame) for table in facts):
        unit = Unit.INTEGER
    graph = build_graph(facts, **labels, attributes=values, unit=unit, on_error=on_error)
    warn_of_defects(graph)
    return graph


def _fact_tables(
    source: Any,
    split: str,
    columns: Chosen,
    header: bool | None,
    prefix: str,
    *,
    with_ids: bool,
) -> list[FactTable]:
    if columns and header is None:
        header = True
    if isinstance(source, (str, Path)):
        name = str(source)
        with regular_file(Path(source).expanduser()) as path:
            table = tables.read_table(path, header, is_header)
    else:
        name, table = "the frame", tables.as_table(tables.as_polars(source), 0)
    if with_ids and table.frame.width == 5 and table.frame[:, 4].is_in(_PADDING).all():
        table = replace(table, frame=table.frame[:, :4])
    roles = find_roles(name, table, columns, header)
    frame = fact_frame(name, table, roles)
    if "split" not in roles:
        return [FactTable(split, name, frame, table.lines, prefix)]
    masks = ((SPLIT_NAMES[text], mask) for text, mask in split_masks(name, table, roles))
    return [
        FactTable(split, name, frame.filter(mask), list(compress(table.lines, mask)), prefix)
        for split, mask in masks
    ]


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
        f"date defects: {listed}; the first in {first['file']}, line {first['line']}: start "
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

    @property
    def with_ids(self) -> bool:
        """Whether names are in files such as `entity2id.txt`."""
        return any(_stem(file) in _ID_FILES for file in self.side_files.values())


def find_sources(source: Any) -> Sources:
    """Split whatever `read` takes into its parts."""
    if isinstance(source, (str, Path)) and Path(source).expanduser().is_dir():
        folder = Path(source).expanduser()
        splits, side_files = _find_files(folder)
        facts = tuple((split, path, _prefix(path)) for split, path in splits.items())
        return Sources(facts, side_files, tables.read_unit(folder))
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
    return f"{name}, row " if Path(part).suffix.lower() in tables.PARQUET_SUFFIXES else f"{name}:"


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
