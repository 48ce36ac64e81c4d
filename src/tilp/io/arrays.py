"""Arrays by name, in a file that a run which was killed goes on from."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.io.folders import new_file

__all__ = ["read_arrays", "write_arrays"]


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
