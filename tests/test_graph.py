"""The graph: names, columns, splits, and the index against a plain list of edges."""

import copy
import difflib
import pickle
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilp
from tilp.errors import DataError, TilpError, UnknownNameError
from tilp.graph import SPLITS, EdgeIndex, TemporalGraph, Vocabulary
from tilp.graph.graph import graph_fingerprint
from tilp.graph.vocabulary import NearNames
from tilp.time import OPEN_END, UNKNOWN, Interval, known_ends
from tilp.time.interval import distinct_times
from tilp.types import Unit


@pytest.fixture
def graph(facts):
    return tilp.read({"train": facts[:3], "valid": facts[3:4], "test": facts[4:]})


def test_columns_splits_and_facts(graph):
    assert repr(graph) == (
        "TemporalGraph(3 train, 1 valid, 1 test facts; 5 entities, 2 relations; unit year)"
    )
    assert list(graph.entities) == ["Ada", "Ben", "Cleo", "Rovers", "United"]
    assert graph.rows("valid") == range(3, 4)
    assert [str(fact) for fact in graph.facts("train")] == [
        "(Ada, playsFor, Rovers, [1990, 1993])",
        "(Ada, playsFor, United, [1994, present])",
        "(Ben, playsFor, Rovers, [1985, 1992])",
    ]
    assert graph.fact(4).interval == Interval(UNKNOWN, 2001)
    assert graph.end[1] == OPEN_END
    with pytest.raises(TilpError, match="no split is named 'dev'"):
        graph.rows("dev")


def test_arrays_are_read_only(graph):
    index = graph.index()
    for array in (graph.subject, graph.start, graph.end_text, index.target, index.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_original_text_of_each_date_is_kept():
    frame = pl.DataFrame(
        {
            "subject": ["a", "b", "c"],
            "relation": "r",
            "object": ["x", "y", "z"],
            "start": ["360-##-##", "19##", "1963-64-65"],
            "end": ["####-##-##", "1901", None],
        }
    )
    with pytest.warns(tilp.TilpWarning, match="1 × malformed start"):
        graph = tilp.read(frame)
    assert graph.date_text("start").to_list() == ["360-##-##", "19##", "1963-64-65"]
    assert graph.date_text("end").to_list() == ["####-##-##", "1901", ""]
    assert graph.start.tolist() == [360, 1900, UNKNOWN]


def test_index_covers_only_the_splits_asked_for(graph):
    assert len(graph.index().target) == 6
    assert len(graph.index(SPLITS).target) == 10
    assert graph.index() is graph.index(["train"])
    united = graph.entities.find("United")
    edges = graph.index().edges(united)
    assert [graph.relations.label(r) for r in graph.index().relation[edges]] == ["playsFor⁻¹"]


EDGES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), min_size=0, max_size=30
)


@given(EDGES)
def test_index_against_a_plain_list(edges):
    subject, relation, object_ = np.array(edges, dtype=np.int32).reshape(-1, 3).T
    fact = np.arange(len(edges), dtype=np.int32) * 2
    index = EdgeIndex.build(6, 3, subject, relation, object_, fact)
    for entity in range(6):
        plain = [(r, f, o) for (s, r, o), f in zip(edges, fact, strict=True) if s == entity]
        plain += [(r + 3, f, s) for (s, r, o), f in zip(edges, fact, strict=True) if o == entity]
        here = index.edges(entity)
        found = list(zip(index.relation[here], index.fact[here], index.target[here], strict=True))
        assert found == sorted(plain)
        for label in range(6):
            there = index.edges(entity, label)
            assert set(index.relation[there]) <= {label}
            assert there.stop - there.start == sum(r == label for r, _, _ in plain)


