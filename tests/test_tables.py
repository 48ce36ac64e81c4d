"""Tables as people have them: in at the first try, or stopped with the option that helps."""

import datetime
import json
import re
import shlex
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilp
from table_shapes import LONG, READ, STOPPED, dated, write_duckdb, write_excel, write_sqlite
from tilp import DataError, Query, TilpError, TilpWarning
from tilp.errors import TilpNotice
from tilp.graph import merge_facts
from tilp.graph.vocabulary import NearNames, Vocabulary
from tilp.io.date_shapes import FORMS, looks_like_date, read_date
from tilp.time import parse_date
from tilp.time.dates import DateKind

ADA = "(Ada, playsFor, Rovers, [1990, 1993])"


def read(source, **options):
    """The graph, and all warnings as one text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = tilp.read(source, **options)
    return graph, "\n".join(str(one.message) for one in caught)


@pytest.mark.parametrize("name", READ)
def test_tables_are_read_at_the_first_try(tmp_path, name):
    text, options, first, notice = READ[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    graph, told = read(tmp_path / name, **options)
    assert (ADA if first == "ADA" else first) in str(graph.fact(0))
    assert notice in told if notice else not told
    assert not len(graph.defects)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@pytest.mark.parametrize("name", STOPPED)
def test_others_are_stopped_with_the_option_that_helps(tmp_path, name):
    text, options, message = STOPPED[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(TilpError, match=message):
        tilp.read(tmp_path / name, **options)


def test_databases(tmp_path):
    one = write_sqlite(tmp_path / "one.db")
    assert str(read(one)[0].fact(0)) == ADA and read(one)[0].source(0) == "one.db, row 1"
    two = write_sqlite(tmp_path / "two.db", ["facts", "others"])
    with pytest.raises(DataError, match=r"2 tables .*--sql \"SELECT \* FROM facts\""):
        tilp.read(two)
    graph, _ = read(two, sql="SELECT * FROM facts WHERE s = 'Ben'")
    assert len(graph) == 2
    with pytest.raises(DataError, match="no such table"):
        tilp.read(two, sql="SELECT * FROM no_table")
    with pytest.raises(DataError, match="readonly database"):
        tilp.read(two, sql="DROP TABLE facts")
    duck = write_duckdb(tmp_path / "facts.duckdb")
    graph, told = read(duck)
    assert graph.date_text("start")[0] == "1990-01-01" and "since_not" in told
    with pytest.raises(DataError, match="does not exist"):
        tilp.read(duck, sql="SELECT * FROM no_table")
    (tmp_path / "plain.csv").write_text("a,r,b\n")
    with pytest.raises(TilpError, match="is for files of SQLite"):
        tilp.read(tmp_path / "plain.csv", sql="SELECT 1")


def test_excel(tmp_path):
    dates = [datetime.date(1990, 1, 1), None, datetime.date(1999, 1, 1)]
    frame = pl.DataFrame(LONG, ["who", "what", "of", "from", "to"], orient="row")
    real = write_excel(tmp_path / "a.xlsx", frame.with_columns(pl.Series("from", dates)).drop("to"))
    graph, told = read(real)
    assert graph.date_text("start").to_list() == ["1990-01-01", "", "1999-01-01"]
    assert graph.source(2) == "a.xlsx, row 4" and "subject = who" in told
    days = frame.with_columns(pl.Series("from", [36526, 36892, 40000])).drop("to")
    graph, told = read(write_excel(tmp_path / "b.xlsx", days))
    assert graph.date_text("start")[0] == "2000-01-01" and "Excel" in told


def test_congress_in_one_command_each(published, run):
    folder = published / "congress"
    code, out, err = run("inspect", folder / "congress.csv")
    assert code == 0 and "13,286" in out
    assert "subject = member, relation = what, object = of, start = from, end = to" in err
    code, out, err = run("inspect", folder / "congress_wide.csv", "--wide")
    assert code == 0 and "11,163" in out and "chamber, state, district, party" in err


def test_an_empty_name_follows_on_error(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("subject,relation,object,start\na,r,b,1990\n,r,c,1991\nd,r,,1992\n")
    for choice in ("repair", "skip"):
        graph, told = read(path, on_error=choice)
        assert len(graph) == 1 and "2 × empty subject, relation or object (row skipped)" in told
        assert graph.defects["line"].to_list() == [3, 4]
        assert tilp.inspect(graph).defects.empty_names == {"train": 2}
    with pytest.raises(DataError, match=r"line 3: column 1 \(subject\) is empty"):
        tilp.read(path, on_error="raise")
    path.write_text("member,state,start\nAda,,1990\n,WA,1991\nBen,WA,1991\n")
    graph, told = read(path, wide=True)
    assert [str(fact) for fact in graph.facts()] == ["(Ben, state, WA, [1991, ?])"]
    assert "1 × empty" in told


def test_inspect_counts_rows_not_dates():
    rows = [("a", "r", "b", str(year)) for year in range(1990, 2000)] + [("a", "r", "b", "bad")]
    frame = pl.DataFrame(rows, ["subject", "relation", "object", "date"], orient="row")
    graph, _ = read(frame)
    assert len(graph.defects) == 2
    assert tilp.inspect(graph).defects.malformed_dates == {"train": 1}


def test_numbers_are_kept_as_attributes():
    frame = pl.DataFrame(
        {"s": ["a", "b", "a"], "r": "r", "o": ["c", "d", "e"], "size": [1.5, None, 2.5], "n": 7}
    )
    graph, told = read(frame, keep=["size", "n"])
    assert not told and set(graph.attributes) == {"size", "n"}
    values = dict(zip(graph.entities, graph.attributes["size"], strict=True))
    assert values["a"] == 2.5 and np.isnan(values["b"]) and np.isnan(values["c"])
    with pytest.raises(DataError, match="no column 'x' to keep"):
        tilp.read(frame, keep=["x"])


def test_empty_splits_say_so(tmp_path):
    (tmp_path / "train.csv").write_text("subject,relation,object\na,r,b\n")
    (tmp_path / "test.csv").write_text("subject,relation,object\n")
    with pytest.warns(TilpWarning, match=r"test.csv: no facts, so test is empty"):
        assert len(tilp.read(tmp_path)) == 1


def test_a_byte_order_mark_in_a_name_is_read_alike_by_pack_and_read(tmp_path):
    rows = "".join(f"\ufeffs{n % 9}\tr\to{n}\t{1900 + n % 90}\n" for n in range(3_000))
    (tmp_path / "f.tsv").write_text(rows, encoding="utf-8-sig")
    graph = tilp.read(tmp_path / "f.tsv")
    assert len(graph.entities) == 3_009 and graph.fact(0).subject == "\ufeffs0"
    assert tilp.pack(tmp_path / "f.tsv", tmp_path / "packed", memory=24 * 300) == graph.canonical()


@pytest.mark.parametrize("days", [-95_000_000, 95_000_000, 3_000_000])
def test_dates_of_parquet_may_be_far_away(tmp_path, days):
    dates = pl.Series([days, 10], dtype=pl.Int32).cast(pl.Date)
    frame = pl.DataFrame({"s": ["a", "b"], "r": "r", "o": "c", "start": dates})
    frame.write_parquet(tmp_path / "f.parquet")
    assert tilp.read(tmp_path / "f.parquet", unit="day").start.tolist() == [days, 10]


@given(st.text(max_size=20), st.sampled_from([None, *FORMS, "%d/%m/%y"]))
def test_any_text_is_read_to_a_date_or_left_alone(text, form):
    for role in ("start", "end"):
        new = read_date(text, role, form)
        assert new == text or parse_date(new).kind is not DateKind.MALFORMED
    looks_like_date(text)


@given(st.dates(min_value=datetime.date(1000, 1, 1)), st.sampled_from(["/", "-"]))
def test_days_come_back_from_every_form(day, mark):
    forms = {
        "day-first": f"{day.day}{mark}{day.month}{mark}{day.year}",
        "month-first": f"{day.month:02d}{mark}{day.day:02d}{mark}{day.year}",
        "%Y.%m.%d": f"{day.year:04d}.{day.month}.{day.day}",
        None: f"{day.day} {day:%B} {day.year}",
    }
    for form, text in forms.items():
        assert read_date(text, "start", form) == str(day)
    if day.year < 3000:
        assert read_date(f"{day:%Y%m%d}", "end", "digits") == str(day)


@pytest.mark.parametrize("name", READ)
def test_a_packed_table_is_the_one_that_is_read(tmp_path, name):
    text, options, *_ = READ[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    graph, told = read(tmp_path / name, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        packed = tilp.pack(tmp_path / name, tmp_path / "packed", **options, memory=1_000)
    assert packed == graph.canonical() and packed.texts.equals(graph.texts)
    assert packed.reading == tilp.read(tmp_path / "packed").reading == graph.reading
    assert "\n".join(str(one.message) for one in caught) == told


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@pytest.mark.parametrize("name", STOPPED)
def test_pack_stops_with_the_same_words(tmp_path, name):
    text, options, message = STOPPED[name]
    if "keep" not in options:
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(TilpError, match=message):
            tilp.pack(tmp_path / name, tmp_path / "packed", **options)


@pytest.mark.parametrize("on_error", ["repair", "skip", "raise"])
def test_pack_follows_on_error_where_a_name_is_empty(tmp_path, on_error):
    path = tmp_path / "f.csv"
    rows = [f"s{n},r,{'' if n % 50 == 7 else n},{'x' if n == 9 else 2000}" for n in range(300)]
    path.write_text("subject,relation,object,start\n" + "\n".join(rows))
    if on_error == "raise":
        for work in (tilp.read, lambda *a, **k: tilp.pack(*a, tmp_path / "p", **k)):
            with pytest.raises(DataError, match=r"line 9: column 3 \(object\) is empty"):
                work(path, on_error=on_error)
        return
    graph, _ = read(path, on_error=on_error)
    packed = tilp.pack(path, tmp_path / "packed", on_error=on_error, memory=30_000)
    assert packed == graph.canonical() and len(graph.defects) == 7
    assert packed.defects.equals(graph.defects)


def test_pack_as_a_command(tmp_path, run):
    path = tmp_path / "f.csv"
    path.write_text("who,club,from,to\nAda,Rovers,13/1/1990,14/1/1993\nBen,United,2/1/1991,\n")
    options = ("--relation-name", "playsFor")
    code, _, err = run("pack", path, "--out", tmp_path / "a", *options)
    assert code == 0 and "subject = who" in err and "day before month" in err
    assert tilp.read(tmp_path / "a") == read(path, relation_name="playsFor")[0].canonical()
    path.write_text("who,state,party,from\nAda,WA,Whig,1990\nBen,OR,,1991\n")
    assert run("pack", path, "--out", tmp_path / "b", "--wide")[0] == 0
    assert len(tilp.read(tmp_path / "b")) == 3
    database = write_sqlite(tmp_path / "two.db", ["facts", "others"])
    sql = "SELECT * FROM facts WHERE s = 'Ben'"
    assert run("pack", database, "--out", tmp_path / "c", "--sql", sql)[0] == 0
    assert tilp.read(tmp_path / "c") == read(database, sql=sql)[0].canonical()
    code, _, err = run("pack", path, "--out", tmp_path / "d", "--keep", "party")
    assert code == 2 and "tilp convert DATA --out FOLDER --keep" in err


# What is remembered: for new facts, queries and predictions


@pytest.fixture(scope="module")
def football_model(tmp_path_factory):
    """A model of a table in which columns and dates are called and written as people do."""
    names = ["player", "kind", "club", "from", "to"]
    rows = [
        (f"p{n % 7}", kind, f"c{n % 3}", f"13/{1 + n % 12}/{1990 + n}", f"14/2/{1995 + n}")
        for n in range(20)
        for kind in ("playsFor", "livesNear")
    ]
    path = tmp_path_factory.mktemp("football") / "football.csv"
    pl.DataFrame(rows, names, orient="row").write_csv(path)
    graph, _ = read(path)
    return tilp.TILP(max_length=1, features="none", n_jobs=1).fit(graph)


QUERIES = pl.DataFrame(
    {"player": ["p1", "p2"], "kind": "playsFor", "from": ["5/3/1999", "6/3/1999"]}
)


def test_frames_of_any_kind_are_queries_and_answers(football_model):
    expected = football_model.predict(
        [Query("playsFor", f"p{n + 1}", start=f"1999-03-0{5 + n}") for n in range(2)], k=3
    )
    answers = football_model.predict(QUERIES, k=3)
    assert answers.drop("start").equals(expected.drop("start"))
    pandas = football_model.predict(QUERIES.to_pandas(), k=3)
    assert isinstance(pandas, pd.DataFrame) and pandas["candidate"].to_list() == [
        *answers["candidate"]
    ]
    arrow = football_model.predict(QUERIES.to_arrow(), k=3)
    assert type(arrow).__module__.startswith("pyarrow") and arrow.num_rows == len(answers)


def test_a_model_remembers_how_its_table_was_read(football_model, tmp_path, run):
    folder = football_model.save(tmp_path / "model")
    assert tilp.load(folder).graph.reading == football_model.graph.reading
    assert football_model.graph.reading["date_format"] == "day-first"
    QUERIES.write_csv(tmp_path / "queries.csv")
    QUERIES.write_ndjson(tmp_path / "queries.jsonl")
    printed = [
        run("predict", folder, "--queries", tmp_path / f"queries.{kind}", "--json")
        for kind in ("csv", "jsonl")
    ]
    assert printed[0][0] == 0, printed
    assert printed[0][1] == printed[1][1]
    new = "player,kind,club,from,to\np1,playsFor,c9,5/3/2011,6/3/2012\n"
    (tmp_path / "new.csv").write_text(new)
    code, out, err = run(
        "update", folder, tmp_path / "new.csv", "--out", tmp_path / "b", "--dry-run"
    )
    assert code == 0 and "1" in out and not (tmp_path / "b").exists()
    assert run("update", folder, tmp_path / "new.csv", "--out", tmp_path / "b")[0] == 0
    updated = tilp.load(tmp_path / "b").graph
    assert updated.date_text("start")[-1] == "2011-03-05"
    assert updated.reading == football_model.graph.reading
    (tmp_path / "queries.csv").write_text("player,kind\n")
    code, _, err = run("predict", folder, "--queries", tmp_path / "queries.csv")
    assert code == 2 and "no queries below them" in err


def test_dates_of_queries_are_those_of_the_table(football_model):
    ask = football_model.ask(Query("playsFor", "p1", start="5/3/1999"), k=1)
    assert (
        ask[0].candidate
        == football_model.ask(Query("playsFor", "p1", start="1999-03-05"), 1)[0].candidate
    )
    explanation = football_model.explain(Query("playsFor", "p1", start="5/3/1999"), ablation=False)
    assert explanation.query.start == "1999-03-05"
    graph = replace(football_model.graph, reading={})
    model = tilp.TILP(max_length=1, features="none").fit(graph)
    with pytest.raises(
        TilpError, match="'5/3/1999' is 1999-03-05 with the day first, and 1999-05-03"
    ):
        model.predict(Query("playsFor", "p1", start="5/3/1999"))


def test_like_reads_wide_tables_and_tables_of_one_relation_again():
    wide = pl.DataFrame({"who": ["a"], "state": ["WA"], "start": ["1990"]})
    first, _ = read(wide, wide=True)
    again, _ = read(wide, like=first)
    assert again == first
    one = pl.DataFrame({"player": ["a"], "club": ["b"], "since": ["1990"]})
    first, _ = read(one, relation_name="playsFor")
    assert read(one, like=first)[0] == first
    plain = pl.DataFrame({"subject": ["a"], "relation": ["r"], "object": ["b"], "date": ["1990"]})
    assert read(plain, like=first)[0] == tilp.read(plain)


def test_reading_stays_with_splits_and_folders(tmp_path):
    graph, _ = read(pl.DataFrame(LONG * 9, ["who", "what", "of", "from", "to"], orient="row"))
    folder = tilp.write(graph, tmp_path / "out")
    assert (
        tilp.read(folder).reading
        == graph.reading
        == {
            "columns": {
                "subject": "who",
                "relation": "what",
                "object": "of",
                "start": "from",
                "end": "to",
            }
        }
    )
    assert merge_facts(graph, graph).graph.reading == graph.reading


# networkx


def test_networkx_in_and_out():
    networkx = pytest.importorskip("networkx")
    graph = tilp.read(
        pl.DataFrame(LONG, ["subject", "relation", "object", "start", "end"], orient="row")
    )
    drawn = graph.to_networkx()
    assert drawn.number_of_edges() == 3
    assert tilp.read(drawn) == graph
    keyed = networkx.MultiDiGraph()
    keyed.add_edge("a", "b", key="knows", date=1990)
    assert str(tilp.read(keyed).fact(0)) == "(a, knows, b, [1990, 1990])"
    with pytest.raises(DataError, match="no relation"):
        tilp.read(networkx.DiGraph([("a", "b")]))


# Names


def test_near_names_by_words_and_without_accents():
    near = NearNames(["Marie Curie, née Skłodowska", "Pierre Curie", "Mário Curì"])
    assert near.find("Marie Curie")[0] == "Marie Curie, née Skłodowska"
    assert near.find("curie, marie")[0] == "Marie Curie, née Skłodowska"
    assert near.find("mario curi")[0] == "Mário Curì"
    assert near.find("zzz") == ()


def test_a_relation_named_like_an_inverse_is_told_apart():
    relations = Vocabulary.of("relation", pl.Series(["r", "r⁻¹", "t"]))
    for name in ("r^-1", "r⁻¹"):
        with pytest.raises(
            TilpError, match=r"may be the relation 'r⁻¹' or the inverse of 'r'.*\"r\"\^-1"
        ):
            relations.find_directed(name)
    assert [relations.find_directed(n) for n in ('"r⁻¹"', '"r"^-1', '"r⁻¹"^-1', "t^-1")] == [
        1,
        3,
        4,
        5,
    ]


def test_notebooks_show_facts_as_a_table(football):
    page = football._repr_html_()
    assert page.count("<tr>") == 5 and "TemporalGraph(2 train" in page


# Options


def test_options_that_make_no_sense(tmp_path, run):
    path = tmp_path / "f.csv"
    path.write_text(dated("1990", "1991"))
    huge = "9" * 5_000
    for options in (
        ("fit", path, "--top", huge), ("fit", path, "--seed", "9" * 30),
        ("fit", path, "--memory", huge),
        ("fit", path, "--memory", "9e99GB"), ("inspect", path, "--columns", "subject=a,subject=b"),
        ("inspect", path, "--relation-name", "r", "--wide"), ("inspect", path, "--sql", "SELECT 1"),
        ("pack", path, "--keep", "x"), ("inspect", path, "--date-format", "%"),
    ):  # fmt: skip
        code, _, err = run(*options, *(("--out", tmp_path / "m") if options[0] == "fit" else ()))
        assert code == 2 and "Traceback" not in err and "defect of tilp" not in err, options
    assert run("-q", "inspect", path)[2] == ""


def test_rule_files_and_phrasings_that_cannot_be_read(tmp_path, football):
    from tilp.rules import Phrasings, RuleSet

    path = tmp_path / "rules.jsonl"
    for content in (
        b'{"rule": ' + b"[" * 100_000,
        b'{"support": ' + b"9" * 5_000 + b"}",
        b"\xff\xfe",
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"rules.jsonl, line 1"):
            RuleSet.read(path)
    (tmp_path / "p.toml").write_text("a = " + "[" * 100_000)
    with pytest.raises(DataError, match="cannot be read as TOML"):
        Phrasings.read(tmp_path / "p.toml", football.relations)


@pytest.mark.parametrize("year", [99, 10**6, 10**12 - 3, 3 - 10**12])
def test_imputed_years_of_any_size_are_read_back(tmp_path, year):
    past, coming = (year - 5, year) if year > 0 else (year, year + 5)
    rows = [("a", "r", "b", past, coming), ("c", "r", "d", year, None), ("e", "r", "f", None, year)]
    frame = pl.DataFrame(rows, ["subject", "relation", "object", "start", "end"], orient="row")
    graph = tilp.impute(tilp.read(frame, unit="year"))
    assert graph.estimated.tolist() == [0, 2, 1]
    assert tilp.read(tilp.write(graph, tmp_path / "out")) == graph


def test_notices_are_warnings_of_their_own(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(dated("20200131", "20200201"))
    with pytest.warns(TilpNotice, match="'20200131' is 2020-01-31"):
        graph = tilp.read(path)
    assert graph.start[1] - graph.start[0] == 1
    with pytest.warns(TilpWarning):
        tilp.read(path)


def test_damaged_tables_queries_and_options_are_read_or_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    from mutated_tables import attack

    with warnings.catch_warnings():
        counts, others = attack(400, 1, tmp_path)
    assert not others
    assert {found for _, found in counts} == {"read", "refused"} and sum(counts.values()) == 400


# Documentation

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
def test_the_examples_of_the_documentation_run(monkeypatch, tmp_path, run):
    monkeypatch.chdir(tmp_path)
    pages = ("data.md", "table-formats.md")
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in pages)
    names, commands = {}, 0
    for kind, title, block in re.findall(
        r'```(csv|python|sh)(?: title="(.*?)")?\n(.*?)```', text, flags=re.DOTALL
    ):
        if kind == "csv":
            Path(title).write_text(block)
        elif kind == "python":
            exec(block, names)
        else:
            for line in block.splitlines():
                code, _, err = run(*shlex.split(line)[1:])
                assert code == 0, (line, err)
                commands += 1
    assert commands == 14 and names["answers"].columns[0] == "query"
    assert str(next(names["new_facts"].facts())) == "(Cleo, playsFor, Rovers, [1994, 1996])"


def test_the_query_of_the_documentation_makes_a_table_of_rdf(monkeypatch, tmp_path):
    pytest.importorskip("pyoxigraph")
    monkeypatch.chdir(tmp_path)
    base = "<http://www.wikidata.org"
    said = f"{base}/entity/statement/s>"
    time = '"1990-05-17T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    Path("statements.nt").write_text(
        f"{base}/entity/Q1> {base}/prop/P39> {said} .\n"
        f"{said} {base}/prop/statement/P39> {base}/entity/Q2> .\n"
        f"{said} {base}/prop/qualifier/P580> {time} .\n"
    )
    text = (DOCS / "table-formats.md").read_text("utf-8")
    (code,) = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    exec(code, {})
    fact = tilp.read("facts.csv").fact(0)
    assert fact.relation == "holds office" and fact.object.endswith("Q2")
    assert str(fact.interval.format(fact.unit)) == "[1990-05-17, ?]"


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
def test_the_tutorial_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    printed = capsys.readouterr().out
    assert "MRR" in printed and "held out" in printed and "'query'" in printed
