"""Gap classes at the data's own scale: edges, codes, names, and how a model keeps them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from models import FAST
from oracles import counted, counts, edges_of, query_parts
from strategies import all_queries, graphs
from tilp import TILP
from tilp.errors import TilpError
from tilp.rules import Constraint, Notation, Phrasings, format_rule, parse_rule
from tilp.rules.temporal import gap_parts, is_temporal, satisfying_intervals
from tilp.time import GAP_CLASSES, OPEN_END, gap_classes, gap_code, gap_codes
from tilp.time.bins import length_words, make_edges, parse_length
from tilp.types import Grain, Unit
from tilp.walks import Walker
from tilp.walks.mining import MiningSettings, gap_edges, mine

EDGES = st.lists(st.integers(2, 40), max_size=6).map(lambda more: (1, *sorted(set(more))))
TIMES = st.integers(-50, 50) | st.just(OPEN_END)
INTERVALS = st.tuples(TIMES, TIMES).map(sorted)


def plain_class(first, second, edges):
    """The index of a gap class, counted from the middle."""
    if first[1] < second[0]:
        gap, sign = second[0] - first[1], -1
    elif first[0] > second[1]:
        gap, sign = first[0] - second[1], 1
    else:
        return len(edges)
    return len(edges) + sign * sum(edge <= gap for edge in edges)


@given(INTERVALS, INTERVALS, EDGES)
def test_codes_against_a_plain_reading(first, second, edges):
    code = plain_class(first, second, edges)
    assert gap_code(*first, *second, np.array(edges)) == code
    columns = (np.array([time]) for time in (*first, *second))
    assert gap_codes(*columns, np.array(edges)).tolist() == [code]
    assert plain_class(second, first, edges) == 2 * len(edges) - code  # the converse is mirrored


def test_without_edges_the_classes_are_those_of_0_1():
    least, names = gap_classes((), Unit.DAY)
    assert names == GAP_CLASSES and names[0] == "33+ before" and len(least) == 7
    same, with_unit = gap_classes(tuple(least.tolist()), Unit.YEAR)
    assert same.tolist() == least.tolist()
    assert with_unit[:2] == ("33 years or more before", "17-32 years before")
    assert with_unit[7:10] == ("touching", "1 year after", "2 years after")


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50), st.sampled_from(list(Unit)))
def test_names_are_read_back_as_the_gaps_that_they_hold(gaps, unit):
    edges = make_edges(np.array(gaps), unit, 9)
    size = {Unit.YEAR: 365.2425, Unit.MONTH: 30.4369}.get(unit, 1.0)
    lengths = length_words(edges, unit)
    for words, low, high in zip(lengths, edges, [*edges[1:], None], strict=True):
        least, most, _ = parse_length(words)
        assert least == pytest.approx(max(low * size, 1), abs=size)
        if high is None:
            assert most == np.inf
        else:  # a whole unit that is said last is in the class, a longer one is where it ends
            assert (high - 1) * size - 1e-6 <= most <= high * size + size
    for name in gap_classes(tuple(edges.tolist()), unit)[1]:
        rule = parse_rule("p(E1,E2,I2) <- q(E1,E2,I1)")
        rule = type(rule)(rule.head, rule.body, (constraint(name),))
        for notation in (Notation.SIGNS, Notation.ASCII):
            assert parse_rule(format_rule(rule, notation)) == rule
        assert is_temporal(rule.constraints[0])
        assert name == "touching" or gap_parts(name) is not None


def constraint(word):
    return Constraint(word, ("I1", "I2"))


@pytest.mark.parametrize("word", ["soon before", "3 before it", "-3 days before", "4 hours before"])
def test_other_words_are_no_gap_classes(word):
    assert gap_parts(word) is None and not is_temporal(constraint(word))


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@settings(max_examples=30)
@given(graphs(), EDGES)
def test_walks_with_other_edges_equal_brute_force(graph, edges):
    walker = Walker(graph, grains=[Grain.GAP], max_length=2, gap_edges=edges)
    gaps = gap_classes(edges, graph.unit)
    queries, by_entity = all_queries(graph), edges_of(graph)
    for index in range(len(queries)):
        parts = query_parts(walker, queries, index)
        truth = counts(by_entity, *parts, 2, walker.grains, gaps=gaps)
        assert counted(walker, queries, index) == truth


def days(step, n=40):
    """Facts of one entity every so many days, each for a day."""
    first = np.datetime64("2000-01-01")
    rows = [
        ("a", "p" if turn % 2 else "q", f"b{turn % 5}", str(first + step * turn))
        for turn in range(n)
    ]
    table = pl.DataFrame(rows, ["subject", "relation", "object", "start"], orient="row")
    return tilp.read(table.with_columns(end="start"), unit="day")


@pytest.mark.parametrize(
    "step, longest", [(2, "33 days or more"), (7, "months or more"), (700, "years or more")]
)
def test_classes_follow_the_scale_of_the_data(step, longest):
    graph = days(step)
    edges = gap_edges(graph)
    words = length_words(np.array(edges), graph.unit)
    assert 3 <= len(edges) <= 8
    assert longest in words[-1]
    gaps = np.abs(np.subtract.outer(np.arange(40), np.arange(40))).ravel() * step
    shares = np.bincount(np.searchsorted(edges, gaps[gaps > 0], side="right")) / (gaps > 0).sum()
    assert shares.max() <= 0.5  # no class swallows the others
    assert gap_edges(graph) == edges  # the same each time


def test_classes_of_years_are_those_of_0_1():
    graph = tilp.datasets.world(0, 1_000).graph
    assert gap_edges(graph) == tuple(gap_classes((), graph.unit)[0].tolist())


def test_a_graph_without_gaps_has_classes_too():
    doubling = tuple(gap_classes((), Unit.DAY)[0].tolist())
    undated = pl.DataFrame({"subject": ["a"], "relation": ["p"], "object": ["b"]})
    assert gap_edges(days(2, n=1)) == gap_edges(tilp.read(undated)) == doubling


def test_rules_of_days_name_their_unit_and_a_model_keeps_its_classes(tmp_path):
    graph = days(40, n=200)
    rules = mine(graph, None, MiningSettings(grains=(Grain.GAP,), max_length=1))
    words = {c.word for mined in rules for c in mined.rule.constraints} - {"touching"}
    assert words and all("year" in word or "month" in word for word in words)
    model = TILP(temporal_detail="gap", min_support=1, **FAST).fit(graph)
    kept = model.settings.mining.gap_edges
    assert kept == gap_edges(graph)
    folder = model.save(tmp_path / "model")
    loaded = tilp.load(folder)
    assert loaded.settings.mining.gap_edges == kept
    # More facts do not move the classes of a model.
    loaded.update(days(3, n=60))
    assert loaded.settings.mining.gap_edges == kept
    gaps = [c.word for mined in loaded.rules() for c in mined.rule.constraints]
    assert set(gaps) <= set(gap_classes(kept, Unit.DAY)[1])


def test_without_edges_of_their_own_classes_are_those_of_0_1():
    graph = tilp.datasets.world(0, 1_000).graph
    legacy = MiningSettings(grains=(Grain.GAP,), max_length=1, gap_edges=())
    rules = mine(graph, ["livesIn"], legacy)
    assert {c.word for mined in rules for c in mined.rule.constraints} <= set(GAP_CLASSES)


def test_a_gap_that_the_data_has_no_class_for_is_refused():
    graph = tilp.datasets.world(0, 1_000).graph
    walker = Walker(graph, grains=[Grain.GAP], max_length=1, gap_edges=(1, 2, 3, 5, 40))
    text = "livesIn(E1,E2,I2) <- bornIn(E1,E2,I1) & {}(I1,I2)"
    assert len(walker.encoding.encode([parse_rule(text.format("3-4 years before"))])) == 1
    for word in ("3-4 before", "7-9 years before"):
        with pytest.raises(TilpError, match=r"gap classes .*3-4 years before"):
            walker.encoding.encode([parse_rule(text.format(word))])


def test_intervals_are_drawn_in_the_unit_of_the_class():
    found = satisfying_intervals([constraint("3-4 years before")])
    assert 3 <= found[2].start - found[1].end <= 4
    found = satisfying_intervals([constraint("within 2 years after")])
    assert 1 <= found[1].start - found[2].end <= 2


@pytest.mark.parametrize(
    "word, unit, words",
    [
        ("3-4 before", Unit.YEAR, "3 to 4 years before that"),
        ("33+ after", Unit.DAY, "33 or more days after that"),
        ("2 weeks to 1 year before", Unit.DAY, "2 weeks to 1 year before that"),
        ("1-2 years after", Unit.DAY, "1 to 2 years after that"),
        ("20 years or more before", Unit.DAY, "20 years or more before that"),
    ],
)
def test_sentences(word, unit, words):
    rule = parse_rule(f"p(E1,E2,I2) <- q(E1,E2,I1) & {word}(I1,I2)")
    assert Phrasings().rule(rule, unit).endswith(f"{words}.")


@pytest.mark.parametrize("edges", [(2, 3), (1, 1), (1, 5, 3)])
def test_edges_ascend_from_one(edges):
    with pytest.raises(TilpError, match="gap_edges"):
        MiningSettings(gap_edges=edges)
