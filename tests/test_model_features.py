"""Models with temporal features: choices, other graphs, saving, and going on after a stop."""

import hashlib
import json
import shutil
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

import tilp
from models import KilledError, contents, edit, kill_at
from strategies import both_ways, small_world
from tilp import TILP, Query, TILPConfig
from tilp._utils.files import note_digest, read_arrays, write_arrays
from tilp.errors import TilpError
from tilp.evaluation import evaluate
from tilp.features.paper.features import FEATURES
from tilp.graph import QueryTable, Vocabulary
from tilp.learning.rule_weights import TrainingSettings
from tilp.model import ModelSettings
from tilp.types import Features, Grain, Missing, Part, Preset, Weights

QUICK = {
    "max_length": 1,
    "n_jobs": 1,
    "config": TILPConfig(sample=40, training=TrainingSettings(steps=10, dimension=8)),
}
OF_PAPER = tuple(Part(name) for name in FEATURES)
OF_FULL = tuple(part for part in Part if part not in OF_PAPER)


pytestmark = pytest.mark.usefixtures("quick_features")


def quick(**config):
    return {**QUICK, "config": replace(QUICK["config"], **config)}


@cache
def fitted(features, without=(), missing="point"):
    options = quick(without=without)
    return TILP(features=features, missing=missing, **options).fit(small_world())


def some_queries(graph):
    queries = both_ways(graph, every=12)
    return [*queries, *(replace(one, start=None, end=None) for one in queries[:3])]


def by_candidate(model, queries, graph):
    """Every score by query and candidate's name."""
    found = model.predict(queries, len(graph.entities), graph=graph)
    return found.select("query", "candidate", "score", "share", "known").sort("query", "candidate")


# Choices


@pytest.mark.parametrize("features", list(Features))
def test_every_kind_of_features_is_saved_and_loaded(tmp_path, features):
    model = fitted(features)
    folder = model.save(tmp_path / "m")
    assert (folder / "features.npz").exists() == (features is not Features.NONE)
    again = tilp.load(folder)
    assert again.settings == model.settings and again.settings.features is features
    assert again.features is features and repr(again) == repr(model)
    queries = some_queries(model.graph)
    assert again.predict(queries).equals(model.predict(queries))
    assert again.evaluate(protocols=["raw"]) == model.evaluate(protocols=["raw"])
    assert contents(again.save(tmp_path / "again")) == contents(folder)


def test_features_change_the_scores_and_not_the_rules():
    models = [fitted(features) for features in Features]
    rules = [{mined.rule for mined in model.rules()} for model in models]
    assert rules[0] == rules[1] == rules[2]
    queries = some_queries(small_world())
    scores = [model.predict(queries)["score"].to_list() for model in models]
    assert scores[0] != scores[1] != scores[2] != scores[0]


def test_features_of_the_paper_count_as_far_as_they_rank_held_out_answers_better():
    figures = {
        features: fitted(features).evaluate("valid", protocols=["enumerate"]).metrics().mrr
        for features in (Features.NONE, Features.PAPER)
    }
    scorer = fitted(Features.PAPER).scorer()
    queries = QueryTable.of_facts(
        small_world(), np.asarray(small_world().rows("valid")), walked=False
    )
    applied = scorer.rule_scorer.apply_rules(queries)
    variants = [
        replace(scorer._weights, features=gamma) for gamma in (0.0, scorer._weights.features)
    ]
    alone, together = scorer.score_variants(variants, queries, applied)
    assert figures[Features.PAPER] >= figures[Features.NONE]
    for scores, features in ((alone, Features.NONE), (together, Features.PAPER)):
        found = evaluate(scores, small_world(), "valid", protocols=["enumerate"]).metrics().mrr
        assert found == pytest.approx(figures[features])


