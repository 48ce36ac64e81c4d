"""Wikidata's RDF as a graph: the statement nodes of N-Triples or Turtle, through pyoxigraph.

The triples of a statement may be in any order and far apart, so all statement nodes of the chosen
properties, their date qualifiers and the time values stay in memory until the end of the input;
labels do not. Other Wikibase sites name their nodes alike and are read as well.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from tilp.errors import DataError
from tilp.io import dumps
from tilp.io.dumps import DATE_PROPERTIES, UNKNOWN, Importer, MalformedError, Source, shorten
from tilp.types import DumpFormat

_XSD = "http://www.w3.org/2001/XMLSchema#"
_ITEM = re.compile(r".*/entity/(Q[1-9][0-9]*)")
_NAMED = re.compile(r".*/entity/([QP][1-9][0-9]*)")
_NO_VALUE = re.compile(r".*/prop/novalue/(P[1-9][0-9]*)")
_PREDICATE = re.compile(
    r".*/prop/(?P<part>statement/|qualifier/value/|qualifier/|)(?P<property>P[1-9][0-9]*)"
    r"|https?://wikiba\.se/ontology(?:-beta)?#(?P<term>rank|timeValue|timePrecision)"
    r"|http://www\.w3\.org/2000/01/rdf-schema#(?P<label>label)"
    r"|http://www\.w3\.org/1999/02/22-rdf-syntax-ns#(?P<type>type)"
)


def read_rdf(source: Source, importer: Importer, format: DumpFormat) -> None:
    """Import Wikidata's statement nodes.

    A date whose value node is missing counts as a day, or as a year if it is midnight of 1 January,
    which Wikidata writes for years.
    """
    parse = _parse_turtle if format is DumpFormat.TURTLE else _parse_ntriples
    statements = _Statements(importer)
    for line, triple in parse(source, importer):
        with importer.reports(line, "value left out"):
            statements.add(triple)
    statements.write()


def _parse_ntriples(source: Source, importer: Importer) -> Iterator[tuple[int | None, Any]]:
    """Parse line by line: the parser itself goes on after an error, but loses lines on the way."""
    from pyoxigraph import RdfFormat, parse

    for line, text in source.lines(importer):
        try:
            triples = list(parse(text, RdfFormat.N_TRIPLES))
        except SyntaxError as error:
            importer.malformed(line, f"{shorten(text.strip())} ({_reason(error)})")
            continue
        importer.read += len(triples)
        yield from ((line, triple) for triple in triples)


def _parse_turtle(source: Source, importer: Importer) -> Iterator[tuple[int | None, Any]]:
    from pyoxigraph import RdfFormat, parse

    try:
        for triple in parse(source.stream, RdfFormat.TURTLE):
            importer.read += 1
            source.tick()
            yield None, triple
    except SyntaxError as error:
        raise DataError(
            f"{source.name}, line {error.lineno}: {_reason(error)}. Turtle cannot be read past an "
            "error: correct the line, or take N-Triples, where a bad line is left out by itself."
        ) from None
    except Source.DECOMPRESSION_ERRORS as error:
        raise source.unreadable(error) from error
    source.tick()


def _reason(error: SyntaxError) -> str:
    return re.sub(r"^Parser error .*?: ", "", error.msg or "not RDF")


class _Time(NamedTuple):
    """A time as written, and whether it is the midnight that may stand for a whole year."""

    year: int
    month: int
    day: int
    new_year: bool


@dataclass(slots=True)
class _Statement:
    """The node of a statement: None is not seen yet, the empty text is no item."""

    subject: str | None = None
    relation: str | None = None
    object: str | None = None
    deprecated: bool = False
    unreadable: bool = False
    dates: list[tuple[str, _Time | str]] = field(default_factory=list)
    values: list[tuple[str, str]] = field(default_factory=list)


class _Statements:
    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self._statements: defaultdict[str, _Statement] = defaultdict(_Statement)
        self._times: dict[str, _Time] = {}  # by node; likewise precisions
        self._precisions: dict[str, int] = {}

    def add(self, triple: Any) -> None:
        """Add a triple of pyoxigraph about a statement, a time or a label; ignore any other."""
        node, term = getattr(triple.subject, "value", None), triple.object
        text = getattr(term, "value", None)
        if node is None or text is None:
            return  # a triple about a triple
        is_literal = hasattr(term, "datatype")
        kind, name = _predicate(triple.predicate.value)
        match kind:
            case "link" if self._importer.includes(name):
                statement = self._statements[text]
                statement.subject = _item(node)
                statement.relation = statement.relation or name
            case "statement" if self._importer.includes(name):
                statement = self._statements[node]
                statement.relation = name
                statement.object = "" if is_literal else _item(text)
            case "qualifier" if name in DATE_PROPERTIES:
                statement = self._statements[node]
                try:
                    # A qualifier with some unknown value has a node without content for it.
                    date = _time(term) if is_literal else UNKNOWN
                except MalformedError:
                    statement.unreadable = True
                    raise
                statement.dates.append((name, date))
            case "qualifier/value" if name in DATE_PROPERTIES:
                self._statements[node].values.append((name, text))
            case "timeValue":
                self._times[node] = _time(term)
            case "timePrecision":
                if not is_literal or not re.fullmatch(r"\+?[0-9]{1,2}", text):
                    raise MalformedError(f"{shorten(text)} in place of a time's precision")
                self._precisions[node] = int(text)
            case "rank" if text.endswith("#DeprecatedRank"):
                self._statements[node].deprecated = True
            case "type" if match := _NO_VALUE.fullmatch(text):
                # It is not said whether the statement itself or its qualifier has no value.
                if match[1] in DATE_PROPERTIES:
                    date = dumps.PRESENT if match[1] == dumps.END else UNKNOWN
                    self._statements[node].dates.append((match[1], date))
                elif self._importer.includes(match[1]):
                    self._statements[node].object = ""
            case "label" if is_literal and term.language and (match := _NAMED.fullmatch(node)):
                self._importer.label(match[1], term.language, text)

    def write(self) -> None:
        for statement in self._statements.values():
            about = f"{statement.subject}, {statement.relation}"
            with self._importer.reports(None, "statement left out", about):
                self._write(statement)

    def _write(self, statement: _Statement) -> None:
        importer = self._importer
        if statement.relation is None:
            # Only its qualifiers were seen: it belongs to another property, if some are chosen.
            if importer.properties is None:
                importer.skip("incomplete")
            return
        importer.statements += 1
        if statement.deprecated:
            importer.skip("deprecated")
        elif statement.subject is None or statement.object is None:
            importer.skip("incomplete")
        elif not statement.subject or not statement.object:
            importer.skip("not an item")
        elif statement.unreadable:
            importer.skip("unreadable date")
        else:
            dates = self._dates(statement)
            importer.statement(statement.subject, statement.relation, statement.object, dates)

    def _dates(self, statement: _Statement) -> dict[str, list[str]]:
        dates: dict[str, list[str]] = {}
        precise = set()
        for name, node in statement.values:
            if node in self._times:
                precise.add((name, self._times[node]))
                date = _date(self._times[node], self._precisions.get(node))
                dates.setdefault(name, []).append(date)
        for name, time in statement.dates:
            if isinstance(time, str):
                dates.setdefault(name, []).append(time)
            elif (name, time) not in precise:
                dates.setdefault(name, []).append(_date(time, None))
        for name, _ in statement.values:
            dates.setdefault(name, [UNKNOWN])
        return dates


@lru_cache(maxsize=1 << 16)
def _predicate(iri: str) -> tuple[str, str]:
    """Return the kind of a predicate, and the property it is about."""
    match = _PREDICATE.fullmatch(iri)
    if match is None:
        return "", ""
    if name := match["property"]:
        return match["part"].rstrip("/") or "link", name
    return match["term"] or match["label"] or match["type"], ""


def _item(iri: str) -> str:
    match = _ITEM.fullmatch(iri)
    return match[1] if match else ""


def _time(term: Any) -> _Time:
    datatype = getattr(term, "datatype", None)
    if datatype is None or datatype.value not in (f"{_XSD}dateTime", f"{_XSD}date"):
        raise MalformedError(f"{shorten(term.value)} in place of an xsd:dateTime")
    return _Time(*dumps.parse_time(term.value), term.value.endswith("-01-01T00:00:00Z"))


def _date(time: _Time, precision: int | None) -> str:
    if precision is None:
        precision = 9 if time.new_year else 11
    # RDF counts years astronomically (XSD 1.1: 0 is 1 BCE), but Wikibase converts them only from
    # the precision of a year on; decades and centuries keep the historical count.
    return dumps.date_text(*time[:3], precision, historical=precision in (7, 8))
