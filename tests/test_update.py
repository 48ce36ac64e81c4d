"""Updates of a model: what new facts change in it, and when an update is stopped."""

import json
import math
import os
import platform
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tilp
from models import contents, fact_rows, fact_table, read_facts
from tilp import TILP, TILPConfig
from tilp._utils.files import backup_folder, new_folder
from tilp.errors import TilpError
from tilp.features.paper.features import FittedPaper, PaperFeatures, walked_relations
from tilp.learning.rule_weights import TrainingSettings
from tilp.model.update import touched_relations
from tilp.splits.kinds import LEFT_OUT, TRAIN, reassign_splits
from tilp.time.imputation import MissingDates
from tilp.walks import mine

QUICK = {"max_length": 1, "n_jobs": 1, "config": TILPConfig(training=TrainingSettings(steps=25))}


NEW_RELATION = [(name, "isFondOf", "Rovers", "1990", "1991") for name in ("Ada", "Ben", "Cleo")]


@cache
def world():
    return tilp.datasets.world(1, 1_000).graph


@cache
def parts(relation="livesIn"):
    """The world without some training facts of a relation, and these."""
    graph = world()
    of_it = np.flatnonzero(graph.relation == graph.relations.find(relation))
    rows = of_it[of_it < graph.bounds[1]][::4]
    place = np.full(len(graph), LEFT_OUT)
    place[rows] = TRAIN
    return graph.without(rows), reassign_splits(graph, place)


@cache
def fitted(features="none"):
    return TILP(features=features, **QUICK).fit(parts()[0])


@pytest.fixture(scope="module", autouse=True)
def _quick(quick_features):
    """Weights of features need not be the best."""


# What a model becomes


def test_nothing_new_leaves_the_model_as_it_is(tmp_path):
    old, _ = parts()
    whole = contents(fitted("full").save(tmp_path / "old"))
    again = fitted("full").update(old)
    assert contents(again.save(tmp_path / "again")) == whole
    assert not again.last_update.anything and "as they were" in str(again.last_update)


def test_touched_rules_are_counted_as_in_all_facts_and_others_stay():
    model, (_, new) = fitted(), parts()
    updated = model.update(new)
    union = updated.graph
    of_heads = touched_relations(model.rules(), {"livesIn"})
    assert {"livesIn"} < of_heads < set(union.relations)
    counted = mine(union, settings=replace(model.settings.mining, top=10_000, min_support=1))
    old, now = model.rules(), updated.rules()
    changed = 0
    learned = {"weight": None, "gain": None, "lift": None}
    for one in now:
        if one.rule.head.relation not in of_heads:
            assert one == old[one.rule]
        else:
            assert replace(one, **learned) == counted[one.rule]
            assert math.isfinite(one.gain) and one.lift > 0
        if one.rule in old:
            assert one.weight == old[one.rule].weight
            before = replace(old[one.rule], **learned)
            changed += replace(one, **learned) != before
            atoms = (one.rule.head, *one.rule.body)
            if all(atom.relation != "livesIn" for atom in atoms):
                assert replace(one, **learned) == before
    assert changed
    report = updated.last_update
    assert report.touched == tuple(one for one in union.relations if one in of_heads)
    mined = mine(union, sorted(of_heads), model.settings.mining)
    here = {one.rule for one in now if one.rule.head.relation in of_heads}
    assert here < {one.rule for one in mined}  # as in a fit, some are selected
    of_direction = Counter(rule.head for rule in here)
    assert 0 < max(of_direction.values()) <= model.settings.max_rules
    fresh = [one for one in now if one.rule not in old]
    assert report.new_rules == len(fresh) > 0
    assert report.dropped_rules == sum(one.rule not in now for one in old)

    def against_confidence(one):
        return np.log(
            one.weight / (one.confidence * one.body_support / (one.body_support + 5) + 1e-6)
        )

    # New rules weigh against their confidence, smoothed, as those of their head that stayed.
    for one in fresh:
        others = [
            against_confidence(old[other.rule])
            for other in now
            if other.rule.head == one.rule.head and other.rule in old
        ]
        assert against_confidence(one) == pytest.approx(np.median(others))


