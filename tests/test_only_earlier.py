"""Only earlier facts: every stage sees what it would see in a graph without the later ones."""

import json
from dataclasses import replace
from functools import cache

import httpx
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from serving import get, post, running
from strategies import both_ways, every_candidate, query_at, shared_queries, small_world
from tilp.errors import TilpError
from tilp.explanation.render import fact_text
from tilp.features.candidate_counts import COUNT_FEATURES, CandidateCounts
from tilp.features.candidate_history import CandidateHistory, fact_edges, listed_candidates
from tilp.features.random_walks import RandomWalks
from tilp.graph import QueryTable
from tilp.learning import PopularityPrior, known_answers
from tilp.learning.examples import forecast_queries
from tilp.scoring.queries import query_table, read_queries
from tilp.time import FAR, OPEN_END, OPEN_START, UNKNOWN, known_ends
from tilp.walks import Grounder, Walker

BOUNDS = np.array([1, 2, 5, 10])
DETAIL = ("static", "pairs", "gap", "allen")


def as_of(graph, latest):
    """Return a graph as it was known at a time: plainly, fact by fact."""
    end, removed = graph.end.copy(), []
    for row in range(len(graph)):
        start, until = (int(column[0]) for column in known_ends(*_dates(graph, row)))
        if start > latest:
            removed.append(row)
        elif until > latest and start != OPEN_START:
            end[row] = UNKNOWN if graph.start[row] != UNKNOWN else start
    return replace(graph, end=end).without(removed)


def _dates(graph, row):
    return graph.start[row : row + 1], graph.end[row : row + 1]


@st.composite
def queries_in_time(draw):
    """A graph, and queries of it that are asked with earlier facts; some have no date."""
    graph, queries = draw(shared_queries())
    undated = draw(st.lists(st.booleans(), min_size=len(queries), max_size=len(queries)))
    start = np.where(undated, OPEN_START, queries.start)
    end = np.where(undated, OPEN_END, queries.end)
    queries = replace(queries, start=start, end=end).only_earlier()
    assert (queries.latest == np.where(undated, OPEN_END, queries.start - 1)).all()
    lags = st.lists(st.sampled_from([0, 1, 4]), min_size=len(queries), max_size=len(queries))
    late = np.where(undated, OPEN_END, queries.latest - draw(lags))  # evidence may end before
    queries = replace(queries, latest=late)
    assert (queries.only_earlier().latest == late).all()
    return graph, replace(queries, fact=np.full(len(queries), -1, np.int32))


def one_by_one(graph, queries):
    """Yield each query alone, with the graph as it was; then all facts are its evidence."""
    for index in range(len(queries)):
        query = query_at(queries, index)
        past = as_of(graph, int(query.latest[0]))
        yield query, past, replace(query, latest=np.array([OPEN_END]))


def rows_of(table):
    return sorted(map(tuple, table.tolist()))


@settings(max_examples=60, deadline=None)
@given(queries_in_time())
def test_walks_and_found_rules_are_those_of_the_past(asked):
    graph, queries = asked
    walker = Walker(graph, grains=DETAIL, only_earlier=True)
    together, _ = walker.count(queries)
    expected = []
    for index, (query, past, plain) in enumerate(one_by_one(graph, queries)):
        before = Walker(past, grains=DETAIL)
        records, _ = before.count(plain)
        records[:, 0] = index
        expected += rows_of(records)
        for found in (walker.find, walker.find_both_directions):
            rows, support = found(query)
            known, known_support = getattr(before, found.__name__)(plain)
            both = np.column_stack([rows, support]), np.column_stack([known, known_support])
            assert rows_of(both[0]) == rows_of(both[1])
    assert rows_of(together) == sorted(expected)


