"""The file and line that each fact came from, and the facts that answer a query already."""

import csv
import gzip
import io
import json
import warnings
from contextlib import contextmanager
from dataclasses import asdict, replace

import httpx
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import tilp
from models import FAST, fact_table
from serving import running
from strategies import read_or_skip, shared_queries
from tilp import TILP, Query
from tilp._utils.files import note_digest
from tilp.cli import app
from tilp.graph import KnownFact, known_facts, merge_facts
from tilp.graph.sources import SourceFiles
from tilp.learning import known_answers
from tilp.splits.folders import released
from tilp.splits.kinds import LEFT_OUT, exclude_from_training, reassign_splits
from tilp.time import known_ends
from tilp.time.imputation import MissingDates
from tilp.types import Missing, WalkGraph

DATES = st.sampled_from(["1990", "1992", "1995", "x", ""])
NAMES = st.sampled_from(["a", "b,c", 'say "d"', "two\nlines", "e"])
ROWS = st.lists(st.tuples(NAMES, st.just("r"), NAMES, DATES, DATES), min_size=1, max_size=12)
HEADER = ("subject", "relation", "object", "start", "end")


@contextmanager
def quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tilp.TilpWarning)
        yield


def texts(graph, row):
    """A fact as it was written."""
    fact, dates = graph.fact(row), (graph.date_text(end)[row] for end in ("start", "end"))
    return (fact.subject, fact.relation, fact.object, *dates)


def record(folder, source, separator=","):
    """The row that begins in a line of a file, read as an editor counts lines."""
    name, _, line = source.rpartition(":")
    path = folder / name
    text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    lines = text.decode().split("\n")[int(line) - 1 :]
    quoting = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    rest = io.StringIO("\n".join(lines), newline="")
    return tuple(next(csv.reader(rest, delimiter=separator, quoting=quoting)))


def write_rows(path, rows, separator=",", header=True, blank=()):
    """Write a table by hand, with blank lines before some of its rows."""
    file = io.StringIO(newline="")
    if header:
        file.write(separator.join(HEADER) + "\n")
    for number, row in enumerate(rows):
        file.write("\n" * (number in blank))
        if separator == "\t":
            file.write("\t".join(row) + "\n")
        else:
            csv.writer(file, lineterminator="\n").writerow(row)
    content = file.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@settings(max_examples=60, deadline=None)
@given(
    rows=ROWS,
    suffix=st.sampled_from(["csv", "tsv", "csv.gz"]),
    header=st.booleans(),
    blank=st.sets(st.integers(0, 11)),
    on_error=st.sampled_from(["repair", "skip"]),
    packed=st.booleans(),
)
def test_the_line_of_a_fact_holds_it(
    tmp_path_factory, rows, suffix, header, blank, on_error, packed
):
    folder, separator = tmp_path_factory.mktemp("data"), "\t" if suffix == "tsv" else ","
    if suffix == "tsv":
        rows = [tuple(cell.replace("\n", " ") for cell in row) for row in rows]
    write_rows(folder / f"train.{suffix}", rows, separator, header, blank)
    choices = {"on_error": on_error, "header": header, "unit": "year"}
    with quietly():
        graph = read_or_skip(folder, **choices)
        if packed:  # a line or two at a time
            graph = tilp.pack(folder, folder / "packed", **choices, memory=2_000)
            assert tilp.read(folder, **choices).canonical() == graph
    for row in range(len(graph)):
        assert record(folder, graph.source(row), separator) == texts(graph, row)
    assert len({graph.source(row) for row in range(len(graph))}) == len(graph)


def test_names_of_files_and_rows_where_there_are_no_lines(tmp_path):
    facts = fact_table(("a", "r", "b", 1990, 1990), ("b", "r", "c", 1991, 1991))
    facts.write_csv(tmp_path / "facts.csv")
    facts.write_parquet(tmp_path / "train.parquet")
    (tmp_path / "sub").mkdir()
    facts.write_csv(tmp_path / "sub" / "facts.csv")
    assert tilp.read(tmp_path / "facts.csv").source(1) == "facts.csv:3"
    assert tilp.read(tmp_path / "train.parquet").source(1) == "train.parquet, row 2"
    assert tilp.read(facts).source(1) == "the frame, row 1"
    two = tilp.read({"train": facts, "test": facts[1:]})
    assert [two.source(row) for row in (1, 2)] == [
        "the train frame, row 1",
        "the test frame, row 0",
    ]
    paths = [f"{tmp_path}/facts.csv", f"{tmp_path}/sub/facts.csv"]
    same = tilp.read(dict(zip(("train", "test"), paths, strict=True)))
    assert [same.source(row) for row in (0, 2)] == [f"{path}:2" for path in paths]
    split = facts.with_columns(split=pl.Series(["test", "train"]))
    split.write_csv(tmp_path / "split.csv")
    packed = tilp.pack(tmp_path / "split.csv", tmp_path / "packed")
    for graph in (tilp.read(tmp_path / "split.csv"), packed):
        assert [graph.source(row) for row in (0, 1)] == ["split.csv:3", "split.csv:2"]
    assert tilp.datasets.world(0, 1_000).graph.source(0) == "unknown"


