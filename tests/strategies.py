"""Hypothesis strategies and small graphs that several test modules share."""

from functools import cache

import numpy as np
import polars as pl
from hypothesis import strategies as st

import tilp
from tilp import Query
from tilp.graph import QueryTable

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
    """Return the train facts as queries in both directions."""
    return QueryTable.of_facts(graph, np.arange(len(graph.rows("train"))), walked=walked)


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


@cache
def small_world(seed=1):
    """Return a world of 1,000 facts, made once."""
    return tilp.datasets.world(seed, 1_000).graph


def both_ways(graph, split="test", every=1):
    """Facts of a split, each as a question for its object and one for its subject."""
    facts = graph.frame(split)[::every].to_dicts()
    return [
        Query(one["relation"], start=one["start"], end=one["end"], **{given: one[given]})
        for one in facts
        for given in ("subject", "object")
    ]
