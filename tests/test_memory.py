"""The memory of a fit: the same model for every budget, refusals, and limits of containers."""

import threading

import numpy as np
import pytest

import tilp
from models import contents
from tilp._utils.memory import available_memory, memory_budget, parse_size, resident_bytes
from tilp.errors import TilpError
from tilp.model import TILP, FitContext
from tilp.model.fit import check_memory
from tilp.parallel import Workers


class SmallBlocks(Workers):
    """Workers in blocks of a few queries, and with one large task at a time."""

    block_bytes = 30_000.0


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(0, 1_000).graph


@pytest.mark.parametrize("features", ["full", "paper"])
def test_a_model_is_the_same_for_every_budget(world, features, tmp_path, monkeypatch):
    saved = []
    for workers in (Workers, SmallBlocks):
        model = TILP(max_length=2, features=features, n_jobs=2)
        monkeypatch.setattr(model, "_workers", lambda workers=workers: workers(2))
        model.fit(world).save(tmp_path / workers.__name__)
        saved.append(contents(tmp_path / workers.__name__))
    assert saved[0] == saved[1]


def test_settings_and_repr_do_not_depend_on_the_memory(world):
    model = TILP(max_length=1, features="none", memory="200GB")
    assert model.settings == TILP(max_length=1, features="none").settings
    assert "memory" not in repr(model) and model.get_params()["memory"] == "200GB"
    assert model.fit(world).rules() == TILP(max_length=1, features="none").fit(world).rules()


def test_a_fit_that_needs_more_is_refused_before_it_starts(world, tmp_path, run):
    begun = []
    with pytest.raises(TilpError, match=r"needs about .* GB of memory .* 0\.01 GB; .*--memory"):
        TILP(memory="10MB").fit(world, progress=lambda *stage: begun.append(stage))
    assert not begun
    tilp.write(world, tmp_path / "world")
    command = ("fit", tmp_path / "world", "--out", tmp_path / "model", "--memory")
    code, _, err = run(*command, "10MB")
    assert code == 2 and "--effort quick" in err and "--max-length" in err
    code, _, err = run(*command, "much")
    assert code == 2 and "'much': write a number of bytes, such as 500MB or 2GB" in err
    assert not (tmp_path / "model").exists()


def test_more_facts_entities_and_rules_need_more(world):
    context = FitContext(TILP().settings, Workers(memory=resident_bytes() + 250_000_000))
    check_memory(world, context)
    with pytest.raises(TilpError):
        check_memory(tilp.datasets.world(0, 10_000).graph, context)
    small = FitContext(TILP(max_rules=3).settings, context.workers)
    check_memory(tilp.datasets.world(0, 10_000).graph, small)


@pytest.mark.parametrize(
    "text, size",
    [("1000", 1000), (5, 5), ("2kb", 2000), ("1.5 GB", 1_500_000_000), (" 1T", 10**12)],
)
def test_sizes(text, size):
    assert parse_size(text) == memory_budget(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1.GB", "1XB", "1 G B", "inf", "1e9", "0", 0])
def test_sizes_that_are_none(text):
    with pytest.raises(TilpError, match="memory"):
        parse_size(text)
    with pytest.raises(TilpError, match="memory"):
        TILP(memory=text)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable: 8000 kB\n"}
V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/memory"


def limits(folder, limit, used, cached, *, old=False):
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    most, current, cache = names if old else ("memory.max", "memory.current", "inactive_file")
    stat = f"anon 1\n{cache} {cached}\n"
    values = {most: limit, current: used, "memory.stat": stat}
    return {f"{folder}/{name}": f"{value}\n" for name, value in values.items()}


@pytest.mark.parametrize(
    "files, left",
    [
        ({}, None),
        (MEMINFO, 8_192_000),
        # Version 2: the group itself, a group above it, one that a container sees as the top.
        ({"proc/self/cgroup": "0::/a/b\n", **limits(f"{V2}/a/b", 1000, 400, 100)}, 700),
        ({"proc/self/cgroup": "0::/a/b\n", **limits(f"{V2}/a", 1000, 400, 0)}, 600),
        ({"proc/self/cgroup": "0::/docker/x\n", **limits(V2, 1000, 1200, 0)}, 0),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                **limits(f"{V2}/a/b", "max", 5, 0),
                **limits(f"{V2}/a", 70, 30, 0),
            },
            40,
        ),
        ({"proc/self/cgroup": "0::/\n", **limits(V2, "max", 400, 0)}, None),
        # Version 1: without a limit it is a huge number; other controllers do not count.
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/a\n",
                **limits(f"{V1}/a", 1000, 10, 5, old=True),
                **limits(V1, 2**63 - 4096, 10, 5, old=True),
            },
            995,
        ),
        ({"proc/self/cgroup": "5:cpu:/x\n", **limits(f"{V1}/x", 7, 0, 0, old=True)}, None),
        ({**MEMINFO, "proc/self/cgroup": "0::/\n", **limits(V2, 10**9, 0, 0)}, 8_192_000),
        ({**MEMINFO, "proc/self/cgroup": "0::/\n", **limits(V2, 10**6, 0, 0)}, 10**6),
    ],
)
def test_the_limits_of_containers_count(tmp_path, files, left):
    assert available_memory(write(tmp_path, files)) == left


def test_the_default_is_half_of_what_is_left():
    available = available_memory()
    if available is not None:
        taken = memory_budget(None) - resident_bytes()
        assert taken == pytest.approx(available / 2, rel=0.2)


def test_as_many_tasks_are_in_progress_as_fit():
    running, most, lock = [0], [0], threading.Lock()

    def task(size):
        with lock:
            running[0] += size
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.01)
        with lock:
            running[0] -= size
        return size

    sizes = [3e8, 3e8, 1e8, 9e8, 1e8, 1e8, 1e8, 1e8] * 2
    with Workers(4, memory=resident_bytes() + 600_000_000) as workers:
        assert list(workers.map(task, sizes, sizes)) == sizes
    assert most[0] == 9e8  # what does not fit is alone
    with Workers(4, memory=1) as workers:
        assert list(workers.map(abs, [-1, -2, -3], [5.0, 5.0, 5.0])) == [1, 2, 3]
        assert workers.block_bytes < 10_000_000


def test_blocks_hold_every_query_once(world):
    from tilp.graph import QueryTable
    from tilp.walks import MiningSettings
    from tilp.walks.mining import mine, mining_walker

    rules = mine(world, ["livesIn"], MiningSettings(max_length=1, top=20))
    walker = mining_walker(world, MiningSettings(max_length=1))
    queries = QueryTable.of_facts(world, world.targets[:200], walked=True)
    compiled = walker.compile([mined.rule for mined in rules])
    blocks = walker.blocks(queries, compiled, 10_000.0, 100.0)
    assert len(blocks) > 10
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(len(queries)))
    for whole, parts in zip(
        walker.tally(queries, compiled), walker.tally(queries, compiled, 10_000.0), strict=True
    ):
        np.testing.assert_array_equal(whole, parts)
