"""Wikidata's RDF as a graph: the statement nodes of N-Triples or Turtle, through pyoxigraph.

The triples of a statement may be in any order and far apart, so all statement nodes of the chosen
properties, their date qualifiers and the time values stay in memory until the end of the input;
labels do not. Other Wikibase sites name their nodes alike and are read as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from tilp.errors import DataError, TilpError
from tilp.io import dumps
from tilp.io.dumps import DATE_PROPERTIES, UNKNOWN, Importer, MalformedError, Source, shorten

if TYPE_CHECKING:
    import pyoxigraph

RdfFormat = Literal["ntriples", "turtle"]

_FORMATS: dict[str, RdfFormat] = {".nt": "ntriples", ".ttl": "turtle"}
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


def import_rdf(
    source: Path | IO[bytes],
    out: Path,
    *,
    format: RdfFormat | None = None,
    language: str = "en",
    properties: Collection[str] | None = None,
    undated: bool = False,
    on_error: dumps.OnError = "skip",
    progress: Callable[[int], None] | None = None,
) -> dumps.ImportReport:
    """Turn Wikidata's statement nodes in RDF into a folder of tables.

    What becomes a fact, and the other arguments, are as for `import_wikidata`. A date whose value
    node is missing counts as a day, or as a year if it is midnight of 1 January, which Wikidata
    writes for years.

    Args:
        source: N-Triples or Turtle, plain, gzip or bzip2, or an open binary stream.
        out: the folder to write; it must not exist or be empty, and appears when complete.
        format: `"ntriples"` or `"turtle"`; by default it follows from the name, `.nt` or `.ttl`,
            perhaps with `.gz` or `.bz2` after it.
        language: language of the labels; English by default.
        properties: the properties to import; all by default.
        undated: whether to write statements without any date, too; False by default.
        on_error: `"skip"` (default) leaves malformed lines and values out, `"raise"` stops at the
            first. Bad syntax in Turtle always raises, since what follows it cannot be read.
        progress: called with the number of (compressed) bytes read so far.

    Raises:
        DataError: something is malformed, and `on_error` is `"raise"` or the format Turtle.
        TilpError: pyoxigraph is not there, the source cannot be read, the format is not known,
            or the folder cannot be written.
    """
    opened = Source(source, progress)
    format = format or rdf_format(PurePath(opened.name))
    if format is None:
        remedy = "give format='ntriples' or 'turtle'"
        raise TilpError(f"{opened.name} does not end in .nt or .ttl: {remedy}")
    if format not in _FORMATS.values():
        raise TilpError(f"format is {format!r}: choose 'ntriples' or 'turtle'")
    parse = _parse_turtle if format == "turtle" else _parse_ntriples
    try:
        import pyoxigraph  # noqa: F401
    except ImportError:
        raise TilpError('RDF needs an extra: pip install "tilp[rdf]"') from None
    importer = Importer(opened.name, out, language, properties, undated, on_error)
    with opened, importer:
        statements = _Statements(importer)
        for line, triple in parse(opened, importer):
            try:
                statements.add(triple)
            except MalformedError as error:
                importer.malformed(line, str(error), "value left out")
        statements.write()
    return importer.report()


def rdf_format(path: PurePath) -> RdfFormat | None:
    """Return the RDF format that a file's name stands for, if any."""
    name = PurePath(path.name.lower())
    if name.suffix in (".gz", ".bz2"):
        name = PurePath(name.stem)
    return _FORMATS.get(name.suffix)


class _Triple(NamedTuple):
    """A triple as text; only a literal object has a datatype."""

    subject: str
    predicate: str
    object: str
    datatype: str | None
    language: str | None


def _plain(triple: pyoxigraph.Quad | pyoxigraph.Triple) -> _Triple | None:
    subject = getattr(triple.subject, "value", None)
    value = getattr(triple.object, "value", None)
    if subject is None or value is None:
        return None  # a triple about a triple
    datatype = getattr(triple.object, "datatype", None)
    language = getattr(triple.object, "language", None)
    return _Triple(subject, triple.predicate.value, value, datatype and datatype.value, language)


