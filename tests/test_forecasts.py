"""Forecasts by clues, against plain readings: shares, one pass of learning, what may be used."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilp
from events import (
    NO_WARNING,
    SEEDS,
    asked,
    event_graphs,
    every_head,
    graph_of,
    plain_edges,
)
from tilp._kernels.recency import candidate_rules
from tilp._utils.random import keyed_uniform
from tilp.errors import TilpError
from tilp.forecasting import Curve, ForecastRules
from tilp.forecasting.events import TimedEdges, event_times
from tilp.forecasting.recency import COUNTS, evidence_of, learn, make_table, rates, recency_classes
from tilp.graph import SPLITS
from tilp.rules import parse_rule
from tilp.time import UNKNOWN
from tilp.types import Unit


def class_of(highest, value):
    return sum(value > one for one in highest)


def plain_clues(edges, table, subject, head, time):
    """(candidate, place of a weight) of all clues, read off the edges before the query."""
    blocks, gaps = table.blocks, table.gaps.tolist()
    recencies, counts = len(gaps) + 1, len(COUNTS) + 1
    earlier = [edge for edge in edges if edge[3] < time]
    met = sorted({edge[2] for edge in earlier if edge[0] == subject})
    answered = sorted({edge[2] for edge in earlier if edge[1] == head})
    answered = [one for one in answered if one != subject or one in met]
    rules = range(table.begin[head], table.begin[head + 1])
    rule_of = {int(table.body[rule]): rule for rule in rules}
    clues = []
    for entity, body in sorted({edge[2:0:-1] for edge in earlier if edge[0] == subject}):
        times = [edge[3] for edge in earlier if edge[:3] == (subject, body, entity)]
        recency, count = class_of(gaps, time - max(times)), class_of(COUNTS, len(times))
        rule = rule_of.get(body, len(table.body) + head)
        clues += [
            (entity, blocks.body_recency + (body == head) * recencies + recency),
            (entity, blocks.body_count + (body == head) * counts + count),
            (entity, blocks.rule_level + rule),
            (entity, blocks.rule_recency + rule * recencies + recency),
        ]
    for entity in met:
        between = [edge for edge in earlier if (edge[0], edge[2]) == (subject, entity)]
        gap = time - max(edge[3] for edge in between)
        relations = len({edge[1] for edge in between})
        clues.append((entity, blocks.pair_recency + class_of(gaps, gap)))
        clues.append((entity, blocks.pair_count + class_of(COUNTS, relations)))
    for entity in answered:
        times = [edge[3] for edge in earlier if edge[1:3] == (head, entity)]
        recency, count = class_of(gaps, time - max(times)), class_of(COUNTS, len(times))
        known = entity in met
        clues.append((entity, blocks.answer_recency + known * recencies + recency))
        clues.append((entity, blocks.answer_count + known * counts + count))
    for entity in [*met, *(one for one in answered if one not in met)]:
        gap = time - max(edge[3] for edge in earlier if edge[2] == entity)
        known = entity in met
        clues.append((entity, blocks.entity_recency + known * recencies + class_of(gaps, gap)))
    return clues


def plain_shares(clues, weights):
    """exp of the sum of each candidate's weights."""
    sums = defaultdict(float)
    for entity, place in clues:
        sums[entity] += weights[place]
    return {entity: math.exp(one) for entity, one in sums.items()}


def plain_fit(graph, chosen, table):
    """One pass over train, a query after the other: weights, and counts of rules' bodies."""
    edges = plain_edges(graph)
    weights, squares = np.zeros(table.blocks.end), np.zeros(table.blocks.end)
    rate = rates(table, chosen.rate, chosen.own_rate)
    classes = len(table.gaps) + 1
    counted = np.zeros((2, len(table.body) + len(table.begin) - 1, classes), np.int64)
    times = sorted(edge[3] for edge in edges)
    since = times[max(math.ceil(chosen.warm * len(times)) - 1, 0)]
    answers = defaultdict(set)
    for source, relation, target, time in edges:
        if time >= since:
            answers[source, relation, time].add(target)

    moments = sorted({time for *_, time in answers})

    def turn(query):
        columns = (np.array([one]) for one in (*query[:2], moments.index(query[2])))
        return query[2], keyed_uniform(chosen.seed, *columns)[0], query

    for query in sorted(answers, key=turn):
        clues = plain_clues(edges, table, *query)
        share = plain_shares(clues, weights)
        slope = dict.fromkeys(share, 0.0)
        for answer in answers[query] & share.keys():
            rivals = {one for one in share if one == answer or one not in answers[query]}
            whole = sum(share[one] for one in rivals)
            for one in rivals:
                slope[one] += (one == answer) - share[one] / whole
        for entity, place in clues:
            if table.blocks.rule_recency <= place < table.blocks.pair_recency:
                where = divmod(place - table.blocks.rule_recency, classes)
                counted[0][where] += 1
                counted[1][where] += entity in answers[query]
            if abs(slope[entity]) > 1e-5:
                squares[place] += slope[entity] ** 2
                weights[place] += rate[place] * slope[entity] / math.sqrt(1 + squares[place])
    return weights, *counted


