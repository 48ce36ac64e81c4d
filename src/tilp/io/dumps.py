"""Import of dumps: the source, dates, the selection of statements, the written folder, the report.

Years are astronomical: year 0 is 1 BCE, -430 is 431 BCE. The calendar model of a date (Julian or
Gregorian) is ignored: year, month and day are written as the dump has them.
"""

import bz2
import calendar
import gzip
import io
import os
import re
import reprlib
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path, PurePath
from typing import IO, Any, Literal, Self, cast

from tilp._utils.files import new_folder
from tilp.errors import DataError, TilpError
from tilp.time import parse_date
from tilp.types import DumpFormat, Unit, choose

END = "P582"
DATE_PROPERTIES = ("P580", END, "P585")  # start, end, point in time
UNKNOWN, PRESENT = "####-##-##", "present"

_TIME = re.compile(r"([+-]?[0-9]{1,16})-([0-9]{2})-([0-9]{2})(?:T[^\n]*)?")
_MAX_YEAR = 10**11  # the longest that date text may hold


class MalformedError(ValueError):
    """A part of the input that is not as it must be; says what it is."""


def shorten(value: object) -> str:
    """Return a value for a message: short however deep it is, in ASCII."""
    text = reprlib.repr(value).encode("ascii", "backslashreplace").decode("ascii")
    return text if len(text) <= 80 else f"{text[:77]}..."


def parse_time(text: str) -> tuple[int, int, int]:
    """Parse a time like `+1952-05-00T00:00:00Z` as year, month and day (0 if unknown)."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise MalformedError(f"the time {shorten(text)} is not like 1952-05-12T00:00:00Z")
    year, month, day = (int(part) for part in match.groups())
    if month > 12 or day > 31:
        raise MalformedError(f"the time {shorten(text)} has no such month or day")
    return year, month, day


def date_text(year: int, month: int, day: int, precision: int, *, historical: bool) -> str:
    """Format a date as far as Wikidata's precision makes it known.

    In historical years -1 is 1 BCE, and there is no year 0.

    >>> date_text(1952, 5, 12, 11, historical=True), date_text(2000, 0, 0, 7, historical=True)
    ('1952-05-12', '19##-##-##')
    """
    if precision <= 6:
        return UNKNOWN
    if historical and year == 0:
        raise MalformedError("a time in year 0, which historical years do not have")
    year += historical and year < 0
    if abs(year) >= _MAX_YEAR:
        raise MalformedError(f"a time in the year {year}, too far away for its precision")
    if precision <= 8:
        # Both are counted in historical years: the 20th century is 1901 to 2000, the 430s BCE are
        # 439 to 430. Text with hashes is a year off for these (exact for centuries BCE).
        count = 1 - year if year <= 0 else year
        hashes, stem = (1, count // 10) if precision == 8 else (2, (count - 1) // 100)
        digits = f"-{stem}" if year <= 0 else f"{stem:0{4 - hashes}d}"
        return f"{digits}{'#' * hashes}-##-##"
    digits = f"{year:04d}" if year >= 0 else str(year)
    if precision == 9 or month == 0:
        return f"{digits}-##-##"
    # A day that the proleptic Gregorian calendar lacks (Julian 29 February 1900) keeps its month.
    if precision == 10 or not 1 <= day <= calendar.monthrange(year, month)[1]:
        return f"{digits}-{month:02d}-##"
    return f"{digits}-{month:02d}-{day:02d}"


def spans(dates: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Return a statement's starts and ends from its dates by qualifier; empty if there are none."""
    starts, ends, points = (list(dates.get(name, ())) for name in DATE_PROPERTIES)
    if starts or ends:
        known = [start for start in starts if start != UNKNOWN] or [UNKNOWN]
        ends = ends or [UNKNOWN]
        # Parsing takes longer than all the rest, and nearly always there is but one date.
        start = known[0] if len(known) == 1 else min(known, key=lambda date: _days(date)[0])
        end = ends[0] if len(ends) == 1 else max(ends, key=lambda date: _days(date)[1])
        return [(start, end)]
    distinct = dict.fromkeys(points)
    if len(distinct) > 1:
        distinct.pop(UNKNOWN, None)
    return [(point, point) for point in distinct]


