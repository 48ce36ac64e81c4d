"""Imports of small dumps written here: what becomes a fact, what is counted, what is left."""

import ast
import bz2
import gzip
import io
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilp.io
import tilp.io.dumps
from tilp.errors import DataError, TilpError
from tilp.io.rdf import import_rdf
from tilp.io.wikidata import import_wikidata
from tilp.time import parse_date

UNKNOWN = "####-##-##"


# --- small dumps -----------------------------------------------------------------------------


def snak(kind, **more):
    return {"snaktype": kind, **more}


def item_snak(key):
    value = {"entity-type": "item", "numeric-id": int(key[1:]), "id": key}
    return snak("value", datavalue={"type": "wikibase-entityid", "value": value})


def time_snak(time, precision=11):
    value = {"time": time, "precision": precision, "timezone": 0, "before": 0, "after": 0}
    return snak("value", datavalue={"type": "time", "value": value})


def day(text):
    return time_snak(f"+{text}T00:00:00Z")


def statement(target="Q2", rank="normal", **qualifiers):
    main = item_snak(target) if isinstance(target, str) else target
    return {"mainsnak": main, "rank": rank, "qualifiers": qualifiers}


def entity(key, *statements, label=None, relation="P39", **labels):
    labels |= {} if label is None else {"en": label}
    return {
        "type": "item" if key[0] == "Q" else "property",
        "id": key,
        "labels": {code: {"language": code, "value": text} for code, text in labels.items()},
        "claims": {relation: list(statements)} if statements else [],
    }


def lines(*entities):
    return b"".join(json.dumps(each).encode() + b"\n" for each in entities)


GOOD = entity("Q1", statement(P580=[day("1990-01-02")], P582=[day("1995-03-04")]), label="Ann")
GOOD_ROW = ("Q1", "P39", "Q2", "1990-01-02", "1995-03-04")


FIRST, SECOND = day("1990-01-01"), day("1995-01-01")
SOME, NONE = snak("somevalue"), snak("novalue")


def table(path):
    header, *rows = path.read_text("utf-8").removesuffix("\n").split("\n")
    return header.split("\t"), [tuple(row.split("\t")) for row in rows]


def facts(out):
    return table(out / "facts.tsv")[1]


def labels(out, name="entities"):
    return {key: label for key, _, label in table(out / f"{name}.tsv")[1]}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "graph"


@pytest.fixture
def run(tmp_path, out):
    """Import entities (or raw bytes) as JSON; gives the report."""

    def run(*content, **options):
        data = content[0] if isinstance(content[0], bytes) else lines(*content)
        (tmp_path / "dump.json").write_bytes(data)
        return import_wikidata(tmp_path / "dump.json", out, **options)

    return run


# --- what is written -------------------------------------------------------------------------


def test_writes_facts_entities_and_relations(run, out):
    report = run(GOOD, entity("Q2", label="mayor"), entity("P39", label="position held"))
    assert (report.read, report.statements, report.facts, report.undated) == (3, 1, 1, 0)
    assert not report.skipped
    assert not report.problems
    assert sorted(path.name for path in out.iterdir()) == [
        "entities.tsv",
        "facts.tsv",
        "relations.tsv",
    ]
    assert table(out / "facts.tsv") == (
        ["subject", "relation", "object", "start", "end"],
        [GOOD_ROW],
    )
    assert table(out / "entities.tsv") == (
        ["id", "key", "label"],
        [("Q1", "Q1", "Ann"), ("Q2", "Q2", "mayor")],
    )
    assert table(out / "relations.tsv") == (
        ["id", "key", "label"],
        [("P39", "P39", "position held")],
    )


def test_the_package_reads_the_folder(run, out):
    run(
        GOOD,
        entity("Q2", statement("Q3", P580=[FIRST], P582=[NONE]), label='the "mayor", of\ta town'),
        entity("Q3", statement("Q1", P585=[time_snak("-0500-00-00T00:00:00Z", 7)], P580=[])),
        entity("Q4", statement("Q1", P582=[SOME])),
        entity("P39", label="position held"),
    )
    graph = tilp.io.read(out)
    assert len(graph) == 4
    assert not len(graph.defects)
    assert graph.frame(names="labels").select("subject", "relation").rows() == [
        ("Ann", "position held"),
        ('the "mayor", of a town', "position held"),
        ("Q3", "position held"),
        ("Q4", "position held"),
    ]
    assert graph.date_text("start").to_list()[1:3] == ["1990-01-01", "-4##-##-##"]
    assert graph.date_text("end").to_list()[1] == "present"


def test_labels_come_before_or_after_and_only_for_what_appears(run, out):
    run(
        entity("P39", label="position held"),
        entity("Q2", label="mayor"),
        entity("Q7", label="never named"),
        GOOD,
        entity("Q3", statement("Q4", P585=[day("2001-01-01")])),
        entity("Q4", label="later"),
        entity("P40", label="child"),
    )
    assert labels(out) == {"Q1": "Ann", "Q2": "mayor", "Q3": "Q3", "Q4": "later"}
    assert labels(out, "relations") == {"P39": "position held"}


