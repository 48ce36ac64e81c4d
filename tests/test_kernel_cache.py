"""The cache of compiled kernels: where it lies, when it is used, and what it leaves alone."""

import os
import subprocess
import sys
from pathlib import Path

import tilp

SCRIPT = """
import numpy as np
from tilp._kernels.arrays import end_of_run
assert end_of_run(np.array([3, 3, 5]), 0, 3) == 2
print(sum(end_of_run.stats.cache_hits.values()), sum(end_of_run.stats.cache_misses.values()))
"""


def run_kernel(cache: Path, sources: Path = Path(tilp.__file__).parents[1]) -> list[int]:
    """Run a kernel in a new process, and return the hits and misses of its cache."""
    environment = {**os.environ, "TILP_CACHE": str(cache), "PYTHONPATH": str(sources)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [int(count) for count in done.stdout.split()]


def copy_sources(folder: Path) -> Path:
    """Copy the modules that a kernel needs, without compiled ones."""
    package = Path(tilp.__file__).parent
    for path in package.rglob("*.py"):
        copy = folder / "tilp" / path.relative_to(package)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return folder


def test_kernels_are_cached_in_the_folder_of_tilp_and_shared_by_equal_sources(tmp_path):
    cache = tmp_path / "cache"
    old = cache / "loops" / "of_another_version" / "kernel.nbi"
    old.parent.mkdir(parents=True)
    old.write_text("old")
    os.utime(old.parent, (0, 0))
    assert run_kernel(cache) == [0, 1]
    (folder,) = {path.parent for path in cache.rglob("*.nbi")} - {old.parent}
    assert folder.parent == cache / "loops" and any(folder.glob("arrays.end_of_run*.nbc"))
    assert run_kernel(cache) == [1, 0]
    assert old.read_text() == "old", "nothing is deleted on import"
    copied = copy_sources(tmp_path / "copy")
    assert run_kernel(cache, copied) == [1, 0]
    with (copied / "tilp" / "_kernels" / "walk.py").open("a") as file:
        file.write("\n# any change of any kernel makes all of them new\n")
    assert run_kernel(cache, copied) == [0, 1]


def test_kernels_run_where_the_cache_folder_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    copied = copy_sources(tmp_path / "copy")
    assert run_kernel(blocked, copied) == [0, 1]
    assert not any(copied.rglob("*.nb?")), "nothing is written beside the sources"
    assert run_kernel(blocked, copied) == [0, 1]


FULL_SCRIPT = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))  # as on a full disk, writes fail
import numpy as np
from tilp._kernels.arrays import end_of_run, find_sorted
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    assert end_of_run(np.array([3, 3, 5]), 0, 3) == 2
    find_sorted(np.array([3, 3, 5]), 0, 3, 5)
(one,) = [str(each.message) for each in warned if "loops cannot be cached" in str(each.message)]
assert "TILP_CACHE" in one
"""


def test_a_full_cache_folder_gives_one_warning(tmp_path):
    environment = {**os.environ, "TILP_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", FULL_SCRIPT], env=environment, check=True)


NOTE_SCRIPT = """
import sys
import numpy as np
sys.stderr.isatty = lambda: True
from tilp.cli.console import task_bar
from tilp._kernels.arrays import end_of_run, find_sorted
for _ in range(2):
    with task_bar("count"):
        end_of_run(np.array([3, 3, 5]), 0, 3)
        find_sorted(np.array([3, 3, 5]), 0, 3, 5)
"""


def test_a_progress_bar_says_once_that_kernels_are_compiled_and_nothing_where_they_are_loaded(
    tmp_path,
):
    environment = {**os.environ, "TILP_CACHE": str(tmp_path)}
    environment["PYTHONPATH"] = str(Path(tilp.__file__).parents[1])
    command = [sys.executable, "-c", NOTE_SCRIPT]
    notes = []
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        notes.append(done.stderr.count("compiling loops, once on this machine"))
        assert "count" in done.stderr
    assert notes == [1, 0]
