"""Which rules generalise which: against all arrangements of small intervals."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilp.rules import FORMS, Atom, Constraint, Rule, generalises, parse_rule
from tilp.time import GAP_CLASSES, Allen, TemporalRelation, allen_codes, gap_codes
from tilp.types import Grain

CHAIN = "p(E1,E3,I3) <- q(E1,E2,I1) & r(E2,E3,I2)"
GAPS = ["1 before", "2 before", "1 after", "2 after"]
WORDS = list(dict.fromkeys(map(str, [*TemporalRelation, *Allen, *GAPS])))
# Gaps of at most 2 between three intervals: what these times do not refute, no times do.
TIMES = np.array(list(combinations_with_replacement(range(11), 2)))
PAIRS = [(1, 2), (1, 3), (2, 3), (2, 1), (3, 1)]


def constraint(word, pair):
    return Constraint(str(word), tuple(f"I{index}" for index in pair))


def constraints(words=WORDS):
    one = st.builds(constraint, st.sampled_from(words), st.sampled_from(PAIRS))
    return st.lists(one, max_size=3)


def rule(temporal):
    return Rule(Atom("p"), (Atom("q"), Atom("r", True)), tuple(temporal))


def holds(word):
    """Whether a word holds between each two of all intervals, by the codes of walks."""
    first, second = TIMES.T[:, :, None], TIMES.T[:, None, :]
    if word in GAP_CLASSES:
        return gap_codes(*first, *second) == GAP_CLASSES.index(word)
    return allen_codes(*first, *second) == list(Allen).index(word)


MASKS = {word: holds(word) for word in WORDS}


def satisfying(temporal):
    """All triples of intervals that satisfy constraints, as a mask."""
    mask = np.ones((len(TIMES),) * 3, np.bool_)
    for one in temporal:
        first, second = one.indices
        table = MASKS[one.word] if first < second else MASKS[one.word].T
        axis = ({1, 2, 3} - {first, second}).pop() - 1
        mask &= np.expand_dims(table, axis)
    return mask


@settings(max_examples=300)
@given(constraints(), constraints())
def test_a_rule_generalises_those_that_apply_where_it_does(general, special):
    counterexamples = satisfying(special) & ~satisfying(general)
    assert generalises(rule(general), rule(special)) == (not counterexamples.any())


@given(st.data(), st.sampled_from(Grain), st.integers(1, 4))
def test_fewer_constraints_are_more_general(data, grain, length):
    form = FORMS[grain]
    named = [(pair, form.body_relations) for pair in form.body_pairs(length)]
    named += [(pair, form.query_relations) for pair in form.query_pairs(length)]
    said = [constraint(data.draw(st.sampled_from(words)), pair) for pair, words in named]
    said += [Constraint("taller", ("E1", "E2")), Constraint("long", ("I1",))]
    some = tuple(one for one in said if data.draw(st.booleans()))
    body = (Atom("q"),) * length
    special, general = Rule(Atom("p"), body, tuple(said)), Rule(Atom("p"), body, some)
    assert generalises(general, special) and generalises(special, special)
    if Constraint("taller", ("E1", "E2")) not in some:
        assert not generalises(special, general)


@pytest.mark.parametrize("relation", Allen)
def test_a_class_generalises_the_relations_of_allen_in_it(relation):
    special = rule([constraint(relation, (1, 3))])
    for each in TemporalRelation:
        expected = each is relation.temporal_relation
        assert generalises(rule([constraint(each, (1, 3))]), special) == expected


@pytest.mark.parametrize(
    ("general", "special", "expected"),
    [
        ("before(I2,I3)", "3-4 before(I2,I3)", True),
        ("3-4 before(I2,I3)", "before(I2,I3)", False),
        ("before(I1,I3)", "before(I1,I2) & before(I2,I3)", True),
        ("9-16 before(I1,I3)", "5-8 before(I1,I2) & 5-8 before(I2,I3)", False),
        ("33+ before(I1,I3)", "33+ before(I1,I2) & 1 before(I2,I3)", True),
        ("after(I3,I1)", "before(I1,I3)", True),
        ("touching(I1,I1)", "before(I2,I3)", True),
        ("taller(E1,E2)", "before(I2,I3)", False),
        ("during(I1,I2)", "before(I1,I2) & after(I1,I2)", True),
    ],
)
def test_what_follows_from_other_constraints(general, special, expected):
    first, second = parse_rule(f"{CHAIN} & {general}"), parse_rule(f"{CHAIN} & {special}")
    assert generalises(first, second) == expected


@pytest.mark.parametrize(
    "other",
    [
        CHAIN.replace("p(", "z("),
        CHAIN.replace("p(", "p^-1("),
        CHAIN.replace("q(", "z("),
        CHAIN.replace("r(", "r^-1("),
        "p(E1,E2,I2) <- q(E1,E2,I1)",
    ],
)
def test_other_chains_are_not_compared(other):
    assert not generalises(parse_rule(CHAIN), parse_rule(other))
    assert not generalises(parse_rule(other), parse_rule(CHAIN))