def _days(date: str) -> tuple[int, int]:
    span = parse_date(date).span(Unit.DAY)
    assert span is not None, date
    return span


_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")

Dates = Mapping[str, Iterable[str]]  # of a statement, by qualifier
OnError = Literal["skip", "raise"]
MAX_PROBLEMS = 1000  # most malformed places that a report lists
MAX_LINE = 1 << 26  # bytes; several times the largest entity, and memory stays bounded
_ALL_LANGUAGES = "mul"  # Wikidata's label for every language without one of its own
_PROPERTY = re.compile(r"P[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """A malformed place: file and line (None if unknown), what is there, what was done."""

    file: str
    line: int | None
    found: str
    done: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import read and wrote: counts, and the first malformed places."""

    read: int  # entities (JSON) or triples (RDF) that were understood
    statements: int  # of the chosen properties
    facts: int  # rows written; a statement with several points in time gives one for each
    undated: int  # statements without any date
    skipped: Mapping[str, int]  # lines and statements left out, by reason
    problems: tuple[Problem, ...]  # in detail; `malformed` counts all of them

    @property
    def malformed(self) -> int:
        """Count of malformed places."""
        return self.skipped.get("malformed", 0)


class Importer:
    """Writes facts of a dump and the labels of what they name as a folder, and counts the rest.

    The folder appears under its name only when complete. Labels may come before or after the
    facts that need them, so all go to a temporary file first; only the distinct entities and
    relations of the facts are in memory.
    """

    def __init__(
        self, file: str, out: Path, language: str, properties: Collection[str] | None,
        undated: bool, on_error: OnError, max_problems: int = MAX_PROBLEMS,
    ) -> None:  # fmt: skip
        if on_error not in ("skip", "raise"):
            raise TilpError(f"on_error is {on_error!r}: choose 'skip' or 'raise'")
        if properties is not None and not properties:
            raise TilpError("properties is empty: leave it out to keep every property")
        for name in properties or ():
            if not _PROPERTY.fullmatch(name):
                raise TilpError(f"properties holds {name!r}: give ids such as P39")
        self._file, self._out = file, Path(out).resolve()
        self.languages = (language.lower(), _ALL_LANGUAGES)
        self.properties = None if properties is None else frozenset(properties)
        self._write_undated, self._on_error, self._max_problems = undated, on_error, max_problems
        self.read = self.statements = self.facts = self.undated = 0
        self._skipped: Counter[str] = Counter()
        self._problems: list[Problem] = []
        self._entities: dict[str, None] = {}
        self._relations: dict[str, None] = {}

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write the folder; labels are written last."""
        header = "subject\trelation\tobject\tstart\tend\n"
        with (
            new_folder(self._out) as self._partial,
            self._create("facts.tsv", header) as self._table,
        ):
            with self._create("labels", "") as self._labels:
                yield
            self._write_names()

    def _create(self, name: str, header: str) -> IO[str]:
        file = (self._partial / name).open("w", encoding="utf-8", newline="\n")
        file.write(header)
        return file

    def includes(self, name: str) -> bool:
        """Return whether the property is among the chosen ones."""
        return self.properties is None or name in self.properties

    def skip(self, reason: str) -> None:
        """Count something that is left out."""
        self._skipped[reason] += 1

    @contextmanager
    def reports(self, line: int | None, done: str, about: str = "") -> Iterator[None]:
        """Count what is found malformed within, and go on after it."""
        try:
            yield
        except MalformedError as error:
            self.malformed(line, f"{about}: {error}" if about else str(error), done)

    def malformed(self, line: int | None, found: str, done: str = "line left out") -> None:
        """Count a malformed place, or raise if `on_error` says so."""
        found = found[:300]
        if self._on_error == "raise":
            where = self._file if line is None else f"{self._file}, line {line}"
            remedy = "Correct it, or import with on_error='skip' to leave it out."
            raise DataError(f"{where}: {found}. {remedy}")
        self.skip("malformed")
        if len(self._problems) < self._max_problems:
            self._problems.append(Problem(self._file, line, found, done))

    def statement(self, subject: str, relation: str, object_: str, dates: Dates) -> None:
        """Write the facts of a statement."""
        intervals = spans(dates)
        if not intervals:
            self.undated += 1
            intervals = [(UNKNOWN, UNKNOWN)] if self._write_undated else []
        for start, end in intervals:
            self._table.write(f"{subject}\t{relation}\t{object_}\t{start}\t{end}\n")
            self._entities[subject] = self._entities[object_] = self._relations[relation] = None
            self.facts += 1

    def label(self, key: str, language: str, text: str) -> None:
        """Store a label if it is in the chosen language, or in all, which others replace."""
        if language.lower() not in self.languages:
            return
        rank = "!" if language.lower() == self.languages[0] else ""
        text = _BREAKS.sub(" ", text.encode("utf-8", "replace").decode("utf-8")).strip()
        if text:
            self._labels.write(f"{key}\t{rank}\t{text}\n")

    def _write_names(self) -> None:
        labels: dict[str, tuple[str, str]] = {}
        with (self._partial / "labels").open(encoding="utf-8", newline="\n") as stored:
            for line in stored:
                key, rank, text = line.rstrip("\n").split("\t")
                named = key in self._entities or key in self._relations
                if named and (key not in labels or rank > labels[key][0]):
                    labels[key] = rank, text
        (self._partial / "labels").unlink()
        for name, keys in (("entities", self._entities), ("relations", self._relations)):
            with self._create(f"{name}.tsv", "id\tkey\tlabel\n") as table:
                for key in keys:
                    table.write(f"{key}\t{key}\t{labels.get(key, ('', key))[1]}\n")

    def report(self) -> ImportReport:
        """Return the counts."""
        counts = self.read, self.statements, self.facts, self.undated
        return ImportReport(*counts, dict(self._skipped), tuple(self._problems))


class _CountingReader(io.RawIOBase):
    """Compressed bytes of a source, counted as they are read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._begin, self.count = stream, b"", 0

    def peek(self) -> bytes:
        """Return the first three bytes, without reading past them."""
        # A pipe may give fewer bytes at a time.
        while len(self._begin) < 3 and (data := self._stream.read(3 - len(self._begin))):
            self._begin += data
        return self._begin

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._begin or self._stream.read(len(buffer)) or b""
        self._begin = b""
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class Source:
    """A file or stream, decompressed according to its first bytes (gzip, bzip2), read once."""

    DECOMPRESSION_ERRORS = (EOFError, OSError, zlib.error)

    def __init__(
        self,
        source: Path | IO[bytes],
        progress: Callable[[int], None] | None = None,
        max_line: int = MAX_LINE,
    ) -> None:
        self._progress, self._max_line, self._reported = progress, max_line, -1
        self._file: IO[bytes] | None = None
        is_path = isinstance(source, str | os.PathLike)
        name = source if is_path else getattr(source, "name", None)
        self.name = "<stream>" if name is None else str(name)
        try:
            if isinstance(source, str | os.PathLike):
                self._file = Path(source).open("rb")  # noqa: SIM115 - closed on exit
            self._raw = _CountingReader(self._file or cast("IO[bytes]", source))
            magic = self._raw.peek()
        except OSError as error:
            raise self.unreadable(error) from error
        except TypeError:
            raise TilpError(f"{self.name} is open as text: open it in binary mode") from None
        self.stream: IO[bytes] = io.BufferedReader(self._raw, 1 << 20)
        if magic.startswith(b"\x1f\x8b"):
            self.stream = cast("IO[bytes]", gzip.GzipFile(fileobj=self.stream))
        elif magic.startswith(b"BZh"):
            self.stream = bz2.BZ2File(self.stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()

    def unreadable(self, error: BaseException) -> TilpError:
        """Return the error that the source cannot be read (further)."""
        if isinstance(error, OSError) and error.errno is not None:
            return TilpError(f"{self.name} cannot be read: {error.strerror}. Check the path.")
        damage = f"compressed data is damaged or breaks off ({error})"
        return DataError(f"{self.name}: {damage}. Get the file again.")

    def tick(self) -> None:
        """Report how many compressed bytes have been read, if that has changed."""
        if self._progress is not None and self._raw.count != self._reported:
            self._reported = self._raw.count
            self._progress(self._reported)

    def lines(self, importer: Importer) -> Iterator[tuple[int, bytes]]:
        """Yield lines, counted from 1; damaged compressed data ends them and is counted."""
        limit = self._max_line
        for line in count(1):
            try:
                text = self.stream.readline(limit)
                if len(text) == limit and not text.endswith(b"\n"):
                    while (rest := self.stream.readline(limit)) and not rest.endswith(b"\n"):
                        pass
                    importer.malformed(line, f"a line longer than {limit} bytes")
                    continue
            except self.DECOMPRESSION_ERRORS as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise self.unreadable(error) from error
                found = f"compressed data that is damaged or breaks off ({error})"
                importer.malformed(line, found, "rest of the file left out")
                return
            self.tick()
            if not text:
                return
            yield line, text


_SUFFIXES = {".nt": DumpFormat.NTRIPLES, ".ttl": DumpFormat.TURTLE}


def import_dump(
    source: Path | IO[bytes],
    out: Path,
    *,
    format: DumpFormat | str | None = None,
    language: str = "en",
    properties: Collection[str] | None = None,
    undated: bool = False,
    on_error: OnError = "skip",
    progress: Callable[[int], None] | None = None,
) -> ImportReport:
    """Turn a Wikidata dump into a folder of `facts.tsv`, `entities.tsv` and `relations.tsv`.

    A statement becomes a fact if it is not deprecated, its value is an item, and it has a start
    (P580), end (P582) or point in time (P585) qualifier. Of several starts the earliest counts,
    of several ends the latest; a point in time counts only without either.

    Args:
        source: the dump, plain, gzip or bzip2, or an open binary stream.
        out: the folder to write; it must not exist or be empty, and appears when complete.
        format: `json`, `ntriples` or `turtle`; by default it follows from the name: `.nt`, `.ttl`,
            perhaps with `.gz` or `.bz2` after it, or else JSON.
        language: language of the labels, English by default; where one is missing, Wikidata's
            label for all languages (`mul`) and then the id take its place.
        properties: the properties to import, such as `["P39"]`; all by default.
        undated: whether to write statements without any date, too; False by default.
        on_error: `"skip"` (default) leaves malformed places out and counts them, `"raise"` stops
            at the first. Bad syntax in Turtle always raises: what follows it cannot be read.
        progress: called with the number of (compressed) bytes read so far.
    """
    with Source(source, progress) as opened:
        if format is None:
            name = PurePath(opened.name.lower().removesuffix(".gz").removesuffix(".bz2"))
            format = _SUFFIXES.get(name.suffix, DumpFormat.JSON)
        kind = choose(DumpFormat, format, "format")
        importer = Importer(opened.name, out, language, properties, undated, on_error)
        if kind is DumpFormat.JSON:
            from tilp.io.wikidata import read_json

            read = partial(read_json, opened, importer)
        else:
            from tilp.io.rdf import read_rdf

            if find_spec("pyoxigraph") is None:
                raise TilpError('RDF needs an extra: pip install "tilp[rdf]"')
            read = partial(read_rdf, opened, importer, kind)
        with importer.writing():
            read()
    return importer.report()