@settings(max_examples=60, deadline=None)
@given(queries_in_time(), st.sampled_from([1.0, 20.0]))
def test_features_are_those_of_the_past(asked, scale):
    graph, queries = asked
    n = 2 * len(graph.relations)
    prior = PopularityPrior.from_graph(graph, by_start=True)
    history = CandidateHistory(fact_edges(graph), n, BOUNDS)
    walks = RandomWalks(fact_edges(graph), scale, 0, 3, 10**6)
    counts = CandidateCounts(graph, prior)
    weight = np.random.default_rng(0).normal(size=(n, history.n_features))
    rows = np.tile(np.arange(n, dtype=np.int32), (n, 2))
    size = len(graph.entities)
    every = listed_candidates(queries, *every_candidate(graph, queries))
    of_all, of_each = np.zeros((len(queries), size)), np.zeros(len(queries) * size)
    history.add_scores_to_all(every, rows, weight, of_all)
    history.add_scores(every, rows, weight, np.ones(2, np.bool_), of_each)
    np.testing.assert_allclose(of_all.reshape(-1), of_each, atol=1e-9)
    known = known_answers(graph, queries.without_answers())
    total = np.zeros((len(queries), size))
    counted = np.random.default_rng(1).normal(size=(n, len(COUNT_FEATURES)))
    counts.add_to_all(queries, known, counted, total)
    row, offsets, entity, probability = prior.by_start(queries)
    for index, (query, past, plain) in enumerate(one_by_one(graph, queries)):
        if not len(past):
            continue
        candidates = every_candidate(graph, query)
        listed, past_listed = (listed_candidates(one, *candidates) for one in (query, plain))
        edges = fact_edges(past)
        past_history = CandidateHistory(edges, n, BOUNDS)
        found = history.list_features(listed)
        for mine, plainly in zip(found, past_history.list_features(past_listed), strict=True):
            assert mine.tolist() == plainly.tolist()
        there = np.zeros((1, size))
        past_history.add_scores_to_all(past_listed, rows, weight, there)
        np.testing.assert_allclose(of_all[index], there[0], atol=1e-9)
        plain_walks = RandomWalks(edges, scale, 0, 3, 10**6).log_scores(past_listed)
        np.testing.assert_allclose(walks.log_scores(listed), plain_walks, rtol=1e-9, atol=1e-9)
        past_prior = PopularityPrior.from_graph(past)
        relation = np.repeat(query.directed_relation, size)
        every_latest = np.repeat(query.latest, size)
        mine = prior.probabilities(relation, candidates[1], every_latest)
        np.testing.assert_array_equal(
            mine, past_prior.probabilities(relation, candidates[1], every_latest)
        )
        part = slice(offsets[row[index]], offsets[row[index] + 1])
        assert probability[part].tolist() == mine[entity[part]].tolist()
        others = np.delete(mine, entity[part])
        assert (others == prior.min_probability).all()
        past_known = known_answers(past, plain.without_answers())
        mine_known = known_answers(graph, query.without_answers())
        for name in ("offsets", "entity", "mark"):
            assert getattr(mine_known, name).tolist() == getattr(past_known, name).tolist()
        past_counts = CandidateCounts(past, past_prior)
        past_counts._typical = 0.0
        expected = past_counts.features(plain, past_known, *candidates)
        expected[:, -1] = 0.0  # kinds of entities are left out
        np.testing.assert_allclose(counts.features(query, mine_known, *candidates), expected)
        weights = counted[query.directed_relation[0]]
        np.testing.assert_allclose(total[index], expected @ weights, atol=1e-9)


@cache
def fitted():
    return tilp.TILP(only_earlier=True, max_length=2).fit(small_world())


