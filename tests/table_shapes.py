"""Small tables as people have them: how each is read, or what stops it."""

import json
import sqlite3
from pathlib import Path

import polars as pl

LONG = [
    ("Ada", "playsFor", "Rovers", "1990", "1993"),
    ("Ben", "playsFor", "United", "1985", "1992"),
    ("Ben", "coachOf", "Rovers", "1999", "2004"),
]


def csv(header, *rows, separator=","):
    """The text of a table."""
    return "\n".join(separator.join(row) for row in (header.split(","), *rows)) + "\n"


def dated(*dates, header="subject,relation,object,date"):
    """A table of facts with these dates."""
    return csv(header, *((f"s{index}", "r", "o", date) for index, date in enumerate(dates)))


# Name: (text of the file, options of read, first fact as text, text of the notice or None)
READ = {
    "usual names.csv": (csv("subject,relation,object,start,end", *LONG), {}, "ADA", None),
    "head and tail.tsv": (csv("head,predicate,tail,since,until", *LONG, separator="\t"), {},
                          "ADA", None),
    "camel case.csv": (csv("Subject,RelationType,Object,startDate,End", *LONG), {}, "ADA", None),
    "valid from.csv": (csv("s,p,o,valid_from,valid_to", *LONG), {}, "ADA", None),
    "semicolons.csv": (csv("subject,relation,object,begin,end", *LONG, separator=";"), {},
                       "ADA", None),
    "bars.txt": (csv("subject,relation,object,start,end", *LONG, separator="|"), {}, "ADA", None),
    "others in order.csv": (csv("member,what,of,from,to", *LONG), {}, "ADA",
                            "subject = member, relation = what, object = of, start = from"),
    "longer names.csv": (csv("member,what,of,term_start,term_end", *LONG), {}, "ADA",
                         "start = term_start, end = term_end"),
    "joined and left.csv": (csv("player,kind,team,joined,left", *LONG), {}, "ADA",
                            "subject = player"),
    "some columns.csv": (csv("spieler,art,verein,since,until", *LONG),
                         {"columns": {"subject": "spieler"}}, "ADA", "relation = art"),
    "dates by choice.csv": (csv("subject,relation,object,von,bis", *LONG),
                            {"columns": {"start": "von", "end": "bis"}}, "ADA", None),
    "extra column.csv": (csv("subject,relation,object,start,end,note",
                             *((*row, "x") for row in LONG)), {}, "ADA", "not used: note"),
    "one relation.csv": (csv("player,club,from,to", ("Ada", "Rovers", "1990", "1993")),
                         {"relation_name": "playsFor"}, "ADA", "object = club"),
    "one relation, no header.csv": ("Ada,Rovers,1990,1993\nBen,United,1985,1992\n",
                                    {"relation_name": "playsFor"}, "ADA", None),
    "wide.csv": (csv("member,state,party,term_start,term_end",
                     ("Ada", "WA", "", "1990", "1993"), ("Ben", "", "Whig", "1985", "1992")),
                 {"wide": True}, "(Ada, state, WA, [1990, 1993])", "relations are state, party"),
    "wide, subject in the middle.csv": (
        csv("state,member,start,end", ("WA", "Ada", "1990", "1993")),
        {"wide": True, "columns": {"subject": "member"}}, "(Ada, state, WA, [1990, 1993])",
        "relations are state"),
    "edges.csv": (csv("from,relation,to,date", ("Ada", "met", "Ben", "2001-02-03")), {},
                  "(Ada, met, Ben, [2001-02-03, 2001-02-03])", None),
    "day first.csv": (dated("3/1/1911", "25/12/2001"), {}, "1911-01-03", "day before month"),
    "month first.csv": (dated("3/1/1911", "12/25/2001"), {}, "1911-03-01", "month before day"),
    "said to be day first.csv": (dated("3/1/1911", "4/2/1912"), {"date_format": "day-first"},
                                 "1911-01-03", "day before month"),
    "dots.csv": (dated("3.1.1911", "25.12.2001"), {}, "1911-01-03", None),
    "months by name.csv": (dated("Jan 2001", "Sept. 2003"), {}, "2001-01", "'Jan 2001' is 2001-01"),
    "days by name.csv": (dated("1 March 1999", "March 2 1999", "3rd Apr. 1999"), {}, "1999-03-01",
                         "'1 March 1999' is 1999-03-01"),
    "seasons.csv": (dated("2005/2006", "2006/2007"), {}, "[2005, 2006]", "'2005/2006' is 2005"),
    "short seasons.csv": (dated("2005-06", "1998-99"), {}, "[2005, 2006]", "seasons"),
    "months, no seasons.csv": (dated("2005-06", "2006-07"), {}, "[2005-06, 2005-06]", None),
    "about.csv": (dated("c. 1999", "ca. 2001", "1999"), {}, "[1999, 1999]", "'c. 1999' is 1999"),
    "decades.csv": (dated("1990s", "1980s", "19th century"), {}, "[1990, 1999]", "'1980s' is 198#"),
    "words.csv": (csv("subject,relation,object,start,end", ("s", "r", "o", "1990", "current"),
                      ("t", "r", "o", "1990", "-"), ("u", "r", "o", "1990", "now")), {},
                  "[1990, present]", "'-' is unknown"),
    "eight digits.csv": (dated("20200131", "20200201"), {}, "2020-01-31", "eight digits"),
    "timestamps.csv": (dated("2001-01-03T10:00:00+01:00", "2001-01-04 11:00:00Z"), {},
                       "2001-01-03", None),
    "two digits.csv": (dated("3/1/11", "25/12/01"), {"date_format": "%d/%m/%y"}, "2011-01-03",
                       "by '%d/%m/%y'"),
    "excel days.csv": (dated("36526", "36892"), {"date_format": "excel"}, "2000-01-01", "Excel"),
    "relation by name.csv": (csv("player,relation,club,from,to", *LONG), {}, "ADA",
                             "subject = player, relation = relation, object = club"),
    "same name twice.csv": (csv("name,name,relation,start,end", ("Ada", "Rovers", "playsFor",
                                "1990", "1993")), {}, "ADA", "subject = name"),
    "row numbers.csv": (csv(",player,club,from,to", ("0", "Ada", "Rovers", "1990", "1993")),
                        {"relation_name": "playsFor"}, "ADA", "not used: one without a name"),
    "empty columns.csv": (csv("s,p,o,start,end,,,", *((*row, "", "", "") for row in LONG)), {},
                          "ADA", None),
    "years in a column.csv": (csv("player,club,years", ("Ada", "Rovers", "1990-1993"),
                                  ("Ben", "United", "1985–present")),
                              {"relation_name": "playsFor"}, "ADA", "date = years"),
    "numbers of days.csv": (csv("player,club,from,to", ("Ada", "Rovers", "36526", "36892")),
                            {"relation_name": "playsFor", "date_format": "excel"}, "2000-01-01",
                            "start = from, end = to"),
    "deutsch.csv": (csv("Spieler;Art;Verein;von;bis", separator=";") + "Ada;spielt;Rovers;"
                    "1. Januar 1990;2. März 1993\nBen;spielt;United;3. Mai 1991;heute\n", {},
                    "[1990-01-01, 1993-03-02]", "start = von, end = bis"),
    "français.csv": (csv("joueur;rôle;club;début;fin", separator=";") + "Ada;joue;Rovers;"
                     "1er février 1990;2 août 1993\nBen;joue;United;3 juin 1991;aujourd'hui\n", {},
                     "[1990-02-01, 1993-08-02]", "start = début, end = fin"),
    "months by number.csv": (dated("03/1911", "12/1920"), {}, "1911-03", "'03/1911' is 1911-03"),
    "quarters.csv": (csv("s,p,o,start,end", ("s", "r", "o", "Q1 2005", "2006-Q2")), {},
                     "[2005-01, 2006-06]", "'2006-Q2' is 2006-06"),
    "before our era.csv": (dated("44 BC", "431 B.C.E."), {}, "[-43, -43]", "'431 B.C.E.' is -430"),
    "lines.jsonl": ("".join(json.dumps({"who": s, "what": r, "of": o, "from": int(a), "to": b})
                            + "\n" for s, r, o, a, b in LONG), {}, "ADA", "subject = who"),
    "array.json": (json.dumps([{"subject": "Ada", "relation": "playsFor", "object": "Rovers",
                                "start": 1990.0, "end": 1993}]), {}, "ADA", None),
}  # fmt: skip