@pytest.mark.parametrize("features", list(Features))
def test_shares_are_of_all_candidates(features):
    model = fitted(features)
    queries = some_queries(model.graph)
    found = model.predict(queries, len(model.graph.entities))
    assert (found["share"] >= 0).all() and (found["share"] <= 1).all()
    totals = found.group_by("query").agg(pl.col("share").sum())["share"]
    assert totals.to_list() == pytest.approx([1.0] * len(queries))
    ordered = found.group_by("query", maintain_order=True).agg(
        pl.col("score").is_sorted(descending=True).alias("score"),
        pl.col("share").is_sorted(descending=True).alias("share"),
    )
    assert ordered["score"].all() and ordered["share"].all()
    assert len(model.predict([])) == 0


@pytest.mark.parametrize("part", list(Part))
def test_every_part_can_be_left_out(tmp_path, part):
    features = "paper" if part in OF_PAPER else "full"
    model, whole = fitted(features, (part,)), fitted(features)
    assert model.settings.without == (part,)
    learned = model._fitted.features
    if part in OF_PAPER:
        place = FEATURES.index(part.value)
        assert not learned.weights.mixing[:, place].any()
        assert whole._fitted.features.weights.mixing[:, place].any()
    elif part is Part.RULE_EVIDENCE:
        assert not learned.rule.any() and whole._fitted.features.rule.any()
    elif part is Part.OWN_FACTS:
        assert (learned.history_row == -1).all() and not learned.history.size
        assert (whole._fitted.features.history_row >= 0).any()
    elif part is Part.SOFT_WALKS:
        assert not learned.dense[:, 1].any() and whole._fitted.features.dense[:, 1].any()
    elif part is Part.STACKING:
        assert (learned.terms == 1.0).all() and not learned.counts[:, :-1].any()
        assert (whole._fitted.features.terms != 1.0).any()
    elif part is Part.COUNTS:
        assert not learned.counts[:, :-1].any() and whole._fitted.features.counts[:, :-1].any()
    elif part is Part.KINDS:
        assert not learned.counts[:, -1].any() and whole._fitted.features.counts[:, -1].any()
    else:
        assert part is Part.VALID
        assert not np.array_equal(learned.terms, whole._fitted.features.terms)
        assert (learned.terms != 1.0).any()
    queries = some_queries(model.graph)
    found = model.predict(queries)
    assert not found["score"].equals(whole.predict(queries)["score"])
    again = tilp.load(model.save(tmp_path / "m"))
    assert again.settings == model.settings and again.predict(queries).equals(found)


def test_several_parts_are_left_out_in_any_order_and_shape():
    configs = (
        TILPConfig(without=["soft-walks", Part.STACKING, "soft-walks"]),
        TILPConfig(without=iter([Part.STACKING, Part.SOFT_WALKS])),
    )
    one, two = (TILP(config=config) for config in configs)
    assert one.settings == two.settings
    assert one.settings.without == (Part.SOFT_WALKS, Part.STACKING)
    as_text = json.loads(json.dumps(one.settings.to_json()))
    assert ModelSettings.from_json(as_text) == one.settings
    everything = TILP(features="full", **quick(without=list(Part))).fit(small_world())
    alone = everything.scorer()
    queries = some_queries(small_world())
    scores = by_candidate(everything, queries, everything.graph)
    rules_alone = replace(everything.settings, features=Features.NONE)
    fit = replace(everything._need_fit(), features=None)
    plain = by_candidate(
        TILP.from_parts(rules_alone, everything.graph, fit), queries, everything.graph
    )
    # The rules alone, as logarithms of what they are above the least, by a weight for each head.
    for number in range(len(queries)):
        mine, rules = (one.filter(query=number)["score"].to_numpy() for one in (scores, plain))
        logs = np.log(rules / rules.min())
        weight = mine[logs.argmax()] / logs.max()
        np.testing.assert_allclose(mine, weight * logs, rtol=1e-6, atol=1e-9)
    assert not alone.weights.rule.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"without": ["rules"]}, "without is 'rules'; it can be recurrence, order, pair, rule-"),
        ({"features": "all"}, "features is 'all'; it can be none, paper, full"),
        ({"preset": "best"}, "preset is 'best'; it can be default, paper"),
        ({"walk_length": 6}, "walk_length is 6; it can be 1 to 5"),
        ({"walk_length": 0}, "walk_length is 0; it can be 1 to 5"),
    ],
)
def test_what_cannot_be_chosen_is_said(options, message):
    with pytest.raises(TilpError, match=message):
        TILP.from_options(**options)


