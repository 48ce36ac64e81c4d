"""Attributions and ablation effects of explanations, against facts that are really removed."""

import importlib
from functools import cache
from pathlib import Path

import pytest

from strategies import both_ways, small_world
from tilp import TILP, TILPConfig
from tilp.learning.rule_weights import TrainingSettings
from tilp.types import Features, Missing

QUICK = {
    "max_length": 2,
    "max_rules": 100,
    "n_jobs": 1,
    "config": TILPConfig(sample=40, training=TrainingSettings(steps=10, dimension=8)),
}
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@cache
def fitted(features, missing=Missing.POINT):
    return TILP(features=features, missing=missing, **QUICK).fit(small_world())


@pytest.mark.usefixtures("quick_features")
def test_ablation_is_computed_if_wanted_and_there_is_a_grounding():
    model = fitted(Features.FULL)
    query = both_ways(model.graph, "valid")[0]
    found = model.explain(query)
    assert found.ablation is not None and found.ablation.score_without == pytest.approx(
        found.score - found.ablation.drop
    )
    first = next(one for one in found.reasons if one.score > 0 and one.groundings)
    assert found.ablation.facts == first.groundings[0].steps
    assert found.ablation.share == pytest.approx(first.score / found.score)
    assert "Without " in str(found) and found.to_json()["ablation"]["drop"] == found.ablation.drop
    plain = model.explain(query, ablation=False)
    assert plain.ablation is None and "Without " not in str(plain)
    assert plain.reasons == found.reasons and plain.to_json()["ablation"] is None
    assert model.explain(query, groundings=0).ablation is None


@pytest.mark.usefixtures("quick_features")
def test_a_low_candidate_is_scored_again_too():
    model = fitted(Features.FULL)
    stated = 0
    for query in both_ways(model.graph, "valid", every=20):
        low = model.ask(query, 300)[-1]
        found = model.explain(query, low.id)
        if found.ablation is not None:
            stated += 1
            left = model.graph.without([step.fact_id for step in found.ablation.facts])
            again = {one.id: one for one in model.ask(query, 10**6, graph=left)}
            score = pytest.approx(again[low.id].score, rel=1e-9, abs=1e-12)
            assert found.ablation.score_without == score
            assert found.ablation.share >= 0
    assert stated


@pytest.mark.usefixtures("quick_features")
@pytest.mark.parametrize(
    ("features", "missing"),
    [
        (Features.NONE, Missing.POINT),
        (Features.PAPER, Missing.DURATION),
        (Features.FULL, Missing.POINT),
        (Features.FULL, Missing.OPEN),
    ],
)
def test_removing_the_facts_gives_the_stated_drop(monkeypatch, features, missing):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fidelity = importlib.import_module("fidelity")
    model = fitted(features, missing)
    queries = fidelity.sample(model.graph, 12, 0)
    assert len(queries) == 12 and {one.subject is None for one in queries} == {True, False}
    found = fidelity.measured(model, queries)
    assert len(found) > 8 and (found["stated"] > 0).any()
    values = fidelity.figures(found)
    assert values["agree"] == 1.0 and values["greatest error"] <= 1e-9
    assert values["mean share"] > 0 and 0 <= values["first"] <= 1
    # A statement about other facts would be found out.
    moved = found.with_columns(stated=found["stated"].shift(1, fill_value=0.0))
    assert fidelity.figures(moved)["agree"] < 1.0
