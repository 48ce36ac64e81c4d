"""Random walks against powers of a dense matrix, and their chains against all walks."""

from dataclasses import replace
from math import exp, log1p

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from strategies import DATES, all_queries, every_candidate, shared_queries
from tilp._kernels.random_walks import _DENSE
from tilp.features.candidate_history import fact_edges, listed_candidates
from tilp.features.random_walks import MIN_PROBABILITY, RandomWalks, WalkChains, time_scale
from tilp.graph import QueryTable
from tilp.time import FAR, UNKNOWN

NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
SEEDS = st.integers(0, 2**32 - 1)
SCALES = st.sampled_from([0.4, 2.0, 30.0])
PADDING = 40
"""Facts of other entities, so many that a walk never reads a large part of all."""


def sources(edges):
    return np.repeat(np.arange(len(edges.offsets) - 1), np.diff(edges.offsets)).tolist()


def plain_steps(edges, start, end, own, scale):
    """For each edge that may be taken: source, target, chance; by its place."""
    start, end = (min(max(one, -FAR), FAR) for one in (start, end))
    rows = list(zip(sources(edges), *(one.tolist() for one in edges[2:6]), strict=True))
    weights = {}
    for place, (source, target, fact, low, high) in enumerate(rows):
        if fact != own or own < 0:
            gap = max(start - high, low - end, 0)
            weights[place] = (source, target, exp(-gap / scale))
    totals = {}
    for source, _, weight in weights.values():
        totals[source] = totals.get(source, 0.0) + weight
    return {
        place: (source, target, weight / totals[source])
        for place, (source, target, weight) in weights.items()
        if totals[source] > 0
    }


def plain_chances(edges, queries, number, walks):
    """The chances of all entities after more than the near steps."""
    parts = (int(one[number]) for one in (queries.start, queries.end, queries.fact))
    size = len(edges.offsets) - 1
    matrix = np.zeros((size, size))
    for source, target, chance in plain_steps(edges, *parts, walks.scale).values():
        matrix[source, target] += chance
    here = np.eye(size)[queries.subject[number]]
    reached = np.zeros(size)
    for step in range(walks.max_length):
        here = here @ matrix
        if step >= walks.rule_length:
            reached += here
    return reached


def plain_columns(edges, queries, walks):
    """What is listed for all entities of each query."""
    chances = [plain_chances(edges, queries, one, walks) for one in range(len(queries))]
    return np.log1p(np.concatenate(chances) / MIN_PROBABILITY)


@st.composite
def walked_graphs(draw):
    """A graph, with other entities' facts or without, and queries of few entities and intervals.

    The own fact of a query is one of its subject's.
    """
    graph, queries = draw(shared_queries())
    ends = np.stack([graph.subject, graph.object])[:, queries.fact]
    own = np.where((ends == queries.subject).any(axis=0), queries.fact, np.int32(-1))
    queries = replace(queries, fact=own)
    if draw(st.booleans()):
        queries = all_queries(graph, walked=draw(st.booleans()))
    padded = draw(st.booleans())
    if padded:
        rows = [(f"x{n}", "p", f"y{n}", "1990", "1991") for n in range(PADDING)]
        columns = ["subject", "relation", "object", "start", "end"]
        facts = graph.frame("train").select(columns).with_columns(pl.col("start", "end").cast(str))
        more = pl.DataFrame(rows, columns, orient="row")
        graph = tilp.read(pl.concat([facts.fill_null(""), more]), unit="year")
    return graph, queries, padded


def soft_walks(graph, scale, near=1, far=3, limit=10**6):
    return RandomWalks(fact_edges(graph), scale, near, far, limit)


@NO_WARNING
@settings(max_examples=80)
@given(walked_graphs(), SCALES, st.integers(0, 3), st.integers(0, 3))
def test_chances_are_those_of_powers_of_a_matrix(shared, scale, near, more):
    graph, queries, padded = shared
    walks = soft_walks(graph, scale, near, near + more)
    found = walks.log_scores(listed_candidates(queries, *every_candidate(graph, queries)))
    plain = plain_columns(walks.edges, queries, walks)
    np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-9)
    # Padded graphs are walked from entity to entity, others soon by all edges at once.
    n_edges = len(walks.edges.target)
    assert not padded or (n_edges - 2 * PADDING) * _DENSE <= n_edges


