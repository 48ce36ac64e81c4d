"""Checks of the arrays of a packed graph as it is opened: kernels trust what these checked.

Arrays are read block by block, so that what is in memory does not grow with the graph.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilp._utils.arrays import Ids, Ints
from tilp.io.packed.format import damage_error, map_array

_BLOCK = 1 << 18  # values


def checked_array(
    path: Path, dtype: DTypeLike, size: int | None = None, *, low: int = 0, high: int | None = None,
    rises: bool = False,
) -> NDArray[Any]:  # fmt: skip
    """Map an array of known type and size, whose values lie in [low, high) and perhaps rise."""
    array = map_array(path)
    expected = f"{'any number of' if size is None else size} values of the type {np.dtype(dtype)}"
    if array.dtype != dtype or array.shape != (len(array) if size is None else size,):
        found = f"{' × '.join(map(str, array.shape))} of the type {array.dtype}"
        raise damage_error(path, f"it holds {found}, and {expected} are expected")
    for begin, block in _blocks(path, array) if high is not None else ():
        if int(block.min()) < low or int(block.max()) >= (high or 0):
            raise damage_error(path, f"a value is not at least {low} and less than {high}")
        if rises and (np.diff(block, prepend=array[max(begin - 1, 0)]) < 0).any():
            raise damage_error(path, "its values do not rise")
    return array


def checked_offsets(path: Path, size: int | None, end: int) -> NDArray[np.int64]:
    """Map offsets that rise from 0 to `end`."""
    offsets = checked_array(path, np.int64, size, high=end + 1, rises=True)
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != end:
        raise damage_error(path, f"its values do not go from 0 to {end}")
    return offsets


def check_edges(folder: Path, offsets: Ints, edges: Mapping[str, Ids]) -> None:
    """Check that the arrays of edges, each in its range, agree with one another."""
    path = folder / "walks.source.npy"
    for begin, block in _blocks(path, edges["source"]):
        edge = np.arange(begin, begin + len(block))
        if (offsets[block] > edge).any() or (offsets[block + 1] <= edge).any():
            raise damage_error(path, "it is not as the offsets of edges")
    for name, inverse in (("rank", "by_rank"), ("inverse", "inverse")):
        path = folder / f"walks.{name}.npy"
        for begin, block in _blocks(path, edges[name]):
            if (edges[inverse][block] != np.arange(begin, begin + len(block))).any():
                raise damage_error(path, f"{inverse} does not lead back from it")


def check_names(path: Path, letters: NDArray[np.uint8], begin: NDArray[np.int64]) -> None:
    """Check that the bytes of each name are UTF-8."""
    count = len(begin) - 1
    for first in range(0, count, _BLOCK):
        offsets = begin[first : min(first + _BLOCK, count) + 1]
        text = letters[offsets[0] : offsets[-1]]
        starts = offsets[:-1][np.diff(offsets) > 0] - offsets[0]
        try:
            text.tobytes().decode()
        except UnicodeDecodeError as failure:
            raise damage_error(path, f"not UTF-8 text: {failure}") from None
        if ((text[starts] & 0xC0) == 0x80).any():
            raise damage_error(path, "a name begins within a character")


def _blocks(path: Path, array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield blocks of an array with their first index, read so that no page of it stays mapped."""
    with path.open("rb") as file:
        file.seek(-array.nbytes, 2)
        for begin in range(0, len(array), _BLOCK):
            yield begin, np.fromfile(file, array.dtype, min(_BLOCK, len(array) - begin))
