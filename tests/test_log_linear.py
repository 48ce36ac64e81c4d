"""Phase two: evidence of rules, the log-linear likelihood and training, and the two scorers."""

from copy import copy
from dataclasses import fields
from itertools import groupby
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from oracles import assert_terms_add_up, of_pairs
from strategies import some_candidates
from tilp._kernels.likelihood import (
    LogLinearTable,
    add_log_linear_likelihood,
    log_linear_scores,
)
from tilp._kernels.score import add_rule_evidence, list_rule_evidence
from tilp.errors import TilpError
from tilp.features.candidate_counts import COUNT_PARTS
from tilp.features.candidate_history import HISTORY_KINDS, CandidateHistory, listed_candidates
from tilp.features.log_linear import (
    DENSE_FEATURES,
    LogLinearWeights,
    fit_relation_weights,
    rules_only,
)
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.graph import QueryTable
from tilp.learning.rule_weights import TrainingSettings

SEEDS = st.integers(0, 2**32 - 1)


# --- evidence of rules -----------------------------------------------------------------------


def random_rows(generator, n_queries, n_rules, n_entities):
    """Rows of rule, end and count for each query, those of a rule together."""
    rows = []
    for _ in range(n_queries):
        fired = generator.permutation(n_rules)[: generator.integers(0, n_rules + 1)]
        rows.append(
            [
                (int(rule), int(end), int(generator.integers(1, 9)))
                for rule in fired
                for end in generator.permutation(n_entities)[
                    : generator.integers(1, n_entities + 1)
                ]
            ]
        )
    return rows


def plain_evidence(rows, candidate):
    """√α of each rule that leads to a candidate."""
    found = {}
    for rule, part in groupby(rows, key=lambda row: row[0]):
        ends = {end: count for _, end, count in part}
        if candidate in ends:
            found[rule] = sqrt(ends[candidate] / sum(ends.values()))
    return found


@settings(max_examples=80)
@given(SEEDS, st.integers(0, 4), st.integers(1, 5), st.integers(1, 6))
def test_evidence_of_rules_equals_a_count_of_rows(seed, n_queries, n_rules, n_entities):
    generator = np.random.default_rng(seed)
    rows = random_rows(generator, n_queries, n_rules, n_entities)
    listed = [
        generator.permutation(n_entities)[: generator.integers(0, n_entities + 1)]
        for _ in range(n_queries)
    ]
    columns = np.array([row for part in rows for row in part], np.int64).reshape(-1, 3).T.copy()
    row_begin = np.cumsum([0, *map(len, rows)])
    begin = np.cumsum([0, *map(len, listed)])
    candidate = np.concatenate([np.empty(0, np.int32), *listed]).astype(np.int32)
    of_candidate, rule, root = list_rule_evidence(row_begin, *columns, begin, candidate, n_entities)
    plain = [
        plain_evidence(part, int(entity))
        for part, entities in zip(rows, listed, strict=True)
        for entity in entities
    ]
    for place, expected in enumerate(plain):
        part = slice(of_candidate[place], of_candidate[place + 1])
        assert len(rule[part]) == len(expected)
        found = dict(zip(rule[part].tolist(), root[part].tolist(), strict=True))
        assert found == pytest.approx(expected, rel=1e-6)
    weight = generator.normal(size=n_rules) * generator.integers(0, 2, n_rules)
    before = generator.normal(size=len(candidate))
    score = before.copy()
    add_rule_evidence(row_begin, *columns, begin, candidate, weight, n_entities, score)
    expected = [sum(weight[rule] * root for rule, root in one.items()) for one in plain]
    assert (score - before).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    twice = add_twice(row_begin, columns, listed, weight, n_entities)
    assert twice == pytest.approx([one for one in expected for _ in range(2)], abs=1e-12)