def plain_graph(edges, splits, kept):
    """The facts that are kept, as a graph made anew."""
    subject, relation, object_ = np.array(edges, dtype=np.int32).reshape(-1, 3).T
    start = np.arange(len(edges))
    columns = {
        "subject": subject,
        "relation": relation,
        "object": object_,
        "start": start,
        "end": np.where(start % 3, start + 2, UNKNOWN),
    }
    return TemporalGraph.from_arrays(
        Vocabulary.of("entity", pl.Series("id", list("abcdef"))),
        Vocabulary.of("relation", pl.Series("id", list("rst"))),
        {name: column[kept] for name, column in columns.items()},
        np.array(splits, np.uint8)[kept],
        attributes={"height": np.arange(6.0)},
    )


@given(EDGES, st.data())
def test_a_graph_without_some_facts_against_one_made_anew(edges, data):
    splits = sorted(
        data.draw(st.lists(st.integers(0, 2), min_size=len(edges), max_size=len(edges)))
    )
    gone = data.draw(st.lists(st.integers(0, max(len(edges) - 1, 0)), max_size=2 * len(edges)))
    every = np.arange(len(edges))
    graph = plain_graph(edges, splits, every)
    chosen = [("train",), ("train", "test")]
    indexes = [graph.index(one) for one in chosen]
    left = graph.without(gone)
    assert left == plain_graph(edges, splits, np.setdiff1d(every, gone))
    assert (len(left), len(graph)) == (len(edges) - len(set(gone)), len(edges))
    for one, whole in zip([*chosen, ("valid",)], [*indexes, None], strict=True):
        anew = plain_graph(edges, splits, np.setdiff1d(every, gone)).index(one)
        for name in ("offsets", "relation", "target", "fact"):
            found = getattr(left.index(one), name)
            assert np.array_equal(found, getattr(anew, name))
            assert found.dtype == getattr(anew, name).dtype and not found.flags.writeable
        assert whole is None or graph.index(one) is whole


def test_what_is_left_of_a_graph_is_written_and_read_as_it_is(facts, tmp_path):
    broken = facts.with_columns(
        pl.col("start").replace("1985", "1963-64-65"), pl.col("end").replace("2004", "2004-##-##")
    )
    with pytest.warns(tilp.TilpWarning, match="malformed start"):
        graph = tilp.impute(tilp.read(broken))
    left = graph.without([0, 4])
    assert [str(one) for one in left.facts()] == [str(graph.fact(row)) for row in (1, 2, 3)]
    assert left.estimated.tolist() == graph.estimated[1:4].tolist() and left.estimated.any()
    assert left.date_text("end").to_list() == ["present", "1992", "2004-##-##"]
    assert len(left.defects) == 1 and left.defects.equals(graph.defects)
    assert list(left.entities) == list(graph.entities) and "Cleo" in left.entities.labels
    assert left == pickle.loads(pickle.dumps(left))
    again = tilp.read(tilp.write(left, tmp_path / "left"))
    assert again == left and again.entities == graph.entities


def test_names_are_found_by_id_key_or_label_and_errors_name_the_nearest():
    names = Vocabulary(
        "entity",
        pl.Series(["0", "1", "2"]),
        pl.Series(["Q1", "Q2", "Q3"]),
        pl.Series(["Vienna", "Paris", "Paris"]),
    )
    assert names.find("1") == 1 and names.find("Q3") == 2 and names.find("Vienna") == 0
    with pytest.raises(TilpError, match="2 entity names read 'Paris'; say which by its id: '1'"):
        names.find("Paris")
    with pytest.raises(TilpError, match="did you mean 'Vienna'"):
        names.find("viena")
    with pytest.raises(DataError, match="no entity has the id '7'"):
        names.encode(pl.Series(["1", "7"]))


def test_numeric_ids_keep_their_places():
    frame = pl.DataFrame({"subject": ["10", "2"], "relation": ["0", "0"], "object": ["0", "1"]})
    assert tilp.read(frame).entities.ids.to_list() == ["0", "1", "2", "10"]