def test_labels_of_the_chosen_language_then_of_all_languages_then_the_key(run, out):
    run(
        GOOD | {"labels": entity("Q1", en="Ann", de="Anna", mul="A.")["labels"]},
        entity("Q2", statement("Q3", P585=[day("2001-01-01")]), en="mayor", mul="Major"),
        entity("Q3", en="three"),
        language="de",
    )
    assert labels(out) == {"Q1": "Anna", "Q2": "Major", "Q3": "Q3"}


def test_labels_are_one_line_and_valid_text(run, out):
    run(
        GOOD | {"labels": entity("Q1", en='a\tb\r\nc "d"')["labels"]},
        entity("Q2", statement("Q3", P585=[day("2001-01-01")]), en="\ud800x"),
        entity("Q3", en=" \n\t"),
    )
    assert labels(out) == {"Q1": 'a b c "d"', "Q2": "?x", "Q3": "Q3"}


def test_facts_are_streamed_in_the_order_of_the_dump(run, out):
    many = [entity(f"Q{n}", statement(P585=[day("2001-01-01")])) for n in (30, 10, 20)]
    run(*many)
    assert [row[0] for row in facts(out)] == ["Q30", "Q10", "Q20"]


# --- dates -----------------------------------------------------------------------------------


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
def test_dates_of_json(run, out, time, precision, text):
    run(entity("Q1", statement(P585=[time_snak(time, precision)])))
    assert facts(out) == [("Q1", "P39", "Q2", text, text)]
    assert parse_date(text).kind == ("unknown" if text == UNKNOWN else "known")


def test_centuries_before_our_era_are_read_back_exactly():
    century = parse_date("-4##-##-##")
    assert (century.first_year, century.last_year) == (-499, -400)  # 500 to 401 BCE


@pytest.mark.parametrize("calendar", ["Q1985727", "Q1985786"])
def test_the_calendar_model_is_ignored(run, out, calendar):
    date = day("1700-02-03")
    date["datavalue"]["value"]["calendarmodel"] = f"http://www.wikidata.org/entity/{calendar}"
    run(entity("Q1", statement(P585=[date])))
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
def test_qualifiers_make_intervals(run, out, qualifiers, spans):
    report = run(entity("Q1", statement(**qualifiers)))
    assert [row[3:] for row in facts(out)] == spans
    assert (report.statements, report.facts) == (1, len(spans))


# --- what is kept ----------------------------------------------------------------------------


def test_deprecated_statements_are_counted_not_kept(run, out):
    date = {"P585": [FIRST]}
    report = run(
        entity("Q1", *(statement(rank=rank, **date) for rank in ("deprecated", "preferred")))
    )
    assert len(facts(out)) == 1
    assert report.skipped == {"deprecated": 1}


@pytest.mark.parametrize(
    "main",
    [
        SOME,
        NONE,
        snak("value", datavalue={"type": "string", "value": "x"}),
        snak(
            "value",
            datavalue={
                "type": "wikibase-entityid",
                "value": {"entity-type": "property", "numeric-id": 31, "id": "P31"},
            },
        ),
        snak(
            "value",
            datavalue={
                "type": "wikibase-entityid",
                "value": {"entity-type": "form", "id": "L4-F1"},
            },
        ),
    ],
)
def test_only_items_are_objects(run, out, main):
    report = run(entity("Q1", statement(main, P585=[FIRST])))
    assert not facts(out)
    assert report.skipped == {"not an item": 1}


def test_items_of_old_dumps_have_only_a_number(run, out):
    main = item_snak("Q5")
    del main["datavalue"]["value"]["id"]
    run(entity("Q1", statement(main, P585=[FIRST])))
    assert facts(out)[0][2] == "Q5"


def test_statements_of_properties_and_lexemes_are_not_facts(run, out):
    date = statement(P585=[FIRST])
    report = run(entity("P5", date), entity("L5", date))
    assert not facts(out)
    assert (report.read, report.statements) == (2, 0)


def test_keeps_the_chosen_properties(run, out):
    date = statement(P585=[FIRST])
    both = entity("Q1") | {"claims": {"P39": [date], "P26": [date], "P31": "never looked at"}}
    report = run(both, properties=["P26"])
    assert [row[1] for row in facts(out)] == ["P26"]
    assert report.statements == 1
    assert not report.problems


@pytest.mark.parametrize("properties", [[], ["spouse"], "P39", ["P39\n"]])
def test_bad_property_lists_are_refused(run, out, properties):
    with pytest.raises(TilpError, match="properties"):
        run(GOOD, properties=properties)
    assert not out.exists()


@pytest.mark.parametrize("undated", [False, True])
def test_undated_statements(run, out, undated):
    report = run(entity("Q1", statement(), statement("Q3", P580=[FIRST])), undated=undated)
    assert report.undated == 1
    kept = [("Q1", "P39", "Q2", UNKNOWN, UNKNOWN)] if undated else []
    assert facts(out) == [*kept, ("Q1", "P39", "Q3", "1990-01-01", UNKNOWN)]


# --- forms of the source ---------------------------------------------------------------------

ARRAY = b"[\n" + b",\n".join(lines(GOOD, entity("Q2", label="mayor")).splitlines()) + b"\n]\n"


