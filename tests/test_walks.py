"""Walks against brute force: equal rules, counts and statistics, on small and published graphs."""

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from oracles import (
    counts,
    edges_of,
    pick,
    query_parts,
    walk_by_matrices,
    walks_from,
    walks_with_repeats,
)
from tilp.errors import TilpError
from tilp.graph import QueryTable
from tilp.types import Grain
from tilp.walks import Walker

DATES = st.sampled_from(["", "1990", "1991", "1995", "2010", "present"])


@st.composite
def graphs(draw):
    """Small graphs with self-loops, multi-edges, a hub and missing dates."""
    entities = st.sampled_from(["hub", "hub", "a", "b", "c", "d"])
    rows = draw(
        st.lists(
            st.tuples(entities, st.sampled_from("pq"), entities, DATES, DATES),
            min_size=1,
            max_size=9,
        )
    )
    frame = pl.DataFrame(
        rows, ["subject", "relation", "object", "start", "end"], orient="row"
    ).with_columns(
        start=pl.when(pl.col("start") > pl.col("end")).then(pl.col("end")).otherwise("start")
    )
    return tilp.read(frame, unit="year")


def all_queries(graph, walked=True):
    return QueryTable.of_facts(graph, np.arange(len(graph.rows("train"))), walked=walked)


def counted(walker, queries, number):
    """What the walker counts for one query, as the oracle says it."""
    records, weights = walker.count(queries[np.array([number])])
    assert (weights == 1).all()
    head = int(queries.head[number])
    found = Counter()
    for _, form, length, relations, digits, code, end, count in records.tolist():
        rule = walker.encoding.lift((form, length, head, relations, digits, code))
        if (rule, end) in found:  # the same rule in two forms: the same walks
            assert found[rule, end] == count
        found[rule, end] = count
    return found


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=40)
@given(graphs(), st.booleans())
def test_counts_of_all_forms_equal_brute_force(graph, walked):
    walker = Walker(graph, grains=list(Grain), max_length=3)
    queries, edges = all_queries(graph, walked), edges_of(graph)
    for number in range(len(queries)):
        parts = query_parts(walker, queries, number)
        assert counted(walker, queries, number) == counts(edges, *parts, 3, walker.grains)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=10)
@given(graphs())
def test_counts_of_long_walks_equal_brute_force(graph):
    walker = Walker(graph, max_length=5)
    queries, edges = all_queries(graph), edges_of(graph)
    number = len(queries) // 2
    parts = query_parts(walker, queries, number)
    assert counted(walker, queries, number) == counts(edges, *parts, 5, walker.grains)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=30)
@given(graphs(), st.integers(1, 4))
def test_walks_between_two_entities_equal_brute_force(graph, max_length):
    walker, edges = Walker(graph, max_length=max_length), edges_of(graph)
    for row in graph.rows("train"):
        subject, answer = int(graph.subject[row]), int(graph.object[row])
        plain = Counter(
            tuple((edge[3], edge[0].inverse) for edge in walk)
            for walk in walks_from(edges, subject, max_length, row)
            if walk[-1][1] == answer
        )
        found, complete = walker.between(subject, answer, fact=row)
        assert complete
        assert Counter(tuple((s.fact, s.inverse) for s in walk) for walk in found) == plain
        some, complete = walker.between(subject, answer, fact=row, max_walks=1)
        assert some == found[:1] and complete == (len(found) <= 1)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=30)
@given(graphs(), st.sampled_from(["maximum", "sum"]))
def test_ends_and_counts_equal_the_matrices_of_the_paper(graph, entry):
    """Eq. 5-6: Markovian constraints only, and facts may be used more than once."""
    walker = Walker(graph, grains=["query"], max_length=2)
    edges = edges_of(graph)
    queries = all_queries(graph, walked=False)
    for number in range(min(len(queries), 4)):
        subject, head, query, _ = query_parts(walker, queries, number)
        rules = {rule for rule, _ in counts(edges, subject, head, query, -1, 2, walker.grains)}
        for rule in rules:
            vector = walk_by_matrices(graph, edges, rule, subject, query, entry)
            plain = walks_with_repeats(edges, rule, subject, query)
            if entry == "sum":
                assert {e: int(n) for e, n in enumerate(vector) if n} == plain
            assert set(np.flatnonzero(vector)) == set(plain)
            # A walk that uses no fact twice is one of these, and the rest use some fact twice.
            found = counts(edges, subject, head, query, -1, 2, walker.grains)
            kept = {end: n for (one, end), n in found.items() if one == rule}
            assert all(plain[end] >= n for end, n in kept.items())


