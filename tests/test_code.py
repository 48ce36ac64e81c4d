"""The code itself: style, types, the order of imports, what loads when, and the documentation."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command, **options):
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(name):
    """A tool installed beside this interpreter."""
    return str(Path(sys.executable).with_name(name))


def test_style():
    run(tool("ruff"), "check", ".")
    run(tool("ruff"), "format", "--check", ".")


def test_types():
    run(tool("mypy"))


def test_imports_go_one_way():
    run(tool("lint-imports"))


def test_every_module_has_a_place_in_the_order_of_imports():
    contract = (ROOT / "pyproject.toml").read_text()
    for path in (ROOT / "src" / "tilp").iterdir():
        if path.suffix == ".py" or path.is_dir():
            name = path.stem
            if name not in ("__init__", "__main__", "__pycache__"):
                assert f"tilp.{name}" in contract, f"{name} has no layer in pyproject.toml"


@pytest.mark.parametrize("code", ["import tilp", "import tilp.cli; tilp.cli.app"])
def test_nothing_heavy_is_loaded_before_it_is_needed(code):
    loaded = run(sys.executable, "-c", f"{code}; import sys; print(*sys.modules)").split()
    assert not {"jax", "numba", "polars", "numpy", "matplotlib", "ray"} & set(loaded)


@pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="mkdocs-material is not installed"
)
def test_documentation_builds(tmp_path):
    run(
        tool("mkdocs"),
        "build",
        "--strict",
        "--site-dir",
        str(tmp_path / "site"),
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert (tmp_path / "site" / "index.html").is_file()
