"""Scores of candidates against brute force: rules, known answers and the prior."""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilp
from oracles import counts, edges_of, kinds_of_known, query_parts
from strategies import all_queries, graphs, shared_queries
from tilp._kernels.score import sort_rows
from tilp.graph import QueryTable
from tilp.learning import KNOWN_KINDS, PopularityPrior
from tilp.learning.examples import make_training_examples
from tilp.learning.rule_weights import LogWeights, Objective
from tilp.parallel import Workers
from tilp.scoring import RuleScorer, RuleWeights, Scores
from tilp.walks import MiningSettings, Walker, mine
from tilp.walks.mining import mining_walker

SEEDS = st.integers(0, 2**32 - 1)
NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")


def random_weights(graph, n_rules, seed, walks_power):
    chance = np.random.default_rng(seed)
    n_heads = 2 * len(graph.relations)
    return RuleWeights(
        np.exp(chance.normal(-1.0, 1.0, n_rules)),
        np.exp(chance.normal(-1.0, 1.0, n_heads)),
        np.exp(chance.normal(0.0, 1.0, (n_heads, len(KNOWN_KINDS)))),
        walks_power,
    )


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), max_size=30))
def test_rows_are_sorted_by_query_and_rule_and_stay_in_order_otherwise(rows):
    records = np.array(rows, np.int64).reshape(-1, 4)
    offsets, *columns = sort_rows(records, 5, 5)
    expected = sorted(rows, key=lambda row: row[:2])
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        row[1:] for row in expected
    ]
    assert offsets.tolist() == [sum(row[0] < query for row in rows) for query in range(6)]


def truth_of(walker, queries):
    """N_c by rule and end, for each query."""
    edges = edges_of(walker.graph)
    return [
        counts(edges, *query_parts(walker, queries, number), walker.max_length, walker.grains)
        for number in range(len(queries))
    ]


def some_rules(truth):
    return sorted({rule for one in truth for rule, _ in one}, key=str)[::2]


def plain_scores(graph, queries, number, truth, rules, weights):
    """The score of every entity, one by one."""
    head = int(queries.directed_relation[number])
    size = len(graph.entities)
    facts = all_queries(graph)
    answers = Counter(facts.answer[facts.directed_relation == head].tolist())
    scores = {
        entity: weights.prior[head]
        * (0.95 * answers[entity] / max(answers.total(), 1) + 0.05 / size)
        for entity in range(size)
    }
    subject, _, interval, own = query_parts_of(graph, queries, number)
    kinds = kinds_of_known(graph, subject, head, interval, own)
    for place, rule in enumerate(rules):
        walks = {end: count for (one, end), count in truth.items() if one == rule}
        gain = sum(walks.values()) ** weights.walks_power
        counted = {
            end: count * (weights.factor[head, kinds[end]] if end in kinds else 1.0)
            for end, count in walks.items()
        }
        for end, count in counted.items():
            scores[end] += weights.rule[place] * gain * count / sum(counted.values())
    return scores


def query_parts_of(graph, queries, number):
    return query_parts(Walker(graph, max_length=1), queries, number)


def of_query(scores, number):
    """What is listed for one query, and the score of all others."""
    part = slice(scores.offsets[number], scores.offsets[number + 1])
    entities = scores.candidate[part].tolist()
    assert len(set(entities)) == len(entities)
    listed = dict(zip(entities, scores.score[part].tolist(), strict=True))
    return listed, float(np.broadcast_to(scores.default, len(scores.offsets) - 1)[number])


@NO_WARNING
@settings(max_examples=40)
@given(shared_queries(), st.sampled_from([1, 2, 3]), SEEDS, st.sampled_from([0.0, 0.3]))
def test_scores_equal_brute_force(shared, max_length, seed, walks_power):
    graph, queries = shared
    walker = Walker(graph, max_length=max_length)
    truth = truth_of(walker, queries)
    rules = some_rules(truth)
    assume(rules)
    weights = random_weights(graph, len(rules), seed, walks_power)
    scores = RuleScorer(walker, rules, weights)(queries)
    kept = set(rules)
    for number, one in enumerate(truth):
        listed, default = of_query(scores, number)
        found = [listed.get(entity, default) for entity in range(len(graph.entities))]
        plain = plain_scores(graph, queries, number, one, rules, weights)
        assert found == pytest.approx([plain[entity] for entity in range(len(found))], rel=1e-9)
        reached = {end for rule, end in one if rule in kept}
        assert reached <= set(listed)
        assert scores.reached[number] == (int(queries.answer[number]) in reached)


