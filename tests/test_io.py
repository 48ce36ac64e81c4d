"""Reading and writing: every shape of input, every defect, and 500 broken files."""

import gzip
import io
import json
import os
import random
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from strategies import read_or_skip
from tilp.errors import DataError, TilpError, TilpWarning
from tilp.time import UNKNOWN
from tilp.types import Unit


def write_text(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


FIVE = "Ada\tplaysFor\tRovers\t1990\t1993\nBen\tplaysFor\tUnited\t1985\t\n"


# Shapes of input


@pytest.mark.parametrize("suffix", ["tsv", "txt", "csv"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_text_files(tmp_path, facts, suffix, header, zipped, ending):
    separator = "," if suffix == "csv" else "\t"
    text = facts.write_csv(separator=separator, include_header=header, line_terminator=ending)
    path = tmp_path / f"facts.{suffix}{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    assert tilp.read(path) == tilp.read(facts)


@pytest.mark.parametrize("make", [lambda f: f, lambda f: f.lazy(), pl.DataFrame.to_pandas])
def test_frames(facts, make):
    assert tilp.read(make(facts)) == tilp.read(facts)


@pytest.mark.parametrize(
    ("header", "dates"),
    [("member,what,of,from,to", "1990,1993"), ("player,verb,club,since", "1990"),
     ("who,does,whom,start_date,end_date", "1990,1993"), ("a,b,c,Year", "1990")],
)  # fmt: skip
def test_three_columns_beside_dates_are_taken_by_their_order(tmp_path, header, dates):
    (tmp_path / "facts.csv").write_text(f"{header}\nAda,playsFor,Rovers,{dates}\n")
    first = header.partition(",")[0]
    with pytest.warns(TilpWarning, match=f"taken by their order: subject = {first}, relation"):
        graph = tilp.read(tmp_path / "facts.csv")
    assert len(graph) == 1 and str(graph.fact(0)).startswith("(Ada, playsFor, Rovers, [1990")


def test_from_and_to_may_still_be_the_ends_of_an_edge(tmp_path):
    (tmp_path / "facts.csv").write_text(
        "from,to,relation,start,end\nAda,Rovers,playsFor,1990,1993\n"
    )
    assert str(tilp.read(tmp_path / "facts.csv").fact(0)) == "(Ada, playsFor, Rovers, [1990, 1993])"
    (tmp_path / "odd.csv").write_text("from,to,kind,weight,note\nAda,Rovers,playsFor,1,x\n")
    with pytest.raises(DataError):
        tilp.read(tmp_path / "odd.csv")


@pytest.mark.parametrize("dtype", [pl.Date, pl.Datetime("ms")])
def test_a_date_that_cannot_be_written_is_refused(tmp_path, facts, dtype):
    size = 2**31 - 1 if dtype == pl.Date else 2**62
    dates = pl.Series([size] * len(facts)).cast(dtype)
    facts.with_columns(start=dates).write_parquet(tmp_path / "facts.parquet")
    with pytest.raises(DataError, match=r"'start' \(start\) holds a date past the year 260,000"):
        tilp.read(tmp_path / "facts.parquet")


def test_arrow_parquet_and_paths_as_text(tmp_path, facts):
    assert tilp.read(facts.to_arrow()) == tilp.read(facts)
    assert tilp.read(pa.table(facts.to_arrow())) == tilp.read(facts)
    facts.write_parquet(tmp_path / "facts.parquet")
    assert tilp.read(str(tmp_path / "facts.parquet")) == tilp.read(facts)


def test_pandas_integers_with_gaps_and_real_dates():
    frame = pd.DataFrame({"s": [1, 2], "r": ["a", "b"], "o": [3, 4], "start": [1990, None]})
    graph = tilp.read(frame)
    assert graph.start.tolist() == [1990, UNKNOWN] and graph.end.tolist() == [UNKNOWN] * 2
    frame["start"] = pd.to_datetime(["1990-05-17", None])
    graph = tilp.read(frame)
    assert graph.unit is Unit.DAY and graph.date_text("start").to_list() == ["1990-05-17", ""]


def test_three_four_and_five_columns(tmp_path):
    three = tilp.read(write_text(tmp_path / "3.tsv", "Ada\tknows\tBen\n"))
    assert (three.start[0], three.end[0]) == (UNKNOWN, UNKNOWN)
    four = tilp.read(write_text(tmp_path / "4.tsv", "Ada\tmet\tBen\t2014-01-01\n"))
    assert four.unit is Unit.DAY and four.start[0] == four.end[0] == 16071
    five = tilp.read(write_text(tmp_path / "5.tsv", FIVE))
    assert five.fact(1).interval.end == UNKNOWN


def test_a_coarse_date_covers_its_span_in_a_finer_unit(tmp_path):
    path = write_text(tmp_path / "f.tsv", "a\tr\tb\t1952-##-##\n")
    graph = tilp.read(path, unit="month")
    assert (graph.start[0], graph.end[0]) == (1952 * 12, 1952 * 12 + 11)


@pytest.mark.parametrize("missing", ["", "None", "NaN", "####-##-##", "####", "null"])
def test_missing_dates(tmp_path, missing):
    graph = tilp.read(write_text(tmp_path / "f.tsv", f"a\tr\tb\t1990\t{missing}\n"))
    assert graph.start[0] == 1990 and graph.end[0] == UNKNOWN
    assert graph.date_text("end")[0] == missing


def test_columns_by_any_usual_name_in_any_order_and_by_choice(tmp_path):
    text = "tail,since,note,head,predicate\nRovers,1990,x,Ada,playsFor\n"
    with pytest.warns(TilpWarning, match="columns not used: note"):
        graph = tilp.read(write_text(tmp_path / "f.csv", text))
    assert str(graph.fact(0)) == "(Ada, playsFor, Rovers, [1990, ?])"
    text = "team;von;spieler;art\nRovers;1990;Ada;playsFor\n"
    path = write_text(tmp_path / "g.csv", text)
    roles = {"subject": "spieler", "relation": "art", "object": "team", "start": "von"}
    assert tilp.read(path, columns=roles) == graph
    with pytest.raises(DataError, match="no column 'Spieler'; there are team, von"):
        tilp.read(path, columns={**roles, "subject": "Spieler"})


def test_a_split_column(facts):
    told = facts.with_columns(split=pl.Series(["train", "test", "dev", "train", "train"]))
    graph = tilp.read(told)
    assert graph.bounds == (0, 3, 4, 5)
    assert graph.fact(4).object == "United"
    with pytest.raises(DataError, match="line 1: the split is 'tset'"):
        tilp.read(told.with_columns(split=pl.Series(["train", "tset", "dev", "train", "train"])))


def test_names_hold_anything_but_separators(tmp_path):
    text = '"Weird Al"\thas, "said"\tL\'Été #1\t1990\n'
    assert tilp.read(write_text(tmp_path / "f.tsv", text)).fact(0).subject == '"Weird Al"'
    text = '"Smith, Jo",r,"two\nlines",1990\nb,r,c,1991\n'
    graph = tilp.read(write_text(tmp_path / "f.csv", text))
    assert graph.fact(0).subject == "Smith, Jo" and graph.fact(0).object == "two\nlines"


def test_blank_lines_and_a_byte_order_mark(tmp_path):
    text = "\n\n" + FIVE.replace("\n", "\n\n")
    graph = tilp.read(write_text(tmp_path / "f.tsv", text, "utf-8-sig"))
    assert len(graph) == 2 and graph.fact(0).subject == "Ada"


def test_a_folder_of_splits_with_labels_and_attributes(tmp_path):
    write_text(tmp_path / "train.txt", "0\t0\t1\t1990\n")
    write_text(tmp_path / "dev.txt", "1\t0\t2\t1991\n")
    write_text(tmp_path / "entities.tsv", "id\tkey\tlabel\n0\tQ1\tAda\n1\tQ2\t\n")
    write_text(tmp_path / "relations.tsv", "0\tknows\n")
    write_text(tmp_path / "attributes.tsv", "id\theight\tweight\n1\t1.75\t\n0\t\t60\n")
    graph = tilp.read(tmp_path)
    assert graph.bounds == (0, 1, 2, 2)
    assert list(graph.entities) == ["Ada", "Q2", "2"]
    assert list(graph.relations) == ["knows"]
    np.testing.assert_equal(graph.attributes["height"], [np.nan, 1.75, np.nan])


# Published sets


@pytest.mark.parametrize(
    ("name", "splits", "entities", "relations", "unit"),
    [
        ("WIKIDATA12k", (32_497, 4_062, 4_062), 12_554, 24, Unit.YEAR),
        ("YAGO11k", (16_408, 2_050, 2_051), 10_623, 10, Unit.YEAR),
        ("ICEWS14", (63_685, 13_823, 13_222), 7_128, 230, Unit.DAY),
    ],
)
@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
def test_published_sets_are_read_as_they_are(published, name, splits, entities, relations, unit):
    graph = tilp.read(published / name)
    assert tuple(len(graph.rows(split)) for split in tilp.SPLITS) == splits
    assert (len(graph.entities), len(graph.relations), graph.unit) == (entities, relations, unit)


# What readers usually get wrong


def test_bare_quotation_marks_do_not_merge_rows(tmp_path):
    text = '"Cy, Jr",owns,6"\nAda,owns,7" nail\nAda,owns,hat\n"Cy, Jr",owns,hat\n'
    graph = tilp.read(write_text(tmp_path / "f.csv", text))
    assert [fact.object for fact in graph.facts()] == ['6"', '7" nail', "hat", "hat"]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Doe, J, Jr;knows;Smith, A, B\nX;knows;Y\n", ("Doe, J, Jr", "Smith, A, B")),
        ('a;"b,x,y,z,w";c;1990;1991\n', ("a", "c")),
        ('"x\n,";r;"y\n";1990\n', ("x\n,", "y\n")),
        ("a,r,b,1990,1991,\nc,r,d,1990,,\n", ("a", "b")),
    ],
)
def test_separators_are_told_by_whole_rows(tmp_path, text, first):
    fact = tilp.read(write_text(tmp_path / "f.csv", text)).fact(0)
    assert (fact.subject, fact.object) == first


def test_a_header_that_is_not_known_is_refused_rather_than_read_as_a_fact(tmp_path):
    path = write_text(tmp_path / "f.csv", "name,kind,other,wann\nAda,playsFor,Rovers,1990\n")
    with pytest.raises(DataError, match=r"name, kind, other, wann looks like a header"):
        tilp.read(path)
    with pytest.warns(TilpWarning, match="malformed start"):
        assert len(tilp.read(path, header=False)) == 2
    edges = write_text(tmp_path / "g.csv", "from,relation,to,date\nAda,playsFor,Rovers,1990\n")
    assert str(tilp.read(edges).fact(0)) == "(Ada, playsFor, Rovers, [1990, 1990])"


def test_names_of_columns_are_never_overridden_by_their_order():
    frame = {"subject": ["a"], "object": ["c"], "kind_of": ["r"]}
    with pytest.warns(TilpWarning, match="relation = kind_of, object = object"):
        assert str(tilp.read(pl.DataFrame(frame)).fact(0)).startswith("(a, r, c")
    with pytest.warns(TilpWarning, match="taken by their order: subject = x, relation = y"):
        assert tilp.read(pl.DataFrame({"x": ["a"], "y": ["r"], "z": ["b"]})).fact(0).object == "b"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("subject,relation,object,date,time", "date and time could both be the date"),
        ("subject,relation,object,start,date", "date is a date beside a start or end"),
    ],
)
def test_columns_that_contradict_each_other(tmp_path, header, message):
    with pytest.raises(DataError, match=message):
        tilp.read(write_text(tmp_path / "f.csv", f"{header}\na,r,b,1990,1991\n"))