def support_of_rules(walker, rows, support):
    """The support of each rule; of one that is of several forms, it is the same in each."""
    of_form = [Counter() for _ in walker.grains]
    for row, number in zip(rows, support, strict=True):
        of_form[row[0]][walker.encoding.lift(row)] += int(number)
    rules = Counter()
    for one in of_form:
        assert all(rules.get(rule, number) == number for rule, number in one.items())
        rules |= one
    return rules


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=30)
@given(graphs())
def test_finding_tallying_and_applying_agree_with_counting(graph):
    walker = Walker(graph, grains=list(Grain), max_length=3)
    queries = all_queries(graph)
    truth = [counted(walker, queries, number) for number in range(len(queries))]
    reached = Counter()
    for number, found in enumerate(truth):
        reached.update(rule for rule, end in found if end == queries.answer[number])
    assert support_of_rules(walker, *walker.find(queries)) == reached
    one_way = queries[np.arange(len(queries) // 2)]
    assert support_of_rules(walker, *walker.find_both_directions(one_way)) == reached
    rules = sorted(reached, key=str)
    if not rules:
        return
    compiled = walker.compile(rules)
    statistics, _ = walker.tally(queries, compiled)
    applied, _ = walker.apply(queries, compiled)
    mine, true = defaultdict(dict), defaultdict(dict)
    for query, place, end, count in applied.tolist():
        mine[query, rules[place]][end] = count
    for query, found in enumerate(truth):
        for (rule, end), count in found.items():
            true[query, rule][end] = count
    for place, rule in enumerate(rules):
        support = fired = 0
        rate = 0.0
        for number in range(len(queries)):
            ends = true[number, rule]
            assert mine[number, rule] == ends
            if ends:
                fired += 1
                here = ends.get(int(queries.answer[number]), 0)
                support += here > 0
                rate += here / sum(ends.values())
        assert statistics[place].tolist() == pytest.approx([support, fired, rate])


@st.composite
def shared_queries(draw):
    """A graph, and queries of few entities and intervals with any own fact, or without one."""
    graph = draw(graphs())
    some = st.integers(0, len(graph.entities) - 1)
    facts = st.integers(-1, len(graph.rows("train")) - 1)
    heads = st.integers(0, 2 * len(graph.relations) - 1)
    intervals = st.sampled_from([(1990, 1991), (1995, 1995), (1990, 2010)])
    asked = draw(st.lists(st.tuples(some, heads, intervals, facts, some), min_size=2, max_size=12))
    subject, head, interval, fact, answer = zip(*asked, strict=True)
    start, end = np.array(interval, np.int64).T
    numbers = (np.array(column, np.int32) for column in (subject, head, fact, answer))
    subject, head, fact, answer = numbers
    return graph, QueryTable(subject, head, start.copy(), end.copy(), fact, answer)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=60)
@given(shared_queries(), st.sampled_from([1, 2, 3]))
def test_queries_that_share_counts_are_answered_as_if_alone(shared, max_length):
    """Equal intervals with different own facts, in any place of a walk, self-loops among them."""
    graph, queries = shared
    walker, edges = Walker(graph, max_length=max_length), edges_of(graph)
    truth = [
        counts(edges, *query_parts(walker, queries, number), max_length, walker.grains)
        for number in range(len(queries))
    ]
    records, _ = walker.count(queries)
    found = [Counter() for _ in truth]
    for query, form, length, relations, digits, code, end, count in records.tolist():
        rule = walker.encoding.lift(
            (form, length, int(queries.head[query]), relations, digits, code)
        )
        assert (rule, end) not in found[query] or found[query][rule, end] == count
        found[query][rule, end] = count
    assert found == truth
    rules = sorted({rule for one in truth for rule, _ in one}, key=str)[::2]
    if not rules:
        return
    compiled = walker.compile(rules)
    applied, _ = walker.apply(queries, compiled)
    by_query = [Counter() for _ in truth]
    for query, rule, end, count in applied.tolist():
        by_query[query][rules[rule], end] = count
    kept = set(rules)
    assert by_query == [
        Counter({key: n for key, n in one.items() if key[0] in kept}) for one in truth
    ]
    together, _ = walker.tally(queries, compiled)
    alone = [walker.tally(queries[np.array([n])], compiled)[0] for n in range(len(queries))]
    assert together == pytest.approx(sum(alone))
    reached = [
        sum(one[rule, int(answer)] > 0 for one, answer in zip(truth, queries.answer, strict=True))
        for rule in rules
    ]
    assert together[:, 0].tolist() == reached


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=30)
@given(graphs(), st.integers(0, 5))
def test_past_the_limit_some_of_the_rules_are_found(graph, seed):
    queries = all_queries(graph)
    all_of_them = Walker(graph, max_length=3)
    few = Walker(graph, max_length=3, limit=20, seed=seed)
    known = support_of_rules(all_of_them, *all_of_them.find(queries))
    rows, support = few.find(queries)
    assert support_of_rules(few, rows, support) <= known
    # At most two walks of each length in each of two forms.
    assert support.sum() <= len(queries) * 2 * 3 * 2


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@pytest.mark.parametrize("name", ["WIKIDATA12k", "YAGO11k", "ICEWS14"])
def test_counts_equal_brute_force_on_published_sets(published, name):
    graph = tilp.read(published / name)
    walker, edges = Walker(graph, max_length=3), edges_of(graph)
    queries = QueryTable.of_facts(graph, pick(400, len(graph.rows("train"))), walked=True)
    subjects, cost = walker.cost(queries.subject)
    # Brute force takes some 50 microseconds a walk; benchmarks/walks.py compares more of them.
    cheap = np.flatnonzero(np.isin(queries.subject, subjects[cost < 20_000]))[:40]
    assert len(cheap) >= 10
    for number in cheap:
        parts = query_parts(walker, queries, number)
        assert counted(walker, queries, number) == counts(edges, *parts, 3, walker.grains)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