@pytest.mark.parametrize(
    "data",
    [
        lines(GOOD, entity("Q2", label="mayor")),
        ARRAY,
        ARRAY.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + lines(GOOD, entity("Q2", label="mayor")),
        b"\n\n" + lines(GOOD) + b"  \n\n" + lines(entity("Q2", label="mayor")).rstrip(),
    ],
    ids=["lines", "array", "crlf", "bom", "blanks"],
)
@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        bz2.compress,
        lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:]),
    ],
    ids=["plain", "gzip", "bzip2", "gzip members"],
)
def test_reads_each_form_by_its_bytes(run, out, data, pack):
    report = run(pack(data))
    assert facts(out) == [GOOD_ROW]
    assert labels(out) == {"Q1": "Ann", "Q2": "mayor"}
    assert (report.read, report.malformed) == (2, 0)


@pytest.mark.parametrize("data", [b"", b"[\n]\n", gzip.compress(b"", mtime=0)])
def test_an_empty_dump_gives_empty_tables(run, out, data):
    assert run(data).read == 0
    assert not facts(out)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_reads_a_pipe_that_trickles(out, pack):
    reading, writing = os.pipe()

    def feed():
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            for byte in pack(ARRAY):
                pipe.write(bytes([byte]))

    thread = threading.Thread(target=feed)
    thread.start()
    with os.fdopen(reading, "rb", buffering=0) as stream:
        import_wikidata(stream, out)
        assert not stream.closed
    thread.join()
    assert facts(out) == [GOOD_ROW]


def test_streams_are_named_in_problems(out):
    assert import_wikidata(io.BytesIO(b"x"), out).problems[0].file == "<stream>"


def test_text_streams_are_refused(out):
    with pytest.raises(TilpError, match="binary"):
        import_wikidata(io.StringIO("{}\n"), out)
    assert not out.exists()


def test_a_missing_source_is_named(tmp_path, out):
    for path in (tmp_path / "no.json", tmp_path):
        with pytest.raises(TilpError, match="cannot be read"):
            import_wikidata(path, out)
    assert not out.exists()


def test_progress_counts_packed_bytes(tmp_path, out):
    path = tmp_path / "dump.json.gz"
    noise = b"".join(os.urandom(30_000).hex().encode() + b"\n" for _ in range(100))
    path.write_bytes(gzip.compress(noise + ARRAY))
    told = []
    import_wikidata(path, out, progress=told.append)
    assert told == sorted(set(told))
    assert len(told) > 1
    assert told[-1] == path.stat().st_size