# Name: (text of the file, options of read, what the message says)
STOPPED = {
    "mixed.csv": (dated("25/12/2001", "12/25/2001", "3/1/1911"), {},
                  r"line 2: '25/12/2001' has the day first, and .*line 3: '12/25/2001' has the "
                  r"month first. '3/1/1911' is 1911-01-03 .* and 1911-03-01 .*--date-format"),
    "undecided.csv": (dated("3/1/1911", "4/2/1912"), {},
                      r"'3/1/1911' is 1911-01-03 with the day first, and 1911-03-01 .*"
                      r"--date-format day-first or month-first"),
    "two-digit years.csv": (dated("3/1/11", "25/12/01", "1/1/99"), {},
                            r"3 of 3 dates .*'1/1/99'.*--date-format \"%d/%m/%y\""),
    "weeks.csv": (dated("2001", "W1 2005", "W2 2005", "W3 2005"), {},
                  r"3 of 4 dates in the column date .* 'W1 2005' \(3 such\).*--date-format"),
    "two-digit years, from and to.csv": (
        csv("player,relation,club,from,to", ("Ada", "playsFor", "Rovers", "1/7/90", "3/1/93")), {},
        r"line 2: 1 of 1 dates in the column from .*%d/%m/%y"),
    "title.csv": ("Spells until 2020,,,\n,,,\nplayer,club,from,to\nAda,Rovers,1990,1993\n", {},
                  "line 3: player, club, from, to looks like a header below 2 other rows"),
    "rents.csv": (csv("Mieter;Wohnung;Beginn;Ende;Miete", separator=";")
                  + "Ada;Whg. 1;1990;1993;500,50\n", {}, "--relation-name"),
    "no relation.csv": (csv("player,club,from,to", ("Ada", "Rovers", "1990", "1993")), {},
                        "--relation-name"),
    "no relation, no header.csv": ("Ada,Rovers,1990\nBen,United,1985\n", {}, "--relation-name"),
    "many columns.csv": (csv("member,state,party,chamber,from,to",
                             ("Ada", "WA", "Whig", "sen", "1990", "1993")), {},
                         "--columns .*--wide"),
    "unknown header.csv": (csv("spieler,art,verein,wann", ("Ada", "r", "Rovers", "1990")), {},
                           "looks like a header.*--columns"),
    "two roles.csv": (csv("a,b,c", ("x", "y", "z")),
                      {"columns": {"subject": "a", "relation": "b", "object": "a"}},
                      "'a' is both subject and object"),
    "bad format.csv": (dated("1990"), {"date_format": "%d"}, "a format with a year"),
    "kept names.csv": (csv("subject,relation,object,size", ("x", "y", "z", "big")),
                       {"keep": ["size"]}, "size is 'big', not a number"),
    "deep.jsonl": ("[" * 100_000, {}, "not JSON"),
    "long number.jsonl": ('{"subject": ' + "9" * 5_000 + "}", {}, "not JSON"),
    "nested.jsonl": ('{"subject": {"name": "Ada"}, "relation": "r", "object": "o"}', {},
                     "line 1: a cell holds dict .*Ada.*flatten"),
    "no workbook.xlsx": ("text", {}, "cannot be read as an Excel workbook"),
}  # fmt: skip


def write_sqlite(path: Path, tables=("facts",)) -> Path:
    """A SQLite database with the facts in each table."""
    with sqlite3.connect(path) as connection:
        for name in tables:
            connection.execute(f'CREATE TABLE {name} (s, r, o, "from", "to")')
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", LONG)
    connection.close()
    return path


def write_duckdb(path: Path) -> Path:
    """A DuckDB database with the facts, dates as dates."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        rows = ", ".join(f"('{s}', '{r}', '{o}', {a}, {b})" for s, r, o, a, b in LONG)
        connection.execute(
            'CREATE TABLE facts AS SELECT s AS subject, r AS relation, o AS "object", '
            'make_date(a, 1, 1) AS "start", b AS since_not '
            f"FROM (VALUES {rows}) AS t(s, r, o, a, b)"
        )
    return path


def write_excel(path: Path, frame: pl.DataFrame) -> Path:
    """An Excel workbook with a frame in its first sheet."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(frame.columns)
    for row in frame.iter_rows():
        book.active.append(row)
    book.save(path)
    return path
