"""The estimator: fitting, rules, evaluation, and the examples of the documentation."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import tilp
from models import FAST, contents, fitted, same
from strategies import both_ways, small_world
from tilp import TILP, Query
from tilp.errors import TilpError, TilpWarning
from tilp.evaluation import evaluate
from tilp.learning import KNOWN_KINDS


@pytest.fixture
def model(rule_model):
    return rule_model


def test_planted_rules_are_among_the_heaviest_of_their_relations():
    world = tilp.datasets.world(1, 3_000)
    model = TILP(2, features="none", temporal_detail=["pairs"], n_jobs=2).fit(world.graph)
    planted = {}
    for rule in world.rules:
        if rule.length <= 2:
            planted.setdefault(rule.relation, []).append(rule.text)
    assert len(planted) > 5
    for relation, texts in planted.items():
        rules = [str(one.rule) for one in model.rules(relation)]
        ranks = sorted(rules.index(text) + 1 for text in texts)
        assert ranks[0] <= 2 and ranks[-1] <= 6, (relation, ranks)


def test_rules_are_of_the_relation_asked_for_and_the_best_come_first(model):
    for name, head in (
        ("livesIn", "livesIn"),
        ("livesIn⁻¹", "livesIn⁻¹"),
        ("livesIn^-1", "livesIn⁻¹"),
    ):
        rules = model.rules(name)
        assert {str(one.rule.head) for one in rules} == {head}
        chains = [one.rule.body for one in rules]
        is_first = [chain not in chains[:place] for place, chain in enumerate(chains)]
        assert is_first == sorted(is_first, reverse=True)  # the best of each chain, then the rest
        orders = [(first, one.order) for first, one in zip(is_first, rules, strict=True)]
        assert orders == sorted(orders, reverse=True) and orders[0] > orders[-1]
    everything = model.rules()
    by_head = {}
    for one in everything:
        by_head.setdefault(str(one.rule.head), []).append(one)
    assert by_head["livesIn"] == list(model.rules("livesIn"))
    assert sum(map(len, by_head.values())) == len(everything)
    with pytest.raises(TilpError, match="did you mean 'livesIn'"):
        model.rules("liveIn")


@pytest.mark.parametrize("weights", ["attention", "free"])
def test_every_kind_of_weights_is_finite_and_is_learned(tmp_path, weights):
    graph, model = small_world(), fitted(weights)
    learned = model.weights
    for array in (learned.rule, learned.prior, learned.factor):
        assert np.isfinite(array).all() and (array >= 0).all()
    assert learned.rule.shape == (len(model.rules()),)
    assert learned.prior.shape == (2 * len(graph.relations),)
    assert learned.factor.shape == (2 * len(graph.relations), len(KNOWN_KINDS))
    assert len(set(np.round(learned.rule, 9))) > len(learned.rule) // 10
    assert min(model.curve.held_out) < model.curve.held_out[0]
    assert len(model.curve.held_out) == len(model.curve.held_out_step)
    assert f"{len(model.rules()):,} rules" in repr(model)
    assert set(model.seconds) == {"mine", "apply", "select", "train", "time"}
    assert same(tilp.load(model.save(tmp_path / "m")), model)


def test_threads_change_no_byte_and_seeds_change_the_model(tmp_path):
    def files(name, **options):
        config = replace(FAST["config"], walk_limit=300)
        options = {**FAST, "config": config, **options}
        return contents(TILP(**options).fit(small_world()).save(tmp_path / name))

    one = files("one", random_state=3, n_jobs=1)
    for threads in (2, 3):
        assert files(f"{threads}", random_state=3, n_jobs=threads) == one
    other = files("other", random_state=4)
    assert other["rules.jsonl"] != one["rules.jsonl"]
    net = TILP(rule_weights="attention", **{**FAST, "n_jobs": 3}).fit(small_world())
    assert contents(net.save(tmp_path / "a")) == contents(fitted("attention").save(tmp_path / "b"))


def test_without_valid_a_seeded_tenth_of_train_decides(tmp_path):
    facts = small_world().frame("train")
    graph = tilp.read(facts)
    assert len(graph.rows("valid")) == 0
    first, again = (TILP(**{**FAST, "n_jobs": n}).fit(graph) for n in (1, 3))
    assert first.curve.held_out and np.isfinite(first.curve.held_out).all()
    assert contents(first.save(tmp_path / "a")) == contents(again.save(tmp_path / "b"))
    other = TILP(random_state=1, **FAST).fit(graph)
    assert other.curve.held_out != first.curve.held_out
    found = first.predict(Query("diedIn", facts["subject"][0]), 3)
    assert len(found) == 3


def test_what_cannot_be_fitted_is_said():
    nothing = pl.DataFrame(schema=dict.fromkeys(("subject", "relation", "object"), pl.String))
    with pytest.warns(TilpWarning, match="train is empty"):
        empty = tilp.read(nothing)
    with pytest.raises(TilpError, match="no training facts"):
        TILP().fit(empty)
    lonely = pl.DataFrame({"subject": ["a"], "relation": ["r"], "object": ["b"]})
    with pytest.raises(TilpError, match="no rule was found"):
        TILP(1).fit(tilp.read(lonely))
    with pytest.raises(TilpError, match="1 to 5"):
        TILP(0).fit(small_world())


@pytest.mark.parametrize(
    "options",
    [
        {"rule_weights": "heavy"},
        {"features": "all"},
        {"temporal_detail": ["fine"]},
        {"temporal_detail": []},
    ],
)
def test_what_cannot_be_chosen_is_said(options):
    with pytest.raises(TilpError, match=next(iter(options))):
        TILP(1, **options).fit(small_world())


def test_evaluation_is_that_of_the_scorer_whatever_the_batch_and_threads(model):
    whole = model.evaluate()
    assert len(whole) == 2 * len(model.graph.rows("test"))
    options = {"note": repr(model)}
    assert evaluate(model.scorer(), model.graph, **options) == whole
    for batch, threads in ((1, 1), (7, 3), (10_000, 2)):
        again = evaluate(model.scorer(), model.graph, batch=batch, threads=threads, **options)
        assert again == whole
    shares = []
    model.evaluate("valid", protocols=["raw"], progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert model.evaluate("valid", protocols=["raw"]).protocols == ("raw",)


def test_evaluation_ranks_as_predict_does(model):
    evaluation = model.evaluate(protocols=["raw"])
    column = evaluation.column()
    found = model.predict(both_ways(model.graph), len(model.graph.entities))
    facts = model.graph.frame("test")
    n = len(facts)
    for number in range(0, n, 9):
        for way, answer in enumerate((facts["object"][number], facts["subject"][number])):
            part = found.filter(query=2 * number + way)
            score = part.filter(candidate=answer)["score"][0]
            better, alike = (part["score"] > score).sum(), (part["score"] == score).sum()
            row = evaluation.ranks.row(number + way * n, named=True)
            assert row[column] == better + (alike + 1) / 2


def test_a_model_beats_what_it_falls_back_on(model):
    from tilp.evaluation import popularity

    floor = evaluate(popularity(model.graph), model.graph).metrics().mrr
    assert model.evaluate().metrics().mrr > floor + 0.1
