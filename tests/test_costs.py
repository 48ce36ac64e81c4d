"""Cost estimates: walks against a loop, powers found again, a dry run that leaves nothing."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from tilp.cost_estimate import count_walks, estimate_cost, extrapolate
from tilp.errors import TilpError

COLUMNS = ["subject", "relation", "object", "start", "end"]
STAGES = ["read", "prepare", "mine", "apply", "select", "train", "choose", "fold", "features"]


@pytest.fixture(scope="module")
def world() -> tilp.TemporalGraph:
    return tilp.datasets.world(0, 1_000).graph


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), length=st.integers(1, 3), limit=st.integers(1, 400))
def test_walks_are_those_that_a_loop_counts(seed, length, limit):
    rng = np.random.default_rng(seed)
    rows = [(f"e{a}", f"r{r}", f"e{b}", 1990, 1992) for a, b, r in rng.integers(6, size=(30, 3))]
    graph = tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"))
    index = graph.index()
    expected = np.zeros((length, len(graph.entities)))
    for entity in range(len(graph.entities)):
        ends = [entity]
        for step in range(length):
            ends = [int(index.target[edge]) for end in ends
                    for edge in range(index.offsets[end], index.offsets[end + 1])]  # fmt: skip
            expected[step, entity] = len(ends)
    np.testing.assert_array_equal(count_walks(graph, length, limit), np.minimum(expected, limit))


def test_a_power_law_is_found_again_and_noise_shrinks_to_the_typical_power():
    points = [(100.0, 3.0), (300.0, 3.0 * 3**0.7), (900.0, 3.0 * 9**0.7)]
    assert extrapolate(points, 9_000, 0.7) == pytest.approx(3 * 90**0.7)
    assert extrapolate(points, 900, 0.1) == pytest.approx(points[-1][1])
    between = sorted([points[-1][1] * 10**0.7, points[-1][1] * 10**1.0])
    assert between[0] < extrapolate(points, 9_000, 1.0) < between[1]
    assert extrapolate([(100.0, 0.0)], 900, 1.0) == 0.0


@pytest.mark.parametrize(
    ("choices", "stages"),
    [
        ({}, STAGES),
        ({"features": "none"}, STAGES[:-1]),
        (
            {"features": "none", "select": False},
            ["read", "prepare", "mine", "apply", "train", "choose"],
        ),
        ({"preset": "paper"}, ["read", "prepare", "mine", "apply", "train", "features"]),
    ],
)
def test_an_estimate_has_every_stage_of_the_fit(world, choices, stages):
    shares = []
    chosen = tilp.TILP.from_options(max_length=1, sample=40, **choices).settings
    cost = estimate_cost(world, chosen, threads=2, budget=0.3, progress=shares.append)
    assert [stage.name for stage in cost.stages] == stages
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert all(stage.cpu >= stage.serial >= 0 and stage.peak >= 0 for stage in cost.stages)
    assert cost.cpu >= cost.seconds > 0 and cost.peak > cost.before
    assert json.loads(json.dumps(cost.to_json()))["threads"] == 2


def test_a_sample_of_all_facts_has_the_rules_of_the_fit(world):
    model = tilp.TILP(1, features="none")
    cost = estimate_cost(world, model.settings, budget=60.0)
    assert cost.sample == (len(world.targets),) * 2
    assert cost.rules == len(model.fit(world).rules())


def test_larger_data_and_longer_walks_cost_more(world):
    def cost(graph, length):
        return estimate_cost(graph, tilp.TILP(length, features="none").settings, budget=0.3)

    small, long = cost(world, 1), cost(world, 2)
    large = cost(tilp.datasets.world(0, 20_000).graph, 1)
    assert small.cpu < large.cpu and small.walks[0] < long.walks[0] and small.rules < long.rules
    again = cost(world, 1)
    assert (again.sample, again.rules, again.walks) == (small.sample, small.rules, small.walks)


def test_a_dry_run_writes_nothing_and_prints_every_stage(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("datasets", "world", "--size", 1_000, "--out", tmp_path / "world")
    before = sorted(tmp_path.rglob("*"))
    options = ("--dry-run", "--max-length", 1, "--sample", 40, "--threads", 2)
    code, printed, err = run("fit", tmp_path / "world", *options)
    assert code == 0, err
    for words in ("read the facts", "index them", "find rules", "apply them to train",
                  "keep few, distinct ones",
                  "learn their weights", "choose on valid", "learn them from each half",
                  "learn features", "2 threads", "peak memory", "Most of the time"):  # fmt: skip
        assert words in printed
    code, printed, _ = run("fit", tmp_path / "world", *options, "--json", "--features", "none")
    assert code == 0
    assert [stage["name"] for stage in json.loads(printed)["stages"]] == STAGES[:-1]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_fit_needs_a_folder_and_json_a_dry_run(run, tmp_path):
    (tmp_path / "facts.tsv").write_text("a\tr\tb\t1990\t1991\n")
    code, _, err = run("fit", tmp_path / "facts.tsv")
    assert code == 2 and "--out" in err and "--dry-run" in err
    code, _, err = run("fit", tmp_path / "facts.tsv", "--json", "--out", tmp_path / "model")
    assert code == 2 and "--dry-run" in err and not (tmp_path / "model").exists()
    code, _, err = run("fit", tmp_path / "facts.tsv", "--dry-run")
    assert code == 2 and "no rule was found" in err


def test_a_long_fit_comes_with_advice(world, monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda _name: 1)
    chosen = tilp.TILP.from_options(
        max_length=2, sample=40, features="none", walk_limit=50
    ).settings
    cost = estimate_cost(world, chosen, budget=0.3, long_fit=1e-3)
    advice = " ".join(cost.advice)
    assert "--max-length 1" in advice and "--share" in advice and "--limit 5" in advice
    assert "of memory" in cost.warnings[0]


@pytest.mark.parametrize("features", ["full", "paper"])
def test_an_estimate_of_a_handful_of_facts(features):
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    rows = [(a, r, b, 1990 + n, 1992 + n) for n, (a, b) in enumerate(pairs) for r in ("r", "s")]
    graph = tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"))
    cost = estimate_cost(graph, tilp.TILP(max_length=1, features=features).settings)
    assert cost.seconds > 0 and cost.sample == (6, 6)


def test_a_share_of_nothing_is_refused(world):
    with pytest.raises(TilpError, match="no training fact would be asked: share is 1e-06"):
        estimate_cost(world, tilp.TILP.from_options(max_length=1, share=1e-6).settings)