def test_rules_of_a_relation_without_held_out_facts_have_gains_too(run, tmp_path):
    old, new = parts()
    is_tested = np.arange(len(old)) >= old.bounds[1]
    rows = np.flatnonzero((old.relation == old.relations.find("livesIn")) & is_tested)
    model = TILP(features="none", **QUICK).fit(old.without(rows)).update(new)
    rules = model.rules("livesIn")
    gains = [mined.gain for mined in rules]
    assert len(gains) > 1 and all(map(math.isfinite, gains)) and max(gains) == gains[0] > 0
    folder = model.save(tmp_path / "model")
    code, printed, _ = run("rules", folder, "--relation", "livesIn", "--json", "--top", "1000")
    assert code == 0 and [row["gain"] for row in json.loads(printed)] == gains


def test_facts_of_valid_alone_change_no_rule_and_no_weight(tmp_path):
    model = fitted("full")
    fact = fact_table(("Nobody", "livesIn", "Nowhere", "1990", "1991")).cast(pl.String)
    updated = model.update(tilp.read({"valid": fact}, unit="year"))
    assert updated.last_update.added == {"train": 0, "valid": 1, "test": 0}
    assert updated.rules() == model.rules() and not updated.last_update.touched
    assert list(updated.graph.entities)[-2:] == ["Nobody", "Nowhere"]
    again = tilp.load(updated.save(tmp_path / "m"))
    assert again._fitted.updates == (updated.last_update.to_json(),)


def test_a_new_relation_is_mined_and_one_without_rules_is_told():
    model = fitted()
    graph = model.graph
    lives = graph.frame("train").filter(pl.col("relation") == "livesIn")[:60]
    new = tilp.read(lives.with_columns(relation=pl.lit("residesIn")), unit="year")
    alone = model.update(read_facts(*NEW_RELATION))
    assert alone.last_update.without_rules == ("isFondOf",)
    assert "no rule for 1 relations (isFondOf): too few" in str(alone.last_update)
    query = tilp.Query("isFondOf", subject="Ada", start=1990)
    assert len(alone.predict(query)) == 10  # by how often each is an answer
    mined = model.update(new)
    assert list(mined.graph.relations) == [*graph.relations, "residesIn"]
    heavy = mined.rules("residesIn")[0]
    assert heavy.rule.body[0].relation == "livesIn" and heavy.weight == 1.0
    assert not mined.last_update.without_rules
    for name in graph.relations:  # others are as they were, by their new numbers
        old, now = (one.graph.relations.find(name) for one in (model, mined))
        for by in (0, 1):
            before_, after = (
                one.weights.prior[number + by * len(one.graph.relations)]
                for one, number in ((model, old), (mined, now))
            )
            assert before_ == after


def test_a_name_near_to_a_known_relation_is_asked_about():
    new = read_facts(("Ada", "playsfor", "Rovers", "1990", ""))
    report = fitted().update(new).last_update
    assert "'playsfor' is new: was 'playsFor'" in str(report)


def test_distributions_are_those_of_all_facts_and_their_weights_stay():
    model, (_, new) = fitted("paper"), parts()
    updated = model.update(new)
    found = updated._fitted.features
    again = PaperFeatures.fit(
        updated.graph, walked_relations(updated.graph, updated._fitted.rules), 1
    )
    for name, values in FittedPaper(again, found.weights).to_arrays().items():
        assert np.array_equal(values, found.to_arrays()[name]), name
    first = model._fitted.features
    assert found.weights.features == first.weights.features
    shared, mine_too, theirs = np.intersect1d(
        found.features.distributions.key, first.features.distributions.key, return_indices=True
    )
    assert len(shared)
    assert np.array_equal(found.weights.order_weight[mine_too], first.weights.order_weight[theirs])


