"""Evidence without some facts: what is taken from the whole against what is made anew."""

from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from oracles import assert_terms_add_up, of_pairs
from strategies import all_queries, both_ways, graphs, small_world, some_candidates
from tilp import TILP, TILPConfig
from tilp.features.candidate_history import fact_edges, fact_edges_without
from tilp.graph import QueryTable
from tilp.learning import PopularityPrior
from tilp.learning.rule_weights import TrainingSettings
from tilp.scoring.queries import query_table
from tilp.types import Features, Grain, Missing
from tilp.walks import Walker

NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")

# Walkers


@st.composite
def cuts(draw):
    """A graph, and some of its facts, perhaps all."""
    graph = draw(graphs())
    return graph, draw(st.lists(st.integers(0, len(graph) - 1), max_size=len(graph)))


@NO_WARNING
@settings(max_examples=60)
@given(cuts())
def test_edges_that_are_left_are_those_of_the_graph_that_is_left(cut):
    graph, gone = cut
    options = {"max_length": 2}
    whole = Walker(graph, **options)
    left, anew = whole.without(gone), Walker(graph.without(gone), **options)
    assert left.graph == anew.graph
    for name in anew.edges._fields:
        found, expected = getattr(left.edges, name), getattr(anew.edges, name)
        assert np.array_equal(found, expected), name
        assert found.dtype == expected.dtype, name
        assert found.flags.writeable == expected.flags.writeable, "two loops would be compiled"
    assert np.array_equal(left.steps_from, anew.steps_from)
    assert len(whole.edges.fact) == len(Walker(graph, **options).edges.fact)


def walked(walker, queries):
    records, weights = walker.count(queries)
    return sorted(map(tuple, records.tolist())), weights.tolist()


@NO_WARNING
@settings(max_examples=30)
@given(cuts())
def test_walks_that_are_left_are_those_of_the_graph_that_is_left(cut):
    graph, gone = cut
    options = {"grains": [Grain.PAIRS], "max_length": 2}
    whole = Walker(graph, **options)
    before = walked(whole, all_queries(graph))
    left, anew = whole.without(gone), Walker(graph.without(gone), **options)
    queries = all_queries(left.graph)
    assert walked(left, queries) == walked(anew, queries)
    if len(queries):
        compiled = left.encoding.compiled(np.unique(anew.find(queries)[0], axis=0))
        found, _ = left.apply(queries, compiled)
        assert np.array_equal(found, anew.apply(queries, compiled)[0])
    assert walked(whole, all_queries(graph)) == before, "the whole is as it was"