def add_twice(row_begin, columns, listed, weight, n_entities):
    """What is added where every candidate is listed two times in a row."""
    listed = [np.repeat(one, 2) for one in listed]
    candidate = np.concatenate([np.empty(0, np.int32), *listed]).astype(np.int32)
    score = np.zeros(len(candidate))
    begin = np.cumsum([0, *map(len, listed)])
    add_rule_evidence(row_begin, *columns, begin, candidate, weight, n_entities, score)
    return score.tolist()


# --- likelihood ------------------------------------------------------------------------------

N_RULES, N_HISTORY = 4, 6


def random_table(generator, n_queries, most_candidates=5):
    sizes = generator.integers(1, most_candidates + 1, n_queries)
    begin = np.cumsum([0, *sizes])
    total = int(begin[-1])
    n_rules, n_history = generator.integers(0, 4, (2, total))
    return LogLinearTable(
        offsets=begin,
        answer=begin[:-1] + generator.integers(0, sizes),
        log_count=np.where(generator.random(total) < 0.5, 0.0, 3.0 * generator.random(total)),
        columns=generator.normal(size=(total, len(DENSE_FEATURES))),
        rule_offsets=np.cumsum([0, *n_rules]),
        rule=generator.integers(0, N_RULES, n_rules.sum()).astype(np.int32),
        root_rate=generator.random(n_rules.sum()).astype(np.float32),
        history_offsets=np.cumsum([0, *n_history]),
        history_feature=generator.integers(0, N_HISTORY, n_history.sum()).astype(np.int32),
    )


def plain_score(table, place, of_dense, of_rule, of_history):
    rules = range(table.rule_offsets[place], table.rule_offsets[place + 1])
    words = range(table.history_offsets[place], table.history_offsets[place + 1])
    return (
        sum(float(w) * float(x) for w, x in zip(of_dense, table.columns[place], strict=True))
        + sum(float(of_rule[table.rule[one]]) * float(table.root_rate[one]) for one in rules)
        + sum(float(of_history[table.history_feature[one]]) for one in words)
    )


def plain_loss(table, queries, weights):
    """-log of the answer's share, where each candidate counts for all that it stands for."""
    total = 0.0
    for query in queries:
        shares = {
            place: exp(plain_score(table, place, *weights) + table.log_count[place])
            for place in range(table.offsets[query], table.offsets[query + 1])
        }
        total -= log(shares[int(table.answer[query])] / sum(shares.values()))
    return total


def loss_and_gradient(table, queries, weights):
    gradient = tuple(np.zeros_like(one) for one in weights)
    return add_log_linear_likelihood(table, queries, *weights, *gradient), gradient


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 6))
def test_the_likelihood_is_a_softmax_and_its_gradient_is_its_slope(seed, n_queries):
    generator = np.random.default_rng(seed)
    table = random_table(generator, n_queries)
    weights = tuple(generator.normal(size=n) for n in (len(DENSE_FEATURES), N_RULES, N_HISTORY))
    every = log_linear_scores(table, 0, int(table.offsets[-1]), *weights)
    plain = [plain_score(table, place, *weights) for place in range(len(every))]
    assert every.tolist() == pytest.approx(plain, rel=1e-9, abs=1e-12)
    some = generator.permutation(n_queries)[: generator.integers(1, n_queries + 1)]
    loss, gradient = loss_and_gradient(table, some, weights)
    assert loss == pytest.approx(plain_loss(table, some, weights), rel=1e-9, abs=1e-12)
    for number, array in enumerate(weights):
        for place in range(len(array)):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [one.copy() for one in weights]
                moved[number][place] += step
                ends.append(plain_loss(table, some, moved))
            slope = (ends[0] - ends[1]) / 2e-5
            assert gradient[number][place] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_the_gradient_is_added_to_what_is_there():
    generator = np.random.default_rng(4)
    table = random_table(generator, 8)
    weights = tuple(generator.normal(size=n) for n in (len(DENSE_FEATURES), N_RULES, N_HISTORY))
    loss, gradient = loss_and_gradient(table, np.arange(8), weights)
    again = tuple(np.ones_like(one) for one in weights)
    parts = [
        add_log_linear_likelihood(table, part, *weights, *again)
        for part in np.split(np.arange(8), [3])
    ]
    assert sum(parts) == pytest.approx(loss)
    for one, two in zip(again, gradient, strict=True):
        np.testing.assert_allclose(one - 1.0, two, atol=1e-12)