def test_a_source_takes_four_bytes_until_there_are_too_many_lines():
    files = SourceFiles.of([("a:", 9), ("a:", 17), ("b:", 2**31 - 20)])
    assert files.dtype == np.int32 and files.text(18 + 2**31 - 20) == f"b:{2**31 - 20}"
    more = files.join(SourceFiles.of([("c:", 5)]))
    assert more.dtype == np.int64 and more.text(more.bounds[2] + 5) == "c:5"
    assert more.encode("c:", [5]).tolist() == [more.bounds[2] + 5]


@settings(max_examples=40, deadline=None)
@given(first=ROWS, second=ROWS, known=st.booleans(), seed=st.integers(0, 99), removed=st.booleans())
def test_sources_stay_with_their_facts(tmp_path_factory, first, second, known, seed, removed):
    folder = tmp_path_factory.mktemp("data")
    write_rows(folder / "first.csv", first)
    write_rows(folder / "second.csv", second)
    with quietly():
        old, new = (read_or_skip(folder / f"{n}.csv", unit="year") for n in ("first", "second"))
    if not known:
        old = replace(old, source_line=np.empty(0, np.int32), source_files=SourceFiles())
    merged = merge_facts(old, new)
    graph = merged.graph
    random = np.random.default_rng(seed)
    if removed:
        graph = graph.without(np.flatnonzero(random.random(len(graph)) < 0.3))
    graph = reassign_splits(graph, random.integers(0, LEFT_OUT + 1, len(graph)).astype(np.uint8))
    graph = exclude_from_training(graph, graph.targets[:1], WalkGraph.FULL)
    graph = MissingDates(Missing.OPEN).fill_graph(tilp.impute(graph))
    estimated = graph.estimated > 0
    for row in range(len(graph)):
        source = graph.source(row)
        if source == "unknown":
            assert not known
        elif not estimated[row]:  # else the text of the date is the estimate
            assert record(folder, source) == texts(graph, row)
        else:
            assert record(folder, source)[:3] == texts(graph, row)[:3]


def test_a_duplicate_keeps_the_first_source_and_a_superseded_fact_gets_the_new_one(tmp_path):
    write_rows(tmp_path / "old.csv", [("a", "r", "b", "1990", ""), ("b", "r", "c", "1", "2")])
    write_rows(tmp_path / "new.csv", [("b", "r", "c", "1", "2"), ("a", "r", "b", "1990", "1993")])
    old, new = (tilp.read(tmp_path / name) for name in ("old.csv", "new.csv"))
    merged = merge_facts(old, new).graph
    assert [merged.source(row) for row in range(len(merged))] == ["new.csv:3", "old.csv:3"]
    made = merge_facts(tilp.datasets.world(0, 1_000).graph, new).graph
    assert {made.source(row) for row in range(len(made))} == {"unknown", "new.csv:2", "new.csv:3"}


def test_published_splits_keep_their_sources(tmp_path):
    rows = [(name, "r", "z", "1990", "1990") for name in "abcd"]
    for name, some in (("train", rows[:2]), ("valid", rows[2:3]), ("test", rows[3:]), ("bg", rows)):
        write_rows(tmp_path / f"{name}.txt", some, "\t", header=False)
    data = tilp.read(fact_table(*rows))
    applied = released(data, tmp_path, "bg.txt").applied
    found = [applied.source(row) for row in range(len(applied))]
    assert found == [
        "train.txt:1",
        "train.txt:2",
        "bg.txt:3",
        "bg.txt:4",
        "valid.txt:1",
        "test.txt:1",
    ]