@NO_WARNING
@settings(max_examples=40)
@given(cuts())
def test_facts_of_candidates_that_are_left(cut):
    graph, gone = cut
    left = graph.without(gone)
    found = fact_edges_without(fact_edges(graph), graph.rows_after_removal(gone), left)
    expected = fact_edges(left)
    for name in ("offsets", "relation", "target", "fact", "start", "end"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    for of_edge, of_interval in (("start", "starts"), ("end", "ends")):
        times = getattr(found, of_interval)[found.interval]
        assert np.array_equal(times, getattr(found, of_edge)), of_interval
    # Numbers of intervals may differ, but not which edges share one.
    pairs = set(zip(found.interval.tolist(), expected.interval.tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@NO_WARNING
@settings(max_examples=40)
@given(cuts())
def test_the_prior_that_is_left(cut):
    graph, gone = cut
    left = PopularityPrior.from_graph(graph).without(graph, np.unique(np.array(gone, np.int64)))
    anew = PopularityPrior.from_graph(graph.without(gone))
    for name in ("offsets", "entity", "count"):
        found, expected = getattr(left, name), getattr(anew, name)
        assert np.array_equal(found, expected) and found.dtype == expected.dtype, name
    assert left.n_entities == anew.n_entities


def test_facts_of_other_splits_are_no_evidence(facts):
    graph = tilp.read({"train": facts[:3], "test": facts[3:]})
    prior = PopularityPrior.from_graph(graph)
    left = prior.without(graph, np.array([2, 3, 4]))
    assert left.count.sum() == prior.count.sum() - 2
    assert np.array_equal(Walker(graph).without([3, 4]).edges.fact, Walker(graph).edges.fact)


# Scorers

QUICK = {
    "max_length": 2,
    "max_rules": 100,
    "n_jobs": 1,
    "config": TILPConfig(sample=40, training=TrainingSettings(steps=10, dimension=8)),
}


@cache
def fitted(features, missing=Missing.POINT):
    return TILP(features=features, missing=missing, **QUICK).fit(small_world())


def near(graph, query, seed, count=4):
    """Some facts of train of a query's entity and of its neighbours, and others."""
    index, chance = graph.index(), np.random.default_rng(seed)
    (entity,) = query_table(graph, [query]).subject
    edges = index.edges(int(entity))
    own, there = index.fact[edges], index.target[edges]
    around = [index.fact[index.edges(int(one))] for one in there[:3]]
    some = np.concatenate([own, *around, chance.integers(0, len(graph.rows("train")), count)])
    return np.unique(chance.permutation(some)[:count])


def read_back(graph, facts, folder):
    """The graph written out, without the lines of some facts, and read again."""
    path = tilp.write(graph, folder) / "train.tsv"
    header, *lines = path.read_text("utf-8").splitlines(keepends=True)
    left = [line for number, line in enumerate(lines) if number not in set(facts.tolist())]
    path.write_text("".join([header, *left]), "utf-8")
    return tilp.read(folder)


def dense(scorer, table, n_entities):
    scores = scorer(table)
    begin = np.arange(len(table) + 1) * n_entities
    every = np.tile(np.arange(n_entities, dtype=np.int32), len(table))
    return of_pairs(scores, begin, every).reshape(len(table), -1)


KINDS_OF_MODELS = [
    *((features, Missing.POINT) for features in Features),
    *((Features.FULL, missing) for missing in Missing if missing is not Missing.POINT),
    (Features.PAPER, Missing.DURATION),
]


@pytest.mark.usefixtures("quick_features")
@pytest.mark.parametrize(("features", "missing"), KINDS_OF_MODELS)
def test_scores_without_facts_are_those_of_a_graph_that_never_had_them(tmp_path, features, missing):
    model = fitted(features, missing)
    graph, n = model.graph, len(model.graph.entities)
    whole = model.scorer()
    asked = both_ways(graph, "valid", every=16)
    asked += [replace(one, end=None) for one in asked[:2]]
    changed = 0
    for number, query in enumerate(asked):
        table = query_table(graph, [query])
        facts = near(graph, query, number)
        before = dense(whole, table, n)
        left = whole.without(facts)
        found = dense(left, table, n)
        np.testing.assert_allclose(
            found, dense(model.scorer(graph.without(facts)), table, n), rtol=1e-9, atol=1e-12
        )
        some = np.append(found[0].argsort()[-10:], np.arange(number, n, n // 20)).astype(np.int32)
        terms = left.contributions(table, np.array([0, len(some)]), some)
        assert_terms_add_up(terms, found[0, some])
        if number % 5 == 0:
            other = read_back(graph, facts, tmp_path / str(number))
            assert other == graph.without(facts)
            frame = model.predict(query, n, graph=other)
            places = [graph.entities.find(one) for one in frame["id"]]
            np.testing.assert_allclose(frame["score"], found[0, places], rtol=1e-9, atol=1e-12)
        changed += not np.allclose(found, before)
        np.testing.assert_array_equal(dense(whole, table, n), before)
    assert changed > len(asked) // 2


@pytest.mark.usefixtures("quick_features")
@pytest.mark.parametrize("features", list(Features))
def test_facts_are_taken_out_one_after_the_other_or_together(features):
    model = fitted(features)
    table = QueryTable.of_facts(
        model.graph, np.asarray(model.graph.rows("valid"))[:6], walked=False
    )
    first, second = np.array([3, 40, 41]), np.array([5, 39, 800])
    once = np.concatenate([first, [6, 42, 803]])
    n = len(model.graph.entities)
    scorer = model.scorer()
    found = dense(scorer.without(first).without(second), table, n)
    np.testing.assert_array_equal(found, dense(scorer.without(once), table, n))
    np.testing.assert_array_equal(dense(scorer.without([]), table, n), dense(scorer, table, n))


# Terms of candidates that are not looked at


@pytest.mark.usefixtures("quick_features")
@pytest.mark.parametrize(
    ("features", "limits"),
    [
        (Features.PAPER, {"max_candidates": 5}),
        (Features.FULL, {"max_entities": 0}),
        (Features.NONE, {}),
    ],
)
def test_terms_add_up_for_candidates_that_are_not_looked_at(features, limits):
    model = fitted(features)
    graph, scorer = model.graph, copy(model.scorer())
    vars(scorer).update(limits)
    table = QueryTable.of_facts(graph, np.asarray(graph.rows("valid"))[::10], walked=False)
    begin, candidate = some_candidates(graph, table, 60)
    terms = scorer.contributions(table, begin, candidate)
    scores = of_pairs(scorer(table), begin, candidate)
    assert_terms_add_up(terms, scores)
    assert set(terms) >= {"rules", "prior"} and len(np.unique(scores)) > 20
