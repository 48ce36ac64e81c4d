"""Import of Wikidata's JSON dump: facts, labels, forms of the source, the written folder."""

import bz2
import gzip
import io
import os
import subprocess
import sys
import threading
import tracemalloc

import pytest

import tilp
from dumps import (
    FIRST,
    GOOD,
    GOOD_ROW,
    NONE,
    SOME,
    UNKNOWN,
    day,
    entity,
    facts,
    item_snak,
    labels,
    lines,
    snak,
    statement,
    table,
    time_snak,
)
from tilp.errors import TilpError
from tilp.io.dumps import import_dump


def test_writes_facts_entities_and_relations(import_json, out):
    report = import_json(GOOD, entity("Q2", label="mayor"), entity("P39", label="position held"))
    assert (report.read, report.statements, report.facts, report.undated) == (3, 1, 1, 0)
    assert not report.skipped
    assert not report.problems
    assert sorted(path.name for path in out.iterdir()) == [
        "entities.tsv",
        "facts.tsv",
        "relations.tsv",
    ]
    assert table(out / "facts.tsv") == (
        ["subject", "relation", "object", "start", "end"],
        [GOOD_ROW],
    )
    assert table(out / "entities.tsv") == (
        ["id", "key", "label"],
        [("Q1", "Q1", "Ann"), ("Q2", "Q2", "mayor")],
    )
    assert table(out / "relations.tsv") == (
        ["id", "key", "label"],
        [("P39", "P39", "position held")],
    )


def test_the_package_reads_the_folder(import_json, out):
    import_json(
        GOOD,
        entity("Q2", statement("Q3", P580=[FIRST], P582=[NONE]), label='the "mayor", of\ta town'),
        entity("Q3", statement("Q1", P585=[time_snak("-0500-00-00T00:00:00Z", 7)], P580=[])),
        entity("Q4", statement("Q1", P582=[SOME])),
        entity("P39", label="position held"),
    )
    graph = tilp.io.read(out)
    assert len(graph) == 4
    assert not len(graph.defects)
    assert graph.frame(names="labels").select("subject", "relation").rows() == [
        ("Ann", "position held"),
        ('the "mayor", of a town', "position held"),
        ("Q3", "position held"),
        ("Q4", "position held"),
    ]
    assert graph.date_text("start").to_list()[1:3] == ["1990-01-01", "-4##-##-##"]
    assert graph.date_text("end").to_list()[1] == "present"


def test_labels_come_before_or_after_and_only_for_what_appears(import_json, out):
    import_json(
        entity("P39", label="position held"),
        entity("Q2", label="mayor"),
        entity("Q7", label="never named"),
        GOOD,
        entity("Q3", statement("Q4", P585=[day("2001-01-01")])),
        entity("Q4", label="later"),
        entity("P40", label="child"),
    )
    assert labels(out) == {"Q1": "Ann", "Q2": "mayor", "Q3": "Q3", "Q4": "later"}
    assert labels(out, "relations") == {"P39": "position held"}


def test_labels_of_the_chosen_language_then_of_all_languages_then_the_key(import_json, out):
    import_json(
        GOOD | {"labels": entity("Q1", en="Ann", de="Anna", mul="A.")["labels"]},
        entity("Q2", statement("Q3", P585=[day("2001-01-01")]), en="mayor", mul="Major"),
        entity("Q3", en="three"),
        language="de",
    )
    assert labels(out) == {"Q1": "Anna", "Q2": "Major", "Q3": "Q3"}


def test_labels_are_one_line_and_valid_text(import_json, out):
    import_json(
        GOOD | {"labels": entity("Q1", en='a\tb\r\nc "d"')["labels"]},
        entity("Q2", statement("Q3", P585=[day("2001-01-01")]), en="\ud800x"),
        entity("Q3", en=" \n\t"),
    )
    assert labels(out) == {"Q1": 'a b c "d"', "Q2": "?x", "Q3": "Q3"}