def test_workers_fetch_sources_when_they_need_them(tmp_path):
    transfer = pytest.importorskip("tilp.parallel.transfer")
    write_rows(tmp_path / "facts.csv", [("a", "r", "b", "1990", "1990")])
    graph, store = tilp.read(tmp_path / "facts.csv"), []

    def put(value):
        store.append(value)
        return len(store) - 1

    packed = transfer.SharedPacker(put).pack(graph)
    fetched = []

    def get(refs):
        fetched.extend(refs)
        return [store[ref] for ref in refs]

    there = transfer.SharedUnpacker(get).unpack(packed)
    before = len(fetched)
    assert there.subject.tolist() == [0] and len(fetched) == before
    assert there.source(0) == "facts.csv:2" and len(fetched) > before


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tilp.write(tilp.datasets.world(1, 1_000).graph, tmp_path_factory.mktemp("d") / "world")


@pytest.fixture(scope="module")
def model(data):
    return TILP(**FAST).fit(tilp.read(data))


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("m") / "model")


def sources(graph):
    return [graph.source(row) for row in range(len(graph))]


def forget(path, *names):
    """Remove entries of a note, as if an earlier version had written it."""
    note = json.loads(path.read_text(encoding="utf-8"))
    for name in ("sha256", *names):
        del note[name]
    path.write_text(json.dumps({**note, "sha256": note_digest(note)}), encoding="utf-8")


def test_models_keep_sources(model, saved, tmp_path):
    again = tilp.load(saved)
    assert sources(again.graph) == sources(model.graph) and "train.tsv:2" in sources(again.graph)
    updated = again.update(tilp.read(fact_table(("new", "livesIn", "newer", 1990, 1990))))
    saved_again = tilp.load(updated.save(tmp_path / "updated")).graph
    assert sources(saved_again) == sources(updated.graph)
    assert sum(source == "the frame, row 0" for source in sources(saved_again)) == 1
    forget(updated.save(tmp_path / "old") / "model.json", "sources")
    old = tilp.load(tmp_path / "old")
    assert set(sources(old.graph)) == {"unknown"} and old.graph == updated.graph


def test_damaged_sources_are_refused(tmp_path, model):
    folder = model.save(tmp_path / "model")
    path = folder / "sources.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(tilp.TilpError, match=r"sources.parquet: damaged or changed"):
        tilp.load(folder)


def test_packed_graphs_and_their_models_keep_sources(data, tmp_path):
    packed = tilp.pack(data, tmp_path / "packed")
    graph = tilp.read(data).canonical()
    assert sources(packed) == sources(graph) and packed.source_files == graph.source_files
    assert packed.source_line.dtype == graph.source_line.dtype == np.int32
    model = TILP(**FAST).fit(packed)
    assert sources(tilp.load(model.save(tmp_path / "model")).graph) == sources(graph)
    forget(tmp_path / "packed" / "pack.json", "sources")
    old = tilp.read(tmp_path / "packed")
    assert set(sources(old)) == {"unknown"} and old == graph


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=60, deadline=None)
@given(shared_queries())
def test_known_facts_are_those_that_make_candidates_known(given_):
    graph, queries = given_
    none = replace(queries, answer=np.full_like(queries.answer, -1))
    offsets, entity = known_answers(graph, none).at_query_time()
    for number in range(len(queries)):
        rows, answers = known_facts(graph, queries, number)
        expected = entity[offsets[number] : offsets[number + 1]]
        assert set(answers.tolist()) == set(expected.tolist())
        relation = int(queries.directed_relation[number])
        inverse = relation >= len(graph.relations)
        given_end, asked = ("object", "subject") if inverse else ("subject", "object")
        starts = []
        for row, answer in zip(rows.tolist(), answers.tolist(), strict=True):
            assert row != queries.fact[number] and row in graph.rows("train")
            assert getattr(graph, given_end)[row] == queries.subject[number]
            assert getattr(graph, asked)[row] == answer
            assert graph.relation[row] == relation % len(graph.relations)
            starts.append((known_ends(graph.start[[row]], graph.end[[row]])[0][0], row))
        assert starts == sorted(set(starts))


def known_query(graph):
    """A query that train answers, and the row that does."""
    facts = graph.frame("train").with_row_index()
    row = facts.filter(pl.col("relation") == "livesIn", pl.col("start") != "").row(0, named=True)
    query = Query("livesIn", subject=row["subject"], start=row["start"], end=row["end"] or None)
    return query, row["index"]


