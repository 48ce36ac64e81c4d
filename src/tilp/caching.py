"""Where tilp keeps what it can fetch or make again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """The folder of downloads and compiled loops: `TILP_CACHE`, or `tilp` in the user's cache."""
    if chosen := os.environ.get("TILP_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "tilp"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tilp"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))  # its specification ignores relative ones
    return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "tilp"
