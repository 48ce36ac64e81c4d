"""Models saved and loaded: what is in a folder, and what is refused."""

import hashlib
import json
import math
import os
import pickle
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from models import FAST, contents, edit, fitted, same
from strategies import both_ways, small_world
from tilp import TILP, Query, TILPConfig
from tilp._utils.files import note_digest
from tilp.errors import TilpError
from tilp.learning.rule_weights import TrainingSettings
from tilp.model import ModelSettings
from tilp.rules import RuleSet
from tilp.types import Effort


@pytest.fixture
def model(rule_model):
    return rule_model


@pytest.fixture
def saved(saved_model):
    return saved_model


@pytest.fixture
def copy(tmp_path, saved_model):
    """A folder of a model that a test may damage."""
    return shutil.copytree(saved_model, tmp_path / "copy")


def test_what_was_saved_is_loaded_again(model, saved):
    again = tilp.load(saved)
    assert same(again, model) and repr(again) == repr(model)
    assert {split: len(again.graph.rows(split)) for split in tilp.SPLITS} == {
        split: len(model.graph.rows(split)) for split in tilp.SPLITS
    }
    queries = both_ways(model.graph)
    assert again.predict(queries).equals(model.predict(queries))
    assert again.evaluate() == model.evaluate()
    assert again.rules("livesIn^-1") == model.rules("livesIn^-1")
    assert again.curve.train and again.curve == model.curve


def test_all_settings_are_saved(tmp_path):
    model = TILP(
        max_length=1,
        temporal_detail=["static", "query"],
        features="none",
        min_support=3,
        max_rules=20,
        random_state=5,
        n_jobs=1,
        config=TILPConfig(share=0.8, sample=30, walk_limit=500, held_out=50),
    ).fit(small_world())
    again = tilp.load(model.save(tmp_path / "m"))
    assert same(again, model) and again.get_params() == {**model.get_params(), "n_jobs": None}
    mining = again.settings.mining
    assert (mining.share, mining.sample, mining.limit) == (0.8, 30, 500)
    assert (again.settings.max_rules, mining.top) == (20, 40)
    assert again.settings.seed == mining.seed == again.settings.training.seed == 5
    rare = TILPConfig(training=TrainingSettings(steps=7, patience=3, learning_rate=0.1))
    for one in (model.settings, TILP(4, rule_weights="attention", config=rare).settings):
        assert ModelSettings.from_json(json.loads(json.dumps(one.to_json()))) == one


@pytest.mark.parametrize("effort", Effort)
@pytest.mark.parametrize("chosen", [{}, {"sample": 40}, {"walk_limit": 70}])
def test_the_effort_of_a_loaded_model_is_that_of_its_fit(model, effort, chosen):
    asked = TILP(2, features="none", effort=effort, config=TILPConfig(**chosen))
    many = tilp.datasets.world(1, 10_000).graph
    for graph in (model.graph, many):
        settings = asked.settings_for(graph)
        again = TILP.from_parts(settings, graph, model._need_fit())
        assert again.settings_for(graph) == settings
        if "walk_limit" not in chosen:
            assert again.get_params() == {**asked.get_params(), "n_jobs": None}


def test_weights_that_were_removed_are_refused():
    with pytest.raises(TilpError, match="rule_weights is 'hybrid'; it can be attention, free"):
        TILP(rule_weights="hybrid")


def test_a_model_of_0_1_is_refused_with_what_to_do(tmp_path):
    model = TILP(1, features="none", n_jobs=1, config=TILPConfig(sample=20)).fit(small_world())
    folder = model.save(tmp_path / "m")

    def remove_new_keys(note):
        del note["settings"]["select"], note["settings"]["max_rules"]
        del note["settings"]["mining"]["distinct"], note["sha256"]
        note["sha256"] = note_digest(note)

    edit(folder / "model.json", remove_new_keys)
    with pytest.raises(TilpError, match=r"of tilp 0.1: fit it again"):
        tilp.load(folder)


