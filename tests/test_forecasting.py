"""Forecasts by recency features, against plain code: probabilities, learning, evidence used."""

import math
from collections import defaultdict
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
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
from tilp._kernels.recency import ANSWERS, PARTNERS, RANKED, SCANNED, candidate_rules
from tilp._utils.random import keyed_uniform
from tilp.errors import TilpError
from tilp.forecasting import Curve, ForecastSettings
from tilp.forecasting.events import TimedEdges, event_times
from tilp.forecasting.recency import (
    MAX_COUNTS,
    MAX_SHARED,
    MAX_SIMILAR,
    learning_rates,
    make_table,
    recency_classes,
    run_queries,
)
from tilp.forecasting.scorer import make_evidence
from tilp.graph import SPLITS
from tilp.rules import parse_rule
from tilp.time import UNKNOWN
from tilp.types import Unit

LISTED = st.sampled_from([1, 2, 500])


def listing(n):
    """Let so many answers of a relation, and other ends of so many facts, be candidates."""
    return patch.multiple("tilp.forecasting.recency", LISTED=n, MET=n)


def class_of(maxima, value):
    return sum(value > maximum for maximum in maxima)


def plain_features(edges, table, subject, relation, time):
    """Return (candidate, index of a weight) of all features, from the edges before the query."""
    blocks, gaps = table.blocks, table.gaps.tolist()
    recencies, counts = len(gaps) + 1, len(MAX_COUNTS) + 1
    earlier = [edge for edge in edges if edge[3] < time]
    own = sorted((edge for edge in earlier if edge[0] == subject), key=lambda edge: edge[3])
    met = sorted({edge[2] for edge in own})
    if len(own) > table.met:  # the latest first, in which order their features are learned
        met = list(dict.fromkeys(edge[2] for edge in own[::-1][: table.met]))
    answers = sorted((edge[3], edge[2]) for edge in earlier if edge[1] == relation)
    answered = sorted({entity for _, entity in answers})
    if len(answered) > table.listed:
        answered = list(dict.fromkeys(entity for _, entity in answers[::-1][: table.listed]))
    answered = [entity for entity in answered if entity != subject or entity in met]
    rules = range(table.rule_offsets[relation], table.rule_offsets[relation + 1])
    rule_of = {int(table.body[rule]): rule for rule in rules}
    features = []
    bodies = {edge[2:0:-1] for edge in own if edge[2] in met}
    for entity, body in sorted(bodies, key=lambda pair: (met.index(pair[0]), pair[1])):
        times = [edge[3] for edge in earlier if edge[:3] == (subject, body, entity)]
        recency, count = class_of(gaps, time - max(times)), class_of(MAX_COUNTS, len(times))
        rule = rule_of.get(body, len(table.body) + relation)
        features += [
            (entity, blocks.body_recency + (body == relation) * recencies + recency),
            (entity, blocks.body_count + (body == relation) * counts + count),
            (entity, blocks.rule_level + rule),
            (entity, blocks.rule_recency + rule * recencies + recency),
        ]
    for entity in met:
        between = [edge for edge in earlier if (edge[0], edge[2]) == (subject, entity)]
        same = [edge[3] for edge in between if edge[1] == relation]
        recency = class_of(gaps, time - max(edge[3] for edge in between))
        relations = len({edge[1] for edge in between})
        latest = class_of(gaps, time - max(same)) if same else recencies
        facts = class_of(MAX_COUNTS, len(between))
        features.append((entity, blocks.pair_count + class_of(MAX_COUNTS, relations)))
        features.append((entity, blocks.pair_history + recency * counts + facts))
        features.append((entity, blocks.pair_latest + recency * (recencies + 1) + latest))
    n_answers = {}

    def add_answers(entity):
        times = [when for when, other in answers if other == entity]
        if entity in n_answers or not times:
            return
        recency, count = class_of(gaps, time - max(times)), class_of(MAX_COUNTS, len(times))
        n_answers[entity], known = count + 1, entity in met
        features.append((entity, blocks.answer_recency + known * recencies + recency))
        features.extend([(entity, blocks.answer_count + count)] * known)

    for entity in answered:
        add_answers(entity)
    shared = plain_shared(earlier, gaps, subject, time)
    similar = plain_similar(earlier, shared, subject, relation)
    order = list(dict.fromkeys([*met, *answered, *shared, *similar]))
    for entity in [entity for entity in shared if entity in met]:
        features.append((entity, blocks.met_shared + class_of(MAX_SHARED, shared[entity])))
    for entity in [entity for entity in similar if entity in met]:
        features.append((entity, blocks.met_similar + class_of(MAX_SIMILAR, similar[entity])))
    for entity in order:
        add_answers(entity)
    for sums, block in ((shared, blocks.shared_rank), (similar, blocks.similar_rank)):
        unmet = {entity: sums[entity] for entity in order if entity in sums and entity not in met}
        for entity, total in unmet.items():
            better = min(sum(other > total for other in unmet.values()), RANKED)
            features.append((entity, block + class_of(MAX_COUNTS, better + 1)))
    for entity in order:
        gap = time - max(edge[3] for edge in earlier if edge[2] == entity)
        known = entity in met
        features.append((entity, blocks.entity_recency + known * recencies + class_of(gaps, gap)))
        if not known:
            joint = strength_class(shared, MAX_SHARED, entity) * (len(MAX_SIMILAR) + 2)
            joint += strength_class(similar, MAX_SIMILAR, entity)
            joint = joint * (counts + 1) + n_answers.get(entity, 0)
            features.append((entity, blocks.unmet + joint))
    return features


