"""Forecasters as models: day by day, saved, asked over HTTP, from the command line, explained."""

import json
from dataclasses import replace

import httpx
import numpy as np
import polars as pl
import pytest

import tilp
from serving import get, post, running
from tilp.errors import TilpError
from tilp.scoring import Query
from tilp.scoring.queries import query_table

COLUMNS = ["subject", "relation", "object", "start", "end"]
PEOPLE, DAYS = 6, 24
VISIT = Query("visits", "guest 1")


def rows(days):
    """Every day guests visit the next host; they call whom they visited the day before."""
    found = []
    for day in days:
        for who in range(PEOPLE):
            date = f"2014-01-{day + 1:02d}"
            host, before = (f"host {(who + at) % PEOPLE}" for at in (day, day - 1))
            found.append((f"guest {who}", "visits", host, date, date))
            if day and who % 2:
                found.append((f"guest {who}", "calls", before, date, date))
    return found


def table(days):
    return pl.DataFrame(rows(days), COLUMNS, orient="row")


def read(days, **splits):
    return tilp.read({"train": table(days), **splits}, unit="day")


@pytest.fixture(scope="module")
def model():
    return tilp.ForecastRules(4, warm=0.0, rate=0.3).fit(read(range(12)))


def test_days_that_are_added_one_by_one_give_what_counting_all_of_them_gives(model):
    daily = model
    for day in range(12, DAYS):
        daily = daily.update(read([day]))
    at_once = model.update(read(range(12, DAYS)))
    learned, other = (each._need_fit() for each in (daily, at_once))
    assert np.array_equal(learned.weights, model._need_fit().weights)
    for name in ("weights", "body_support", "support", "facts"):
        assert np.array_equal(getattr(learned, name), getattr(other, name))
    # Counting every fact again with the weights and classes that were learned first.
    whole = read(range(DAYS))
    edges = model._need_fit().scorer(whole).edges
    zero = {name: 0 * getattr(learned, name) for name in ("facts", "body_support", "support")}
    counted = replace(learned, **zero).count(edges, np.arange(len(edges.time)))
    assert np.array_equal(counted.facts, learned.facts)
    assert np.array_equal(counted.support, learned.support)
    assert np.array_equal(counted.body_support, learned.body_support)
    assert daily.now == "2014-01-25" and model.now == "2014-01-13"
    assert daily.predict(VISIT).drop("source").equals(at_once.predict(VISIT).drop("source"))
    assert len(daily._updates) == DAYS - 12


def test_new_relations_and_entities_join_the_model(model, tmp_path):
    facts = [("guest 1", "annoys", "host 9", "2014-01-13", "2014-01-13"), *rows([12])]
    updated = model.update(tilp.read(pl.DataFrame(facts, COLUMNS, orient="row"), unit="day"))
    before, after = model._need_fit(), updated._need_fit()
    assert (len(before.relations), len(after.relations)) == (2, 3)
    asked = [Query(relation, "guest 1") for relation in ("visits", "calls")]
    known = model.update(read([12]))
    for mined in known.rules():  # weights and counts of what was known are as without the new names
        assert updated.curve(mined.rule) == known.curve(mined.rule)
    again = tilp.load(updated.save(tmp_path / "model"))
    assert again.predict(asked).equals(updated.predict(asked))
    listed = again.scorer().score(query_table(again.evidence(), [Query("annoys", "guest 1")]))
    assert again.graph.entities.find("host 9") in listed.candidate
    assert "host 9" not in model.graph.entities.labels


def test_the_amounts_of_an_explanation_add_up_and_show_how_soon_it_follows(model):
    query = Query("calls", "guest 1", start="2014-01-13")
    explanation = model.explain(query, max_reasons=None)
    assert explanation.candidate == "host 0"  # visited the day before
    assert sum(reason.score for reason in explanation.reasons) == pytest.approx(explanation.score)
    other = model.explain(query, "guest 2", max_reasons=None)
    assert sum(reason.score for reason in other.reasons) == pytest.approx(other.score)
    chains = [reason for reason in explanation.reasons if reason.kind == "chain"]
    visited = next(one for one in chains if str(one.relations[0]) == "visits" and not one.of_rival)
    assert "the day before" in visited.text
    assert "cases within 1 day of such a fact" in visited.text
    assert visited.members[0].picture.startswith("<svg") and "%" in visited.members[0].picture
    assert visited.members[0].picture in explanation.html()
    fact = visited.groundings[0].steps[0].fact_id
    without = model.explain(query, "host 0", without=[fact])
    assert without.before.score == pytest.approx(explanation.score) and without.score != 0
    assert model.scorer().without([fact]).graph.rows("train").stop == len(model.graph) - 1