class Endless(io.RawIOBase):
    """Some fifteen megabytes of entities, made as they are read."""

    def __init__(self):
        self.rest = b""
        self.made = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        while len(self.rest) < len(buffer) and self.made < 1500:
            self.made += 1
            self.rest += lines(entity(f"Q{self.made}", label="x" * 10_000)) + lines(GOOD)
        data, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def test_memory_is_bounded(out):
    tracemalloc.start()
    try:
        report = import_wikidata(Endless(), out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.facts == 1500
    assert len(labels(out)) == 2
    assert peak < 6_000_000


# --- malformed input -------------------------------------------------------------------------


def broken(*path, value):
    """The good entity with one nested value replaced."""
    whole = json.loads(json.dumps(GOOD))
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(whole).encode()


STATEMENT = ("claims", "P39", 0)
MAIN = (*STATEMENT, "mainsnak")
START = (*STATEMENT, "qualifiers", "P580", 0)
MALFORMED = [
    b'{"id": "Q1", "labels": ',
    b"{}",
    b"null",
    b"12",
    b"NaN",
    b'"Q1"',
    b"[1, 2]",
    b"[" * 100_000,
    b"9" * 5_000,
    b'{"id": "Q1", "labels": {"en": "\xff\xfe"}}',
    b"\x00\x01\x02",
    broken("id", value=1),
    broken("id", value="Q01"),
    broken("id", value="Q1\n"),
    broken("labels", value=None),
    broken("labels", "en", value="Ann"),
    broken("labels", "en", "value", value=3),
    broken("claims", value="P39"),
    broken("claims", "p39", value=[]),
    broken("claims", "P39", value={}),
    broken(*STATEMENT, value=None),
    broken(*STATEMENT, "rank", value="best"),
    broken(*STATEMENT, "rank", value=["normal"]),
    broken(*MAIN, value=1),
    broken(*MAIN, "snaktype", value=None),
    broken(*MAIN, "datavalue", value="Q2"),
    broken(*MAIN, "datavalue", "type", value=2),
    broken(*MAIN, "datavalue", "value", value="Q2"),
    broken(*MAIN, "datavalue", "value", "id", value=2),
    broken(*MAIN, "datavalue", "value", "id", value="Q2\tP3"),
    broken(*MAIN, "datavalue", "value", "entity-type", value=None),
    broken(*MAIN, "datavalue", "value", value={"entity-type": "item", "numeric-id": True}),
    broken(*MAIN, "datavalue", "value", value={"entity-type": "item", "numeric-id": -4}),
    broken(*STATEMENT, "qualifiers", value=3),
    broken(*STATEMENT, "qualifiers", "P580", value=None),
    broken(*START, value="1990"),
    broken(*START, "snaktype", value="maybe"),
    broken(*START, "datavalue", value=None),
    broken(*START, "datavalue", "type", value="string"),
    broken(*START, "datavalue", "value", value="1990"),
    broken(*START, "datavalue", "value", "precision", value="11"),
    broken(*START, "datavalue", "value", "precision", value=True),
    broken(*START, "datavalue", "value", "precision", value=99),
    broken(*START, "datavalue", "value", "time", value=1990),
    broken(*START, "datavalue", "value", "time", value="1990"),
    broken(*START, "datavalue", "value", "time", value="+1990-13-01T00:00:00Z"),
    broken(*START, "datavalue", "value", "time", value="+1990-01-32T00:00:00Z"),
    broken(*START, "datavalue", "value", "time", value="+0000-01-01T00:00:00Z"),
    broken(*START, "datavalue", "value", "time", value="+999999999999-01-01T00:00:00Z"),
    broken(*START, "datavalue", "value", "time", value="+١٩٩٠-01-01T00:00:00Z"),
    broken(*START, "datavalue", "value", "time", value="+1990-01-01T00:00:00Z\n"),
]


@pytest.mark.parametrize("line", MALFORMED, ids=lambda line: repr(line[-40:]))
def test_malformed_lines_are_counted_and_the_others_imported(run, out, tmp_path, line):
    other = entity("Q8", statement("Q9", P585=[FIRST]))
    report = run(lines(GOOD) + line + b",\n" + lines(other), on_error="skip")
    rows = facts(out)
    assert rows[0] == GOOD_ROW
    assert rows[-1][0] == "Q8"
    assert report.malformed == report.skipped["malformed"] == len(report.problems) == 1
    problem = report.problems[0]
    assert (problem.file, problem.line) == (str(tmp_path / "dump.json"), 2)
    assert problem.found
    assert "left out" in problem.done
    assert len(problem.found) <= 300


@pytest.mark.parametrize("line", MALFORMED, ids=lambda line: repr(line[-40:]))
def test_malformed_lines_raise_if_asked(run, out, tmp_path, line):
    with pytest.raises(DataError, match=r"dump\.json, line 2: .+on_error='skip'"):
        run(lines(GOOD) + line + b"\n", on_error="raise")
    assert [path.name for path in tmp_path.iterdir()] == ["dump.json"]


def test_a_bad_statement_or_label_does_not_take_the_entity_with_it(run, out):
    report = run(
        entity("Q1", statement(), statement(rank=0), statement("Q3", P585=[FIRST]))
        | {"labels": {"en": 5}}
    )
    assert [row[2] for row in facts(out)] == ["Q3"]
    assert (report.read, report.statements, report.undated, report.malformed) == (1, 3, 1, 2)
    assert [problem.done for problem in report.problems] == [
        "label left out",
        "statement left out",
    ]


def test_only_the_first_problems_are_kept_in_detail(run, monkeypatch):
    monkeypatch.setattr(tilp.io.dumps, "MAX_PROBLEMS", 3)
    report = run(b"oops\n" * 10)
    assert report.malformed == 10
    assert [problem.line for problem in report.problems] == [1, 2, 3]


def test_a_line_without_end_is_not_taken_into_memory(run, out, monkeypatch):
    monkeypatch.setattr(tilp.io.dumps, "MAX_LINE", 2000)
    report = run(b"x" * 10_000 + b"\n" + lines(GOOD) + b"y" * 6000)
    assert facts(out) == [GOOD_ROW]
    assert [problem.line for problem in report.problems] == [1, 3]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: gzip.compress(data)[:-12],
        lambda data: gzip.compress(data) + b"rubbish",
        lambda data: gzip.compress(data)[:-8] + b"\0" * 8,
        lambda data: bz2.compress(data[:-9]) + bz2.compress(data)[:-12],
        lambda data: gzip.compress(data) + b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xff\xff\xff",
    ],
    ids=["cut", "rubbish after", "checksum", "bzip2 cut", "deflate"],
)
def test_damaged_packing_is_counted_with_its_line(run, out, tmp_path, spoil):
    good = [entity(f"Q{n}", statement(P585=[FIRST])) for n in range(1, 200)]
    report = run(spoil(lines(*good)))
    assert report.malformed == 1
    assert "packed" in report.problems[0].found
    assert report.problems[0].line == report.read + 1
    assert report.facts == report.read > 0
    with pytest.raises(DataError, match="line"):
        import_wikidata(tmp_path / "dump.json", tmp_path / "b", on_error="raise")


def test_bad_options_are_refused(run, out):
    with pytest.raises(TilpError, match="on_error"):
        run(GOOD, on_error="ignore")
    assert not out.exists()


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["Q1", "P580", "value", "somevalue", "time", "+1990-00-00T00:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value, path=()):
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))
        else:
            yield (*path, key)


VALID = entity(
    "Q1",
    statement(P580=[FIRST, SOME], P582=[NONE], P585=[SECOND]),
    statement("Q3", "preferred"),
    label="Ann",
)


