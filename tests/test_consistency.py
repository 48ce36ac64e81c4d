"""What temporal constraints say together: against all arrangements of small intervals."""

from itertools import combinations_with_replacement

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilp.rules import Constraint
from tilp.rules.temporal import possible_classes, satisfying_intervals
from tilp.time import GAP_CLASSES, Allen, TemporalRelation, allen_codes, gap_codes

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
@given(constraints())
def test_intervals_are_found_unless_constraints_contradict_each_other(some):
    found = satisfying_intervals(tuple(some))
    assert (found is None) == (not satisfying(some).any())
    for one in some if found else ():
        rows = [
            np.argmax(((x.start, x.end) == TIMES).all(axis=1)) for x in map(found.get, one.indices)
        ]
        assert MASKS[one.word][rows[0], rows[1]]


@settings(max_examples=300)
@given(constraints(), st.sampled_from(PAIRS[:3]))
def test_possible_classes_are_those_of_some_arrangement(some, pair):
    expected = [
        relation
        for relation in TemporalRelation
        if satisfying([*some, constraint(relation, pair)]).any()
    ]
    assert possible_classes(tuple(some), *pair) == expected
