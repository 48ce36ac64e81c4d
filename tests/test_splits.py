"""Random and harder splits against plain code, and the paper's own files."""

import json
import re
import signal
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilp
from strategies import read_or_skip
from tilp._utils.random import sample_share
from tilp.errors import TilpError
from tilp.evaluation import load_evaluation
from tilp.graph import Vocabulary
from tilp.splits import balanced, biased, few, random_split, released, time_shift
from tilp.splits.kinds import (
    REMOVAL_STREAM,
    SPLIT_STREAM,
    TEST_STREAM,
    VALID_STREAM,
    random_keys,
)
from tilp.time import OPEN_START, UNKNOWN
from tilp.types import LateEnds, WalkGraph

pytestmark = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")

COLUMNS = ["subject", "relation", "object", "start", "end"]
DATES = ["", "1990", "1991", "1992", "1994", "1997", "199#", "present", "soon", "2844"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from("ppqr"),
        st.sampled_from("abcd"),
        st.sampled_from(DATES),
        st.sampled_from(DATES),
        st.sampled_from(tilp.SPLITS),
    ),
    min_size=1,
    max_size=40,
)
SEEDS = st.integers(0, 3)


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(seed=3, size=1_500).graph


def read(rows):
    return read_or_skip(pl.DataFrame(rows, [*COLUMNS, "split"], orient="row"), unit="year")


def written(graph, split=None):
    """Count the facts as they are written."""
    return Counter(graph.frame(split, names="ids").select(COLUMNS).rows())


def triples(graph, split=None):
    return Counter(graph.frame(split, names="ids").select(COLUMNS[:3]).rows())


def by_relation(graph, split):
    return np.bincount(graph.relation[graph.span(split)], minlength=len(graph.relations))


def same_names(first, second):
    return first.entities == second.entities and first.relations == second.relations


# random