def strength_class(sums, maxima, entity):
    return 1 + class_of(maxima, sums[entity]) if entity in sums else 0


def plain_shared(earlier, gaps, subject, time):
    """Return how closely each entity shares partners with the subject."""

    def partners(entity):
        latest = sorted((edge for edge in earlier if edge[0] == entity), key=lambda edge: edge[3])
        found = {}
        for edge in latest[::-1][:SCANNED]:
            found.setdefault(edge[2], edge[3])
        return found

    sums = defaultdict(float)
    own = [(partner, when) for partner, when in partners(subject).items() if partner != subject]
    for partner, when in own[:PARTNERS]:
        degree = sum(edge[0] == partner for edge in earlier)
        near = 2.0 / (1.0 + class_of(gaps, time - when)) / math.log(2.0 + degree)
        others = [entity for entity in partners(partner) if entity != subject]
        for rank, entity in enumerate(others[:PARTNERS], start=1):
            sums[entity] += 2.0 * near / (1.0 + math.sqrt(rank))
    return dict(sums)


def plain_similar(earlier, shared, subject, relation):
    """Return how often entities that share partners with the subject had each as their answer."""
    sums = defaultdict(float)
    for entity, strength in shared.items():
        own = [edge for edge in earlier if edge[:2] == (entity, relation)]
        for rank, edge in enumerate(sorted(own, key=lambda edge: edge[3])[::-1][:ANSWERS], start=1):
            if edge[2] != subject:
                sums[edge[2]] += strength / rank
    return dict(sums)


def ordered_edges(graph, splits=("train",)):
    """Return the edges of `plain_edges` in the order that equal times are told apart by."""
    edges = TimedEdges.of(graph, splits)
    columns = (edges.source, edges.relation, edges.target, edges.time)
    listed = list(zip(*(column.tolist() for column in columns), strict=True))
    assert sorted(listed) == sorted(plain_edges(graph, splits))
    return listed


def plain_odds(features, weights):
    """Return exp of the sum of each candidate's weights."""
    sums = defaultdict(float)
    for entity, index in features:
        sums[entity] += weights[index]
    return {entity: math.exp(total) for entity, total in sums.items()}