def test_scores_however_high_have_a_likelihood():
    generator = np.random.default_rng(4)
    table = random_table(generator, 8)
    weights = tuple(
        1e4 * generator.normal(size=n) for n in (len(DENSE_FEATURES), N_RULES, N_HISTORY)
    )
    loss, gradient = loss_and_gradient(table, np.arange(8), weights)
    assert np.isfinite(loss) and all(np.isfinite(one).all() for one in gradient)


# --- training --------------------------------------------------------------------------------

MARK = 5
"""The rule or history feature that is planted."""


def lesson(n_queries=80, size=8, *, mark=None, noise=True, seed=0):
    """Queries whose candidates have random scores by the rules, and a table of fold numbers.

    Args:
        mark: `rule` or `history`: one of these marks every answer and nothing else.
        noise: whether candidates have other rules and history features, at random.
    """
    generator = np.random.default_rng(seed)
    total = n_queries * size
    begin = np.arange(n_queries + 1) * size
    answer = begin[:-1] + generator.integers(0, size, n_queries)
    rules = [[] for _ in range(total)]
    words = [[] for _ in range(total)]
    for place in range(total):
        if noise:
            rules[place] += generator.permutation(MARK)[: generator.integers(0, 3)].tolist()
            words[place] += generator.permutation(MARK)[: generator.integers(0, 3)].tolist()
    for place in answer:
        if mark == "rule":
            rules[place].append(MARK)
        elif mark == "history":
            words[place].append(MARK)
    columns = np.zeros((total, len(DENSE_FEATURES)))
    columns[:, 0] = generator.normal(size=total)
    columns[answer, 0] += 1.0
    table = LogLinearTable(
        offsets=begin,
        answer=answer,
        log_count=np.zeros(total),
        columns=columns,
        rule_offsets=np.cumsum([0, *map(len, rules)]),
        rule=np.array([one for part in rules for one in part], np.int32),
        root_rate=np.full(sum(map(len, rules)), 0.8, np.float32),
        history_offsets=np.cumsum([0, *map(len, words)]),
        history_feature=np.array([one for part in words for one in part], np.int32),
    )
    return table, np.arange(n_queries) % 2


def same_weights(first, second):
    return all(
        np.array_equal(getattr(first, one.name), getattr(second, one.name)) for one in fields(first)
    )


IDS = {"rule": "rule", "history": "history_feature"}
WEIGHTS = {"rule": "rule_weight", "history": "history_weight"}


def fit(table, fold):
    """The mean of the weights that are learned without each of two folds."""
    return fit_relation_weights(table, fold, 2)[-1]


@pytest.mark.parametrize("kind", ["rule", "history"])
def test_what_marks_every_answer_is_learned(kind):
    table, fold = lesson(mark=kind)
    learned = fit(table, fold)
    of = dict(zip(getattr(learned, IDS[kind]), getattr(learned, WEIGHTS[kind]), strict=True))
    assert set(of) == set(range(MARK + 1))
    assert of[MARK] > 0.3 and of[MARK] > 3 * max(abs(of[one]) for one in range(MARK))
    assert learned.dense[0] > 0
    other = "history" if kind == "rule" else "rule"
    assert np.abs(getattr(learned, WEIGHTS[other])).max() < of[MARK] / 3
    assert same_weights(fit(table, fold), learned)


def test_a_walk_that_ends_at_every_answer_is_learned():
    table, fold = lesson()
    columns = table.columns.copy()
    columns[table.answer, 1] = 1.0
    assert fit(table._replace(columns=columns), fold).dense[1] > 1.0


