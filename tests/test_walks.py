"""Walks against brute force: equal rules, counts and statistics, on small and published graphs."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilp
from oracles import (
    counted,
    counts,
    edges_of,
    pick,
    query_parts,
    walk_by_matrices,
    walks_with_repeats,
)
from strategies import all_queries, graphs, shared_queries
from tilp.errors import TilpError
from tilp.graph import QueryTable
from tilp.types import Grain
from tilp.walks import Walker


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=40)
@given(graphs(), st.booleans(), st.booleans())
def test_counts_of_all_forms_equal_brute_force(graph, walked, distinct):
    walker = Walker(graph, grains=list(Grain), max_length=3, distinct=distinct)
    queries, edges = all_queries(graph, walked), edges_of(graph)
    for index in range(len(queries)):
        parts = query_parts(walker, queries, index)
        truth = counts(edges, *parts, 3, walker.grains, distinct)
        assert counted(walker, queries, index) == truth


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=10)
@given(graphs())
def test_counts_of_long_walks_equal_brute_force(graph):
    walker = Walker(graph, max_length=5)
    queries, edges = all_queries(graph), edges_of(graph)
    index = len(queries) // 2
    parts = query_parts(walker, queries, index)
    assert counted(walker, queries, index) == counts(edges, *parts, 5, walker.grains)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=30)
@given(graphs(), st.sampled_from(["maximum", "sum"]))
def test_ends_and_counts_equal_the_matrices_of_the_paper(graph, entry):
    """Eq. 5-6: Markovian constraints only, and facts may be used more than once."""
    walker = Walker(graph, grains=["query"], max_length=2)
    edges = edges_of(graph)
    queries = all_queries(graph, walked=False)
    for index in range(min(len(queries), 4)):
        subject, head, query, _ = query_parts(walker, queries, index)
        rules = {rule for rule, _ in counts(edges, subject, head, query, -1, 2, walker.grains)}
        for rule in rules:
            vector = walk_by_matrices(graph, edges, rule, subject, query, entry)
            plain = walks_with_repeats(edges, rule, subject, query)
            if entry == "sum":
                assert {e: int(n) for e, n in enumerate(vector) if n} == plain
            assert set(np.flatnonzero(vector)) == set(plain)
            # A walk that uses no fact twice is one of these, and the rest use some fact twice.
            found = counts(edges, subject, head, query, -1, 2, walker.grains)
            of_rule = {end: n for (other, end), n in found.items() if other == rule}
            assert all(plain[end] >= n for end, n in of_rule.items())


def support_of_rules(walker, rows, support):
    """The support of each rule; of one that is of several forms, it is the same in each."""
    of_form = [Counter() for _ in walker.grains]
    for row, count in zip(rows, support, strict=True):
        of_form[row[0]][walker.encoding.lift(row)] += int(count)
    rules = Counter()
    for counter in of_form:
        assert all(rules.get(rule, count) == count for rule, count in counter.items())
        rules |= counter
    return rules


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=30)
@given(graphs())
def test_finding_tallying_and_applying_agree_with_counting(graph):
    walker = Walker(graph, grains=list(Grain), max_length=3)
    queries = all_queries(graph)
    truth = [counted(walker, queries, index) for index in range(len(queries))]
    reached = Counter()
    for index, found in enumerate(truth):
        reached.update(rule for rule, end in found if end == queries.answer[index])
    assert support_of_rules(walker, *walker.find(queries)) == reached
    one_way = queries[np.arange(len(queries) // 2)]
    assert support_of_rules(walker, *walker.find_both_directions(one_way)) == reached
    rules = sorted(reached, key=str)
    assume(rules)
    compiled = walker.compile(rules)
    statistics, _ = walker.tally(queries, compiled)
    applied, _ = walker.apply(queries, compiled)
    by_kernel, by_oracle = defaultdict(dict), defaultdict(dict)
    for query, rule, end, count in applied.tolist():
        by_kernel[query, rules[rule]][end] = count
    for query, found in enumerate(truth):
        for (rule, end), count in found.items():
            by_oracle[query, rule][end] = count
    for row, rule in enumerate(rules):
        support = body_support = 0
        rate = 0.0
        for index in range(len(queries)):
            ends = by_oracle[index, rule]
            assert by_kernel[index, rule] == ends
            if ends:
                body_support += 1
                here = ends.get(int(queries.answer[index]), 0)
                support += here > 0
                rate += here / sum(ends.values())
        assert statistics[row].tolist() == pytest.approx([support, body_support, rate])


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=60)
@given(shared_queries(), st.sampled_from([1, 2, 3]))
def test_queries_that_share_counts_are_counted_as_if_alone(shared, max_length):
    """Equal intervals with different own facts, at any step of a walk, self-loops among them."""
    graph, queries = shared
    walker, edges = Walker(graph, max_length=max_length), edges_of(graph)
    truth = [
        counts(edges, *query_parts(walker, queries, index), max_length, walker.grains)
        for index in range(len(queries))
    ]
    records, _ = walker.count(queries)
    found = [Counter() for _ in truth]
    for query, form, length, relations, digits, code, end, count in records.tolist():
        rule = walker.encoding.lift(
            (form, length, int(queries.directed_relation[query]), relations, digits, code)
        )
        assert (rule, end) not in found[query] or found[query][rule, end] == count
        found[query][rule, end] = count
    assert found == truth
    rules = sorted({rule for counter in truth for rule, _ in counter}, key=str)[::2]
    assume(rules)
    compiled = walker.compile(rules)
    applied, _ = walker.apply(queries, compiled)
    by_query = [Counter() for _ in truth]
    for query, rule, end, count in applied.tolist():
        by_query[query][rules[rule], end] = count
    chosen = set(rules)
    assert by_query == [
        Counter({key: n for key, n in counter.items() if key[0] in chosen}) for counter in truth
    ]
    together, _ = walker.tally(queries, compiled)
    alone = [walker.tally(queries[np.array([n])], compiled)[0] for n in range(len(queries))]
    assert together == pytest.approx(sum(alone))
    reached = [
        sum(
            counter[rule, int(answer)] > 0
            for counter, answer in zip(truth, queries.answer, strict=True)
        )
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
    for index in cheap:
        parts = query_parts(walker, queries, index)
        assert counted(walker, queries, index) == counts(edges, *parts, 3, walker.grains)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
def test_sampled_counts_are_unbiased_and_marked(published):
    graph = tilp.read(published / "YAGO11k")
    exact = Walker(graph, grains=["static"], max_length=3)
    queries = QueryTable.of_facts(graph, np.arange(40), walked=True)
    subjects, cost = exact.cost(queries.subject)
    index = int(np.flatnonzero(queries.subject == subjects[np.argmax(cost)])[0])
    query = queries[np.array([index])]
    truth, weights = exact.count(query)
    assert (weights == 1).all()
    by_end = Counter()
    for *_, length, _, _, _, end, count in truth.tolist():
        by_end[end] += count * (length == 3)
    end, here = by_end.most_common(1)[0]
    total = sum(by_end.values())
    estimates = []
    for seed in range(300):
        sampled = Walker(graph, grains=["static"], max_length=3, limit=total // 5, seed=seed)
        records, weights = sampled.count(query)
        assert weights[0, 1] == 1 and weights[0, 3] > 1
        last = records[records[:, 2] == 3]
        there = last[last[:, 6] == end]
        estimates.append(weights[0, 3] * np.array([last[:, 7].sum(), there[:, 7].sum()]))
    spread = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - [total, here]) < 4 * spread).all()


def test_invalid_lengths_and_rules(facts):
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