def test_floats_in_frames_are_taken_one_by_one():
    frame = pl.DataFrame(
        {"s": ["a"] * 5, "r": "r", "o": "b", "start": [1990.0, 1990.5, float("inf"), 1e19, None]}
    )
    with pytest.raises(DataError, match="3 of 4 dates in the column start cannot be read"):
        tilp.read(frame)
    with pytest.warns(TilpWarning, match="3 × malformed start"):
        graph = tilp.read(pl.concat([frame, *[frame[:1]] * 11]))
    assert graph.start.tolist() == [1990, *[UNKNOWN] * 4, *[1990] * 11]


def test_other_files_of_a_folder_are_named(tmp_path):
    write_text(tmp_path / "test.tsv", FIVE)
    write_text(tmp_path / "train-1.tsv", FIVE)
    with pytest.warns(TilpWarning) as warned:
        tilp.read(tmp_path)
    messages = [str(one.message) for one in warned]
    assert any("not read: train-1.tsv" in message for message in messages)
    assert any("there is no train file" in message for message in messages)


def test_pipes_are_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(FIVE,))
    writer.start()
    assert len(tilp.read(path)) == 2
    writer.join()


# What is wrong with a file


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("f.tsv", FIVE + "Cleo\tplaysFor\n", r"f.tsv, line 3: 2 columns where 5 .* column 3 is"),
        ("f.tsv", FIVE + "Cleo\tplaysFor\tX\t1990\n", r"line 3: 4 columns where 5 .* keep its sep"),
        ("f.tsv", FIVE + "C\tp\tX\t1\t2\t3\n", r"line 3: 6 columns where 5 are expected; .* extra"),
        ("f.csv", 'a,r,b,1990\n"a,r,b,1991\n', r"line 2: cannot be read.* quotation mark"),
        ("f.tsv", "Ada\tRovers\n", r"line 1: 2 columns .* at least 3"),
        ("f.tsv", "", "no rows"),
        ("f.tsv", "\n \n", "no rows"),
        ("f.tsv", "a\tb\tc\td\te\tf\n", r"6 columns, but facts have 3 .*--columns"),
        ("f.parquet", "no", "cannot be read as Parquet"),
        ("f.csv", "PK\x03\x04...", "an Excel workbook"),
        ("f.csv", f"{'x' * 200_000},r\n", "2 columns"),
    ],
)
def test_errors_name_file_line_and_remedy(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        tilp.read(write_text(tmp_path / name, text))


def test_text_in_another_encoding(tmp_path):
    path = write_text(tmp_path / "f.tsv", FIVE + "Zoë\tr\tb\t1\t2\n", "latin-1")
    with pytest.raises(DataError, match=r"line 3: not UTF-8 text \(byte 0xeb\)"):
        tilp.read(path)


def test_folders_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        tilp.read(tmp_path / "nowhere")
    write_text(tmp_path / "readme.md", "")
    with pytest.raises(DataError, match=r"no fact file; .* Found: readme.md"):
        tilp.read(tmp_path)
    write_text(tmp_path / "train.txt", FIVE)
    write_text(tmp_path / "train.tsv", FIVE)
    with pytest.raises(DataError, match=r"both train.tsv and train.txt"):
        tilp.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("entities.tsv", "id\tlabel\n0\tAda\n0\tBen\n", r"line 2: the id '0' stands .* once"),
        ("attributes.tsv", "id\tage\nAda\told\n", r"line 2: age is 'old', not a number"),
        ("attributes.tsv", "Ada\t3\n", "attributes need a header"),
        ("graph.json", "[]", "does not name a unit"),
    ],
)
def test_side_files_that_cannot_be_read(tmp_path, name, text, message):
    write_text(tmp_path / "train.txt", FIVE)
    write_text(tmp_path / name, text)
    with pytest.raises(DataError, match=message):
        tilp.read(tmp_path)


