"""Hypothesis strategies and small graphs that several test modules share."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
from hypothesis import assume
from hypothesis import strategies as st

import tilp
from tilp import Query
from tilp.graph import QueryTable
from tilp.learning import KNOWN_KINDS
from tilp.learning.examples import TrainingExamples


def read_or_skip(source, **options):
    """A graph; other examples if most of a column's dates cannot be read, which stops reading."""
    try:
        return tilp.read(source, **options)
    except tilp.DataError as error:
        assume("cannot be read; the commonest" not in str(error))
        raise


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


@st.composite
def answered_queries(draw):
    """A graph, and queries of it, some of which have no answer."""
    graph, queries = draw(shared_queries())
    size = len(queries)
    has_answer = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    answer = np.where(has_answer, queries.answer, -1).astype(np.int32)
    return graph, replace(queries, answer=answer)


def query_at(queries, index):
    """Return a table of a single query."""
    return queries[np.array([index])]


def shuffled(queries, seed):
    """Return a random order, and the queries in it."""
    order = np.random.default_rng(seed).permutation(len(queries))
    return order, queries[order]


def every_candidate(graph, queries):
    """Return offsets and candidates that list all entities for each query."""
    size = len(graph.entities)
    offsets = np.arange(len(queries) + 1) * size
    return offsets, np.tile(np.arange(size, dtype=np.int32), len(queries))


def random_examples(graph, n_rules, n_queries, seed):
    """Examples of no real rules: some queries have none, some answers are not reached."""
    generator = np.random.default_rng(seed)
    numbers = {
        "subject": len(graph.entities),
        "directed_relation": 2 * len(graph.relations),
        "answer": len(graph.entities),
    }
    columns = {
        name: generator.integers(0, most, n_queries).astype(np.int32)
        for name, most in numbers.items()
    }
    time = np.zeros(n_queries, np.int64)
    queries = QueryTable(
        **columns, start=time, end=time, fact=generator.integers(-1, 1, n_queries).astype(np.int32)
    )
    rules = [
        generator.choice(n_rules, generator.integers(0, n_rules), replace=False)
        for _ in range(n_queries)
    ]
    size = sum(map(len, rules))
    at_answer = generator.integers(0, 4, size) * generator.integers(0, 2, size)
    at_known = generator.integers(0, 5, (size, len(KNOWN_KINDS))) * generator.integers(
        0, 2, (size, len(KNOWN_KINDS))
    )
    others = generator.integers(0, 50, size)
    others[(others + at_answer + at_known.sum(axis=1)) == 0] = 1
    return TrainingExamples(
        queries=queries,
        answer_kind=generator.integers(-1, len(KNOWN_KINDS), n_queries).astype(np.int8),
        offsets=np.cumsum([0, *map(len, rules)]).astype(np.int64),
        rule=np.concatenate([*rules, []]).astype(np.int32),
        at_answer=at_answer.astype(np.float32),
        excluded=generator.integers(0, 5, size).astype(np.float32),
        at_known=at_known.astype(np.float32),
        at_others=others.astype(np.float32),
    )


def some_candidates(graph, queries, count, seed=0):
    """Entities drawn for each query, its answer and its subject among them."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, len(graph.entities), (len(queries), count)).astype(np.int32)
    drawn[:, 0], drawn[:, 1] = queries.answer, queries.subject
    return np.arange(len(queries) + 1) * count, drawn.reshape(-1)
