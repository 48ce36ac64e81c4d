"""Open is not unknown: what holds until now or later, in all that reads times."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from strategies import every_candidate
from tilp import Query
from tilp.evaluation import evaluate
from tilp.evaluation.filtered_ranks import instants
from tilp.features.candidate_history import CandidateHistory, fact_edges, listed_candidates
from tilp.features.paper.evidence import UNDATED, Gatherer
from tilp.features.random_walks import RandomWalks
from tilp.graph import QueryTable
from tilp.graph.queries import known_facts
from tilp.parallel import Workers
from tilp.scoring import Scores
from tilp.scoring.queries import query_table
from tilp.time import FAR, OPEN_END, UNKNOWN, Interval, TemporalRelation, relation_words
from tilp.time.durations import last_start
from tilp.time.imputation import MissingDates, UsualLengths
from tilp.types import Missing, Unit
from tilp.walks import Walker

NOW = 2020
FACTS = [
    ("a", "p", "b", "1990", "2000"),
    ("a", "q", "c", "1995", "present"),
    ("b", "q", "c", "", "present"),
    ("c", "p", "d", "2010", "2011"),
    ("d", "q", "b", str(NOW), "2030"),  # a planned end: now is the last start
    ("b", "r", "d", "", "1985"),
]


def table(rows):
    return pl.DataFrame(rows, ["subject", "relation", "object", "start", "end"], orient="row")


@pytest.fixture(scope="module")
def graph():
    return tilp.read(table(FACTS), unit="year")


@pytest.fixture(scope="module")
def dates(graph):
    return MissingDates.fit(graph, Missing.POINT, 0)


def row(graph, subject, relation, object_):
    names = [(fact.subject, fact.relation, fact.object) for fact in graph.facts()]
    return names.index((subject, relation, object_))


def asked(graph, dates, subject, relation, start, end):
    queries = query_table(graph, [Query(relation, subject, start=start, end=end)])
    return dates.fill_queries(queries)


@pytest.mark.parametrize("missing", [Missing.POINT, Missing.DURATION])
def test_what_is_only_known_to_go_on_begins_now(graph, missing):
    assert last_start(graph) == NOW
    dates = MissingDates.fit(graph, missing, 0)
    filled = dates.fill_graph(graph)
    only_open = row(graph, "b", "q", "c")
    assert (filled.start[only_open], filled.end[only_open]) == (NOW, OPEN_END)
    since = row(graph, "a", "q", "c")
    assert (filled.start[since], filled.end[since]) == (1995, OPEN_END)
    assert filled.date_text("start").equals(graph.date_text("start"))
    query = asked(graph, dates, "a", "q", None, "present")
    assert (query.start[0], query.end[0]) == (NOW, OPEN_END)
    if missing is Missing.POINT:  # the start is still shown as missing
        assert [int(date[0]) for date in query.given_dates()] == [UNKNOWN, OPEN_END]


def test_a_graph_without_such_facts_stays_the_same(graph, dates):
    plain = graph.without([row(graph, "b", "q", "c")])
    assert dates.fill_graph(plain) is plain
    undated = tilp.read(table([("a", "p", "b", "", "present")]), unit="year")
    assert last_start(undated) == OPEN_END
    filled = MissingDates.fit(undated, Missing.POINT, 0).fill_graph(undated)
    assert filled.start.tolist() == [OPEN_END]


def classes_by_hand(start, end, other_start, other_end):
    """The class of eq. 4, an open end as a very late one."""
    end, other_end = (9999 if time == OPEN_END else time for time in (end, other_end))
    return "before" if end < other_start else "after" if start > other_end else "touching"


@pytest.mark.parametrize(
    "start, end", [("1990", "present"), (None, "present"), ("2005", "2006"), ("2021", "2021")]
)
def test_walks_take_an_open_end_as_later_than_every_date(graph, dates, start, end):
    filled = dates.fill_graph(graph)
    walker = Walker(filled, grains=["pairs"], max_length=1)
    query = asked(graph, dates, "b", "p", start, end)
    records, _ = walker.count(query)
    index = graph.index(("train",))
    b = graph.entities.find("b")
    edges = range(index.offsets[b], index.offsets[b + 1])
    known = {(Interval(1990, 2000)), Interval(NOW, OPEN_END), Interval(NOW, 2030)}
    known.add(Interval(1985, 1985))
    expected = sorted(
        classes_by_hand(t.start, t.end, int(query.start[0]), int(query.end[0])) for t in known
    )
    assert len(edges) == len(known)
    assert sorted(list(TemporalRelation)[code].value for code in records[:, 5]) == expected


def test_random_walks_weigh_the_time_until_now(graph, dates):
    filled = dates.fill_graph(graph)
    walks = RandomWalks(fact_edges(filled), 10.0, 0, 1, 10**6)
    query = asked(graph, dates, "b", "p", "2005", "2005")
    listed = listed_candidates(query, *every_candidate(graph, query))
    reached = np.expm1(walks.log_scores(listed)) * 1e-7
    gaps = {"a": [5], "c": [NOW - 2005], "d": [NOW - 2005, 20]}
    weights = {name: sum(np.exp(-gap / 10) for gap in of) for name, of in gaps.items()}
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        assert reached[graph.entities.find(name)] == pytest.approx(share)
    assert reached[graph.entities.find("b")] == pytest.approx(0, abs=1e-12)


def test_candidate_history_and_the_papers_features_have_a_date_for_it(graph, dates):
    filled = dates.fill_graph(graph)
    history = CandidateHistory(fact_edges(filled), 2 * len(graph.relations), np.array([1, 2, 10]))
    c = np.array([graph.entities.find("c")], np.int32)
    relation = graph.relations.find("q") + len(graph.relations)
    for start, end, words in (
        ("2005", "2005", "after the query's time"),
        (None, "present", "equals the query's time"),
    ):
        query = asked(graph, dates, "b", "p", start, end)
        facts = history.nearest_facts(listed_candidates(query, np.array([0, 1]), c))
        (fact,) = (f for f in facts if f.kind == 1 and f.relation == relation)
        assert history.describe(fact.features[0], "year") == words
        every = np.ones((2 * len(graph.relations),) * 2, np.bool_)
        evidence = Gatherer(filled, every, 1)(query, np.array([0, 1]), c, Workers())
        found = evidence.difference[(evidence.kind == 0) & (evidence.relation == relation)]
        assert found.tolist() == [NOW - int(query.start[0])]
        assert UNDATED not in evidence.difference


def test_answers_known_now_are_filtered(graph, dates):
    query = asked(graph, dates, "b", "q", None, "present")
    rows, answers = known_facts(graph, query, 0)
    assert rows.tolist() == [row(graph, "b", "q", "c")]
    assert answers.tolist() == [graph.entities.find("c")]
    ended = asked(graph, dates, "a", "p", None, "present")
    assert len(known_facts(graph, ended, 0)[0]) == 0


def test_protocols_let_an_open_fact_hold_after_all_dates(graph):
    first, last = instants(graph)
    only_open, since = row(graph, "b", "q", "c"), row(graph, "a", "q", "c")
    assert last[only_open] == last[since] == last.max()
    assert (last[row(graph, "a", "p", "b")], last[row(graph, "c", "p", "d")]) < (last.max(),) * 2
    assert (first <= last).all()


def test_an_answer_that_still_holds_is_left_out_of_ranks():
    train = table([("a", "p", "b", "", "present"), ("a", "p", "c", "1990", "1991")])
    test = table([("a", "p", "d", "2015", "present")])
    graph = tilp.read({"train": train, "test": test}, unit="year")
    entity = np.array([graph.entities.find(name) for name in "bcd"], np.int32)

    def score(queries):
        n = len(queries)
        return Scores(np.arange(n + 1) * 3, np.tile(entity, n), np.tile([3.0, 2.0, 1.0], n))

    ranks = evaluate(score, graph, "test", protocols=["enumerate", "overlap"]).ranks
    objects = ranks.filter(pl.col("direction") == "object")
    # b holds when d does; c ended before and counts.
    assert objects["rank_enumerate_average"].to_list() == [2.0]
    assert objects["rank_overlap_average"].to_list() == [2.0]


@pytest.mark.parametrize(
    "interval, other, words",
    [
        ((UNKNOWN, OPEN_END), (1990, 1991), ""),
        ((UNKNOWN, OPEN_END), (UNKNOWN, OPEN_END), "at that time"),
        ((1980, OPEN_END), (UNKNOWN, OPEN_END), "at that time"),
        ((1980, 1985), (UNKNOWN, OPEN_END), "before"),
        ((1980, OPEN_END), (1990, OPEN_END), "already for 10 years then"),
    ],
)
def test_words_for_what_goes_on(interval, other, words):
    assert relation_words(Interval(*interval), Interval(*other), Unit.YEAR) == words


def test_a_question_about_now_is_asked_from_the_last_start_on(world_model):
    """`--end present` without a start."""
    graph = world_model.graph
    relation, subject = graph.fact(0).relation, graph.fact(0).subject
    now = last_start(graph)
    asked = [Query(relation, subject, start=start, end="present") for start in (None, now)]
    ours, same = (
        world_model.predict(query, k=5).select("candidate", "score", "share") for query in asked
    )
    assert len(ours) == 5 and ours.equals(same)
    text = str(world_model.explain(asked[0]))
    assert "that is not known" not in text and str(OPEN_END)[:4] not in text.replace(",", "")


def test_training_queries_of_open_facts_keep_their_dates(graph, dates):
    facts = QueryTable.of_facts(graph, np.arange(len(graph)), walked=True)
    filled = dates.fill_queries(facts)
    only_open = row(graph, "b", "q", "c")
    assert [int(filled.start[n]) for n in (only_open, only_open + len(graph))] == [NOW, NOW]
    others = np.delete(np.arange(2 * len(graph)), [only_open, only_open + len(graph)])
    assert (filled.start[others] == facts.start[others]).all()
    assert (filled.end == facts.end).all()


# queries without an end


def usual_end_by_hand(facts, start, width=15):
    """The start plus the median length, open ends last, of a window of facts around it."""
    facts = sorted(facts, key=lambda fact: (fact[0], fact[1] - fact[0]))
    n_below = sum(fact[0] < start for fact in facts)
    n_same = sum(fact[0] == start for fact in facts)
    width = min(width, len(facts))
    first = max(0, min(n_below + (n_same - width) // 2, len(facts) - width))
    lengths = sorted(end - begin for begin, end in facts[first : first + width])
    median = lengths[(width - 1) // 2]
    return OPEN_END if median > 5_000 else start + median


ends_of_facts = st.one_of(st.integers(0, 9), st.just(9_999))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1_990, 2_010), ends_of_facts), min_size=1, max_size=40),
    st.integers(1_985, 2_015),
)
def test_a_query_without_an_end_gets_the_usual_one(facts, start):
    facts = [(begin, min(begin + length, 9_999)) for begin, length in facts]
    written = [(str(begin), "present" if end == 9_999 else str(end)) for begin, end in facts]
    graph = tilp.read(table([(f"s{n}", "r", "o", *dates) for n, dates in enumerate(written)]))
    dates = MissingDates.fit(graph, Missing.POINT, 0, usual=True)
    query = asked(graph, dates, "s0", "r", str(start), None)
    assert (query.start[0], query.end[0]) == (start, usual_end_by_hand(facts, start))
    assert [int(date[0]) for date in query.given_dates()] == [start, UNKNOWN]
    given = asked(graph, dates, "s0", "r", str(start), str(start + 1))
    assert given.end[0] == start + 1


@pytest.mark.parametrize("n_unknown, is_usual", [(1, True), (2, False)])
def test_a_relation_whose_facts_often_lack_an_end_has_no_usual_one(n_unknown, is_usual):
    """A model learns from such facts what a query without an end is."""
    rows = [(f"s{n}", "r", "o", "1990", "" if n < n_unknown else "1994") for n in range(20)]
    graph = tilp.read(table([*rows, ("a", "undated", "b", "", "")]))
    usual = UsualLengths.of_graph(graph)
    relation = np.array([graph.relations.find(name) for name in ("r", "undated")])
    assert usual.ends(relation, np.array([2000, 2000])).tolist() == [2000 + 4 * is_usual, 2000]
    assert usual.ends(relation, np.array([FAR - 1, 0])).tolist() == [FAR - 1 + 4 * is_usual, 0]


@pytest.mark.parametrize("only_earlier", [False, True])
def test_where_only_earlier_facts_count_others_say_no_length(only_earlier):
    times = {"r": ("1990", "1994"), "q": ("1992", "1995")}
    rows = [(f"s{n}", r, f"o{n % 3}", *times[r]) for n in range(12) for r in times]
    model = tilp.TILP(only_earlier=only_earlier, max_length=1, min_support=1, features="none")
    scorer = model.fit(tilp.read(table(rows))).scorer()
    query = scorer.fill_dates(query_table(model.graph, [Query("q", "s0", start="1992")]))
    assert query.end.tolist() == [1992 if only_earlier else 1995]