def test_arguments_that_make_no_sense(facts):
    with pytest.raises(TilpError, match="unit is 'week'; it can be year, month"):
        tilp.read(facts, unit="week")
    with pytest.raises(TilpError, match="cannot read facts from int"):
        tilp.read(3)
    with pytest.raises(TilpError, match="no split is named 'tain'"):
        tilp.read({"tain": facts})
    with pytest.raises(TilpError, match="the mapping is empty"):
        tilp.read({})


BAD = "a\tr\tb\t1990\t1980\na\tr\tc\t1963-64-65\t1970\na\tr\td\t1990\t1991\na\tr\te\t1\tx\n"


def test_date_defects_are_repaired_counted_and_listed(tmp_path):
    path = write_text(tmp_path / "f.tsv", BAD)
    with pytest.warns(TilpWarning) as warned:
        graph = tilp.read(path)
    assert len(warned) == 1 and "1 × start after end (end = start)" in str(warned[0].message)
    assert graph.start.tolist() == [1990, UNKNOWN, 1990, 1]
    assert graph.end.tolist() == [1990, 1970, 1991, UNKNOWN]
    assert graph.defects.select("line", "defect", "done").rows() == [
        (1, "start after end", "end = start"),
        (2, "malformed start", "start unknown"),
        (4, "malformed end", "end unknown"),
    ]


