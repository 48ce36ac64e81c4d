"""Known answers and the popularity prior, against plain loops."""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from oracles import (
    kinds_of_known,
    known_plainly,
    marks_of,
)
from strategies import (
    all_queries,
    answered_queries,
    graphs,
    query_at,
    shuffled,
)
from tilp.graph import QueryTable
from tilp.learning import KNOWN_KINDS, Mark, PopularityPrior, known_answers
from tilp.time import OPEN_END, Interval, known_ends

SEEDS = st.integers(0, 2**32 - 1)
NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")


@NO_WARNING
@settings(max_examples=40)
@given(answered_queries())
def test_known_answers_are_those_of_a_plain_reading(given_):
    graph, queries = given_
    known = known_answers(graph, queries)
    assert len(known.offsets) == len(queries) + 1 and known.offsets[-1] == len(known.entity)
    for number in range(len(queries)):
        subject, head = int(queries.subject[number]), int(queries.directed_relation[number])
        query = Interval(int(queries.start[number]), int(queries.end[number]))
        kinds = kinds_of_known(graph, subject, head, query, int(queries.fact[number]))
        answer = int(queries.answer[number])
        assert known.answer_kind[number] == kinds.get(answer, -1)
        expected = {entity: Mark.KNOWN + kind for entity, kind in kinds.items()}
        if answer >= 0:
            expected[answer] = Mark.ANSWER
        assert marks_of(known, number) == expected


def test_how_intervals_lie_to_the_query():
    dates = {
        "before": [("1980", "1989")],
        "after": [("2001", "2004"), ("2001", "present")],
        "meeting": [("1980", "1990"), ("2000", "2005"), ("2000", "present")],
        "touching": [("1985", "1995"), ("1990", "1990"), ("1990", "2000"), ("", "")],
    }
    rows = [
        (f"{kind}{place}", start, end)
        for kind, some in dates.items()
        for place, (start, end) in enumerate(some)
    ]
    both = [("several", "1980", "1990"), ("several", "1970", "1971"), ("several", "2005", "2006")]
    own = ("answer", "1990", "2000")
    other = ("answer", "2004", "2005")
    frame = pl.DataFrame(
        [("s", "r", *row) for row in (own, other, *rows, *both)],
        ["subject", "relation", "object", "start", "end"],
        orient="row",
    )
    graph = tilp.read(frame, unit="year")
    known = known_answers(graph, query_at(all_queries(graph), 0))
    marks = {graph.entities.label(entity): mark for entity, mark in marks_of(known, 0).items()}
    expected = {
        name: Mark.KNOWN + KNOWN_KINDS.index(name.rstrip("0123456789")) for name, *_ in rows
    }
    assert marks == {
        **expected,
        "several": Mark.KNOWN + KNOWN_KINDS.index("meeting"),
        "answer": Mark.ANSWER,
    }
    assert known.answer_kind.tolist() == [KNOWN_KINDS.index("after")]


@NO_WARNING
@settings(max_examples=40)
@given(answered_queries(), st.integers(0, 3))
def test_what_holds_at_an_instant_of_the_query_is_left_out(given_, seed):
    graph, queries = given_
    plain, known = known_answers(graph, queries), known_answers(graph, queries, instant_seed=seed)
    np.testing.assert_array_equal(known.offsets, plain.offsets)
    np.testing.assert_array_equal(known.entity, plain.entity)
    np.testing.assert_array_equal(known.answer_kind, plain.answer_kind)
    times = np.unique(known_ends(graph.start, graph.end)).tolist()
    for number in range(len(queries)):
        marks = marks_of(known, number)
        excluded = {entity for entity, mark in marks.items() if mark == Mark.EXCLUDED}
        for entity, mark in marks_of(plain, number).items():
            assert marks[entity] == mark or entity in excluded
        query = Interval(int(queries.start[number]), int(queries.end[number]))
        inside = [time for time in times if query.start <= time <= query.end]
        candidates = [
            (entity, interval)
            for entity, interval in known_plainly(
                graph,
                int(queries.subject[number]),
                int(queries.directed_relation[number]),
                queries.fact[number],
            )
            if entity != queries.answer[number]
        ]
        held = [
            {entity for entity, one in candidates if one.start <= instant <= one.end}
            for instant in inside or [query.start, query.end]
        ]
        assert excluded in held


@NO_WARNING
@settings(max_examples=40)
@given(answered_queries(), st.sampled_from([None, 0, 7]), SEEDS)
def test_known_answers_of_a_query_do_not_depend_on_those_beside_it(given_, instant_seed, seed):
    graph, queries = given_
    together = known_answers(graph, queries, instant_seed=instant_seed)
    order, mixed = shuffled(queries, seed)
    again = known_answers(graph, mixed, instant_seed=instant_seed)
    for place, number in enumerate(order):
        alone = known_answers(graph, query_at(queries, number), instant_seed=instant_seed)
        assert marks_of(together, number) == marks_of(again, place) == marks_of(alone, 0)
        assert together.answer_kind[number] == again.answer_kind[place] == alone.answer_kind[0]


def test_every_instant_has_its_chance_to_be_drawn():
    years = [str(year) for year in range(1990, 2000)]
    columns = ["subject", "relation", "object", "start", "end"]
    rows = [("s", "r", f"o{year}", year, year) for year in years]
    graph = tilp.read(
        pl.DataFrame([("s", "r", "answer", "1990", "1999"), *rows], columns, orient="row"),
        unit="year",
    )
    query = query_at(all_queries(graph), 0)
    drawn = Counter()
    for seed in range(400):
        known = known_answers(graph, query, instant_seed=seed)
        (excluded,) = known.entity[known.mark == Mark.EXCLUDED].tolist()
        drawn[graph.entities.label(excluded)] += 1
    assert len(drawn) == 10
    assert min(drawn.values()) >= 20 and max(drawn.values()) <= 65