def test_sampled_counts_are_unbiased_and_marked(published):
    graph = tilp.read(published / "YAGO11k")
    exact = Walker(graph, grains=["static"], max_length=3)
    queries = QueryTable.of_facts(graph, np.arange(40), walked=True)
    subjects, cost = exact.cost(queries.subject)
    number = int(np.flatnonzero(queries.subject == subjects[np.argmax(cost)])[0])
    one = queries[np.array([number])]
    truth, weights = exact.count(one)
    assert (weights == 1).all()
    by_end = Counter()
    for *_, length, _, _, _, end, count in truth.tolist():
        by_end[end] += count * (length == 3)
    end, here = by_end.most_common(1)[0]
    total = sum(by_end.values())
    estimates = []
    for seed in range(300):
        sampled = Walker(graph, grains=["static"], max_length=3, limit=total // 5, seed=seed)
        records, weights = sampled.count(one)
        assert weights[0, 1] == 1 and weights[0, 3] > 1
        last = records[records[:, 2] == 3]
        there = last[last[:, 6] == end]
        estimates.append(weights[0, 3] * np.array([last[:, 7].sum(), there[:, 7].sum()]))
    spread = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - [total, here]) < 4 * spread).all()


def test_lengths_and_rules_that_cannot_be(facts):
    graph = tilp.read(facts)
    with pytest.raises(TilpError, match="it can be 1 to 5"):
        Walker(graph, max_length=6)
    walker = Walker(graph, max_length=1)
    with pytest.raises(TilpError, match="longer than 1"):
        walker.compile(
            [tilp.rules.parse_rule("playsFor(E1,E3,I3) ← playsFor(E1,E2,I1) ∧ playsFor(E2,E3,I2)")]
        )
    with pytest.raises(TilpError, match="none of the grains pairs, gap"):
        walker.compile([tilp.rules.parse_rule("playsFor(E1,E2,I2) ← playsFor(E1,E2,I1)")])
    with pytest.raises(TilpError, match="no relation is named 'plays'"):
        walker.compile([tilp.rules.parse_rule("plays(E1,E2,I2) ← plays(E1,E2,I1) ∧ before(I1,I2)")])