def test_date_defects_can_be_skipped_or_refused(tmp_path):
    path = write_text(tmp_path / "f.tsv", BAD)
    with pytest.warns(TilpWarning, match="row skipped"):
        graph = tilp.read(path, on_error="skip")
    assert [fact.object for fact in graph.facts()] == ["d"]
    assert graph.bounds == (0, 1, 1, 1) and len(graph.defects) == 3
    with pytest.raises(DataError, match=r"f.tsv, line 1: start after end .*'1990', end '1980'"):
        tilp.read(path, on_error="raise")


def test_lines_are_counted_through_quoted_line_breaks(tmp_path):
    path = write_text(tmp_path / "f.csv", 's,r,o,date\n"a\n\nb",r,c,1990\nd,r,e,bad\n')
    with pytest.warns(TilpWarning):
        assert tilp.read(path).defects["line"].to_list() == [5, 5]


# Out and in again

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
)
DATES = st.one_of(
    st.sampled_from(["", "19##", "1952-##-##", "present", "####-##-##", "bad", "-431", "1990-02"]),
    st.dates().map(str),
)
FACTS = st.lists(st.tuples(NAMES, NAMES, NAMES, DATES, DATES), min_size=1, max_size=8)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@pytest.mark.parametrize("form", ["csv", "parquet", "tsv"])
@given(rows=FACTS, cut=st.tuples(st.integers(0, 8), st.integers(0, 8)))
def test_written_out_and_read_back_a_graph_is_equal(tmp_path_factory, form, rows, cut):
    if form == "tsv":
        clean = str.maketrans("\t\r\n", "___")
        rows = [tuple(cell.translate(clean) for cell in row) for row in rows]
    frame = pl.DataFrame(rows, ["subject", "relation", "object", "start", "end"], orient="row")
    low, high = sorted(cut)
    parts = {"train": frame[:low], "valid": frame[low:high], "test": frame[high:]}
    graph = read_or_skip({split: part for split, part in parts.items() if len(part)})
    folder = tilp.write(graph, tmp_path_factory.mktemp("out") / "graph", format=form)
    assert tilp.read(folder) == graph


