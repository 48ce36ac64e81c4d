"""Intervals: every relation against the definitions in words, unknown ends against all choices."""

from datetime import date, timedelta
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilp.errors import TilpError
from tilp.time import (
    OPEN_END,
    OPEN_START,
    UNDECIDED,
    UNKNOWN,
    Allen,
    Interval,
    TemporalRelation,
    allen,
    allen_code,
    allen_codes,
    choose_unit,
    format_time,
    parse_date,
    possible_relations,
    temporal_relation,
    temporal_relation_code,
    temporal_relation_codes,
)
from tilp.time.dates import DateKind
from tilp.types import Unit

SMALL = range(6)
TIMES = st.one_of(st.integers(0, 8), st.integers(-(10**6), 10**6), st.just(OPEN_END))


@st.composite
def known_intervals(draw):
    start, end = sorted((draw(TIMES), draw(TIMES)))
    return Interval(start if start != OPEN_END else OPEN_START, end)


@st.composite
def any_intervals(draw):
    interval = draw(known_intervals())
    hidden = draw(st.sampled_from(["", "start", "end", "both"]))
    return Interval(
        UNKNOWN if hidden in ("start", "both") else interval.start,
        UNKNOWN if hidden in ("end", "both") else interval.end,
    )


# Allen's definitions in words; equal ends before meeting ones, so that points have one relation.
DEFINITIONS = {
    Allen.BEFORE: lambda s, e, t, f: e < t,
    Allen.MEETS: lambda s, e, t, f: e == t and s < t and e < f,
    Allen.OVERLAPS: lambda s, e, t, f: s < t < e < f,
    Allen.STARTS: lambda s, e, t, f: s == t and e < f,
    Allen.DURING: lambda s, e, t, f: t < s and e < f,
    Allen.FINISHES: lambda s, e, t, f: t < s and e == f,
    Allen.EQUALS: lambda s, e, t, f: s == t and e == f,
    Allen.FINISHED_BY: lambda s, e, t, f: s < t and e == f,
    Allen.CONTAINS: lambda s, e, t, f: s < t and f < e,
    Allen.STARTED_BY: lambda s, e, t, f: s == t and f < e,
    Allen.OVERLAPPED_BY: lambda s, e, t, f: t < s < f < e,
    Allen.MET_BY: lambda s, e, t, f: s == f and t < s and f < e,
    Allen.AFTER: lambda s, e, t, f: f < s,
}


@given(known_intervals(), known_intervals())
def test_exactly_one_of_allens_relations_holds_and_agrees_with_the_class(first, second):
    ends = (first.start, first.end, second.start, second.end)
    holding = [relation for relation, holds in DEFINITIONS.items() if holds(*ends)]
    assert holding == [allen(first, second)]
    assert holding[0].temporal_relation is temporal_relation(first, second)
    assert tuple(Allen)[allen_code(*ends)] is holding[0]
    assert tuple(TemporalRelation)[temporal_relation_code(*ends)] is temporal_relation(
        first, second
    )


@given(any_intervals(), any_intervals())
def test_the_converse_holds_the_other_way_round(first, second):
    forth, back = temporal_relation(first, second), temporal_relation(second, first)
    assert (forth and forth.converse) == back
    allen_forth, allen_back = allen(first, second), allen(second, first)
    assert (allen_forth and allen_forth.converse) == allen_back


def completions(interval):
    """All known intervals in a small range that an interval with unknown ends may be."""
    for start, end in product(range(-7, 13), repeat=2):
        if start <= end and interval.start in (start, UNKNOWN) and interval.end in (end, UNKNOWN):
            yield Interval(start, end)


SMALL_INTERVALS = [
    Interval(start, end)
    for start, end in product([UNKNOWN, *SMALL], repeat=2)
    if UNKNOWN in (start, end) or start <= end
]


@pytest.mark.parametrize("first", SMALL_INTERVALS, ids=str)
def test_unknown_ends_are_decided_only_if_every_choice_agrees(first):
    for second in SMALL_INTERVALS:
        pairs = list(product(completions(first), completions(second)))
        classes = {temporal_relation(*pair) for pair in pairs}
        assert possible_relations(first, second) == classes
        finer = {allen(*pair) for pair in pairs}
        assert allen(first, second) == (next(iter(finer)) if len(finer) == 1 else None)


@given(st.lists(st.tuples(any_intervals(), any_intervals()), min_size=1))
def test_array_forms_equal_the_scalar_ones(pairs):
    columns = np.array([(a.start, a.end, b.start, b.end) for a, b in pairs], dtype=np.int64).T
    for codes, scalar, names in (
        (temporal_relation_codes(*columns), temporal_relation, tuple(TemporalRelation)),
        (allen_codes(*columns), allen, tuple(Allen)),
    ):
        words = [None if code == UNDECIDED else names[code] for code in codes]
        assert words == [scalar(a, b) for a, b in pairs]


def test_open_is_not_unknown():
    ongoing, unknown = Interval(1990, OPEN_END), Interval(1990, UNKNOWN)
    later = Interval(2000, 2001)
    assert temporal_relation(ongoing, later) is TemporalRelation.TOUCHING
    assert temporal_relation(unknown, later) is None
    assert ongoing.format() == "[1990, present]" and unknown.format() == "[1990, ?]"


