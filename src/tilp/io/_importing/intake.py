"""What an import keeps of a dump, and the account of the rest."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tilp.errors import DataError, TilpError
from tilp.io._importing.dates import UNKNOWN, spans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tilp.io._importing.writer import FactWriter

OnError = Literal["skip", "raise"]
MAX_PROBLEMS = 1000

_ALL_LANGUAGES = "mul"  # Wikidata's label for every language without one of its own
_PROPERTY = re.compile(r"P[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """One malformed place: where it is (line None: not known), what it holds, what was done."""

    file: str
    line: int | None
    found: str
    done: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import read and wrote.

    Attributes:
        read: Entities (JSON) or triples (RDF) understood.
        statements: Statements of the chosen properties.
        facts: Rows written; a statement with several points in time gives one for each.
        undated: Statements without any date, written only if asked for.
        skipped: How many lines and statements were left out, by reason.
        problems: The first malformed places in detail; `malformed` counts all of them.
    """

    read: int
    statements: int
    facts: int
    undated: int
    skipped: Mapping[str, int]
    problems: tuple[Problem, ...]

    @property
    def malformed(self) -> int:
        """The number of malformed places."""
        return self.skipped.get("malformed", 0)


class Intake:
    """Decides what of a dump is kept, writes it, and counts the rest."""

    def __init__(
        self,
        file: str,
        writer: FactWriter,
        *,
        language: str,
        properties: Collection[str] | None,
        undated: bool,
        on_error: OnError,
    ) -> None:
        if on_error not in ("skip", "raise"):
            raise TilpError(f"on_error is {on_error!r}: choose 'skip' or 'raise'")
        if properties is not None:
            if not properties:
                raise TilpError("properties is empty: leave it out to keep every property")
            for name in properties:
                if not _PROPERTY.fullmatch(name):
                    raise TilpError(f"properties holds {name!r}: give ids such as P39")
        self._file = file
        self._writer = writer
        self.languages = (language.lower(), _ALL_LANGUAGES)
        self.properties = None if properties is None else frozenset(properties)
        self._keep_undated = undated
        self._on_error = on_error
        self.read = self.statements = self.undated = 0
        self._skipped: Counter[str] = Counter()
        self._problems: list[Problem] = []

    def keeps(self, name: str) -> bool:
        """Whether the property is among the chosen ones."""
        return self.properties is None or name in self.properties

    def skip(self, reason: str) -> None:
        """Count something that is left out."""
        self._skipped[reason] += 1

    def malformed(self, line: int | None, found: str, done: str = "line left out") -> None:
        """Count a malformed place, or end the import there if asked to."""
        found = found[:300]
        if self._on_error == "raise":
            place = self._file if line is None else f"{self._file}, line {line}"
            raise DataError(
                f"{place}: {found}. Mend it, or import with on_error='skip' to leave it out."
            )
        self.skip("malformed")
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(Problem(self._file, line, found, done))

    def statement(
        self, subject: str, relation: str, object_: str, dates: Mapping[str, Iterable[str]]
    ) -> None:
        """Write the facts of a statement, given its dates by qualifier."""
        found = spans(dates)
        if not found:
            self.undated += 1
            found = [(UNKNOWN, UNKNOWN)] if self._keep_undated else []
        for start, end in found:
            self._writer.fact(subject, relation, object_, start, end)

    def label(self, key: str, language: str, text: str) -> None:
        """Keep a label if it is in the chosen language, or in all."""
        if language.lower() in self.languages:
            self._writer.label(key, text, fallback=language.lower() != self.languages[0])

    def report(self) -> ImportReport:
        """Sum up."""
        return ImportReport(
            read=self.read,
            statements=self.statements,
            facts=self._writer.facts,
            undated=self.undated,
            skipped=dict(self._skipped),
            problems=tuple(self._problems),
        )
