"""Attributions and ablation effects of explanations, against facts that are really removed."""

import importlib
from functools import cache
from pathlib import Path

import pytest

from strategies import both_ways, small_world
from tilp import TILP, TILPConfig
from tilp.explanation import Grounding, Reason, WalkedFact
from tilp.explanation.attribution import top_grounding
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
def fitted(features, missing=None):
    return TILP(features=features, missing=missing, **QUICK).fit(small_world())


def walk(*facts, share=None):
    graph = small_world()
    return Grounding(tuple(WalkedFact(fact, graph.fact(fact)) for fact in facts), share)


def test_the_top_grounding_has_the_largest_sum_of_shares():
    one, other, back = walk(3, 4), walk(5), walk(4, 3)
    reasons = [
        Reason("rule", 4.0, "", (one, other), walks=4),
        Reason("rule", 3.0, "", (other,), walks=1),
        Reason("rule", 2.4, "", (back, walk(7, 8)), walks=2),
        Reason("rule", -1.0, "", (other,), walks=1),
        Reason("prior", 9.0, ""),
    ]
    # 4/4 + 3 - 1 of the one fact, 4/4 + 2.4/2 of the two.
    assert top_grounding(reasons) == (other, pytest.approx(3.0))
    assert top_grounding(reasons[:1] + reasons[2:]) == (one, pytest.approx(2.2))
    # Of equal sums the first.
    assert top_grounding(reasons[:1]) == (one, pytest.approx(1.0))


def test_walks_that_have_probabilities_share_by_them():
    likely, rare = walk(3, share=0.5), walk(4, share=0.01)
    reasons = [Reason("random walks", 6.0, "", (rare, likely), walks=2)]
    assert top_grounding(reasons) == (likely, pytest.approx(3.0))
    reasons.append(Reason("rule", 3.5, "", (walk(4),), walks=1))
    assert top_grounding(reasons) == (rare, pytest.approx(3.56))


def test_nothing_is_attributed_to_facts_against_a_candidate():
    assert top_grounding([Reason("prior", 1.0, "")]) is None
    assert top_grounding([Reason("rule", -2.0, "", (walk(3),), walks=1)]) is None


@pytest.mark.usefixtures("quick_features")
def test_shares_of_soft_walks_are_of_all_soft_walks():
    model = fitted(Features.FULL)
    seen = 0
    for query in both_ways(model.graph, "valid", every=12):
        for reason in model.explain(query, groundings=5, max_reasons=None, ablation=False).reasons:
            if reason.kind == "random walks":
                shares = [one.share for one in reason.groundings]
                assert all(share > 0 for share in shares) and sum(shares) <= 1 + 1e-6, shares
                seen += len(shares)
            else:
                assert all(one.share is None for one in reason.groundings)
    assert seen > 20


@pytest.mark.usefixtures("quick_features")
def test_ablation_is_computed_if_wanted_and_there_is_a_grounding():
    model = fitted(Features.FULL)
    query = both_ways(model.graph, "valid")[0]
    found = model.explain(query)
    assert found.ablation is not None and found.ablation.score_without == pytest.approx(
        found.score - found.ablation.drop
    )
    assert "Without " in str(found) and found.to_json()["fall"]["share"] == found.ablation.share
    plain = model.explain(query, ablation=False)
    assert plain.ablation is None and "Without " not in str(plain)
    assert plain.reasons == found.reasons and plain.to_json()["fall"] is None
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
            left = model.graph.without(found.ablation.grounding.facts)
            again = {one.id: one.score for one in model.ask(query, 10**6, graph=left)}
            assert found.ablation.score_without == pytest.approx(again[low.id], rel=1e-9, abs=1e-12)
            assert found.ablation.share >= 0
    assert stated


@pytest.mark.usefixtures("quick_features")
@pytest.mark.parametrize(
    ("features", "missing"),
    [
        (Features.NONE, None),
        (Features.PAPER, Missing.DURATION),
        (Features.FULL, None),
        (Features.FULL, Missing.UNKNOWN),
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