def test_facts_are_streamed_in_the_order_of_the_dump(import_json, out):
    many = [entity(f"Q{n}", statement(P585=[day("2001-01-01")])) for n in (30, 10, 20)]
    import_json(*many)
    assert [row[0] for row in facts(out)] == ["Q30", "Q10", "Q20"]


def test_deprecated_statements_are_counted_not_kept(import_json, out):
    date = {"P585": [FIRST]}
    report = import_json(
        entity("Q1", *(statement(rank=rank, **date) for rank in ("deprecated", "preferred")))
    )
    assert len(facts(out)) == 1
    assert report.skipped == {"deprecated": 1}


@pytest.mark.parametrize(
    "main",
    [
        SOME,
        NONE,
        snak("value", datavalue={"type": "string", "value": "x"}),
        snak(
            "value",
            datavalue={
                "type": "wikibase-entityid",
                "value": {"entity-type": "property", "numeric-id": 31, "id": "P31"},
            },
        ),
        snak(
            "value",
            datavalue={
                "type": "wikibase-entityid",
                "value": {"entity-type": "form", "id": "L4-F1"},
            },
        ),
    ],
)
def test_only_items_are_objects(import_json, out, main):
    report = import_json(entity("Q1", statement(main, P585=[FIRST])))
    assert not facts(out)
    assert report.skipped == {"not an item": 1}


def test_items_of_old_dumps_have_only_a_number(import_json, out):
    main = item_snak("Q5")
    del main["datavalue"]["value"]["id"]
    import_json(entity("Q1", statement(main, P585=[FIRST])))
    assert facts(out)[0][2] == "Q5"


def test_statements_of_properties_and_lexemes_are_not_facts(import_json, out):
    date = statement(P585=[FIRST])
    report = import_json(entity("P5", date), entity("L5", date))
    assert not facts(out)
    assert (report.read, report.statements) == (2, 0)


def test_keeps_the_chosen_properties(import_json, out):
    date = statement(P585=[FIRST])
    both = entity("Q1") | {"claims": {"P39": [date], "P26": [date], "P31": "never looked at"}}
    report = import_json(both, properties=["P26"])
    assert [row[1] for row in facts(out)] == ["P26"]
    assert report.statements == 1
    assert not report.problems


@pytest.mark.parametrize("properties", [[], ["spouse"], "P39", ["P39\n"]])
def test_bad_property_lists_are_refused(import_json, out, properties):
    with pytest.raises(TilpError, match="properties"):
        import_json(GOOD, properties=properties)
    assert not out.exists()


@pytest.mark.parametrize("undated", [False, True])
def test_undated_statements(import_json, out, undated):
    report = import_json(entity("Q1", statement(), statement("Q3", P580=[FIRST])), undated=undated)
    assert report.undated == 1
    kept = [("Q1", "P39", "Q2", UNKNOWN, UNKNOWN)] if undated else []
    assert facts(out) == [*kept, ("Q1", "P39", "Q3", "1990-01-01", UNKNOWN)]


ARRAY = b"[\n" + b",\n".join(lines(GOOD, entity("Q2", label="mayor")).splitlines()) + b"\n]\n"


@pytest.mark.parametrize(
    "data",
    [
        lines(GOOD, entity("Q2", label="mayor")),
        ARRAY,
        ARRAY.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + lines(GOOD, entity("Q2", label="mayor")),
        b"\n\n" + lines(GOOD) + b"  \n\n" + lines(entity("Q2", label="mayor")).rstrip(),
    ],
    ids=["lines", "array", "crlf", "bom", "blanks"],
)
@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        bz2.compress,
        lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:]),
    ],
    ids=["plain", "gzip", "bzip2", "gzip members"],
)
def test_reads_each_form_by_its_bytes(import_json, out, data, pack):
    report = import_json(pack(data))
    assert facts(out) == [GOOD_ROW]
    assert labels(out) == {"Q1": "Ann", "Q2": "mayor"}
    assert (report.read, report.malformed) == (2, 0)


