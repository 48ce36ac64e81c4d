"""Dates as people write them: recognised by shape, and rewritten as `parse_date` reads them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

import polars as pl

from tilp.errors import DataError, TilpError
from tilp.graph import FactTable
from tilp.time import parse_date
from tilp.time.dates import DateKind
from tilp.types import OnError, Unit

FORMS = {  # what --date-format may say besides a format of strptime
    "day-first": "day before month",
    "month-first": "month before day",
    "digits": "as year, month and day of eight digits",
    "seasons": "as seasons, from one year to the next",
    "excel": "as Excel's numbers of days",
}
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_TIME = r"(?:[ T]+\d{1,2}:\d{2}.*)?"
_NUMERIC = re.compile(rf"(\d{{1,2}})([/-])(\d{{1,2}})\2(\d{{4}}){_TIME}")
_DIGITS = re.compile(r"([12]\d{3})(\d\d)(\d\d)(?:T.*|\.0)?")
_SEASON = re.compile(r"(\d\d)(\d\d)\s*[-/–]\s*(\d\d)")
_RANGE = re.compile(r"(\d{4})\s*[-/–—]\s*(\d{4})")
_DAY_MONTH = re.compile(
    rf"(?:(\d{{1,2}})(?:st|nd|rd|th)?[ -])?([a-z]{{3,9}})\.?,?[ -](\d{{4}}){_TIME}"
)
_MONTH_DAY = re.compile(rf"([a-z]{{3,9}})\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}}){_TIME}")
_ABOUT = re.compile(r"(?:c\.|ca\.?|circa|about|approx\.?|c(?= )|~)\s*(?=\d)", re.IGNORECASE)
_DECADE = re.compile(r"(?:the )?(\d{1,3})0'?s")
_CENTURY = re.compile(r"(\d{1,2})(?:st|nd|rd|th) (?:century|c\.?)(?: ad| ce)?")
_WORDS = {
    **dict.fromkeys(("-", "–", "—", "--", "tbd", "unk", "not known"), ""),
    **dict.fromkeys(("today", "to date", "until now", "till now", "still", "incumbent"), "present"),
}
_EXCEL_DAYS = range(10_000, 73_051)  # 1927 to 2099
_UNREADABLE_SHARE = 0.2
_FEW = 3  # unreadable dates that a column may have whatever its length, unless it has no others
_MIN_SEASONS = 3  # distinct texts such as 2005-06 that are no months


def check_form(form: str | None) -> None:
    """Raise an error for a date format that cannot be one."""
    if form is None or form in FORMS:
        return
    try:
        datetime.strptime(datetime(2001, 2, 3).strftime(form), form)
        known = re.search("%[YyGcx]", form)
    except (ValueError, re.error, UnicodeError):
        known = None
    if known is None:
        raise TilpError(
            f"date format {form!r}: write {', '.join(FORMS)}, or a format with a year such as "
            '"%d.%m.%y" (%Y or %y year, %m month, %b month by name, %d day)'
        )


def looks_like_date(text: str) -> bool:
    """Return whether a text is a date, not just a number or a name.

    >>> [looks_like_date(text) for text in ("1990-02", "3/1/1911", "May 1911", "17", "Rovers")]
    [True, True, True, False, False]
    """
    if _NUMERIC.fullmatch(text.strip()):
        return True
    parsed = parse_date(read_date(text, "start"))
    years = 100 if parsed.month or "-" in text[1:] else 1000, 2999
    return parsed.kind is DateKind.KNOWN and (
        years[0] <= parsed.first_year <= years[1] or _digit_date(text) is not None
    )


def read_date(text: str, role: str, form: str | None = None) -> str:
    """Return a date as `parse_date` reads it; the text itself if no shape fits.

    Args:
        text: As written.
        role: 'start' or 'end', which of a range or season is meant.
        form: One of `FORMS` or a format of strptime (default None: shapes that say one thing).

    >>> read_date("1 March 1999", "start"), read_date("2005/2006", "end"), read_date("1990s", "end")
    ('1999-03-01', '2006', '199#')
    """
    plain = text.strip()
    if form is not None and form not in FORMS:
        read = _by_format(plain, form)
        return read if read is not None else read_date(text, role)
    if match := _NUMERIC.fullmatch(plain):
        first, second = int(match[1]), int(match[3])
        if form == "day-first" or (form != "month-first" and first > 12):
            first, second = second, first
        elif form != "month-first" and second <= 12 and first != second:
            return text
        return _iso(match[4], first, second) or text
    if form == "digits" and (read := _digit_date(plain)):
        return read
    if form == "seasons" and (match := _season(plain)):
        return f"{int(match[1] + match[2]) + (role == 'end')}"
    if form == "excel" and (days := _excel_days(plain)) is not None:
        return str(date(1899, 12, 30) + timedelta(days))
    if (match := _RANGE.fullmatch(plain)) and match[1] <= match[2]:
        return match[1] if role == "start" else match[2]
    if _ABOUT.match(plain):
        return read_date(_ABOUT.sub("", plain, count=1), role, form)
    lower = plain.lower()
    if match := _DECADE.fullmatch(lower):
        return f"{match[1]}#"
    if (match := _CENTURY.fullmatch(lower)) and int(match[1]):
        return f"{int(match[1]) - 1}##"
    if match := _DAY_MONTH.fullmatch(lower):
        return _iso(match[3], _month(match[2]), int(match[1] or 0)) or text
    if match := _MONTH_DAY.fullmatch(lower):
        return _iso(match[3], _month(match[1]), int(match[2])) or text
    return _WORDS.get(lower, text)


def read_query_date(text: str, role: str, form: str | None, unit: Unit) -> str:
    """Return the date of a query like `read_date`; raise an error if it may mean two."""
    if unit is Unit.INTEGER:
        return text
    read = read_date(text, role, form)
    match = _NUMERIC.fullmatch(read.strip())
    if match and _is_day_and_month(match) and match[1] != match[3]:
        raise TilpError(f"{_both_readings(text)}; write it as year-month-day")
    return (_digit_date(text.strip()) or read) if read == text else read


def normalise_dates(
    facts: Sequence[FactTable], form: str | None, on_error: OnError, *, from_excel: bool = False
) -> tuple[list[FactTable], str | None, str]:
    """Return facts with dates as `parse_date` reads them, their form if only one, and a note.

    Raises:
        DataError: Day and month cannot be told apart, or more than a fifth of a column is
            unreadable and defects are to be repaired; the message says which option helps.
    """
    check_form(form)
    counts = {role: _count([table.frame[role] for table in facts]) for role in ("start", "end")}
    texts = list(dict.fromkeys(text.strip() for role in counts.values() for text in role))
    form = form or _find_form(texts, facts, from_excel)
    changed: dict[str, dict[str, str]] = {}
    for role, of_role in counts.items():
        read = {text: read_date(text, role, form) for text in of_role}
        changed[role] = {text: new for text, new in read.items() if new != text}
        if on_error is OnError.REPAIR:
            _refuse_unreadable(facts, role, of_role, read)
    found = ""
    if every := {**changed["end"], **changed["start"]}:
        text = next(iter(every))
        how = f" {FORMS[form]}" if form in FORMS else "" if form is None else f" by {form!r}"
        found = f"dates are read{how}: {text!r} is {every[text] or 'unknown'}"
    elif form is None and _all_excel(texts):
        found = "dates are whole numbers; if they are Excel's days: --date-format excel"
    dates = [pl.col(role).replace(changed[role]) for role in changed if changed[role]]
    return [replace(table, frame=table.frame.with_columns(dates)) for table in facts], form, found


def _count(columns: Sequence[pl.Series]) -> dict[str, int]:
    counts = pl.concat(columns).drop_nulls().alias("text").value_counts(sort=True, name="n")
    found = dict(counts.sort("n", "text", descending=[True, False]).iter_rows())
    return {text: n for text, n in found.items() if text.strip()}


def _find_form(texts: Sequence[str], facts: Sequence[FactTable], from_excel: bool) -> str | None:
    """Return the form that all dates of a table have; None if each speaks for itself."""
    numeric = [m for text in texts if (m := _NUMERIC.fullmatch(text)) and _is_day_and_month(m)]
    day_first = next((m.string for m in numeric if int(m[1]) > 12), None)
    month_first = next((m.string for m in numeric if int(m[3]) > 12), None)
    both = [m.string for m in numeric if max(int(m[1]), int(m[3])) <= 12 and m[1] != m[3]]
    readings = [_both_readings(text) for text in both[:1]]
    options = "say which with --date-format day-first or month-first (date_format=…)"
    if day_first and month_first:
        first = f"{_where(facts, day_first)}: {day_first!r} has the day first"
        second = f"{_where(facts, month_first)}: {month_first!r} has the month first"
        found = ". ".join([f"{first}, and {second}", *readings])
        raise DataError(f"{found}. Correct them, or {options}; the others are then malformed")
    if day_first or month_first:
        return "day-first" if day_first else "month-first"
    if both:
        found = f"{_where(facts, both[0])}: {readings[0]}"
        raise DataError(f"{found}, and no date of the table shows which; {options}")
    long = [text for text in texts if re.fullmatch(r"\d{5,}(T.*|\.0)?", text)]
    if long and all(map(_digit_date, long)):
        return "digits"
    years = [text for text in texts if re.fullmatch(r"\d{4}[-/–]\d\d", text)]
    surely = len(years) >= _MIN_SEASONS or any(int(text[-2:]) > 12 for text in years)
    if surely and all(map(_season, years)):
        return "seasons"
    return "excel" if from_excel and _all_excel(texts) else None


def _refuse_unreadable(
    facts: Sequence[FactTable], role: str, counts: Mapping[str, int], read: Mapping[str, str]
) -> None:
    """Refuse a column of which more than a fifth cannot be read."""
    kinds = {text: parse_date(new).kind for text, new in read.items()}
    malformed = {t: n for t, n in counts.items() if kinds[t] is DateKind.MALFORMED}
    given = sum(n for text, n in counts.items() if kinds[text] is not DateKind.UNKNOWN)
    number = sum(malformed.values())
    if number <= _UNREADABLE_SHARE * given or (number < _FEW and number < given):
        return
    shapes, example = Counter[str](), dict[str, str]()
    for text, n in malformed.items():
        shape = re.sub(r"[^\W\d]+", "a", re.sub(r"\d", "9", text.strip()))
        shapes[shape] += n
        example.setdefault(shape, text)
    commonest = shapes.most_common(3)
    listed = ", ".join(f"{example[shape][:40]!r} ({n:,} such)" for shape, n in commonest)
    format_ = '--date-format "%d %b %y" with what they have'
    if mark := re.fullmatch(r"9{1,2}([/.-])9{1,2}\1(99)", commonest[0][0]):
        format_ = f'--date-format "%d{mark[1]}%m{mark[1]}%y", or with %m first'
    raise DataError(
        f"{_where(facts, next(iter(malformed)))}: {number:,} of {given:,} dates in the column "
        f"{role} cannot be read; the commonest: {listed}. If they are dates, say how they are "
        f"written ({format_}; %Y or %y is the year, %m or %b the month, %d the day). If the "
        "column holds something else, say which is which with --columns; --on-error skip leaves "
        "such rows out"
    )


def _where(facts: Sequence[FactTable], text: str) -> str:
    """Return the file and line of the first fact with a date."""
    for table in facts:
        for row in zip(table.lines, table.frame["start"], table.frame["end"], strict=True):
            if text in [(cell or "").strip() for cell in row[1:]]:
                return f"{table.source}, line {row[0]}"
    return facts[0].source


def _both_readings(text: str) -> str:
    read = [read_date(text, "start", form) for form in ("day-first", "month-first")]
    return f"{text!r} is {read[0]} with the day first, and {read[1]} with the month first"


def _is_day_and_month(match: re.Match[str]) -> bool:
    low, high = sorted((int(match[1]), int(match[3])))
    return 1 <= low <= 12 and high <= 31


def _digit_date(text: str) -> str | None:
    match = _DIGITS.fullmatch(text)
    return match and _iso(match[1], int(match[2]), int(match[3]), complete=True)


def _season(text: str) -> re.Match[str] | None:
    match = _SEASON.fullmatch(text)
    return match if match and (int(match[2]) + 1) % 100 == int(match[3]) else None


def _excel_days(text: str) -> int | None:
    match = re.fullmatch(r"(\d{5})(?:\.\d+)?", text, re.ASCII)
    return int(match[1]) if match and int(match[1]) in _EXCEL_DAYS else None


def _all_excel(texts: Iterable[str]) -> bool:
    known = [text for text in texts if parse_date(text).kind is not DateKind.OPEN]
    return bool(known) and all(_excel_days(text) is not None for text in known)


def _month(name: str) -> int:
    return next((i for i, full in enumerate(_MONTHS, start=1) if full.startswith(name)), 99)


def _iso(year: str, month: int, day: int, *, complete: bool = False) -> str | None:
    """Return a date if there is one of these numbers."""
    text = f"{year}-{month:02d}" + (f"-{day:02d}" if day or complete else "")
    parsed = parse_date(text)
    is_date = parsed.kind is DateKind.KNOWN and parsed.month and (parsed.day or not complete)
    return text if is_date else None


def _by_format(text: str, form: str) -> str | None:
    try:
        moment = datetime.strptime(text, form)
    except ValueError:
        return None
    if re.search("%[djcxuwaA]", form):
        return moment.date().isoformat()
    return f"{moment:%Y-%m}" if re.search("%[mbB]", form) else f"{moment.year:04d}"
