"""Bulk prediction: the same as small prediction, streamed to parts, whatever stops it."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from tilp import TILP, Query, TILPConfig
from tilp._kernels.candidates import best_candidates, softmax_totals
from tilp._utils.files import locked
from tilp.errors import TilpError
from tilp.model.batch_predict import invalid_queries
from tilp.model.query_sources import QueryFile, QueryFrame
from tilp.scoring import Scores
from tilp.scoring.queries import QueryColumns, query_table
from tilp.scoring.topk import QueryBatches

FIELDS = ("relation", "subject", "object", "start", "end")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tilp.write(tilp.datasets.world(1, 1_000).graph, tmp_path_factory.mktemp("d") / "world")


@pytest.fixture(scope="module", params=["none", "full"])
def model(request, data, quick_features):
    options = {"config": TILPConfig(sample=40)} if request.param == "full" else {}
    return TILP(1, features=request.param, n_jobs=2, **options).fit(tilp.read(data))


@pytest.fixture(scope="module")
def rules_model(data):
    return TILP(1, features="none", n_jobs=2, config=TILPConfig(sample=40)).fit(tilp.read(data))


@pytest.fixture(scope="module")
def folder(rules_model, tmp_path_factory):
    return rules_model.save(tmp_path_factory.mktemp("m") / "model")


def some_queries(graph, n, seed=0):
    """Random ones, some of which are asked twice; names as labels, dates in all shapes."""
    chance = np.random.default_rng(seed)
    facts = graph.frame("train")[chance.integers(0, graph.bounds[1], n)]
    years = chance.integers(1900, 2000, n)
    starts = [f"{year}" if year % 5 else (None if year % 2 else f"{year}-06-01") for year in years]
    ends = [f"{year + 3}" if year % 3 else None for year in years]
    asks_object = chance.random(n) < 0.5
    rows = [
        (one["relation"], *((one["subject"], None) if obj else (None, one["object"])), start, end)
        for one, obj, start, end in zip(facts.to_dicts(), asks_object, starts, ends, strict=True)
    ]
    rows[n // 2 :: 7] = rows[: len(rows[n // 2 :: 7])]
    return pl.DataFrame(rows, dict.fromkeys(FIELDS, pl.String), orient="row")


def parts_of(folder):
    return pl.concat([pl.read_parquet(path) for path in sorted(folder.glob("part-*.parquet"))])


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# The best candidates


@st.composite
def scored(draw):
    n = draw(st.integers(1, 12))
    queries = draw(st.integers(0, 4))
    number = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 1.0, 3.0])
    listed = [draw(st.lists(st.integers(0, n - 1), unique=True)) for _ in range(queries)]
    sizes = [len(one) for one in listed]
    return n, Scores(
        np.append(0, np.cumsum(sizes)).astype(np.int64),
        np.array([entity for one in listed for entity in one], np.int32),
        np.array([draw(number) for _ in range(sum(sizes))]),
        np.array([draw(number) for _ in range(queries)]),
        temperature=draw(st.sampled_from([None, 0.5, 1.0])),
    )


def dense(scores, query, n):
    score = np.full(n, scores.defaults[query])
    part = slice(scores.offsets[query], scores.offsets[query + 1])
    score[scores.candidate[part]] = scores.score[part]
    return score


@settings(max_examples=200)
@given(scored(), st.data())
def test_the_best_are_those_of_a_stable_sort(found, data):
    n, scores = found
    most = np.array([data.draw(st.integers(1, n)) for _ in range(len(scores))], np.int64)
    begin, entity, score = best_candidates(
        scores.offsets, scores.candidate, scores.score, scores.defaults, most, n
    )
    for query in range(len(scores)):
        every = dense(scores, query, n)
        order = np.argsort(-every, kind="stable")[: most[query]]
        part = slice(begin[query], begin[query + 1])
        assert entity[part].tolist() == order.tolist()
        assert score[part].tolist() == every[order].tolist()


@settings(max_examples=100)
@given(scored())
def test_shares_are_of_all_candidates(found):
    n, scores = found
    for query in range(len(scores)):
        every = dense(scores, query, n)
        share = every
        if scores.temperature is not None:
            share = np.exp((every - every.max()) / scores.temperature)
            greatest, total = softmax_totals(
                scores.offsets, scores.score, scores.defaults, n, scores.temperature
            )
            assert greatest[query] == every.max()
            assert total[query] == pytest.approx(share.sum(), rel=1e-12)
        expected = share / share.sum() if share.sum() > 0 else np.zeros(n)
        told = scores.shares(np.full(n, query), every, n)
        if abs(share.sum()) > 1e-9 or share.sum() == 0:
            assert told == pytest.approx(expected, rel=1e-9, abs=1e-12)


def plain_prediction(model, queries, k, new_only=False):
    """One query at a time, from the scores of all entities."""
    graph, rows = model.graph, []
    touching = model.predict(queries, len(graph.entities)).filter("known")
    known = set(touching.select("query", "id").iter_rows())
    for number, row in enumerate(queries.to_dicts()):
        scores = model.scorer()(query_table(graph, [Query(**row)]))
        every = dense(scores, 0, len(graph.entities))
        taken = 0
        for rank, entity in enumerate(np.argsort(-every, kind="stable").tolist(), start=1):
            is_known = (number, graph.entities.ids[entity]) in known
            if taken < k and not (new_only and is_known):
                taken += 1
                share = scores.shares(np.array([0]), every[[entity]], len(every))[0]
                names = (graph.entities.label(entity), graph.entities.ids[entity])
                rows.append((number, rank, *names, every[entity], share, is_known))
    columns = ("query", "rank", "candidate", "id", "score", "share", "known")
    return pl.DataFrame(rows, columns, orient="row")


@pytest.mark.parametrize("new_only", [False, True])
def test_parts_are_what_is_predicted_bit_for_bit(tmp_path, model, new_only):
    queries = some_queries(model.graph, 150)
    found = model.predict_to(tmp_path / "out", queries, 7, new_only=new_only, part_size=40)
    assert (found.queries, found.skipped, found.parts, found.before) == (150, 0, 4, 0)
    predicted = model.predict(queries, 7, new_only=new_only)
    together = parts_of(tmp_path / "out")
    assert together.equals(predicted) and together.schema == predicted.schema
    asked = together.select("query", *FIELDS).unique(maintain_order=True)
    assert asked.drop("query").equals(queries)
    few = queries[::10]
    plain = plain_prediction(model, few, 7, new_only)
    assert model.predict(few, 7, new_only=new_only).select(plain.columns).equals(plain)
    if new_only:
        assert not together["known"].any()
        assert (together["rank"] > 7).any()  # ranks are those among all


def test_threads_and_part_sizes_change_nothing(tmp_path, rules_model):
    queries = some_queries(rules_model.graph, 130)
    before = rules_model.n_jobs
    try:
        for threads in (1, 3):
            rules_model.n_jobs = threads
            rules_model.predict_to(tmp_path / f"{threads}", queries, part_size=50)
    finally:
        rules_model.n_jobs = before
    assert contents(tmp_path / "1") == contents(tmp_path / "3")
    rules_model.predict_to(tmp_path / "one", queries)
    assert parts_of(tmp_path / "one").equals(parts_of(tmp_path / "1"))


def test_chunks_are_small_and_ask_each_query_once(model):
    scorer, n = model.scorer(), len(model.graph.entities)
    table = QueryColumns.of(some_queries(model.graph, 200)).table(model.graph)
    batch = QueryBatches(table, scorer)
    asked = {
        tuple(row)
        for row in zip(table.subject, table.directed_relation, *table.given_dates(), strict=True)
    }
    assert sum(map(len, batch.rows)) == len(asked) < 200
    assert sum(map(len, QueryBatches(table, scorer, keep_duplicates=True).rows)) == 200
    many = QueryBatches(table, scorer, max_memory=5 * n)
    assert len(many.rows) > len(batch.rows)
    assert np.array_equal(np.concatenate(many.rows), np.concatenate(batch.rows))
    for chunk in many:
        assert len(chunk) == 1 or len(scorer(chunk).candidate) <= 6 * n


# Queries from files


@pytest.mark.parametrize("name", ["q.tsv", "q.csv", "q.csv.gz", "q.TSV.gz", "q.parquet", "q.pq"])
def test_queries_from_any_file_are_the_same(tmp_path, rules_model, name):
    queries = some_queries(rules_model.graph, 30)
    path = tmp_path / name
    if name.endswith(("parquet", "pq")):
        queries.write_parquet(path, row_group_size=7)
    else:
        separator = "\t" if "tsv" in name.lower() else ","
        text = queries.write_csv(separator=separator).encode()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    source = QueryFile(path)
    assert source.frame().equals(queries)
    slices = list(source.slices(8))
    assert [one.first for one in slices] == [0, 8, 16, 24]
    assert pl.concat([one.columns.text for one in slices]).select(FIELDS).equals(queries)
    first = slices[1].lines[0]
    is_table = name.endswith(("parquet", "pq"))
    assert f"{source.row_name} {first}" == f"{path}, {'row 9' if is_table else 'line 10'}"
    rules_model.predict_to(tmp_path / "out", path, 2, part_size=8)
    assert parts_of(tmp_path / "out").equals(rules_model.predict(queries, 2))


def test_no_queries_are_one_part_without_rows(tmp_path, rules_model):
    path = tmp_path / "q.csv"
    path.write_text("relation,subject\n")
    found = rules_model.predict_to(tmp_path / "out", path)
    assert (found.queries, found.parts) == (0, 1)
    together = parts_of(tmp_path / "out")
    assert len(together) == 0 and together.schema == rules_model.predict([]).schema


# Queries that cannot be asked


@pytest.fixture
def wrong(tmp_path, rules_model):
    """A file of ten queries of which three cannot be asked."""
    queries = some_queries(rules_model.graph, 10)
    rows = queries.to_dicts()
    rows[3] = {**rows[3], "subject": "Nobody at all", "object": None}
    rows[4] = {**rows[4], "start": "soon"}
    rows[9] = {**rows[9], "subject": None, "object": None}
    path = tmp_path / "wrong.tsv"
    pl.DataFrame(rows, queries.schema).write_csv(path, separator="\t")
    return path


def test_what_cannot_be_asked_is_refused_before_anything_runs(tmp_path, rules_model, wrong):
    with pytest.raises(TilpError) as refused:
        rules_model.predict_to(tmp_path / "out", wrong, part_size=2)
    message = str(refused.value)
    assert message.startswith(f"{wrong}, line 5, (Nobody at all, ")
    assert (
        "no entity is named 'Nobody at all'" in message and "and so are 2 others of 10" in message
    )
    assert "--on-error skip" in message and not (tmp_path / "out").exists()


def test_what_cannot_be_asked_is_skipped_and_told(tmp_path, rules_model, wrong):
    out = tmp_path / "out"
    found = rules_model.predict_to(out, wrong, 2, on_error="skip", part_size=4)
    assert (found.queries, found.skipped, found.parts) == (10, 3, 3)
    skipped = pl.concat([pl.read_parquet(path) for path in sorted(out.glob("skipped-*"))])
    assert skipped["query"].to_list() == [3, 4, 9] and skipped["line"].to_list() == [5, 6, 11]
    asked = QueryFile(wrong).frame()
    assert skipped.select(FIELDS).equals(asked[[3, 4, 9]])
    for text, reason in zip(("no entity", "'soon'", "neither"), skipped["reason"], strict=True):
        assert text in reason
    answered = [0, 1, 2, 5, 6, 7, 8]
    together = parts_of(out)
    assert together["query"].unique(maintain_order=True).to_list() == answered
    expected = rules_model.predict(asked[answered], 2)
    assert together.drop("query").equals(expected.drop("query"))
    assert {path.name for path in out.glob("skipped-*")} == {
        "skipped-00000.parquet", "skipped-00001.parquet", "skipped-00002.parquet",
    }  # fmt: skip
    with pytest.raises(TilpError, match=r"all 2 queries are invalid; the first: query 1"):
        rules_model.predict_to(tmp_path / "b", asked[[3, 4]], on_error="skip")


def test_near_names_are_looked_for_a_few_times_only(rules_model):
    graph = rules_model.graph
    name = graph.entities.label(0)
    rows = [{"relation": "livesIn", "subject": f"{name}{letter}"} for letter in "!?."]
    rows.append({"relation": "livesIn", "subject": name})
    (queries,) = QueryFrame(pl.DataFrame(rows)).slices(10)
    reasons = invalid_queries(queries, np.array([3]), graph, max_near_names=2)["reason"]
    assert [f"did you mean {name!r}" in one for one in reasons] == [True, True, False]


# Folders that are gone on with


def test_a_folder_is_gone_on_with_and_says_when_it_is_finished(tmp_path, rules_model, monkeypatch):
    queries = some_queries(rules_model.graph, 60)
    whole, out = tmp_path / "whole", tmp_path / "out"
    rules_model.predict_to(whole, queries, part_size=9)
    written = []

    def stop(frame, file, **_):
        """Ends in the middle of writing the fourth part."""
        written.append(len(frame))
        if len(written) == 4:
            file.write(b"PAR1 half of it")
            raise KeyboardInterrupt
        return original(frame, file)

    original = pl.DataFrame.write_parquet
    with monkeypatch.context() as patched:
        patched.setattr(pl.DataFrame, "write_parquet", stop)
        with pytest.raises(KeyboardInterrupt):
            rules_model.predict_to(out, queries, part_size=9)
    assert len(list(out.glob("part-*.parquet"))) == 3
    assert not json.loads((out / "predict.json").read_text())["finished"]
    asked = []
    original_score = type(rules_model.scorer()).score
    monkeypatch.setattr(
        type(rules_model.scorer()),
        "score",
        lambda scorer, table: asked.append(len(table)) or original_score(scorer, table),
    )
    found = rules_model.predict_to(out, queries, part_size=9)
    assert (found.parts, found.before) == (7, 3) and 0 < sum(asked) <= 60 - 27
    assert contents(out) == contents(whole)
    asked.clear()
    assert rules_model.predict_to(out, queries, part_size=9).before == 7 and not asked
    (out / "part-00002.parquet").unlink()  # lost after all was done
    assert rules_model.predict_to(out, queries, part_size=9).before == 6
    assert contents(out) == contents(whole)


def test_a_folder_of_something_else_is_refused(tmp_path, rules_model, data):
    queries = some_queries(rules_model.graph, 12)
    out = tmp_path / "out"
    rules_model.predict_to(out, queries, 3, part_size=5)
    before = contents(out)
    other = TILP(1, features="none", n_jobs=2, config=TILPConfig(sample=39)).fit(tilp.read(data))
    changed = queries.with_columns(start=pl.lit("1950"))
    elsewhere = tilp.datasets.world(2, 1_000).graph
    for ask, words in (
        (lambda: rules_model.predict_to(out, queries, 4, part_size=5), "k = 3, not 4"),
        (lambda: rules_model.predict_to(out, queries, 3, part_size=6), "part_size = 5, not 6"),
        (lambda: rules_model.predict_to(out, queries, 3, explain=1, part_size=5), "explain = 0"),
        (lambda: rules_model.predict_to(out, changed, 3, part_size=5), "with other queries"),
        (lambda: other.predict_to(out, queries, 3, part_size=5), "with another model"),
        (
            lambda: rules_model.predict_to(out, queries, 3, part_size=5, graph=elsewhere),
            "with other data",
        ),
    ):
        with pytest.raises(TilpError, match=words):
            ask()
        assert contents(out) == before
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(TilpError, match="not empty, and holds no predictions"):
        rules_model.predict_to(mine, queries)
    for text in ("[]", "{", '{"format": "tilp predictions", "version": 99}'):
        (mine / "predict.json").write_text(text)
        with pytest.raises(
            TilpError, match=r"predict\.json: (not a note of|damaged|written in version 99)"
        ):
            rules_model.predict_to(mine, queries)
    with pytest.raises(TilpError, match="cannot be written"):
        rules_model.predict_to(mine / "thesis.txt", queries)
    assert (mine / "thesis.txt").read_text() == "years of work"


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_two_processes_do_not_work_in_one_folder(tmp_path, rules_model):
    queries = some_queries(rules_model.graph, 4)
    out = tmp_path / "out"
    out.mkdir()
    with locked(out), pytest.raises(TilpError, match="another process is at work"):
        rules_model.predict_to(out, queries)
    assert rules_model.predict_to(out, queries).parts == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"explain": -1}, "explain is -1"),
        ({"part_size": 0}, "part_size is 0"),
        ({"on_error": "repair"}, "on_error is 'repair'; it can be raise, skip"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, rules_model, options, message):
    with pytest.raises(TilpError, match=message):
        rules_model.predict_to(tmp_path / "out", some_queries(rules_model.graph, 2), **options)
    assert not (tmp_path / "out").exists()


def kill_at_part(command, folder, number):
    """Run a command and kill it as soon as a part is being written."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    names = (f".part-{number:05d}.parquet.partial", f"part-{number:05d}.parquet")
    try:
        while process.poll() is None and not any((folder / name).exists() for name in names):
            time.sleep(0.001)
    finally:
        process.kill()
        process.wait()
    return process.returncode