def test_the_ids_of_rules_and_history_features_do_not_matter():
    table, fold = lesson(mark="history")
    learned = fit(table, fold)
    far = fit(
        table._replace(rule=table.rule + 1_000, history_feature=table.history_feature * 70), fold
    )
    assert far.rule.tolist() == (learned.rule + 1_000).tolist()
    assert far.history_feature.tolist() == (learned.history_feature * 70).tolist()
    assert np.array_equal(far.history_weight, learned.history_weight)


def test_weights_of_a_fold_come_from_the_others_and_the_last_are_their_mean():
    table, fold = lesson(mark="history")
    first, second, mean = fit_relation_weights(table, fold, 2)
    assert first.history_weight[-1] > 0.3 and not same_weights(first, second)
    for name in ("dense", "rule_weight", "history_weight"):
        both = getattr(first, name) + getattr(second, name)
        np.testing.assert_allclose(getattr(mean, name), both / 2, rtol=1e-12)
    # Turning the candidates of one fold around changes nothing that is learned without it.
    answer = table.answer.copy()
    answer[fold == 0] = table.offsets[:-1][fold == 0]
    other = fit_relation_weights(table._replace(answer=answer), fold, 2)
    assert same_weights(other[0], first) and not same_weights(other[1], second)


def test_too_few_queries_leave_the_rules_as_they_are():
    learned = fit(*lesson(19, mark="history"))
    assert same_weights(learned, rules_only())
    assert learned.dense.tolist() == [1.0, 0.0]
    assert not len(learned.rule) and not len(learned.history_feature)
    assert len(fit(*lesson(20, mark="history")).history_feature)


def test_candidates_count_for_all_that_they_stand_for():
    """A feature of most entities is worth less than the same feature of a few."""
    table, fold = lesson(mark="history")
    others = np.setdiff1d(np.arange(len(table.log_count)), table.answer)
    # In each query one other candidate has the feature, and stands for many.
    begin, word = table.history_offsets.copy(), table.history_feature.tolist()
    chosen = [int(others[others >= first][0]) for first in table.offsets[:-1]]
    for number, place in enumerate(sorted(chosen)):
        word.insert(int(begin[place]) + number, MARK)
    begin += np.searchsorted(np.sort(chosen), np.arange(len(begin)), side="left")
    shared = table._replace(history_offsets=begin, history_feature=np.array(word, np.int32))
    many = np.zeros(len(table.log_count))
    many[chosen] = log(50.0)
    few, often = (fit(shared._replace(log_count=one), fold) for one in (np.zeros_like(many), many))
    # Beside the score of the rules, whose weight the two have to themselves.
    worth_if_often, worth_if_few = (one.history_weight[-1] / one.dense[0] for one in (often, few))
    assert 0 < worth_if_often < worth_if_few / 2


# --- scorers ---------------------------------------------------------------------------------

QUICK = {
    "max_length": 2,
    "max_rules": 100,
    "n_jobs": 1,
    "config": tilp.TILPConfig(sample=40, training=TrainingSettings(steps=20)),
}


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(0, 1_500).graph


@pytest.fixture(scope="module")
def joint(world, quick_features):
    scorer = tilp.TILP(**QUICK).fit(world).scorer()
    assert isinstance(scorer, LogLinearScorer)
    return scorer


@pytest.fixture(scope="module")
def paper(world, quick_features):
    scorer = tilp.TILP(features="paper", **QUICK).fit(world).scorer()
    assert isinstance(scorer, PaperFeatureScorer)
    return scorer


def some_queries(graph, split, count, seed=0):
    """Facts of a split asked both ways, drawn; those of train without their own fact."""
    rows = np.asarray(graph.rows(split), np.int64)
    queries = QueryTable.of_facts(graph, rows, walked=split == "train")
    return queries[np.sort(np.random.default_rng(seed).permutation(len(queries))[:count])]


