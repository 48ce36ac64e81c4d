"""A fit that was stopped goes on from its checkpoints."""

import re
import shutil
from pathlib import Path

import pytest

from models import FAST, KilledError, contents, fitted, kill_at, same
from strategies import small_world
from tilp import TILP
from tilp._utils.files import locked
from tilp.errors import TilpError


@pytest.mark.parametrize(
    ("name", "count", "moment", "weights"),
    [
        ("fit.json", 1, "before", "free"),
        ("fit.json", 1, "after", "free"),
        ("rules.jsonl.unfinished", 1, "after", "free"),
        ("rules.jsonl.unfinished-rules", 1, "before", "free"),
        ("rules.jsonl.unfinished-rules", 1, "after", "free"),
        ("rules.jsonl.unfinished", 6, "after", "free"),
        ("rules.jsonl", 1, "before", "free"),
        ("rules.jsonl", 1, "after", "free"),
        ("entries-held-out.npz", 1, "before", "free"),
        ("entries-held-out.npz", 1, "after", "free"),
        ("entries-training.npz", 1, "after", "free"),
        ("training-state.npz", 1, "after", "free"),
        ("training-state.npz", 3, "before", "attention"),
    ],
)
def test_a_fit_goes_on_from_any_moment(tmp_path, monkeypatch, name, count, moment, weights):
    graph, work = small_world(), tmp_path / "work"
    with monkeypatch.context() as patched, pytest.raises(KilledError):
        kill_at(patched, name, count, moment)
        TILP(rule_weights=weights, **FAST).fit(graph, folder=work)
    model = TILP(rule_weights=weights, **{**FAST, "n_jobs": 2}).fit(graph, folder=work)
    whole = fitted(weights)
    assert same(model, whole)
    assert contents(model.save(tmp_path / "m")) == contents(whole.save(tmp_path / "whole"))


def test_a_finished_fit_is_not_done_twice(tmp_path, monkeypatch):
    graph, whole = small_world(), fitted()
    TILP(**FAST).fit(graph, folder=tmp_path)

    def again(*_, **__):
        raise AssertionError("done again")

    monkeypatch.setattr("tilp.walks.mining.mine_relations", again)
    monkeypatch.setattr("tilp.model.fit.make_training_examples", again)
    model = TILP(**FAST).fit(graph, folder=tmp_path)
    assert same(model, whole)


def test_a_folder_of_another_fit_is_not_used(tmp_path):
    graph = small_world()
    work = tmp_path / "work"
    TILP(**FAST).fit(graph, folder=work)
    before = contents(work)
    with pytest.raises(TilpError, match="begun with other data or settings"):
        TILP(**FAST, random_state=1).fit(graph, folder=work)
    with pytest.raises(TilpError, match="begun with other data or settings"):
        TILP(**FAST).fit(small_world(2), folder=work)
    assert contents(work) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(TilpError, match="in use"):
        TILP(**FAST).fit(graph, folder=tmp_path / "mine")
    assert contents(tmp_path / "mine") == {"thesis.txt": b"years of work"}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """What a fit leaves to go on from."""
    folder = tmp_path_factory.mktemp("work")
    TILP(**FAST).fit(small_world(), folder=folder)
    return folder


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("fit.json", "half"),
        ("rules.jsonl", "half"),
        ("entries-held-out.npz", "half"),
        ("entries-held-out.npz", "nothing"),
        ("entries-training.npz", "other bytes"),
        ("training-state.npz", "half"),
        ("training-state.npz", "nothing"),
        ("training-state.npz", "other bytes"),
    ],
)
def test_a_damaged_file_of_a_fit_is_named(tmp_path, work, name, left):
    folder = shutil.copytree(work, tmp_path / "work")
    whole = (folder / name).read_bytes()
    kept = {"half": whole[: len(whole) // 2], "nothing": b"", "other bytes": b"other"}[left]
    (folder / name).write_bytes(kept)
    with pytest.raises(TilpError) as refused:
        TILP(**FAST).fit(small_world(), folder=folder)
    assert str(folder) in str(refused.value)


def test_progress_tells_of_every_stage():
    told = {}
    TILP(**FAST).fit(
        small_world(), progress=lambda name, share: told.setdefault(name, []).append(share)
    )
    assert list(told) == ["mine", "apply", "select", "train", "time"]
    assert all(shares[-1] == 1.0 and min(shares) >= 0 for shares in told.values())


def test_the_examples_of_the_documentation_run(monkeypatch, tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, names)
    assert names["again"].rules() == names["model"].rules()


def test_a_second_fit_in_the_same_folder_is_refused(tmp_path):
    with locked(tmp_path), pytest.raises(TilpError, match="another process is at work"):
        TILP(**FAST).fit(small_world(), folder=tmp_path)
    assert not any(tmp_path.iterdir())
