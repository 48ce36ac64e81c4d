"""Read the peak memory of this process."""

import contextlib
import sys
from pathlib import Path

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> None:
    """Reset the peak, if the system allows it."""
    with contextlib.suppress(OSError):
        _FORGET.write_text("5")


def peak_megabytes() -> float | None:
    """Return the peak since `forget_peak`, or None if the system does not tell."""
    with contextlib.suppress(OSError, StopIteration):
        lines = _STATUS.read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024
    if sys.platform == "win32":
        return None
    import resource

    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return whole / (1024 * 1024 if sys.platform == "darwin" else 1024)
