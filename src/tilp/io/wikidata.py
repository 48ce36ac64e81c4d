"""Wikidata's JSON dump as a graph: one entity a line, of which one is in memory at a time."""

import json
import re
from typing import Any

from tilp.io import dumps
from tilp.io.dumps import END, PRESENT, UNKNOWN, Importer, MalformedError, Source, shorten

_ENTITY = re.compile(r"[A-Z][1-9][0-9]*(-[A-Z][1-9][0-9]*)?")
_ITEM = re.compile(r"Q[1-9][0-9]*")
_PROPERTY = re.compile(r"P[1-9][0-9]*")
_RANKS = ("preferred", "normal", "deprecated")
_MAX_PRECISION = 14  # seconds


def read_json(source: Source, importer: Importer) -> None:
    """Import every line of a JSON dump."""
    for line, text in source.lines(importer):
        text = text.removeprefix(b"\xef\xbb\xbf").strip().removesuffix(b",")
        # The dump is an array that opens and closes on lines of its own.
        if text not in (b"", b"[", b"]"):
            with importer.reports(line, "line left out"):
                _read_entity(importer, line, _check(_parse(text), dict, "an entity"))


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        invalid = shorten(text[error.start :][:8])
        raise MalformedError(f"bytes that are not UTF-8 ({invalid})") from None
    except json.JSONDecodeError as error:
        raise MalformedError(f"text that is not JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        raise MalformedError(f"JSON that is too much ({error})") from None


def _read_entity(importer: Importer, line: int, entity: dict[str, Any]) -> None:
    key = _match(_ENTITY, _get(entity, "id", str))
    importer.read += 1
    with importer.reports(line, "label left out", key):
        labels = _get(entity, "labels", dict, {})
        for language in importer.languages:
            if language in labels:
                importer.label(key, language, _get(_get(labels, language, dict), "value", str))
    if not _ITEM.fullmatch(key):
        return
    with importer.reports(line, "statements left out", key):
        for name, statements in _get(entity, "claims", dict, {}).items():
            with importer.reports(line, "statements left out", key):
                chosen = importer.includes(_match(_PROPERTY, name))
                for statement in _check(statements, list, name) if chosen else ():
                    importer.statements += 1
                    with importer.reports(line, "statement left out", f"{key}, {name}"):
                        _read_statement(importer, key, name, _check(statement, dict, "a statement"))


def _read_statement(importer: Importer, key: str, name: str, statement: dict[str, Any]) -> None:
    rank = statement.get("rank", "normal")
    if rank not in _RANKS:
        raise MalformedError(f"{shorten(rank)} in place of a rank")
    if rank == "deprecated":
        importer.skip("deprecated")
        return
    item = _item(_get(statement, "mainsnak", dict))
    if item is None:
        importer.skip("not an item")
        return
    qualifiers = _get(statement, "qualifiers", dict, {})
    dates = {
        date: [_date(_check(snak, dict, date), date) for snak in snaks]
        for date in dumps.DATE_PROPERTIES
        if (snaks := _get(qualifiers, date, list, []))
    }
    importer.statement(key, name, item, dates)


def _item(snak: dict[str, Any]) -> str | None:
    """Return the item that a snak names; None if it has another kind of value, or none."""
    datavalue = _datavalue(snak)
    if datavalue is None or _get(datavalue, "type", str) != "wikibase-entityid":
        return None
    value = _get(datavalue, "value", dict)
    # Old dumps give only the numeric id.
    key = _get(value, "id", str) if "id" in value else f"Q{_get(value, 'numeric-id', int)}"
    is_item = _get(value, "entity-type", str, "item") == "item"
    return key if _ITEM.fullmatch(_match(_ENTITY, key)) and is_item else None


def _date(snak: dict[str, Any], name: str) -> str:
    datavalue = _datavalue(snak)
    if datavalue is None:
        return PRESENT if name == END and snak["snaktype"] == "novalue" else UNKNOWN
    if datavalue.get("type") != "time":
        raise MalformedError(f"{name} holds {shorten(datavalue.get('type'))} in place of a time")
    value = _get(datavalue, "value", dict)
    precision = _get(value, "precision", int)
    if not 0 <= precision <= _MAX_PRECISION:
        raise MalformedError(f"{shorten(precision)} in place of a time's precision")
    # JSON counts years historically: -0431 is 431 BCE.
    time = dumps.parse_time(_get(value, "time", str))
    return dumps.date_text(*time, precision, historical=True)


def _datavalue(snak: dict[str, Any]) -> dict[str, Any] | None:
    """Return a snak's value; None if it is some unknown value, or no value."""
    kind = snak.get("snaktype")
    if kind not in ("value", "somevalue", "novalue"):
        raise MalformedError(f"{shorten(kind)} in place of a snak's type")
    return _get(snak, "datavalue", dict) if kind == "value" else None


def _get(values: dict[str, Any], name: str, kind: type, default: Any = None) -> Any:
    return _check(values.get(name, default), kind, name)


def _check(value: Any, kind: type, name: str) -> Any:
    """Return a value if it is of a kind, or refuse it."""
    if kind is dict and value == []:
        return {}  # PHP, which writes the dump, cannot tell an empty map from an empty list.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedError(f"{shorten(value)} in place of {name}")
    return value


def _match(pattern: re.Pattern[str], name: str) -> str:
    if not pattern.fullmatch(name):
        raise MalformedError(f"{shorten(name)} in place of an id")
    return name