def test_queries_that_nothing_is_known_of(facts):
    graph = tilp.read(facts)
    queries = all_queries(graph)
    none = known_answers(graph, queries[np.zeros(0, np.int64)], instant_seed=1)
    assert none.offsets.tolist() == [0] and len(none.entity) == len(none.answer_kind) == 0
    alone = queries[queries.subject == graph.entities.find("Cleo")].without_answers()
    nothing = known_answers(graph, alone, instant_seed=1)
    assert nothing.offsets.tolist() == [0, 0]
    assert nothing.answer_kind.tolist() == [-1]


@NO_WARNING
@settings(max_examples=40)
@given(graphs())
def test_the_prior_is_a_distribution_over_all_entities(graph):
    prior = PopularityPrior.from_graph(graph)
    assert prior.n_directed == 2 * len(graph.relations) == len(prior.offsets) - 1
    size = len(graph.entities)
    for head in range(prior.n_directed):
        part = slice(prior.offsets[head], prior.offsets[head + 1])
        asked_for = all_queries(graph)
        answers = Counter(asked_for.answer[asked_for.directed_relation == head].tolist())
        assert dict(zip(prior.entity[part].tolist(), prior.count[part].tolist(), strict=True)) == (
            dict(sorted(answers.items()))
        )
        listed = prior.probability[part]
        assert listed.sum() + prior.min_probability * (size - len(listed)) == pytest.approx(1.0)
        assert (listed > prior.min_probability).all()
        assert listed == pytest.approx(
            [0.95 * answers[one] / answers.total() + 0.05 / size for one in sorted(answers)]
        )


@NO_WARNING
@settings(max_examples=40)
@given(graphs())
def test_the_prior_of_entities_is_that_of_the_distribution(graph):
    prior = PopularityPrior.from_graph(graph)
    size = len(graph.entities)
    head, entity = (
        one.reshape(-1).astype(np.int32) for one in np.indices((prior.n_directed, size), np.int32)
    )
    latest = np.full(len(head), OPEN_END)
    found = prior.probabilities(head, entity, latest).reshape(prior.n_directed, size)
    assert found.sum(axis=1) == pytest.approx(np.ones(prior.n_directed))
    for number in range(prior.n_directed):
        part = slice(prior.offsets[number], prior.offsets[number + 1])
        expected = np.full(size, prior.min_probability)
        expected[prior.entity[part]] = prior.probability[part]
        assert found[number] == pytest.approx(expected)


@NO_WARNING
@settings(max_examples=40)
@given(graphs(), st.integers(1, 3))
def test_the_most_frequent_answers_are_listed_and_others_have_the_least_probability(graph, most):
    prior = replace(PopularityPrior.from_graph(graph), max_listed=most)
    offsets, rows = prior.listed
    for head in range(prior.n_directed):
        part = range(prior.offsets[head], prior.offsets[head + 1])
        expected = sorted(part, key=lambda row: (-prior.count[row], row))[:most]
        assert rows[offsets[head] : offsets[head + 1]].tolist() == sorted(expected)
        entity = prior.entity[part.start : part.stop]
        heads, latest = np.full(len(part), head, np.int32), np.full(len(part), OPEN_END)
        found = prior.probabilities(heads, entity, latest)
        for row, probability in zip(part, found.tolist(), strict=True):
            least = prior.min_probability
            assert probability == (prior.probability[row] if row in expected else least)


@NO_WARNING
@settings(max_examples=40)
@given(graphs(), st.booleans())
def test_the_prior_of_an_answer_leaves_out_the_own_fact(graph, walked):
    queries = all_queries(graph, walked)
    found = PopularityPrior.from_graph(graph).answer_probabilities(queries)
    size = len(graph.entities)
    for number in range(len(queries)):
        head, answer = queries.directed_relation[number], queries.answer[number]
        others = [
            int(queries.answer[one])
            for one in np.flatnonzero(queries.directed_relation == head)
            if not (walked and one == number)
        ]
        share = others.count(answer) / max(len(others), 1)
        assert found[number] == pytest.approx(0.95 * share + 0.05 / size)


def test_the_prior_of_answers_that_train_never_has(facts):
    graph = tilp.read(facts)
    prior = PopularityPrior.from_graph(graph)
    query = query_at(all_queries(graph, walked=False), 0)
    coach = np.full(1, graph.relations.find("coachOf"), np.int32)
    ada = np.full(1, graph.entities.find("Ada"), np.int32)
    assert prior.answer_probabilities(
        replace(query, directed_relation=coach, answer=ada)
    ) == pytest.approx(prior.min_probability)


@pytest.fixture
def untrained():
    """A graph without a training fact."""
    columns = ["subject", "relation", "object", "start", "end", "split"]
    rows = [("a", "r", "b", "1990", "1991", "test"), ("b", "r", "c", "1990", "1991", "test")]
    return tilp.read(pl.DataFrame(rows, columns, orient="row"), unit="year")


def test_without_training_facts_the_prior_is_the_same_for_all(untrained):
    queries = QueryTable.of_facts(untrained, np.arange(2), walked=False)
    prior = PopularityPrior.from_graph(untrained)
    assert prior.answer_probabilities(queries).tolist() == [prior.min_probability] * 4


def test_without_training_facts_nothing_is_known(untrained):
    queries = QueryTable.of_facts(untrained, np.arange(2), walked=False)
    known = known_answers(untrained, queries, instant_seed=1)
    assert known.offsets.tolist() == [0, 1, 2, 3, 4] and not known.mark.any()