@st.composite
def mutated(draw):
    whole = json.loads(json.dumps(VALID))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(whole))))
        if not path:
            return draw(anything)
        place = whole
        for step in path[:-1]:
            place = place[step]
        if draw(st.booleans()):
            place[path[-1]] = draw(anything)
        else:
            del place[path[-1]]
    return whole


def import_bytes(data, folder, importer=import_wikidata, **options):
    out = folder / os.urandom(6).hex()
    return importer(io.BytesIO(data), out, **options), facts(out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def check_readable(rows):
    for row in rows:
        assert len(row) == 5
        assert all(parse_date(date).kind != "malformed" for date in row[3:])


fuzz = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@fuzz
@given(whole=mutated())
def test_any_mutation_of_a_line_is_imported_or_counted(folder, whole):
    report, rows = import_bytes(lines(GOOD) + lines(whole) + lines(GOOD), folder)
    assert rows[0] == rows[-1] == GOOD_ROW
    check_readable(rows)
    assert report.facts == len(rows)
    assert report.read == 3 or (report.read, report.malformed) == (2, 1)
    # Every statement ends as a fact (here one each) or in one of the counts.
    left = (
        report.undated + report.skipped.get("deprecated", 0) + report.skipped.get("not an item", 0)
    )
    done = [problem.done for problem in report.problems]
    assert report.statements == report.facts + left + done.count("statement left out")


@fuzz
@given(data=st.data())
def test_any_damage_to_the_bytes_is_imported_or_counted(folder, data):
    line = lines(VALID)
    start = data.draw(st.integers(0, len(line)))
    stop = data.draw(st.integers(start, min(start + 20, len(line))))
    line = line[:start] + data.draw(st.binary(max_size=8)) + line[stop:]
    _, rows = import_bytes(lines(GOOD) + line + b"\n" + lines(GOOD), folder)
    assert rows[0] == rows[-1] == GOOD_ROW
    check_readable(rows)


# --- the folder ------------------------------------------------------------------------------


def test_a_folder_with_content_is_not_overwritten(run, out):
    out.mkdir()
    (out / "mine").write_text("x")
    with pytest.raises(TilpError, match="not empty: choose another"):
        run(GOOD)
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_an_empty_folder_and_missing_parents_are_fine(tmp_path, out):
    out.mkdir()
    for target in (out, tmp_path / "a" / "b"):
        import_wikidata(io.BytesIO(lines(GOOD)), target)
        assert facts(target) == [GOOD_ROW]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "graph"]


def test_a_file_in_the_way_is_named(run, out):
    out.write_text("x")
    with pytest.raises(TilpError, match="cannot be written"):
        run(GOOD)
    assert out.read_text() == "x"


def test_the_folder_appears_only_when_complete(tmp_path, out):
    seen = []
    import_wikidata(io.BytesIO(lines(GOOD)), out, progress=lambda _: seen.append(out.exists()))
    assert seen
    assert not any(seen)
    assert out.exists()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_an_interrupted_import_leaves_nothing(tmp_path, out, failure):
    def stop(_):
        raise failure

    with pytest.raises(failure):
        import_wikidata(io.BytesIO(lines(GOOD)), out, progress=stop)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path, out):
    def fail(_):
        raise OSError(28, "No space left on device")

    with pytest.raises(TilpError, match=r"cannot be written.*No space left"):
        import_wikidata(io.BytesIO(lines(GOOD)), out, progress=fail)
    assert not list(tmp_path.iterdir())