def test_one_that_was_never_met_is_reached_over_a_shared_partner():
    pairs = [("ann", "bob"), ("cid", "bob"), ("eve", "dan"), ("eve", "bob"), ("cid", "dan")]
    dates = [f"2014-01-0{day}" for day in range(1, 6)]
    facts = [(a, "meets", b, date, date) for (a, b), date in zip(pairs, dates, strict=True)]
    graph = tilp.read(pl.DataFrame(facts, COLUMNS, orient="row"), unit="day")
    model = tilp.ForecastRules(warm=0.0).fit(graph)
    explanation = model.explain(Query("meets", "ann"), "eve", max_reasons=None)
    reason = next(one for one in explanation.reasons if one.kind == "connection")
    assert "ann never met eve; others met both. ann meets bob" in reason.text
    assert [step.fact.subject for step in reason.groundings[0].steps] == ["ann", "eve"]


def test_the_next_facts_are_the_most_likely_of_all(model):
    facts = model.forecast(40)
    assert facts.columns == ["subject", "relation", "object", "start", "probability"]
    assert facts["probability"].is_sorted(descending=True) and facts["probability"].max() <= 1
    assert facts["start"].unique().to_list() == ["2014-01-13"]
    # The same by asking every subject for every relation.
    one = facts.row(0, named=True)
    share = model.predict(Query(one["relation"], one["subject"]), k=50)
    share = share.filter(pl.col("candidate") == one["object"])["share"].item()
    assert 0 < one["probability"] <= share
    assert facts.head(5).equals(model.forecast(5))
    known = {row[:3] for row in rows(range(12))}
    new = model.forecast(5, new_only=True)
    assert not known & set(new.select(COLUMNS[:3]).iter_rows())


def test_evaluation_takes_all_facts_before_a_query_as_evidence():
    graph = read(range(8), valid=table([8]), test=table([9])).canonical()
    model = tilp.ForecastRules(4, warm=0.0).fit(graph)
    own = model.evaluate("test", protocols=["exact"])
    scorers = (model._need_fit().scorer(graph, splits) for splits in (tilp.SPLITS, "train"))
    every, only_train = (tilp.evaluate(each, graph, protocols=["exact"]) for each in scorers)
    assert own.ranks.equals(every.ranks) and not own.ranks.equals(only_train.ranks)
    baseline = tilp.evaluate(tilp.evaluation.popularity(graph), graph, protocols=["exact"])
    assert own.to_json().keys() == baseline.to_json().keys()


def test_a_forecaster_from_a_packed_graph_in_bulk_and_from_other_data(model, tmp_path):
    packed = tilp.pack(table(range(12)), tmp_path / "packed", unit="day")
    other = tilp.ForecastRules(4, warm=0.0, rate=0.3).fit(packed)
    asked = [VISIT, Query("calls", object="host 2", start="2014-01-09")]
    predictions = model.predict(asked)
    assert other.predict(asked).drop("source").equals(predictions.drop("source"))
    assert tilp.load(other.save(tmp_path / "model")).predict(asked).equals(other.predict(asked))
    frame = pl.DataFrame([{"relation": q.relation, "subject": q.subject, "object": q.object,
                           "start": q.start} for q in asked])  # fmt: skip
    model.predict_to(tmp_path / "bulk", frame, k=10)
    parts = pl.read_parquet(tmp_path / "bulk" / "part-*.parquet")
    assert parts.select("candidate", "score").equals(predictions.select("candidate", "score"))
    moved = model.predict(VISIT, graph=read(range(7)))
    assert moved["candidate"][0] != predictions["candidate"][0]  # another day's host comes next


