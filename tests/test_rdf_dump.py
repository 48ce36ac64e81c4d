"""Import of Wikidata's RDF: N-Triples and Turtle, against the JSON dump."""

import ast
import bz2
import gzip
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp.io
from dumps import (
    FUZZ,
    GOOD_ROW,
    UNKNOWN,
    check_readable,
    entity,
    facts,
    import_bytes,
    labels,
    lines,
    statement,
    time_snak,
)
from tilp.errors import DataError, TilpError
from tilp.io.dumps import import_dump


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


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
        return import_dump(io.BytesIO(data), out, format="ntriples", **options)

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
    report = import_dump(path, out, progress=told.append)
    assert told[-1] == path.stat().st_size
    assert facts(out) == [GOOD_ROW]
    assert labels(out) == {"Q1": "Ann", "Q2": "mayor"}
    assert labels(out, "relations") == {"P39": "position held"}
    assert (report.read, report.statements, report.facts, report.undated) == (19, 1, 1, 0)
    assert not report.skipped


def test_the_format_may_be_given_and_must_be_known(tmp_path, out):
    with pytest.raises(TilpError, match="'xml'"):
        import_dump(io.BytesIO(ntriples(RDF)), out, format="xml")
    import_dump(io.BytesIO(turtle(RDF)), out, format="turtle")
    assert facts(out) == [GOOD_ROW]


@settings(max_examples=100, deadline=None)
@given(order=st.permutations(RDF.strip().splitlines()))
def test_triples_may_come_in_any_order(folder, order):
    _, rows = import_bytes(ntriples("\n".join(order)), folder, import_dump, format="ntriples")
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
    import_dump(io.BytesIO(data), out, format="ntriples")
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
        import_dump(io.BytesIO(line), out / "b", format="ntriples", on_error="raise")


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
        import_dump(path, out, on_error=on_error)
    assert [path.name for path in tmp_path.iterdir()] == ["a.ttl"]


@pytest.mark.parametrize("cut", [-12, 20])
def test_truncated_packing_of_rdf(tmp_path, out, cut):
    text = RDF + "\n".join(f'wd:Q{n} rdfs:label "label {n}"@en' for n in range(10, 999))
    (tmp_path / "a.ttl.gz").write_bytes(gzip.compress(turtle(text))[:cut])
    with pytest.raises(DataError, match="breaks off"):
        import_dump(tmp_path / "a.ttl.gz", out)
    (tmp_path / "a.nt.gz").write_bytes(gzip.compress(ntriples(text))[:cut])
    report = import_dump(tmp_path / "a.nt.gz", out)
    assert report.malformed == 1
    assert report.problems[0].line == report.read + 1


@FUZZ
@given(data=st.data())
def test_any_damage_to_ntriples_is_imported_or_counted(folder, data):
    text = ntriples(RDF)
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 20, len(text))))
    text = text[:start] + data.draw(st.binary(max_size=8)) + text[stop:]
    report, rows = import_bytes(text, folder, import_dump, format="ntriples")
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
    _, from_rdf = import_bytes(ntriples(text), folder, import_dump, format="ntriples")
    assert from_json == from_rdf == [("Q1", "P39", "Q2", "-430-##-##", "-40#-##-##")]


def test_without_pyoxigraph_the_extra_is_named(monkeypatch, tmp_path, out):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "a.nt").write_bytes(ntriples(RDF))
    with pytest.raises(TilpError) as error:
        import_dump(tmp_path / "a.nt", out)
    assert str(error.value) == 'RDF needs an extra: pip install "tilp[rdf]"'
    assert not out.exists()


def test_optional_and_heavy_packages_are_not_imported_with_the_modules():
    for name in ("dumps", "wikidata", "rdf"):
        path = Path(tilp.io.__file__).parent / f"{name}.py"
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert not any(name in ast.unparse(node) for name in ("pyoxigraph", "polars"))
