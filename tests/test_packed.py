"""Packed graphs: equal to what `read` gives, however little memory there was to pack them in."""

import copy
import gzip
import json
import os
import pickle
import runpy
import shutil
import subprocess
import sys
import tempfile
import warnings
from argparse import Namespace
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from tilp._utils.files import note_digest
from tilp.errors import DataError, TilpError, UnknownNameError
from tilp.graph import EdgeIndex, PreparedEdges
from tilp.io.packed.format import ColumnWriter, map_array
from tilp.io.packed.names import NamesWriter
from tilp.io.packed.open import PackedNames, open_packed
from tilp.io.packed.workspace import Workspace
from tilp.types import OnError, Unit
from tilp.walks import MiningSettings, Walker, mine
from tilp.walks.walker import build_edges, inverse_edges, sum_over_targets

SPARSE = 60  # bytes: a line or two at a time, a name or two of each run, a few edges


@contextmanager
def quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tilp.TilpWarning)
        yield


def outcome(make):
    """A graph, or the error that there is in its place."""
    try:
        with quietly():
            return make()
    except TilpError as failure:
        return str(failure)


def check_same(packed, graph):
    graph = graph.canonical()
    assert packed == graph
    assert packed.fingerprint() == graph.fingerprint()
    assert replace(packed).fingerprint() == graph.fingerprint()  # found anew, not noted
    assert packed.defects.equals(graph.defects)
    assert packed.texts.equals(graph.texts)
    assert packed.source_files == graph.source_files
    assert np.array_equal(packed.source_line, graph.source_line)
    check_edges(packed, graph)
    check_names(packed.entities, graph.entities)


def check_edges(packed, graph):
    index, prepared = graph.index(), packed.index().prepared
    for name in ("offsets", "relation", "target", "fact"):
        assert np.array_equal(getattr(packed.index(), name), getattr(index, name)), name
        assert getattr(packed.index(), name).dtype == getattr(index, name).dtype, name
    made = build_edges(index, graph.start, graph.end)
    for name in ("start", "end", "source", "rank", "by_rank"):
        assert np.array_equal(getattr(prepared, name), getattr(made, name)), name
        assert getattr(prepared, name).dtype == getattr(made, name).dtype, name
    assert np.array_equal(prepared.inverse, inverse_edges(index.fact))


def check_names(packed, names):
    def found(vocabulary, name):
        try:
            return vocabulary.find(name)
        except UnknownNameError as failure:
            return str(failure), failure.near

    assert len(packed) == len(names)
    for name in {*names.ids, *names.keys, *names.labels, "", "zz", "aaa", "\U0010ffff", "é"}:
        assert found(packed, name) == found(names, name), name
    assert [packed.id(number) for number in range(len(names))] == names.ids.to_list()
    assert [packed.label(number) for number in range(len(names))] == names.labels.to_list()
    assert np.array_equal(packed.encode(names.ids), np.arange(len(names)))
    assert packed.frame().equals(names.frame())


DATES = ("1990", "1991", "1985-03", "1985-03-04", "19##", "", None, "present", "x", "2000")
NAMES = st.text("aäZ'\"0\t\n,", min_size=1, max_size=3) | st.text("A\u4e2d\U0001f600", min_size=1)
NUMBERS = st.integers(0, 30).map(str) | st.integers(0, 9).map(lambda one: f"0{one}")