def test_graphs_with_names_numbers_and_defects_are_saved_with_models(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    rows = [
        f"Q{n}\tP{relation}\tQ{n % 3 + 50}\t19{n + 10}-05-0{n % 9 + 1}\t\n"
        for n in range(20)
        for relation in (1, 2)
    ]
    rows[5] = "Q2\tP2\tQ52\t1990-05-05\t1980-05-05\n"
    rows[8] = "Q4\tP1\tQ51\tsoon\tpresent\n"
    (data / "train.tsv").write_text("".join(rows))
    (data / "test.tsv").write_text("Q1\tP1\tQ2\t1990-01-01\t\n")
    labels = "".join(f'Q{n}\tk{n}\tname of {n}, "x"\n' for n in (*range(20), 50, 51, 52))
    (data / "entities.tsv").write_text(f"id\tkey\tlabel\n{labels}")
    (data / "relations.tsv").write_text("id\tkey\tlabel\nP1\tP1\tone\nP2\tP2\ttwo\n")
    (data / "attributes.tsv").write_text("id\theight\nQ1\t1.5\nQ2\t\n")
    with pytest.warns(tilp.TilpWarning, match="rows with defects"):
        graph = tilp.read(data)
    model = TILP(1, features="none", n_jobs=1).fit(graph)
    again = tilp.load(model.save(tmp_path / "m"))
    assert graph.unit == "day" and same(again, model)
    found = again.predict(Query("one", subject="Q3", start="1913-05-04"), 2)
    assert found["id"][0] == "Q50" and found["candidate"][0] == 'name of 50, "x"'
    assert again.predict(Query("P1", subject="k3", start="1913-05-04"), 2)["score"].equals(
        found["score"]
    )


def test_a_weight_of_nothing_is_a_weight(tmp_path, model):
    rules = RuleSet(replace(one, weight=0.0) for one in list(model.rules())[:3])
    rules.write_jsonl(tmp_path / "rules.jsonl")
    assert RuleSet.read_jsonl(tmp_path / "rules.jsonl") == rules


def test_a_folder_in_use_is_not_written_to(copy, model, saved):
    with pytest.raises(TilpError, match="not empty"):
        model.save(copy)
    assert contents(copy) == contents(saved)


def test_a_model_is_json_and_parquet_and_nothing_else(saved):
    assert {path.name for path in saved.iterdir()} == {
        "model.json",
        "rules.jsonl",
        "time.npz",
        "graph",
    }
    for path in saved.rglob("*"):
        if path.suffix == ".json":
            assert isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
        elif path.suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8").splitlines()
            assert lines and all("rule" in json.loads(line) for line in lines)
        elif path.suffix == ".parquet":
            assert len(pl.read_parquet(path)) > 0
        elif path.suffix == ".npz":
            assert len(np.load(path, allow_pickle=False).files) > 0
        else:
            assert path.is_dir(), path


class Trap:
    """Leaves a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_loading_executes_nothing(copy, model, tmp_path, monkeypatch):
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(Trap(sprung))
    for name in ("model.pkl", "rules.pkl", "graph/train.pkl", "weights.npy", "model.joblib"):
        (copy / name).write_bytes(trap)
    (copy / "__init__.py").write_text(f"open({str(sprung)!r}, 'w')")

    def forbidden(*_, **__):
        raise AssertionError("something is unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    plain = np.load
    monkeypatch.setattr(
        np, "load", lambda *a, **b: forbidden() if b.get("allow_pickle", True) else plain(*a, **b)
    )
    again = tilp.load(copy)
    assert same(again, model) and not sprung.exists()
    monkeypatch.undo()
    pickle.loads(trap)
    assert sprung.exists()  # the trap works


def with_weight(folder, weight):
    """Put a weight into the first rule, and the right digest of the rules into the note."""
    path = folder / "rules.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join([json.dumps({**json.loads(first), "weight": weight}), *rest]) + "\n"
    path.write_text(text, encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    edit(folder / "model.json", lambda note: note.update(rules_sha256=digest))


def without_last_fact(folder):
    path = folder / "graph" / "test.parquet"
    pl.read_parquet(path)[:-1].write_parquet(path)


def cut(path):
    path.write_bytes(path.read_bytes()[:-200])


DAMAGES = {
    "no note": (lambda folder: (folder / "model.json").unlink(), "no model"),
    "cut note": (lambda folder: cut(folder / "model.json"), "model.json"),
    "note of bytes": (lambda folder: (folder / "model.json").write_bytes(b"\xff\0"), "model.json"),
    "empty note": (lambda folder: (folder / "model.json").write_bytes(b""), "model.json"),
    "foreign object": (lambda folder: (folder / "model.json").write_text('{"a": 1}'), "model.json"),
    "foreign list": (lambda folder: (folder / "model.json").write_text("[1]"), "model.json"),
    "other version": (
        lambda folder: edit(folder / "model.json", lambda note: note.update(version=99)),
        "version 99",
    ),
    "no rules": (lambda folder: (folder / "rules.jsonl").unlink(), "rules.jsonl"),
    "cut rules": (lambda folder: cut(folder / "rules.jsonl"), "rules.jsonl"),
    "no graph": (lambda folder: shutil.rmtree(folder / "graph"), "graph"),
    "a fact less": (without_last_fact, "graph"),
    "cut facts": (lambda folder: cut(folder / "graph" / "train.parquet"), "train.parquet"),
    "no names": (lambda folder: (folder / "graph" / "entities.parquet").unlink(), "graph"),
    "other unit": (
        lambda folder: (folder / "graph" / "graph.json").write_text('{"unit": "month"}'),
        "graph",
    ),
    "unknown unit": (
        lambda folder: (folder / "graph" / "graph.json").write_text('{"unit": "age"}'),
        "graph",
    ),
    "rule weight nan": (lambda folder: with_weight(folder, math.nan), ""),
    "rule weight negative": (lambda folder: with_weight(folder, -0.5), ""),
    "rule weight infinite": (lambda folder: with_weight(folder, math.inf), ""),
    "rule weight none": (lambda folder: with_weight(folder, None), ""),
    "rule weight text": (lambda folder: with_weight(folder, "much"), ""),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_is_refused_and_the_file_is_named(copy, damage):
    change, words = DAMAGES[damage]
    change(copy)
    with pytest.raises(TilpError) as refused:
        tilp.load(copy)
    assert str(copy) in str(refused.value) and words in str(refused.value)


WRONG_VALUES = {
    "prior nan": lambda note: note["relations"][3].update(prior_weight=math.nan),
    "prior negative": lambda note: note["relations"][3].update(prior_weight=-1e-9),
    "prior text": lambda note: note["relations"][3].update(prior_weight="0.5"),
    "no prior": lambda note: note["relations"][3].pop("prior_weight"),
    "factor infinite": lambda note: note["relations"][0]["known_factor"].update(before=math.inf),
    "no factor": lambda note: note["relations"][0]["known_factor"].pop("before"),
    "a relation less": lambda note: note["relations"].pop(),
    "power nan": lambda note: note.update(walks_power=math.nan),
    "power negative": lambda note: note.update(walks_power=-0.3),
    "power text": lambda note: note.update(walks_power="much"),
    "unknown grain": lambda note: note["settings"]["mining"].update(grains=["fine"]),
    "unknown weights": lambda note: note["settings"]["training"].update(weights="heavy"),
    "unknown setting": lambda note: note["settings"].update(colour="red"),
    "unknown mining setting": lambda note: note["settings"]["mining"].update(colour="red"),
    "no settings": lambda note: note.pop("settings"),
    "settings of text": lambda note: note.update(settings="all"),
    "no loss": lambda note: note.pop("loss"),
    "other loss": lambda note: note.update(loss={"steps": [1.0]}),
    "no digest": lambda note: note.pop("rules_sha256"),
    "other graph": lambda note: note.update(graph="0" * 64),
    "relations are numbers": lambda note: note.update(relations=[1] * len(note["relations"])),
}


@pytest.mark.parametrize("wrong", WRONG_VALUES)
def test_a_note_with_wrong_values_is_refused_and_the_folder_is_named(copy, wrong):
    edit(copy / "model.json", WRONG_VALUES[wrong])
    with pytest.raises(TilpError) as refused:
        tilp.load(copy)
    assert str(copy) in str(refused.value)


def test_what_is_no_model_at_all(tmp_path, saved):
    with pytest.raises(TilpError, match="no model; tilp fit DATA"):
        tilp.load(tmp_path)
    with pytest.raises(TilpError, match="no such folder; tilp fit DATA"):
        tilp.load(tmp_path / "nowhere")
    with pytest.raises(TilpError, match="no model"):
        tilp.load(saved / "model.json")


@pytest.fixture(scope="module")
def mutable(tmp_path_factory):
    """What loads a small model after some bytes of its note were replaced."""
    model = TILP(**{**FAST, "max_rules": 3}).fit(small_world())
    folder = model.save(tmp_path_factory.mktemp("mutable") / "m")
    note = (folder / "model.json").read_bytes()

    def load_changed(place, length, new):
        place = int(place * len(note))
        (folder / "model.json").write_bytes(note[:place] + new + note[place + length :])
        try:
            return same(tilp.load(folder), model)
        except TilpError as refused:
            return str(folder) in str(refused)

    return load_changed


@settings(max_examples=60)
@given(
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 3),
    st.binary(max_size=3) | st.text('0123456789.-+eE,:[]{}" nulltrue', max_size=3).map(str.encode),
)
def test_a_note_with_changed_bytes_is_refused_or_the_same_model(mutable, place, length, new):
    assert mutable(place, length, new)


@pytest.fixture(scope="module", params=["full", "paper", "forecast"])
def saved_arrays(request, tmp_path_factory):
    """A model whose weights are arrays, and the file that has them."""
    folder = tmp_path_factory.mktemp(request.param) / "model"
    if request.param == "forecast":
        model = tilp.ForecastRules()
    else:
        model = TILP(1, features=request.param, n_jobs=1, config=TILPConfig(sample=10))
    model.fit(small_world()).save(folder)
    return folder, folder / ("weights.npz" if request.param == "forecast" else "features.npz")


def put_arrays(folder, path, arrays):
    """Put other arrays into a model, as somebody who can sign its note."""
    np.savez(path, **arrays)
    sign(folder, path)


def sign(folder, path):
    def change(note):
        note[f"{path.stem}_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        del note["sha256"]
        note["sha256"] = note_digest(note)

    edit(folder / "model.json", change)


def test_arrays_of_another_type_or_shape_are_refused_by_name(saved_arrays, tmp_path):
    folder = shutil.copytree(saved_arrays[0], tmp_path / "copy")
    path = folder / saved_arrays[1].name
    with np.load(path) as file:
        arrays = dict(file)
    for name, array in arrays.items():
        longer = np.zeros(
            (*array.shape[:-1], array.shape[-1] + 1) if array.ndim else 2, array.dtype
        )
        for wrong in (longer, array[None], array.astype(np.complex64), None):
            others = {other: values for other, values in arrays.items() if other != name}
            put_arrays(folder, path, others if wrong is None else {**others, name: wrong})
            with pytest.raises(TilpError, match="damaged model") as refused:
                tilp.load(folder)
            # A length that decides on those of others may be taken for the right one.
            assert "the array " in str(refused.value), name
    put_arrays(folder, path, arrays)
    tilp.load(folder)


def test_an_array_is_not_larger_than_its_file(saved_arrays, tmp_path):
    folder = shutil.copytree(saved_arrays[0], tmp_path / "copy")
    path = folder / saved_arrays[1].name
    np.savez_compressed(path, columns=np.zeros((10**4, 10**3)))  # 80 MB in 80 kB
    sign(folder, path)
    with pytest.raises(TilpError, match="cannot have the shape"):
        tilp.load(folder)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,), }".replace(
        b"10**12", b"1" + 12 * b"0"
    )
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("columns.npy", npy)
    sign(folder, path)
    with pytest.raises(TilpError, match="cannot have the shape"):
        tilp.load(folder)


@pytest.mark.parametrize("name", ["model.json", "rules.jsonl", "graph/train.parquet"])
def test_a_pipe_in_a_model_is_not_waited_for(copy, name):
    (copy / name).unlink()
    os.mkfifo(copy / name)
    with pytest.raises(TilpError):
        tilp.load(copy)


def test_a_file_that_cannot_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    place = fitted().save(tmp_path / "model")
    opened = Path.open

    def refused(self, *arguments, **options):
        if self.name in unreadable:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refused)
    for name in ("model.json", "rules.jsonl"):
        unreadable = {name}
        with pytest.raises(TilpError, match=rf"{name} cannot be read: Permission denied") as told:
            tilp.load(place)
        assert "fit" not in str(told.value) and "remove" not in str(told.value)


def test_a_note_of_any_depth_is_refused(tmp_path):
    place = fitted().save(tmp_path / "model")
    (place / "model.json").write_text("[" * 100_000)
    with pytest.raises(TilpError, match="damaged"):
        tilp.load(place)