def test_steps_of_soft_walks_reach_further():
    models = [
        TILP(features="full", **quick(walk_length=length)).fit(small_world()) for length in (1, 3)
    ]
    assert [model.settings.walk_length for model in models] == [1, 3]
    assert not models[0]._fitted.features.dense[:, 1].any()
    assert models[1]._fitted.features.dense[:, 1].any()


# Presets


def test_the_preset_of_the_paper_is_its_system():
    settings = TILP.paper().settings
    assert settings.mining.max_length == 5 and settings.mining.grains == (Grain.PAIRS,)
    assert settings.training.weights is Weights.ATTENTION
    assert settings.features is Features.PAPER and settings.missing is Missing.DURATION
    assert (settings.training.walks_power, settings.training.ranking_power) == (0.0, 0.0)
    assert not settings.training.known_factors
    assert not (settings.select or settings.mining.distinct)
    assert settings.max_rules == settings.mining.top == 3_000
    assert settings.mining.limit == 1_000_000
    assert TILP().settings == TILP.from_options(Preset.DEFAULT).settings == ModelSettings()


def test_what_is_said_wins_over_the_preset():
    rare = TrainingSettings(steps=7)
    settings = TILP.paper(
        max_length=2,
        temporal_detail=["gap"],
        rule_weights="free",
        features="none",
        missing="open",
        random_state=3,
        config=TILPConfig(training=rare),
    ).settings
    assert settings.mining.max_length == 2 and settings.mining.grains == (Grain.GAP,)
    assert settings.features is Features.NONE and settings.missing is Missing.OPEN
    assert settings.training == replace(rare, weights=Weights.FREE, seed=3)


def test_a_model_of_the_paper_counts_walks_and_ends_alike(tmp_path):
    training = replace(TILP.paper().config.training, steps=10, dimension=8)
    config = TILPConfig(sample=30, training=training)
    model = TILP.paper(max_length=1, rule_weights="free", n_jobs=1, config=config)
    model.fit(small_world())
    assert (model.weights.factor == 1.0).all() and model.weights.walks_power == 0.0
    assert "stack" not in model.seconds and "features" in model.seconds
    again = tilp.load(model.save(tmp_path / "m"))
    queries = some_queries(model.graph)
    assert again.settings == model.settings
    assert again.predict(queries).equals(model.predict(queries))


# Other graphs


def turned(graph):
    """The same facts, but relations and entities are numbered from the last to the first."""
    names = [
        Vocabulary.of(one.kind, one.ids.reverse()) for one in (graph.entities, graph.relations)
    ]
    columns = {
        "subject": len(graph.entities) - 1 - graph.subject,
        "relation": len(graph.relations) - 1 - graph.relation,
        "object": len(graph.entities) - 1 - graph.object,
        "start": graph.start,
        "end": graph.end,
    }
    splits = np.repeat(np.arange(3, dtype=np.uint8), np.diff(graph.bounds))
    return tilp.TemporalGraph.from_arrays(*names, columns, splits)


