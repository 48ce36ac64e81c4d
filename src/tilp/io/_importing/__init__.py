"""What the Wikidata and the RDF importer share: source, dates, account and written folder."""

from tilp.io._importing.dates import (
    DATE_PROPERTIES,
    END,
    POINT,
    PRESENT,
    START,
    UNKNOWN,
    MalformedError,
    astronomical,
    clip,
    date_text,
    parse_time,
    spans,
)
from tilp.io._importing.intake import MAX_PROBLEMS, ImportReport, Intake, OnError, Problem
from tilp.io._importing.source import MAX_LINE, Source
from tilp.io._importing.writer import FactWriter

__all__ = [
    "DATE_PROPERTIES",
    "END",
    "MAX_LINE",
    "MAX_PROBLEMS",
    "POINT",
    "PRESENT",
    "START",
    "UNKNOWN",
    "FactWriter",
    "ImportReport",
    "Intake",
    "MalformedError",
    "OnError",
    "Problem",
    "Source",
    "astronomical",
    "clip",
    "date_text",
    "parse_time",
    "spans",
]
