"""The synthetic world: believable, exact about its planted rules, the same for one seed."""

import re
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilp.datasets import world
from tilp.datasets.places import NOW, POINTS, RELATIONS, STRUCTURAL, surnames
from tilp.datasets.synthetic import WorldTables, make_tables
from tilp.errors import TilpError
from tilp.time import UNKNOWN

COLUMNS = ("subject", "relation", "object", "start", "end")
ATOM = re.compile(r"([\w⁻¹]+)\(E(\d+),E(\d+),I(\d+)\)")
TIME = re.compile(r"(before|touching|after)\(I(\d+),I(\d+)\)")


# --- a slow and plain evaluator of rules -----------------------------------------------------


def rows_of(made: WorldTables) -> list[tuple[int, str, int, int, int]]:
    columns = zip(*(getattr(made, name).tolist() for name in COLUMNS), strict=True)
    return [(s, made.relation_labels[r], o, start, end) for s, r, o, start, end in columns]


def relation_between(a, b):
    if a[4] < b[3]:
        return "before"
    return "after" if a[3] > b[4] else "touching"


def parse(text):
    """Return head relation, body relations and temporal relations by pair of interval indexes."""
    head, body = text.split(" ← ")
    atoms = ATOM.findall(body)
    last = len(atoms) + 1
    assert ATOM.fullmatch(head).groups()[1:] == ("1", str(last), str(last))
    for i, (_, start, end, interval) in enumerate(atoms, 1):
        assert (start, end, interval) == (str(i), str(i + 1), str(i))
    times = {(int(i), int(j)): time for time, i, j in TIME.findall(body)}
    return ATOM.fullmatch(head)[1], [atom[0] for atom in atoms], times


def edges_of(facts):
    edges = defaultdict(list)
    for row, (s, r, o, _, _) in enumerate(facts):
        edges[s, r].append((row, o))
        edges[o, r + "⁻¹"].append((row, s))
    return edges


def walks(facts, edges, body, times, query, entity, taken=()):
    """Yield the ends of all walks from an entity along the rest of the body."""
    step = len(taken)
    if step == len(body):
        yield entity
        return
    for row, goal in edges[entity, body[step]]:
        if row == query or row in taken:
            continue
        others = [*enumerate(taken, 1)]
        fits = all(
            times.get((i, step + 1)) in (None, relation_between(facts[other], facts[row]))
            for i, other in others
        ) and times.get((step + 1, len(body) + 1)) in (
            None,
            relation_between(facts[row], facts[query]),
        )
        if fits:
            yield from walks(facts, edges, body, times, query, goal, (*taken, row))


def mean_arriving_rate(facts, edges, head, body, times):
    rates = []
    for query, (subject, relation, answer, _, _) in enumerate(facts):
        if relation == head:
            ends = [*walks(facts, edges, body, times, query, subject)]
            if ends:
                rates.append(ends.count(answer) / len(ends))
    return np.mean(rates)


# --- worlds ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def truth() -> WorldTables:
    return make_tables(3, 2_000, noisy=False)


@pytest.fixture(scope="module")
def demo() -> WorldTables:
    return make_tables(0, 10_000)


@pytest.fixture(scope="module")
def large() -> tuple[WorldTables, WorldTables]:
    """Return a larger world before and after noise."""
    return make_tables(1, 40_000, noisy=False), make_tables(1, 40_000)


def test_same_seed_same_world():
    first, second, other = make_tables(5, 3_000), make_tables(5, 3_000), make_tables(6, 3_000)
    for name in (*COLUMNS, "split"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name, values in first.attributes.items():
        np.testing.assert_array_equal(values, second.attributes[name])
    assert first.entity_labels == second.entity_labels
    assert first.rules == second.rules
    assert not np.array_equal(first.object, other.object)
    assert first.entity_labels != other.entity_labels


def assert_sound(made: WorldTables, size: int) -> None:
    assert abs(len(made) - size) <= 0.02 * size
    entities = len(made.entity_labels)
    assert len(set(made.entity_labels)) == entities
    for name in ("subject", "object"):
        column = getattr(made, name)
        assert column.dtype == np.int32
        assert column.min() >= 0
        assert column.max() < entities
    assert made.relation_labels == list(RELATIONS)
    assert np.bincount(made.relation, minlength=len(RELATIONS)).min() > 0
    assert len(set(rows_of(made))) == len(made)
    assert not np.any(made.subject == made.object)
    known = (made.start != UNKNOWN) & (made.end != UNKNOWN)
    assert np.all(made.start[known] <= made.end[known])
    assert np.all(made.end <= NOW)
    assert set(np.unique(made.split)) <= {0, 1, 2}
    structural = np.isin(made.relation, [RELATIONS.index(name) for name in STRUCTURAL])
    assert not np.any(made.split[structural])
    assert all(len(values) == entities for values in made.attributes.values())
    assert {rule.relation for rule in made.rules} <= set(RELATIONS)
    assert all(0 <= rule.confidence <= 1 or np.isnan(rule.confidence) for rule in made.rules)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**64), st.integers(1_000, 4_000), st.booleans())