def test_a_killed_import_leaves_no_folder_under_the_final_name(tmp_path, out):
    script = (
        "import io, os, sys, pathlib\n"
        "from tilp.io.wikidata import import_wikidata\n"
        "import_wikidata(io.BytesIO(b'{}'), pathlib.Path(sys.argv[1]),"
        " progress=lambda _: os._exit(9))\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(out)]).returncode == 9
    assert not out.exists()


# --- RDF -------------------------------------------------------------------------------------

PREFIXES = {
    "wd": "http://www.wikidata.org/entity/",
    "wds": "http://www.wikidata.org/entity/statement/",
    "wdv": "http://www.wikidata.org/value/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "wdno": "http://www.wikidata.org/prop/novalue/",
    "p": "http://www.wikidata.org/prop/",
    "ps": "http://www.wikidata.org/prop/statement/",
    "psv": "http://www.wikidata.org/prop/statement/value/",
    "pq": "http://www.wikidata.org/prop/qualifier/",
    "pqv": "http://www.wikidata.org/prop/qualifier/value/",
    "prv": "http://www.wikidata.org/prop/reference/value/",
    "wikibase": "http://wikiba.se/ontology#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def expand(term):
    """`wd:Q1`, `_:b` and `"text"@en` as N-Triples has them."""
    if term.startswith("_:"):
        return term
    if term.startswith('"'):
        text, mark, datatype = term.rpartition("^^")
        return f"{text}^^{expand(datatype)}" if mark else term
    prefix, _, name = term.partition(":")
    return f"<{PREFIXES[prefix]}{name}>"


def triples(text):
    """One triple a line, with prefixes; a date is written short."""
    found = []
    for line in text.strip().splitlines():
        subject, predicate, value = line.split(maxsplit=2)
        if value.startswith('"') and value.endswith('Z"'):
            value += "^^xsd:dateTime"
        found.append((subject, predicate, value))
    return found


def ntriples(text):
    return "".join(f"{' '.join(map(expand, triple))} .\n" for triple in triples(text)).encode()


def turtle(text):
    head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items())
    return (head + "".join(f"{' '.join(triple)} .\n" for triple in triples(text))).encode()


LINK = """
wd:Q1 p:P39 wds:a
wds:a ps:P39 wd:Q2
"""
RDF = f"""
{LINK.strip()}
wd:Q1 wdt:P39 wd:Q2
wds:a rdf:type wikibase:Statement
wds:a wikibase:rank wikibase:NormalRank
wds:a pq:P580 "1990-01-02T00:00:00Z"
wds:a pqv:P580 wdv:s
wdv:s wikibase:timeValue "1990-01-02T00:00:00Z"
wdv:s wikibase:timePrecision "11"^^xsd:integer
wds:a pq:P582 "1995-03-04T00:00:00Z"
wds:a pqv:P582 wdv:e
wdv:e wikibase:timeValue "1995-03-04T00:00:00Z"
wdv:e wikibase:timePrecision "11"^^xsd:integer
wds:a pq:P1 "other"
wd:Q1 rdfs:label "Ann"@en
wd:Q1 rdfs:label "Anna"@de
wd:Q2 rdfs:label "mayor"@en
wd:Q9 rdfs:label "never named"@en
wd:P39 rdfs:label "position\\theld"@en
"""


@pytest.fixture
def rdf(out):
    """Import N-Triples written with prefixes; gives the report."""

    def run(text, **options):
        data = text if isinstance(text, bytes) else ntriples(text)
        return import_rdf(io.BytesIO(data), out, format="ntriples", **options)

    return run


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.nt", ntriples),
        ("a.ttl", turtle),
        ("a.nt.gz", lambda text: gzip.compress(ntriples(text))),
        ("a.TTL.gz", lambda text: gzip.compress(turtle(text))),
        ("a.ttl.bz2", lambda text: bz2.compress(turtle(text))),
    ],
)
def test_reads_ntriples_and_turtle_by_their_name(tmp_path, out, name, write):
    path = tmp_path / name
    path.write_bytes(write(RDF))
    told = []
    report = import_rdf(path, out, progress=told.append)
    assert told[-1] == path.stat().st_size
    assert facts(out) == [GOOD_ROW]
    assert labels(out) == {"Q1": "Ann", "Q2": "mayor"}
    assert labels(out, "relations") == {"P39": "position held"}
    assert (report.read, report.statements, report.facts, report.undated) == (19, 1, 1, 0)
    assert not report.skipped


def test_the_format_may_be_given_and_must_be_known(tmp_path, out):
    with pytest.raises(TilpError, match="ntriples"):
        import_rdf(io.BytesIO(ntriples(RDF)), out)
    with pytest.raises(TilpError, match="'xml'"):
        import_rdf(io.BytesIO(ntriples(RDF)), out, format="xml")
    with pytest.raises(TilpError, match=r"does not end in \.nt"):
        import_rdf(tmp_path / "a.gz", out)
    import_rdf(io.BytesIO(turtle(RDF)), out, format="turtle")
    assert facts(out) == [GOOD_ROW]


@settings(max_examples=100, deadline=None)
@given(order=st.permutations(RDF.strip().splitlines()))
def test_triples_may_come_in_any_order(folder, order):
    _, rows = import_bytes(ntriples("\n".join(order)), folder, import_rdf, format="ntriples")
    assert rows == [GOOD_ROW]


@pytest.mark.parametrize(
    ("time", "precision", "text"),
    [
        ("1952-05-12T00:00:00Z", 11, "1952-05-12"),
        ("1952-05-01T00:00:00Z", 10, "1952-05-##"),
        ("1952-01-01T00:00:00Z", 9, "1952-##-##"),
        ("1952-01-01T00:00:00Z", 11, "1952-01-01"),
        ("1950-01-01T00:00:00Z", 8, "195#-##-##"),
        ("2000-01-01T00:00:00Z", 7, "19##-##-##"),
        ("2000-01-01T00:00:00Z", 6, UNKNOWN),
        # Astronomical years: 0000 is 1 BCE, -0430 is 431 BCE.
        ("0000-01-01T00:00:00Z", 9, "0000-##-##"),
        ("-0430-01-01T00:00:00Z", 9, "-430-##-##"),
        ("-0043-03-15T00:00:00Z", 11, "-43-03-15"),
        # Wikibase leaves decades and centuries in historical years.
        ("-0430-01-01T00:00:00Z", 8, "-43#-##-##"),
        ("-0500-01-01T00:00:00Z", 7, "-4##-##-##"),
        # Without a precision.
        ("1952-05-12T00:00:00Z", None, "1952-05-12"),
        ("1952-01-01T00:00:00Z", None, "1952-##-##"),
        ("-0430-01-01T00:00:00Z", None, "-430-##-##"),
        ("1952-05-01T00:00:00Z", None, "1952-05-01"),
    ],
)
def test_dates_of_rdf(rdf, out, time, precision, text):
    node = f"""
wds:a pqv:P585 wdv:t
wdv:t wikibase:timeValue "{time}"
wdv:t wikibase:timePrecision "{precision}"^^xsd:integer
"""
    simple = f'{LINK}wds:a pq:P585 "{time}"\n'
    rdf(simple + (node.strip() if precision is not None else ""))
    assert facts(out) == [("Q1", "P39", "Q2", text, text)]


