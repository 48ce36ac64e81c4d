"""The last stage: counts of candidates, and factors of terms from facts that were held out."""

from dataclasses import replace
from math import log1p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from models import contents
from strategies import some_candidates
from tilp import TILP, TILPConfig
from tilp.features.candidate_counts import COUNT_FEATURES, CandidateCounts
from tilp.features.log_linear import TERMS
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.term_weights import TermTable, fit_terms, make_term_table
from tilp.graph import QueryTable
from tilp.learning import KNOWN_KINDS, Mark, PopularityPrior, known_answers
from tilp.learning.rule_weights import TrainingSettings
from tilp.parallel import Workers
from tilp.time import known_ends

QUICK = {
    "max_length": 1,
    "n_jobs": 1,
    "config": TILPConfig(sample=60, training=TrainingSettings(steps=20)),
}
N_COUNTS = len(COUNT_FEATURES)


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(0, 1_500).graph


@pytest.fixture(scope="module")
def model(world):
    return TILP(**QUICK).fit(world)


def queries_of(graph, split, count=60):
    rows = np.asarray(graph.rows(split), np.int64)
    queries = QueryTable.of_facts(graph, rows, walked=split == "train")
    return queries[np.sort(np.random.default_rng(2).permutation(len(queries))[:count])]


# Counts of candidates


def plain_counts(graph, queries, query, candidate, median):
    """Count the facts of a candidate one by one, without the query's own."""
    n, known_kind = len(graph.relations), -1
    relation = int(queries.directed_relation[query])
    degree = popularity = 0
    for fact in graph.rows("train"):
        if fact == queries.fact[query]:
            continue
        subject, object_ = int(graph.subject[fact]), int(graph.object[fact])
        degree += (subject == candidate) + (object_ == candidate)
        of, answer = (subject, object_) if relation < n else (object_, subject)
        if graph.relation[fact] == relation % n and answer == candidate:
            popularity += 1
            if of == queries.subject[query]:
                start, end = (int(time[0]) for time in known_ends(*(
                    column[fact : fact + 1] for column in (graph.start, graph.end)
                )))  # fmt: skip
                first, last = int(queries.start[query]), int(queries.end[query])
                kind = 3
                if end < first:
                    kind = 0
                elif start > last:
                    kind = 1
                elif (end == first and start < first) or (start == last and end > last):
                    kind = 2
                known_kind = max(known_kind, kind)
    known = [float(kind == known_kind) for kind in range(len(KNOWN_KINDS))]
    return [log1p(degree) - median, log1p(popularity), *known]


@pytest.mark.parametrize("split", ["valid", "train"])
def test_counts_equal_those_of_facts_one_by_one(split):
    graph = tilp.datasets.world(3, 1_000).graph
    queries = queries_of(graph, split, 400)
    queries = queries[np.flatnonzero(~queries.unknown.any(axis=1))[:12]]
    counts = CandidateCounts(graph, PopularityPrior.from_graph(graph))
    offsets, candidate = some_candidates(graph, queries, 25)
    known = known_answers(graph, queries.without_answers())
    found = counts.features(queries, known, offsets, candidate)
    degree = np.zeros(len(graph.entities), np.int64)
    for end in (graph.subject, graph.object):
        np.add.at(degree, end[graph.span("train")], 1)
    median = float(np.median(np.log1p(degree[degree > 0])))
    query = np.repeat(np.arange(len(queries)), np.diff(offsets))
    for row in range(len(candidate)):
        expected = plain_counts(graph, queries, query[row], int(candidate[row]), median)
        assert found[row, :-1].tolist() == pytest.approx(expected, abs=1e-12)
    never = counts.kinds.never(queries, offsets, candidate)
    assert never.any() and found[:, -1].tolist() == never.tolist()
    assert found[:, 2:-1].any() and (found[:, 0] != 0).any()


@pytest.mark.parametrize("split", ["valid", "train"])
def test_counts_of_all_entities_are_those_of_each(world, split):
    queries, n = queries_of(world, split), len(world.entities)
    counts = CandidateCounts(world, PopularityPrior.from_graph(world))
    known = known_answers(world, queries.without_answers())
    weight = np.random.default_rng(0).normal(size=(2 * len(world.relations), N_COUNTS))
    before = np.random.default_rng(1).normal(size=(len(queries), n))
    score = before.copy()
    counts.add_to_all(queries, known, weight, score)
    offsets = np.arange(len(queries) + 1) * n
    every = np.tile(np.arange(n, dtype=np.int32), len(queries))
    features = counts.features(queries, known, offsets, every)
    of_query = np.repeat(weight[queries.directed_relation], n, axis=0)
    expected = before.reshape(-1) + (features * of_query).sum(axis=1)
    np.testing.assert_allclose(score.reshape(-1), expected, rtol=1e-10, atol=1e-10)


# Factors of terms