def test_writing_never_leaves_half_a_folder_or_touches_another(tmp_path, facts):
    graph = tilp.read(facts.with_columns(object=pl.lit("a\tb")))
    with pytest.raises(TilpError, match=r"holds a tab or line break.*write CSV"):
        tilp.write(graph, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    write_text(tmp_path / "mine.txt", "mine")
    with pytest.raises(TilpError, match="is not empty: choose another"):
        tilp.write(graph, tmp_path, format="csv")
    assert json.loads((tilp.write(graph, tmp_path / "x", format="csv") / "graph.json").read_text())


# Broken files: each gives a clear error or loads


def valid_files():
    frame = pl.DataFrame(
        {
            "subject": [f"person {i % 7}" for i in range(40)],
            "relation": ["playsFor", "bornIn"] * 20,
            "object": [f"place, {i % 5}" for i in range(40)],
            "start": [f"{1950 + i}-0{1 + i % 9}-17" for i in range(40)],
            "end": [None if i % 3 else f"{1960 + i}-##-##" for i in range(40)],
        }
    )
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    tsv = frame.write_csv(separator="\t", quote_style="never").encode()
    return {
        "f.tsv": tsv,
        "f.txt": tsv.partition(b"\n")[2],
        "f.csv": frame.write_csv().encode(),
        "f.tsv.gz": gzip.compress(tsv),
        "f.parquet": parquet.getvalue(),
    }


VALID = valid_files()
TOKENS = [b"\t", b"\n", b"\r", b'"', b",", b"#", b"-", b"\x00", b"\xff", b"\xef\xbb\xbf", b"None"]


def mutate(content, seed):
    """A few random cuts, insertions, flips and repetitions."""
    chance = random.Random(seed)
    content = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(content) + 1)
        match chance.randrange(5):
            case 0:
                del content[at : at + chance.randint(1, 30)]
            case 1:
                content[at:at] = chance.choice(TOKENS) * chance.randint(1, 3)
            case 2:
                content[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                content[at:at] = content[at : at + chance.randint(1, 200)]
            case 4:
                del content[at:]
    return bytes(content)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@pytest.mark.parametrize("name", VALID)
def test_broken_files_load_or_say_what_is_wrong(tmp_path, name):
    path = tmp_path / name
    outcomes = {"loaded": 0, "refused": 0}
    for seed in range(120):
        path.write_bytes(mutate(VALID[name], seed))
        try:
            tilp.read(path)
            outcomes["loaded"] += 1
        except TilpError as error:
            assert str(path) in str(error)
            outcomes["refused"] += 1
    assert sum(outcomes.values()) == 120 and outcomes["refused"] > 10


@settings(max_examples=200)
@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@given(content=st.binary(max_size=200), suffix=st.sampled_from(["tsv", "csv", "txt.gz", "pq"]))
def test_arbitrary_bytes_load_or_say_what_is_wrong(tmp_path_factory, content, suffix):
    path = tmp_path_factory.mktemp("bytes") / f"f.{suffix}"
    path.write_bytes(content)
    with pytest.raises(TilpError) if _never_a_graph(content) else _either():
        tilp.read(path)


def _never_a_graph(content):
    return not content.strip()


class _either:  # noqa: N801 - a context manager
    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        return kind is not None and issubclass(kind, TilpError)