def test_threads_do_not_change_an_update(tmp_path):
    model, (_, new) = fitted("full"), parts()
    made = []
    for threads in (1, 2):
        other = TILP.from_parts(model.settings, model.graph, model._fitted)
        other.n_jobs = threads
        made.append(contents(other.update(new).save(tmp_path / str(threads))))
    assert made[0] == made[1]


def test_a_net_that_weights_come_from_is_kept(tmp_path):
    training = TrainingSettings(steps=10, dimension=4)
    chosen = {**QUICK, "config": TILPConfig(training=training), "temporal_detail": ["pairs"]}
    model = TILP(rule_weights="attention", features="none", **chosen)
    model = tilp.load(model.fit(parts()[0]).save(tmp_path / "model"))
    assert set(model._fitted.net) >= {"embedding", "predicate.weight", "with_query.0.bias"}
    more = tilp.read(
        pl.concat([parts()[1].frame("train"), fact_table(*NEW_RELATION).cast(pl.String)]),
        unit="year",
    )
    kept = model.update(more)
    assert kept._fitted.net["embedding"].shape[1] == 2 * len(kept.graph.relations)
    old, now = model.rules(), kept.rules()
    assert all(one.weight == old[one.rule].weight for one in now if one.rule in old)
    assert all(0 < one.weight < np.inf for one in now)
    lost = replace(model._fitted, net=None)
    model = TILP.from_parts(model.settings, model.graph, lost)
    assert len(model.update(parts()[1]).rules())


def test_an_end_that_became_known_touches_its_relation():
    known = world().frame("train")
    changed = known.filter(pl.col("relation") == "playsFor")[:1]
    opened = known.with_columns(
        end=pl.when(pl.struct(known.columns).is_in(changed.to_struct().implode()))
        .then(pl.lit(""))
        .otherwise("end")
    )
    model = TILP(features="none", **QUICK).fit(tilp.read(opened, unit="year"))
    updated = model.update(tilp.read(changed, unit="year"))
    report = updated.last_update
    assert report.superseded == 1 and not any(report.added.values())
    assert "playsFor" in report.touched and sorted(fact_rows(updated.graph)) == sorted(
        fact_rows(tilp.read(known, unit="year"))
    )


def test_durations_that_change_touch_what_they_are_drawn_for():
    """With missing='duration' a new length changes what unknown ends of its relation become."""
    known = world().frame("train")
    some = (pl.col("relation") == "playsFor") & (pl.int_range(pl.len()) % 3 == 0)
    graph = tilp.read(
        known.with_columns(end=pl.when(some).then(pl.lit("")).otherwise("end")), unit="year"
    )
    model = TILP(features="none", missing="duration", **QUICK).fit(graph)
    new = read_facts(("Ada", "playsFor", "Rovers", "1900", "1999"))
    updated = model.update(new)
    assert "playsFor" in updated.last_update.touched
    settled = MissingDates.fit(updated.graph, model.settings.missing, 0).fill_graph(updated.graph)
    counted = mine(settled, updated.last_update.touched, model.settings.mining)
    kept = [one for one in counted if one.rule in updated.rules()]
    assert {one.rule.head.relation for one in kept} == set(updated.last_update.touched)
    for one in kept:
        assert replace(updated.rules()[one.rule], weight=None, gain=None, lift=None) == one


def test_facts_with_another_unit_are_refused():
    new = tilp.read(fact_table(("a", "r", "b", "1990-01-02", "")).cast(pl.String), unit="day")
    with pytest.raises(TilpError, match="count days"):
        fitted().update(new)


# On the command line, and when it is killed


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return fitted().save(tmp_path_factory.mktemp("update") / "model")


@pytest.fixture
def new_file(tmp_path):
    path = tmp_path / "new.tsv"
    parts()[1].frame("train").write_csv(path, separator="\t", quote_style="never")
    return path