def test_value_nodes_refine_their_own_date_only(rdf, out):
    rdf(f"""{LINK}wds:a pq:P580 "1990-01-01T00:00:00Z"
wds:a pq:P580 "1985-05-06T00:00:00Z"
wds:a pqv:P580 wdv:t
wdv:t wikibase:timeValue "1990-01-01T00:00:00Z"
wdv:t wikibase:timePrecision "11"^^xsd:integer
wds:a pqv:P580 wdv:missing
wds:a pqv:P582 wdv:missing""")
    assert facts(out)[0][3:] == ("1985-05-06", UNKNOWN)


@pytest.mark.parametrize(
    ("qualifiers", "span"),
    [
        ("wds:a pq:P580 _:some", (UNKNOWN, UNKNOWN)),
        ("wds:a pq:P582 wd:.well-known/genid/0123", (UNKNOWN, UNKNOWN)),
        ("wds:a rdf:type wdno:P582", (UNKNOWN, "present")),
        ("wds:a rdf:type wdno:P580", (UNKNOWN, UNKNOWN)),
        ('wds:a pq:P585 "1990-05-06T00:00:00Z"', ("1990-05-06",) * 2),
        ('wds:a pq:P585 "1990-05-06"^^xsd:date', ("1990-05-06",) * 2),
        (
            'wds:a pq:P585 "1990-05-06T00:00:00Z"\nwds:a pq:P580 "1980-05-06T00:00:00Z"',
            ("1980-05-06", UNKNOWN),
        ),
    ],
)
def test_qualifiers_of_rdf_make_intervals(rdf, out, qualifiers, span):
    rdf(LINK + qualifiers)
    assert facts(out) == [("Q1", "P39", "Q2", *span)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{RDF}wds:a wikibase:rank wikibase:DeprecatedRank", "deprecated"),
        ('wd:Q1 p:P39 wds:a\nwds:a ps:P39 "text"', "not an item"),
        ("wd:Q1 p:P39 wds:a\nwds:a ps:P39 _:some", "not an item"),
        ("wd:Q1 p:P39 wds:a\nwds:a rdf:type wdno:P39", "not an item"),
        ("wd:P1 p:P39 wds:a\nwds:a ps:P39 wd:Q2", "not an item"),
        ("wd:Q1 p:P39 wds:a\nwds:a ps:P39 wd:P2", "not an item"),
        ("wds:a ps:P39 wd:Q2", "incomplete"),
        ("wd:Q1 p:P39 wds:a", "incomplete"),
        ("wds:a pq:P580 _:some", "incomplete"),
    ],
)
def test_what_is_not_a_fact_in_rdf_is_counted(rdf, out, text, reason):
    report = rdf(text)
    assert not facts(out)
    assert report.skipped == {reason: 1}


@pytest.mark.parametrize("undated", [False, True])
def test_undated_statements_of_rdf(rdf, out, undated):
    assert rdf(LINK, undated=undated).undated == 1
    assert len(facts(out)) == undated


def test_keeps_the_chosen_properties_of_rdf(rdf, out):
    other = RDF.replace("P39", "P26").replace("wds:a", "wds:b")
    report = rdf(RDF + other.strip(), properties={"P26"}, language="de")
    assert [row[1] for row in facts(out)] == ["P26"]
    assert report.statements == 1
    assert not report.skipped
    assert labels(out) == {"Q1": "Anna", "Q2": "Q2"}


def test_labels_for_all_languages_in_rdf(rdf, out):
    rdf(f'{RDF}wd:Q1 rdfs:label "A."@mul\nwd:Q2 rdfs:label "Mayor"@mul', language="DE")
    assert labels(out) == {"Q1": "Anna", "Q2": "Mayor"}


def test_other_wikibases_are_read(out):
    data = ntriples(RDF).replace(b"http://www.wikidata.org/", b"https://base.example/")
    import_rdf(io.BytesIO(data), out, format="ntriples")
    assert facts(out) == [GOOD_ROW]


BAD_LINES = [
    b"oops",
    b"<http://a/b> <http://a/c>",
    b'<http://a/b> <http://a/c> "open .',
    b"<http://a/b> <http://a/c> <http://a b> .",
    b'<http://a/b> <http://a/c> "\xff" .',
    b'"literal" <http://a/c> "x" .',
    b"\x00",
]