@pytest.mark.parametrize("split", ["valid", "train"])
def test_joint_scores_are_the_sum_of_their_terms(world, joint, split):
    queries = some_queries(world, split, 60)
    begin, candidate = some_candidates(world, queries, 40)
    terms = joint.contributions(queries, begin, candidate)
    kinds = {"rules", "prior", "rule evidence", *HISTORY_KINDS, *DENSE_FEATURES[1:], *COUNT_PARTS}
    assert set(terms) == kinds
    scores = joint(queries)
    assert scores.temperature == 1.0 and len(scores.candidate) == len(queries) * len(world.entities)
    assert_terms_add_up(terms, of_pairs(scores, begin, candidate))
    assert all(one.any() for one in terms.values()), "a part that never says anything"
    assert (terms["prior"] >= 0).all()


def test_joint_scores_do_not_depend_on_the_batch(world, joint):
    queries = some_queries(world, "valid", 25)
    n = len(world.entities)
    together = joint(queries).score.reshape(-1, n)
    order = np.random.default_rng(5).permutation(len(queries))
    mixed = joint(queries[order]).score.reshape(-1, n)
    np.testing.assert_array_equal(mixed, together[order])
    for number in range(0, len(queries), 5):
        alone = joint(queries[np.array([number])])
        np.testing.assert_array_equal(alone.score, together[number])


def test_joint_scores_of_no_queries(world, joint):
    nothing = some_queries(world, "valid", 0)
    assert len(joint(nothing)) == 0
    terms = joint.contributions(nothing, np.zeros(1, np.int64), np.empty(0, np.int32))
    assert all(len(one) == 0 for one in terms.values())


@pytest.mark.parametrize("split", ["valid", "train"])
def test_facts_of_all_entities_are_those_of_each(world, joint, split):
    queries = some_queries(world, split, 50, seed=3)
    n = len(world.entities)
    begin = np.arange(len(queries) + 1) * n
    listed = listed_candidates(
        joint.rule_scorer.fill_dates(queries),
        begin,
        np.tile(np.arange(n, dtype=np.int32), len(queries)),
    )
    together, each = np.zeros((len(queries), n)), np.zeros(len(queries) * n)
    for _ in range(2):  # the second time from what was kept
        together[:] = 0.0
        weights = joint.weights
        joint.history.add_scores_to_all(listed, weights.history_row, weights.history, together)
    joint._add_history(listed, np.ones(len(HISTORY_KINDS), np.bool_), each)
    np.testing.assert_allclose(together.reshape(-1), each, rtol=1e-12, atol=1e-12)
    assert each.any()


