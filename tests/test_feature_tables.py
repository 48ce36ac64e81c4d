"""Temporal features to read: the paper's distributions, and what phase two learned."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import tilp
from tilp import TILP, TILPConfig
from tilp.errors import TilpError
from tilp.features.candidate_counts import COUNT_FEATURES
from tilp.features.candidate_history import (
    HISTORY_KINDS,
    CandidateHistory,
    fact_edges,
    listed_candidates,
)
from tilp.features.log_linear import TERMS
from tilp.graph import QueryTable
from tilp.types import Features


@pytest.fixture(scope="module")
def model():
    """One with all features."""
    graph = tilp.datasets.world(0, 3_000).graph
    return TILP(max_length=2, max_rules=100, n_jobs=2, config=TILPConfig(sample=40)).fit(graph)


@pytest.fixture(scope="module")
def paper():
    """One with the paper's features."""
    graph = tilp.datasets.world(1, 1_000).graph
    return TILP(max_length=1, features="paper", n_jobs=2, config=TILPConfig(sample=40)).fit(graph)


@pytest.fixture(scope="module")
def rules_alone(model):
    settings = replace(model.settings, features=Features.NONE)
    return TILP.from_parts(settings, model.graph, replace(model._fitted, features=None))


def test_the_planted_gap_is_in_the_table_whatever_the_features(model, rules_alone):
    table = model.feature_table()
    pair = table.filter(feature="pair", relation="bornIn⁻¹", other="graduatedFrom")
    (row,) = pair.filter(evidence="others").to_dicts()
    assert row["distribution"] == "Gaussian" and not row["pooled"]
    assert row["mean"] == pytest.approx(22, abs=0.3)
    assert rules_alone.feature_table().equals(table)


def test_a_model_of_the_paper_shows_what_it_holds(paper):
    held = paper._fitted.features.features.distributions
    assert paper.feature_table().equals(held.table(paper.graph.relations))


# what phase two learned


def test_learned_words_add_up_to_the_terms_of_scores(model):
    """Of some candidates: the words for their facts, looked up by what they say."""
    graph, learned = model.graph, model.feature_weights()
    queries = QueryTable.of_facts(graph, np.asarray(graph.rows("test")), walked=False)
    size = 2 * len(graph.relations)
    queries = queries[np.arange(0, len(queries), 12)]
    candidates = np.unique(np.append(queries.answer, queries.subject))[:60]
    begin = np.arange(len(queries) + 1) * len(candidates)
    listed = np.tile(candidates, len(queries)).astype(np.int32)
    terms = model.scorer().contributions(queries, begin, listed)
    facts = CandidateHistory(fact_edges(graph), size, model._fitted.features.distance_bounds)
    of, words = facts.list_features(listed_candidates(queries, begin, listed))
    columns = ("query", "part", "of", "words")
    weights = dict(
        zip(learned.select(columns).iter_rows(), learned["weight"].to_list(), strict=True)
    )
    found = {kind: np.zeros(len(listed)) for kind in HISTORY_KINDS}
    for place in range(len(listed)):
        head = graph.relations.label(queries.directed_relation[place // len(candidates)])
        for number in words[of[place] : of[place + 1]].tolist():
            group, word = divmod(number, facts.n_features)
            kind, relation = divmod(group, size)
            said = (graph.relations.label(relation), facts.describe(word, "year"))
            found[HISTORY_KINDS[kind]][place] += weights.get(
                (head, HISTORY_KINDS[kind], *said), 0.0
            )
    for kind in HISTORY_KINDS:
        assert np.abs(terms[kind]).max() > 0.1
        assert np.allclose(found[kind], terms[kind])


def test_learned_weights_are_told_the_strongest_first(model):
    learned, joint = model.feature_weights(), model._fitted.features
    of_rules = learned.filter(part="rule evidence")
    expected = {
        str(one.rule): weight
        for one, weight in zip(model._fitted.rules, joint.rule, strict=True)
        if weight
    }
    assert dict(of_rules.select("of", "weight").iter_rows()) == expected and expected
    relations = model.graph.relations
    for place, part in enumerate(("rules", "random walks")):
        weights = dict(learned.filter(part=part).select("query", "weight").iter_rows())
        for head in range(2 * len(relations)):
            assert weights.get(relations.label(head), 0.0) == joint.dense[head, place]
    one = model.feature_weights("livesIn^-1")
    assert set(one["query"]) == {"livesIn⁻¹"} and one["part"][0] == "rules"
    words = one.filter(pl.col("words").is_not_null())
    assert words["weight"].abs().is_sorted(descending=True) and len(words) > 100
    first = words.row(0, named=True)
    said = f"{first['of']} of the candidate: {first['words']}: {first['weight']:+.2f}"
    assert first["part"] == "other facts" and first["sentence"] == said
    head = relations.find("livesIn") + len(relations)
    factors = one.filter(part="factor")
    assert dict(factors.select("of", "weight").iter_rows()) == dict(
        zip(TERMS, joint.terms[head].tolist(), strict=True)
    )
    assert factors["sentence"][0] == f"rules: learned weights × {joint.terms[head, 0]:.2f}"
    counts = [one.filter(part=name)["weight"].sum() for name in COUNT_FEATURES]
    assert counts == joint.counts[head].tolist() and any(counts)


def test_learned_weights_of_the_paper_are_products(paper, rules_alone):
    weights = paper._fitted.features.weights
    learned = dict(paper.feature_weights().select("part", "weight").iter_rows())
    assert learned.pop("rules") == weights.rules
    assert sum(learned.values()) == pytest.approx(weights.features * weights.evidence.sum())
    share = weights.features * weights.evidence[1] * weights.mixing[1, 2]
    assert learned["pair_others"] == pytest.approx(share)
    with pytest.raises(TilpError, match="fit one with --features full"):
        rules_alone.feature_weights()


def test_directed_relations_are_found_by_name(model):
    relations = model.graph.relations
    number = relations.find("livesIn")
    assert relations.find_directed("livesIn") == number
    assert relations.find_directed("livesIn^-1") == number + len(relations)
    assert relations.find_directed("livesIn⁻¹") == number + len(relations)