@pytest.mark.parametrize("line", BAD_LINES)
@pytest.mark.parametrize("place", [0, 3])
def test_malformed_ntriples_are_counted_line_by_line(rdf, out, line, place):
    good = ntriples(RDF).splitlines(keepends=True)
    report = rdf(b"".join([*good[:place], line, b"\n# a comment\n\n", *good[place:]]))
    assert facts(out) == [GOOD_ROW]
    assert report.read == len(good)
    assert report.malformed == 1
    assert report.problems[0].line == place + 1
    with pytest.raises(DataError, match=r"<stream>, line 1: .+on_error='skip'"):
        import_rdf(io.BytesIO(line), out / "b", format="ntriples", on_error="raise")


@pytest.mark.parametrize(
    "value",
    ['"soon"^^xsd:dateTime', '"1990-13-01T00:00:00Z"^^xsd:dateTime', '"1990-01-01"^^xsd:string'],
)
def test_malformed_dates_of_rdf_are_counted_and_their_statement_left_out(rdf, out, value):
    report = rdf(f"{RDF}wds:a pq:P580 {value}")
    assert not facts(out)
    assert report.skipped == {"malformed": 1, "unreadable date": 1}
    assert report.problems[0].line == 20


def test_malformed_value_nodes_leave_the_simple_date(rdf, out):
    report = rdf(f"""{LINK.strip()}
wds:a pq:P585 "1990-05-06T00:00:00Z"
wds:a pqv:P585 wdv:t
wdv:t wikibase:timeValue "soon"
wdv:t wikibase:timePrecision "fine" """)
    assert facts(out)[0][3] == "1990-05-06"
    assert [problem.line for problem in report.problems] == [5, 6]


def test_a_year_that_its_precision_cannot_have(rdf, out):
    report = rdf(f"""{LINK}wds:a pqv:P585 wdv:t
wdv:t wikibase:timeValue "0000-01-01T00:00:00Z"
wdv:t wikibase:timePrecision "7"^^xsd:integer""")
    assert not facts(out)
    assert report.problems[0].line is None
    assert "Q1, P39" in report.problems[0].found


@pytest.mark.parametrize("on_error", ["skip", "raise"])
def test_bad_turtle_names_its_line_and_leaves_nothing(tmp_path, out, on_error):
    path = tmp_path / "a.ttl"
    path.write_bytes(turtle(RDF) + b"wd:Q1 oops .\n" + turtle(RDF))
    line = len(PREFIXES) + 20
    with pytest.raises(DataError, match=rf"a\.ttl, line {line}: .+N-Triples"):
        import_rdf(path, out, on_error=on_error)
    assert [path.name for path in tmp_path.iterdir()] == ["a.ttl"]


@pytest.mark.parametrize("cut", [-12, 20])
def test_truncated_packing_of_rdf(tmp_path, out, cut):
    text = RDF + "\n".join(f'wd:Q{n} rdfs:label "label {n}"@en' for n in range(10, 999))
    (tmp_path / "a.ttl.gz").write_bytes(gzip.compress(turtle(text))[:cut])
    with pytest.raises(DataError, match="breaks off"):
        import_rdf(tmp_path / "a.ttl.gz", out)
    (tmp_path / "a.nt.gz").write_bytes(gzip.compress(ntriples(text))[:cut])
    report = import_rdf(tmp_path / "a.nt.gz", out)
    assert report.malformed == 1
    assert report.problems[0].line == report.read + 1


@fuzz
@given(data=st.data())
def test_any_damage_to_ntriples_is_imported_or_counted(folder, data):
    text = ntriples(RDF)
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 20, len(text))))
    text = text[:start] + data.draw(st.binary(max_size=8)) + text[stop:]
    report, rows = import_bytes(text, folder, import_rdf, format="ntriples")
    check_readable(rows)
    assert report.read + report.malformed >= 16


def test_json_and_rdf_of_the_same_statement_agree(folder):
    dates = {
        "P580": [time_snak("-0431-00-00T00:00:00Z", 9)],
        "P582": [time_snak("-0400-00-00T00:00:00Z", 8)],
    }
    _, from_json = import_bytes(lines(entity("Q1", statement(**dates))), folder)
    text = f"""{LINK}wds:a pqv:P580 wdv:s
wdv:s wikibase:timeValue "-0430-01-01T00:00:00Z"
wdv:s wikibase:timePrecision "9"^^xsd:integer
wds:a pqv:P582 wdv:e
wdv:e wikibase:timeValue "-0400-01-01T00:00:00Z"
wdv:e wikibase:timePrecision "8"^^xsd:integer"""
    _, from_rdf = import_bytes(ntriples(text), folder, import_rdf, format="ntriples")
    assert from_json == from_rdf == [("Q1", "P39", "Q2", "-430-##-##", "-40#-##-##")]


def test_without_pyoxigraph_the_extra_is_named(monkeypatch, tmp_path, out):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "a.nt").write_bytes(ntriples(RDF))
    with pytest.raises(TilpError) as error:
        import_rdf(tmp_path / "a.nt", out)
    assert str(error.value) == 'RDF needs an extra: pip install "tilp[rdf]"'
    assert not out.exists()


def test_optional_and_heavy_packages_are_not_imported_with_the_modules():
    package = Path(tilp.io.dumps.__file__).parent
    for path in (*package.glob("*.py"), package.parent / "wikidata.py", package.parent / "rdf.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert not any(name in ast.unparse(node) for name in ("pyoxigraph", "polars"))