def test_update_to_a_new_folder(run, tmp_path, saved, new_file):
    was, out = contents(saved), tmp_path / "updated"
    code, printed, err = run("update", saved, new_file, "--out", out)
    assert code == 0 and contents(saved) == was
    assert "find rules …" in err and "keep few, distinct ones …" in err
    assert f"added: {len(parts()[1]):,} in train" in printed and "touched: " in printed
    model = tilp.load(out)
    assert model.graph == fitted().update(parts()[1]).graph
    assert model._fitted.updates[0]["added"]["train"] == len(parts()[1])
    code, _, err = run("update", saved, new_file, "--out", out)
    assert code == 2 and "is not empty" in err
    code, printed, _ = run("update", out, new_file, "--out", tmp_path / "again", "--json")
    found = json.loads(printed)
    assert found["known"]["train"] == len(parts()[1]) and found["touched"] == []


def test_update_in_place_and_not_at_all(run, tmp_path, saved, new_file):
    place = fitted().save(tmp_path / "model")
    was = contents(place)
    code, printed, _ = run("update", place, new_file, "--dry-run")
    assert code == 0 and "added: " in printed and contents(place) == was
    for options in ((), ("--in-place", "--out", tmp_path / "o")):
        code, _, err = run("update", place, new_file, *options)
        assert code == 2 and "give one of" in err
    code, _, _ = run("update", place, new_file, "--in-place")
    assert code == 0 and sorted(one.name for one in tmp_path.iterdir()) == ["model", "new.tsv"]
    assert len(tilp.load(place).graph) == len(world())
    now = contents(place)
    code, printed, _ = run("update", place, new_file, "--in-place")
    assert code == 0 and "added: nothing" in printed and contents(place) == now


def test_update_refuses_other_units_and_labels_in_words(run, tmp_path, saved):
    days = tilp.read(fact_table(("a", "r", "b", "1990-01-02", "")).cast(pl.String), unit="day")
    tilp.write(days, tmp_path / "days")
    code, _, err = run("update", saved, tmp_path / "days", "--dry-run")
    assert code == 2 and "times count days" in err and "--unit year" in err
    code, printed, _ = run("update", saved, tmp_path / "days", "--dry-run", "--unit", "year")
    assert code == 0 and "new entities: 2 (a, b)" in printed and "new relations: 1 (r)" in printed
    code, _, err = run("update", saved, tmp_path / "days", "--dry-run", "--unit", "day")
    assert code == 2 and "count days, of the known ones years" in err


_KILLED = """
import os, signal, sys
import tilp, tilp.model.persistence as saving
whole = saving.write
def killed(*arguments, **options):
    whole(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
saving.write = killed
tilp.load(sys.argv[1]).update(tilp.read(sys.argv[2], unit="year")).save(
    sys.argv[1], replace=True
)
"""


def test_killed_while_it_writes_the_old_model_is_whole(tmp_path, new_file):
    place = fitted().save(tmp_path / "model")
    was = contents(place)
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(place), str(new_file)],
        env={**os.environ, "PYTHONPATH": str(Path(tilp.__file__).parents[1])},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert contents(place) == was and tilp.load(place).rules() == fitted().rules()


def test_a_folder_is_replaced_whole_or_stays(tmp_path, monkeypatch):
    place = tmp_path / "folder"
    place.mkdir()
    (place / "old").touch()
    with pytest.raises(RuntimeError), new_folder(place, replace=True) as made:
        (made / "new").touch()
        raise RuntimeError
    assert [one.name for one in tmp_path.rglob("*")] == ["folder", "old"]
    rename = Path.rename

    def refused(self, target):
        if (self / "new").exists():
            raise OSError("refused")
        return rename(self, target)

    def interrupted(self, target):
        if (self / "new").exists():
            raise KeyboardInterrupt
        return rename(self, target)

    for failing, told in ((refused, TilpError), (interrupted, KeyboardInterrupt)):
        with monkeypatch.context() as patched, pytest.raises(told):
            patched.setattr(Path, "rename", failing)
            with new_folder(place, replace=True) as made:
                (made / "new").touch()
        assert [one.name for one in tmp_path.rglob("*")] == ["folder", "old"]
    with new_folder(place, replace=True) as made:
        (made / "new").touch()
    assert [one.name for one in tmp_path.rglob("*")] == ["folder", "new"]
    backup_folder(place).mkdir()  # of a writer that was killed once all was done
    with new_folder(place, replace=True) as made:
        (made / "newer").touch()
    assert [one.name for one in tmp_path.rglob("*")] == ["folder", "newer"]