def test_predictions_list_known_facts_first(model):
    graph = model.graph
    query, row = known_query(graph)
    answer, fact = model.ask(query), KnownFact.of(graph, row)
    assert fact in answer.known and fact in model.known_facts(query)
    assert fact.source == f"train.tsv:{row + 2}"
    assert str(answer).splitlines()[1].startswith("known: ") and str(fact) in str(answer)
    assert fact.source in answer._repr_html_()
    frame = model.predict(query, len(graph.entities))
    known = frame.filter("known")
    assert {*known["candidate"]} == {one.object for one in model.known_facts(query)}
    assert frame.filter(~pl.col("known"))["source"].null_count() == len(frame) - len(known)
    by_object = {one.object: one.source for one in reversed(model.known_facts(query))}
    assert dict(known.select("candidate", "source").iter_rows()) == by_object
    assert model.predict(query, 3, new_only=True)["source"].null_count() == 3
    everyone = Query("livesIn", object=fact.object)
    found = model.ask(everyone, k=1)
    assert list(found.known) == list(model.known_facts(everyone)) and len(found.known) > 1
    assert f"and {len(found.known) - 1:,} more known facts" in str(found)


def test_known_facts_of_another_graph(model, tmp_path):
    write_rows(tmp_path / "other.csv", [("x", "livesIn", "y", "1990", "1992")])
    with quietly():
        other = tilp.read(tmp_path / "other.csv", unit=model.graph.unit)
    query = Query("livesIn", subject="x", start="1991", end="1991")
    assert model.ask(query, graph=other).known[0].source == "other.csv:2"
    assert not model.ask(replace(query, start="1993", end="1993"), graph=other).known


def test_bulk_predictions_have_sources_and_notice_other_ones(model, tmp_path):
    query, _ = known_query(model.graph)
    queries = pl.DataFrame([asdict(query)])
    model.predict_to(tmp_path / "out", queries, 5)
    part = pl.read_parquet(tmp_path / "out" / "*.parquet")
    assert part["source"].to_list() == model.predict(query, 5)["source"].to_list()
    unknown = replace(model.graph, source_line=np.empty(0, np.int32), source_files=SourceFiles())
    with pytest.raises(tilp.TilpError, match="data from other files or lines"):
        model.predict_to(tmp_path / "out", queries, 5, graph=unknown)


def test_the_command_prints_known_facts(saved, model):
    query, row = known_query(model.graph)
    dates = [f"--start={query.start}", *([f"--end={query.end}"] if query.end else [])]
    words = ["predict", str(saved), "--relation=livesIn", f"--subject={query.subject}", *dates]
    shown = CliRunner().invoke(app, words).stdout
    assert f"known: {KnownFact.of(model.graph, row)} (train.tsv:{row + 2})" in shown
    assert shown.index("known: ") < shown.index("rank")
    assert "train.tsv" not in CliRunner().invoke(app, [*words, "--new-only"]).stdout
    answers = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert f"train.tsv:{row + 2}" in {answer["source"] for answer in answers}


def test_explanations_list_known_facts_unless_they_are_left_out(saved, model):
    query, row = known_query(model.graph)
    dates = [f"--start={query.start}", *([f"--end={query.end}"] if query.end else [])]
    words = ["explain", str(saved), "--relation=livesIn", f"--subject={query.subject}", *dates]
    line = f"known: {KnownFact.of(model.graph, row)} (train.tsv:{row + 2})"
    assert CliRunner().invoke(app, words).stdout.startswith("known: ")
    assert line in CliRunner().invoke(app, words).stdout
    assert line not in CliRunner().invoke(app, [*words, f"--without={row}"]).stdout
    listed = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["known_facts"]
    assert listed == [asdict(fact) for fact in model.known_facts(query)]


def test_the_service_lists_known_facts(model):
    query, row = known_query(model.graph)
    body, fact = {**asdict(query), "k": 3}, KnownFact.of(model.graph, row)
    with running(model) as address:
        found = httpx.post(f"{address}/api/v1/predict", json=body).json()
        del body["k"]
        url = f"{address}/api/v1/explain"
        assert asdict(fact) in httpx.post(url, json=body).json()["known_facts"]
        left_out = httpx.post(url, json={**body, "without": [row]}).json()["known_facts"]
        assert asdict(fact) not in left_out
    assert asdict(fact) in found["known"] and found["known_total"] >= 1
    assert fact.source in {answer["source"] for answer in found["answers"]}
