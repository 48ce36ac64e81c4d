"""What jobs take: counts against loops, memory against arrays; a dry run leaves nothing."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from tilp.costs import (
    GraphSize,
    Nodes,
    StageCost,
    WalkAmounts,
    Walks,
    calibrate,
    dry_run,
    expected_steps,
    spread,
    steps_by_length,
    walk_amounts,
)
from tilp.costs.calibration import fitted
from tilp.costs.growth import by_power, ever_slower
from tilp.costs.learning import repeated
from tilp.costs.paper_features import repeated as repeated_examples
from tilp.costs.situation import Situation
from tilp.errors import TilpError
from tilp.features.paper.features import PaperFeatures
from tilp.features.paper.training import Examples, FeatureTraining, train_features
from tilp.graph import QueryTable
from tilp.learning.examples import make_training_examples
from tilp.parallel import Workers
from tilp.walks import MiningSettings, Walker
from tilp.walks.mining import mining_walker

COLUMNS = ["subject", "relation", "object", "start", "end"]


def random_graph(seed: int, facts: int = 40, entities: int = 9) -> tilp.TemporalGraph:
    chance = np.random.default_rng(seed)
    rows = [
        (f"e{a}", f"r{r}", f"e{b}", int(year), int(year) + 2)
        for a, b, r, year in zip(
            *chance.integers(entities, size=(2, facts)),
            chance.integers(3, size=facts),
            chance.integers(1990, 1995, size=facts),
            strict=True,
        )
    ]
    return tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"))


def slow_steps(graph: tilp.TemporalGraph, length: int) -> np.ndarray:
    """Walks of each length from each entity, one by one; facts may be used again."""
    index = graph.index("train")
    found = np.zeros((length, len(graph.entities)))
    for entity in range(len(graph.entities)):
        ends = [entity]
        for number in range(length):
            ends = [int(index.target[edge]) for end in ends
                    for edge in range(index.offsets[end], index.offsets[end + 1])]  # fmt: skip
            found[number, entity] = len(ends)
    return found


# amounts


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), length=st.integers(1, 3), limit=st.integers(1, 400))
def test_steps_are_those_that_a_loop_counts(seed, length, limit):
    graph = random_graph(seed)
    walker = Walker(graph, max_length=length, limit=limit)
    slow = np.minimum(slow_steps(graph, length), limit)
    np.testing.assert_array_equal(steps_by_length(walker), slow)
    np.testing.assert_array_equal(slow.sum(axis=0), walker.steps_from)


def test_steps_of_length_one_are_the_walks_that_are_counted():
    graph = random_graph(3)
    walker = Walker(graph, max_length=1, grains=["static"])
    queries = QueryTable.of_facts(graph, np.arange(len(graph)), walked=False)
    walks = walker.checksum(queries)[2]
    amounts = walk_amounts(steps_by_length(walker).sum(axis=0), queries, queries.subject)
    assert amounts.steps_queried == walks


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_amounts_are_those_that_sets_count(seed):
    graph = random_graph(seed)
    queries = QueryTable.of_facts(graph, np.arange(len(graph)), walked=True)
    chance = np.random.default_rng(seed)
    apart = chance.integers(2, size=len(queries))
    steps = chance.integers(1, 50, size=len(graph.entities)).astype(np.float64)
    amounts = walk_amounts(steps, queries, queries.subject, apart, calls=3)
    entities, asked = set(), set()
    for number in range(len(queries)):
        entity = (int(apart[number]), int(queries.subject[number]))
        entities.add(entity)
        columns = (queries.directed_relation, queries.start, queries.end)
        asked.add((*entity, *(int(column[number]) for column in columns)))
    assert amounts == WalkAmounts(
        calls=3,
        entities=len(entities),
        asked=len(asked),
        queries=len(queries),
        steps=sum(steps[one[1]] for one in entities),
        steps_asked=sum(steps[one[1]] for one in asked),
        steps_queried=steps[queries.subject].sum(),
    )


def test_more_facts_and_longer_walks_are_more_work():
    small, large = (tilp.datasets.world(0, size).graph for size in (1_000, 3_000))
    per_length = [steps_by_length(Walker(large, max_length=length)).sum() for length in (1, 2, 3)]
    assert per_length == sorted(per_length) and per_length[0] < per_length[2]
    sums = []
    for graph in (small, large):
        queries = QueryTable.of_facts(graph, graph.targets, walked=True)
        steps = Walker(graph).steps_from
        sums.append(walk_amounts(steps, queries, queries.subject).row()[1:])
    assert (sums[0] < sums[1]).all()
    assert (expected_steps(np.array([1, 5, 6]), 3, 1e9) >= expected_steps(
        np.array([1, 5, 6]), 3, 10)).all()  # fmt: skip


def test_expected_steps_are_those_of_graphs_joined_by_chance():
    chance = np.random.default_rng(0)
    degrees = chance.integers(1, 12, size=400)
    stubs = chance.permutation(np.repeat(np.arange(400), degrees))
    stubs = stubs[: len(stubs) // 2 * 2].reshape(-1, 2)
    rows = [(f"e{a}", "r", f"e{b}", 2000, 2000) for a, b in stubs]
    graph = tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"))
    walker = Walker(graph, max_length=3)
    steps = steps_by_length(walker)
    ends = np.concatenate([graph.subject, graph.object])
    expected = expected_steps(np.diff(walker.edges.offsets), 3, 1e9)
    np.testing.assert_allclose(steps[:, ends].mean(axis=1), expected, rtol=0.1)


# rates


def test_rates_are_found_again_from_what_they_make():
    chance = np.random.default_rng(1)
    rows = chance.uniform(1, 100, size=(40, 3)) * np.array([1.0, 1e3, 1e6])
    of = np.array([1e-3, 0.0, 2e-9])
    np.testing.assert_allclose(fitted(rows, rows @ of), of, rtol=1e-6, atol=1e-12)
    noisy = rows @ of * chance.lognormal(0, 0.3, size=40)
    assert (fitted(rows, noisy) >= 0).all()
    assert np.mean(noisy / (rows @ fitted(rows, noisy))) == pytest.approx(1, rel=0.05)


def test_batches_are_parts_of_the_work_and_of_one_number_each():
    graph = tilp.datasets.world(0, 2_000).graph
    queries = QueryTable.of_facts(graph, graph.targets, walked=True)
    relation = (queries.directed_relation % len(graph.relations)).astype(np.int64)
    work = Walks.of_queries(Walker(graph).steps_from, queries, apart=relation, calls=5)
    seen = []
    rates = calibrate(work, seen.append, budget=0.001)
    assert len(seen) >= 16 and rates.seconds(work.amounts()) >= 0
    for batch in seen:
        assert len(np.unique(batch.apart)) == 1 and len(np.unique(batch.place)) == len(batch.place)
        np.testing.assert_array_equal(batch.queries.subject, queries.subject[batch.place])
        assert (batch.amounts().row() <= work.amounts().row()).all()
    assert len(np.unique(np.concatenate([one.place for one in seen]))) > 20


def test_growth_goes_on_between_the_samples_and_all():
    points = [(100.0, 10.0), (300.0, 20.0), (900.0, 25.0)]
    assert 25 < ever_slower(points, 9_000) < ever_slower(points[:2], 9_000)
    assert ever_slower(points, 900) == by_power(points, 900) == 25
    assert 25 < by_power(points, 1_800) < 50
    assert by_power([(1.0, 0.0), (2.0, 0.0)], 100) == 0
    assert by_power([(100.0, 1.0), (200.0, 4.0)], 400) == 8  # no faster than the size


# memory and machines


@pytest.mark.parametrize("size", [1_000, 3_000])
def test_memory_of_a_graph_is_that_of_its_arrays(size):
    graph = tilp.datasets.world(0, size).graph
    walker = mining_walker(graph, MiningSettings())
    found = GraphSize(len(graph), len(graph.rows("train")), len(graph.entities))
    assert found.columns == graph.nbytes + graph.estimated.nbytes + graph.walked_only.nbytes
    assert found.index == graph.index().nbytes
    edges, index = walker.edges, graph.index()
    shared = (index.offsets, index.relation, index.target, index.fact)
    own = [one for one in edges if not any(np.shares_memory(one, other) for other in shared)]
    read = walker._read
    built = [*own, walker._inverse, read.start, read.end, walker.steps_from]
    assert found.walker == sum(one.nbytes for one in built)


def test_a_scaled_graph_is_as_dense():
    small = GraphSize(1_000, 800, 100, 2_000)
    large = small.scaled(1_000_000)
    assert large == GraphSize(1_000_000, 800_000, 100_000, 2_000_000)
    for what in ("columns", "index", "walker", "whole", "reading", "building"):
        ratio = getattr(large, what) / getattr(small, what)
        assert ratio == pytest.approx(1_000, rel=0.01)
    assert large.worker(3, 1e4, 100) < large.worker(5, 1e4, 100) <= large.worker(5, 1e5, 100)
    assert large.worker(3, 1e4, 100) < large.worker(3, 1e4, 200)


def test_more_machines_share_the_work_but_not_all_of_it():
    size = GraphSize(10_000_000, 8_000_000, 1_000_000)
    stages = [
        StageCost("load", 1, "x", cpu=50.0, serial=50.0),
        StageCost("mine", 1, "x", cpu=64_000.0, longest=2.0),
    ]
    found = [spread(stages, size, Nodes(count, 16)) for count in (1, 4, 16, 64)]
    assert [one.together for one in found] == [4_000.0, 1_000.0, 250.0, 62.5]
    assert {one.alone for one in found} == {50.0} and found[0].shipping == 0
    assert found[3].shipping == 6 * size.whole / 1.25e9
    assert len({one.memory for one in found}) == 1
    assert spread(stages, size, Nodes(1_000, 1_000)).together == 2.0
    assert spread(stages, size, Nodes(1, 16), worker=1e9).memory > found[0].memory + 1e10


# a dry run


@pytest.fixture(scope="module")
def world() -> tilp.TemporalGraph:
    return tilp.datasets.world(0, 1_000).graph


STAGES = ["read", "prepare", "mine", "apply", "train", "choose", "fold", "features"]


def test_what_a_situation_counts_is_what_a_fit_asks(world):
    model = tilp.TILP.from_options(max_length=1, features="none", sample=40)
    now = Situation.of(world, model.settings)
    sizes = np.bincount(world.relation[world.targets], minlength=len(world.relations))
    assert now.facts == np.minimum(sizes, 40).sum()
    assert {len(one) // 2 for one in now.mined.values()} == set(np.minimum(sizes, 40).tolist())
    sampled = now.sampled(0.5)
    assert sampled.samples and sampled.sample.facts <= now.facts
    whole = now.sampled(60.0)
    fit = model.fit(world)
    assert whole.sample.facts == now.facts
    assert {one.rule for one in whole.sample.rules} == {one.rule for one in fit.rules()}
    assert sum(whole.rules_of_all().values()) == len(fit.rules())


def test_entries_so_many_times_are_so_many_times_the_entries(world):
    now = Situation.of(world, tilp.TILP(1).settings).sampled(0.5)
    queries = now.training[np.arange(20)]
    made = make_training_examples(now.walker, queries, now.compiled, Workers())
    twice = repeated(made, 2)
    assert len(twice) == 2 * len(made) and len(twice.queries) == 40
    back = twice.of_queries(np.arange(40) >= 20)
    for name in ("rule", "at_answer", "at_known", "others", "begin"):
        np.testing.assert_array_equal(getattr(back, name), getattr(made, name))


def test_examples_so_many_times_have_the_same_loss(world):
    walked = np.ones((2 * len(world.relations),) * 2, np.bool_)
    features = PaperFeatures.fit(world, walked, 1)
    queries = QueryTable.of_facts(world, world.targets[:15], walked=True)
    begin, candidate = np.arange(31) * 2, np.repeat(queries.answer, 2)
    candidate[1::2] = (candidate[1::2] + 1) % len(world.entities)
    answers = np.where(np.arange(30) % 7 == 0, -1, begin[:-1])
    made = Examples(queries, features.gather(queries, begin, candidate), np.ones(60), answers)
    thrice = repeated_examples(made, 3)
    assert len(thrice.queries) == 90 and len(thrice.evidence) == 3 * len(made.evidence)
    for place in range(90):
        one = int(thrice.answer_place[place])
        assert one < 0 or thrice.evidence.candidate[one] == thrice.queries.answer[place]
    few = FeatureTraining(steps=2)
    first, other = (train_features(features, one, one, few).curve for one in (made, thrice))
    # Weights are held back once, however many queries there are: only the first loss is the same.
    assert first.train[0] == pytest.approx(other.train[0], rel=1e-4)


@pytest.mark.parametrize(
    ("choices", "stages"),
    [
        ({}, STAGES),
        ({"features": "none"}, STAGES[:6]),
        ({"preset": "paper"}, ["read", "prepare", "mine", "apply", "train", "features"]),
    ],
)
def test_a_dry_run_tells_of_every_stage_of_the_fit(world, choices, stages):
    settings = tilp.TILP.from_options(max_length=1, sample=40, **choices).settings
    shares = []
    found = dry_run(world, settings, threads=2, budget=0.5, progress=shares.append)
    assert [one.name for one in found.stages] == stages
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert all(one.cpu >= one.serial >= 0 and one.peak >= 0 for one in found.stages)
    assert found.cpu >= found.seconds > 0 and found.peak > found.before
    assert json.loads(json.dumps(found.to_json()))["threads"] == 2


def test_a_dry_run_writes_nothing_and_prints_every_stage(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tilp.costs.fits._BUDGET", 0.5)
    run("datasets", "world", "--size", 1_000, "--out", tmp_path / "world")
    before = sorted(tmp_path.rglob("*"))
    options = ("--dry-run", "--max-length", 1, "--sample", 40, "--threads", 2)
    code, printed, err = run("fit", tmp_path / "world", *options)
    assert code == 0, err
    for words in ("read the facts", "index them", "find rules", "apply them to train",
                  "learn their weights", "choose on valid", "learn them from each half",
                  "learn features", "2 threads", "peak memory", "Most of the time"):  # fmt: skip
        assert words in printed
    code, printed, _ = run("fit", tmp_path / "world", *options, "--json", "--features", "none")
    assert code == 0
    assert [one["name"] for one in json.loads(printed)["stages"]] == STAGES[:6]
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
    monkeypatch.setattr("tilp.costs.fits._LONG", 1e-3)
    monkeypatch.setattr("os.sysconf", lambda _name: 1)
    settings = tilp.TILP.from_options(
        max_length=2, sample=40, features="none", walk_limit=50
    ).settings
    found = dry_run(world, settings, budget=0.5)
    said = " ".join(found.advice)
    assert "--max-length 1" in said and "--share" in said and "--limit 5" in said
    assert "of memory" in found.warnings[0]


@pytest.mark.parametrize("features", ["full", "paper"])
def test_a_dry_run_of_the_fewest_facts(features):
    rows = [("a", "r", "b"), ("a", "s", "b"), ("c", "r", "d"), ("c", "s", "d"), ("e", "r", "f")]
    rows = [(*row, 1990 + n, 1992 + n) for n, row in enumerate([*rows, ("e", "s", "f")])]
    graph = tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"))
    model = tilp.TILP(max_length=1, features=features)
    assert dry_run(graph, model.settings, threads=1, budget=0.1).seconds > 0


def test_a_share_of_nothing_is_refused(world):
    with pytest.raises(TilpError, match="share is 0; it is above 0"):
        tilp.TILP(config=tilp.TILPConfig(share=0.0))
    with pytest.raises(TilpError, match="no training fact would be asked: share is 1e-06"):
        dry_run(
            world, tilp.TILP(max_length=1, config=tilp.TILPConfig(share=1e-6)).settings, threads=1
        )
