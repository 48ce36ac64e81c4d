"""Queries from frames and files, column by column and slice by slice, and of whole relations."""

import gzip

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from tilp import Query
from tilp.errors import DataError, TilpError, UnknownNameError
from tilp.graph import Vocabulary
from tilp.io.tables import read_table
from tilp.io.text import text_slices
from tilp.model.query_sources import QueryFile, QueryFrame, queries_of
from tilp.scoring.queries import QueryColumns, query_table

FIELDS = ("relation", "subject", "object", "start", "end")


NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f"])


@settings(max_examples=150)
@given(st.data())
def test_columns_of_names_are_found_as_single_names_are(data):
    ids = data.draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    others = st.lists(NAMES, min_size=len(ids), max_size=len(ids))
    columns = [pl.Series(ids), *(pl.Series(data.draw(others)) for _ in range(2))]
    names = Vocabulary("entity", *columns)
    asked = data.draw(st.lists(st.one_of(st.none(), NAMES, st.just("zz"), st.just(""))))
    found = names.find_all(pl.Series(asked, dtype=pl.String)).tolist()
    for name, number in zip(asked, found, strict=True):
        try:
            expected = -1 if name is None else names.find(name)
        except UnknownNameError:
            expected = -1
        assert number == expected


@pytest.fixture(scope="module")
def small():
    facts = pl.DataFrame(
        {
            "subject": ["1", "2", "3"],
            "relation": ["likes", "likes", "knows"],
            "object": ["2", "3", "1"],
            "start": ["1990", "1991", "1992"],
            "end": ["1995", "present", "1993"],
        }
    )
    graph = tilp.read(facts)
    labels = pl.Series(["Ada", "Ben", "Ada"])
    names = Vocabulary("entity", graph.entities.ids, graph.entities.ids, labels)
    return tilp.TemporalGraph(**{**fields_of(graph), "entities": names})


def fields_of(graph):
    from dataclasses import fields

    return {one.name: getattr(graph, one.name) for one in fields(graph) if one.init}


DATES = st.sampled_from(
    [None, "", "1990", "1992-05", "19##", "present", "soon", "1989", "3/4/21", "open", "1990.0"]
)


@settings(max_examples=150)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "relation": st.sampled_from(["likes", "knows", "hates", "", None]),
                "subject": st.sampled_from([None, "", "1", "Ada", "Ben", "Cleo"]),
                "object": st.sampled_from([None, None, "", "3", "Ben"]),
                "start": DATES,
                "end": DATES,
            }
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_columns_of_queries_are_read_as_single_queries_are(small, rows, as_objects):
    queries = [Query(**row) for row in rows]
    schema = dict.fromkeys(FIELDS, pl.String)
    columns = (
        QueryColumns.of_queries(queries)
        if as_objects
        else QueryColumns.of(pl.DataFrame(rows, schema))
    )
    table, askable = columns.encode(small)
    number = 0
    for row, query in enumerate(queries):
        assert columns.query(row) == query
        try:
            if query.problem:
                raise TilpError(query.problem)
            expected = query_table(small, [query])
        except TilpError as refused:
            assert row not in askable and str(columns.error_of(small, row)) == str(refused)
            continue
        assert askable[number] == row
        for name in ("subject", "directed_relation", "start", "end", "fact", "answer", "unknown"):
            assert np.array_equal(getattr(table, name)[[number]], getattr(expected, name)), name
        number += 1
    assert number == len(table)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (pl.Series([1991, None]), [1991, None]),
        (pl.Series([1991.0, None]), [1991, None]),
        (pl.Series([1991, 2**63 + 1], dtype=pl.UInt64), [1991, "out of range"]),
        (pl.Series(["1991-05-17", None]).str.to_date(), [1991, None]),
        (pl.Series(["1991", "x"]), [1991, "not a date"]),
    ],
)
def test_dates_of_any_column_are_read(small, start, expected):
    frame = pl.DataFrame({"relation": ["likes"] * 2, "subject": [1, 2], "start": start})
    columns = QueryColumns.of(frame)
    table, rows = columns.encode(small)
    for row, time_ in enumerate(expected):
        if isinstance(time_, str):
            assert row not in rows and time_ in str(columns.error_of(small, row))
        else:
            place = rows.tolist().index(row)
            assert table.unknown[place, 0] == (time_ is None)
            assert time_ is None or table.start[place] == time_


