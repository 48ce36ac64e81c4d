"""The service: what each path answers, alone and under load."""

import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import polars as pl
import pytest

import tilp
from serving import SCRIPT, SMALL_LIMITS, check_schema, get, groundings_in, post, refused
from tilp import Query
from tilp.data_quality import facts_over_time, inspect
from tilp.graph import SPLITS
from tilp.rules import Notation, format_rule
from tilp.rules.picture import draw_rule
from tilp.time import UNKNOWN
from tilp.types import RuleOrder
from tilp.web.views import DataView, ModelView


def test_health_and_readiness(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}


def test_the_model_and_a_query_to_begin_with(client, service_model):
    told = get(client, "model")
    assert told["name"] == "world"
    assert told["version"] == tilp.__version__
    assert told["rules"] == len(service_model.rules())
    assert told["facts"] == {split: len(service_model.graph.rows(split)) for split in SPLITS}
    assert told["unit"] == "year"
    assert told["entities"] == len(service_model.graph.entities)
    assert {"before", "touching", "after"} <= set(told["words"])
    assert post(client, "predict", told["example"])["answers"]


def test_relations_with_their_facts_and_rules(client, service_model):
    for one in get(client, "relations"):
        assert one["facts"] == service_model.graph.frame().filter(relation=one["name"]).height
        assert one["rules"] == len(service_model.rules(one["name"]))
        assert one["inverse_rules"] == len(service_model.rules(f"{one['name']}⁻¹"))


def test_entities_begin_with_a_text_then_have_it_inside(client, service_model):
    names = list(service_model.graph.entities)
    facts = service_model.graph.frame()
    found = get(client, "entities", text="aR", limit=500)
    inside = [name for name in names if "ar" in name.casefold()]
    assert sorted(one["name"] for one in found) == sorted(inside)
    keys = [(not one["name"].casefold().startswith("ar"), -one["facts"]) for one in found]
    assert keys == sorted(keys)
    assert len({first for first, _ in keys}) == 2
    for one in found[:5]:
        mine = facts.filter((pl.col("subject") == one["name"]) | (pl.col("object") == one["name"]))
        assert one["facts"] == mine.height
    assert len(get(client, "entities")) == 10
    assert get(client, "entities", text="no such name") == []


def rule_oracle(rules, *, relation, inverse, body, temporal, length, min_confidence, min_support):
    """The numbers of the rules that meet all conditions, one by one."""
    return [
        number
        for number, one in enumerate(rules)
        if (relation is None or one.rule.head.relation == relation)
        and one.rule.head.inverse == inverse
        and (body is None or body in [atom.relation for atom in one.rule.body])
        and (temporal is None or temporal in [each.word for each in one.rule.constraints])
        and (length is None or one.rule.length == length)
        and one.confidence >= min_confidence
        and one.support >= min_support
    ]


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"relation": "livesIn"},
        {"relation": "livesIn", "inverse": True},
        {"relation": "livesIn", "body": "bornIn", "length": 1},
        {"temporal": "touching", "min_confidence": 0.2},
        {"min_support": 5, "length": 2, "inverse": True},
    ],
)
def test_rules_meet_all_conditions(client, service_model, choice):
    wanted = rule_oracle(
        service_model.rules(),
        **{
            **dict.fromkeys(("relation", "body", "temporal", "length")),
            "inverse": False,
            "min_confidence": 0,
            "min_support": 0,
            **choice,
        },
    )
    assert wanted
    page = get(client, "rules", **choice, limit=500)
    assert page["total"] == len(wanted)
    assert {one["number"] for one in page["rules"]} <= set(wanted)
    assert len(page["rules"]) == min(len(wanted), 500)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sort", list(RuleOrder))
def test_rules_are_sorted_and_read_page_by_page(client, sort, order):
    whole = get(client, "rules", sort=sort, order=order, limit=60)["rules"]
    keys = [one[sort] for one in whole]
    assert keys == sorted(keys, reverse=order == "desc")
    pages = [
        get(client, "rules", sort=sort, order=order, offset=offset, limit=20)["rules"]
        for offset in (0, 20, 40)
    ]
    assert [one for page in pages for one in page] == whole