def test_interval_refuses_to_end_before_it_starts():
    with pytest.raises(TilpError, match="must not start"):
        Interval(2, 1)


@pytest.mark.parametrize(
    ("text", "unit", "span"),
    [
        ("1952", Unit.YEAR, (1952, 1952)),
        ("360-##-##", Unit.YEAR, (360, 360)),
        ("19##", Unit.YEAR, (1900, 1999)),
        ("195#-##-##", Unit.YEAR, (1950, 1959)),
        ("-43#", Unit.YEAR, (-439, -430)),
        ("-431-##-##", Unit.YEAR, (-431, -431)),
        ("+1990-05-17T00:00:00Z", Unit.YEAR, (1990, 1990)),
        ("1952-05-##", Unit.MONTH, (1952 * 12 + 4, 1952 * 12 + 4)),
        ("1952-##-##", Unit.MONTH, (1952 * 12, 1952 * 12 + 11)),
        ("1970-02-##", Unit.DAY, (31, 58)),
        ("1970/1/2", Unit.DAY, (1, 1)),
        ("2014-01-01 12:30:00", Unit.DAY, (16071, 16071)),
        ("####-05-12", Unit.DAY, (UNKNOWN, UNKNOWN)),
        ("None", Unit.DAY, (UNKNOWN, UNKNOWN)),
        ("NaN", Unit.YEAR, (UNKNOWN, UNKNOWN)),
        ("", Unit.INTEGER, (UNKNOWN, UNKNOWN)),
        ("present", Unit.YEAR, (OPEN_START, OPEN_END)),
        ("1420070400", Unit.INTEGER, (1420070400, 1420070400)),
        ("1420070400000", Unit.YEAR, None),
        ("1952-05", Unit.INTEGER, None),
        ("19##", Unit.INTEGER, None),
        ("1963-64-65", Unit.YEAR, None),
        ("307-13047-09", Unit.YEAR, None),
        ("1990-02-30", Unit.DAY, None),
        ("1990-00-10", Unit.YEAR, (1990, 1990)),
        ("1990-10-00", Unit.MONTH, (1990 * 12 + 9, 1990 * 12 + 9)),
        ("17.05.1990", Unit.DAY, (7441, 7441)),
        ("1990-05-17Z", Unit.DAY, (7441, 7441)),
        ("1990-05-17 8:00 UTC", Unit.DAY, (7441, 7441)),
        ("1990.0", Unit.YEAR, (1990, 1990)),
        ("19-##-##", Unit.YEAR, (19, 19)),
        ("3/4/21", Unit.YEAR, None),
        ("1990.5", Unit.YEAR, None),
        ("１９９０", Unit.YEAR, None),
        ("1#9#", Unit.YEAR, None),
        ("soon", Unit.YEAR, None),
        ("1" * 30, Unit.INTEGER, None),
    ],
)
def test_dates(text, unit, span):
    assert parse_date(text).span(unit) == span


@given(st.text(max_size=20))
def test_any_text_is_parsed_to_a_kind(text):
    parsed = parse_date(text)
    for unit in Unit:
        span = parsed.span(unit)
        assert span is None or span[0] <= span[1]


@given(st.sampled_from(list(Unit)), st.integers(-(10**7), 10**7))
def test_times_are_read_back_as_written(unit, time):
    assert parse_date(format_time(time, unit)).span(unit) == (time, time)


@given(st.dates())
def test_days_agree_with_the_standard_library(day):
    days = (day - date(1970, 1, 1)) // timedelta(days=1)
    assert parse_date(day.isoformat()).span(Unit.DAY) == (days, days)
    assert format_time(days, Unit.DAY) == day.isoformat()


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["1952-05-17"] * 9 + ["1952-##-##"], Unit.DAY),
        (["1952-05-17"] * 8 + ["1952-##-##"] * 2, Unit.YEAR),
        (["1952-05-17"] * 8 + ["1952-05-##"] * 2, Unit.MONTH),
        (["1952-05-17"] * 9 + ["####-##-##"] * 50 + ["bad"] * 3, Unit.DAY),
        (["3", "12", "364"], Unit.YEAR),
        (["1420070400", "1420070401"], Unit.INTEGER),
        (["1990"] * 20 + ["19911"], Unit.YEAR),
        ([], Unit.YEAR),
    ],
)
def test_the_unit_is_the_finest_in_which_dates_are_complete(texts, unit):
    assert choose_unit((parse_date(text), 1) for text in texts) is unit


def test_parsing_intervals():
    assert Interval.parse("1977", None) == Interval(1977, UNKNOWN)
    assert Interval.parse("19##", "19##") == Interval(1900, 1999)
    assert Interval.parse("open", "1980").start == OPEN_START
    with pytest.raises(TilpError, match=r"'20o1' is not a date in years"):
        Interval.parse("20o1", None, unit="year")
    assert Interval.parse("1977", "1978", unit="year") == Interval(1977, 1978)
    assert parse_date("open").kind is DateKind.OPEN