def test_a_model_scores_explains_and_knows_as_on_the_past_alone():
    model, graph = fitted(), fitted().graph
    scorer, size = model.scorer(), len(graph.entities)
    assert "only_earlier=True" in repr(model)
    ranks, hidden = [], 0
    for query in both_ways(graph, every=9):
        table = query_table(graph, read_queries([query]))
        dated = scorer.rule_scorer.fill_dates(table)
        latest = int(dated.latest[0])
        past = as_of(graph, latest)
        other = model.scorer(past)
        listed = np.array([0, size]), np.arange(size, dtype=np.int32)
        mine, plain = (each.contributions(table, *listed) for each in (scorer, other))
        for part in mine:
            np.testing.assert_allclose(mine[part], plain[part], rtol=1e-7, atol=1e-9)
        scores = scorer.score(table).of_candidates(*listed)
        np.testing.assert_allclose(sum(mine.values()), scores, rtol=1e-7, atol=1e-7)
        explained = model.explain(query, ablation=False)
        again = model.explain(query, graph=past, ablation=False)
        assert explained.rank == again.rank == 1
        ranks.append(explained.candidate)
        walks = [walk for reason in explained.reasons for walk in reason.groundings]
        shown = [fact for walk in walks for fact in walk.facts]
        starts = known_ends(graph.start, graph.end)[0][shown]
        assert (starts <= latest).all()
        for step in (step for walk in walks for step in walk.steps):
            end = int(graph.end[step.fact_id])
            hidden += step.hidden_end
            assert step.hidden_end == (end > latest and graph.start[step.fact_id] > -FAR)
            assert step.fact.interval.end == (UNKNOWN if step.hidden_end else end)
            assert ("…]" in fact_text(step)) == step.hidden_end
        known = (model.known_facts(query, graph=each) for each in (graph, past))
        lines = [[str(fact) for fact in facts] for facts in known]
        assert lines[0] == lines[1]
    assert len(set(ranks)) > 3
    assert hidden > 3


def test_groundings_are_those_of_the_past():
    model, graph = fitted(), fitted().graph
    walker = model.scorer().rule_scorer.walker
    queries = walker.with_evidence(QueryTable.of_facts(graph, graph.rows("test"), walked=False))
    grounder, n = Grounder(walker), 0
    for index in range(0, len(queries), 7):
        query = query_at(queries, index)
        past = as_of(graph, int(query.latest[0]))
        classes = walker.gap_edges.tolist()
        plain = Grounder(Walker(past, grains=DETAIL, max_length=2, gap_edges=classes))
        alone = replace(query, latest=np.array([OPEN_END]))
        for mined in list(model.rules())[:40:4]:
            mine = grounder(mined.rule, query, int(query.answer[0])).walks
            others = plain(mined.rule, alone, int(query.answer[0])).walks
            n += len(mine)
            assert len(mine) == len(others)
    assert n > 0


def test_later_facts_change_no_answer():
    """A fact that starts with the query, or later, is no evidence; nor is a later end."""
    model, graph = fitted(), small_world()
    query = next(one for one in both_ways(graph) if one.start)
    before = model.predict(query)
    later = graph.frame("train").with_columns(start=pl.lit(str(query.start)), end=pl.lit(""))
    more = tilp.read({"train": later.select("subject", "relation", "object", "start", "end")})
    after = model.update(more)
    assert len(after.graph) > len(graph)
    assert after.evidence_note == model.evidence_note
    assert "before the query" in model.evidence_note
    assert after.predict(query)["candidate"].to_list()[:3] == before["candidate"].to_list()[:3]


def test_saved_and_loaded_it_answers_the_same(tmp_path):
    model = fitted()
    again = tilp.load(model.save(tmp_path / "model"))
    queries = both_ways(small_world(), every=10)
    assert again.only_earlier and again.predict(queries).equals(model.predict(queries))


