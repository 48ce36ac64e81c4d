"""Where facts come from: a file, a folder of splits, a frame, or a mapping from split to these."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tilp.errors import DataError, TilpError, TilpWarning
from tilp.graph import SPLITS
from tilp.io.side_files import PARQUET, noted_unit
from tilp.types import Unit

__all__ = ["SPLIT_NAMES", "Sources", "as_polars", "find_sources", "regular_file", "warn"]

SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "facts": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
    "testing": "test",
}
"""What splits are called in files and mappings."""

_TEXT = (".tsv", ".txt", ".csv")
_LABELS = ("entities", "relations")
_ID_FILES = ("entity2id.txt", "relation2id.txt")  # what published sets' names were made from


@dataclass(frozen=True)
class Sources:
    """What is read as one graph.

    Attributes:
        facts: the split of each source of facts, where no column tells it, and the source.
        beside: the files of names and attributes, by what they hold.
        unit: what a note beside the facts says that times count.
    """

    facts: tuple[tuple[str, Any], ...]
    beside: Mapping[str, Path] = field(default_factory=dict)
    unit: Unit | None = None


def find_sources(source: Any) -> Sources:
    """Whatever `read` takes, as its parts.

    Raises:
        TilpError: a folder without facts, or a mapping with other splits.
    """
    if isinstance(source, (str, Path)) and Path(source).expanduser().is_dir():
        folder = Path(source).expanduser()
        splits, beside = _find_files(folder)
        return Sources(tuple(splits.items()), beside, noted_unit(folder))
    if not isinstance(source, Mapping):
        return Sources((("train", source),))
    for split in source:
        if split not in SPLIT_NAMES:
            raise TilpError(
                f"no split is named {split!r}; a mapping goes from {', '.join(SPLITS)} to tables"
            )
    if not source:
        raise TilpError("there is nothing to read: the mapping is empty")
    return Sources(tuple((SPLIT_NAMES[split], part) for split, part in source.items()))


def _find_files(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """The files of a folder by split, and the label and attribute files by name."""
    found: dict[str, Path] = {}
    unread: list[str] = []
    try:
        paths = sorted(folder.iterdir())
    except OSError as failure:
        raise DataError(f"{folder}: cannot be read: {failure}") from failure
    for path in paths:
        stem, _, suffix = path.name.lower().removesuffix(".gz").rpartition(".")
        if f".{suffix}" not in (*_TEXT, *PARQUET):
            continue
        name = SPLIT_NAMES.get(stem, stem)
        if not path.is_file() or name not in (*SPLITS, *_LABELS, "attributes"):
            unread.append(path.name)
            continue
        if name in found:
            raise DataError(
                f"{folder}: both {found[name].name} and {path.name} could be the {name} file; "
                "remove one, or read the one you mean by its own path"
            )
        found[name] = path
    splits = {split: found.pop(split) for split in SPLITS if split in found}
    if not splits:
        listed = ", ".join(path.name for path in paths[:10]) or "nothing"
        raise DataError(
            f"{folder}: no fact file; a folder holds train, and perhaps valid and test, as .tsv, "
            f".txt, .csv (.gz) or .parquet. Found: {listed}"
        )
    if unread := [name for name in unread if not (name in _ID_FILES and "entities" in found)]:
        warn(f"{folder}: not read: {', '.join(unread)}")
    if "train" not in splits:
        warn(f"{folder}: there is no train file, so nothing can be learned from it")
    return splits, found


@contextmanager
def regular_file(path: Path) -> Iterator[Path]:
    """A file that can be read more than once; a pipe is copied first."""
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


def as_polars(source: Any) -> pl.DataFrame:
    """A frame of any kind as one of polars."""
    try:
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        if isinstance(source, pl.DataFrame):
            return source
        if type(source).__module__.partition(".")[0] == "pandas":
            return pl.DataFrame(pl.from_pandas(source))
        if hasattr(source, "__arrow_c_stream__"):
            return pl.DataFrame(source)
    except ImportError as failure:
        raise TilpError('pandas frames need an extra: pip install "tilp[pandas]"') from failure
    except (ValueError, TypeError, AttributeError, OSError, pl.exceptions.PolarsError) as failure:
        kind = type(source).__name__
        raise DataError(f"the {kind} cannot be read as a table: {failure}") from failure
    raise TilpError(
        f"cannot read facts from {type(source).__name__}; give a path, a polars, pandas or Arrow "
        "frame, or a mapping from split to one of these"
    )


def warn(message: str) -> None:
    """Tell what was done with the data."""
    warnings.warn(TilpWarning(message), stacklevel=4)