def test_the_command_line_and_the_service_work_with_a_forecaster(run, tmp_path):
    table(range(12)).write_csv(tmp_path / "facts.csv")
    table([12]).write_csv(tmp_path / "new.csv")
    folder = str(tmp_path / "model")

    def printed(*arguments):
        code, out, err = run(*arguments)
        assert code == 0, err
        return out

    fit = ("fit", tmp_path / "facts.csv", "--task", "forecast")
    printed(*fit, "--out", folder)
    model = tilp.load(folder)
    assert isinstance(model, tilp.ForecastRules)
    ask = ("--relation", "visits", "--subject", "guest 1")
    best = json.loads(printed("predict", folder, *ask, "--json"))[0]["candidate"]
    assert best == model.predict(VISIT)["candidate"][0]
    assert "guest 1" in printed("explain", folder, *ask)
    assert "visits" in printed("rules", folder)
    assert printed("forecast", folder, "--next").count("guest") == 10
    printed("update", folder, tmp_path / "new.csv", "--in-place")
    assert tilp.load(folder).now == "2014-01-14"
    for options, message in ((("--dry-run",), "neither --dry-run"), ((), "--out")):
        code, _, err = run(*fit, *options)
        assert code == 2 and message in err
    with running(model) as address, httpx.Client(base_url=address) as client:
        about = get(client, "model")
        assert about["task"] == "forecast" and "before the query's time" in about["evidence"]
        query = {"relation": "visits", "subject": "guest 1"}
        assert post(client, "predict", query)["answers"][0]["candidate"] == best
        found = post(client, "explain", {**query, "pictures": True})
        reasons = found["reasons"]
        assert any(member["picture"] for reason in reasons for member in reason["members"])
        assert (found["query"]["start"], found["query"]["end"]) == (model.now, model.now)
        grounding = reasons[0]["groundings"][0]
        facts = [{name: fact[name] for name in ("id", "inverse")} for fact in grounding["facts"]]
        asked = {**query, "candidate": found["candidate"], "facts": facts}
        picture = client.post("/api/v1/picture", json=asked).text
        assert picture == grounding["svg"] and model.now in picture and "no dates" not in picture


@pytest.mark.parametrize("ids_first", [False, True])
@pytest.mark.parametrize("padding", ["", "\t0", "\t-1"])
def test_folders_of_ids_are_read_with_their_names(tmp_path, ids_first, padding):
    names = {"entity2id.txt": ["New York", "Rome", "2014"], "relation2id.txt": ["visits"]}
    for file, listed in names.items():
        pairs = ((str(index), name) for index, name in enumerate(listed))
        lines = ("\t".join(pair if ids_first else pair[::-1]) for pair in pairs)
        (tmp_path / file).write_text("\n".join(lines) + "\n")
    (tmp_path / "stat.txt").write_text("3\t1\n")
    (tmp_path / "train.txt").write_text(f"0\t0\t1\t0{padding}\n1\t0\t2\t24{padding}\n")
    (tmp_path / "test.txt").write_text(f"0\t0\t2\t48{padding}\n")
    graph = tilp.read(tmp_path)
    assert [str(fact) for fact in graph.facts()] == [
        "(New York, visits, Rome, [0, 0])",
        "(Rome, visits, 2014, [24, 24])",
        "(New York, visits, 2014, [48, 48])",
    ]
    assert graph.unit.value == "integer" and graph.source(2) == "test.txt:1"
    assert tilp.ForecastRules().fit(graph).now == "72"
    with pytest.raises(TilpError, match="tilp convert"):
        tilp.pack(tmp_path, tmp_path / "packed")


def test_edge_lists_of_tgb_are_read_as_they_are(tmp_path):
    path = tmp_path / "edgelist.csv"
    path.write_text("ts,head,tail,relation_type\n1990,Q1,Q2,P5\n1991,Q2,Q3,P6\n")
    facts = [str(fact) for fact in tilp.read(path).facts()]
    assert facts == ["(Q1, P5, Q2, [1990, 1990])", "(Q2, P6, Q3, [1991, 1991])"]