@NO_WARNING
@settings(max_examples=40)
@given(walked_graphs(), SCALES, st.integers(1, 4), st.sampled_from([3, 10**6]))
def test_walks_that_were_used_before_score_as_new_ones(shared, scale, far, limit):
    graph, queries, _ = shared
    used = soft_walks(graph, scale, 0, far, limit)
    every = listed_candidates(queries, *every_candidate(graph, queries))
    own = listed_candidates(queries, np.arange(len(queries) + 1), queries.answer)
    for listed in (every, own, every, own):
        new = soft_walks(graph, scale, 0, far, limit)
        assert used.log_scores(listed).tolist() == new.log_scores(listed).tolist()
        assert len(used._workspaces) == 1


def test_both_ways_to_make_a_step_are_taken_and_agree():
    """A chain in a large graph: the first steps read few edges, the last ones nearly all."""
    rows = [(f"c{n}", "p", f"c{n + 1}", f"{1990 + n}", f"{1992 + n}") for n in range(4)]
    rows += [("c4", "q", f"leaf{n}", f"{1980 + n}", f"{1985 + n}") for n in range(30)]
    graph = graph_of(*rows)
    entity = graph.entities.find("c0")
    edges = fact_edges(graph)
    degrees = np.diff(edges.offsets)
    hub = degrees[graph.entities.find("c4")]
    assert (degrees[entity] + 3) * _DENSE <= len(edges.target) < hub * _DENSE
    queries = query(graph, "c0", 1993, 1996)
    for far in range(1, 8):
        walks = RandomWalks(edges, 5.0, 0, far, 10**6)
        found = walks.log_scores(listed_candidates(queries, *every_candidate(graph, queries)))
        plain = plain_columns(edges, queries, walks)
        np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-12)
        # A small limit forbids the step to all; from the chain nothing is cut off by it.
        few = RandomWalks(edges, 5.0, 0, far, int(hub) + 3 - far % 2)
        assert few.limit * _DENSE > len(edges.target)
        np.testing.assert_allclose(
            few.log_scores(listed_candidates(queries, *every_candidate(graph, queries))),
            plain,
            rtol=1e-9,
            atol=1e-12,
        )


def graph_of(*rows):
    columns = ["subject", "relation", "object", "start", "end"]
    return tilp.read(pl.DataFrame(rows, columns, orient="row"), unit="year")


def query(graph, subject, start, end, own=-1):
    return QueryTable(
        *(np.array([one], np.int32) for one in (graph.entities.find(subject), 0)),
        *(np.array([one], np.int64) for one in (start, end)),
        *(np.array([one], np.int32) for one in (own, -1)),
    )


def test_past_the_limit_the_walker_is_where_it_is_likeliest():
    rows = [("s", "p", f"m{n}", f"{1990 + n}", f"{1990 + n}") for n in range(4)]
    rows += [(f"m{n}", "q", f"end{n}{k}", "1990", "1990") for n in range(4) for k in range(3)]
    rows += [(f"x{n}", "p", f"y{n}", "1990", "1990") for n in range(60)]
    graph = graph_of(*rows)
    queries = query(graph, "s", 1990, 1990)

    def reached(limit):
        walks = soft_walks(graph, 2.0, 1, 2, limit)
        assert len(walks.edges.target) > limit * _DENSE
        found = walks.log_scores(listed_candidates(queries, *every_candidate(graph, queries)))
        return {graph.entities.label(int(one)): found[one] for one in np.flatnonzero(found)}

    # s has four edges, m0 to m3 one to s and three more; back to s is as far in time as there.
    weights = [exp(-n / 2.0) for n in range(4)]
    ends = {
        f"end{n}{k}": log1p(weight / sum(weights) / (3 + weight) / MIN_PROBABILITY)
        for n, weight in enumerate(weights)
        for k in range(3)
    }
    for limit, count in ((16, 4), (15, 3), (12, 3), (11, 2), (8, 2), (7, 1), (4, 1), (1, 1)):
        found = reached(limit)
        assert found.pop("s") > 0
        assert found == pytest.approx({name: ends[name] for name in ends if int(name[3]) < count})


@NO_WARNING
@settings(max_examples=40)
@given(walked_graphs(), SCALES, st.integers(1, 12))
def test_a_limit_never_makes_an_end_likelier(shared, scale, limit):
    graph, queries, _ = shared
    asked = listed_candidates(queries, *every_candidate(graph, queries))
    every = soft_walks(graph, scale).log_scores(asked)
    some = soft_walks(graph, scale, limit=limit).log_scores(asked)
    assert (some <= every * (1 + 1e-9) + 1e-9).all()


