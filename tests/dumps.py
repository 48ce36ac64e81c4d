"""Small Wikidata dumps, and the tables that importing them writes."""

import io
import json
import os

from hypothesis import HealthCheck, settings

from tilp.io.dumps import import_dump
from tilp.time import parse_date

UNKNOWN = "####-##-##"


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


def import_bytes(data, folder, importer=import_dump, **options):
    out = folder / os.urandom(6).hex()
    return importer(io.BytesIO(data), out, **options), facts(out)


def check_readable(rows):
    for row in rows:
        assert len(row) == 5
        assert all(parse_date(date).kind != "malformed" for date in row[3:])


FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