def plain_random_split(graph, valid, test, seed):
    """Return the split of each fact, one after the other; None if there are too few."""
    columns = (graph.subject, graph.relation, graph.object, graph.start, graph.end)
    facts = list(zip(*(column.tolist() for column in columns), strict=True))
    keys = dict(zip(facts, random_keys(graph, seed, SPLIT_STREAM).tolist(), strict=True))
    order = sorted(keys, key=keys.get)
    last = {}
    for s, r, o, start, end in order:
        for name in (("entity", s), ("entity", o), ("relation", r)):
            last[name] = (s, r, o, start, end)
    movable = [fact for fact in order if fact not in last.values()]
    sizes = {"test": round(test * len(order)), "valid": round(valid * len(order))}
    if (total := sum(sizes.values())) > len(movable):
        sizes = {split: size * len(movable) // total for split, size in sizes.items()}
    if not sizes["test"] or (valid and not sizes["valid"]):
        return None
    splits = [split for split, size in sizes.items() for _ in range(size)]
    where = dict(zip(movable, splits, strict=False))
    return [where.get(fact, "train") for fact in facts]


@given(ROWS, st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from([0.1, 0.2, 0.6]), SEEDS)
def test_a_random_split_against_plain_code(rows, valid, test, seed):
    graph = read(rows)
    split = partial(random_split, valid=valid, test=test, seed=seed)
    expected = plain_random_split(graph, valid, test, seed)
    if expected is None:
        with pytest.raises(TilpError, match="too few facts to split"):
            split(graph)
        return
    made = split(graph)
    assert written(made) == written(graph) and same_names(made, graph)
    facts = graph.frame(names="ids").select(COLUMNS).rows()
    for name in tilp.SPLITS:
        chosen = [fact for fact, of in zip(facts, expected, strict=True) if of == name]
        assert written(made, name) == Counter(chosen)
    train = made.span("train")
    for column in ("subject", "object"):
        ends = {*made.subject[train].tolist(), *made.object[train].tolist()}
        assert set(getattr(made, column).tolist()) <= ends
    assert set(made.relation.tolist()) == set(made.relation[train].tolist())
    # Neither the order of rows nor the splits that they come from matter.
    again = split(read([(*row[:5], "train") for row in reversed(rows)]))
    assert [written(again, name) for name in tilp.SPLITS] == [
        written(made, name) for name in tilp.SPLITS
    ]


def test_a_random_split_has_its_shares_and_depends_on_the_seed(world):
    made = [random_split(world, seed=seed) for seed in (0, 1)]
    tenth = round(len(world) / 10)
    for graph in made:
        assert len(graph.rows("valid")) == len(graph.rows("test")) == tenth
    for split in ("valid", "test"):
        assert written(made[0], split) != written(made[1], split)
    assert written(random_split(made[0], seed=1), "test") == written(made[1], "test")
    assert not len(random_split(world, valid=0).rows("valid"))


def test_a_random_split_says_what_is_wrong(world):
    for shares in ({"test": 0}, {"valid": -0.1}, {"test": 0.5, "valid": 0.5}, {"test": np.nan}):
        with pytest.raises(TilpError, match="the shares of valid and test are"):
            random_split(world, **shares)
    rows = [(f"a{i}", "p", f"b{i}", "1990", "", "train") for i in range(20)]
    with pytest.raises(TilpError, match="0 of 20 different facts can leave train, which keeps"):
        random_split(read(rows))
    with pytest.raises(TilpError, match=r"too few facts to split: .* of 3 different facts"):
        random_split(read([*rows[:2], ("a0", "p", "b1", "1990", "", "test")]))
    rows += [("a0", "p", "b0", str(year), "", "train") for year in range(1991, 1994)]
    with pytest.warns(tilp.TilpWarning, match="smaller than their shares: 3 of 23 different"):
        made = random_split(read(rows))
    assert [len(made.rows(split)) for split in tilp.SPLITS] == [21, 1, 1]
    with pytest.raises(TilpError, match="split the original data"):
        random_split(few(world, 0.5))


# few


@given(ROWS, st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4), SEEDS)
def test_few_keeps_all_facts_and_marks_those_outside_nested_samples(rows, shares, seed):
    graph = read(rows)
    size, before = len(graph.rows("train")), set()
    for share in sorted(shares):
        assume(round(share * size))
        kept = few(graph, share, seed=seed)
        chosen = set(kept.targets.tolist())
        assert len(chosen) == round(share * size) and before <= chosen
        assert chosen == set(sample_share(size, share, seed).tolist())
        assert written(kept) == written(graph) and kept.bounds == graph.bounds
        reduced = few(graph, share, seed=seed, walked="reduced")
        assert [reduced.fact(row) for row in reduced.rows("train")] == [
            graph.fact(row) for row in sorted(chosen)
        ]
        for split in ("valid", "test"):
            assert written(reduced, split) == written(graph, split)
        assert same_names(reduced, graph) and not reduced.walked_only.any()
        assert few(graph, share, seed=seed) == kept
        before = chosen


def test_a_sample_of_a_sample_is_drawn_from_it_and_reduced_to_it(world):
    tenth = few(world, 0.1)
    again = few(tenth, 0.5, seed=1)
    assert set(again.targets) < set(tenth.targets)
    assert len(again.targets) == round(len(tenth.targets) / 2)
    reduced = few(tenth, 0.5, seed=1, walked=WalkGraph.REDUCED)
    assert len(reduced.rows("train")) == len(again.targets)


def test_few_refuses_shares_out_of_range(world):
    for share in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(TilpError, match="above 0 and at most 1"):
            few(world, share)
    with pytest.raises(TilpError, match="less than one fact; choose a larger share"):
        few(world, 0.0001)
    with pytest.raises(TilpError, match="it can be kept, reduced"):
        few(world, 0.5, walked="all")


# biased