def assert_alike(model, queries, first, second):
    here, there = (by_candidate(model, queries, one) for one in (first, second))
    assert here.drop("score", "share").equals(there.drop("score", "share"))
    np.testing.assert_allclose(there["score"], here["score"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there["share"], here["share"], rtol=1e-6)


@pytest.mark.parametrize("features", ["full", "paper"])
def test_the_order_of_relations_does_not_matter(features):
    graph, model = small_world(), fitted(features)
    assert list(turned(graph).relations) == list(graph.relations)[::-1]
    assert_alike(model, some_queries(graph), graph, turned(graph))


@pytest.mark.parametrize("features", ["full", "paper"])
def test_features_work_with_some_of_the_relations(features):
    graph, model = small_world(), fitted(features)
    gone = ["memberOfClub", "diedIn"]
    frames = {
        split: graph.frame(split).filter(~pl.col("relation").is_in(gone)) for split in tilp.SPLITS
    }
    fewer = tilp.read(frames)
    assert 0 < len(fewer.relations) == len(graph.relations) - 2
    there = set(fewer.entities)
    queries = [
        one
        for one in some_queries(graph)
        if one.relation not in gone and (one.subject or one.object) in there
    ]
    assert_alike(model, queries, fewer, turned(fewer))
    # Two relations less are less evidence, and no worse than that.
    here, whole = (by_candidate(model, queries, one) for one in (fewer, graph))
    both = here.join(whole, on=["query", "candidate"])
    assert len(both) == len(here)
    assert not np.allclose(both["score"], both["score_right"])
    assert np.corrcoef(both["score"], both["score_right"])[0, 1] > 0.8


@pytest.mark.parametrize("features", ["full", "paper"])
def test_a_relation_that_the_model_never_saw(features):
    model = fitted(features)
    rows = [
        ("Ada", "livesIn", "Rome", "1980", "1990"),
        ("Ada", "admires", "Bob", "1985", "1990"),
        ("Bob", "livesIn", "Oslo", "1970", "1975"),
        ("Bob", "diedIn", "Oslo", "1999", "1999"),
        ("Bob", "admires", "Eve", "1985", "1990"),
    ]
    columns = ["subject", "relation", "object", "start", "end"]
    other = tilp.read(pl.DataFrame(rows, columns, orient="row"), unit="year")
    queries = [Query("admires", "Ada", start=1986), Query("livesIn", object="Oslo", start=1971)]
    found = model.predict(queries, graph=other)
    assert len(found) == 2 * len(other.entities) and found["score"].is_finite().all()
    assert found.filter(query=0)["candidate"][0] in ("Bob", "Eve")


@pytest.mark.parametrize("missing", list(Missing))
@pytest.mark.parametrize("features", ["full", "paper"])
def test_every_treatment_of_missing_dates_goes_with_features(tmp_path, features, missing):
    model = fitted(features, missing=missing)
    queries = some_queries(model.graph)
    queries += [replace(one, end=None) for one in queries[:4]]
    found = model.predict(queries)
    again = tilp.load(model.save(tmp_path / "m"))
    assert again.settings.missing is missing and again.predict(queries).equals(found)
    for number in (0, len(queries) - 1):
        alone = model.predict(queries[number])
        part = found.filter(query=number)
        assert alone["candidate"].equals(part["candidate"])
        np.testing.assert_allclose(alone["score"], part["score"], rtol=1e-12)


# Saved models


@pytest.fixture(params=["full", "paper"])
def saved(request, tmp_path):
    return fitted(request.param).save(tmp_path / "saved")


DAMAGES = {
    "no features": lambda path: path.unlink(),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "empty": lambda path: path.write_bytes(b""),
    "other bytes": lambda path: path.write_bytes(b"other"),
    "other arrays": lambda path: write_arrays(path, {"a": np.ones(3)}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_features_are_refused_and_named(saved, damage):
    path = saved / "features.npz"
    DAMAGES[damage](path)
    with pytest.raises(TilpError, match=r"features\.npz"):
        tilp.load(saved)


def with_digest(folder):
    """Put the right digests of features and note into the note."""
    digest = hashlib.sha256((folder / "features.npz").read_bytes()).hexdigest()

    def sign(note):
        note["features_sha256"] = digest
        note.pop("sha256")
        note["sha256"] = note_digest(note)

    edit(folder / "model.json", sign)


def test_features_that_lack_something_are_refused(saved):
    path = saved / "features.npz"
    whole = read_arrays(path)
    for name in sorted(set(whole) - {"pull"}):  # which models of before do not tell
        path.unlink()
        write_arrays(path, {one: array for one, array in whole.items() if one != name})
        with_digest(saved)
        with pytest.raises(TilpError, match="lack"):
            tilp.load(saved)
    path.unlink()
    write_arrays(path, whole)
    with_digest(saved)
    assert tilp.load(saved).settings.features in ("full", "paper")


# The same model, however it is fitted


@pytest.mark.parametrize("features", ["full", "paper"])
def test_threads_do_not_change_a_byte(tmp_path, features):
    one = fitted(features)
    two = TILP(features=features, **{**QUICK, "n_jobs": 2}).fit(small_world())
    assert contents(two.save(tmp_path / "two")) == contents(one.save(tmp_path / "one"))


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("fold-1-state.npz", "before"),
        ("head-0.npz", "after"),
        ("head-7.npz", "before"),
    ],
)
def test_a_fit_that_was_stopped_in_phase_two_goes_on(tmp_path, monkeypatch, name, moment):
    graph, work = small_world(), tmp_path / "work"
    with monkeypatch.context() as patched, pytest.raises(KilledError):
        kill_at(patched, name, 1, moment)
        TILP(features="full", **QUICK).fit(graph, folder=work)
    left = sorted(path.name for path in work.glob("head-*.npz"))
    assert (name in left) == (name.startswith("head") and moment == "after")

    def again(*_, **__):
        raise AssertionError("done again")

    with monkeypatch.context() as patched:
        patched.setattr("tilp.model.fit.make_training_examples", again)
        model = TILP(features="full", **{**QUICK, "n_jobs": 2}).fit(graph, folder=work)
    whole = fitted("full")
    assert contents(model.save(tmp_path / "m")) == contents(whole.save(tmp_path / "whole"))


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """What a fit leaves to go on from."""
    folder = tmp_path_factory.mktemp("work")
    TILP(features="full", **QUICK).fit(small_world(), folder=folder)
    return folder


def test_heads_that_were_learned_are_not_learned_again(tmp_path, monkeypatch, work):
    graph = small_world()
    assert len(list(work.glob("head-*.npz"))) == 2 * len(graph.relations)

    def again(*_, **__):
        raise AssertionError("done again")

    whole = contents(fitted("full").save(tmp_path / "whole"))
    monkeypatch.setattr("tilp.features.log_linear.fit_relation_weights", again)
    model = TILP(features="full", **QUICK).fit(graph, folder=work)
    assert contents(model.save(tmp_path / "m")) == whole
    with pytest.raises(TilpError, match="begun with other data or settings"):
        TILP(features="full", **quick(without=["stacking"])).fit(graph, folder=work)


@pytest.mark.parametrize("left", ["half", "nothing", "other bytes"])
def test_a_damaged_head_is_named(tmp_path, work, left):
    folder = shutil.copytree(work, tmp_path / "work")
    path = folder / "head-3.npz"
    whole = path.read_bytes()
    path.write_bytes({"half": whole[: len(whole) // 2], "nothing": b"", "other bytes": b"o"}[left])
    with pytest.raises(TilpError, match=r"head-3\.npz: damaged .*; remove it"):
        TILP(features="full", **QUICK).fit(small_world(), folder=folder)


@pytest.mark.parametrize(
    ("features", "stages"),
    [
        ("full", ["mine", "apply", "select", "train", "features", "stack", "time"]),
        ("paper", ["mine", "apply", "select", "train", "features", "time"]),
    ],
)
def test_progress_tells_of_every_stage(features, stages):
    told = {}
    TILP(features=features, **QUICK).fit(
        small_world(), progress=lambda name, share: told.setdefault(name, []).append(share)
    )
    assert list(told) == stages
    for shares in told.values():
        assert shares[-1] == 1.0 and min(shares) >= 0
    assert told["features"] == sorted(told["features"])