def plain_fit(graph, config, table):
    """Return weights and counts of rules' bodies after one pass over train, query by query."""
    edges = ordered_edges(graph)
    weights, squares = np.zeros(table.blocks.end), np.zeros(table.blocks.end)
    rate = learning_rates(table, config.rate, config.own_rate)
    classes = len(table.gaps) + 1
    counts_of_rules = np.zeros(
        (2, len(table.body) + len(table.rule_offsets) - 1, classes), np.int64
    )
    times = sorted(edge[3] for edge in edges)
    first_time = times[max(math.ceil(config.warm * len(times)) - 1, 0)]
    answers = defaultdict(set)
    for source, relation, target, time in edges:
        if time >= first_time:
            answers[source, relation, time].add(target)

    query_times = sorted({time for *_, time in answers})

    def order(query):
        columns = (np.array([value]) for value in (*query[:2], query_times.index(query[2])))
        return query[2], keyed_uniform(config.seed, *columns)[0], query

    for query in sorted(answers, key=order):
        features = plain_features(edges, table, *query)
        odds = plain_odds(features, weights)
        gradient = dict.fromkeys(odds, 0.0)
        for answer in answers[query] & odds.keys():
            rivals = {entity for entity in odds if entity == answer or entity not in answers[query]}
            total = sum(odds[entity] for entity in rivals)
            for entity in rivals:
                gradient[entity] += (entity == answer) - odds[entity] / total
        for entity, index in features:
            if table.blocks.rule_recency <= index < table.blocks.pair_count:
                cell = divmod(index - table.blocks.rule_recency, classes)
                counts_of_rules[0][cell] += 1
                counts_of_rules[1][cell] += entity in answers[query]
            if abs(gradient[entity]) > 1e-5:
                squares[index] += gradient[entity] ** 2
                weights[index] += rate[index] * gradient[entity] / math.sqrt(1 + squares[index])
    return weights, *counts_of_rules


@NO_WARNING
@settings(max_examples=60)
@given(event_graphs(max_facts=14), st.integers(1, 4), st.sampled_from([0.0, 0.3]), SEEDS, LISTED)
def test_learning_equals_a_plain_pass_over_train(graph, classes, warm, seed, listed):
    config = ForecastSettings(classes, warm, rate=0.5, own_rate=0.2, seed=seed)
    with listing(listed):
        model = config.fit(graph)
    weights, body_support, support = plain_fit(graph, config, model.table)
    assert model.weights == pytest.approx(weights)
    assert np.array_equal(model.body_support, body_support)
    assert np.array_equal(model.support, support)


@NO_WARNING
@settings(max_examples=60)
@given(event_graphs(max_facts=12, splits=("train", "test")), st.integers(1, 4), SEEDS, LISTED)
def test_scores_are_summed_weights_and_all_others_share_less_than_the_last(
    graph, classes, seed, listed
):
    with listing(listed):
        fitted = ForecastSettings(classes).fit(graph)
    weights = np.random.default_rng(seed).normal(size=len(fitted.weights))
    model = replace(fitted, weights=weights)
    queries = queries_of(range(len(graph.entities)), directed_relations(graph), [1991, 1994, 1997])
    for evidence in (("train",), ("train", "test")):
        scores = model.scorer(graph, evidence)(queries)
        edges = ordered_edges(graph, evidence)
        for query in range(len(queries)):
            subject, relation, time = (
                int(getattr(queries, name)[query])
                for name in ("subject", "directed_relation", "start")
            )
            expected = plain_odds(
                plain_features(edges, model.table, subject, relation, time), weights
            )
            listed = slice(scores.offsets[query], scores.offsets[query + 1])
            found = zip(scores.candidate[listed].tolist(), scores.score[listed], strict=True)
            assert {entity: math.exp(score) for entity, score in found} == pytest.approx(expected)
            least = min(expected.values(), default=1.0)
            others = math.exp(scores.defaults[query]) * (len(graph.entities) - len(expected))
            assert 0.0 <= others <= least * (1 + 1e-9) or len(graph.entities) < 2


def same_scores(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("offsets", "candidate", "score")
    )


@NO_WARNING
@settings(max_examples=40)
@given(event_graphs(max_facts=12, splits=SPLITS), st.sampled_from([1991, 1993, 1996]), LISTED)
def test_nothing_dated_at_or_after_the_query_is_used(graph, time, listed):
    with listing(listed):
        model = ForecastSettings(rate=0.5).fit(graph)
    queries = queries_of(range(len(graph.entities)), directed_relations(graph), [time])
    times = event_times(graph.start, graph.end)
    earlier = graph.without(np.flatnonzero(times >= time))
    assert same_scores(*(model.scorer(facts, SPLITS)(queries) for facts in (graph, earlier)))


