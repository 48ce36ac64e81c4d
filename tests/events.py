"""Strategies and builders that the tests of forecasting share."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import tilp
from tilp.forecasting.events import TimedEdges
from tilp.graph import QueryTable
from tilp.time import OPEN_END, OPEN_START, UNKNOWN

NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
COLUMNS = ["subject", "relation", "object", "start", "end"]
SEEDS = st.integers(0, 2**32 - 1)


def graph_of(**splits):
    tables = {
        name: pl.DataFrame(
            rows, COLUMNS, orient="row", schema_overrides=dict.fromkeys(COLUMNS, str)
        )
        for name, rows in splits.items()
    }
    return tilp.read(tables, unit="year")


@st.composite
def event_graphs(draw, max_facts=8, splits=("train",), entities="abcd"):
    """Draw few entities so that walks close, self-loops, repeated facts, missing and open dates."""
    ends = st.sampled_from(entities)
    years = st.sampled_from(["1990", "1991", "1991", "1993", "1996", ""])
    facts = st.tuples(ends, st.sampled_from("pq"), ends, years)
    rows = {}
    for split in splits:
        starts = draw(st.lists(facts, min_size=1, max_size=max_facts))
        last = draw(st.lists(st.sampled_from(["1996", "present", ""]), min_size=max_facts))
        rows[split] = [(*row, end) for row, end in zip(starts, last, strict=False)]
    graph = graph_of(**rows)
    assume(len(TimedEdges.of(graph, "train").time))
    return graph


def plain_edges(graph, splits=("train",), left_out=-1):
    """Return (source, relation, target, time) of dated facts and their inverses but one fact."""
    no_dates = {OPEN_START, OPEN_END, UNKNOWN}
    edges = []
    for row in (row for split in splits for row in graph.rows(split)):
        subject, object_, relation, start, end = (
            int(getattr(graph, name)[row])
            for name in ("subject", "object", "relation", "start", "end")
        )
        time = start if start not in no_dates else end
        if time not in no_dates and row != left_out:
            edges.append((subject, relation, object_, time))
            edges.append((object_, relation + len(graph.relations), subject, time))
    return edges


def directed_relations(graph):
    return range(2 * len(graph.relations))


def queries_of(subjects, relations, times):
    subject, relation, time = np.array(list(product(subjects, relations, times)), np.int64).T
    none = np.full(len(subject), -1, np.int32)
    return QueryTable.from_columns(
        subject.astype(np.int32), relation.astype(np.int32), time, time, none, none
    )