@NO_WARNING
@settings(max_examples=30)
@given(graphs(), SEEDS)
def test_scores_of_training_queries_equal_brute_force(graph, seed):
    """The own fact of a query is neither walked nor known to it."""
    walker, queries = Walker(graph, max_length=2), all_queries(graph)
    truth = truth_of(walker, queries)
    rules = some_rules(truth)
    assume(rules)
    weights = random_weights(graph, len(rules), seed, 0.3)
    scores = RuleScorer(walker, rules, weights)(queries)
    for number, one in enumerate(truth):
        listed, default = of_query(scores, number)
        plain = plain_scores(graph, queries, number, one, rules, weights)
        assert {entity: listed.get(entity, default) for entity in plain} == pytest.approx(plain)


@NO_WARNING
@settings(max_examples=40)
@given(shared_queries(), SEEDS)
def test_scores_of_a_query_do_not_depend_on_those_beside_it(shared, seed):
    graph, queries = shared
    walker = Walker(graph, max_length=3)
    rules = some_rules(truth_of(walker, queries))
    assume(rules)
    scorer = RuleScorer(walker, rules, random_weights(graph, len(rules), seed, 0.3))
    together = scorer(queries)
    order = np.random.default_rng(seed).permutation(len(queries))
    mixed = scorer(queries[order])
    for place, number in enumerate(order):
        alone = scorer(queries[np.array([number])])
        assert of_query(together, number) == of_query(mixed, place) == of_query(alone, 0)
        assert together.reached[number] == mixed.reached[place] == alone.reached[0]


@NO_WARNING
@settings(max_examples=40)
@given(shared_queries(), SEEDS)
def test_scores_do_not_know_the_answers(shared, seed):
    graph, queries = shared
    walker = Walker(graph, max_length=3)
    rules = some_rules(truth_of(walker, queries))
    assume(rules)
    scorer = RuleScorer(walker, rules, random_weights(graph, len(rules), seed, 0.3))
    chance = np.random.default_rng(seed)
    others = chance.integers(0, len(graph.entities), len(queries)).astype(np.int32)
    scores, blind = scorer(queries), scorer(queries.without_answers())
    for one in (blind, scorer(replace(queries, answer=others))):
        for name in ("offsets", "candidate", "score", "default"):
            np.testing.assert_array_equal(getattr(one, name), getattr(scores, name))
    assert not blind.reached.any()


def test_without_rules_the_prior_is_all_there_is(facts):
    graph = tilp.read(facts)
    weights = random_weights(graph, 0, 1, 0.3)
    queries = all_queries(graph)
    scores = RuleScorer(Walker(graph), [], weights)(queries)
    assert not scores.reached.any()
    for number in range(len(queries)):
        listed, default = of_query(scores, number)
        plain = plain_scores(graph, queries, number, {}, [], weights)
        assert {entity: listed.get(entity, default) for entity in plain} == pytest.approx(plain)


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(seed=1, size=3_000).graph


def test_scores_of_a_world_do_not_depend_on_batches(world):
    mining = MiningSettings(max_length=2)
    rules = [one.rule for one in mine(world, ["livesIn", "playsFor"], mining)]
    walker = mining_walker(world, mining)
    scorer = RuleScorer(walker, rules, random_weights(world, len(rules), 1, 0.3))
    queries = QueryTable.of_facts(world, np.asarray(world.rows("test"), np.int64), walked=False)
    together = scorer(queries)
    assert together.reached.any() and not together.reached.all()
    for number in range(0, len(queries), 7):
        begin = max(number - 3, 0)
        beside = scorer(queries[np.arange(begin, number + 1)])
        assert of_query(together, number) == of_query(beside, number - begin)
        assert together.reached[number] == beside.reached[number - begin]


@pytest.mark.parametrize("walks_power", [0.0, 0.3])
def test_what_is_applied_once_can_be_scored_with_any_power(world, walks_power):
    mining = MiningSettings(max_length=2)
    rules = [one.rule for one in mine(world, ["livesIn"], mining)]
    walker = mining_walker(world, mining)
    weights = random_weights(world, len(rules), 2, walks_power)
    rows = np.asarray(world.rows("test"), np.int64)
    queries = QueryTable.of_facts(world, rows, walked=False)
    scores = RuleScorer(walker, rules, weights)(queries)
    scorer = RuleScorer(walker, rules, replace(weights, walks_power=0.9))
    again = scorer.with_weights(weights).score(queries, scorer.apply_rules(queries))
    np.testing.assert_array_equal(again.score, scores.score)
    assert not np.array_equal(scorer(queries).score, scores.score)


