"""Words for the facts of candidates against a plain reading: which fact, which words, in words."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from oracles import clipped, edges_of, nearest_intervals
from strategies import all_queries, every_candidate, shared_queries
from tilp._kernels.candidate_history import N_ALLEN
from tilp.features.candidate_history import (
    HISTORY_KINDS,
    CandidateHistory,
    distance_bounds,
    fact_edges,
    listed_candidates,
)
from tilp.graph import QueryTable
from tilp.time import FAR, OPEN_END, OPEN_START, Allen, Interval, allen, known_ends

NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
SEEDS = st.integers(0, 2**32 - 1)
BOUNDS = np.array([1, 2, 3, 5, 8, 13], np.int64)


def plain_bin(distance, bounds):
    first = int(np.searchsorted(bounds, abs(distance), side="right"))
    return len(bounds) + (first if distance >= 0 else -first)


def plain_words(fact, query, bounds):
    """The words for one interval against another."""
    ends = (*clipped(fact), *clipped(query))
    if min(map(abs, ends[:2])) >= FAR or min(map(abs, ends[2:])) >= FAR:
        return [N_ALLEN]
    distances = (fact.start - query.start, fact.end - query.start, fact.start - query.end)
    return [
        list(Allen).index(allen(fact, query)),
        *(
            N_ALLEN + 1 + which * (2 * len(bounds) + 1) + plain_bin(distance, bounds)
            for which, distance in enumerate(distances)
        ),
    ]


def plain_facts(graph, queries, bounds):
    """For each query and entity, the words of each group."""
    edges = edges_of(graph)
    for number in range(len(queries)):
        query = Interval(int(queries.start[number]), int(queries.end[number]))
        subject, own = int(queries.subject[number]), int(queries.fact[number])
        for candidate in range(len(graph.entities)):
            nearest = nearest_intervals(graph, edges, candidate, subject, own, query)
            yield {group: plain_words(fact, query, bounds) for group, fact in nearest.items()}


def listed(facts, graph, queries):
    begin, word = facts.list_features(listed_candidates(queries, *every_candidate(graph, queries)))
    assert begin[0] == 0 and begin[-1] == len(word)
    return [word[slice(*both)].tolist() for both in pairwise(begin)]


@NO_WARNING
@settings(max_examples=60)
@given(shared_queries(), st.booleans())
def test_the_nearest_fact_of_each_relation_is_described(shared, of_facts):
    graph, queries = shared
    if of_facts:
        queries = all_queries(graph)
    facts = CandidateHistory(fact_edges(graph), 2 * len(graph.relations), BOUNDS)
    assert facts.n_groups == 4 * len(graph.relations)
    assert facts.n_features == N_ALLEN + 1 + 3 * 13
    for found, plain in zip(
        listed(facts, graph, queries), plain_facts(graph, queries, BOUNDS), strict=True
    ):
        expected = [group * facts.n_features + word for group in plain for word in plain[group]]
        assert sorted(found) == sorted(expected)


@st.composite
def far_apart(draw):
    """A graph of integer times, some of them past every table of distances, and its queries."""
    times = st.sampled_from([-(10**12), -5_000, -4_096, -7, 0, 1, 4_095, 4_097, 9_999, 10**9])
    entities = st.sampled_from("abc")
    rows = draw(
        st.lists(
            st.tuples(entities, st.sampled_from("pq"), entities, times, times),
            min_size=1,
            max_size=6,
        )
    )
    frame = pl.DataFrame(
        [(s, r, o, str(min(a, b)), str(max(a, b))) for s, r, o, a, b in rows],
        ["subject", "relation", "object", "start", "end"],
        orient="row",
    )
    graph = tilp.read(frame, unit="integer")
    return graph, all_queries(graph, walked=draw(st.booleans()))


@NO_WARNING
@settings(max_examples=60)
@given(far_apart(), st.booleans())
def test_distances_are_told_apart_however_long_they_are(shared, own_bounds):
    graph, queries = shared
    bounds = distance_bounds(graph) if own_bounds else np.array([1, 2, 10, 4_000, 9_000, 10**6])
    facts = CandidateHistory(fact_edges(graph), 2 * len(graph.relations), bounds)
    for found, plain in zip(
        listed(facts, graph, queries), plain_facts(graph, queries, bounds), strict=True
    ):
        expected = [group * facts.n_features + word for group in plain for word in plain[group]]
        assert sorted(found) == sorted(expected)


@NO_WARNING
@settings(max_examples=60)
@given(shared_queries(), st.booleans(), SEEDS)
def test_the_weights_of_words_are_added_kind_by_kind(shared, of_facts, seed):
    graph, queries = shared
    if of_facts:
        queries = all_queries(graph)
    facts = CandidateHistory(fact_edges(graph), 2 * len(graph.relations), BOUNDS)
    chance = np.random.default_rng(seed)
    n_heads, n_rows = 2 * len(graph.relations), 5
    row_of = chance.integers(-1, n_rows, (n_heads, facts.n_groups)).astype(np.int32)
    weight = chance.normal(size=(n_rows, facts.n_features))
    before = chance.normal(size=len(queries) * len(graph.entities))
    asked = listed_candidates(queries, *every_candidate(graph, queries))
    plain = list(plain_facts(graph, queries, BOUNDS))
    for kinds in ([True, True], [True, False], [False, True], [False, False]):
        score = before.copy()
        facts.add_scores(asked, row_of, weight, np.array(kinds), score)
        for place, words in enumerate(plain):
            rows = row_of[queries.directed_relation[place // len(graph.entities)]]
            expected = before[place] + sum(
                weight[rows[group], word]
                for group in words
                for word in words[group]
                if rows[group] >= 0 and kinds[group // n_heads]
            )
            assert score[place] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def graph_of(*rows, unit="year"):
    columns = ["subject", "relation", "object", "start", "end"]
    return tilp.read(pl.DataFrame(rows, columns, orient="row"), unit=unit)


def described(graph, query, candidate, bounds=BOUNDS):
    """What is said of a candidate: kind, relation and words."""
    facts = CandidateHistory(fact_edges(graph), 2 * len(graph.relations), bounds)
    subject, relation, start, end, own = query
    table = QueryTable(
        *(np.array([one], np.int32) for one in (graph.entities.find(subject), relation)),
        *(np.array([one], np.int64) for one in (start, end)),
        *(np.array([one], np.int32) for one in (own, -1)),
    )
    entity = np.array([graph.entities.find(candidate)], np.int32)
    _, words = facts.list_features(listed_candidates(table, np.array([0, 1]), entity))
    said = {}
    for one in words.tolist():
        group, word = divmod(one, facts.n_features)
        kind, relation = divmod(group, 2 * len(graph.relations))
        key = (HISTORY_KINDS[kind], graph.relations.label(relation))
        said.setdefault(key, []).append(facts.describe(word, graph.unit.value))
    return said


def test_what_is_said_of_a_fact_reads_well():
    graph = graph_of(
        ("Ada", "playsFor", "Rovers", "1980", "1985"),
        ("Ada", "playsFor", "United", "1986", "1990"),
        ("Ada", "bornIn", "Leeds", "1962", "1962"),
        ("Rovers", "knows", "Ada", "", "present"),
    )
    query = ("Rovers", 0, 1990, 1996, -1)
    assert described(graph, query, "Ada") == {
        ("other facts", "playsFor"): [
            "meets the query's time",
            "its start 3-4 years before the query's start",
            "its end at the query's start",
            "its start 8-12 years before the query's end",
        ],
        ("other facts", "bornIn"): [
            "before the query's time",
            "its start 13 years or more before the query's start",
            "its end 13 years or more before the query's start",
            "its start 13 years or more before the query's end",
        ],
        ("facts with the subject", "playsFor"): [
            "before the query's time",
            "its start 8-12 years before the query's start",
            "its end 5-7 years before the query's start",
            "its start 13 years or more before the query's end",
        ],
        ("facts with the subject", "knows⁻¹"): ["at a time that is not known"],
    }
    earlier = described(graph, ("Leeds", 0, 1978, 1979, -1), "Ada")
    assert earlier["other facts", "playsFor"] == [
        "after the query's time",
        "its start 2 years after the query's start",
        "its end 5-7 years after the query's start",
        "its start 1 year after the query's end",
    ]
    # Without its own fact nothing of the kind is left, and nothing is said.
    own = described(graph, ("Leeds", 2, 1962, 1962, 2), "Ada")
    assert {relation for _, relation in own} == {"playsFor", "knows⁻¹"}


def test_of_facts_as_near_the_one_that_starts_closest_then_the_first_is_taken():
    graph = graph_of(
        ("a", "p", "b", "1980", "2000"),
        ("a", "p", "c", "1988", "1999"),
        ("a", "p", "d", "1992", "1992"),
        ("a", "q", "b", "1995", "1995"),
        ("a", "q", "c", "1985", "1985"),
    )
    said = described(graph, ("d", 0, 1990, 1990, -1), "a")
    assert said["other facts", "p"][0] == "contains the query's time"
    assert said["other facts", "p"][1] == "its start 2 years before the query's start"
    assert said["other facts", "q"][1] == "its start 5-7 years after the query's start"
    assert said["facts with the subject", "p"][1] == "its start 2 years after the query's start"


def test_nothing_is_known_against_a_query_without_ends():
    graph = graph_of(("a", "p", "b", "1980", "2000"), ("a", "q", "b", "1985", "1985"))
    said = described(graph, ("b", 0, OPEN_START, OPEN_END, -1), "a")
    assert said == {
        ("facts with the subject", name): ["at a time that is not known"] for name in "pq"
    }


def test_an_open_end_is_not_unknown():
    graph = graph_of(("a", "p", "b", "1980", "2000"), ("a", "q", "b", "1990", "present"))
    said = described(graph, ("b", 0, 1990, OPEN_END, -1), "a")
    assert said["facts with the subject", "p"][0] == "overlaps the query's time"
    assert said["facts with the subject", "p"][2] == "its end 8-12 years after the query's start"
    assert said["facts with the subject", "q"][:2] == [
        "equals the query's time",
        "its start at the query's start",
    ]
    closed = described(graph, ("b", 0, 1995, 1996, -1), "a")
    assert closed["facts with the subject", "q"][0] == "contains the query's time"
    assert "13 years or more after" in closed["facts with the subject", "q"][2]


def test_every_word_is_described_in_its_own_way():
    graph = graph_of(("a", "p", "b", "1980", "2000"))
    facts = CandidateHistory(fact_edges(graph), 2, BOUNDS)
    said = [facts.describe(word, "day") for word in range(facts.n_features)]
    assert len(set(said)) == facts.n_features
    assert said[0] == "before the query's time" and said[6] == "equals the query's time"
    assert (
        facts.describe(facts.n_features - 1, "day")
        == "its start 13 days or more after the query's end"
    )


def test_bounds_of_distances_rise_and_cover_what_is_between_most_times():
    graph = tilp.datasets.world(0, 1_000).graph
    bounds = distance_bounds(graph)
    train = graph.span("train")
    times = np.concatenate(known_ends(graph.start[train], graph.end[train]))
    times = np.sort(times[np.abs(times) < FAR])
    most = times[int(0.01 * len(times)) : int(0.99 * len(times))]
    assert bounds[:10].tolist() == list(range(1, 11)) and (np.diff(bounds) > 0).all()
    assert most[-1] - most[0] <= bounds[-1] < 2 * (times[-1] - times[0])
    assert (bounds[11:] / bounds[10:-1] < 1.3).all()


@NO_WARNING
def test_bounds_where_there_is_no_time_at_all():
    graph = graph_of(("a", "p", "b", "", ""), ("a", "p", "c", "", "present"))
    assert distance_bounds(graph).tolist() == list(range(1, 11))


def test_every_feature_has_words_of_its_own():
    graph = graph_of(("a", "r", "b", "1990", "1990"))
    facts = CandidateHistory(fact_edges(graph), 2, BOUNDS)
    texts = [facts.describe(feature, "year") for feature in range(facts.n_features)]
    assert len(set(texts)) == len(texts)
    for one in (
        "meets the query's time",
        "at a time that is not known",
        "its end at the query's start",
        "its start 2 years before the query's end",
    ):
        assert one in texts