def test_every_world_is_sound(seed, size, noisy):
    assert_sound(make_tables(seed, size, noisy=noisy), size)


@pytest.mark.parametrize("size", [1_000, 10_000, 300_000])
def test_sizes(size):
    assert_sound(make_tables(0, size), size)


def test_sizes_and_seeds_out_of_range_are_refused():
    with pytest.raises(TilpError, match="999"):
        make_tables(0, 999)
    with pytest.raises(TilpError, match="20,000,001"):
        make_tables(0, 20_000_001)
    with pytest.raises(TilpError, match="seed"):
        make_tables(-1, 1_000)


def test_the_graph_holds_the_tables():
    made, columns = world(seed=2, size=1_000), make_tables(2, 1_000)
    assert made.rules == columns.rules
    assert len(made.graph) == len(columns)
    assert [len(made.graph.rows(split)) for split in ("train", "valid", "test")] == np.bincount(
        columns.split
    ).tolist()
    assert list(made.graph.entities) == columns.entity_labels


# --- the planted rules -----------------------------------------------------------------------


def test_confidences_are_those_of_plain_evaluation(truth):
    facts = rows_of(truth)
    edges = edges_of(facts)
    for rule in truth.rules:
        expected = mean_arriving_rate(facts, edges, *parse(rule.text))
        assert rule.confidence == pytest.approx(expected, abs=1e-12), rule.text


def test_confidences_do_not_depend_on_noise(truth):
    assert make_tables(3, 2_000).rules == truth.rules


def test_confidences_of_several_blocks_are_exact():
    made = make_tables(8, 2_000, noisy=False, block_size=40)
    assert (~np.isnan(made.attributes["birthYear"])).sum() > 2 * 40
    facts = rows_of(made)
    edges = edges_of(facts)
    for rule in made.rules:
        expected = mean_arriving_rate(facts, edges, *parse(rule.text))
        assert rule.confidence == pytest.approx(expected, abs=1e-12), rule.text


def test_rules_state_all_pairs_and_cover_lengths_and_times(demo):
    seen = set()
    for rule in demo.rules:
        head, body, times = parse(rule.text)
        assert (head, tuple(body), len(body)) == (rule.relation, rule.body, rule.length)
        pairs = {(i, j) for j in range(2, len(body) + 2) for i in range(1, j)}
        assert times.keys() == pairs
        seen |= set(times.values())
        assert rule.confidence > (0.35 if head == "receivedAward" else 0.6)
    assert seen == {"before", "touching", "after"}
    assert {rule.length for rule in demo.rules} == {1, 2, 3}
    assert len({rule.text for rule in demo.rules}) == len(demo.rules)


@pytest.mark.parametrize(
    ("relation", "body"),
    [
        ("livesIn", ["playsFor", "basedIn"]),
        ("licensedBy", ["playsFor", "playsInLeague", "governedBy"]),
    ],
)
def test_rules_need_their_temporal_relations(truth, relation, body):
    facts = rows_of(truth)
    edges = edges_of(facts)
    (rule,) = (rule for rule in truth.rules if rule.body == tuple(body))
    static = mean_arriving_rate(facts, edges, relation, body, {})
    assert rule.confidence > 0.85
    assert static < 0.5
    last = len(body)
    times = parse(rule.text)[2] | {(last, last + 1): "before"}
    wrong = mean_arriving_rate(
        facts, edges, relation, body, {pair: times[pair] for pair in times if last + 1 in pair}
    )
    assert wrong < 0.4


def test_nominations_of_the_year_win_more_often_than_earlier_ones(truth):
    facts = rows_of(truth)
    edges = edges_of(facts)
    now, earlier = (
        mean_arriving_rate(facts, edges, "receivedAward", ["nominatedFor"], {(1, 2): time})
        for time in ("touching", "before")
    )
    assert now > earlier + 0.1


def test_rules_explain_most_of_their_heads(truth):
    facts = rows_of(truth)
    edges = edges_of(facts)
    bodies = defaultdict(list)
    for rule in truth.rules:
        bodies[rule.relation].append(parse(rule.text)[1:])
    for head, rules in bodies.items():
        heads = [row for row, fact in enumerate(facts) if fact[1] == head]
        reached = [
            any(facts[q][2] in walks(facts, edges, *rule, q, facts[q][0]) for rule in rules)
            for q in heads
        ]
        assert np.mean(reached) > 0.7, head


def test_titles_recur(truth):
    facts = rows_of(truth)
    won = defaultdict(set)
    for s, r, o, start, _ in facts:
        if r == "wonTitle":
            won[s, o].add(start)
    assert np.mean([len(years) > 1 for years in won.values()]) > 0.6


# --- believable lives ------------------------------------------------------------------------


def dated(made, name):
    """Return columns subject, start and end of the dated facts of a relation."""
    rows = made.relation == RELATIONS.index(name)
    rows &= (made.start != UNKNOWN) & (made.end != UNKNOWN)
    return made.subject[rows], made.start[rows], made.end[rows]


