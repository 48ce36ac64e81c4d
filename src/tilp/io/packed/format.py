"""How a packed graph lies on disk: arrays in .npy files, small tables in Arrow files, and a note.

Names are their bytes one after the other, and where each begins; every array is mapped into
memory as it lies there.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from tilp._utils import files as note_files
from tilp._utils.files import file_digest
from tilp.errors import DataError

NOTE = "pack.json"
"""The file whose being there makes a folder a packed graph."""

_FORMAT = "tilp packed graph"
_VERSION = 1

COLUMNS = {
    "subject": np.int32,
    "relation": np.int32,
    "object": np.int32,
    "start": np.int64,
    "end": np.int64,
    "start_text": np.int32,
    "end_text": np.int32,
}
"""The columns of facts."""

EDGES = {"offsets": np.int64, "relation": np.int32, "target": np.int32, "fact": np.int32}
"""The arrays of the index of train."""

PREPARED = {
    "start": np.int64,
    "end": np.int64,
    "source": np.int32,
    "rank": np.int32,
    "by_rank": np.int32,
    "inverse": np.int32,
}
"""What walks need of the index beside it."""


class ColumnWriter:
    """An array that is written to a .npy file part by part.

    Args:
        path: the file.
        dtype: of the array.
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._path, self._dtype, self._rows = path, np.dtype(dtype), 0
        path.write_bytes(self._header())

    def __enter__(self) -> ColumnWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def __len__(self) -> int:
        return self._rows

    def append(self, part: NDArray[Any]) -> None:
        """Put a part behind those before."""
        with self._path.open("ab") as file:  # open no longer than needed: many are written at once
            file.write(np.ascontiguousarray(part, self._dtype).data)
        self._rows += len(part)

    def close(self) -> None:
        """Note how long the array is; its place in the header has room for any length."""
        with self._path.open("r+b") as file:
            file.write(self._header())

    def _header(self) -> bytes:
        header = BytesIO()
        np.lib.format.write_array_header_1_0(
            header,
            {
                "descr": np.lib.format.dtype_to_descr(self._dtype),
                "fortran_order": False,
                "shape": (self._rows,),
            },
        )
        return header.getvalue()


class NamesWriter:
    """Names that are written part by part, as their bytes and where each begins.

    Args:
        stem: what the two files are named by.
    """

    def __init__(self, stem: Path) -> None:
        self.files = names_files(stem)
        self._bytes, self._begin = (
            ColumnWriter(path, dtype)
            for path, dtype in zip(self.files, (np.uint8, np.int64), strict=True)
        )
        self._begin.append(np.zeros(1, np.int64))

    def append(self, names: pl.Series) -> None:
        """Put names behind those before."""
        before = len(self._bytes)
        if len(names):
            ends = names.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
            self._begin.append(before + ends)
            text = names.str.join("").item().encode()
            self._bytes.append(np.frombuffer(text, np.uint8))

    def close(self) -> None:
        """Finish both files."""
        self._bytes.close()
        self._begin.close()


def names_files(stem: Path) -> tuple[Path, Path]:
    """The files of names: their bytes, and where each begins."""
    return stem.with_name(f"{stem.name}.bytes.npy"), stem.with_name(f"{stem.name}.begin.npy")


def mapped(path: Path) -> NDArray[Any]:
    """The array in a .npy file, mapped into memory and read-only.

    Raises:
        DataError: the file is missing or damaged.
    """
    try:
        # A plain array over the map: compiled loops know no other kind.
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, EOFError) as failure:
        raise _damaged(path, "it does not begin as an array does") from failure
    except OSError as failure:
        raise _damaged(path, str(failure)) from failure


class OnDisk:
    """The array in a .npy file, of which nothing stays in memory but the parts that are taken.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = len(mapped(path))

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        return np.array(mapped(self._path)[rows])  # the map goes with its pages


def write_note(folder: Path, content: dict[str, Any]) -> None:
    """Write the note of a folder whose other files are all there, with their sizes and digests."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": file_digest(path)}
        for path in sorted(path for path in folder.iterdir() if path.is_file())
    }
    content = {**content, "files": files}
    note_files.write_note(folder / NOTE, _FORMAT, _VERSION, content, indent=1)


def read_note(folder: Path) -> dict[str, Any]:
    """Read the note of a packed graph, and check that its files are there with their sizes.

    Raises:
        DataError: no such graph, a damaged one, or one of another version.
    """
    path = folder / NOTE
    if not path.exists():
        raise DataError(f"{folder}: no packed graph; tilp pack DATA --out GRAPH makes one")
    note = note_files.read_note(path, _FORMAT, _VERSION, "pack the data again", error=DataError)
    for name, told in note["files"].items():
        file = folder / name
        size = file.stat().st_size if file.is_file() else None
        if size != told["bytes"]:
            found = "it is missing" if size is None else f"it has {size:,} bytes"
            raise _damaged(file, f"{found}, and was written with {told['bytes']:,} bytes")
    return note


def check_files(folder: Path, progress: Callable[[float], None] | None = None) -> None:
    """Read every file of a packed graph, and compare it with what was written.

    Raises:
        DataError: names the first file that differs.
    """
    files = read_note(folder)["files"]
    total, done = max(sum(told["bytes"] for told in files.values()), 1), 0
    for name, told in files.items():
        if file_digest(folder / name) != told["sha256"]:
            raise _damaged(folder / name, "its bytes are not as they were written")
        done += told["bytes"]
        if progress is not None:
            progress(done / total)


def _damaged(path: Path, found: str) -> DataError:
    return DataError(f"{path}: damaged ({found}); pack the data again")