def random_table(seed, n_queries, truth, n_candidates=12, relation=0):
    """Queries whose answers are drawn from the softmax of the true weights."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(n_queries * n_candidates, len(truth)))
    score = (values @ truth).reshape(n_queries, n_candidates)
    noisy = score + generator.gumbel(size=score.shape)
    offsets = np.arange(n_queries + 1) * n_candidates
    answer = offsets[:-1] + noisy.argmax(axis=1)
    return TermTable(offsets, answer, values, np.full(n_queries, relation, np.int32))


def test_factors_and_weights_that_made_the_answers_are_found_again():
    truth = np.concatenate([np.linspace(0.5, 2.0, len(TERMS)), np.linspace(-1, 1, N_COUNTS)])
    table = random_table(0, 4_000, truth)
    terms, counts = fit_terms(table, table.select(np.zeros(4_000, np.bool_)), 3)
    np.testing.assert_allclose(np.concatenate([terms[0], counts[0]]), truth, atol=0.15)
    # A relation without queries has what all share.
    np.testing.assert_allclose(terms[1], terms[2])
    np.testing.assert_allclose(terms[1], truth[: len(TERMS)], atol=0.15)


def test_few_queries_of_a_relation_move_its_weights_little():
    truth = np.ones(len(TERMS) + N_COUNTS)
    many = random_table(1, 3_000, truth, relation=0)
    few = random_table(2, 3, -truth, relation=1)
    empty = few.select(np.zeros(3, np.bool_))
    alone, _ = fit_terms(many, empty, 2)
    terms, _ = fit_terms(TermTable.join([many, few]), empty, 2)
    assert np.abs(terms[1] - alone[1]).max() < 0.6
    assert np.abs(terms[0] - alone[0]).max() < 0.1


def test_without_any_query_scores_stay_as_they_are():
    empty = random_table(0, 1, np.ones(len(TERMS) + N_COUNTS)).select(np.zeros(1, np.bool_))
    terms, counts = fit_terms(empty, empty, 4)
    assert (terms == 1.0).all() and not counts.any() and len(terms) == 4


def test_valid_moves_weights_from_those_of_folds_towards_its_own():
    truth = np.ones(len(TERMS) + N_COUNTS)
    folds, valid = random_table(3, 2_000, truth), random_table(4, 2_000, 0.3 * truth)
    before, _ = fit_terms(folds, valid.select(np.zeros(2_000, np.bool_)), 1)
    after, _ = fit_terms(folds, valid, 1)
    assert (after < before - 0.2).all() and (after > 0.2).all()


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_a_selection_of_a_joined_table_is_its_part(seed, size):
    truth = np.ones(len(TERMS) + N_COUNTS)
    first, second = random_table(seed, size, truth, 5), random_table(seed + 1, 4, truth, 7)
    joined = TermTable.join([first, second])
    for table, mask in ((first, np.arange(size + 4) < size), (second, np.arange(size + 4) >= size)):
        part = joined.select(mask)
        for name in ("offsets", "answer", "values", "relation"):
            np.testing.assert_array_equal(getattr(part, name), getattr(table, name))


def test_terms_are_those_of_the_best_candidates_and_add_up_to_their_scores(world, model):
    scorer, n_terms, seen = model.scorer(), len(TERMS), 0
    assert isinstance(scorer, LogLinearScorer)
    queries = queries_of(world, "valid", 30)
    for index in range(len(queries)):
        query = queries[np.array([index])]
        table = make_term_table(scorer, query, 0, Workers(), lambda _: None)
        score = scorer(query).score.copy()
        known = known_answers(world, scorer.rule_scorer.fill_dates(query), instant_seed=0)
        score[known.entity[known.mark == Mark.EXCLUDED]] = -np.inf
        best = np.sort(score)[::-1][:40]
        answer = score[query.answer[0]]
        assert len(table.answer) == (answer >= best[-1])
        if len(table.answer):
            seen += 1
            weights = scorer.weights.counts[table.relation[0]]
            total = table.values[:, :n_terms].sum(axis=1) + table.values[:, n_terms:] @ weights
            np.testing.assert_allclose(np.sort(total)[::-1], best, rtol=1e-9, atol=1e-9)
            assert total[table.answer[0]] == pytest.approx(answer)
    assert 10 < seen < 31


def test_factors_are_in_the_weights(world, model):
    features, scorer = model._fitted.features, model.scorer()
    doubled = features.stacked(
        np.full_like(features.terms, 2.0), 2.0 * features.counts, scorer.rule_scorer.rule_relations
    )
    queries = queries_of(world, "valid", 20)
    assert (doubled.counts[:, -1] == features.counts[:, -1]).all()  # kinds are not stacked
    doubled = replace(doubled, counts=2.0 * features.counts)
    twice = scorer.with_weights(scorer.rule_scorer, doubled)
    np.testing.assert_allclose(twice(queries).score, 2.0 * scorer(queries).score, rtol=1e-9)
    np.testing.assert_allclose(doubled.terms, 2.0 * features.terms)


def test_removed_facts_are_not_seen_by_their_own_queries(model):
    """The scores of held-out queries are those of a graph that never had their facts."""
    world = model.graph
    scorer = model.scorer()
    removed = np.arange(5, 205, 7)
    asked = QueryTable.of_facts(world, removed, walked=False)
    without = scorer.without(removed)
    smaller = without.rule_scorer.walker.graph
    assert len(smaller) == len(world) - len(removed)
    columns = ("subject", "relation", "object", "start", "end")
    left = {*zip(*(getattr(smaller, name).tolist() for name in columns), strict=True)}
    own = {*zip(*(getattr(world, name)[removed].tolist() for name in columns), strict=True)}
    assert not left & own
    assert np.isfinite(without(asked).score).all()


def test_a_model_without_valid_learns_factors_from_folds_alone(world, tmp_path):
    train = replace(world, bounds=(0, len(world), len(world), len(world)))
    model = TILP(**QUICK).fit(train)
    features = model._fitted.features
    assert (features.terms != 1.0).any() and features.counts.any()
    again = tilp.load(model.save(tmp_path / "m"))
    assert contents(again.save(tmp_path / "again")) == contents(tmp_path / "m")