@NO_WARNING
@settings(max_examples=50)
@given(walked_graphs(), SCALES, SEEDS)
def test_what_is_listed_is_added_by_its_weights(shared, scale, seed):
    graph, queries, _ = shared
    chance = np.random.default_rng(seed)
    walks = soft_walks(graph, scale)
    begin, candidate = every_candidate(graph, queries)
    asked = listed_candidates(queries, begin, candidate)
    listed = walks.log_scores(asked)
    weight = chance.normal(size=len(queries)) * chance.integers(0, 2, len(queries))
    before = chance.normal(size=len(candidate))
    score = before.copy()
    walks.add_scores(asked, weight, score)
    of_row = np.repeat(weight, np.diff(begin))
    # A chance that is a thousandth of the least that matters may count for nothing.
    allowed = 1e-3 * np.abs(of_row) + 1e-9
    assert (np.abs(score - before - of_row * listed) <= allowed).all()
    nothing = of_row == 0
    assert (score[nothing] == before[nothing]).all()


@NO_WARNING
@settings(max_examples=40)
@given(walked_graphs(), SEEDS)
def test_chances_of_a_query_do_not_depend_on_those_beside_it(shared, seed):
    graph, queries, _ = shared
    walks = soft_walks(graph, 2.0)
    together = walks.log_scores(listed_candidates(queries, *every_candidate(graph, queries)))
    size = len(graph.entities)
    order = np.random.default_rng(seed).permutation(len(queries))
    mixed = walks.log_scores(listed_candidates(queries[order], *every_candidate(graph, queries)))
    for place, number in enumerate(order):
        one = queries[np.array([number])]
        alone = walks.log_scores(listed_candidates(one, *every_candidate(graph, one)))
        expected = together[number * size : (number + 1) * size]
        np.testing.assert_array_equal(mixed[place * size : (place + 1) * size], expected)
        np.testing.assert_array_equal(alone, expected)


def test_the_own_fact_leaves_its_ends_with_what_else_they_have():
    """However little that weighs beside the own fact."""
    graph = graph_of(
        ("a", "p", "b", "2000", "2000"),
        ("a", "p", "c", "1900", "1900"),
        ("b", "p", "d", "1800", "1800"),
        ("c", "p", "b", "2000", "2000"),
    )
    queries = query(graph, "a", 2000, 2000, own=0)
    walks = soft_walks(graph, 2.0, 0, 3)
    found = walks.log_scores(listed_candidates(queries, *every_candidate(graph, queries)))
    plain = plain_columns(walks.edges, queries, walks)
    np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-12)
    once = soft_walks(graph, 2.0, 0, 1).log_scores(
        listed_candidates(queries, *every_candidate(graph, queries))
    )
    assert once[graph.entities.find("c")] == pytest.approx(log1p(1 / MIN_PROBABILITY))
    chains = WalkChains(walks, queries, graph.entities.find("c"))
    assert len(chains.shortest_walk()) == 1 and chains.total() == pytest.approx(
        MIN_PROBABILITY * np.expm1(found[graph.entities.find("c")])
    )


# --- chains of relations -------------------------------------------------------------------


def all_walks(steps, subject, length):
    """Every walk of a length: its edges, where it ends, and its chance; facts may come again."""
    walks = [((), subject, 1.0)]
    for _ in range(length):
        walks = [
            ((*edges, place), target, chance * share)
            for edges, here, chance in walks
            for place, (source, target, share) in steps.items()
            if source == here and share > 0
        ]
    return walks


def has_no_circle(steps, walk):
    visited = [steps[walk[0]][0], *(steps[place][1] for place in walk)]
    return len(set(visited)) == len(visited)