@pytest.mark.parametrize("forecasts", [False, True])
def test_a_model_that_was_about_to_be_replaced_is_put_back(tmp_path, forecasts):
    model = tilp.ForecastRules(n_jobs=1).fit(parts()[0]) if forecasts else fitted()
    place = model.save(tmp_path / "model")
    was = contents(place)
    place.rename(backup_folder(place))
    assert tilp.load(place).forecasts is forecasts and contents(place) == was
    assert [one.name for one in tmp_path.iterdir()] == ["model"]
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text").touch()
    with pytest.raises(TilpError, match="no model"):
        fitted().save(tmp_path / "thesis", replace=True)
    assert (tmp_path / "thesis" / "text").exists()


HOLD = """
import sys
from pathlib import Path
from tilp._utils.files import new_folder
with new_folder(Path("model"), replace=True), new_folder(Path("new")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_refused_and_a_killed_one_is_cleaned_up_after(
    run, tmp_path, saved, new_file
):
    place, new = fitted().save(tmp_path / "model"), tmp_path / "new"
    was, pipe = contents(place), subprocess.PIPE

    def hidden():
        return sorted(one.name for one in tmp_path.iterdir() if one.name.startswith("."))

    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe) as writer:
        assert writer.stdout.readline() == b"held\n"
        told = f"process {writer.pid} on {platform.node()}"
        for command in (
            ("update", place, new_file, "--in-place"),
            ("update", saved, new_file, "--out", new),
            ("fit", new_file, "--out", new),
            ("mine", new_file, "--out", new),
            ("convert", new_file, "--out", new),
        ):
            code, _, err = run(*command)
            assert code == 2 and told in " ".join(err.split()), command
        with pytest.raises(TilpError, match=told):
            fitted().save(place, replace=True)
        assert contents(place) == was and not new.exists() and len(hidden()) == 4
        writer.kill()
    assert [one for one in hidden() if one.endswith(".lock")] == [".model.lock", ".new.lock"]
    assert run("update", place, new_file, "--in-place")[0] == 0
    assert run("convert", new_file, "--out", new)[0] == 0 and not hidden()


def test_of_two_updates_at_once_no_facts_are_lost(run, tmp_path, saved, new_file, monkeypatch):
    place = fitted().save(tmp_path / "model")
    update, refused = tilp.TILP.update, []

    def second_meanwhile(model, *facts, **options):
        monkeypatch.setattr(tilp.TILP, "update", update)
        command = [sys.executable, "-m", "tilp", "update", place, new_file, "--in-place"]
        refused.append(subprocess.run(command, capture_output=True, text=True, check=False))
        return update(model, *facts, **options)

    monkeypatch.setattr(tilp.TILP, "update", second_meanwhile)
    assert run("update", place, new_file, "--in-place")[0] == 0
    assert refused[0].returncode == 2
    assert f"process {os.getpid()} on {platform.node()}" in refused[0].stderr
    assert len(tilp.load(place)._fitted.updates) == 1


def test_a_model_that_another_process_replaced_is_not_written_over(tmp_path):
    place = fitted().save(tmp_path / "model")
    first, second = tilp.load(place), tilp.load(place)
    new = parts()[1]
    updated = first.update(new)
    updated.save(place, replace=True)
    updated.save(place, replace=True)  # its own save is no change by others
    was = contents(place)
    with pytest.raises(TilpError, match="changed since this model was loaded"):
        second.update(new).save(place, replace=True)
    assert contents(place) == was
    assert second.update(new).save(tmp_path / "elsewhere").exists()
    assert tilp.load(place).update(new).save(place, replace=True) == place
