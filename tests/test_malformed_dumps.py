"""Malformed dumps are imported as far as possible, and counted."""

import bz2
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumps import (
    FIRST,
    FUZZ,
    GOOD,
    GOOD_ROW,
    NONE,
    SECOND,
    SOME,
    check_readable,
    entity,
    facts,
    import_bytes,
    lines,
    statement,
)
from tilp.errors import DataError, TilpError
from tilp.io.dumps import MAX_LINE, Importer, Source, import_dump
from tilp.io.wikidata import read_json


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


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
def test_malformed_lines_are_counted_and_the_others_imported(import_json, out, tmp_path, line):
    other = entity("Q8", statement("Q9", P585=[FIRST]))
    report = import_json(lines(GOOD) + line + b",\n" + lines(other), on_error="skip")
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
def test_malformed_lines_raise_if_asked(import_json, out, tmp_path, line):
    with pytest.raises(DataError, match=r"dump\.json, line 2: .+on_error='skip'"):
        import_json(lines(GOOD) + line + b"\n", on_error="raise")
    assert [path.name for path in tmp_path.iterdir()] == ["dump.json"]


def test_a_bad_statement_or_label_does_not_take_the_entity_with_it(import_json, out):
    report = import_json(
        entity("Q1", statement(), statement(rank=0), statement("Q3", P585=[FIRST]))
        | {"labels": {"en": 5}}
    )
    assert [row[2] for row in facts(out)] == ["Q3"]
    assert (report.read, report.statements, report.undated, report.malformed) == (1, 3, 1, 2)
    assert [problem.done for problem in report.problems] == [
        "label left out",
        "statement left out",
    ]


def import_limited(data, out, max_line=MAX_LINE, **options):
    source = Source(io.BytesIO(data), max_line=max_line)
    importer = Importer(
        source.name,
        out,
        language="en",
        properties=None,
        undated=False,
        on_error="skip",
        **options,
    )
    with source, importer.writing():
        read_json(source, importer)
    return importer.report()


def test_only_the_first_problems_are_listed(out):
    report = import_limited(b"oops\n" * 10, out, max_problems=3)
    assert report.malformed == 10
    assert [problem.line for problem in report.problems] == [1, 2, 3]


def test_a_line_without_end_is_not_taken_into_memory(out):
    data = b"x" * 10_000 + b"\n" + lines(GOOD) + b"y" * 6000
    report = import_limited(data, out, max_line=2000)
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
def test_damaged_packing_is_counted_with_its_line(import_json, out, tmp_path, spoil):
    good = [entity(f"Q{n}", statement(P585=[FIRST])) for n in range(1, 200)]
    report = import_json(spoil(lines(*good)))
    assert report.malformed == 1
    assert "compressed" in report.problems[0].found
    assert report.problems[0].line == report.read + 1
    assert report.facts == report.read > 0
    with pytest.raises(DataError, match="line"):
        import_dump(tmp_path / "dump.json", tmp_path / "b", on_error="raise")


def test_bad_options_are_refused(import_json, out):
    with pytest.raises(TilpError, match="on_error"):
        import_json(GOOD, on_error="ignore")
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


@FUZZ
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


@FUZZ
@given(data=st.data())
def test_any_damage_to_the_bytes_is_imported_or_counted(folder, data):
    line = lines(VALID)
    start = data.draw(st.integers(0, len(line)))
    stop = data.draw(st.integers(start, min(start + 20, len(line))))
    line = line[:start] + data.draw(st.binary(max_size=8)) + line[stop:]
    _, rows = import_bytes(lines(GOOD) + line + b"\n" + lines(GOOD), folder)
    assert rows[0] == rows[-1] == GOOD_ROW
    check_readable(rows)
