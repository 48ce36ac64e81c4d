"""Training queries and examples, against brute force."""

from collections import Counter
from dataclasses import fields

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilp
from oracles import (
    counts,
    edges_of,
    marks_of,
    query_parts,
    same_arrays,
)
from strategies import (
    all_queries,
    answered_queries,
    graphs,
    query_at,
    random_examples,
    shared_queries,
    shuffled,
)
from tilp.graph import QueryTable
from tilp.learning import KNOWN_KINDS, Mark, known_answers
from tilp.learning.examples import make_training_examples, training_queries
from tilp.parallel import Workers
from tilp.walks import Walker

SEEDS = st.integers(0, 2**32 - 1)
NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")


QUERY_COLUMNS = [field.name for field in fields(QueryTable)]


def rows_of(queries):
    columns = (getattr(queries, name).tolist() for name in QUERY_COLUMNS)
    return list(zip(*columns, strict=True))


@NO_WARNING
@settings(max_examples=30)
@given(graphs())
def test_queries_to_train_on_leave_two_edges_at_both_ends(graph):
    edges = edges_of(graph)

    def others(entity, fact):
        return sum(edge[3] != fact for edge in edges.get(entity, ()))

    def parts(queries):
        columns = (queries.fact, queries.subject, queries.directed_relation, queries.answer)
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    looped = set(np.flatnonzero(graph.subject == graph.object).tolist())
    wanted = [
        one
        for one in parts(all_queries(graph))
        if others(one[1], one[0]) >= 2 and others(one[3], one[0]) >= 2
    ]
    assume(wanted)
    found = parts(training_queries(graph, np.arange(len(graph.rows("train")))))
    assert [one for one in found if one[0] not in looped] == [
        one for one in wanted if one[0] not in looped
    ]
    assert {one for one in wanted if one[0] in looped} <= set(found)


def test_where_no_query_leaves_enough_edges_all_are_learned_from():
    rows = [("a", "r", "b"), ("a", "s", "b"), ("c", "r", "d"), ("c", "s", "d")]
    graph = tilp.read(pl.DataFrame(rows, ["subject", "relation", "object"], orient="row"))
    assert len(training_queries(graph, np.arange(4))) == 8


def plain_examples(walker, edges, queries, number, known, rules):
    """Walks of each rule that fired: others, at the answer, left out, and at known by kind."""
    marks = marks_of(known, number)
    found = {}
    truth = counts(edges, *query_parts(walker, queries, number), walker.max_length, walker.grains)
    for (rule, end), walks in truth.items():
        if rule in rules:
            row = found.setdefault(rules[rule], np.zeros(2 + Mark.EXCLUDED, int))
            row[1 + marks.get(end, -1)] += walks
    return {rule: row.tolist() for rule, row in found.items() if row.sum() > row[-1]}


@NO_WARNING
@settings(max_examples=40)
@given(answered_queries(), st.sampled_from([1, 2, 3]), st.integers(0, 2), st.booleans())
def test_examples_equal_brute_force(given_, max_length, seed, own_only):
    graph, queries = given_
    if own_only:
        queries = all_queries(graph)
    walker, edges = Walker(graph, max_length=max_length), edges_of(graph)
    reached = Counter()
    for number in range(len(queries)):
        parts = query_parts(walker, queries, number)
        reached.update(rule for rule, _ in counts(edges, *parts, max_length, walker.grains))
    rules = sorted(reached, key=str)[::2]
    assume(rules)
    examples = make_training_examples(walker, queries, walker.compile(rules), Workers(), seed=seed)
    assert sorted(rows_of(examples.queries)) == sorted(rows_of(queries))
    known = known_answers(graph, examples.queries, instant_seed=seed)
    np.testing.assert_array_equal(examples.answer_kind, known.answer_kind)
    places = {rule: place for place, rule in enumerate(rules)}
    assert examples.offsets[0] == 0 and examples.offsets[-1] == len(examples)
    for number in range(len(queries)):
        part = slice(examples.offsets[number], examples.offsets[number + 1])
        rows = np.column_stack(
            [
                examples.at_others[part],
                examples.at_answer[part],
                examples.at_known[part],
                examples.excluded[part],
            ]
        )
        found = dict(zip(examples.rule[part].tolist(), rows.astype(int).tolist(), strict=True))
        assert len(found) == len(rows)
        assert found == plain_examples(walker, edges, examples.queries, number, known, places)


