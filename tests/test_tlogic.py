"""Timestamp rules against plain code for TLogic: walks, confidences, scores."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from events import (
    NO_WARNING,
    SEEDS,
    directed_relations,
    event_graphs,
    graph_of,
    plain_edges,
    queries_of,
)
from tilp._kernels.tlogic import ScoringSettings, count_bodies, walk_back
from tilp.errors import TilpError
from tilp.forecasting import TimestampModel, TimestampRules
from tilp.forecasting.events import TimedEdges, event_times
from tilp.forecasting.rule_table import RuleTable
from tilp.forecasting.tlogic import distinct_rules
from tilp.graph import SPLITS, QueryTable
from tilp.rules import RuleSet, parse_rule
from tilp.time import OPEN_END, OPEN_START, UNKNOWN
from tilp.types import Transition


def inverse(relation, graph):
    size = len(graph.relations)
    return (relation + size) % (2 * size)


def plain_closed_walks(graph, head, length):
    """Return all closed walks back in time from an edge of the relation, as lists of edges."""
    edges = plain_edges(graph)
    walks = [[edge] for edge in edges if edge[1] == head]
    for step in range(1, length + 1):
        longer = []
        for walk, edge in product(walks, edges):
            source, relation, here, time = walk[-1]
            back = (here, inverse(relation, graph), source, time)
            if (
                edge[0] == here
                and (edge[3] < time or (step > 1 and edge[3] == time and edge != back))
                and (step < length or edge[2] == walk[0][0])
            ):
                longer.append([*walk, edge])
        walks = longer
    return walks


def plain_rule(walk, graph):
    """Return relations of the body, and for each position the first with the same entity."""
    body = [(target, inverse(relation, graph)) for _, relation, target, _ in walk[:0:-1]]
    entities = [entity for entity, _ in body] + [walk[0][2]]
    return tuple(relation for _, relation in body), tuple(map(entities.index, entities))


def plain_bodies(edges, relations):
    """Return all chains of edges along relations whose times do not fall."""
    bodies = [[edge] for edge in edges if edge[1] == relations[0]]
    for relation in relations[1:]:
        bodies = [
            [*body, edge]
            for body, edge in product(bodies, edges)
            if edge[1] == relation and edge[0] == body[-1][2] and edge[3] >= body[-1][3]
        ]
    return bodies


def entities_of(body):
    return [body[0][0], *(edge[2] for edge in body)]


def walked(graph, head, length, walks, seed, exponential=True):
    edges = TimedEdges.of(graph, "train")
    size = len(graph.relations)
    return walk_back(edges.by_time, edges.by_relation, size, head, length, walks, exponential, seed)


@NO_WARNING
@settings(max_examples=60)
@given(event_graphs(), st.integers(1, 3), SEEDS, st.booleans())
def test_walks_go_back_in_time_along_facts_and_close(graph, length, seed, exponential):
    edges = Counter(plain_edges(graph))
    for head in directed_relations(graph):
        entities, relations, times = walked(graph, head, length, 30, seed, exponential)
        plain = plain_closed_walks(graph, head, length)
        assert bool(len(entities)) <= bool(plain)
        assert (entities[:, 0] == entities[:, -1]).all()
        assert (relations[:, 0] == head).all()
        assert (times[:, 1] < times[:, 0]).all()
        assert (np.diff(times[:, 1:], axis=1) <= 0).all()
        for walk in zip(entities.tolist(), relations.tolist(), times.tolist(), strict=True):
            steps = list(zip(walk[0], walk[1], walk[0][1:], walk[2], strict=False))
            assert all(step in edges for step in steps)
            assert steps in plain


@NO_WARNING
@settings(max_examples=25)
@given(event_graphs(max_facts=6), st.integers(1, 3), SEEDS)
def test_every_rule_of_a_closed_walk_is_found_in_the_end(graph, length, seed):
    for head in directed_relations(graph):
        plain = {plain_rule(walk, graph) for walk in plain_closed_walks(graph, head, length)}
        found = walked(graph, head, length, 20_000, seed, exponential=False)
        relations, same = distinct_rules(*found[:2], len(graph.relations))
        rows = zip(map(tuple, relations.tolist()), map(tuple, same.tolist()), strict=True)
        assert Counter(rows) == Counter(plain)


@pytest.mark.parametrize("exponential", [True, False])
def test_a_walk_prefers_late_facts_exponentially(exponential):
    rows = [("a", "r", "b", "2000", "2000")]
    rows += [("b", f"q{year}", "a", str(year), str(year)) for year in (1900, 1996, 1998, 1999)]
    graph = graph_of(train=rows)
    head = graph.relations.find("r")
    _, relations, _ = walked(graph, head, 1, 20_000, 7, exponential)
    assert len(relations) == 20_000
    seen = Counter(graph.relations.label(relation) for relation in relations[:, 1].tolist())
    odds = {f"q{year}": math.exp(year - 1999) for year in (1900, 1996, 1998, 1999)}
    if not exponential:
        odds = dict.fromkeys(odds, 1.0)
    for name, value in odds.items():
        assert seen[name] / 20_000 == pytest.approx(value / sum(odds.values()), abs=0.015)


@NO_WARNING
@settings(max_examples=25)
@given(event_graphs(max_facts=6), st.integers(1, 3), SEEDS)
def test_confidences_equal_all_bodies_when_enough_are_sampled(graph, length, seed):
    timed, edges = TimedEdges.of(graph, "train"), plain_edges(graph)
    for head in directed_relations(graph):
        rules = {plain_rule(walk, graph) for walk in plain_closed_walks(graph, head, length)}
        # Also rules that no walk led to, such as bodies that meet otherwise.
        rules = sorted({*rules, *((body, tuple(range(length + 1))) for body, _ in rules)})
        if not rules:
            continue
        relations, same = (np.array(column, np.int64) for column in zip(*rules, strict=True))
        seeds = np.arange(len(rules)) + seed
        body_support, support = count_bodies(
            timed.by_entity_relation, timed.by_relation, head, relations, same, 12_000, seeds
        )
        for rule, (body_relations, same_entities) in enumerate(rules):
            plain = set()
            for body in plain_bodies(edges, body_relations):
                entities = entities_of(body)
                positions = tuple(map(entities.index, entities))
                if positions == same_entities or same_entities == tuple(range(length + 1)):
                    plain.add((*entities, *(edge[3] for edge in body)))
            followed = {
                grounding
                for grounding in plain
                if any(
                    edge[:3] == (grounding[0], head, grounding[length]) and edge[3] > grounding[-1]
                    for edge in edges
                )
            }
            assert (body_support[rule], support[rule]) == (len(plain), len(followed))


def plain_evidence(edges, time, window, ahead):
    """Return the edges that may be used for a query."""
    edges = [edge for edge in edges if ahead or edge[3] < time]
    return [edge for edge in edges if not window or edge[3] >= time - window]


def plain_scores(table, config, edges, subject, head, time):
    """Score candidates by all bodies of rules, as TLogic applies them."""
    edges = plain_evidence(edges, time, config.window, config.ahead)
    given_to = {}
    for rule in np.flatnonzero(table.head == head):
        length = int(table.length[rule])
        same = table.same[rule, : length + 1].tolist()
        gaps = {}
        for body in plain_bodies(edges, table.relations[rule, :length].tolist()):
            entities = entities_of(body)
            meets = all(
                entities[first] == entity for first, entity in zip(same, entities, strict=True)
            )
            if entities[0] == subject and meets:
                gaps.setdefault(entities[-1], []).append(abs(time - body[0][3]))
        for candidate, between in gaps.items():
            near = math.exp(-config.decay * min(between))
            part = config.share * table.confidence[rule] + (1 - config.share) * near
            given_to.setdefault(candidate, []).append(part)
        best = sorted((sorted(parts, reverse=True) for parts in given_to.values()), reverse=True)
        best = best[: config.top]
        if gaps and len(best) == config.top and all(a != b for a, b in pairwise(best)):
            break
    return {
        candidate: 1.0 - math.prod(1.0 - part for part in parts)
        for candidate, parts in given_to.items()
    }


@st.composite
def random_rules(draw, graph, max_length=4):
    """Draw any rules, also such as return to entities in involved ways, or repeat each other."""
    n = draw(st.integers(1, 6))
    lengths = draw(st.lists(st.integers(1, max_length), min_size=n, max_size=n))
    heads = st.sampled_from(directed_relations(graph))
    relations = np.full((n, max_length), -1)
    same = np.tile(np.arange(max_length + 1), (n, 1))
    for rule, size in enumerate(lengths):
        relations[rule, :size] = draw(st.lists(heads, min_size=size, max_size=size))
        entities = draw(st.lists(st.integers(0, 3), min_size=size + 1, max_size=size + 1))
        if draw(st.booleans()):
            same[rule, : size + 1] = [entities.index(entity) for entity in entities]
    confidence = np.array(draw(st.lists(st.sampled_from([0.1, 0.5, 0.7]), min_size=n, max_size=n)))
    ones = np.ones(n, np.int64)
    head = np.array(draw(st.lists(heads, min_size=n, max_size=n)))
    return RuleTable(head, np.array(lengths), relations, same, ones, ones, confidence).sorted()


def check_scores(graph, table, config, queries, evidence):
    """Compare scores of both ways to follow rules with the plain ones."""
    scoring = ScoringSettings(config.window, config.ahead, config.decay, config.share, config.top)
    facts = np.ones(2 * len(graph.relations), np.int64)
    model = TimestampModel(table, graph.relations, graph.unit, facts, scoring)
    both = [model.scorer(graph, evidence, plain=plain)(queries) for plain in (False, True)]
    for query in range(len(queries)):
        subject, relation, time, fact = (
            int(getattr(queries, name)[query])
            for name in ("subject", "directed_relation", "start", "fact")
        )
        edges = plain_edges(graph, evidence, fact)
        expected = plain_scores(table, config, edges, subject, relation, time)
        for scores in both:
            listed = slice(scores.offsets[query], scores.offsets[query + 1])
            found = dict(zip(scores.candidate[listed].tolist(), scores.score[listed], strict=True))
            if expected:
                found = {entity: -math.expm1(-score) for entity, score in found.items()}
                assert found == pytest.approx(expected)
            else:  # entities that answered the relation, or occurred at all
                earlier = plain_evidence(edges, time, 0, config.ahead)
                answered = [edge for edge in earlier if edge[1] == relation] or earlier
                assert found == Counter(edge[2] for edge in answered)


@NO_WARNING
@settings(max_examples=120)
@given(
    st.data(),
    event_graphs(max_facts=10, splits=("train", "test"), entities="abc"),
    st.integers(1, 3),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([0.0, 0.4]),
)
def test_scores_equal_the_noisy_or_of_all_bodies(data, graph, top, window, share):
    config = TimestampRules(window=window, decay=0.3, share=share, top=top)
    table = data.draw(random_rules(graph))
    queries = queries_of(range(len(graph.entities)), directed_relations(graph), [1991, 1994, 1997])
    for evidence in (("train",), ("train", "test")):
        check_scores(graph, table, config, queries, evidence)


@NO_WARNING
@settings(max_examples=60)
@given(
    st.data(),
    event_graphs(max_facts=10, entities="abc"),
    st.integers(1, 3),
    st.sampled_from([0, 2]),
    SEEDS,
)
def test_rules_that_look_ahead_use_all_facts_but_the_query(data, graph, top, window, seed):
    config = TimestampRules(ahead=True, window=window, decay=0.3, share=0.4, top=top)
    table = data.draw(random_rules(graph))
    queries = queries_of(range(len(graph.entities)), directed_relations(graph), [1991, 1994])
    fact = np.random.default_rng(seed).integers(-1, len(graph), len(queries))
    check_scores(graph, table, config, replace(queries, fact=fact.astype(np.int32)), ("train",))


def test_the_nearest_first_fact_counts_on_either_side_of_the_query():
    """From the later fact b leads to c as well, but the earlier one is nearer to 1994."""
    graph = graph_of(
        train=[
            ("a", "p", "b", "1993", ""),
            ("a", "p", "b", "1997", ""),
            ("b", "p", "c", "1998", ""),
        ]
    )
    table = RuleTable(
        *(np.array(column) for column in ([0], [2], [[0, 0]], [[0, 1, 2]], [1], [1], [0.5]))
    )
    config = TimestampRules(lengths=(2,), ahead=True, decay=0.3, share=0.4)
    for year in (1994, 1996):
        check_scores(graph, table, config, queries_of([0], [0], [year]), ("train",))


@NO_WARNING
@settings(max_examples=40)
@given(event_graphs(splits=SPLITS), st.sampled_from([1992, 1993, 1996]), SEEDS)
def test_nothing_dated_at_or_after_the_query_is_used(graph, time, seed):
    model = TimestampRules(walks=30, samples=20, min_bodies=1, seed=seed).fit(graph)
    queries = queries_of(range(len(graph.entities)), directed_relations(graph), [time])
    times = event_times(graph.start, graph.end)
    earlier = graph.without(np.flatnonzero(times >= time))
    assert len(earlier) < len(graph) or (times < time).all()
    scores, same = (model.scorer(facts, SPLITS)(queries) for facts in (graph, earlier))
    assert np.array_equal(scores.offsets, same.offsets)
    assert np.array_equal(scores.candidate, same.candidate)
    assert np.array_equal(scores.score, same.score)


def test_rules_have_names_and_counts():
    rows = []
    for index in range(6):
        year = 1990 + 3 * index
        rows.append((f"a{index}", "nominated", f"b{index}", str(year), str(year)))
        if index < 4:
            rows.append((f"a{index}", "won", f"b{index}", str(year + 1), str(year + 1)))
    model = TimestampRules(lengths=(1,), seed=1).fit(graph_of(train=rows))
    assert [str(mined.rule) for mined in model.rules] == [
        "won(E1,E2,I2) ← nominated(E1,E2,I1) ∧ earlier_than(I1,I2)",
        "won⁻¹(E1,E2,I2) ← nominated⁻¹(E1,E2,I1) ∧ earlier_than(I1,I2)",
    ]
    first = model.rules[0]
    assert (first.support, first.body_support, first.facts) == (4, 6, 4)
    assert first.confidence == pytest.approx(4 / 6)
    smoothed = TimestampRules(lengths=(1,), smoothing=2.0, seed=1).fit(graph_of(train=rows))
    assert smoothed.rules[0].confidence == pytest.approx(4 / 8)


def test_equal_entities_are_part_of_rules(tmp_path):
    rows = [
        ("a", "visits", "b", "2000", "2000"),
        ("b", "hosts", "c", "2001", "2001"),
        ("c", "thanks", "b", "2002", "2002"),
        ("a", "praises", "b", "2003", "2003"),
    ]
    config = TimestampRules(lengths=(3,), min_bodies=1, seed=0)
    rules = config.fit(graph_of(train=rows)).rules
    expected = (
        "praises(E1,E4,I4) ← visits(E1,E2,I1) ∧ hosts(E2,E3,I2) ∧ thanks(E3,E4,I3) ∧ "
        "no_later_than(I1,I2) ∧ no_later_than(I2,I3) ∧ earlier_than(I3,I4) ∧ the_same_as(E2,E4)"
    )
    assert parse_rule(expected) in rules
    rules.write_jsonl(tmp_path / "rules.jsonl")
    assert RuleSet.read_jsonl(tmp_path / "rules.jsonl") == rules


def test_threads_change_nothing_and_seeds_do():
    graph = tilp.datasets.world(0, 1_000).graph
    tables = [
        TimestampRules(walks=20, samples=30, seed=seed).fit(graph, threads=threads).table
        for seed, threads in ((0, 1), (0, 3), (1, 1))
    ]
    assert len(tables[0]) > 20
    for name in ("head", "relations", "same", "body_support", "support", "confidence"):
        assert np.array_equal(getattr(tables[0], name), getattr(tables[1], name))
    assert not np.array_equal(tables[0].confidence, tables[2].confidence)


def test_scores_do_not_depend_on_the_batch_and_say_which_answers_rules_reach():
    graph = tilp.datasets.world(0, 1_000).graph
    scorer = TimestampRules(walks=20, seed=0).fit(graph).scorer(graph)
    evaluations = [
        tilp.evaluate(scorer, graph, protocols=["exact"], batch=batch, threads=threads)
        for batch, threads in ((512, 1), (7, 2))
    ]
    assert evaluations[0].ranks.equals(evaluations[1].ranks)
    unreached = evaluations[0].ranks["unreached"]
    assert unreached.any() and not unreached.all()
    baseline = tilp.evaluate(tilp.evaluation.popularity(graph), graph, protocols=["exact"])
    mrr, baseline_mrr = (
        evaluation.metrics("exact", "average").mrr for evaluation in (evaluations[0], baseline)
    )
    assert mrr > baseline_mrr


def test_many_rules_for_a_candidate_do_not_round_to_certainty():
    """As a floating-point number, the noisy-or of fifty halves is 1, and so is that of sixty."""
    rows = []
    for year in range(1990, 1994):
        rows += [("a", f"p{n}", "b", str(year), "") for n in range(60)]
        rows += [("a", f"p{n}", "c", str(year), "") for n in range(50)]
        rows += [("a", "asks", entity, str(year), "") for entity in "bc"]
    graph = graph_of(train=rows)
    config = TimestampRules(lengths=(1,), walks=3_000, top=3, seed=0)
    scores = config.fit(graph).scorer(graph)(
        queries_of([graph.entities.find("a")], [graph.relations.find("asks")], [1994])
    )
    assert (-np.expm1(-scores.score) == 1.0).sum() == 2
    ranked = scores.candidate[np.argsort(-scores.score)]
    assert [graph.entities.label(entity) for entity in ranked] == ["b", "c"]
    assert len(np.unique(scores.score)) == 2


def test_a_fact_is_dated_by_its_start_or_else_by_its_end():
    start = np.array([1990, UNKNOWN, OPEN_START, UNKNOWN, UNKNOWN, OPEN_START])
    end = np.array([1999, 1995, 1994, UNKNOWN, OPEN_END, OPEN_END])
    times = event_times(start, end)
    assert times[:3].tolist() == [1990, 1995, 1994]
    assert (times[3:] > 3000).all()
    graph = graph_of(train=[("a", "r", "b", "", "1995"), ("a", "r", "c", "", "")])
    assert TimedEdges.of(graph, "train").time.tolist() == [1995, 1995]


def test_a_query_without_a_date_comes_after_all_facts():
    graph = graph_of(train=[("a", "p", "b", "1990", ""), ("a", "q", "b", "1992", "")] * 2)
    scorer = TimestampRules(lengths=(1,), share=0.5, seed=0, min_bodies=1).fit(graph).scorer(graph)
    queries = queries_of([0], [graph.relations.find("q")], [UNKNOWN])
    scores = scorer(queries)
    assert scores.candidate.tolist() == [graph.entities.find("b")]
    assert -np.expm1(-scores.score[0]) == pytest.approx(0.5)


def test_invalid_parameters_and_graphs_are_refused():
    graph = graph_of(train=[("a", "p", "b", "1990", ""), ("a", "q", "b", "1992", "")])
    for wrong in (
        {"lengths": ()}, {"lengths": (0,)}, {"lengths": (6,)}, {"walks": 0}, {"samples": 0},
        {"top": 0}, {"window": -1}, {"decay": -0.1}, {"share": 1.5}, {"smoothing": -1.0},
        {"transition": "slow"},
    ):  # fmt: skip
        with pytest.raises(TilpError, match=next(iter(wrong))):
            TimestampRules(**wrong)
    with pytest.raises(TilpError, match="no training fact has a date"):
        TimestampRules().fit(graph_of(train=[("a", "p", "b", "", "")]))
    model = TimestampRules().fit(graph)
    with pytest.raises(TilpError, match="2 relations in years"):
        model.scorer(graph_of(train=[("a", "p", "b", "1990", "")]))
    with pytest.raises(TilpError, match="splits"):
        model.scorer(graph, "future")
    facts = [("a", "p", "b", "1990", ""), ("a", "q", "b", "1992", "")]
    with pytest.raises(TilpError, match="train alone"):
        TimestampRules(ahead=True).fit(graph).scorer(graph_of(train=facts, test=facts), SPLITS)
    assert replace(TimestampRules(), transition="uniform").transition is Transition.UNIFORM


def test_every_walk_or_each_edge_once_is_the_same_on_icews14(published):
    graph = tilp.read(published / "ICEWS14")
    model = TimestampRules(walks=60, samples=100, seed=0).fit(graph)
    rows = np.random.default_rng(0).choice(np.array(graph.rows("test")), 150, replace=False)
    queries = QueryTable.of_facts(graph, rows, walked=False)
    quick, slow = (model.scorer(graph, SPLITS, plain=plain)(queries) for plain in (False, True))
    assert np.array_equal(quick.offsets, slow.offsets)
    assert np.array_equal(quick.candidate, slow.candidate)
    assert np.array_equal(quick.score, slow.score)
    assert quick.reached.mean() > 0.6