@NO_WARNING
@settings(max_examples=60)
@given(event_graphs(most=14), st.integers(1, 4), st.sampled_from([0.0, 0.3]), SEEDS)
def test_learning_equals_a_plain_pass_over_train(graph, classes, warm, seed):
    chosen = ForecastRules(classes, warm, rate=0.5, own_rate=0.2, seed=seed)
    model = chosen.fit(graph)
    weights, fired, held = plain_fit(graph, chosen, model.table)
    assert model.weights == pytest.approx(weights)
    assert np.array_equal(model.asked, fired)
    assert np.array_equal(model.held, held)


@NO_WARNING
@settings(max_examples=60)
@given(event_graphs(most=12, splits=("train", "test")), st.integers(1, 4), SEEDS)
def test_shares_are_those_of_the_sums_of_clues(graph, classes, seed):
    fitted = ForecastRules(classes).fit(graph)
    weights = np.random.default_rng(seed).normal(size=len(fitted.weights))
    model = replace(fitted, weights=weights)
    queries = asked(graph, range(len(graph.entities)), every_head(graph), [1991, 1994, 1997])
    for evidence in (("train",), ("train", "test")):
        scores = model.scorer(graph, evidence)(queries)
        assert np.isneginf(scores.defaults).all()
        edges = plain_edges(graph, evidence)
        for number in range(len(queries)):
            subject, head, time = (
                int(getattr(queries, name)[number]) for name in ("subject", "head", "start")
            )
            expected = plain_shares(plain_clues(edges, model.table, subject, head, time), weights)
            whole = sum(expected.values())
            listed = slice(scores.offsets[number], scores.offsets[number + 1])
            found = zip(scores.candidate[listed].tolist(), scores.score[listed], strict=True)
            assert {one: math.exp(score) for one, score in found} == pytest.approx(
                {one: share / whole for one, share in expected.items()}
            )


def same_scores(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("offsets", "candidate", "score")
    )


@NO_WARNING
@settings(max_examples=40)
@given(event_graphs(most=12, splits=SPLITS), st.sampled_from([1991, 1993, 1996]))
def test_nothing_dated_at_or_after_the_query_is_used(graph, time):
    model = ForecastRules(rate=0.5).fit(graph)
    queries = asked(graph, range(len(graph.entities)), every_head(graph), [time])
    times = event_times(graph.start, graph.end)
    earlier = graph.without(np.flatnonzero(times >= time))
    assert same_scores(*(model.scorer(one, SPLITS)(queries) for one in (graph, earlier)))


@NO_WARNING
@settings(max_examples=40)
@given(event_graphs(most=14), st.sampled_from([1993, 1996]))
def test_what_is_learned_of_earlier_facts_knows_no_later_ones(graph, time):
    """Where no later fact is asked for, weights are the same with and without them."""
    edges = TimedEdges.of(graph, "train")
    early = edges.time < time
    assume(early.any())
    chosen = ForecastRules(warm=0.0, rate=0.5)
    table = table_of(edges)
    learned = []
    for kept in (np.ones_like(early), early):
        evidence = evidence_of(edges_where(edges, kept))
        learned.append(learn(chosen, edges_where(edges, early), evidence, table)[0])
    assert np.array_equal(*learned)


def table_of(edges):
    heads = 2 * edges.n_relations
    return make_table(candidate_rules(edges.by_relation, heads), heads, recency_classes(edges, 4))


def edges_where(edges, kept):
    names = ("source", "relation", "target", "time", "fact")
    return replace(edges, **{name: getattr(edges, name)[kept] for name in names})


@pytest.mark.parametrize("scale", [7, 1000])
def test_the_unit_of_time_does_not_matter(scale):
    chances = np.random.default_rng(0)
    rows = np.column_stack([chances.integers(0, 12, (300, 3)), chances.integers(1, 90, 300)])
    names = ["subject", "relation", "object", "start"]
    found = []
    for factor in (1, scale):
        rows_now = rows * [1, 1, 1, factor]
        table = pl.DataFrame(rows_now, names, orient="row").with_columns(
            pl.col(names).cast(pl.String), end=pl.col("start").cast(pl.String)
        )
        graph = tilp.read({"train": table}, unit="integer")
        queries = asked(graph, range(12), every_head(graph), [50 * factor, 91 * factor])
        model = ForecastRules(warm=0.0).fit(graph)
        found.append((model, model.scorer(graph)(queries)))
    (model, scores), (other, others) = found
    assert np.array_equal(model.table.gaps * scale, other.table.gaps)
    assert np.array_equal(scores.candidate, others.candidate)
    assert scores.score == pytest.approx(others.score)