@st.composite
def tables(draw):
    """Facts as a frame, perhaps with marks and splits, and perhaps files beside them."""
    name = draw(st.sampled_from([NAMES, NUMBERS]))
    count = draw(st.integers(1, 9))
    column = st.lists(name, min_size=count, max_size=count)
    dates = st.lists(st.sampled_from(DATES), min_size=count, max_size=count)
    facts = {
        "subject": draw(column),
        "relation": draw(st.lists(st.sampled_from("rq"), min_size=count, max_size=count)),
        "object": draw(column),
        "start": draw(dates),
        "end": draw(dates),
    }
    if draw(st.booleans()):
        words = st.sampled_from(["train", "Training", "valid", "test "])
        facts["split"] = draw(st.lists(words, min_size=count, max_size=count))
    if draw(st.booleans()):
        words = st.sampled_from(["", "start", "both"])
        facts["estimated"] = draw(st.lists(words, min_size=count, max_size=count))
    schema = dict.fromkeys(facts, pl.String)
    beside = {}
    if draw(st.booleans()):
        known = draw(st.lists(name, max_size=5, unique=draw(st.integers(0, 3)) > 0))
        words = st.lists(
            st.sampled_from(["", "k", "l"]) | name, min_size=len(known), max_size=len(known)
        )
        same = draw(st.booleans())
        beside["entities"] = pl.DataFrame(
            {"id": known, "key": known if same else draw(words), "label": draw(words)},
            schema=dict.fromkeys(("id", "key", "label"), pl.String),
        )
    if draw(st.booleans()):
        owners = draw(st.lists(name | st.sampled_from(facts["subject"]), max_size=4))
        beside["attributes"] = pl.DataFrame(
            {"id": owners, "size": np.arange(len(owners)) / 2},
            schema={"id": pl.String, "size": float},
        )
    return pl.DataFrame(facts, schema=schema), beside