def test_a_run_that_is_killed_again_and_again_writes_the_same_parts(run, tmp_path, folder):
    path = tmp_path / "q.parquet"
    some_queries(tilp.load(folder).graph, 6_000).write_parquet(path)
    options = ("--queries", path, "--part-size", 200, "-k", 3, "--threads", 1)
    code, printed, _ = run("predict", folder, *options, "--out", tmp_path / "whole")
    assert code == 0 and "6,000 queries answered in 30 parts" in printed
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "tilp", "predict", folder, *options, "--out", out]
    for number in (2, 11):
        assert kill_at_part(list(map(str, command)), out, number) == -signal.SIGKILL
        there = len(list(out.glob("part-*.parquet")))
        assert number <= there < 30
    code, printed, _ = run("predict", folder, *options, "--out", out)
    assert code == 0 and "of them from before" in printed
    assert contents(out) == contents(tmp_path / "whole")
    code, printed, _ = run("predict", folder, *options, "--out", out, "--json")
    assert code == 0 and json.loads(printed)["before"] == 30


# Explanations, and whole relations


def test_explanations_are_those_of_explain(tmp_path, model):
    queries = some_queries(model.graph, 6)
    model.predict_to(tmp_path / "out", queries, 3, explain=2, part_size=4)
    found = parts_of(tmp_path / "out")
    assert found.drop("explanation").equals(model.predict(queries, 3))
    assert found["explanation"].is_null().to_list() == [False, False, True] * 6
    for row in found.filter(pl.col("rank") <= 2).iter_rows(named=True):
        query = Query(**{name: row[name] for name in FIELDS})
        told = json.loads(row["explanation"])
        expected = model.explain(query, row["id"]).to_json()
        assert told == json.loads(json.dumps(expected, default=str))
        for name in ("candidate", "rank", "score", "share", "known"):
            assert told[name] == row[name]