def recurring():
    """`asks` follows `visits` of the day before; that of long ago says little."""
    rows = []
    for number in range(40):
        day = 10 * number + 1
        for who in range(6):
            host = f"host{(who + number) % 6}"
            rows.append((f"guest{who}", "visits", host, day))
            rows.append((f"guest{who}", "asks", host, day + 1))
    columns = ["subject", "relation", "object", "start"]
    table = pl.DataFrame(rows, columns, orient="row").with_columns(
        pl.col("start").cast(pl.String), end=pl.col("start").cast(pl.String)
    )
    return tilp.read({"train": table}, unit="integer")


def test_rules_tell_how_their_confidence_follows_recency():
    model = ForecastRules(rate=0.3, own_rate=0.3).fit(recurring())
    rule = parse_rule("asks(E1,E2,I2) ← visits(E1,E2,I1) ∧ earlier_than(I1,I2)")
    curve = model.curve(rule)
    assert curve.highest[0] == 1
    assert curve.confidence[0] == 1.0
    assert max(curve.confidence[1:]) == 0.0
    assert curve.weight[0] > max(curve.weight[1:])
    assert str(curve).startswith("within 1 100 % (+")
    mined = model.rules[rule]
    assert (mined.support, mined.body_support) == (sum(curve.held), sum(curve.asked))
    assert mined.confidence == pytest.approx(mined.support / mined.body_support)
    mean = np.average(curve.weight, weights=curve.asked)
    assert mined.weight == pytest.approx(mean)
    assert not mined.sampled
    assert all(one.support for one in model.rules)


def test_a_curve_is_told_in_words():
    curve = Curve((1, 30), (10, 0, 200), (4, 0, 2), (2.0, 1.0, -0.5), Unit.DAY)
    assert str(curve) == "within 1 day 40 % (+2.0), later 1 % (-0.5)"
    assert curve.confidence == (0.4, 0.0, 0.01)


def test_a_later_meeting_beats_more_that_are_old():
    model = ForecastRules(rate=0.3, own_rate=0.3).fit(recurring())
    graph = recurring()
    query = asked(graph, [graph.entities.find("guest0")], [graph.relations.find("asks")], [392])
    scores = model.scorer(graph)(query)
    best = scores.candidate[np.argmax(scores.score)]
    assert graph.entities.label(int(best)) == "host3"  # visited on day 391


def test_figures_depend_neither_on_batches_nor_on_threads_and_seeds_count():
    graph = tilp.datasets.world(0, 1_000).graph
    models = [ForecastRules(seed=seed).fit(graph) for seed in (0, 0, 1)]
    assert np.array_equal(models[0].weights, models[1].weights)
    assert not np.array_equal(models[0].weights, models[2].weights)
    scorer = models[0].scorer(graph)
    figures = [
        tilp.evaluate(scorer, graph, protocols=["exact"], batch=batch, threads=threads)
        for batch, threads in ((512, 1), (7, 2))
    ]
    assert figures[0].ranks.equals(figures[1].ranks)


def test_progress_is_told_and_ends():
    told = []
    ForecastRules().fit(recurring(), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_query_without_a_date_is_asked_after_all_facts():
    graph = recurring()
    scorer = ForecastRules().fit(graph).scorer(graph)
    last, undated = (
        scorer(asked(graph, [0], every_head(graph), [time])) for time in (10_000, UNKNOWN)
    )
    assert same_scores(last, undated)


def test_what_cannot_be_is_refused():
    for wrong in ({"classes": 0}, {"warm": 1.0}, {"rate": -0.1}, {"own_rate": float("nan")}):
        with pytest.raises(TilpError, match=next(iter(wrong))):
            ForecastRules(**wrong)
    with pytest.raises(TilpError, match="no training fact has a date"):
        ForecastRules().fit(graph_of(train=[("a", "p", "b", "", "")]))
    model = ForecastRules().fit(recurring())
    with pytest.raises(TilpError, match="2 relations in integers"):
        model.scorer(graph_of(train=[("a", "p", "b", "1990", "")]))
    with pytest.raises(TilpError, match="no rule"):
        model.curve(parse_rule("asks(E1,E2,I2) ← visits⁻¹(E1,E2,I1) ∧ earlier_than(I1,I2)"))


def test_forecasts_of_icews14_are_better_than_those_of_timestamp_rules(published):
    """These reach .435 on valid."""
    graph = tilp.read(published / "ICEWS14")
    scorer = ForecastRules().fit(graph).scorer(graph, SPLITS)
    figures = tilp.evaluate(scorer, graph, "valid", protocols=["exact"])
    assert figures.metrics("exact", "average").mrr > 0.455
