"""Cost estimates: lines found again, every stage of a fit, a dry run that leaves nothing."""

import json

import numpy as np
import polars as pl
import pytest

import tilp
from tilp.cost_estimate import estimate_cost, extrapolate
from tilp.errors import TilpError

COLUMNS = ["subject", "relation", "object", "start", "end"]
STAGES = ["read", "mine", "apply", "select", "train", "features", "stack"]


@pytest.fixture(scope="module")
def world() -> tilp.TemporalGraph:
    return tilp.datasets.world(0, 1_000).graph


def test_a_line_is_found_again_and_no_value_falls_or_outgrows_the_facts():
    points = [(100, np.array([3.0, 5.0, 1.0])), (300, np.array([5.0, 4.0, 6.0]))]
    np.testing.assert_allclose(extrapolate(points, 900), [11.0, 4.0, 18.0])
    np.testing.assert_allclose(extrapolate(points, 300), points[-1][1])
    assert extrapolate([(100, 2.0)], 900) == pytest.approx(18.0)
    assert extrapolate([(100, 0.0)], 900) == 0.0


@pytest.mark.parametrize(
    ("choices", "stages"),
    [
        ({}, STAGES),
        ({"features": "none"}, STAGES[:-2]),
        (
            {"features": "none", "select": False},
            ["read", "mine", "apply", "train"],
        ),
        ({"preset": "paper"}, ["read", "mine", "apply", "train", "features"]),
    ],
)
def test_an_estimate_has_every_stage_of_the_fit(world, choices, stages):
    shares = []
    chosen = tilp.TILP.from_options(max_length=1, sample=40, **choices).settings
    cost = estimate_cost(world, chosen, threads=2, budget=0.3, progress=shares.append)
    assert [stage.name for stage in cost.stages] == [*stages, "time"]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert all(stage.cpu >= 0 and stage.peak >= 0 for stage in cost.stages)
    assert cost.cpu > 0 and cost.peak > cost.before
    assert json.loads(json.dumps(cost.to_json()))["cpu"] == cost.cpu


def test_small_data_are_fitted_whole(world):
    cost = estimate_cost(world, tilp.TILP(1, features="none").settings, budget=60.0)
    assert cost.sample == (len(world.targets),) * 2


def test_larger_data_cost_more_and_the_same_sample_is_drawn_again(world):
    def cost(graph):
        return estimate_cost(graph, tilp.TILP(1, features="none").settings, budget=0.3)

    small, large = cost(world), cost(tilp.datasets.world(0, 20_000).graph)
    assert small.cpu < large.cpu
    assert cost(world).sample == small.sample


def test_a_dry_run_writes_nothing_and_prints_every_stage(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("datasets", "world", "--size", 1_000, "--out", tmp_path / "world")
    before = sorted(tmp_path.rglob("*"))
    options = ("--dry-run", "--max-length", 1, "--sample", 40, "--threads", 2)
    code, printed, err = run("fit", tmp_path / "world", *options)
    assert code == 0, err
    for words in ("read the facts", "find rules", "apply them to train",
                  "keep few, distinct ones", "learn their weights", "learn features",
                  "weigh both on facts left out", "CPU s", "peak MB"):  # fmt: skip
        assert words in printed
    code, printed, _ = run("fit", tmp_path / "world", *options, "--json", "--features", "none")
    assert code == 0
    named = [stage["name"] for stage in json.loads(printed)["stages"]]
    assert named == [*STAGES[:-2], "time"]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_fit_needs_a_folder_and_json_a_dry_run(run, tmp_path):
    (tmp_path / "facts.tsv").write_text("a\tr\tb\t1990\t1991\n")
    code, _, err = run("fit", tmp_path / "facts.tsv")
    assert code == 2 and "--out" in err and "--dry-run" in err
    code, _, err = run("fit", tmp_path / "facts.tsv", "--json", "--out", tmp_path / "model")
    assert code == 2 and "--dry-run" in err and not (tmp_path / "model").exists()
    code, _, err = run("fit", tmp_path / "facts.tsv", "--dry-run")
    assert code == 2 and "no rule was found" in err


def test_a_fit_that_needs_more_than_its_memory_is_said_so(world):
    chosen = tilp.TILP.from_options(max_length=1, sample=40, features="none").settings
    cost = estimate_cost(world, chosen, memory="1MB", budget=0.3)
    assert "of memory" in cost.warnings[0] and "--memory" in cost.warnings[0]


@pytest.mark.parametrize("features", ["full", "paper"])
def test_an_estimate_of_a_handful_of_facts(features):
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    rows = [(a, r, b, 1990 + n, 1992 + n) for n, (a, b) in enumerate(pairs) for r in ("r", "s")]
    graph = tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"))
    cost = estimate_cost(graph, tilp.TILP(max_length=1, features=features).settings)
    assert cost.cpu > 0 and cost.sample == (6, 6)


def test_a_share_of_nothing_is_refused(world):
    with pytest.raises(TilpError, match="no training fact would be asked: share is 1e-06"):
        estimate_cost(world, tilp.TILP.from_options(max_length=1, share=1e-6).settings)