def test_complete_and_out_from_the_command_line(run, tmp_path, folder, rules_model):
    graph = rules_model.graph
    subjects = graph.frame("train").filter(relation="diedIn")["subject"].unique()
    options = ("--complete", "diedIn", "--all-subjects", "--start", "1970", "-k", 2)
    code, printed, err = run("predict", folder, *options, "--out", tmp_path / "out")
    assert code == 0 and f"{len(subjects):,} queries answered in 1 part\n" in printed
    assert err.splitlines()[0] == "check the queries …" and "answer them" in err
    found = parts_of(tmp_path / "out")
    assert set(found["subject"]) == set(subjects) and set(found["start"]) == {"1970"}
    code, printed, err = run("predict", folder, *options, "--json")
    assert code == 0 and err.startswith("evidence: the facts of train")
    assert json.loads(printed) == found.to_dicts()
    inverse = ("--complete", "diedIn^-1", "--all-subjects", "--new-only", "--json")
    code, printed, _ = run("predict", folder, *inverse)
    objects = graph.frame("train").filter(relation="diedIn")["object"].unique()
    told = json.loads(printed)
    assert {row["object"] for row in told} == set(objects) and not any(row["known"] for row in told)
    other = tilp.datasets.world(7, 1_000).graph
    tilp.write(other, tmp_path / "other")
    code, printed, _ = run("predict", folder, *options, "--data", tmp_path / "other", "--json")
    there = other.frame("train").filter(relation="diedIn")["subject"].unique()
    assert code == 0 and {row["subject"] for row in json.loads(printed)} == set(there)


