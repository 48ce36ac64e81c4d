"""Wikidata's JSON dump as a graph: one entity a line, plain, gzipped or bzip2ed, read once.

Only one line and the distinct entities of the facts are in memory. Dates come without their
calendar model: a Julian day is written as it is in the dump.
"""

import json
import re
from typing import Any, NoReturn

from tilp.io import dumps
from tilp.io.dumps import END, PRESENT, UNKNOWN, Importer, MalformedError, shorten

_ENTITY = re.compile(r"[A-Z][1-9][0-9]*(-[A-Z][1-9][0-9]*)?")
_ITEM = re.compile(r"Q[1-9][0-9]*")
_PROPERTY = re.compile(r"P[1-9][0-9]*")
_RANKS = ("preferred", "normal", "deprecated")
_MAX_PRECISION = 14  # seconds


def read_json(source: dumps.Source, importer: Importer) -> None:
    """Import every line of a JSON dump."""
    for line, text in source.lines(importer):
        _read_line(importer, line, text)


def _read_line(importer: Importer, line: int, text: bytes) -> None:
    text = text.removeprefix(b"\xef\xbb\xbf").strip().removesuffix(b",")
    # The dump is an array that opens and closes on lines of its own.
    if text in (b"", b"[", b"]"):
        return
    try:
        entity = _parse(text)
        key = _text(entity.get("id"), "the id")
        if not _ENTITY.fullmatch(key):
            _refuse(key, "an entity's id")
    except MalformedError as error:
        importer.malformed(line, str(error))
        return
    importer.read += 1
    try:
        labels = _mapping(entity.get("labels", {}), "labels")
        for language in importer.languages:
            if language in labels:
                label = _mapping(labels[language], "a label")
                importer.label(key, language, _text(label.get("value"), "the value of a label"))
    except MalformedError as error:
        importer.malformed(line, f"{key}: {error}", "label left out")
    if _ITEM.fullmatch(key):
        _read_claims(importer, line, key, entity)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        entity = json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        invalid = shorten(text[error.start :][:8])
        raise MalformedError(f"bytes that are not UTF-8 ({invalid})") from None
    except json.JSONDecodeError as error:
        raise MalformedError(f"text that is not JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        raise MalformedError(f"JSON that is too much ({error})") from None
    if not isinstance(entity, dict):
        _refuse(entity, "an entity")
    return entity


def _read_claims(importer: Importer, line: int, key: str, entity: dict[str, Any]) -> None:
    try:
        claims = _mapping(entity.get("claims", {}), "claims")
    except MalformedError as error:
        importer.malformed(line, f"{key}: {error}", "statements left out")
        return
    for name, statements in claims.items():
        try:
            if not _PROPERTY.fullmatch(name):
                _refuse(name, "a property's id")
            statements = _list(statements, "statements") if importer.includes(name) else []
        except MalformedError as error:
            importer.malformed(line, f"{key}: {error}", "statements left out")
            continue
        for statement in statements:
            importer.statements += 1
            try:
                _read_statement(importer, key, name, _mapping(statement, "a statement"))
            except MalformedError as error:
                importer.malformed(line, f"{key}, {name}: {error}", "statement left out")


def _read_statement(importer: Importer, key: str, name: str, statement: dict[str, Any]) -> None:
    rank = statement.get("rank", "normal")
    if rank not in _RANKS:
        _refuse(rank, "a rank")
    if rank == "deprecated":
        importer.skip("deprecated")
        return
    item = _item(_mapping(statement.get("mainsnak"), "the main snak"))
    if item is None:
        importer.skip("not an item")
        return
    qualifiers = _mapping(statement.get("qualifiers", {}), "qualifiers")
    dates = {
        date: [_date(_mapping(snak, "a qualifier"), date) for snak in _list(snaks, "qualifiers")]
        for date in dumps.DATE_PROPERTIES
        if (snaks := qualifiers.get(date, [])) != []
    }
    importer.statement(key, name, item, dates)


def _item(snak: dict[str, Any]) -> str | None:
    """Return the item that a snak names; None if it has another kind of value, or none."""
    datavalue = _datavalue(snak)
    if datavalue is None or _text(datavalue.get("type"), "a value's type") != "wikibase-entityid":
        return None
    value = _mapping(datavalue.get("value"), "an entity")
    kind = _text(value.get("entity-type", "item"), "an entity's type")
    # Old dumps give only the numeric id.
    key = value["id"] if "id" in value else f"Q{_integer(value.get('numeric-id'))}"
    if not _ENTITY.fullmatch(_text(key, "an entity's id")):
        _refuse(key, "an entity's id")
    return key if kind == "item" and _ITEM.fullmatch(key) else None


def _date(snak: dict[str, Any], name: str) -> str:
    datavalue = _datavalue(snak)
    if datavalue is None:
        return PRESENT if name == END and snak["snaktype"] == "novalue" else UNKNOWN
    if datavalue.get("type") != "time":
        raise MalformedError(f"{name} holds {shorten(datavalue.get('type'))} in place of a time")
    value = _mapping(datavalue.get("value"), "a time")
    precision = _integer(value.get("precision"))
    if not 0 <= precision <= _MAX_PRECISION:
        _refuse(precision, "a time's precision")
    # JSON counts years historically: -0431 is 431 BCE.
    time = dumps.parse_time(_text(value.get("time"), "a time"))
    return dumps.date_text(*time, precision, historical=True)


def _datavalue(snak: dict[str, Any]) -> dict[str, Any] | None:
    """Return a snak's value; None if it is some unknown value, or no value."""
    kind = snak.get("snaktype")
    if kind == "value":
        return _mapping(snak.get("datavalue"), "a value")
    if kind not in ("somevalue", "novalue"):
        _refuse(kind, "a snak's type")
    return None


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value == []:
        return {}  # PHP, which writes the dump, cannot tell an empty map from an empty list.
    return value if isinstance(value, dict) else _refuse(value, what)


def _list(value: Any, what: str) -> list[Any]:
    return value if isinstance(value, list) else _refuse(value, what)


def _text(value: Any, what: str) -> str:
    return value if isinstance(value, str) else _refuse(value, what)


def _integer(value: Any) -> int:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_integer else _refuse(value, "a whole number")


def _refuse(value: Any, what: str) -> NoReturn:
    raise MalformedError(f"{shorten(value)} in place of {what}")