@pytest.mark.parametrize("data", [b"", b"[\n]\n", gzip.compress(b"", mtime=0)])
def test_an_empty_dump_gives_empty_tables(import_json, out, data):
    assert import_json(data).read == 0
    assert not facts(out)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_reads_a_pipe_that_trickles(out, pack):
    reading, writing = os.pipe()

    def feed():
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            for byte in pack(ARRAY):
                pipe.write(bytes([byte]))

    thread = threading.Thread(target=feed)
    thread.start()
    with os.fdopen(reading, "rb", buffering=0) as stream:
        import_dump(stream, out)
        assert not stream.closed
    thread.join()
    assert facts(out) == [GOOD_ROW]


def test_streams_are_named_in_problems(out):
    assert import_dump(io.BytesIO(b"x"), out).problems[0].file == "<stream>"


def test_text_streams_are_refused(out):
    with pytest.raises(TilpError, match="binary"):
        import_dump(io.StringIO("{}\n"), out)
    assert not out.exists()


def test_a_missing_source_is_named(tmp_path, out):
    for path in (tmp_path / "no.json", tmp_path):
        with pytest.raises(TilpError, match="cannot be read"):
            import_dump(path, out)
    assert not out.exists()


def test_progress_counts_packed_bytes(tmp_path, out):
    path = tmp_path / "dump.json.gz"
    noise = b"".join(os.urandom(30_000).hex().encode() + b"\n" for _ in range(100))
    path.write_bytes(gzip.compress(noise + ARRAY))
    told = []
    import_dump(path, out, progress=told.append)
    assert told == sorted(set(told))
    assert len(told) > 1
    assert told[-1] == path.stat().st_size


class Endless(io.RawIOBase):
    """Some fifteen megabytes of entities, made as they are read."""

    def __init__(self):
        self.rest = b""
        self.made = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        while len(self.rest) < len(buffer) and self.made < 1500:
            self.made += 1
            self.rest += lines(entity(f"Q{self.made}", label="x" * 10_000)) + lines(GOOD)
        data, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def test_memory_is_bounded(out):
    tracemalloc.start()
    try:
        report = import_dump(Endless(), out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.facts == 1500
    assert len(labels(out)) == 2
    assert peak < 6_000_000


def test_a_folder_with_content_is_not_overwritten(import_json, out):
    out.mkdir()
    (out / "mine").write_text("x")
    with pytest.raises(TilpError, match="not empty: choose another"):
        import_json(GOOD)
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_an_empty_folder_and_missing_parents_are_fine(tmp_path, out):
    out.mkdir()
    for target in (out, tmp_path / "a" / "b"):
        import_dump(io.BytesIO(lines(GOOD)), target)
        assert facts(target) == [GOOD_ROW]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "graph"]


def test_a_file_in_the_way_is_named(import_json, out):
    out.write_text("x")
    with pytest.raises(TilpError, match="cannot be written"):
        import_json(GOOD)
    assert out.read_text() == "x"


def test_the_folder_appears_only_when_complete(tmp_path, out):
    seen = []
    import_dump(io.BytesIO(lines(GOOD)), out, progress=lambda _: seen.append(out.exists()))
    assert seen
    assert not any(seen)
    assert out.exists()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_an_interrupted_import_leaves_nothing(tmp_path, out, failure):
    def stop(_):
        raise failure

    with pytest.raises(failure):
        import_dump(io.BytesIO(lines(GOOD)), out, progress=stop)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path, out):
    def fail(_):
        raise OSError(28, "No space left on device")

    with pytest.raises(TilpError, match=r"cannot be written.*no room"):
        import_dump(io.BytesIO(lines(GOOD)), out, progress=fail)
    assert not list(tmp_path.iterdir())


def test_a_killed_import_leaves_no_folder_under_the_final_name(tmp_path, out):
    script = (
        "import io, os, sys, pathlib\n"
        "from tilp.io.dumps import import_dump\n"
        "import_dump(io.BytesIO(b'{}'), pathlib.Path(sys.argv[1]),"
        " progress=lambda _: os._exit(9))\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(out)]).returncode == 9
    assert not out.exists()