def by_entity(made, name):
    subject, start, _ = dated(made, name)
    years = np.full(len(made.entity_labels), np.nan)
    years[subject] = start
    return years


@pytest.mark.parametrize(
    ("name", "youngest", "oldest"),
    [
        ("citizenOf", 18, 18),
        ("graduatedFrom", 16, 28),
        ("playsFor", 18, 42),
        ("licensedBy", 18, 42),
        ("livesIn", 17, 80),
        ("memberOfClub", 18, 33),
        ("marriedTo", 20, 80),
        ("memberOfParty", 21, 90),
        ("nominatedFor", 26, 60),
        ("receivedAward", 26, 80),
        ("diedIn", 42, 100),
    ],
)
def test_nobody_acts_too_early_or_after_death(large, name, youngest, oldest):
    made, _ = large
    birth, death = by_entity(made, "bornIn"), by_entity(made, "diedIn")
    subject, start, end = dated(made, name)
    age = start - birth[subject]
    assert age.min() >= youngest
    assert age.max() <= oldest
    assert not np.any(end > death[subject])
    people = ~np.isnan(made.attributes["birthYear"])
    np.testing.assert_array_equal(birth[people], made.attributes["birthYear"][people])


def test_nobody_plays_for_two_teams_or_has_two_spouses_at_once(large):
    for name in ("playsFor", "marriedTo"):
        subject, start, end = dated(large[0], name)
        order = np.lexsort((start, subject))
        subject, start, end = subject[order], start[order], end[order]
        same = subject[1:] == subject[:-1]
        assert not np.any(same & (start[1:] <= end[:-1]))


@pytest.mark.parametrize("noisy", [False, True])
def test_birth_to_graduation_gap(large, noisy):
    made = large[noisy]
    subject, start, _ = dated(made, "graduatedFrom")
    gap = start - by_entity(made, "bornIn")[subject]
    gap = gap[~np.isnan(gap)]
    assert gap.mean() == pytest.approx(22, abs=0.3)
    assert gap.std() == pytest.approx(1, abs=0.3)


def test_names_read_well(demo):
    assert len(set(surnames())) == len(surnames()) == 24_000
    people = np.flatnonzero(~np.isnan(demo.attributes["birthYear"]))
    assert all(re.fullmatch(r"[A-Z][a-z]+ [A-Z][a-z]+", demo.entity_labels[i]) for i in people)
    height = demo.attributes["height"][people]
    assert 120 < height.min() < height.max() < 225


# --- noise -----------------------------------------------------------------------------------


def test_splits(demo):
    shares = np.bincount(demo.split) / len(demo)
    np.testing.assert_allclose(shares, [0.8, 0.1, 0.1], atol=0.015)


def test_noise(large):
    truth, made = large
    np.testing.assert_array_equal(truth.subject, made.subject)
    np.testing.assert_array_equal(truth.relation, made.relation)
    np.testing.assert_array_equal(truth.split, made.split)
    other = truth.object != made.object
    moved = (made.start != UNKNOWN) & (made.start != truth.start)
    moved |= (made.end != UNKNOWN) & (made.end != truth.end)
    assert np.mean(other | moved) == pytest.approx(0.05, abs=0.01)
    structural = np.isin(made.relation, [RELATIONS.index(name) for name in STRUCTURAL])
    assert not np.any((other | moved)[structural])
    known = moved & (made.start != UNKNOWN)
    assert np.abs(made.start - truth.start)[known].max() <= 3
    for name in RELATIONS:
        rows = made.relation == RELATIONS.index(name)
        assert set(made.object[rows]) <= set(truth.object[rows])


def test_missing_dates(large):
    truth, made = large
    assert truth.start.min() > UNKNOWN
    assert truth.end.min() > UNKNOWN
    no_start, no_end = made.start == UNKNOWN, made.end == UNKNOWN
    point = np.isin(made.relation, [RELATIONS.index(name) for name in POINTS])
    lasting = ~point & (made.relation >= len(STRUCTURAL))
    np.testing.assert_array_equal(no_start[point], no_end[point])
    assert no_start[point].mean() == pytest.approx(0.05, abs=0.01)
    assert no_start[lasting].mean() == pytest.approx(0.05, abs=0.01)
    assert no_end[lasting].mean() == pytest.approx(0.15, abs=0.01)
    assert np.all(truth.start[point] == truth.end[point])
    assert np.all(made.start[point] == made.end[point])


def test_larger_worlds_are_no_denser(demo):
    """Check that neighbourhoods and the shares of relations stay alike over several blocks."""
    made = make_tables(0, 300_000)
    crowding, shares = [], []
    for sized in (demo, made):
        degree = np.bincount(np.concatenate([sized.subject, sized.object])).astype(float)
        crowding.append((degree**2).sum() / degree.sum())
        shares.append(np.bincount(sized.relation) / len(sized))
    assert crowding[1] < 1.3 * crowding[0]
    common = shares[0] > 0.02
    np.testing.assert_allclose(shares[1][common], shares[0][common], rtol=0.15)