@settings(max_examples=40)
@given(
    tables(),
    st.sampled_from([1, SPARSE, 700, 10**9]),
    st.sampled_from(list(OnError)),
    st.sampled_from([None, Unit.YEAR, Unit.DAY]),
    st.sampled_from(["csv", "parquet", "frame"]),
)
def test_a_packed_graph_is_the_one_that_is_read(table, memory, on_error, unit, form):
    facts, beside = table
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "data"
        folder.mkdir()
        for name, frame in {"train": facts, **beside}.items():
            if form == "csv":
                frame.write_csv(folder / f"{name}.csv", quote_style="non_numeric")
            else:
                frame.write_parquet(folder / f"{name}.parquet")
        source = facts if form == "frame" else folder
        chosen = {"on_error": on_error, "unit": unit}
        graph = outcome(lambda: tilp.read(source, **chosen))
        out = Path(temporary) / "packed"
        packed = outcome(lambda: tilp.pack(source, out, memory=memory, **chosen))
        if isinstance(graph, str):
            assert isinstance(packed, str)  # of several errors either may tell another
            assert [one.name for one in out.parent.iterdir()] == ["data"]
        else:
            check_same(packed, graph)
            check_same(outcome(lambda: tilp.read(out)), graph)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A small world as TSV files, and packed."""
    folder = tmp_path_factory.mktemp("world")
    graph = tilp.datasets.world(2, 1_000).graph
    tilp.write(graph, folder / "data")
    (folder / "data" / "entities.tsv").unlink()  # so that names are numbered by the packing
    tilp.pack(folder / "data", folder / "packed", memory=200_000)
    return folder


@pytest.fixture
def packed(world):
    return tilp.read(world / "packed")


def test_a_world_in_several_runs_is_the_same(world, packed):
    check_same(packed, tilp.read(world / "data"))
    assert packed.attributes.keys() == {"birthYear", "height", "population"}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_text_is_cut_at_lines_and_blank_ones_are_counted(tmp_path, size):
    text = "\ufeff\n\nsubject\trelation\tobject\tstart\r\n\na\tr\tb\t1990\r\n\n\n'c\tr\té\tx\n\td"
    path = tmp_path / "facts.tsv"
    path.write_text(text.replace("\td", "d\tq\ta\t12-12-12-12"), encoding="utf-8", newline="")
    with pytest.warns(tilp.TilpWarning, match="line 8"):
        graph = tilp.read(path)
    with quietly():
        packed = tilp.pack(path, tmp_path / "packed", memory=24 * size)
    check_same(packed, graph)
    assert packed.defects["line"].to_list() == [8, 9]


def test_every_kind_of_source(tmp_path, facts):
    (tmp_path / "plain.tsv").write_text(facts.write_csv(separator="\t"))
    with gzip.open(tmp_path / "zipped.tsv.gz", "wt") as file:
        file.write(facts.write_csv(separator="\t"))
    facts.write_parquet(tmp_path / "some.parquet", row_group_size=2)
    spare = facts.rows()
    (tmp_path / "spare.txt").write_text(
        "".join("\t".join(cell or "" for cell in row) + "\t\n" for row in spare)
    )
    sources = {
        "plain": tmp_path / "plain.tsv",
        "zipped": str(tmp_path / "zipped.tsv.gz"),
        "parquet": tmp_path / "some.parquet",
        "spare": tmp_path / "spare.txt",
        "lazy": facts.lazy(),
        "mapping": {"train": facts[:2], "dev": facts[2:3], "test": facts[3:]},
    }
    for name, source in sources.items():
        check_same(tilp.pack(source, tmp_path / name, memory=SPARSE), tilp.read(source))


@pytest.mark.parametrize(
    "source, message",
    [
        ("a,r,b,1990\nc,r\n", "2 columns where 4"),
        ("name,kind,other,wann\nb,r,c,1990\n", "looks like a header"),
        ("subject,relation,object,split\na,r,b,train\nc,r,b,later\n", "the split is 'later'"),
    ],
)
def test_errors_are_those_of_read(tmp_path, source, message):
    path = tmp_path / "facts.csv"
    path.write_text(source)
    for make in (tilp.read, lambda one: tilp.pack(one, tmp_path / "packed", memory=1)):
        with pytest.raises(DataError, match=message):
            make(path)
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "name, text, message",
    [
        (
            "entities",
            "id\tlabel\nb\tB\na\tA\nc\tC\nd\tD\na\tX\nb\tY\n",
            "line 2: the id 'b' stands",
        ),
        ("entities", "id\tlabel\nb\tB\nc\tC\nc\tX\n", "line 3: the id 'c' stands"),
        ("attributes", "id\tsize\na\t1\nb\t2\na\t3\n", "line 2: the id 'a' stands"),
        ("attributes", "id\tsize\na\t1\nq\t2\np\t3\n", "size: no entity has the id 'q'"),
        ("attributes", "id\tsize\na\t1\nb\tx\n", "line 3: size is 'x', not a number"),
        ("attributes", "id\tsize\n\t1\n", "size: no entity has the id None"),
        ("relations", "id\tlabel\nr\tR\nr\tX\n", "line 2: the id 'r' stands"),
    ],
)
@pytest.mark.parametrize("memory", [24, 10**9])
def test_errors_of_files_beside_the_facts(tmp_path, name, text, message, memory):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train.tsv").write_text("a\tr\tb\n")
    (folder / f"{name}.tsv").write_text(text)
    for make in (tilp.read, lambda one: tilp.pack(one, tmp_path / "packed", memory=memory)):
        with pytest.raises(DataError, match=message):
            make(folder)


def test_columns_and_no_splits(tmp_path):
    frame = pl.DataFrame({"who": ["a"], "what": ["r"], "whom": ["b"], "k": [3]})
    columns = {"subject": "who", "relation": "what", "object": "whom"}
    with quietly():
        graph = tilp.read(frame, columns=columns)
        check_same(tilp.pack(frame, tmp_path / "packed", columns=columns), graph)
    with pytest.raises(TilpError, match="nothing to read"):
        tilp.pack({}, tmp_path / "nothing")
    with pytest.raises(TilpError, match="is not empty"):
        tilp.pack(frame, tmp_path / "packed", columns=columns)
    with pytest.raises(TilpError, match="is a packed graph already"):
        tilp.pack(tmp_path / "packed", tmp_path / "again")


def test_a_table_without_rows(tmp_path):
    path = tmp_path / "facts.tsv"
    path.write_text("subject\trelation\tobject\n")
    with pytest.warns(tilp.TilpWarning, match="no facts, so train is empty"):
        check_same(tilp.pack(path, tmp_path / "packed"), tilp.read(path))


def test_arrays_are_maps_of_the_files_and_read_only(packed):
    index = packed.index()
    arrays = [packed.subject, packed.end, packed.attributes["height"], index.target, index.offsets]
    arrays += [getattr(index.prepared, column.name) for column in fields(PreparedEdges)]
    for array in arrays:
        assert type(array) is np.ndarray
        assert isinstance(array.base, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_opening_reads_no_names(packed):
    entity = packed.entities.find(packed.entities.label(7))
    assert entity == 7
    assert not {"ids", "keys", "labels"} & vars(packed.entities).keys()


def test_a_packed_graph_travels_as_its_folder(world, packed):
    sent = pickle.dumps(packed)
    assert len(sent) < 1_000
    for other in (pickle.loads(sent), copy.deepcopy(packed), copy.copy(packed)):
        assert other == packed
        assert isinstance(other.subject.base, np.memmap)
    left = packed.without([0, 5])
    assert left.storage is None
    assert left.fingerprint() != packed.fingerprint()
    assert pickle.loads(pickle.dumps(left)) == left
    assert left == tilp.read(world / "data").canonical().without([0, 5])
    names = pickle.loads(pickle.dumps(packed.entities))
    assert names == packed.entities


def test_a_folder_that_holds_another_graph_by_now_is_refused(tmp_path, facts):
    sent = pickle.dumps(tilp.pack(facts, tmp_path / "packed"))
    shutil.rmtree(tmp_path / "packed")
    with pytest.raises(DataError, match="no packed graph"):
        pickle.loads(sent)
    tilp.pack(facts[1:], tmp_path / "packed")
    with pytest.raises(DataError, match="the graph there is another"):
        pickle.loads(sent)


def test_walks_on_a_packed_graph_are_the_same(world, packed):
    graph = tilp.read(world / "data").canonical()
    settings = MiningSettings(max_length=2, sample=20)
    assert mine(packed, ["playsFor"], settings) == mine(graph, ["playsFor"], settings)
    few = Walker(packed, max_length=2).without([3, 4])
    whole = Walker(graph, max_length=2).without([3, 4])
    assert all(np.array_equal(a, b) for a, b in zip(few.edges, whole.edges, strict=True))
    assert np.array_equal(few._inverse, whole._inverse)


def test_choices_at_opening_are_those_at_packing(tmp_path, facts):
    wrong = facts.with_columns(end=pl.Series(["1993", "x", "1900", "2004", "2001"]))
    with quietly():
        tilp.pack(wrong, tmp_path / "repaired")
        tilp.pack(wrong, tmp_path / "skipped", on_error="skip")
        assert len(tilp.read(tmp_path / "skipped", on_error="skip")) == 3
    with pytest.warns(tilp.TilpWarning, match="1 × malformed end"):
        tilp.read(tmp_path / "repaired", unit="year")
    with pytest.raises(DataError, match="count years; pack the data again with unit='day'"):
        tilp.read(tmp_path / "repaired", unit="day")
    with pytest.raises(DataError, match="with its defects repaired"):
        tilp.read(tmp_path / "repaired", on_error="skip")
    with pytest.raises(DataError, match="line 1: malformed end"):
        tilp.read(tmp_path / "repaired", on_error="raise")
    with pytest.raises(TilpError, match="no columns to choose"):
        tilp.read(tmp_path / "repaired", header=True)


@pytest.mark.parametrize("name", ["subject.npy", "entities.id.bytes.npy", "texts.arrow"])
def test_a_file_that_is_cut_short_or_missing_is_refused(world, tmp_path, name):
    shutil.copytree(world / "packed", tmp_path / "packed")
    path = tmp_path / "packed" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=f"{name}: damaged .it has .* bytes"):
        tilp.read(tmp_path / "packed")
    path.unlink()
    with pytest.raises(DataError, match=f"{name}: damaged .it is missing"):
        open_packed(tmp_path / "packed")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda metadata: metadata | {"unit": "day"}, "not as it was written"),
        (lambda metadata: metadata | {"version": 99}, "version 99 of the format"),
        (lambda metadata: {"unit": "year"}, "not a note of the format"),
    ],
)
def test_changed_metadata_is_refused(world, tmp_path, change, message):
    shutil.copytree(world / "packed", tmp_path / "packed")
    path = tmp_path / "packed" / "pack.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(DataError, match=message):
        tilp.read(tmp_path / "packed")
    path.write_text("{")
    with pytest.raises(DataError, match="damaged"):
        tilp.read(tmp_path / "packed")


def test_a_model_of_a_packed_graph_keeps_it_packed(world_model, tmp_path):
    tilp.write(world_model.graph, tmp_path / "data")
    graph = tilp.pack(tmp_path / "data", tmp_path / "packed")
    assert graph == world_model.graph
    model = tilp.TILP.from_parts(world_model.settings, graph, world_model._need_fit())
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "graph" / "pack.json").is_file()
    loaded = tilp.load(tmp_path / "model")
    assert loaded.graph.storage.folder == (tmp_path / "model" / "graph").resolve()
    row = graph.rows("test")[0]
    query = tilp.Query("livesIn", subject=graph.entities.label(int(graph.subject[row])))
    assert loaded.ask(query) == world_model.ask(query)
    path = tmp_path / "model" / "graph" / "start.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TilpError, match=r"start\.npy: damaged"):
        tilp.load(tmp_path / "model")


def test_the_command(world, tmp_path, run):
    code, out, err = run("pack", world / "data", "--out", tmp_path / "packed", "--memory", "50MB")
    assert code == 0, err
    assert "TemporalGraph(" in out
    assert " files, " in out and " MB on disk, packed in " in out
    assert "sort the edges" in err
    for command in (("inspect", "--json"), ("inspect", "--defects", "--json")):
        both = [run(command[0], data, *command[1:]) for data in (world / "data", world / "packed")]
        assert both[0][:2] == both[1][:2]
    assert run("convert", world / "packed", "--out", tmp_path / "tables")[0] == 0
    assert tilp.read(tmp_path / "tables") == tilp.read(world / "data").canonical()
    code, out, _ = run("pack", tmp_path / "packed", "--check")
    assert code == 0 and "as it was written" in out


def test_damage_that_only_the_full_check_finds(world, tmp_path, run):
    shutil.copytree(world / "packed", tmp_path / "packed")
    path = tmp_path / "packed" / "object.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    code, _, err = run("pack", tmp_path / "packed", "--check")
    assert code == 2
    assert "object.npy: damaged (its bytes are not as they were written)" in err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--memory", "1MB", "--out", "x"), "needs at least 16MB"),
        (("--memory", "lots", "--out", "x"), "write a number of bytes"),
        ((), "tilp pack DATA --out GRAPH"),
        (("--check",), "no packed graph"),
    ],
)
def test_what_the_command_refuses(world, run, arguments, message):
    code, _, err = run("pack", world / "data", *arguments)
    assert code == 2
    assert message in err


@given(st.lists(st.text(max_size=4), max_size=12))
@settings(max_examples=30)
def test_names_on_disk(names):
    with tempfile.TemporaryDirectory() as folder:
        stem = Path(folder) / "names"
        writer = NamesWriter(stem)
        for begin in range(0, len(names), 5):
            writer.append(pl.Series(names[begin : begin + 5], dtype=pl.String))
        writer.close()
        order = sorted(range(len(names)), key=lambda number: names[number])
        with ColumnWriter(Path(folder) / "names.order.npy", np.int32) as column:
            column.append(np.array(order, np.int32))
        kept = PackedNames(stem, ordered=False)
        assert [kept[number] for number in range(len(kept))] == names
        assert kept.series(0, len(kept)).to_list() == names
        for name in {*names, "a", "\U0010ffff"}:
            assert kept.find(name) == [n for n, other in enumerate(names) if other == name]


def test_an_array_written_in_parts(tmp_path):
    with ColumnWriter(tmp_path / "array.npy", np.int32) as column:
        for part in ([1, 2], [], range(3, 2000)):
            column.append(np.array(part, np.int64))
    assert np.load(tmp_path / "array.npy").tolist() == list(range(1, 2000))
    assert map_array(tmp_path / "array.npy").dtype == np.int32
    with pytest.raises(DataError, match=r"none.npy: damaged"):
        map_array(tmp_path / "none.npy")


def test_processes_open_the_same_graph(world):
    code = (
        "import pickle, sys; graph = pickle.loads(sys.stdin.buffer.read());"
        "print(graph.fingerprint(), graph.subject.base is not None)"
    )
    sent = pickle.dumps(tilp.read(world / "packed"))
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    canonical = tilp.read(world / "data").canonical()
    assert done.stdout.decode().split() == [canonical.fingerprint(), "True"]


def test_an_index_may_be_made_without_what_walks_need(facts):
    graph = tilp.read(facts)
    assert isinstance(graph.index(), EdgeIndex)
    assert graph.index().prepared is None


@pytest.mark.parametrize("at_once", [1, 7, 10**6])
def test_steps_are_summed_some_entities_at_a_time(packed, at_once):
    edges = Walker(packed).edges
    steps = np.random.default_rng(0).random(len(packed.entities))
    expected = np.bincount(edges.source, steps[edges.target], len(steps))
    assert np.array_equal(sum_over_targets(edges, steps, edges_at_once=at_once), expected)


def test_the_benchmark_on_a_small_world(tmp_path, capsys):
    path = Path(__file__).parents[1] / "benchmarks" / "scale.py"
    scale = runpy.run_path(str(path))
    given = {"facts": 1_000, "targets": 20, "queries": 20, "memory": 10**6, "threads": 1}
    for part in scale["PARTS"]:
        scale["run_part"](Namespace(part=part, folder=tmp_path, **given))
    told = capsys.readouterr().out
    assert "equal to the packed graph by fingerprint: True" in told
    assert "rules for livesIn from 20 of its" in told
    assert [line.split()[0] for line in (tmp_path / "peaks").read_text().splitlines()] == list(
        scale["PARTS"]
    )


def test_a_name_with_brackets_is_no_pattern(tmp_path, facts):
    folder = tmp_path / "a[1]"
    (tmp_path / "a1").mkdir()
    for ending in ("tsv", "parquet"):
        data = tilp.write(tilp.read(facts), folder / ending, format=ending)
        check_same(tilp.pack(data, folder / f"packed-{ending}", memory=SPARSE), tilp.read(data))


def test_a_model_is_saved_though_its_packed_graph_is_gone(tmp_path, world):
    packed = tilp.pack(world / "data", tmp_path / "packed")
    model = tilp.TILP(1, features="none", n_jobs=1, config=tilp.TILPConfig(sample=10)).fit(packed)
    kept = tilp.load(model.save(tmp_path / "kept"))
    shutil.rmtree(tmp_path / "packed")
    again = tilp.load(model.save(tmp_path / "again"))
    assert kept.graph == again.graph == packed
    assert kept.graph.storage is not None and again.graph.storage is None


def test_a_home_is_found(tmp_path, facts, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tilp.pack(facts, "~/packed").storage.folder == (tmp_path / "packed").resolve()


def test_defects_are_told_when_data_are_packed(tmp_path, run):
    (tmp_path / "facts.tsv").write_text("a\tr\tb\t1990\t1980\n" * 2)
    code, _, error = run("pack", tmp_path / "facts.tsv", "--out", tmp_path / "packed")
    assert code == 0 and "rows with defects: 2 × start after end" in error
    code, _, error = run("pack", tmp_path / "packed", "--check", "--out", tmp_path / "other")
    assert code == 2 and "not both" in error


def test_a_split_without_facts_is_told_of_as_it_is_when_read(tmp_path):
    columns = "subject\trelation\tobject\tstart\tend\n"
    (tmp_path / "train.tsv").write_text(f"{columns}a\tr\tb\t1990\t1991\n")
    (tmp_path / "test.tsv").write_text(columns)
    told = []
    for read in (tilp.read, partial(tilp.pack, folder=tmp_path / "packed")):
        with pytest.warns(tilp.TilpWarning) as warned:
            read(tmp_path)
        told.append([str(each.message) for each in warned])
    assert told == [[f"{tmp_path / 'test.tsv'}: no facts, so test is empty"]] * 2


# --- damaged files ---------------------------------------------------------------------------

USE_DAMAGED = """
import json, sys
from pathlib import Path
import numpy as np
import tilp
from tilp.walks import MiningSettings, Walker, mine