@NO_WARNING
@settings(max_examples=30)
@given(shared_queries(), SCALES, st.booleans())
def test_walks_are_split_by_their_chains(shared, scale, of_facts):
    graph, queries = shared
    if of_facts:
        queries = all_queries(graph)
    walks = soft_walks(graph, scale, 1, 3)
    relation = walks.edges.relation.tolist()
    for number in range(min(len(queries), 3)):
        one = queries[np.array([number])]
        parts = (int(one[0]) for one in (one.start, one.end, one.fact))
        steps = plain_steps(walks.edges, *parts, scale)
        subject = int(one.subject[0])
        every = {length: all_walks(steps, subject, length) for length in (1, 2, 3)}
        for candidate in range(len(graph.entities)):
            arriving = [
                (walk, chance)
                for length in (1, 2, 3)
                for walk, end, chance in every[length]
                if end == candidate
            ]
            plain, simple = {}, {}
            for walk, chance in arriving:
                chain = tuple(relation[place] for place in walk)
                if len(walk) > 1:
                    plain[chain] = plain.get(chain, 0.0) + chance
                if has_no_circle(steps, walk):
                    simple.setdefault(chain, []).append(chance)
            found = WalkChains(walks, one, candidate)
            total = sum(plain.values())
            assert found.total() == pytest.approx(total)
            likely = found.likely(0.2)
            assert list(likely.values()) == sorted(likely.values(), reverse=True)
            for chain, chance in plain.items():
                assert found.share(chain) == pytest.approx(chance / total)
                if abs(chance / total - 0.2) > 1e-9:
                    assert (chain in likely) == (chance / total > 0.2)
                if chain in likely:
                    assert likely[chain] == pytest.approx(chance)
                shown = [walk.tolist() for walk in found.walks(chain, 2)]
                assert all(has_no_circle(steps, walk) for walk in shown)
                assert all(tuple(relation[place] for place in walk) == chain for walk in shown)
                chances = [np.prod([steps[place][2] for place in walk]) for walk in shown]
                expected = sorted(simple.get(chain, []), reverse=True)[:2]
                assert chances == pytest.approx(expected)
            assert set(likely) <= set(plain) and found.share((relation[0],) * 3) <= 1 + 1e-9
            shortest = found.shortest_walk().tolist()
            lengths = [len(walk) for walk, _ in arriving]
            assert len(shortest) == min(lengths, default=0)
            if shortest and candidate != subject:
                assert has_no_circle(steps, shortest) and steps[shortest[-1]][1] == candidate


@NO_WARNING
@pytest.mark.parametrize("times", [("", "present"), ("1990", "present"), ("", "")])
def test_chains_of_a_query_without_ends(times):
    graph = graph_of(
        ("a", "p", "b", *times), ("a", "q", "c", "1990", "1990"), ("b", "q", "c", "", "")
    )
    queries = all_queries(graph, walked=False)[np.array([0])]
    walks = soft_walks(graph, 5.0, 0, 1)
    parts = (int(one[0]) for one in (queries.start, queries.end, queries.fact))
    steps = plain_steps(walks.edges, *parts, 5.0)
    for source, target, chance in steps.values():
        if source == int(queries.subject[0]):
            found = WalkChains(walks, queries, target)
            assert found.total() == pytest.approx(chance)
            assert sum(found.likely().values()) == pytest.approx(chance)


# --- the scale of time -----------------------------------------------------------------------


def test_the_scale_is_how_long_entities_are_there():
    graph = graph_of(
        ("a", "p", "b", "1900", "1990"),
        ("a", "p", "b", "1910", "1991"),
        ("a", "q", "c", "1930", ""),
        ("c", "q", "d", "", "1935"),
        ("e", "q", "f", "1850", "1850"),
        ("e", "q", "f", "1850", "1870"),
    )
    # From first to last start: a 30, b 10, c 5 (its end is all that is known); e and f none.
    assert time_scale(graph) == 10.0


@NO_WARNING
@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), DATES, DATES),
        min_size=1,
        max_size=8,
    )
)
def test_the_scale_equals_a_plain_count(rows):
    graph = tilp.read(
        pl.DataFrame(
            [(s, "p", o, *((b, a) if a > b and b else (a, b))) for s, o, a, b in rows],
            ["subject", "relation", "object", "start", "end"],
            orient="row",
        ),
        unit="year",
    )
    starts = {}
    for row in graph.rows("train"):
        times = [t for t in (int(graph.start[row]), int(graph.end[row])) if t != UNKNOWN]
        if times and abs(times[0]) < FAR:
            for entity in (int(graph.subject[row]), int(graph.object[row])):
                starts.setdefault(entity, []).append(times[0])
    spans = [max(one) - min(one) for one in starts.values() if max(one) > min(one)]
    assert time_scale(graph) == (np.median(spans) if spans else 1.0)
