"""Dates of Wikidata: as text, and as intervals of a statement."""

import pytest

from dumps import (
    FIRST,
    NONE,
    SECOND,
    SOME,
    UNKNOWN,
    day,
    entity,
    facts,
    statement,
    time_snak,
)
from tilp.time import parse_date


@pytest.mark.parametrize(
    ("time", "precision", "text"),
    [
        ("+1952-05-12T00:00:00Z", 11, "1952-05-12"),
        ("+1952-05-12T00:00:00Z", 14, "1952-05-12"),
        ("+1952-05-00T00:00:00Z", 10, "1952-05-##"),
        ("+1952-05-12T00:00:00Z", 10, "1952-05-##"),
        ("+1952-00-00T00:00:00Z", 9, "1952-##-##"),
        ("+1952-05-12T00:00:00Z", 9, "1952-##-##"),
        ("+1952-05-00T00:00:00Z", 11, "1952-05-##"),
        ("+1952-00-00T00:00:00Z", 11, "1952-##-##"),
        ("+1952-00-12T00:00:00Z", 11, "1952-##-##"),
        ("+1950-00-00T00:00:00Z", 8, "195#-##-##"),
        ("+1959-01-01T00:00:00Z", 8, "195#-##-##"),
        ("+1900-00-00T00:00:00Z", 7, "18##-##-##"),
        ("+1901-00-00T00:00:00Z", 7, "19##-##-##"),
        ("+2000-00-00T00:00:00Z", 7, "19##-##-##"),
        ("+0014-00-00T00:00:00Z", 7, "00##-##-##"),
        ("+2000-00-00T00:00:00Z", 6, UNKNOWN),
        ("-13798000000-00-00T00:00:00Z", 3, UNKNOWN),
        ("+0000-00-00T00:00:00Z", 0, UNKNOWN),
        ("+0014-08-19T00:00:00Z", 11, "0014-08-19"),
        ("+00000001952-05-12T00:00:00Z", 11, "1952-05-12"),
        ("+12000-00-00T00:00:00Z", 9, "12000-##-##"),
        # Historical years: 1 BCE is the year 0, 431 BCE the year -430.
        ("-0001-00-00T00:00:00Z", 9, "0000-##-##"),
        ("-0044-03-15T00:00:00Z", 11, "-43-03-15"),
        ("-0431-00-00T00:00:00Z", 9, "-430-##-##"),
        ("-0430-00-00T00:00:00Z", 8, "-43#-##-##"),
        ("-0500-00-00T00:00:00Z", 7, "-4##-##-##"),
        ("-0401-00-00T00:00:00Z", 7, "-4##-##-##"),
        ("-0001-00-00T00:00:00Z", 7, "-0##-##-##"),
        # Leap days: 1 BCE has one in the proleptic Gregorian calendar, 1900 only in the Julian.
        ("-0001-02-29T00:00:00Z", 11, "0000-02-29"),
        ("+1900-02-29T00:00:00Z", 11, "1900-02-##"),
        ("+1712-02-30T00:00:00Z", 11, "1712-02-##"),
    ],
)
def test_dates_of_json(import_json, out, time, precision, text):
    import_json(entity("Q1", statement(P585=[time_snak(time, precision)])))
    assert facts(out) == [("Q1", "P39", "Q2", text, text)]
    assert parse_date(text).kind == ("unknown" if text == UNKNOWN else "known")


def test_centuries_before_our_era_are_read_back_exactly():
    century = parse_date("-4##-##-##")
    assert (century.first_year, century.last_year) == (-499, -400)  # 500 to 401 BCE


@pytest.mark.parametrize("calendar", ["Q1985727", "Q1985786"])
def test_the_calendar_model_is_ignored(import_json, out, calendar):
    date = day("1700-02-03")
    date["datavalue"]["value"]["calendarmodel"] = f"http://www.wikidata.org/entity/{calendar}"
    import_json(entity("Q1", statement(P585=[date])))
    assert facts(out)[0][3] == "1700-02-03"


@pytest.mark.parametrize(
    ("qualifiers", "spans"),
    [
        ({"P580": [FIRST]}, [("1990-01-01", UNKNOWN)]),
        ({"P582": [FIRST]}, [(UNKNOWN, "1990-01-01")]),
        ({"P585": [FIRST]}, [("1990-01-01", "1990-01-01")]),
        ({"P580": [FIRST], "P585": [SECOND]}, [("1990-01-01", UNKNOWN)]),
        ({"P582": [FIRST], "P585": [SECOND]}, [(UNKNOWN, "1990-01-01")]),
        ({"P580": [SECOND, FIRST]}, [("1990-01-01", UNKNOWN)]),
        ({"P582": [SECOND, FIRST]}, [(UNKNOWN, "1995-01-01")]),
        ({"P580": [time_snak("-0044-00-00T00:00:00Z", 9), FIRST]}, [("-43-##-##", UNKNOWN)]),
        ({"P580": [FIRST, time_snak("+1950-00-00T00:00:00Z", 8)]}, [("195#-##-##", UNKNOWN)]),
        ({"P580": [SOME]}, [(UNKNOWN, UNKNOWN)]),
        ({"P580": [NONE]}, [(UNKNOWN, UNKNOWN)]),
        ({"P580": [SOME, FIRST]}, [("1990-01-01", UNKNOWN)]),
        ({"P580": [FIRST], "P582": [NONE]}, [("1990-01-01", "present")]),
        ({"P580": [FIRST], "P582": [SECOND, NONE]}, [("1990-01-01", "present")]),
        ({"P580": [FIRST], "P582": [SOME]}, [("1990-01-01", UNKNOWN)]),
        ({"P580": [FIRST], "P582": [SOME, SECOND]}, [("1990-01-01", "1995-01-01")]),
        ({"P582": [NONE]}, [(UNKNOWN, "present")]),
        ({"P585": [SOME]}, [(UNKNOWN, UNKNOWN)]),
        ({"P585": [SECOND, FIRST, SECOND]}, [("1995-01-01",) * 2, ("1990-01-01",) * 2]),
        ({"P585": [SOME, FIRST]}, [("1990-01-01",) * 2]),
    ],
)
def test_qualifiers_make_intervals(import_json, out, qualifiers, spans):
    report = import_json(entity("Q1", statement(**qualifiers)))
    assert [row[3:] for row in facts(out)] == spans
    assert (report.statements, report.facts) == (1, len(spans))