def _parse_ntriples(source: Source, importer: Importer) -> Iterator[tuple[int | None, _Triple]]:
    """Parse line by line: the parser itself goes on after an error, but loses lines on the way."""
    from pyoxigraph import RdfFormat, parse

    for line, text in source.lines(importer):
        try:
            triples = list(parse(text, RdfFormat.N_TRIPLES))
        except SyntaxError as error:
            importer.malformed(line, f"{shorten(text.strip())} ({_reason(error)})")
            continue
        importer.read += len(triples)
        yield from ((line, plain) for triple in triples if (plain := _plain(triple)))


def _parse_turtle(source: Source, importer: Importer) -> Iterator[tuple[int | None, _Triple]]:
    from pyoxigraph import RdfFormat, parse

    try:
        for triple in parse(source.stream, RdfFormat.TURTLE):
            importer.read += 1
            source.tick()
            if plain := _plain(triple):
                yield None, plain
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

    def add(self, triple: _Triple) -> None:
        """Add a triple about a statement, a time or a label; ignore any other."""
        kind, name = _predicate(triple.predicate)
        match kind:
            case "link" if self._importer.includes(name):
                statement = self._statements[triple.object]
                statement.subject = _item(triple.subject)
                statement.relation = statement.relation or name
            case "statement" if self._importer.includes(name):
                statement = self._statements[triple.subject]
                statement.relation = name
                statement.object = "" if triple.datatype else _item(triple.object)
            case "qualifier" if name in DATE_PROPERTIES:
                statement = self._statements[triple.subject]
                try:
                    # A qualifier with some unknown value has a node without content for it.
                    date = UNKNOWN if triple.datatype is None else _time(triple)
                except MalformedError:
                    statement.unreadable = True
                    raise
                statement.dates.append((name, date))
            case "qualifier/value" if name in DATE_PROPERTIES:
                self._statements[triple.subject].values.append((name, triple.object))
            case "timeValue":
                self._times[triple.subject] = _time(triple)
            case "timePrecision":
                self._precisions[triple.subject] = _precision(triple)
            case "rank" if triple.object.endswith("#DeprecatedRank"):
                self._statements[triple.subject].deprecated = True
            case "type" if match := _NO_VALUE.fullmatch(triple.object):
                # It is not said whether the statement itself or its qualifier has no value.
                if match[1] in DATE_PROPERTIES:
                    date = dumps.PRESENT if match[1] == dumps.END else UNKNOWN
                    self._statements[triple.subject].dates.append((match[1], date))
                elif self._importer.includes(match[1]):
                    self._statements[triple.subject].object = ""
            case "label" if triple.language and (match := _NAMED.fullmatch(triple.subject)):
                self._importer.label(match[1], triple.language, triple.object)

    def write(self) -> None:
        for statement in self._statements.values():
            try:
                self._write(statement)
            except MalformedError as error:
                found = f"{statement.subject}, {statement.relation}: {error}"
                self._importer.malformed(None, found, "statement left out")

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


def _time(triple: _Triple) -> _Time:
    if triple.datatype not in (f"{_XSD}dateTime", f"{_XSD}date"):
        raise MalformedError(f"{shorten(triple.object)} in place of an xsd:dateTime")
    return _Time(*dumps.parse_time(triple.object), triple.object.endswith("-01-01T00:00:00Z"))


def _precision(triple: _Triple) -> int:
    if triple.datatype is None or not re.fullmatch(r"\+?[0-9]{1,2}", triple.object):
        raise MalformedError(f"{shorten(triple.object)} in place of a time's precision")
    return int(triple.object)


def _date(time: _Time, precision: int | None) -> str:
    if precision is None:
        precision = 9 if time.new_year else 11
    # RDF counts years astronomically (XSD 1.1: 0 is 1 BCE), but Wikibase converts them only from
    # the precision of a year on; decades and centuries keep the historical count.
    return dumps.date_text(*time[:3], precision, historical=precision in (7, 8))
