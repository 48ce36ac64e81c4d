"""How much memory this process takes, and took at the most since it was last asked."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

__all__ = ["forget_peak", "peak_megabytes"]

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """Count the peak anew from here on, where the system lets one; else it is the run's."""
    with contextlib.suppress(OSError):
        _FORGET.write_text("5")


def peak_megabytes() -> float | None:
    """The most memory that was taken at once since `forget_peak`; None where no one can tell."""
    with contextlib.suppress(OSError, StopIteration):
        lines = _STATUS.read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024
    if sys.platform == "win32":
        return None
    import resource

    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return whole / (1024 * 1024 if sys.platform == "darwin" else 1024)