def test_in_bulk_it_answers_and_explains_by_the_past_alone(tmp_path):
    model, graph = fitted(), fitted().graph
    queries = [query for query in both_ways(graph, every=10) if query.start]
    names = ("relation", "subject", "object", "start")
    frame = pl.DataFrame([{name: getattr(query, name) for name in names} for query in queries])
    model.predict_to(tmp_path / "bulk", frame.cast(pl.String), k=3, explain=1, part_size=7)
    parts = pl.read_parquet(tmp_path / "bulk" / "part-*.parquet")
    same = ["candidate", "score", "known"]
    assert parts.select(same).equals(model.predict(frame.cast(pl.String), 3).select(same))
    plain = tilp.TILP(max_length=2).fit(graph).predict(frame.cast(pl.String), 3)
    assert not parts.select(same).equals(plain.select(same))
    explained = map(json.loads, parts.filter(pl.col("rank") == 1)["explanation"])
    starts, n_facts = known_ends(graph.start, graph.end)[0], 0
    for query, answer in zip(queries, explained, strict=True):
        groundings = [each for reason in answer["reasons"] for each in reason["groundings"]]
        facts = [fact["id"] for each in groundings for fact in each["facts"]]
        assert (starts[facts] < int(query.start)).all()
        n_facts += len(facts)
    assert n_facts > 100


def test_a_query_without_a_date_is_asked_with_all_facts():
    graph = small_world()
    table = query_table(graph, [tilp.Query("diedIn", subject=graph.entities.label(0))])
    assert fitted().scorer().rule_scorer.fill_dates(table).latest.tolist() == [OPEN_END]


def test_training_queries_are_asked_as_long_after_the_evidence_as_valid_ones():
    graph = tilp.splits.time_shift(small_world()).graph
    queries = forecast_queries(graph, np.asarray(graph.targets), 0)
    train, valid = (
        known_ends(graph.start[graph.span(split)], graph.end[graph.span(split)])[0]
        for split in ("train", "valid")
    )
    last = train[np.abs(train) < FAR].max()
    dated = np.abs(queries.start) < FAR
    lag = (queries.start - 1 - queries.latest)[dated]
    assert (queries.latest[~dated] == OPEN_END).all()
    assert lag.min() == valid.min() - 1 - last == 0
    span = valid.max() - last
    assert span <= lag.max() <= 2 * span - 1 and len(set(lag.tolist())) > 5
    assert 0.3 < (lag < span).mean() < 0.7  # as after train, or as after valid
    n = len(queries) // 2
    assert (queries.latest[:n] == queries.latest[n:]).all()
    random = forecast_queries(small_world(), np.asarray(small_world().targets), 0)
    assert (random.latest == random.only_earlier().latest).all()


@pytest.mark.parametrize("choice", [{"missing": "open"}, {"features": "paper"}])
def test_it_refuses_what_looks_ahead(choice):
    with pytest.raises(TilpError, match="only_earlier needs missing='point'"):
        tilp.TILP(only_earlier=True, **choice)


def test_command_line_packed_graph_and_service_follow_it(run, tmp_path):
    facts, packed, folder = (tmp_path / name for name in ("facts", "packed", "model"))
    tilp.write(small_world(), facts)
    tilp.pack(facts, packed)
    short = ("--max-length", "1", "--features", "none", "--only-earlier")
    code, _, err = run("fit", packed, "--out", folder, *short)
    assert code == 0, err
    model, graph = tilp.load(folder), small_world()
    plain = tilp.TILP(1, features="none", only_earlier=True).fit(graph)
    assert [mined.rule for mined in model.rules()] == [mined.rule for mined in plain.rules()]
    query = next(one for one in both_ways(graph) if one.subject and one.start)
    ask = ("--relation", query.relation, "--subject", query.subject, "--start", query.start)
    code, out, err = run("predict", folder, *ask)
    assert code == 0 and "that start before the query" in out + err
    with running(model) as address, httpx.Client(base_url=address) as client:
        assert "that start before the query" in get(client, "model")["evidence"]
        asked = {"relation": query.relation, "subject": query.subject, "start": query.start}
        best = post(client, "predict", asked)["answers"][0]["candidate"]
    assert best == plain.predict(query)["candidate"][0] and best in out
