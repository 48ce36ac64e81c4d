"""Published data sets, from the folder that TILP_DATA names."""

import os
import sys
import warnings
from pathlib import Path

import tilp


def load(name: str) -> tilp.TemporalGraph:
    """A published set, its known defects not told again."""
    folder = os.environ.get("TILP_DATA")
    if not folder:
        sys.exit("TILP_DATA names no folder of published data sets")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tilp.TilpWarning)
        return tilp.read(Path(folder) / name)