folder, opened = Path(sys.argv[1]), 0
files = sorted(folder.glob("*.npy"))
for number, place, value in json.loads(sys.stdin.read()):
    path = files[number % len(files)]
    content = path.read_bytes()
    array = np.load(path)
    if not len(array):
        continue
    bits = array.view(f"u{array.itemsize}")
    bits[place % len(array)] = value % 2 ** (8 * array.itemsize)
    np.save(path, array)
    try:
        graph = tilp.read(folder)
        mine(graph, ["playsFor"], MiningSettings(max_length=2, sample=20))
        Walker(graph, max_length=2).without([3, 4])
        graph.entities.find(graph.entities.label(7))
        graph.frame("train"), graph.index().edges(3), graph.source(0)
        opened += 1
    except tilp.TilpError as failure:
        assert path.name.split(".npy")[0].split(".")[-1] in str(failure), (path, failure)
    path.write_bytes(content)
print("opened", opened)
"""


@settings(max_examples=4, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 60),
            st.integers(0, 2**20),
            st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**63]),
        ),
        min_size=60,
        max_size=60,
    )
)
def test_a_changed_value_is_refused_or_harmless(world, flips):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(world / "packed", f"{folder}/packed")
        command = [sys.executable, "-c", USE_DAMAGED, f"{folder}/packed"]
        done = subprocess.run(command, input=json.dumps(flips), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("opened")


def change(path, place, value):
    array = np.load(path)
    array[place] = value
    np.save(path, array)


@pytest.mark.parametrize(
    "name, place, value, message",
    [
        ("subject", 5, 10**6, "not at least 0 and less than"),
        ("relation", 5, -1, "not at least 0 and less than"),
        ("end_text", 5, 10**6, "not at least 0 and less than"),
        ("source_line", 5, -2, "not at least -1 and less than"),
        ("edges.offsets", 3, 0, "its values do not rise"),
        ("edges.offsets", -1, 0, "its values do not rise"),
        ("edges.target", 3, 2**31 - 1, "not at least 0"),
        ("edges.fact", 3, -5, "not at least 0"),
        ("walks.source", 0, 1, "not as the offsets"),
        ("walks.rank", 0, 1, "by_rank does not lead back"),
        ("walks.by_rank", 0, 1, "rank.npy: damaged"),
        ("walks.inverse", 0, 0, "inverse does not lead back"),
        ("entities.id.begin", 1, -1, "not at least 0"),
        ("entities.id.bytes", 0, 0x80, "not UTF-8"),
    ],
)
def test_a_value_out_of_range_is_refused(world, tmp_path, name, place, value, message):
    shutil.copytree(world / "packed", tmp_path / "packed")
    change(tmp_path / "packed" / f"{name}.npy", place, value)
    with pytest.raises(DataError, match=message):
        open_packed(tmp_path / "packed")


def rewrite(folder, **changed):
    """Metadata as somebody else may write them, digest and sizes included."""
    path = folder / "pack.json"
    note = json.loads(path.read_text()) | changed
    for name, noted in note["files"].items():
        if (folder / name).is_file():
            noted["bytes"] = (folder / name).stat().st_size
    del note["sha256"]
    note["sha256"] = note_digest(note)
    path.write_text(json.dumps(note))


@pytest.mark.parametrize(
    "name, array, message",
    [
        ("subject", np.zeros(3, np.int32), "it holds 3 of the type int32"),
        ("subject", np.zeros((2, 2), np.int32), "2 × 2 of the type int32"),
        ("edges.target", np.zeros(3, np.float64), "3 of the type float64"),
        ("attribute-0", np.zeros(1), "1 of the type float64"),
    ],
)
def test_another_type_or_size_is_refused(world, tmp_path, name, array, message):
    folder = tmp_path / "packed"
    shutil.copytree(world / "packed", folder)
    np.save(folder / f"{name}.npy", array)
    rewrite(folder)
    with pytest.raises(DataError, match=rf"{name}\.npy: damaged .*{message}"):
        open_packed(folder)


@pytest.mark.parametrize(
    "changed",
    [
        {"bounds": [0, 10**9, 10**9, 10**9]},
        {"bounds": [0, 5, 3, 9]},
        {"bounds": "none"},
        {"entities": {"count": 10**9, "ordered": True, "same": {"key": "id", "label": "id"}}},
        {"entities": None},
        {"marks": ["subject"]},
        {"unit": "week"},
        {"files": []},
        {"sources": {"prefixes": ["a", "b", "c"], "bounds": [0]}},
    ],
)
def test_metadata_of_another_graph_is_refused(world, tmp_path, changed):
    folder = tmp_path / "packed"
    shutil.copytree(world / "packed", folder)
    path = folder / "pack.json"
    note = json.loads(path.read_text()) | changed
    del note["sha256"]
    path.write_text(json.dumps(note | {"sha256": note_digest(note)}))
    with pytest.raises(DataError, match="damaged"):
        open_packed(folder)


@pytest.mark.parametrize("name", ["pack.json", "subject.npy", "texts.arrow"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(world, tmp_path, name):
    folder = tmp_path / "packed"
    shutil.copytree(world / "packed", folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(DataError, match=r"missing|no packed graph"):
        open_packed(folder)


def test_a_mark_in_a_cell_is_read_alike_in_blocks_of_any_size(tmp_path):
    rows = "\ufeffa\tr\tb\n\ufeffa\tr\tc\nd\tr\t\ufeffa\n"
    for number, begin in enumerate(("", "\ufeff", "subject\trelation\tobject\n")):
        path = tmp_path / f"{number}.tsv"
        path.write_text(f"{begin}{rows}", encoding="utf-8")
        graph = tilp.read(path)
        assert ("a" in graph.entities.ids) == (number == 0)  # the file's own mark is none of a name
        for size in (1, 12, 20, 1000):
            packed = tilp.pack(path, tmp_path / f"packed-{number}-{size}", memory=30 * size)
            check_same(packed, graph)


def test_a_killed_packing_leaves_nothing_that_the_next_does_not_remove(tmp_path, world):
    code = (
        "import os, signal, sys, tilp\n"
        "def stop(stage, share):\n"
        "    if stage == sys.argv[1]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "tilp.pack(sys.argv[2], sys.argv[3], progress=stop)\n"
    )
    out = tmp_path / "packed"
    for stage in ("read", "facts", "digest"):
        command = [sys.executable, "-c", code, stage, str(world / "data"), str(out)]
        assert subprocess.run(command).returncode == -9
    assert not out.exists()
    tilp.pack(world / "data", out)
    assert list(tmp_path.iterdir()) == [out]


def test_a_folder_that_cannot_be_written_is_an_error_of_the_user(tmp_path):
    workspace = Workspace(tmp_path / "work", 10**9)
    with pytest.raises(OSError, match="nowhere"):
        workspace.rows("COPY (SELECT 1) TO '/nowhere/at/all' (FORMAT parquet)")
    with pytest.raises(TilpError, match="too little memory"):
        workspace.rows("SELECT length(string_agg(repeat('x', 1000000000))) FROM range(9)")


def test_tables_of_a_workspace(tmp_path):
    workspace = Workspace(tmp_path / "it's [1]* a=b", memory=0)
    for part in (["b", "a"], [], ["a\0", "é"]):
        workspace.add("names", pl.DataFrame({"name": pl.Series(part, dtype=pl.String)}))
    workspace.make("sorted", "SELECT name FROM names ORDER BY name")
    slices = list(workspace.slices("sorted"))
    assert [len(part) for part in slices] == [1, 1, 1, 1]
    assert pl.concat(slices)["name"].to_list() == ["a", "a\0", "b", "é"]
    assert workspace.rows("SELECT row FROM sorted WHERE name = 'b'") == [(2,)]
    workspace.remove("names", "sorted")
    assert not list((tmp_path / "it's [1]* a=b").iterdir())