def test_skipped_queries_are_told_by_the_command(run, tmp_path, folder, wrong):
    options = ("predict", folder, "--queries", wrong, "--out", tmp_path / "out", "-k", 1)
    code, _, err = run(*options)
    assert code == 2 and f"{wrong}, line 5" in err and "--on-error skip" in err
    code, printed, _ = run(*options, "--on-error", "skip")
    assert code == 0 and "7 queries answered" in printed
    assert f"3 queries could not be answered: see {tmp_path / 'out'}{os.sep}skipped-" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--relation", "livesIn", "--subject", "x", "--out", "o"), "--out goes with --queries"),
        (("--complete", "livesIn", "--explain", "1"), "go with --out FOLDER"),
        (("--complete", "livesIn", "--part-size", "1"), "go with --out FOLDER"),
        (("--complete", "livesIn", "--on-error", "skip"), "go with --out FOLDER"),
        (("--complete", "livesIn", "--subject", "x"), "goes with --start and --end only"),
        (("--complete", "livesIn", "--queries", "q.tsv"), "not both"),
        (("--queries", "q.tsv", "--all-subjects"), "--all-subjects goes with --complete"),
        (("--complete", "livesin"), "did you mean 'livesIn'"),
        (("--complete", "livesIn", "--start", "soon", "--out", "o"), "'soon' is not a date"),
        (("--queries", "q.tsv", "--out", "o"), "q.tsv: no such file"),
    ],
)
def test_what_does_not_go_together_is_said(run, tmp_path, folder, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("predict", folder, *arguments)
    assert code == 2 and message in err and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_run_stopped_by_hand_says_how_to_go_on(run, tmp_path, folder, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    options = ("predict", folder, "--complete", "livesIn", "--out", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr("tilp.model.batch_predict.Part.predictions", stop)
        code, _, err = run(*options)
    assert code == 2 and f"the same command goes on from what is in {tmp_path / 'out'}" in err
    assert run(*options)[0] == 0


def test_many_printed_queries_are_warned_of(run, tmp_path, folder, monkeypatch):
    monkeypatch.setattr("tilp.cli.predict._MANY", 2)
    code, _, err = run("predict", folder, "--complete", "livesIn", "-k", 1, "--json")
    assert code == 0 and "with --out FOLDER they are written" in err


def test_queries_that_change_while_they_are_asked_are_refused(rules_model, tmp_path):
    queries = some_queries(rules_model.graph, 60)
    queries.write_parquet(tmp_path / "q.parquet")

    def change(stage, _done, _all):
        if stage == "predict":
            queries.reverse().write_parquet(tmp_path / "q.parquet")

    with pytest.raises(TilpError, match="changed while its queries were answered"):
        rules_model.predict_to(
            tmp_path / "out", tmp_path / "q.parquet", part_size=20, progress=change
        )
    note = json.loads((tmp_path / "out" / "predict.json").read_text())
    assert not note["finished"]


def test_a_part_that_was_cut_off_is_asked_again(rules_model, tmp_path):
    queries = some_queries(rules_model.graph, 60)
    out = tmp_path / "out"
    rules_model.predict_to(out, queries, 3, part_size=20)
    whole = contents(out)
    with (out / "part-00001.parquet").open("r+b") as file:
        file.truncate(100)
    assert rules_model.predict_to(out, queries, 3, part_size=20).before == 2
    assert contents(out) == whole