def test_rules_whose_walks_all_end_in_what_is_left_out_did_not_fire():
    columns = ["subject", "relation", "object", "start", "end"]
    rows = [
        ("s", "r", "answer", "1990", "1990"),
        ("s", "r", "other", "1990", "1990"),
        ("s", "q", "other", "1980", "1980"),
        ("s", "p", "other", "1980", "1980"),
        ("s", "p", "third", "1980", "1980"),
    ]
    graph = tilp.read(pl.DataFrame(rows, columns, orient="row"), unit="year")
    walker = Walker(graph, grains=["static"], max_length=1)
    texts = ["r(E1,E2,I2) ← q(E1,E2,I1)", "r(E1,E2,I2) ← p(E1,E2,I1)"]
    rules = walker.compile([tilp.rules.parse_rule(text) for text in texts])
    examples = make_training_examples(walker, query_at(all_queries(graph), 0), rules, Workers())
    assert examples.rule.tolist() == [1]
    assert (examples.excluded.tolist(), examples.at_others.tolist()) == ([1.0], [1.0])
    assert examples.at_answer.tolist() == [0.0] and not examples.at_known.any()


def test_examples_of_no_queries(facts):
    walker = Walker(tilp.read(facts), grains=["static"])
    rules = walker.compile([tilp.rules.parse_rule("playsFor(E1,E2,I2) ← coachOf(E1,E2,I1)")])
    none = all_queries(walker.graph)[np.zeros(0, np.int64)]
    examples = make_training_examples(walker, none, rules, Workers())
    assert len(examples) == len(examples.queries) == 0
    assert examples.offsets.tolist() == [0] and examples.at_known.shape == (0, len(KNOWN_KINDS))


@st.composite
def marked_queries(draw):
    """A graph, queries, and marks of some candidates of each query, drawn by lot."""
    graph, queries = draw(shared_queries())
    marks = st.dictionaries(
        st.integers(0, len(graph.entities) - 1), st.integers(0, Mark.EXCLUDED), max_size=4
    )
    return graph, queries, [draw(marks) for _ in range(len(queries))]


def marks_as_columns(marks):
    return (
        np.cumsum([0, *map(len, marks)]),
        np.array([entity for one in marks for entity in one], np.int32),
        np.array([mark for one in marks for mark in one.values()], np.int8),
    )


@NO_WARNING
@settings(max_examples=40)
@given(marked_queries(), st.sampled_from([1, 2, 3]), SEEDS)
def test_walks_are_counted_by_mark_whatever_the_order_of_queries(given_, max_length, seed):
    graph, queries, marks = given_
    walker, edges = Walker(graph, max_length=max_length), edges_of(graph)
    truth = [
        counts(edges, *query_parts(walker, queries, number), max_length, walker.grains)
        for number in range(len(queries))
    ]
    rules = sorted({rule for one in truth for rule, _ in one}, key=str)[::2]
    assume(rules)
    expected = {}
    for number, one in enumerate(truth):
        for (rule, end), walks in one.items():
            if rule in rules:
                row = expected.setdefault((number, rules.index(rule)), [0] * (2 + Mark.EXCLUDED))
                row[0] += walks
                if end in marks[number]:
                    row[1 + marks[number][end]] += walks
    compiled = walker.compile(rules)
    order, mixed = shuffled(queries, seed)
    for numbers, table in ((np.arange(len(queries)), queries), (order, mixed)):
        columns = marks_as_columns([marks[number] for number in numbers])
        rows = walker.count_marked(table, compiled, *columns).tolist()
        found = {(int(numbers[query]), rule): row for query, rule, *row in rows}
        assert len(found) == len(rows)
        assert found == expected


@settings(max_examples=40)
@given(SEEDS, st.integers(0, 8))
def test_examples_of_some_queries_are_those_of_each(seed, n_queries):
    facts = pl.DataFrame({"subject": ["a", "b"], "relation": ["r", "q"], "object": ["b", "c"]})
    examples = random_examples(tilp.read(facts), 5, n_queries, seed)
    wanted = np.random.default_rng(seed).random(n_queries) < 0.5
    some = examples.select(wanted)
    assert same_arrays(some.queries, examples.queries[wanted])
    assert some.answer_kind.tolist() == examples.answer_kind[wanted].tolist()
    assert len(some.offsets) == wanted.sum() + 1 and some.offsets[-1] == len(some)
    for place, number in enumerate(np.flatnonzero(wanted)):
        here = slice(some.offsets[place], some.offsets[place + 1])
        there = slice(examples.offsets[number], examples.offsets[number + 1])
        for name in ("rule", "at_answer", "excluded", "at_known", "at_others"):
            assert getattr(some, name)[here].tolist() == getattr(examples, name)[there].tolist()
