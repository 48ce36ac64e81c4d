"""A few damaged inputs for every reader; `benchmarks/hostile.py` tries many more."""

import json
import shutil
import warnings
import zipfile
from types import SimpleNamespace

import polars as pl
import pytest

import tilp
from mutations import Inputs
from tilp._utils.files import note_digest, read_arrays
from tilp.bench.jobs import Store
from tilp.errors import DataError, TilpError, TilpWarning
from tilp.io.packed.format import map_array
from tilp.rules import parse_rule
from tilp.time_prediction import TimeModel

KINDS = (
    "table.tsv", "table.csv", "table.parquet", "table.jsonl", "table.xlsx", "table.sqlite",
    "splits", "queries.tsv", "queries.parquet", "rules.jsonl", "rules.txt",
    "scores.tsv", "plan.toml", "words.toml", "model-none", "model-paper",
    "model-full", "forecaster", "evaluation",
)  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return Inputs(tmp_path_factory.mktemp("hostile"))


def test_every_reader_but_that_of_packed_graphs_is_tried(inputs):
    # A damaged packed graph may crash a process: the benchmark has one for it.
    assert {*KINDS, "packed", "model-packed"} == {*inputs.kinds()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_input_is_read_or_refused(inputs, kind):
    others = {seed: inputs.attempt(kind, seed) for seed in range(8)}
    assert not {seed: found for seed, found in others.items() if found not in ("read", "refused")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_input_is_read(inputs, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilpWarning)  # the scores are of a few queries only
        inputs.kinds()[kind](inputs.whole / kind)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([2**31 - 1], dtype=pl.Int32).cast(pl.Date),
        pl.Series([2**62]).cast(pl.Datetime("ms")),
        pl.Series([b"\xff"]),
        pl.Series([[1]]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_names_of_entities_that_are_no_text_are_refused(tmp_path, column):
    (tmp_path / "train.tsv").write_text("Ada\tknows\tBob\t1990\n")
    frame = pl.DataFrame({"id": ["Ada"], "key": ["Ada"], "label": column})
    frame.write_parquet(tmp_path / "entities.parquet")
    with pytest.raises(DataError, match="label"):
        tilp.read(tmp_path)


def test_a_variable_with_thousands_of_digits_is_refused():
    with pytest.raises(TilpError, match="variables are entities"):
        parse_rule(f"won(E1,E2,I2) <- nominated(E1,E2,I1) & before(I1,I{'9' * 5_000})")


@pytest.mark.parametrize("change", [{"classes": "x"}, {"more": 1}, {"warm": None}])
def test_parameters_of_a_forecaster_that_are_no_numbers_are_refused(inputs, tmp_path, change):
    folder = tmp_path / "model"
    shutil.copytree(inputs.whole / "forecaster", folder)
    note = json.loads((folder / "model.json").read_text())
    note["parameters"] |= change
    del note["sha256"]
    (folder / "model.json").write_text(json.dumps({**note, "sha256": note_digest(note)}))
    with pytest.raises(TilpError, match="its parameters"):
        tilp.load(folder)


def test_a_result_of_a_plan_that_is_nested_too_deeply_is_refused(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "one.json").write_text("[" * 100_000)
    with pytest.raises(TilpError, match="remove it to run it again"):
        Store(tmp_path).load(SimpleNamespace(name="one"), "key")


@pytest.mark.parametrize("settings", [3, {"max_rules": {}}])
def test_settings_of_a_model_of_another_type_are_refused(inputs, tmp_path, settings):
    folder = tmp_path / "model"
    shutil.copytree(inputs.whole / "model-none", folder)
    note = json.loads((folder / "model.json").read_text())
    note["settings"] = settings if settings == 3 else {**note["settings"], **settings}
    del note["sha256"]
    (folder / "model.json").write_text(json.dumps({**note, "sha256": note_digest(note)}))
    with pytest.raises(TilpError, match="a damaged model"):
        tilp.load(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("edges", lambda edges: edges[::-1]),
        ("edges", lambda edges: edges[1:]),
        ("edges", lambda edges: edges.astype("datetime64[s]")),
        ("start_{}_group", lambda group: group + 10**6),
        ("start_{}_group", lambda group: group[::-1]),
        ("start_{}_group", lambda group: group.astype(float)),
        ("end_{}_sparse", lambda sparse: sparse[..., None]),
        ("end_{}_sparse", lambda sparse: sparse[1:]),
        ("end_{}_dense", lambda dense: dense * float("nan")),
    ],
)
def test_arrays_of_a_time_model_that_do_not_fit_are_refused(inputs, name, change):
    model = tilp.load(inputs.whole / "model-none")
    arrays = model._fitted.time.to_arrays()
    relations = tuple(model.graph.relations)
    name = name.format(len(relations))  # of all relations together
    TimeModel.from_arrays(arrays, relations)
    with pytest.raises((DataError, ValueError)):
        TimeModel.from_arrays({**arrays, name: change(arrays[name])}, relations)


def test_an_array_whose_header_does_not_end_is_refused(tmp_path):
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (5,\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "one.npy").write_bytes(array)
    with zipfile.ZipFile(tmp_path / "some.npz", "w") as archive:
        archive.writestr("one.npy", array)
    for reader, name in ((map_array, "one.npy"), (read_arrays, "some.npz")):
        with pytest.raises(TilpError, match="damaged"):
            reader(tmp_path / name)