def test_a_rule_is_told_with_its_statistics(client, service_model):
    rules = service_model.rules()
    for one in get(client, "rules", limit=5)["rules"]:
        mined = rules[one["number"]]
        assert one["text"] == str(mined.rule)
        assert one["sentence"] == format_rule(mined.rule, Notation.SENTENCE)
        assert one["body"] == [str(atom) for atom in mined.rule.body]
        assert one["fired"] == mined.body_support
        for field in ("weight", "confidence", "support", "facts", "sampled"):
            assert one[field] == getattr(mined, field)


def test_a_rule_is_drawn(client, service_model):
    answer = client.get("/api/v1/rules/3/picture.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert answer.text == draw_rule(service_model.rules()[3].rule)
    many = len(service_model.rules())
    error = refused(client.get(f"/api/v1/rules/{many}/picture.svg"), 404, "not_found")
    assert f"{many:,}" in error["message"]


def test_predictions_are_those_of_the_model(client, service_model, service_queries):
    for query in service_queries:
        found = post(client, "predict", {**query, "k": 7})
        assert found["answers"] == [asdict(one) for one in service_model.ask(Query(**query), 7)]
        assert found["query"] == asdict(Query(**query))


def test_dates_may_be_numbers(client, service_queries):
    dated = next(one for one in service_queries if one["start"] and one["end"])
    as_numbers = {**dated, "start": int(dated["start"]), "end": float(dated["end"])}
    written, numbered = post(client, "predict", dated), post(client, "predict", as_numbers)
    assert numbered["answers"] == written["answers"]


def test_a_batch_answers_line_by_line_as_each_query_alone(client, service_queries):
    unknown = {**service_queries[0], "subject": "Nobody at All"}
    backwards = {**service_queries[0], "start": "1990", "end": "1980"}
    asked = [*service_queries[:9], unknown, *service_queries[9:], backwards]
    answer = client.post("/api/v1/predict/batch", json={"queries": asked, "k": 3})
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["number"] for line in lines] == list(range(len(asked)))
    for line, query in zip(lines, asked, strict=True):
        assert line["query"] == asdict(Query(**query))
        if query is unknown:
            assert line["error"]["code"] == "unknown_name"
        elif query is backwards:
            assert line["error"]["code"] == "bad_request"
        else:
            assert line["answers"] == post(client, "predict", {**query, "k": 3})["answers"]


def test_a_batch_is_sent_as_it_is_found(client, service_queries, monkeypatch):
    goes_on, chunks = threading.Event(), []
    ask_each = ModelView.predict_each

    def ask_slowly(self, part, k):
        if chunks:
            assert goes_on.wait(60)
        chunks.append(len(part))
        return ask_each(self, part, k)

    monkeypatch.setattr(ModelView, "predict_each", ask_slowly)
    asked = {"queries": service_queries[:10], "k": 1}
    with client.stream("POST", "/api/v1/predict/batch", json=asked) as answer:
        lines = answer.iter_lines()
        first = [json.loads(next(lines))["number"] for _ in range(SMALL_LIMITS.chunk)]
        assert first == list(range(SMALL_LIMITS.chunk))
        assert chunks == [SMALL_LIMITS.chunk]  # the rest is not even computed
        goes_on.set()
        assert [json.loads(line)["number"] for line in lines] == list(range(SMALL_LIMITS.chunk, 10))
    assert chunks == [4, 4, 2]


def test_explanations_are_those_of_the_model(client, service_model, service_queries):
    for query in service_queries[:6]:
        body = {**query, "groundings": 2, "reasons": 4}
        told = post(client, "explain", body)
        found = service_model.explain(Query(**query), groundings=2, top=4)
        assert without_pictures(told) == json.loads(json.dumps(found.to_json()))
        total = sum(one["score"] for one in told["reasons"]) + told["rest"]["score"]
        assert total == pytest.approx(told["score"])


