"""Dates as people write them: recognised by shape, and rewritten as `parse_date` reads them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta

import polars as pl

from tilp.errors import DataError, TilpError
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
_MONTHS = (  # in English, German and French
    "january januar jänner janvier|february februar février|march märz mars|april avril|may mai|"
    "june juni juin|july juli juillet|august août|september septembre|october oktober octobre|"
    "november novembre|december dezember décembre"
)
_NAME, _TH = r"([^\W\d_]{3,9})\.?", r"(?:st|nd|rd|th|er|\.)?"
_TIME = re.compile(r"[ T]+\d{1,2}:\d\d[:.\d]*( ?[ap]m)?( ?(z|utc|gmt|[+-]\d\d:?\d\d))?$", re.I)
_PLAIN = r"^(\d{1,4}|\d{9,18}|\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8]))$"  # say one thing
_MAX_PLAIN = 100  # of these that are looked at
_NUMERIC = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(\d{4})")
_SEASON = re.compile(r"(\d\d)(\d\d)[-/–](\d\d)")
_ABOUT = re.compile(r"(?:c\.|ca\.?|circa|about|approx\.?|c(?= )|~)\s*(?=\d)", re.IGNORECASE)
_WORDS = {
    **dict.fromkeys(("-", "–", "—", "--", "tbd", "unk", "not known"), ""),
    **dict.fromkeys(("today", "to date", "until now", "till now", "still", "incumbent"), "present"),
    **dict.fromkeys(("heute", "bis heute", "laufend", "aujourd'hui", "aujourd’hui"), "present"),
}
_SHAPES: tuple[tuple[str, Callable[[re.Match[str], bool], str | None]], ...] = (
    (r"(\d{4}) ?[-/–—] ?(\d{4})", lambda m, end: m[1 + end] if m[1] <= m[2] else None),
    (r"(\d{4}) ?[-–—] ?(present|now|today|heute)", lambda m, end: "present" if end else m[1]),
    (r"(\d{1,2})[/.-](\d{4})", lambda m, _: _iso(m[2], int(m[1]))),
    (r"q([1-4])[ /-]?(\d{4})", lambda m, end: _iso(m[2], 3 * int(m[1]) - 2 * (not end))),
    (r"(\d{4})[ /-]?q([1-4])", lambda m, end: _iso(m[1], 3 * int(m[2]) - 2 * (not end))),
    (r"(\d{1,4}) ?b\.?c\.?(?:e\.?)?", lambda m, _: str(1 - int(m[1]))),
    (r"(?:the )?(\d{1,3})0'?s", lambda m, _: f"{m[1]}#"),
    (r"([1-9]\d?)(?:st|nd|rd|th) (?:century|c\.?)(?: ad| ce)?", lambda m, _: f"{int(m[1]) - 1}##"),
    (rf"{_NAME},?[ -](\d{{4}})", lambda m, _: _iso(m[2], _month(m[1]))),
    (rf"(\d{{1,2}}){_TH}[ -]{_NAME},?[ -](\d{{4}})", lambda m, _: _iso(m[3], _month(m[2]), m[1])),
    (rf"{_NAME} (\d{{1,2}}){_TH},? (\d{{4}})", lambda m, _: _iso(m[3], _month(m[1]), m[2])),
)
_EXCEL_DAYS = range(10_000, 73_051)  # 1927 to 2099
_UNREADABLE_SHARE = 0.2
_FEW = 3  # unreadable dates that a column may have whatever its length, unless it has no others
_MIN_SEASONS = 3  # distinct texts such as 2005-06 that are no months


def check_form(form: str | None) -> None:
    """Raise an error for a date format that cannot be one."""
    if form is None or form in FORMS:
        return
    try:
        datetime.strptime("", form)
    except (ValueError, re.error) as failure:
        if re.search("%[Yy]", form) and "does not match" in str(failure):
            return  # only the empty text does not
    raise TilpError(
        f"date format {form!r}: write {', '.join(FORMS)}, or a format with a year such as "
        '"%d.%m.%y" (%Y or %y year, %m month, %b month by name, %d day)'
    )


def looks_like_date(text: str) -> bool:
    """Return whether a text is a date, not just a number or a name.

    >>> [looks_like_date(text) for text in ("1990-02", "3/1/1911", "May 1911", "17", "Rovers")]
    [True, True, True, False, False]
    """
    parsed = parse_date(read_date(text, "start", "day-first"))
    if parsed.kind is not DateKind.KNOWN:
        return _NUMERIC.fullmatch(text.strip()) is not None
    least = 100 if parsed.month else 1000
    return least <= parsed.first_year <= 2999 or _digit_date(text.strip()) is not None


def read_date(text: str, role: str, form: str | None = None) -> str:
    """Return a date as `parse_date` reads it; the text itself if no shape fits.

    Args:
        text: As written.
        role: 'start' or 'end', which of a range or season is meant.
        form: One of `FORMS` or a format of strptime (default None: shapes that say one thing).

    >>> read_date("1 March 1999", "start"), read_date("2005/2006", "end"), read_date("1990s", "end")
    ('1999-03-01', '2006', '199#')
    """
    plain = _TIME.sub("", _ABOUT.sub("", text.strip(), count=1))
    read: str | None = None
    if form is not None and form not in FORMS:
        read = _by_format(text.strip(), form)
    elif match := _NUMERIC.fullmatch(plain):
        first, second = int(match[1]), int(match[3])
        if form == "month-first" or (form != "day-first" and (second > 12 or first == second)):
            read = _iso(match[4], first, match[3])
        elif form == "day-first" or first > 12:
            read = _iso(match[4], second, match[1])
    elif form == "digits":
        read = _digit_date(plain)
    elif form == "seasons" and (season := _season(plain)):
        read = str(int(season[1] + season[2]) + (role == "end"))
    elif form == "excel" and (days := _excel_days(text.strip())) is not None:
        read = str(date(1899, 12, 30) + timedelta(days))
    lower = plain.lower()
    for shape, convert in _SHAPES if read is None else ():
        if match := re.fullmatch(shape, lower):
            read = convert(match, role == "end")
    if read is None and parse_date(text).kind is DateKind.MALFORMED:
        read = plain if parse_date(plain).kind is DateKind.KNOWN else None
    return _WORDS.get(lower, text) if read is None else read


def read_query_date(text: str, role: str, form: str | None, unit: Unit) -> str:
    """Return the date of a query like `read_date`; raise an error if it may mean two."""
    read = text if unit is Unit.INTEGER else read_date(text, role, form)
    if unit is Unit.INTEGER or read != text:
        return read
    match = _NUMERIC.fullmatch(text.strip())
    if match and _is_day_and_month(match):
        raise TilpError(f"{_both_readings(text)}; write it as year-month-day")
    return _digit_date(text.strip()) or text


def find_changes(
    texts: Mapping[str, pl.DataFrame], where: Callable[[str], str], form: str | None,
    on_error: OnError, from_excel: bool, columns: Mapping[str, str],
) -> tuple[dict[str, dict[str, str]], str | None, str]:  # fmt: skip
    """Return new texts of dates, as `parse_date` reads them, their form if only one, and a note.

    `texts` are the distinct ones of start and end and their counts n, `columns` what the table
    calls these; `where` finds the file and line of a text. Raises an error with the option that
    helps if day and month cannot be told apart, or if more than a fifth of a column is unreadable
    and defects are to be repaired.
    """
    may_skip = form in (None, "day-first", "month-first")
    counts, plain = {}, {}
    for role, frame in texts.items():
        every = frame.drop_nulls().sort("n", "text", descending=[True, False])
        is_plain = pl.lit(may_skip) & pl.col("text").str.contains(_PLAIN)
        skipped = is_plain & (is_plain.cum_sum() > _MAX_PLAIN)
        counts[role] = {t: n for t, n in every.filter(~skipped).iter_rows() if t.strip()}
        plain[role] = int(every.filter(skipped)["n"].sum())
    distinct = list(dict.fromkeys(text.strip() for role in counts.values() for text in role))
    form = form or _find_form(distinct, where, from_excel)
    changed: dict[str, dict[str, str]] = {}
    for role, of_role in counts.items():
        read = {text: read_date(text, role, form) for text in of_role}
        changed[role] = {text: new for text, new in read.items() if new != text}
        if on_error is OnError.REPAIR:
            called = columns.get(role, columns.get("date", role))
            _refuse_unreadable(where, called, of_role, read, plain[role])
    note = ""
    if new_texts := {**changed["end"], **changed["start"]}:
        text = next(iter(new_texts))
        how = f" {FORMS[form]}" if form in FORMS else "" if form is None else f" by {form!r}"
        note = f"dates are read{how}: {text!r} is {new_texts[text] or 'unknown'}"
    elif form is None and _all_excel(distinct):
        note = "dates are whole numbers; if they are Excel's days: --date-format excel"
    return changed, form, note


def _find_form(texts: Sequence[str], where: Callable[[str], str], from_excel: bool) -> str | None:
    """Return the form that all dates of a table have; None if each speaks for itself."""
    matches = [(text, _NUMERIC.fullmatch(_TIME.sub("", text))) for text in texts]
    numeric = [(text, m) for text, m in matches if m and _is_day_and_month(m)]
    day_first = next((text for text, m in numeric if int(m[1]) > 12), None)
    month_first = next((text for text, m in numeric if int(m[3]) > 12), None)
    either = [t for t, m in numeric if max(int(m[1]), int(m[3])) <= 12 and int(m[1]) != int(m[3])]
    readings = [_both_readings(text) for text in either[:1]]
    options = "say which with --date-format day-first or month-first (date_format=…)"
    if day_first and month_first:
        first = f"{where(day_first)}: {day_first!r} has the day first"
        second = f"{where(month_first)}: {month_first!r} has the month first"
        found = ". ".join([f"{first}, and {second}", *readings])
        raise DataError(f"{found}. Correct them, or {options}; the others are then malformed")
    if day_first or month_first:
        return "day-first" if day_first else "month-first"
    if either:
        found = f"{where(either[0])}: {readings[0]}"
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
    where: Callable[[str], str], column: str, counts: Mapping[str, int], read: Mapping[str, str],
    plain: int,
) -> None:  # fmt: skip
    """Refuse a column of which more than a fifth cannot be read, given how many others can."""
    kinds = {text: parse_date(new).kind for text, new in read.items()}
    malformed = {text: n for text, n in counts.items() if kinds[text] is DateKind.MALFORMED}
    given = plain + sum(n for t, n in counts.items() if kinds[t] is not DateKind.UNKNOWN)
    number = sum(malformed.values())
    if number <= _UNREADABLE_SHARE * given or (number < _FEW and number < given):
        return
    shape = {t: re.sub(r"[^\W\d]+", "a", re.sub(r"\d", "9", t.strip())) for t in malformed}
    example = {shape[text]: text for text in reversed(malformed)}
    commonest = Counter(shape[t] for t, n in malformed.items() for _ in range(n)).most_common(3)
    listed = ", ".join(f"{example[form][:40]!r} ({n:,} such)" for form, n in commonest)
    form = '--date-format "%d %b %y" with what they have'
    if mark := re.fullmatch(r"9{1,2}([/.-])9{1,2}\1(99)", commonest[0][0]):
        form = f'--date-format "%d{mark[1]}%m{mark[1]}%y", or with %m first'
    raise DataError(
        f"{where(next(iter(malformed)).strip())}: {number:,} of {given:,} dates in the "
        f"column {column} cannot be read; the commonest: {listed}. If they are dates, say how they "
        f"are written ({form}; %Y or %y is the year, %m or %b the month, %d the day). If the "
        "column holds something else, name the right one with --columns; --on-error skip leaves "
        "such rows out"
    )


def _both_readings(text: str) -> str:
    read = [read_date(text, "start", form) for form in ("day-first", "month-first")]
    return f"{text!r} is {read[0]} with the day first, and {read[1]} with the month first"


def _is_day_and_month(match: re.Match[str]) -> bool:
    low, high = sorted((int(match[1]), int(match[3])))
    return 1 <= low <= 12 and high <= 31


def _digit_date(text: str) -> str | None:
    match = re.fullmatch(r"([12]\d{3})(\d\d)(\d\d)(?:T.*|\.0)?", text, re.ASCII)
    return _iso(match[1], int(match[2]), match[3]) if match and int(match[3]) else None


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
    """Return the only month whose name begins so; 0 if there is none, or another one."""
    months = enumerate(_MONTHS.split("|"), start=1)
    found = [i for i, names in months if any(n.startswith(name) for n in names.split())]
    return found[0] if len(found) == 1 else 0


def _iso(year: str, month: int, day: str | None = None) -> str | None:
    """Return a date if there is one of these numbers."""
    text = f"{year}-{month:02d}" if day is None else f"{year}-{month:02d}-{int(day):02d}"
    return text if month and parse_date(text).kind is DateKind.KNOWN else None


def _by_format(text: str, form: str) -> str | None:
    try:
        moment = datetime.strptime(text, form)
    except (ValueError, re.error):
        return None
    precision = 10 if re.search("%[dj]", form) else 7 if re.search("%[mbB]", form) else 4
    return moment.date().isoformat()[:precision]