def test_many_entities_are_scored_alike_where_they_are_listed(world, joint):
    queries = some_queries(world, "valid", 40)
    everything = joint(queries)
    few = copy(joint)
    few.max_entities = 0
    listed = few(queries)
    by_rules = joint.rule_scorer(queries)
    np.testing.assert_array_equal(listed.offsets, by_rules.offsets)
    np.testing.assert_array_equal(listed.candidate, by_rules.candidate)
    assert len(listed.candidate) < len(everything.candidate)
    expected = of_pairs(everything, listed.offsets, listed.candidate)
    np.testing.assert_allclose(listed.score, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(listed.reached, everything.reached)


def test_the_cache_of_nearest_facts_has_a_limit(world, joint):
    queries = some_queries(world, "valid", 20)
    expected = joint(queries)
    bounds = joint.weights.distance_bounds
    small = copy(joint)
    small.history = CandidateHistory(joint._edges, 2 * len(world.relations), bounds, cache_size=0)
    np.testing.assert_array_equal(small(queries).score, expected.score)
    assert small.history._nearest_to.cache_info().currsize == 1


@pytest.mark.parametrize("split", ["valid", "train"])
def test_paper_scores_are_the_sum_of_their_terms(world, paper, split):
    queries = some_queries(world, split, 40)
    by_rules = paper.rule_scorer(queries)
    places = [
        np.sort(np.argsort(-by_rules.score[slice(*both)], kind="stable")[:30]) + both[0]
        for both in zip(by_rules.offsets, by_rules.offsets[1:], strict=False)
    ]
    begin = np.cumsum([0, *map(len, places)])
    candidate = by_rules.candidate[np.concatenate(places)]
    terms = paper.contributions(queries, begin, candidate)
    assert list(terms)[:2] == ["rules", "prior"]
    assert_terms_add_up(terms, of_pairs(paper(queries), begin, candidate))
    for name in ("recurrence_others", "order_others", "pair_others", "rules"):
        assert terms[name].any()


def test_paper_scores_past_the_best_candidates_count_as_without_evidence(world, paper):
    queries = some_queries(world, "valid", 30)
    whole, by_rules = paper(queries), paper.rule_scorer(queries)
    limited = copy(paper)
    limited.max_candidates = 5
    few = limited(queries)
    np.testing.assert_array_equal(few.offsets, whole.offsets)
    np.testing.assert_array_equal(few.defaults, whole.defaults)
    totals = by_rules.totals(len(world.entities))
    for number in range(len(queries)):
        part = slice(whole.offsets[number], whole.offsets[number + 1])
        best = np.argsort(-by_rules.score[part], kind="stable")[:5]
        np.testing.assert_allclose(few.score[part][best], whole.score[part][best], rtol=1e-12)
        # Nothing but the rules tells the others from those that are not listed.
        rest = np.setdiff1d(np.arange(part.stop - part.start), best)
        more = (by_rules.score[part][rest] - by_rules.defaults[number]) / totals[number]
        expected = few.defaults[number] + paper._weights.rules * more
        np.testing.assert_allclose(few.score[part][rest], expected, rtol=1e-9)


def test_paper_scores_do_not_depend_on_the_batch(world, paper):
    queries = some_queries(world, "valid", 20)
    together = paper(queries)
    for number in range(0, len(queries), 4):
        alone = paper(queries[np.array([number])])
        part = slice(together.offsets[number], together.offsets[number + 1])
        np.testing.assert_array_equal(alone.candidate, together.candidate[part])
        np.testing.assert_allclose(alone.score, together.score[part], rtol=1e-12)


# --- weights ---------------------------------------------------------------------------------


def test_joint_weights_are_arrays_and_back(joint):
    weights = joint.weights
    again = LogLinearWeights.from_arrays(weights.to_arrays())
    assert again.time_scale == weights.time_scale
    assert all(
        np.array_equal(array, again.to_arrays()[name])
        for name, array in weights.to_arrays().items()
    )
    with pytest.raises(TilpError, match="the array columns is missing"):
        LogLinearWeights.from_arrays({})


def test_joint_weights_follow_the_numbers_of_relations_and_rules(joint):
    weights = joint.weights
    n = len(weights.dense)
    relations = np.array([3, -1, 0, 3 + n // 2, -1, n // 2])
    rules = np.array([4, 2])
    moved = weights.remap(relations, rules)
    assert moved.rule.tolist() == weights.rule[rules].tolist()
    for new, old in enumerate(relations):
        expected = weights.dense[old].tolist() if old >= 0 else [1.0, 0.0]
        assert moved.dense[new].tolist() == expected
        assert (moved.terms[new] == (weights.terms[old] if old >= 0 else 1.0)).all()
        assert (moved.counts[new] == (weights.counts[old] if old >= 0 else 0.0)).all()
        for kind in range(len(HISTORY_KINDS)):
            for group, of in enumerate(relations):
                row = weights.history_row[old, kind * n + of] if old >= 0 and of >= 0 else -1
                assert moved.history_row[new, kind * len(relations) + group] == row
    assert moved.history is weights.history and moved.time_scale == weights.time_scale
