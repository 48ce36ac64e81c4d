"""New facts that join a graph: duplicates, more dates, names, splits."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from models import fact_rows, fact_table, read_facts
from tilp.errors import TilpError
from tilp.graph import SPLITS, TemporalGraph, merge_facts
from tilp.types import ByLabel


@cache
def world():
    return tilp.datasets.world(1, 1_000).graph


def folder_of(tmp_path, rows, entities=(), relations=()):
    """A folder with names beside its facts."""
    tmp_path.mkdir(exist_ok=True)
    fact_table(*rows).cast(pl.String).write_csv(
        tmp_path / "train.tsv", separator="\t", quote_style="never"
    )
    for name, names in (("entities", entities), ("relations", relations)):
        if names:
            listed = pl.DataFrame(names, schema=["id", "key", "label"], orient="row")
            listed.write_csv(tmp_path / f"{name}.tsv", separator="\t")
    (tmp_path / "graph.json").write_text('{"unit": "year"}')
    return tilp.read(tmp_path)


DATES = ["", "1990", "1992", "present"]


@st.composite
def fact_tables(draw):
    date = st.sampled_from(DATES)
    row = st.tuples(
        st.sampled_from("ab"),
        st.just("r"),
        st.sampled_from("cd"),
        date.filter(lambda one: one != "present"),
        date,
        st.sampled_from(SPLITS),
        st.sampled_from(["", "end"]),
    )
    return draw(st.lists(row, min_size=1, max_size=12))


def as_graph(rows):
    schema = ["subject", "relation", "object", "start", "end", "split", "estimated"]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    # Only what is there can be an estimate; and nothing ends before it starts.
    no_end = (pl.col("end") == "") | (pl.col("end") == "present")
    frame = frame.with_columns(
        estimated=pl.when(no_end).then(pl.lit("")).otherwise("estimated"),
        start=pl.when((pl.col("start") == "1992") & (pl.col("end") == "1990"))
        .then(pl.lit("1990"))
        .otherwise("start"),
    )
    return tilp.read(frame, unit="year")


def plain_facts(graph):
    """Facts by number: split, names, and each date as (how much is known, time)."""
    found = []
    for split in SPLITS:
        for row in graph.rows(split):
            one, ends = graph.fact(row), []
            for bit, end in enumerate(("start", "end")):
                text = graph.date_text(end)[row]
                known = 0 if text == "" else 2 if text == "present" else 3
                known = 1 if graph.estimated[row] & (1 << bit) else known
                ends.append((known, int(getattr(graph, end)[row])))
            found.append((split, (one.subject, one.relation, one.object), tuple(ends)))
    return found


def plainly_joined(known, new):
    """What `merge_facts` is to do, fact by fact."""

    def more(one, other):
        ends = zip(one[2], other[2], strict=True)
        shared = [a for a, b in ends if a == b]
        others = [(a, b) for a, b in zip(one[2], other[2], strict=True) if a != b]
        return (
            one[:2] == other[:2]
            and len(shared) == 1
            and shared[0][0] == 3
            and others[0][0][0] > others[0][1][0]
        )

    held, added = list(known), [one for one in dict.fromkeys(new) if one not in known]
    added = [one for one in added if not any(more(other, one) for other in known + new)]
    # Where two tell more than one that is there, it is of no account which takes its place.
    for fact in sorted(added, key=lambda one: (-sum(rank for rank, _ in one[2]), by_time(one))):
        behind = next((i for i, other in enumerate(held) if more(fact, other)), None)
        if behind is not None:
            held[behind] = fact
            added.remove(fact)
    return [
        one for split in SPLITS for facts in (held, added) for one in facts if one[0] == split
    ], len(added)


def by_time(fact):
    return [(time, rank) for rank, time in fact[2]]


@given(fact_tables(), fact_tables(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_facts_join_as_they_do_one_by_one(known, rows, chance):
    known, new = as_graph(known), as_graph(rows)
    joined = merge_facts(known, new)
    expected, added = plainly_joined(plain_facts(known), plain_facts(new))
    found = plain_facts(joined.graph)
    assert sorted(found) == sorted(expected) and len(joined.added) == added
    # Each new fact is added, takes a place, or is there; and once more all are there.
    assert len(joined.added) + sum(joined.duplicates.values()) + len(joined.superseded) == len(new)
    again = merge_facts(joined.graph, new)
    assert again.graph == joined.graph and sum(again.duplicates.values()) == len(new)
    assert not len(again.added) and not len(again.superseded)
    chance.shuffle(rows)
    other = merge_facts(known, as_graph(rows))
    assert plain_facts(other.graph) == found


def test_a_fact_whose_end_became_known_takes_the_place_of_the_old_one():
    known = read_facts(
        ("Ada", "playsFor", "Rovers", "1990", ""), ("Ben", "playsFor", "Rovers", "1", "2")
    )
    new = read_facts(("Ada", "playsFor", "Rovers", "1990", "1993"))
    joined = merge_facts(known, new)
    assert fact_rows(joined.graph)[0] == ("Ada", "playsFor", "Rovers", 1990, 1993)
    assert joined.superseded.tolist() == [0] and len(joined.graph) == 2
    back = merge_facts(joined.graph, known)  # a table from before
    assert back.graph == joined.graph and back.less_dated == 1 and back.duplicates["train"] == 2


def test_old_numbers_stay_and_what_is_new_stands_after_them():
    known = read_facts(("b", "r", "d", "1990", "1991"), ("z", "s", "b", "1992", ""))
    joined = merge_facts(known, read_facts(("a", "q", "d", "1990", ""), ("b", "r", "a", "1", "")))
    assert list(joined.graph.entities) == ["b", "d", "z", "a"]
    assert list(joined.graph.relations) == ["r", "s", "q"]
    assert fact_rows(joined.graph)[:2] == fact_rows(known) and joined.added.tolist() == [2, 3]


def test_splits_join_those_of_their_name_and_a_fact_of_two_splits_is_told():
    known = tilp.read({"train": fact_table(("a", "r", "b")), "test": fact_table(("c", "r", "d"))})
    new = tilp.read({"train": fact_table(("c", "r", "d")), "valid": fact_table(("a", "r", "d"))})
    joined = merge_facts(known, new)
    assert [len(joined.graph.rows(split)) for split in SPLITS] == [2, 1, 1]
    assert joined.added.tolist() == [1, 2] and joined.in_other_split == 1


def test_attributes_of_entities_join():
    known = read_facts(("a", "r", "b", "1", ""))
    numbers = {"size": np.array([1.0, np.nan])}
    known = replace(known, attributes=numbers)
    new = replace(read_facts(("a", "r", "c", "2", "")), attributes={"size": np.array([5.0, 7.0])})
    joined = merge_facts(known, new)
    assert joined.changed_attributes == 1
    assert joined.graph.attributes["size"][[0, 2]].tolist() == [5.0, 7.0]
    assert np.isnan(joined.graph.attributes["size"][1])


def test_names_are_found_by_id_and_then_by_key(tmp_path):
    known = folder_of(
        tmp_path / "known",
        [("0", "0", "1", "1990", "1991")],
        [("0", "Q5", "Ada"), ("1", "Q7", "Rovers")],
        [("0", "P54", "playsFor")],
    )
    for row in (("0", "0", "1"), ("Q5", "P54", "Q7"), ("0", "P54", "Q7")):
        joined = merge_facts(known, read_facts((*row, "1995", "1996")))
        assert len(joined.graph.entities) == 2 and len(joined.graph.relations) == 1
        assert joined.graph.subject.tolist() == [0, 0]
    # The ids of another folder are found by the keys beside them.
    other = folder_of(
        tmp_path / "other",
        [("x", "y", "w", "1995", "")],
        [("x", "Q5", "Ada"), ("w", "Q9", "Ada")],
        [("y", "P54", "plays for")],
    )
    joined = merge_facts(known, other)
    assert joined.graph.entities.ids.to_list() == ["0", "1", "w"]
    assert list(joined.graph.relations) == ["playsFor"]  # names that are known stay
    assert joined.graph.object.tolist() == [1, 2]  # two that are called the same


@pytest.mark.parametrize(
    ("rows", "entities", "relations", "told"),
    [
        ([("Ada", "0", "1", "1990", "")], (), (), r"'Ada' reads as the label of '0'.*--labels"),
        ([("0", "playsFor", "1", "1990", "")], (), (), "'playsFor' reads as the label of '0'"),
        (
            [("0", "0", "1", "1990", "")],
            [("0", "Q8", "Cleo")],
            (),
            r"entity '0' has the key 'Q8' in the new facts, and 'Q5' where it is known",
        ),
        (
            [("1", "0", "1", "1990", "")],
            [("1", "Q5", "Ada")],
            (),
            "the same id stands for two things",
        ),
        ([("Q6", "0", "1", "1990", "")], (), (), "2 known entity names have the key 'Q6'"),
        ([("Dan", "0", "1", "1990", "")], (), (), "label of '2' and '3'"),
        (
            [("0", "9", "1", "1990", "")],
            (),
            [("9", "P9", "playsFor")],
            "'playsFor' reads as the label of '0'",
        ),
    ],
)
def test_a_name_that_could_stand_for_two_things_is_refused(
    tmp_path, rows, entities, relations, told
):
    known = folder_of(
        tmp_path / "known",
        [("0", "0", "1", "1990", "1991")],
        [("0", "Q5", "Ada"), ("1", "Q7", "Rovers"), ("2", "Q6", "Dan"), ("3", "Q6", "Dan")],
        [("0", "P54", "playsFor")],
    )
    new = folder_of(tmp_path / "new", rows, entities, relations)
    with pytest.raises(TilpError, match=told):
        merge_facts(known, new)


def test_labels_match_or_are_new_where_that_is_said(tmp_path):
    known = folder_of(
        tmp_path / "known",
        [("0", "0", "1", "1990", "1991")],
        [("0", "Q5", "Ada"), ("1", "Q7", "Rovers"), ("2", "Q6", "Dan"), ("3", "Q8", "Dan")],
        [("0", "P54", "playsFor")],
    )
    new = read_facts(("Ada", "playsFor", "Rovers", "1995", ""))
    joined = merge_facts(known, new, labels=ByLabel.MATCH)
    assert joined.graph.entities == known.entities and joined.graph.subject.tolist() == [0, 0]
    new = read_facts(("Ada", "0", "Rovers", "1995", ""))
    joined = merge_facts(known, new, labels=ByLabel.NEW)
    assert joined.graph.entities.ids.to_list() == ["0", "1", "2", "3", "Ada", "Rovers"]
    with pytest.raises(TilpError, match=r"label of '2' and '3'; give ids for these"):
        merge_facts(known, read_facts(("Dan", "0", "1", "1995", "")), labels=ByLabel.MATCH)
    with pytest.raises(TilpError, match="would both be called 'playsFor'"):
        merge_facts(known, read_facts(("0", "playsFor", "1", "1995", "")), labels=ByLabel.NEW)
    # The other way round: what is known has plain names, and the new ones ids besides.
    plain = read_facts(("Ada", "playsFor", "Rovers", "1990", "1991"))
    with pytest.raises(TilpError, match="'Ada' reads as the label of 'Ada'"):
        merge_facts(plain, known)


def test_other_units_are_refused():
    known = read_facts(("a", "r", "b", "1990", ""))
    new = tilp.read(fact_table(("a", "r", "b", "1990-01-02", "")).cast(pl.String), unit="day")
    with pytest.raises(TilpError, match=r"count days, of the known ones years.*unit='year'"):
        merge_facts(known, new)


def test_a_graph_joins_itself_without_a_change():
    joined = merge_facts(world(), world())
    assert joined.graph.fingerprint() == world().fingerprint()
    assert isinstance(joined.graph, TemporalGraph)
