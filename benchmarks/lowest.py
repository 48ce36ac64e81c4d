"""A fit of a thousand facts with the lowest versions that pyproject.toml allows.

    python benchmarks/lowest.py [--python python3.12] [--newest] [--extras web]

Makes an environment of its own with the given Python, installs this tree and the lowest version of
each dependency that it names (what these need in turn is the newest), and runs a fit, a prediction
and an evaluation. `--newest` installs the newest versions instead, for another Python.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]


def lowest(requirement: Requirement) -> str:
    """Return the requirement of exactly the lowest version."""
    (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
    return f"{requirement.name}=={bound}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--newest", action="store_true")
    parser.add_argument("--extras", nargs="*", default=["web"])
    chosen = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"]]
    texts += [text for name in chosen.extras for text in project["optional-dependencies"][name]]
    asked = "import sys; print(f'{sys.version_info.major}.{sys.version_info.minor}')"
    done = subprocess.run([chosen.python, "-c", asked], capture_output=True, text=True, check=True)
    here = {"python_version": done.stdout.strip()}
    needed = [
        need for need in map(Requirement, texts) if not need.marker or need.marker.evaluate(here)
    ]
    wanted = (
        [f"{need.name}{need.specifier}" for need in needed]
        if chosen.newest
        else list(map(lowest, needed))
    )
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        python = str(place / "env" / "bin" / "python")
        subprocess.run([chosen.python, "-m", "venv", str(place / "env")], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
        subprocess.run([*install, *wanted], check=True)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        environment["TILP_CACHE"] = str(place / "cache")
        data, model = str(place / "world"), str(place / "model")
        commands = (
            ("--version",),
            ("datasets", "world", "--size", "1000", "--out", data),
            ("fit", data, "--out", model, "--max-length", "2"),
            ("evaluate", model, "--split", "valid", "--protocol", "enumerate"),
            ("rules", model, "--top", "1"),
            ("fit", "--help"),
            *([("serve", "--help")] if "web" in chosen.extras else []),
        )
        for command in commands:
            done = subprocess.run(
                [python, "-W", "error::DeprecationWarning:tilp", "-m", "tilp", *command],
                env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if command[0] == "--version":
                print(done.stdout)
            state = "fine" if done.returncode == 0 else f"FAILED\n{done.stderr[-2_000:]}"
            print(f"tilp {' '.join(command[:1])}: {state}", flush=True)
            if done.returncode != 0:
                sys.exit(1)
        if "web" in chosen.extras:
            imported = [python, "-c", "import tilp.web.app, tilp.web.connections"]
            subprocess.run(imported, env=environment, check=True)


if __name__ == "__main__":
    main()
