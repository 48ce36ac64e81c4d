"""Arrays by name, in a file that a run which was killed goes on from."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.io.folders import new_file

__all__ = ["kept", "read_arrays", "write_arrays"]

Value = TypeVar("Value")


def kept(
    path: Path,
    make: Callable[[], Value],
    to_arrays: Callable[[Value], dict[str, Any]],
    from_arrays: Callable[[dict[str, NDArray[Any]]], Value],
) -> Value:
    """What is in the file, or else what is made, and put there.

    Raises:
        TilpError: the file is damaged, or of something else.
    """
    if path.exists():
        held = read_arrays(path)
        try:
            return from_arrays(held)
        except (KeyError, TypeError):
            raise TilpError(f"{path} cannot be read; remove it to have it made anew") from None
    made = make()
    write_arrays(path, to_arrays(made))
    return made


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Put arrays into a file, whole or not at all."""
    with new_file(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """What `write_arrays` wrote; no object is ever unpickled.

    Raises:
        TilpError: the file is damaged, or of something else.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, AttributeError, OSError, EOFError, zipfile.BadZipFile):
        raise TilpError(f"{path} cannot be read; remove it to have it made anew") from None