def shares_and_likelihoods(walks_power, factors):
    """Of the answers of queries: the share of all scores, and the likelihood in training."""
    columns = ["subject", "relation", "object", "start", "end"]
    rows = [
        ("s", "r", "a", "1990", "1990"),
        ("s", "q", "a", "1980", "1981"),
        ("s", "q", "a", "1982", "1983"),
        ("s", "q", "b", "1980", "1981"),
        ("s", "q", "c", "1984", "1984"),
        ("s", "p", "c", "1970", "1970"),
        ("t", "r", "b", "1990", "1990"),
    ]
    graph = tilp.read(pl.DataFrame(rows, columns, orient="row"), unit="year")
    walker = Walker(graph, grains=["static"], max_length=1)
    texts = ["r(E1,E2,I2) ← q(E1,E2,I1)", "r(E1,E2,I2) ← p(E1,E2,I1)", "r(E1,E2,I2) ← r(E1,E2,I1)"]
    rules = [tilp.rules.parse_rule(text) for text in texts]
    weights = random_weights(graph, len(rules), 5, walks_power)
    weights = replace(weights, factor=np.full_like(weights.factor, factors))
    entity = graph.entities.find
    queries = QueryTable(
        subject=np.full(3, entity("s"), np.int32),
        directed_relation=np.full(3, graph.relations.find("r"), np.int32),
        start=np.full(3, 2000),
        end=np.full(3, 2000),
        fact=np.full(3, -1, np.int32),
        answer=np.array([entity(name) for name in "abc"], np.int32),
    )
    scores = RuleScorer(walker, rules, weights)(queries)
    prior = PopularityPrior.from_graph(graph)
    logs = LogWeights(np.log(weights.rule), np.log(weights.prior), np.log(weights.factor))
    shares, likelihoods = [], []
    for number in range(3):
        listed, default = of_query(scores, number)
        every = [listed.get(one, default) for one in range(len(graph.entities))]
        shares.append(every[queries.answer[number]] / sum(every))
        one = queries[np.array([number])]
        entries = make_training_examples(walker, one, walker.compile(rules), Workers())
        assert len(entries) == 3 and not entries.excluded.any()
        loss, _ = Objective(entries, prior, len(rules), walks_power)(logs, Workers())
        likelihoods.append(np.exp(-loss))
    return shares, likelihoods


@pytest.mark.parametrize("walks_power", [0.0, 0.3])
@pytest.mark.parametrize("factors", [1.0, 3.0])
def test_training_makes_likely_what_is_scored(walks_power, factors):
    shares, likelihoods = shares_and_likelihoods(walks_power, factors)
    assert shares == pytest.approx(likelihoods, rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.integers(1, 6))
def test_scores_of_some_candidates_and_the_totals_of_all(seed, n_queries, n_entities):
    chance = np.random.default_rng(seed)
    listed, wanted = (
        [
            chance.permutation(n_entities)[: chance.integers(0, n_entities + 1)]
            for _ in range(n_queries)
        ]
        for _ in range(2)
    )
    listed = [np.sort(one) for one in listed]
    nothing = np.empty(0, np.int32)
    candidate = np.concatenate([nothing, *listed]).astype(np.int32)
    scores = Scores(
        np.cumsum([0, *map(len, listed)]),
        candidate,
        chance.normal(size=len(candidate)),
        chance.normal(size=n_queries),
    )
    plain = []
    for query in range(n_queries):
        part = slice(scores.offsets[query], scores.offsets[query + 1])
        of = dict(zip(candidate[part].tolist(), scores.score[part].tolist(), strict=True))
        plain.append([of.get(one, scores.defaults[query]) for one in range(n_entities)])
    assert scores.totals(n_entities).tolist() == pytest.approx([sum(one) for one in plain])
    begin = np.cumsum([0, *map(len, wanted)])
    found = scores.of_candidates(begin, np.concatenate([nothing, *wanted]).astype(np.int32))
    assert found.tolist() == [
        of[one] for of, some in zip(plain, wanted, strict=True) for one in some
    ]
