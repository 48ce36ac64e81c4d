"""The code itself: style, types, the order of imports, and what loads when."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tilp"


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


def test_the_contract_names_every_package_once():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [name for layer in contract["contracts"][0]["layers"] for name in layer.split(" | ")]
    packages = {
        f"tilp.{path.stem}"
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(layers) == sorted(packages - {"tilp.__init__", "tilp.__main__"})


def test_contributing_states_the_same_order_as_the_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [name for layer in contract["contracts"][0]["layers"] for name in layer.split(" | ")]
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    stated = [f"tilp.{name}" for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert stated == [name for name in layers if name != "tilp._version"]


def test_the_tree_stays_small_and_its_names_say_what_is_inside():
    modules = sorted(SOURCE.rglob("*.py"))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules)
    assert len(modules) < 180
    assert lines < 36_000
    nouns = {"encoding", "grounding", "mining"}
    gerunds = {path.stem for path in modules if re.fullmatch("[a-z]+ing", path.stem)}
    assert gerunds <= nouns
    exporting = [path for path in modules if "\n__all__ = " in path.read_text(encoding="utf-8")]
    assert {path.name for path in exporting} <= {"__init__.py"}


@pytest.mark.parametrize("code", ["import tilp", "import tilp.cli; tilp.cli.app"])
def test_nothing_heavy_is_loaded_before_it_is_needed(code):
    loaded = run(sys.executable, "-c", f"{code}; import sys; print(*sys.modules)").split()
    assert not {"jax", "numba", "polars", "numpy", "matplotlib", "ray"} & set(loaded)
