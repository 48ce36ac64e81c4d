"""The walks of one rule to one candidate, against plain listings of walks."""

from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from oracles import (
    edges_of,
    lift,
    query_parts,
    walk_gap,
    walks_from,
)
from strategies import all_queries, graphs
from tilp.errors import TilpError
from tilp.graph import QueryTable
from tilp.rules import parse_rule
from tilp.scoring import Query
from tilp.scoring.queries import query_table
from tilp.types import Grain
from tilp.walks import Grounder, Walker

NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")


def steps_of(walk):
    return tuple((edge[3], edge[0].inverse) for edge in walk)


def found_steps(grounded):
    return [tuple((step.fact, step.inverse) for step in walk) for walk in grounded.walks]


def by_rule(walker, edges, parts):
    """The walks of each rule to each end, with their gaps."""
    subject, head, query, own = parts
    found = defaultdict(dict)
    for walk in walks_from(edges, subject, walker.max_length, own, walker.distinct):
        for grain in walker.grains:
            rule = lift(walk, head, query, grain)
            found[rule, walk[-1][1]][steps_of(walk)] = walk_gap(walk, query)
    return found


@NO_WARNING
@settings(max_examples=40)
@given(graphs(), st.booleans(), st.booleans(), st.integers(0, 100))
def test_groundings_are_the_walks_of_a_rule_the_nearest_first(graph, walked, distinct, index):
    walker = Walker(graph, grains=list(Grain), max_length=3, distinct=distinct)
    grounder, queries = Grounder(walker), all_queries(graph, walked)
    index %= len(queries)
    asked = queries[np.array([index])]
    for (rule, end), plain in by_rule(
        walker, edges_of(graph), query_parts(walker, queries, index)
    ).items():
        grounded = grounder(rule, asked, end)
        steps = found_steps(grounded)
        assert grounded.complete and len(steps) == len(plain) and set(steps) == set(plain)
        gaps = [plain[one] for one in steps]
        assert gaps == sorted(gaps)
        assert found_steps(grounder(rule, asked, end, 2)) == steps[:2]


@NO_WARNING
@settings(max_examples=10)
@given(graphs(), st.integers(0, 100))
def test_groundings_of_long_rules(graph, index):
    walker = Walker(graph, max_length=5)
    grounder, queries = Grounder(walker), all_queries(graph)
    index %= len(queries)
    plain = by_rule(walker, edges_of(graph), query_parts(walker, queries, index))
    for rule, end in sorted(plain, key=str)[:: max(1, len(plain) // 40)]:
        steps = found_steps(grounder(rule, queries[np.array([index])], end))
        assert sorted(steps) == sorted(plain[rule, end])


@NO_WARNING
@settings(max_examples=20)
@given(graphs(), st.integers(0, 100))
def test_groundings_are_as_many_as_are_counted(graph, index):
    walker = Walker(graph, grains=list(Grain), max_length=3)
    grounder, queries = Grounder(walker), all_queries(graph, walked=False)
    asked = queries[np.array([index % len(queries)])]
    head = int(asked.directed_relation[0])
    rows = walker.count(asked)[0].tolist()
    lifted = [walker.encoding.lift((row[1], row[2], head, *row[3:6])) for row in rows]
    rules = list(dict.fromkeys(lifted))
    counted = walker.apply(asked, walker.compile(rules))[0]
    assert bool(len(counted)) == bool(rows)  # an entity with loops alone has none
    for _, rule, end, count in counted.tolist():
        assert len(grounder(rules[rule], asked, end).walks) == count


def crowd(n):
    """A city that many live in, each of them in other years, and a tower that stands there."""
    rows = [
        (f"p{year}", "livesIn", "city", str(1900 + year), str(1900 + year)) for year in range(n)
    ]
    rows += [(f"p{year}", "climbs", "tower", "1950", "1950") for year in range(n)]
    rows += [("ann", "livesIn", "city", "1960", "1960")]
    columns = ["subject", "relation", "object", "start", "end"]
    return tilp.read(pl.DataFrame(rows, columns, orient="row"))


def query_of(graph, subject, relation, time):
    return query_table(graph, [Query(relation, subject, start=time, end=time)])


def test_past_the_limit_the_farthest_are_dropped():
    graph = crowd(40)
    rule = parse_rule(
        "climbs(E1,E4,I4) <- livesIn(E1,E2,I1) & livesIn^-1(E2,E3,I2) & climbs(E3,E4,I3)"
    )
    walker = Walker(graph, grains=[Grain.STATIC], max_length=3)
    query = query_of(graph, "ann", "climbs", 1960)
    tower = graph.entities.find("tower")
    every = Grounder(walker)(rule, query, tower)
    assert every.complete and len(every.walks) == 40
    # The nearest in time is who lived there last.
    assert [int(graph.start[walk[1].fact]) for walk in every.walks] == [*range(1939, 1899, -1)]
    some = Grounder(walker, max_walks=7)(rule, query, tower)
    assert not some.complete and 0 < len(some.walks) <= 7
    assert set(some.walks) <= set(every.walks)
    assert Grounder(walker, max_walks=41)(rule, query, tower) == every


def test_a_rule_that_does_not_lead_there_has_no_groundings():
    graph = crowd(3)
    walker = Walker(graph, grains=[Grain.GAP], max_length=1)
    grounder = Grounder(walker)
    query = query_of(graph, "ann", "climbs", 1961)
    city = graph.entities.find("city")
    near = parse_rule("climbs(E1,E2,I2) <- livesIn(E1,E2,I1) & 1 before(I1,I2)")
    assert found_steps(grounder(near, query, city)) == [((6, False),)]
    assert grounder(near, query, graph.entities.find("tower")).walks == ()
    late = parse_rule("climbs(E1,E2,I2) <- livesIn(E1,E2,I1) & 1 after(I1,I2)")
    assert grounder(late, query, city).walks == ()
    with pytest.raises(TilpError, match="is of none of the grains gap"):
        grounder(parse_rule("climbs(E1,E2,I2) <- livesIn(E1,E2,I1)"), query, city)


def test_the_queried_fact_is_not_walked():
    graph = crowd(2)
    walker = Walker(graph, grains=[Grain.STATIC], max_length=1)
    rule = parse_rule("livesIn(E1,E2,I2) <- livesIn(E1,E2,I1)")
    rows = QueryTable.of_facts(graph, np.array([4]), walked=True)[np.array([0])]
    assert Grounder(walker)(rule, rows, int(rows.answer[0])).walks == ()
    free = QueryTable.of_facts(graph, np.array([4]), walked=False)[np.array([0])]
    assert found_steps(Grounder(walker)(rule, free, int(rows.answer[0]))) == [((4, False),)]
