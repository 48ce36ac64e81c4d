"""Files of a packed graph: arrays in .npy files, small tables in Arrow files, and metadata.

Names are stored as their bytes, one after the other, and where each begins. Every array is mapped
into memory as it is on disk.
"""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilp._utils.files import NO_ARRAY, file_digest, read_note, write_note
from tilp.errors import DataError

METADATA = "pack.json"  # the file that makes a folder a packed graph

_FORMAT = "tilp packed graph"
_VERSION = 1

_TIMES = {"start": np.int64, "end": np.int64}
COLUMNS = {  # of facts
    **dict.fromkeys(("subject", "relation", "object"), np.int32),
    **_TIMES,
    **dict.fromkeys(("start_text", "end_text"), np.int32),
}

EDGES = {"offsets": np.int64, "relation": np.int32, "target": np.int32, "fact": np.int32}
"""Arrays of the index of train, each in the file `edges.NAME.npy`."""

PREPARED = _TIMES | dict.fromkeys(("source", "rank", "by_rank", "inverse"), np.int32)
"""Arrays that walks need beside the index, each in the file `walks.NAME.npy`."""


def names_files(stem: Path) -> tuple[Path, Path]:
    """Return the files of names: their bytes, and where each begins."""
    return stem.with_name(f"{stem.name}.bytes.npy"), stem.with_name(f"{stem.name}.begin.npy")


def order_file(stem: Path) -> Path:
    """Return the file of the indices of names in the order of the names."""
    return stem.with_name(f"{stem.name}.order.npy")


class ColumnWriter:
    """Array that is written to a .npy file part by part."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._path, self._dtype, self._rows = path, np.dtype(dtype), 0
        path.write_bytes(self._header())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.close()

    def __len__(self) -> int:
        return self._rows

    def append(self, part: NDArray[Any]) -> None:
        """Append a part."""
        with self._path.open("ab") as file:  # open no longer than needed: many are written at once
            file.write(np.ascontiguousarray(part, self._dtype).data)
        self._rows += len(part)

    def close(self) -> None:
        """Write the final length into the header, which has room for any length."""
        with self._path.open("r+b") as file:
            file.write(self._header())

    def _header(self) -> bytes:
        descr = np.lib.format.dtype_to_descr(self._dtype)
        fields = {"descr": descr, "fortran_order": False, "shape": (self._rows,)}
        header = BytesIO()
        np.lib.format.write_array_header_1_0(header, fields)
        return header.getvalue()


def map_array(path: Path) -> NDArray[Any]:
    """Map the array in a .npy file into memory, read-only."""
    if not path.is_file():  # a pipe would be waited for
        raise damage_error(path, "it is missing, or no regular file")
    try:
        # A plain array over the map, since compiled loops know no other kind.
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except NO_ARRAY as failure:
        raise damage_error(path, "it does not begin as an array does") from failure
    except OSError as failure:
        raise damage_error(path, str(failure)) from failure


class ArrayOnDisk:
    """Array in a .npy file, of which only requested slices are in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = len(map_array(path))

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        return np.array(map_array(self._path)[rows])  # the map goes with its pages


def write_metadata(folder: Path, content: dict[str, Any]) -> None:
    """Write metadata, with sizes and digests of all other files, which must be complete."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    files = {p.name: {"bytes": p.stat().st_size, "sha256": file_digest(p)} for p in paths}
    write_note(folder / METADATA, _FORMAT, _VERSION, {**content, "files": files}, indent=1)


def read_metadata(folder: Path) -> dict[str, Any]:
    """Read the metadata of a packed graph, and check that its files are there and complete."""
    path = folder / METADATA
    if not path.is_file():
        raise DataError(f"{folder}: no packed graph; tilp pack DATA --out GRAPH makes one")
    metadata = read_note(path, _FORMAT, _VERSION, "pack the data again", error=DataError)
    try:
        sizes = {folder / name: int(file["bytes"]) for name, file in metadata["files"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise damage_error(path, "it does not list the files") from None
    for file, written in sizes.items():
        size = file.stat().st_size if file.is_file() else None
        if size != written:
            state = "it is missing" if size is None else f"it has {size:,} bytes"
            raise damage_error(file, f"{state}, and was written with {written:,} bytes")
    return metadata


def check_files(folder: Path, progress: Callable[[float], None]) -> None:
    """Compare the bytes of every file of a packed graph with their digest."""
    files = read_metadata(folder)["files"]
    total, done = max(sum(written["bytes"] for written in files.values()), 1), 0
    for name, written in files.items():
        if file_digest(folder / name) != written["sha256"]:
            raise damage_error(folder / name, "its bytes are not as they were written")
        done += written["bytes"]
        progress(done / total)


def damage_error(path: Path, reason: str) -> DataError:
    """Return the error about a damaged file."""
    return DataError(f"{path}: damaged ({reason}); pack the data again")
