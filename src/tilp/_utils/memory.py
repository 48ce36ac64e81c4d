"""Memory: sizes as people write them, what the system has left, and what this process takes."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tilp.errors import TilpError

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_CGROUP_2 = ("memory.max", "memory.current", "inactive_file")
_CGROUP_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def parse_size(size: int | str, least: int = 1) -> int:
    """Return a number of bytes.

    >>> parse_size("500MB"), parse_size("1.5 GB")
    (500000000, 1500000000)
    """
    try:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)B?\s*", str(size).upper())
    except ValueError:  # an integer of thousands of digits
        match = None
    if match is None or float(match[1]) * _BYTES[match[2]] > sys.maxsize:
        given = repr(size)[:40] if isinstance(size, str) else "so much"
        raise TilpError(f"memory {given}: write a number of bytes, such as 500MB or 2GB")
    n_bytes = int(float(match[1]) * _BYTES[match[2]])
    if n_bytes < least:
        raise TilpError(f"memory {size}: it needs at least {least // 10**6}MB to work in")
    return n_bytes


def memory_budget(size: int | str | None) -> int:
    """Return a number of bytes; None is what this process takes, and half of what is left."""
    if size is not None:
        return parse_size(size)
    available = available_memory()
    return resident_bytes() + (sys.maxsize if available is None else available) // 2


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that the system and container limits leave; None if nothing tells."""
    found = []
    with contextlib.suppress(OSError):
        text = (root / "proc/meminfo").read_text()
        found += [1024 * int(size) for size in re.findall(r"^MemAvailable:\s*(\d+)", text, re.M)]
    for folder, *names in _cgroups(root):
        with contextlib.suppress(OSError, ValueError):  # no such files, or no limit: max
            limit, used = (int((folder / name).read_text()) for name in names[:2])
            cached = re.findall(rf"^{names[2]} (\d+)", (folder / "memory.stat").read_text(), re.M)
            found.append(max(limit - used + sum(map(int, cached)), 0))
    return min(found, default=None)


def _cgroups(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    """Yield the control groups that may limit this process, with the names of their files."""
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "memory" in controllers.split(","):
                top = root / "sys/fs/cgroup" / ("memory" if controllers else "")
                own = top / path.lstrip("/")  # a container may see its own group as the top
                folders = (folder for folder in (own, *own.parents) if folder.is_relative_to(top))
                yield from ((each, *(_CGROUP_1 if controllers else _CGROUP_2)) for each in folders)


def forget_peak() -> None:
    """Reset the peak, if the system allows it."""
    with contextlib.suppress(OSError):
        _FORGET.write_text("5")


def resident_bytes() -> int:
    """Return the bytes in use; 0 if the system does not tell."""
    with contextlib.suppress(OSError, AttributeError):
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0


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