def test_from_arrays_sorts_by_split_and_writes_dates(tmp_path):
    graph = TemporalGraph.from_arrays(
        Vocabulary.of("entity", pl.Series("id", ["a", "b"])),
        Vocabulary.of("relation", pl.Series("id", ["r"])),
        {
            "subject": np.array([0, 1, 0]),
            "relation": np.array([0, 0, 0]),
            "object": np.array([1, 0, 0]),
            "start": np.array([5, UNKNOWN, 7]),
            "end": np.array([6, 9, OPEN_END]),
        },
        np.array([2, 0, 1], dtype=np.uint8),
        unit=Unit.DAY,
        attributes={"height": np.array([1.5, np.nan])},
    )
    assert graph.bounds == (0, 1, 2, 3)
    assert graph.date_text("start").to_list() == ["", "1970-01-08", "1970-01-06"]
    assert tilp.read(tilp.write(graph, tmp_path / "g")) == graph


def test_graphs_differ_in_any_column(graph, facts):
    assert graph == graph and graph != "graph"
    assert graph != tilp.read(facts)
    other = facts.with_columns(pl.col("end").replace("1993", "1993-##-##"))
    # The same times, but not written the same way: protocols can tell them apart.
    assert tilp.read(facts) != tilp.read(other)


def test_graphs_can_be_copied_and_sent_to_other_processes(graph):
    graph.index()
    assert pickle.loads(pickle.dumps(graph)) == graph == copy.deepcopy(graph)


def test_mistakes_are_named(graph):
    for mistake in (
        lambda: graph.index("training"),
        lambda: graph.index(()),
        lambda: graph.without([0, 5]),
        lambda: graph.without([-1]),
        lambda: graph.frame(names="name"),
        lambda: graph.date_text("begin"),
        lambda: graph.entities.label(99),
        lambda: graph.entities.find(3),
        lambda: tilp.write(graph, "never", format="xlsx"),
        lambda: Interval("1990", "1993"),
    ):
        with pytest.raises(TilpError):
            mistake()
    assert graph.relations.label(3) == "playsFor⁻¹"
    assert repr(graph.entities) == "Vocabulary(5 × entity)"


def test_from_arrays_refuses_what_is_no_graph():
    names = Vocabulary.of("entity", pl.Series("id", ["a"]))
    columns = dict.fromkeys(("subject", "relation", "object", "end"), np.array([0]))
    for start, split in ((5, 0), (0, 3)):
        with pytest.raises(TilpError):
            TemporalGraph.from_arrays(
                names, names, columns | {"start": np.array([start])}, np.array([split], np.uint8)
            )


@given(
    st.lists(st.text("abcABC é", min_size=1, max_size=8), max_size=30),
    st.text("abcABC é\ud800", min_size=1, max_size=8),
)
def test_near_names_are_those_of_difflib(names, name):
    by_case = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=0.6)
    assert NearNames(names).find(name) == tuple(by_case[one] for one in close)


def test_an_unknown_name_tells_the_near_ones():
    names = Vocabulary.of("entity", pl.Series(["Rovers", "United", *map(str, range(5_000))]))
    with pytest.raises(UnknownNameError, match="did you mean 'Rovers'") as raised:
        names.find("rover")
    assert raised.value.near == ("Rovers",)


def test_near_names_and_fingerprints_do_not_depend_on_the_size_of_batches(graph):
    names = ["Ada", "Adele", "Ben", "ada", "Aden", "Bea"]
    for size in (1, 2, 5):
        assert NearNames(names, batch_size=size).find("adel") == NearNames(names).find("adel")
        columns = partial(getattr, graph)
        assert graph_fingerprint(graph, columns, block_size=size) == graph.fingerprint()


def test_the_times_of_training_facts(graph):
    train = graph.span("train")
    start, end = graph.start[train], graph.end[train]
    expected = np.unique(np.concatenate(known_ends(start, end)))
    for size in (1, 2, 1000):
        assert distinct_times(start, end, block_size=size).tolist() == expected.tolist()
    assert graph.train_times.tolist() == expected.tolist()
    assert not len(graph.without(range(3)).train_times)
