"""Facts that are walked on but not learned from: marked, written, read, and never queried."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilp
from tilp._utils.random import sample_share
from tilp.errors import DataError, TilpError
from tilp.walks import MiningSettings, mine
from tilp.walks.mining import target_facts

COLUMNS = ["subject", "relation", "object", "start", "end"]


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(seed=3, size=1_500).graph


def marked(graph, targets):
    walked_only = np.arange(len(graph)) < len(graph.rows("train"))
    walked_only[targets] = False
    return replace(graph, walked_only=walked_only)


@given(
    st.integers(0, 200),
    st.lists(st.floats(0, 1.5), min_size=1, max_size=6),
    st.integers(0, 5),
)
def test_samples_have_the_given_size_are_nested_and_the_same_for_a_seed(size, shares, seed):
    found = [sample_share(size, share, seed) for share in sorted(shares)]
    for share, rows in zip(sorted(shares), found, strict=True):
        assert len(rows) == round(min(share, 1.0) * size)
        assert (np.diff(rows) > 0).all() and set(rows) <= set(range(size))
        assert np.array_equal(rows, sample_share(size, share, seed))
    for smaller, greater in pairwise(found):
        assert set(smaller) <= set(greater)


def test_other_seeds_draw_other_samples():
    assert set(sample_share(1_000, 0.5, 0)) != set(sample_share(1_000, 0.5, 1))


@pytest.mark.parametrize("format", ["tsv", "csv", "parquet"])
def test_marks_are_written_and_read_again(world, tmp_path, format):
    few = marked(world, [3, 5, 8])
    again = tilp.read(tilp.write(few, tmp_path / "out", format=format))
    assert again == few != world and again.fingerprint() == few.fingerprint()
    assert few.fingerprint() != world.fingerprint()
    assert again.targets.tolist() == [3, 5, 8]
    assert few.frame("test").columns == [*COLUMNS, "walked_only"]
    assert "walked_only" not in world.frame().columns
    assert f"{len(world.rows('test')):,} test facts, 3 learned from;" in repr(few)
    assert "learned" not in repr(world) and len(world.targets) == len(world.rows("train"))


def test_marks_stay_with_their_facts(world):
    left = marked(world, [3, 5, 8]).without([0, 5])
    assert left.targets.tolist() == [2, 6]


def test_only_training_facts_can_be_marked(world):
    with pytest.raises(TilpError, match="valid or test is marked as walked only"):
        replace(world, walked_only=np.arange(len(world)) == world.rows("valid").start)


def test_other_values_are_refused():
    rows = [("a", "r", "b", "1990", "1991", word) for word in ("yes", "", "perhaps")]
    frame = pl.DataFrame(rows, [*COLUMNS, "walked_only"], orient="row")
    assert tilp.read(frame[:2]).targets.tolist() == [1]
    with pytest.raises(DataError, match=r"line 2.*'perhaps'.*not learned from.*another name"):
        tilp.read(frame)


def test_a_share_is_one_of_the_targets(world):
    targets = np.arange(0, 600, 3)
    few = marked(world, targets)
    assert target_facts(few, MiningSettings()).tolist() == targets.tolist()
    part = target_facts(few, MiningSettings(share=0.1, seed=4))
    assert part.tolist() == targets[sample_share(200, 0.1, 4)].tolist() and len(part) == 20


def test_marks_say_the_same_as_a_share(world):
    world = world.canonical()
    settings = MiningSettings(max_length=1, share=0.3, seed=2)
    few = marked(world, target_facts(world, settings))
    mined = mine(world, settings=settings)
    assert list(mined) == list(mine(few, settings=replace(settings, share=1.0)))
    assert list(mined) != list(mine(world, settings=replace(settings, share=1.0)))
    quick = {"max_length": 1, "features": "none", "random_state": 2, "n_jobs": 1}
    by_share = tilp.TILP(config=tilp.TILPConfig(share=0.3), **quick).fit(world)
    by_marks = tilp.TILP(**quick).fit(few)
    assert np.array_equal(by_share.weights.rule, by_marks.weights.rule)
    assert list(by_share.rules()) == list(by_marks.rules())


def test_without_valid_facts_targets_alone_decide(world):
    from tilp.model import ModelSettings
    from tilp.model.fit import held_out_facts

    few = marked(world.without(world.rows("valid")), np.arange(0, 90, 3))
    asked, walked = held_out_facts(few, ModelSettings())
    assert set(asked.tolist()) <= set(range(0, 90, 3)) and len(set(asked.tolist())) == 4
    assert walked
