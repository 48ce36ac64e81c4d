"""The version, which the build reads from here; versions for bug reports and saved results."""

import hashlib
import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

__version__ = "0.2.0"

_LIBRARIES = ("numpy", "scipy", "numba", "polars", "jax", "typer")
_EXTRAS = ("matplotlib", "fastapi", "ray")
_COMPUTING = ("jax", "numba", "numpy", "polars", "scipy")


def version_report() -> str:
    """Return the versions of tilp, Python and the libraries, and the platform, one a line."""
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


@cache
def code_versions() -> Mapping[str, str]:
    """Return a digest of the source code, and the versions of the libraries that compute."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    versions = {name: metadata.version(name) for name in _COMPUTING}
    return {"tilp": __version__, "code": digest.hexdigest(), **versions}