def without_pictures(told):
    """An explanation without the places where pictures would be."""
    if isinstance(told, dict):
        return {name: without_pictures(one) for name, one in told.items() if name != "svg"}
    return [without_pictures(one) for one in told] if isinstance(told, list) else told


def test_groundings_are_drawn_where_it_is_asked_for(client, service_queries):
    second = post(client, "predict", service_queries[0])["answers"][1]["id"]
    body = {**service_queries[0], "candidate": second}
    plain = post(client, "explain", body)
    drawn = post(client, "explain", {**body, "pictures": True})
    assert drawn["lacks"] and plain["candidate"] == second
    assert without_pictures(drawn) == without_pictures(plain)
    assert all(one["svg"] is None for one in groundings_in(plain))
    shown = list(groundings_in(drawn["reasons"]))
    assert shown and all(one["svg"].startswith("<svg") for one in shown)
    for one in shown[:5]:
        facts = [{name: fact[name] for name in ("number", "inverse")} for fact in one["facts"]]
        picture = client.post("/api/v1/picture", json={**body, "facts": facts})
        assert picture.headers["content-type"].startswith("image/svg+xml")
        assert picture.text == one["svg"]


def test_what_inspect_says_and_facts_over_time(client, service_model):
    graph = service_model.graph
    told = get(client, "data")
    assert told["inspection"] == json.loads(json.dumps(inspect(graph).to_json()))
    counted = facts_over_time(graph)
    over_time = told["over_time"]
    assert over_time["bins"] == list(counted.bins)
    assert over_time["texts"] == [str(year) for year in counted.bins]
    drawn = sum(sum(bars) for bars in over_time["splits"].values())
    assert drawn + over_time["unknown"] + over_time["outside"] == len(graph)


def test_the_facts_of_an_entity_by_their_start(client, service_model):
    graph = service_model.graph
    told = get(client, "facts", entity=SCRIPT, limit=500)
    frames = [graph.frame(split).with_columns(split=pl.lit(split)) for split in SPLITS]
    facts = pl.concat(frames)
    mine = facts.filter((pl.col("subject") == SCRIPT) | (pl.col("object") == SCRIPT))
    columns = ["subject", "relation", "object", "start", "end", "split"]
    found = [tuple(one[name] for name in columns) for one in told["facts"]]
    assert sorted(found) == sorted(mine.select(columns).iter_rows())
    assert told["total"] == mine.height
    numbers = [one["from"] if one["from"] is not None else one["to"] for one in told["facts"]]
    dated = [number for number in numbers if number is not None]
    assert dated == sorted(dated) and numbers[: len(dated)] == dated
    assert get(client, "facts", entity=SCRIPT, offset=2, limit=3)["facts"] == told["facts"][2:5]


def test_facts_without_any_date_are_counted():
    facts = pl.DataFrame({"subject": ["a", "b"], "relation": ["r", "r"], "object": ["b", "b"]})
    graph = tilp.read(facts)
    assert (graph.start == UNKNOWN).all()
    view = DataView(graph)
    assert view.summary["over_time"]["unknown"] == 2
    assert view.facts("b", 0, 10)["total"] == 2  # one of them with itself, and only once
    assert [one["facts"] for one in view.entities("", 2)] == [2, 1]


def test_answers_under_load_are_those_alone(client, service_queries):
    bodies = [{**query, "k": 5} for query in service_queries]
    paths = ("predict", "explain")
    alone = {
        (path, number): client.post(f"/api/v1/{path}", json=prepared(path, body)).content
        for path in paths
        for number, body in enumerate(bodies)
    }
    chance = random.Random(0)
    wanted = [chance.choice(list(alone)) for _ in range(160)]

    def ask(one):
        path, number = one
        return client.post(f"/api/v1/{path}", json=prepared(path, bodies[number])).content

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, wanted))
    assert all(content == alone[one] for one, content in zip(wanted, found, strict=True))


def prepared(path, body):
    return {name: value for name, value in body.items() if path == "predict" or name != "k"}


def test_the_schema_is_kept(service_address):
    done = check_schema(service_address, examples=8)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-5_000:]