@NO_WARNING
@settings(max_examples=40)
@given(event_graphs(max_facts=14), st.sampled_from([1993, 1996]), LISTED)
def test_later_facts_do_not_change_what_is_learned_from_earlier_ones(graph, time, listed):
    """Weights of queries on early facts are the same with and without later evidence."""
    edges = TimedEdges.of(graph, "train")
    early = edges.time < time
    assume(early.any())
    with listing(listed):
        table = table_of(edges)
    rates, learned = learning_rates(table, 0.5, 0.02), []
    for mask in (np.ones_like(early), early):
        shape = len(table.body) + len(table.rule_offsets) - 1, len(table.gaps) + 1
        counts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        state = np.zeros_like(rates), np.zeros_like(rates), *counts
        run_queries(make_evidence(edges[mask]), table, edges[early], 0, rates, state)
        learned.append(state[0])
    assert np.array_equal(*learned)


@NO_WARNING
@settings(max_examples=60)
@given(
    event_graphs(max_facts=14), st.integers(1990, 1997), st.sampled_from(["<", ">=", "!=", "fact"])
)
def test_edges_of_new_times_are_merged_into_sort_orders(graph, time, kept):
    """Merged or sorted anew, as where what is new has a time that was there: it is the same."""
    edges = TimedEdges.of(graph, "train")
    masks = {"<": edges.time < time, ">=": edges.time >= time, "!=": edges.time != time}
    old = edges[masks.get(kept, edges.fact > 0)]
    make_evidence(old), old.by_relation
    grown = TimedEdges.of(graph, "train").extending(old)
    is_known = np.isin(edges.time, old.time).sum() > len(old.time)
    assert len(grown.orders) == (0 if is_known else 6)
    parts = [(*make_evidence(each), each.by_relation) for each in (grown, edges)]
    for mine, plain in zip(*parts, strict=True):
        for array, expected in zip(mine, plain, strict=True):
            assert array.tolist() == expected.tolist()


def table_of(edges):
    n_directed = 2 * edges.n_relations
    rules = candidate_rules(edges.by_entity_relation, n_directed)
    return make_table(rules, n_directed, recency_classes(edges, 4))


@pytest.mark.parametrize("scale", [7, 1000])
def test_the_unit_of_time_does_not_matter(scale):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 12, (300, 3)), rng.integers(1, 90, 300)])
    names = ["subject", "relation", "object", "start"]
    found = []
    for factor in (1, scale):
        rows_now = rows * [1, 1, 1, factor]
        table = pl.DataFrame(rows_now, names, orient="row").with_columns(
            pl.col(names).cast(pl.String), end=pl.col("start").cast(pl.String)
        )
        graph = tilp.read({"train": table}, unit="integer")
        queries = queries_of(range(12), directed_relations(graph), [50 * factor, 91 * factor])
        model = ForecastSettings(warm=0.0).fit(graph)
        found.append((model, model.scorer(graph)(queries)))
    (model, scores), (other, others) = found
    assert np.array_equal(model.table.gaps * scale, other.table.gaps)
    assert np.array_equal(scores.candidate, others.candidate)
    assert scores.score == pytest.approx(others.score)


def recurring():
    """Return facts where `asks` follows `visits` of the day before, not of long ago."""
    rows = []
    for visit in range(40):
        day = 10 * visit + 1
        for who in range(6):
            host = f"host{(who + visit) % 6}"
            rows.append((f"guest{who}", "visits", host, day))
            rows.append((f"guest{who}", "asks", host, day + 1))
    columns = ["subject", "relation", "object", "start"]
    table = pl.DataFrame(rows, columns, orient="row").with_columns(
        pl.col("start").cast(pl.String), end=pl.col("start").cast(pl.String)
    )
    return tilp.read({"train": table}, unit="integer")