@given(ROWS, st.none() | st.integers(1, 6), SEEDS)
def test_balanced_takes_as_many_of_each_relation_or_half_of_it(rows, queries, seed):
    graph = read(rows)
    assume(queries or len(graph.rows("test")))
    sizes = np.bincount(graph.relation, minlength=len(graph.relations))
    n = queries or max(len(graph.rows("test")) // np.count_nonzero(sizes), 1)
    even = balanced(graph, queries=queries, seed=seed)
    assert written(even) == written(graph) and same_names(even, graph)
    assert by_relation(even, "test").tolist() == [min(n, size // 2) for size in sizes]
    valid = by_relation(even, "valid")
    rest = (sizes - by_relation(even, "test"))[sizes >= 2 * n].sum()
    assert valid.sum() == min(len(graph.rows("valid")), rest // 2)
    assert not valid[sizes < 2 * n].any()
    assert balanced(graph, queries=queries, seed=seed) == even


@given(ROWS, st.floats(0.05, 1.0), SEEDS, st.sampled_from(WalkGraph))
def test_biased_removes_a_share_of_one_relation(rows, removed, seed, walked):
    graph = read(rows)
    for relation, name in enumerate(graph.relations):
        size = by_relation(graph, "train")[relation]
        count = int(round(removed * size, 6))
        if not count:
            with pytest.raises(TilpError, match="leave this relation out"):
                biased(graph, name, removed=removed, seed=seed)
            continue
        made = biased(graph, name, removed=removed, seed=seed, walked=walked)
        assert made == biased(graph, name, removed=removed, seed=seed, walked=walked)
        expected = by_relation(graph, "train")
        expected[relation] -= count
        assert np.array_equal(
            np.bincount(made.relation[made.targets], minlength=len(graph.relations)), expected
        )
        assert same_names(made, graph)
        if walked is WalkGraph.FULL:
            assert written(made) == written(graph)
        else:
            gone = written(graph) - written(made)
            assert not written(made) - written(graph) and gone.total() == count
            assert {relation for _, relation, *_ in gone} == {name}
        for split in ("valid", "test"):
            assert written(made, split) == written(graph, split)


def test_seeds_make_other_splits(world):
    evens = [balanced(world, seed=seed) for seed in (0, 1)]
    assert written(evens[0], "test") != written(evens[1], "test")
    assert written(evens[0], "valid") != written(evens[1], "valid")
    left = [biased(world, "playsFor", seed=seed) for seed in (0, 1)]
    assert written(left[0]) != written(left[1])


def test_random_keys_of_seeds_and_streams_are_independent(world):
    streams = (TEST_STREAM, VALID_STREAM, REMOVAL_STREAM, SPLIT_STREAM)
    keys = [random_keys(world, seed, stream) for seed in range(4) for stream in streams]
    correlations = np.corrcoef(keys) - np.eye(len(keys))
    assert np.abs(correlations).max() < 4 / np.sqrt(len(world))
    assert all(0.45 < column.mean() < 0.55 for column in keys)


def test_biased_and_balanced_say_what_is_wrong(world):
    with pytest.raises(TilpError, match="no relation is named 'playFor'; did you mean 'playsFor'"):
        biased(world, "playFor")
    with pytest.raises(TilpError, match=r"share to remove is 1\.5"):
        biased(world, "playsFor", removed=1.5)
    with pytest.raises(TilpError, match=r"no test split.*--queries"):
        balanced(world.without(world.rows("test")))
    with pytest.raises(TilpError, match="choose 1 or more"):
        balanced(world, queries=0)
    with pytest.raises(TilpError, match="split the original data"):
        balanced(few(world, 0.5))


# time shift


def plain_ends(graph, latest):
    """Return start and end of each fact, unknown after the latest date, read from the text."""
    found = []
    for row in range(len(graph)):
        start, end = int(graph.start[row]), int(graph.end[row])
        if latest is not None and start > latest:
            text = graph.date_text("end")[row]
            start = UNKNOWN
            end = {"": UNKNOWN, "soon": UNKNOWN, "199#": 1999, "present": 2**63 - 1}.get(text)
            end = int(text) if end is None else end
        found.append((start, end))
    return found


@settings(max_examples=200)
@given(
    ROWS,
    st.integers(1989, 1998),
    st.integers(0, 4),
    st.none() | st.integers(1993, 2000),
    st.sampled_from(LateEnds),
)
def test_time_shift_against_plain_code(rows, first, years, latest, ends):
    graph = read(rows)
    times = plain_ends(graph, latest)
    sides = ["train" if s < first else "valid" if s < first + years else "test" for s, _ in times]
    shift = partial(time_shift, valid_from=first, test_from=str(first + years), latest=latest)
    if not {"train", "test"} <= set(sides):
        with pytest.raises(TilpError, match="Choose other dates"):
            shift(graph, ends=ends)
        return
    found = shift(graph, ends=ends)
    assert found == shift(graph, ends=ends)
    expected = {split: Counter() for split in tilp.SPLITS}
    late_ends = 0
    for (start, end), side, fact in zip(times, sides, graph.frame(names="ids").rows(), strict=True):
        names, (start_text, end_text) = fact[:3], fact[3:5]
        late = side == "train" and end >= first
        late_ends += late
        if late and ends is LateEnds.DROP:
            continue
        lost = latest is not None and start == UNKNOWN and graph_start(start_text) > latest
        texts = ("" if lost else start_text, "" if late and ends is LateEnds.MASK else end_text)
        expected[side][(*names, *texts)] += 1
    made = found.graph
    assert {split: written(made, split) for split in tilp.SPLITS} == expected
    assert (found.late_ends, found.no_start) == (late_ends, sum(s == UNKNOWN for s, _ in times))
    assert found.late_starts == sum(
        old != UNKNOWN and new == UNKNOWN
        for old, (new, _) in zip(graph.start.tolist(), times, strict=True)
    )
    train, valid, test = (made.start[made.span(split)] for split in tilp.SPLITS)
    assert (train < first).all() and (test >= first + years).all()
    assert ((first <= valid) & (valid < first + years)).all()
    if ends is not LateEnds.KEEP:
        assert (made.end[made.span("train")] < first).all()
    assert same_names(made, graph)


def graph_start(text):
    """Return the year that a start of `DATES` counts as."""
    return {"": UNKNOWN, "soon": UNKNOWN, "present": OPEN_START, "199#": 1990}.get(text) or int(
        text
    )


@given(ROWS)
def test_cuts_make_valid_and_test_as_large_as_they_can_be(rows):
    graph = read(rows)
    starts = [s for s in graph.start.tolist() if s not in (UNKNOWN, OPEN_START)]
    times = sorted(set(starts))
    if len(times) < 2:
        with pytest.raises(TilpError, match="needs facts with dates"):
            time_shift(graph)
        return
    valid, test = (len(graph.rows(split)) for split in ("valid", "test"))
    if not test:
        valid, test = valid or len(graph) // 10, len(graph) // 10
    count = lambda first, last: sum(first <= s < last for s in starts)  # noqa: E731
    second = min(times[1:], key=lambda t: (abs(count(t, 10_000) - test), -t))
    between = [t for t in times[1:] if t < second]
    first = second
    if valid and between:
        first = min(between, key=lambda t: (abs(count(t, second) - valid), -t))
    found = time_shift(graph)
    assert (found.valid_from, found.test_from) == (first, second)


@settings(max_examples=25)
@given(ROWS, st.sampled_from(LateEnds))
def test_a_split_is_read_back_as_it_was_made(tmp_path_factory, rows, ends):
    graph = read(rows)
    made = [balanced(graph, queries=2)]
    assume(len(set(graph.start[graph.start > OPEN_START].tolist())) > 2)
    made.append(time_shift(graph, ends=ends, latest=1998).graph)
    for graph in made:
        again = tilp.read(tilp.write(graph, tmp_path_factory.mktemp("split") / "out"))
        assert again == graph and again.fingerprint() == graph.fingerprint()


def test_names_and_attributes_stay(world):
    ids = pl.concat([world.entities.ids, pl.Series(["of no fact"])])
    names = Vocabulary("entity", ids, ids.str.to_uppercase(), "the " + ids)
    numbers = np.arange(len(names), dtype=np.float64)
    filled = tilp.impute(replace(world, entities=names, attributes={"size": numbers}))
    for made in (random_split(filled), balanced(filled), time_shift(filled, ends="keep").graph):
        assert same_names(made, filled) and made.entities.label(len(ids) - 1) == "the of no fact"
        assert made.attributes["size"].tolist() == numbers.tolist()
        assert Counter(made.frame().rows()) == Counter(filled.frame().rows())
    masked = time_shift(filled).graph
    lost = masked.end == UNKNOWN
    assert lost.any() and not (masked.estimated[lost] & 2).any()
    assert (masked.estimated & 1).sum() == (filled.estimated & 1).sum()


def test_defects_are_found_again_in_their_new_splits(facts):
    broken = facts.with_columns(pl.col("start").replace("1999", "2009"))  # after its end, 2004
    graph = tilp.read(broken)
    made = time_shift(graph, valid_from=1994, test_from=2000, latest=2020)
    assert made.graph.defects.select("split", "line", "defect").rows() == [
        ("test", 1, "start after end")
    ]
    late = time_shift(graph, valid_from=1990, test_from=1991, latest=2005, ends="keep")
    assert late.late_starts == 1 and not len(late.graph.defects)
    assert late.graph.end[-1] == graph.end[1] and 2004 in late.graph.end.tolist()


def test_time_shift_says_what_is_wrong(world):
    for wrong in ("soon", "", "present", "19##-13-45"):
        with pytest.raises(TilpError, match=r"the latest date is .*can be read in years"):
            time_shift(world, latest=wrong)
    with pytest.raises(TilpError, match="give both"):
        time_shift(world, valid_from=1990)
    with pytest.raises(TilpError, match="valid comes before test"):
        time_shift(world, valid_from=1990, test_from=1980)
    with pytest.raises(TilpError, match="test 0; both need some"):
        time_shift(world, valid_from=1990, test_from=1995, latest=1993)
    with pytest.raises(TilpError, match="it can be mask, drop, keep"):
        time_shift(world, ends="lose")
    with pytest.raises(TilpError, match="split the original data"):
        time_shift(few(world, 0.5))


def test_answers_that_only_removed_facts_state_are_no_errors(run, tmp_path, world):
    whole = balanced(world)
    data = tilp.write(whole, tmp_path / "whole")
    part = biased(whole, "playsFor", removed=0.8)
    options = {"max_length": 1, "features": "none", "n_jobs": 1}
    model = tilp.TILP(**options).fit(part)
    own, fair = model.evaluate(), model.evaluate(known=whole)
    for rank in ("rank_static_average", "rank_enumerate_average"):
        assert (fair.ranks[rank] <= own.ranks[rank]).all()
        assert (fair.ranks[rank] < own.ranks[rank]).any()
    tilp.compare(fair, tilp.TILP(**options).fit(whole).evaluate())  # of the same queries
    with pytest.raises(TilpError, match="other entities"):
        model.evaluate(known=tilp.datasets.world(seed=4, size=1_500).graph)
    model.save(tmp_path / "model")
    saved = tmp_path / "saved"
    command = ("evaluate", tmp_path / "model", "--known", data, "--out", saved, "--json")
    code, printed, err = run(*command)
    assert code == 0 and err == "" and json.loads(printed)
    assert load_evaluation(saved).ranks.equals(fair.ranks)


# published sets


def quietly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tilp.TilpWarning)
        return tilp.read(path)


@pytest.mark.parametrize("name", ["WIKIDATA12k", "YAGO11k"])
def test_balanced_has_the_counts_of_the_paper_s_files(published, name):
    graph = quietly(published / name)
    released = published / name / "tilp-release" / "biased"
    even = balanced(graph)
    for split in tilp.SPLITS:
        rows = quietly(released / f"{split}.txt")
        assert len(rows) == len(even.rows(split))
        if split == "test":
            counts = Counter(rows.frame()["relation"])
            assert counts == Counter(even.frame("test", names="ids")["relation"])
    for number, relation in enumerate(graph.relations.ids):
        left = len(biased(even, relation).targets)
        size = by_relation(even, "train")[number]
        assert left == len(even.targets) - size // 2
        lines = (released / f"train_rel_{relation}.txt").read_text().splitlines()
        before = (released / "train.txt").read_text().splitlines()
        theirs = [sum(line.split("\t")[1] == relation for line in part) for part in (before, lines)]
        assert theirs[0] - theirs[1] == theirs[0] // 2  # as many of theirs as of ours


TIME_SHIFT = {
    "WIKIDATA12k": ((33_368, 3_649, 3_604), 2010, 2013, 1_405, 0, 2_781),
    "YAGO11k": ((16_811, 1_823, 1_875), 2008, 2012, 7, 5, 798),
}


@pytest.mark.parametrize("name", TIME_SHIFT)
def test_time_shift_of_published_sets(published, name):
    graph = quietly(published / name)
    found = time_shift(graph, latest=2022)
    made = found.graph
    sizes = tuple(len(made.rows(split)) for split in tilp.SPLITS)
    counted = (found.valid_from, found.test_from, found.no_start, found.late_starts)
    assert (sizes, *counted, found.late_ends) == TIME_SHIFT[name]
    assert triples(made) == triples(graph)
    assert made.end[made.span("train")].max() < made.start[made.span("valid")].min()


@pytest.mark.parametrize(
    ("name", "late", "shared"), [("WIKIDATA12k", 5_765, 456), ("YAGO11k", 2_171, 111)]
)
def test_the_released_split_by_time_leaks(published, name, late, shared):
    released = quietly(published / name / "tilp-release" / "timeshift")
    cut = released.start[released.span("valid")].min()
    assert int((released.end[released.span("train")] >= cut).sum()) == late
    assert int((released.start[released.span("train")] == cut).sum()) == shared


# the command


@pytest.fixture
def data(world, tmp_path):
    return tilp.write(world, tmp_path / "data")


def note(folder):
    return json.loads((folder / "split.json").read_text())


def test_the_command_splits_at_random(run, tmp_path, data, world):
    out = tmp_path / "random"
    code, printed, err = run("split", data, "--out", out, "--kind", "random")
    made = random_split(world)
    assert code == 0 and err == "" and tilp.read(out) == made
    assert f"{len(made.rows('train')):,}" in printed and f"{len(made.rows('test')):,}" in printed
    told = note(out)
    assert [told[name] for name in ("kind", "seed", "valid", "test")] == ["random", 0, 0.1, 0.1]
    assert told["facts"] == {split: len(made.rows(split)) for split in tilp.SPLITS}
    assert told["fingerprint"] == made.fingerprint()
    assert told["source"]["fingerprint"] == world.fingerprint()
    options = ("--kind", "random", "--valid", 0, "--test", 0.3, "--seed", 5)
    assert run("split", data, "--out", tmp_path / "other", *options)[0] == 0
    assert tilp.read(tmp_path / "other") == random_split(world, valid=0, test=0.3, seed=5)


_KILLED = """
import os, signal, sys
import polars as pl
def killed(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)
module, name = {"rename": (os, "rename"), "write": (pl.DataFrame, "write_csv")}[sys.argv.pop(1)]
setattr(module, name, killed)
from tilp.cli import main
main()
"""


def test_a_killed_split_leaves_nothing_that_the_next_does_not_remove(run, tmp_path, data, world):
    options = ("split", data, "--out", tmp_path / "new", "--kind", "random")
    for moment in ("rename", "write"):
        command = [sys.executable, "-c", _KILLED, moment, *map(str, options)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert not (tmp_path / "new").exists()
        assert any(path.name.startswith(".") for path in tmp_path.iterdir())
    assert run(*options)[0] == 0 and tilp.read(tmp_path / "new") == random_split(world)
    assert {path.name for path in tmp_path.iterdir()} == {data.name, "new"}


def test_samples_and_biased_data_are_written_and_read_like_any_graph(tmp_path, world):
    made = few(world, 0.05, seed=2), biased(balanced(world), "playsFor", walked="kept")
    for name, graph in zip(("few", "biased"), made, strict=True):
        again = tilp.read(tilp.write(graph, tmp_path / name))
        assert again == graph and len(again.targets) == len(graph.targets) < len(world.targets)


def test_the_command_splits_by_time(run, tmp_path, data, world):
    out = tmp_path / "later"
    dates = ("--valid-from", 1985, "--test-from", 1995, "--latest", 2000)
    code, printed, err = run("split", data, "--out", out, "--kind", "time-shift", *dates)
    found = time_shift(world, valid_from=1985, test_from=1995, latest=2000)
    assert code == 0 and err == "" and tilp.read(out) == found.graph
    told = note(out)
    assert told["starts"]["test"][0] >= "1995" and told["latest"] == "2000"
    assert told["late_starts"] == found.late_starts > 0 and told["ends"] == "mask"
    assert f"starts after 2000: {found.late_starts:,} (taken for unknown)" in printed
    assert f"from 1985 on, or go on: {found.late_ends:,} (unknown)" in printed


def test_the_command_says_what_is_wrong(run, tmp_path, data):
    out = tmp_path / "out"
    for options, words in (
        (("random", "--latest", 2000), "--latest is for --kind time-shift, not random"),
        (("time-shift", "--seed", 0), "--seed is for --kind random, not time-shift"),
        (("time-shift", "--test", 0.1), "--test is for --kind random, not time-shift"),
        (("random", "--test", 0.0001), "too few facts to split"),
        (("random", "--test", 1), "less than 1 for both together"),
        (("time-shift", "--valid-from", "soon", "--test-from", 1990), "'soon'"),
    ):
        code, _, err = run("split", data, "--out", out, "--kind", *options)
        assert code == 2 and words in err and not out.exists()
    assert list(tmp_path.iterdir()) == [data]  # nothing half done is left
    code, _, err = run("split", data, "--out", data, "--kind", "random")
    assert code == 2 and "not empty" in err


def test_the_command_teaches(run):
    code, out, _ = run("split", "--help")
    words = "DATA --out --kind random time-shift --valid --test 80 --seed --valid-from"
    words += " --test-from --latest --ends mask drop keep split.json"
    assert code == 0 and [word for word in words.split() if word not in out] == []
    assert "--share" in run("fit", "--help")[1]


# released


def test_released_splits_take_the_names_of_the_data_and_walk_on_more(tmp_path):
    rows = [("a", "p", "b", "1990", "1991", "train"), ("b", "q", "c", "1992", "", "valid")]
    data = read([*rows, ("d", "q", "e", "1993", "1994", "test")])
    train, valid = ["b\tp\ta\t1990\t1991"], ["a\tq\tc\t1995\t1996"]
    further = ["c\tp\td\t1980\t1981"]
    test = ["a\tq\td\t1999\t2000"]
    for name, lines in {
        "train": train, "valid": valid, "test": test, "bg": train + valid + further
    }.items():  # fmt: skip
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    plain, walking = released(data, tmp_path), released(data, tmp_path, "bg.txt")
    assert plain.graph == plain.learned == plain.applied == walking.graph
    assert same_names(plain.graph, data) and len(plain.graph) == 3
    # What valid asks for is not there while valid decides.
    assert triples(walking.learned, "train") == Counter([("b", "p", "a"), ("c", "p", "d")])
    assert triples(walking.applied, "train") == triples(walking.learned, "train") + Counter(
        [("a", "q", "c")]
    )
    for graph in (walking.learned, walking.applied):
        assert [graph.fact(row).subject for row in graph.targets] == ["b"]
        assert triples(graph, "test") == Counter([("a", "q", "d")])
    # The same date may be written in another way.
    walked = tmp_path / "bg.txt"
    walked.write_text(re.sub(r"\b(199[05])\b", r"\1-##-##", walked.read_text()))
    again = released(data, tmp_path, "bg.txt")
    assert triples(again.learned, "train") == triples(walking.learned, "train")
    with pytest.raises(TilpError, match="no such folder"):
        released(data, tmp_path / "nothing")


def test_the_released_time_shift_walks_on_train_and_valid(published):
    data = tilp.read(published / "YAGO11k")
    found = released(data, published / "YAGO11k" / "tilp-release" / "timeshift", "bg.txt")
    assert found.learned == found.graph
    assert triples(found.applied, "train") == triples(found.graph, "train") + triples(
        found.graph, "valid"
    )
