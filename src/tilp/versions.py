"""What a bug report, and a report of figures, need to know."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from tilp._version import __version__

__all__ = ["version_report"]

_LIBRARIES = ("numpy", "scipy", "numba", "polars", "jax", "optax", "typer")
_EXTRAS = ("matplotlib", "fastapi", "pyoxigraph")


def version_report() -> str:
    """Versions of the package, Python and libraries, and the platform, a line each."""
    lines = [
        f"tilp {__version__}",
        f"python {platform.python_version()} ({platform.python_implementation()})",
        f"platform {platform.platform()}, {os.cpu_count()} processors",
    ]
    for name in (*_LIBRARIES, *_EXTRAS):
        try:
            lines.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{name} not installed")
    return "\n".join(lines)