def test_confidence_of_a_rule_follows_recency():
    model = ForecastSettings(rate=0.3, own_rate=0.3).fit(recurring())
    rule = parse_rule("asks(E1,E2,I2) ← visits(E1,E2,I1) ∧ earlier_than(I1,I2)")
    curve = model.curve(rule)
    assert curve.max_gap[0] == 1
    assert curve.confidence[0] == 1.0
    assert max(curve.confidence[1:]) == 0.0
    assert curve.weight[0] > max(curve.weight[1:])
    assert str(curve).startswith("within 1 100 % (+")
    mined = model.rules[rule]
    assert (mined.support, mined.body_support) == (sum(curve.support), sum(curve.body_support))
    assert mined.confidence == pytest.approx(mined.support / mined.body_support)
    mean = np.average(curve.weight, weights=curve.body_support)
    assert mined.weight == pytest.approx(mean)
    assert not mined.sampled
    assert all(mined.support for mined in model.rules)


def test_a_curve_prints_the_classes_that_have_candidates():
    curve = Curve((1, 30), (10, 0, 200), (4, 0, 2), (2.0, 1.0, -0.5), Unit.DAY)
    assert str(curve) == "within 1 day 40 % (+2.0), later 1 % (-0.5)"
    assert curve.confidence == (0.4, 0.0, 0.01)


def test_a_recent_meeting_beats_several_old_ones():
    model = ForecastSettings(rate=0.3, own_rate=0.3).fit(recurring())
    graph = recurring()
    query = queries_of([graph.entities.find("guest0")], [graph.relations.find("asks")], [392])
    scores = model.scorer(graph)(query)
    best = scores.candidate[np.argmax(scores.score)]
    assert graph.entities.label(int(best)) == "host3"  # visited on day 391


def test_ranks_do_not_depend_on_batches_or_threads_but_on_the_seed():
    graph = tilp.datasets.world(0, 1_000).graph
    models = [ForecastSettings(seed=seed).fit(graph) for seed in (0, 0, 1)]
    assert np.array_equal(models[0].weights, models[1].weights)
    assert not np.array_equal(models[0].weights, models[2].weights)
    scorer = models[0].scorer(graph)
    evaluations = [
        tilp.evaluate(scorer, graph, protocols=["exact"], batch=batch, threads=threads)
        for batch, threads in ((512, 1), (7, 2))
    ]
    assert evaluations[0].ranks.equals(evaluations[1].ranks)


def test_progress_rises_to_one():
    shares = []
    ForecastSettings().fit(recurring(), progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("step", [1, 24])
def test_a_query_without_a_date_is_asked_at_the_first_instant_after_all_facts(step):
    times = step * np.array([0, 3, 4, 7])
    graph = graph_of(train=[("a", "p", "b", str(1000 + time), "") for time in times.tolist()])
    scorer = ForecastSettings().fit(graph).scorer(graph)
    assert scorer.now == 1000 + 8 * step
    now, undated = (
        scorer(queries_of([0], directed_relations(graph), [time])) for time in (scorer.now, UNKNOWN)
    )
    assert same_scores(now, undated)


def test_invalid_parameters_and_graphs_are_refused():
    for wrong in ({"classes": 0}, {"warm": 1.0}, {"rate": -0.1}, {"own_rate": float("nan")}):
        with pytest.raises(TilpError, match=next(iter(wrong))):
            ForecastSettings(**wrong)
    with pytest.raises(TilpError, match="no training fact has a date"):
        ForecastSettings().fit(graph_of(train=[("a", "p", "b", "", "")]))
    model = ForecastSettings().fit(recurring())
    with pytest.raises(TilpError, match="2 relations in integers"):
        model.scorer(graph_of(train=[("a", "p", "b", "1990", "")]))
    with pytest.raises(TilpError, match="no rule"):
        model.curve(parse_rule("asks(E1,E2,I2) ← visits⁻¹(E1,E2,I1) ∧ earlier_than(I1,I2)"))


def test_forecasts_of_icews14_are_better_than_those_of_timestamp_rules(published):
    """These reach .435 on valid."""
    graph = tilp.read(published / "ICEWS14")
    scorer = ForecastSettings().fit(graph).scorer(graph, SPLITS)
    evaluations = tilp.evaluate(scorer, graph, "valid", protocols=["exact"])
    assert evaluations.metrics("exact", "average").mrr > 0.455