def test_columns_of_something_else_are_refused(small):
    with pytest.raises(TilpError, match="holds List"):
        QueryColumns.of(pl.DataFrame({"relation": [["likes"]]}))
    with pytest.raises(TilpError, match="columns who: 'who' is none of a query"):
        QueryFrame(pl.DataFrame({"who": ["x"]}))


TEXTS = {
    "plain.tsv": "relation\tsubject\tstart\n"
    + "".join(f"likes\tname {n}\t{1900 + n}\n" for n in range(23)),
    "quoted.csv": 'relation,subject,start\n"likes","a, b",1990\nlikes,"two\nlines",\nknows,é,1\n',
    "blank.csv": "\ufeffrelation,subject\r\n\r\nlikes,a\r\n\r\n\r\nlikes,b\r\nknows,\r\n",
    "spare.tsv": "relation\tsubject\t\nlikes\ta\t\nlikes\tb\t\n",
    "empty.csv": "relation,subject\n",
    "semicolons.csv": "relation;subject\nlikes;a\nlikes;b",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("zipped", [False, True])
def test_slices_of_a_text_are_the_whole_text(tmp_path, name, zipped):
    path = tmp_path / (f"{name}.gz" if zipped else name)
    raw = TEXTS[name].encode()
    path.write_bytes(gzip.compress(raw) if zipped else raw)
    whole = read_table(path, True, lambda *_: True, min_columns=2)
    for block in (8, 64, 1 << 20):
        for rows in (1, 2, 7, 100):
            slices = list(text_slices(path, rows, block_size=block))
            assert all(len(one.frame) == rows for one in slices[:-1])
            assert {one.names for one in slices} == {whole.names}
            assert pl.concat([one.frame for one in slices]).equals(whole.frame)
            assert [line for one in slices for line in one.lines] == list(whole.lines)


def test_a_torn_text_is_refused_with_its_line(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("relation,subject\nlikes,a\nlikes\nlikes,b\n")
    with pytest.raises(DataError, match=r"q\.csv, line 3: 1 columns where 2"):
        list(text_slices(path, 1))
    path.write_bytes(b"relation,subject\nlikes,a\nlikes,\xff\n")
    with pytest.raises(DataError, match=r"line 3: not UTF-8"):
        list(text_slices(path, 1))


def test_a_name_with_brackets_is_no_pattern(tmp_path):
    pl.DataFrame({"relation": ["no"], "subject": ["other"]}).write_parquet(tmp_path / "q1.parquet")
    wanted = pl.DataFrame({"relation": ["livesIn"], "subject": ["Ada"]})
    wanted.write_parquet(tmp_path / "q[1].parquet")
    assert QueryFile(tmp_path / "q[1].parquet").frame().equals(wanted)


def test_a_whole_relation_is_asked_of_all_that_have_it(small):
    found = queries_of(small, "likes", "1990", all_subjects=True)
    assert found.to_dicts() == [
        {"relation": "likes", "subject": name, "object": None, "start": "1990", "end": None}
        for name in ("1", "Ben")  # two are called Ada: the id says which
    ]
    inverse = queries_of(small, "likes^-1", all_subjects=True)
    assert inverse["object"].to_list() == ["Ben", "3"] and inverse["subject"].null_count() == 2
    assert queries_of(small, "likes⁻¹", all_subjects=True).equals(inverse)
    with pytest.raises(TilpError, match="no relation is named 'like'; did you mean 'likes'"):
        queries_of(small, "like")


def test_a_relation_that_train_does_not_have_cannot_be_completed():
    facts = pl.DataFrame({"subject": ["a"], "relation": ["r"], "object": ["b"]})
    other = facts.with_columns(relation=pl.lit("only in test"))
    graph = tilp.read({"train": facts, "test": other})
    with pytest.raises(TilpError, match="train has no fact of 'only in test'"):
        queries_of(graph, "only in test")
