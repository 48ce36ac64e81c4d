"""Inspection: every count against a plain reading, and the known defects of published sets."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilp
from strategies import read_or_skip
from tilp.data_quality import facts_over_time, inspect
from tilp.time import UNKNOWN

ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from("rq"),
        st.sampled_from("abcd"),
        st.sampled_from(["", "1990", "1991", "100", "x", "2844"]),
        st.sampled_from(["", "1990", "1992", "present"]),
        st.sampled_from(tilp.SPLITS),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@given(ROWS)
def test_counts_against_a_plain_reading(rows):
    frame = pl.DataFrame(
        rows, ["subject", "relation", "object", "start", "end", "split"], orient="row"
    )
    graph = read_or_skip(frame, unit="year")
    found = inspect(graph)
    by_split = {split: [] for split in tilp.SPLITS}
    exact = {split: [] for split in tilp.SPLITS}  # a malformed date is not an unknown one
    for split in tilp.SPLITS:
        for row in graph.rows(split):
            fact = graph.fact(row)
            by_split[split].append((fact.subject, fact.relation, fact.object, fact.interval))
            exact[split].append((*by_split[split][-1], graph.date_text("start")[row] == "x"))
    used = {split: facts for split, facts in by_split.items() if facts}
    assert set(found.splits) == {*used, "all"}
    seen = {end for s, _, o, _ in by_split["train"] for end in (s, o)}
    relations = {r for _, r, _, _ in by_split["train"]}
    for split, facts in used.items():
        summary = found.splits[split]
        assert summary.facts == len(facts)
        assert summary.entities == len({end for s, _, o, _ in facts for end in (s, o)})
        assert summary.dates.both == sum(i.is_known for *_, i in facts)
        assert summary.dates.none == sum(i.start == i.end == UNKNOWN for *_, i in facts)
        assert summary.dates.intervals == len({i for *_, i in facts})
        assert found.defects.duplicates[split] == len(facts) - len(set(exact[split]))
        if split != "train":
            strange = [not {s, o} <= seen for s, _, o, _ in facts]
            assert found.defects.unseen_entities[split] == sum(strange)
            assert found.defects.unseen[split] == sum(
                odd or r not in relations for odd, (_, r, _, _) in zip(strange, facts, strict=True)
            )
    for late, early in (("valid", "train"), ("test", "train"), ("test", "valid")):
        if late in used and early in used:
            name = f"{late} in {early}"
            triples = {fact[:3] for fact in used[early]}
            assert found.defects.same_fact[name] == sum(f in exact[early] for f in exact[late])
            assert found.defects.same_triple[name] == sum(f[:3] in triples for f in used[late])
            assert found.defects.reversed[name] == sum(
                (o, r, s) in triples and s != o for s, r, o, _ in used[late]
            )
    absurd = {one.year: one.dates for one in found.defects.absurd_years}
    starts = [row[3] for row in rows]
    assert absurd == {year: starts.count(str(year)) for year in (100, 2844) if str(year) in starts}
    assert sum(sum(relation.facts.values()) for relation in found.relations) == len(rows)


def read_quietly(path):
    with pytest.warns(tilp.TilpWarning):
        return inspect(tilp.read(path))


def test_known_defects_of_wikidata12k(published):
    found = read_quietly(published / "WIKIDATA12k")
    assert found.unit == "year"
    assert {name: one.facts for name, one in found.splits.items()} == {
        "train": 32_497,
        "valid": 4_062,
        "test": 4_062,
        "all": 40_621,
    }
    assert (found.splits["all"].entities, len(found.relations)) == (12_554, 24)
    assert found.defects.start_after_end == {"train": 7, "valid": 0, "test": 3}
    assert found.defects.unseen_entities["test"] == 19
    assert found.defects.same_triple["test in train"] / 4_062 == pytest.approx(0.296, abs=5e-4)
    teams = next(one for one in found.relations if one.name == "member of sports team")
    assert teams.facts["test"] / 4_062 == pytest.approx(0.51, abs=5e-3)


def test_known_defects_of_yago11k(published):
    found = read_quietly(published / "YAGO11k")
    assert found.unit == "year"
    assert found.defects.start_after_end == {"train": 63, "valid": 6, "test": 1}
    assert found.defects.malformed_dates == {"train": 2, "valid": 0, "test": 0}
    assert found.defects.same_triple["test in train"] == 0
    assert found.defects.reversed_by_relation["test in train"] == {"isMarriedTo": 172}
    married = next(one for one in found.relations if one.name == "isMarriedTo")
    assert married.facts["test"] == 176
    assert found.defects.unseen_entities["test"] == 5
    years = {one.year: one.dates for one in found.defects.absurd_years}
    assert (years[100], years[360]) == (120, 25) and min(years) < 0
    missing = [found.splits[split].dates.start_only for split in tilp.SPLITS]
    shares = [m / found.splits[s].facts for m, s in zip(missing, tilp.SPLITS, strict=True)]
    assert shares == pytest.approx([0.45, 0.39, 0.39], abs=6e-3)


def test_known_defects_of_icews14(published):
    found = inspect(tilp.read(published / "ICEWS14"))
    assert found.unit == "day"
    assert found.splits["all"].dates.timestamps == 365
    assert found.defects.unseen["test"] == 865
    assert found.defects.same_triple["test in train"] / 13_222 == pytest.approx(0.39, abs=5e-3)
    assert found.defects.reversed["test in train"] / 13_222 == pytest.approx(0.20, abs=5e-3)
    assert sum(found.defects.duplicates.values()) == 0


def test_facts_without_dates_are_not_counted_over_time(facts):
    counts = facts_over_time(tilp.read(facts))
    assert sum(map(sum, counts.splits.values())) + counts.unknown + counts.outside == len(facts)
    with pytest.raises(tilp.TilpError, match="no fact has a known start"):
        facts_over_time(tilp.read(facts.drop("start", "end")))


def test_an_inspection_is_plain_json(facts):
    import json

    found = json.loads(json.dumps(inspect(tilp.read(facts)).to_json()))
    assert found["splits"]["train"]["dates"]["both"] == 4
    assert np.isclose(found["splits"]["all"]["facts"], 5)
