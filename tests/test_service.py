"""The service: what each path answers, what it refuses, and how it bears load and nonsense."""

import gc
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path

import httpx
import polars as pl
import pytest

import tilp
from malformed import Malformed, send
from serving import keeps_schema, running, wait_for
from tilp import TILP, Query, TILPConfig
from tilp.data_quality import facts_over_time, inspect
from tilp.graph import SPLITS
from tilp.learning.rule_weights import TrainingSettings
from tilp.rules import Notation, format_rule
from tilp.rules.picture import draw_rule
from tilp.scoring import Prediction, Predictions
from tilp.time import UNKNOWN
from tilp.types import RuleOrder
from tilp.web.app import create_app
from tilp.web.limits import Limits
from tilp.web.served import Served
from tilp.web.views import Asker

SCRIPT = "<script>alert(1)</script>"
EASY = Limits(computations=2, chunk=4)


@pytest.fixture(scope="module")
def graph():
    """A small world in which somebody has a name that no page must take for its own."""
    world = tilp.datasets.world(1, 1_000).graph
    busy = world.frame("train")["subject"].value_counts(sort=True)["subject"][0]
    named = {
        split: world.frame(split).with_columns(pl.col("subject", "object").replace(busy, SCRIPT))
        for split in SPLITS
    }
    return tilp.read(named)


@pytest.fixture(scope="module")
def model(graph, quick_features):
    training = TrainingSettings(steps=10)
    return TILP(2, max_rules=200, n_jobs=2, config=TILPConfig(sample=40, training=training)).fit(
        graph
    )


@pytest.fixture(scope="module")
def app(model):
    return create_app(model, name="world", limits=EASY)


@pytest.fixture(scope="module")
def address(app):
    with running(app) as address:
        yield address


@pytest.fixture(scope="module")
def client(address):
    with httpx.Client(base_url=address, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def queries(graph):
    """Queries both ways, from facts that were held out."""
    found = []
    for row in graph.frame("test").head(12).iter_rows(named=True):
        dates = {"start": row["start"] or None, "end": row["end"] or None}
        found.append({"relation": row["relation"], "subject": row["subject"], **dates})
        found.append({"relation": row["relation"], "object": row["object"], **dates})
    return found


def get(client, path, **parameters):
    answer = client.get(f"/api/v1/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(client, path, body):
    answer = client.post(f"/api/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer, status, code):
    """The one form that all errors have."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    (error,) = answer.json().values()
    assert set(error) == {"code", "message", "near"}
    assert error["code"] == code
    assert "Traceback" not in answer.text and str(Path(tilp.__file__).parent) not in answer.text
    return error


# What paths answer


def test_health_and_readiness(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}


def test_the_model_and_a_query_to_begin_with(client, model):
    told = get(client, "model")
    assert told["name"] == "world"
    assert told["version"] == tilp.__version__
    assert told["rules"] == len(model.rules())
    assert told["facts"] == {split: len(model.graph.rows(split)) for split in SPLITS}
    assert told["unit"] == "year"
    assert told["entities"] == len(model.graph.entities)
    assert {"before", "touching", "after"} <= set(told["words"])
    assert post(client, "predict", told["example"])["answers"]


def test_relations_with_their_facts_and_rules(client, model):
    for one in get(client, "relations"):
        assert one["facts"] == model.graph.frame().filter(relation=one["name"]).height
        assert one["rules"] == len(model.rules(one["name"]))
        assert one["inverse_rules"] == len(model.rules(f"{one['name']}⁻¹"))


def test_entities_begin_with_a_text_then_have_it_inside(client, model):
    names = list(model.graph.entities)
    facts = model.graph.frame()
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


def rule_oracle(model, *, relation, inverse, body, temporal, length, min_confidence, min_support):
    """The numbers of the rules that meet all conditions, one by one."""
    return [
        number
        for number, one in enumerate(model.rules())
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
def test_rules_meet_all_conditions(client, model, choice):
    wanted = rule_oracle(
        model,
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


def test_a_rule_is_told_with_its_statistics(client, model):
    rules = model.rules()
    for one in get(client, "rules", limit=5)["rules"]:
        mined = rules[one["number"]]
        assert one["text"] == str(mined.rule)
        assert one["sentence"] == format_rule(mined.rule, Notation.SENTENCE)
        assert one["body"] == [str(atom) for atom in mined.rule.body]
        for field in ("weight", "confidence", "support", "fired", "facts", "sampled"):
            assert one[field] == getattr(mined, field)


def test_a_rule_is_drawn(client, model):
    answer = client.get("/api/v1/rules/3/picture.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert answer.text == draw_rule(model.rules()[3].rule)
    many = len(model.rules())
    error = refused(client.get(f"/api/v1/rules/{many}/picture.svg"), 404, "not_found")
    assert f"{many:,}" in error["message"]


def test_predictions_are_those_of_the_model(client, model, queries):
    for query in queries:
        found = post(client, "predict", {**query, "k": 7})
        assert found["answers"] == [asdict(one) for one in model.ask(Query(**query), 7)]
        assert found["query"] == asdict(Query(**query))


def test_dates_may_be_numbers(client, queries):
    dated = next(one for one in queries if one["start"] and one["end"])
    as_numbers = {**dated, "start": int(dated["start"]), "end": float(dated["end"])}
    written, numbered = post(client, "predict", dated), post(client, "predict", as_numbers)
    assert numbered["answers"] == written["answers"]


def test_a_batch_answers_line_by_line_as_each_query_alone(client, queries):
    unknown = {**queries[0], "subject": "Nobody at All"}
    backwards = {**queries[0], "start": "1990", "end": "1980"}
    asked = [*queries[:9], unknown, *queries[9:], backwards]
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


def test_a_batch_is_sent_as_it_is_found(client, queries, monkeypatch):
    goes_on, chunks = threading.Event(), []
    ask_each = Asker.ask_each

    def ask_slowly(self, part, k):
        if chunks:
            assert goes_on.wait(60)
        chunks.append(len(part))
        return ask_each(self, part, k)

    monkeypatch.setattr(Asker, "ask_each", ask_slowly)
    asked = {"queries": queries[:10], "k": 1}
    with client.stream("POST", "/api/v1/predict/batch", json=asked) as answer:
        lines = answer.iter_lines()
        first = [json.loads(next(lines))["number"] for _ in range(EASY.chunk)]
        assert first == list(range(EASY.chunk))
        assert chunks == [EASY.chunk]  # the rest is not even computed
        goes_on.set()
        assert [json.loads(line)["number"] for line in lines] == list(range(EASY.chunk, 10))
    assert chunks == [4, 4, 2]


def test_explanations_are_those_of_the_model(client, model, queries):
    for query in queries[:6]:
        body = {**query, "groundings": 2, "reasons": 4}
        told = post(client, "explain", body)
        found = model.explain(Query(**query), groundings=2, max_reasons=4)
        assert without_pictures(told) == json.loads(json.dumps(found.to_json()))
        total = sum(one["score"] for one in told["reasons"]) + told["rest"]["score"]
        assert total == pytest.approx(told["score"])


def without_pictures(told):
    """An explanation without the places where pictures would be."""
    if isinstance(told, dict):
        return {name: without_pictures(one) for name, one in told.items() if name != "svg"}
    return [without_pictures(one) for one in told] if isinstance(told, list) else told


def groundings_in(told):
    if isinstance(told, dict):
        if "facts" in told and isinstance(told["facts"], list):
            yield told
        for one in told.values():
            yield from groundings_in(one)
    elif isinstance(told, list):
        for one in told:
            yield from groundings_in(one)


def test_groundings_are_drawn_where_it_is_asked_for(client, queries):
    second = post(client, "predict", queries[0])["answers"][1]["id"]
    body = {**queries[0], "candidate": second}
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


def test_what_inspect_says_and_facts_over_time(client, graph):
    told = get(client, "data")
    assert told["inspection"] == json.loads(json.dumps(inspect(graph).to_json()))
    counted = facts_over_time(graph)
    over_time = told["over_time"]
    assert over_time["bins"] == list(counted.bins)
    assert over_time["texts"] == [str(year) for year in counted.bins]
    drawn = sum(sum(bars) for bars in over_time["splits"].values())
    assert drawn + over_time["unknown"] + over_time["outside"] == len(graph)


def test_the_facts_of_an_entity_by_their_start(client, graph):
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
    from tilp.web.views import DataView

    graph = tilp.read(facts)
    assert (graph.start == UNKNOWN).all()
    view = DataView(graph)
    assert view.summary["over_time"]["unknown"] == 2
    assert view.facts("b", 0, 10)["total"] == 2  # one of them with itself, and only once
    assert [one["facts"] for one in view.entities("", 2)] == [2, 1]


# What is refused


JSON = "application/json"
QUERY = {"relation": "livesIn", "subject": SCRIPT}
DRAWN = {**QUERY, "candidate": SCRIPT, "facts": [{"number": 0}]}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "words"),
    [
        ("GET", "/nothing", None, 404, "not_found", "/openapi.json"),
        ("GET", "/api/v1/model/", None, 404, "not_found", "/openapi.json"),
        ("GET", "/api/v2/model", None, 404, "not_found", "/openapi.json"),
        ("GET", "/static/nothing.js", None, 404, "not_found", "no such file"),
        ("GET", "/static/..%2fapp.py", None, 404, "not_found", "nothing at this path"),
        ("PUT", "/api/v1/model", None, 405, "wrong_method", "ask GET"),
        ("GET", "/api/v1/predict", None, 405, "wrong_method", "ask POST"),
        ("GET", "/api/v1/rules?relation=liveIn", None, 404, "unknown_name", "livesIn"),
        ("GET", "/api/v1/rules?body=liveIn", None, 404, "unknown_name", "livesIn"),
        ("GET", "/api/v1/rules?temporal=befor", None, 404, "unknown_name", "before"),
        ("GET", "/api/v1/rules?sort=beauty", None, 422, "bad_request", "weight"),
        ("GET", "/api/v1/rules?limit=0", None, 422, "bad_request", "query.limit"),
        ("GET", "/api/v1/rules?limit=501", None, 422, "bad_request", "500"),
        ("GET", "/api/v1/rules?min_confidence=nan", None, 422, "bad_request", "finite"),
        ("GET", "/api/v1/rules?offset=99999999999999999999", None, 422, "bad_request", "offset"),
        ("GET", "/api/v1/rules/first/picture.svg", None, 422, "bad_request", "integer"),
        ("GET", "/api/v1/facts", None, 422, "bad_request", "query.entity"),
        ("GET", "/api/v1/facts?entity=%00", None, 404, "unknown_name", "no entity"),
        ("GET", f"/api/v1/entities?text={'a' * 1_001}", None, 422, "bad_request", "1000"),
        ("POST", "/api/v1/predict", "", 422, "bad_request", "body"),
        ("POST", "/api/v1/predict", "{", 400, "bad_request", "not JSON"),
        ("POST", "/api/v1/predict", "\xff", 400, "bad_request", "body"),
        ("POST", "/api/v1/predict", "[" * 9_999, 400, "bad_request", "body"),
        ("POST", "/api/v1/predict", "[]", 422, "bad_request", "body"),
        ("POST", "/api/v1/predict", {}, 422, "bad_request", "relation"),
        ("POST", "/api/v1/predict", {"relation": "livesIn"}, 422, "bad_request", "not both"),
        ("POST", "/api/v1/predict", {**QUERY, "object": "x"}, 422, "bad_request", "not both"),
        ("POST", "/api/v1/predict", {**QUERY, "strat": 1}, 422, "bad_request", "'strat'"),
        ("POST", "/api/v1/predict", {**QUERY, "\ud800": 1}, 422, "bad_request", "no field"),
        ("POST", "/api/v1/predict", {**QUERY, "k": 0}, 422, "bad_request", "body.k"),
        ("POST", "/api/v1/predict", {**QUERY, "k": 1_001}, 422, "bad_request", "1000"),
        ("POST", "/api/v1/predict", {**QUERY, "k": True}, 422, "bad_request", "whole number"),
        ("POST", "/api/v1/predict", {**QUERY, "k": "9"}, 422, "bad_request", "whole number"),
        ("POST", "/api/v1/predict", {**QUERY, "k": 1.5}, 422, "bad_request", "body.k"),
        ("POST", "/api/v1/predict", {**QUERY, "k": float("nan")}, 422, "bad_request", "body.k"),
        ("POST", "/api/v1/predict", {**QUERY, "start": 10**30}, 422, "bad_request", "date"),
        ("POST", "/api/v1/predict", {**QUERY, "start": True}, 422, "bad_request", "body.start"),
        ("POST", "/api/v1/predict", {**QUERY, "end": float("nan")}, 422, "bad_request", "date"),
        ("POST", "/api/v1/predict", {**QUERY, "end": float("inf")}, 422, "bad_request", "date"),
        ("POST", "/api/v1/predict", {**QUERY, "start": "soon"}, 400, "bad_request", "1952-05-17"),
        (
            "POST",
            "/api/v1/predict",
            {**QUERY, "start": 1990, "end": 1980},
            400,
            "bad_request",
            "must not start",
        ),
        ("POST", "/api/v1/predict", {**QUERY, "subject": "\ud800"}, 422, "bad_request", "unicode"),
        ("POST", "/api/v1/predict", {**QUERY, "subject": "\0"}, 404, "unknown_name", "no entity"),
        ("POST", "/api/v1/predict", {**QUERY, "relation": "livedIn"}, 404, "unknown_name", "mean"),
        ("POST", "/api/v1/explain", {**QUERY, "candidate": "Nobody"}, 404, "unknown_name", "Nobo"),
        ("POST", "/api/v1/explain", {**QUERY, "groundings": 21}, 422, "bad_request", "20"),
        ("POST", "/api/v1/picture", {**DRAWN, "facts": []}, 422, "bad_request", "at least 1"),
        ("POST", "/api/v1/picture", {**DRAWN, "start": "soon"}, 400, "bad_request", "1952"),
        (
            "POST",
            "/api/v1/picture",
            {**DRAWN, "facts": [{"number": 10**9}]},
            404,
            "unknown_name",
            "no fact",
        ),
        ("POST", "/api/v1/predict/batch", {"queries": []}, 422, "bad_request", "at least 1"),
        (
            "POST",
            "/api/v1/predict/batch",
            {"queries": [QUERY] * 10_001},
            422,
            "too_large",
            "10000",
        ),
        (
            "POST",
            "/api/v1/predict/batch",
            {"queries": [QUERY, {}]},
            422,
            "bad_request",
            "queries.1",
        ),
    ],
)
def test_what_cannot_be_answered_is_told(client, method, path, body, status, code, words):
    content = json.dumps(body) if isinstance(body, dict) else body
    headers = {} if body is None else {"Content-Type": JSON}
    content = None if content is None else content.encode("latin-1")
    answer = client.request(method, path, content=content, headers=headers)
    error = refused(answer, status, code)
    assert words in error["message"]
    if code == "unknown_name" and "mean" in error["message"]:
        assert error["near"] and all(name in error["message"] for name in error["near"])
    if status == 405:
        assert answer.headers["allow"] in ("GET", "POST")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_says_that_it_is_json(client, kind):
    answer = client.post(
        "/api/v1/predict", content=json.dumps(QUERY), headers={"Content-Type": kind}
    )
    refused(answer, 415, "wrong_type")


def test_bodies_are_not_larger_than_the_limit(client, queries):
    large = json.dumps({**QUERY, "subject": "a" * EASY.body}).encode()
    headers = {"Content-Type": JSON}
    refused(client.post("/api/v1/predict", content=large, headers=headers), 413, "too_large")

    def pieces():
        """Sent in chunks, so that nobody knows the size before."""
        for begin in range(0, len(large), 1_000):
            yield large[begin : begin + 1_000]

    refused(client.post("/api/v1/predict", content=pieces(), headers=headers), 413, "too_large")
    many = {"queries": (queries * 50)[:1_000], "k": 1}
    assert len(json.dumps(many)) > EASY.body
    answer = client.post("/api/v1/predict/batch", json=many)
    assert len(answer.text.splitlines()) == 1_000
    refused(
        client.post("/api/v1/predict/batch", content=large * 40, headers=headers), 413, "too_large"
    )


def test_every_answer_is_guarded(client):
    for path in ("/health", "/", "/nothing", "/api/v1/model", "/api/v1/rules?limit=x"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_a_name_is_only_ever_a_text(client, queries):
    """A name with markup stands in JSON as it is, and in pictures without any."""
    told = get(client, "entities", text="<scr")
    assert told[0]["name"] == SCRIPT
    query = {"relation": "livesIn", "subject": SCRIPT}
    answer = client.post("/api/v1/explain", json={**query, "pictures": True})
    assert answer.headers["content-type"] == JSON
    pictures = [one["svg"] for one in groundings_in(answer.json()["reasons"])]
    drawn = [one for one in pictures if "alert(1)" in one]
    assert drawn and all("<script" not in one for one in pictures)
    unknown = refused(
        client.get("/api/v1/facts", params={"entity": "<script>"}), 404, "unknown_name"
    )
    assert SCRIPT in unknown["near"] or not unknown["near"]


# The page's files


@pytest.fixture
def page(tmp_path, monkeypatch, model):
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>tilp</title>")
    (folder / "app.js").write_text("'use strict'")
    (tmp_path / "secret.py").write_text("secret")
    monkeypatch.setattr("tilp.web.static.files", lambda _: tmp_path)
    with running(create_app(model, name="world"), warm=False) as address:
        yield httpx.Client(base_url=address)


def test_the_page_and_its_files(page):
    index = page.get("/")
    assert index.headers["content-type"].startswith("text/html")
    assert "tilp" in index.text
    script = page.get("/static/app.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["cache-control"] == "no-cache"
    again = page.get("/static/app.js", headers={"If-None-Match": script.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert page.head("/static/app.js").status_code == 200
    for path in ("secret.py", "../secret.py", "%2e%2e/secret.py", "..%2fsecret.py", "nothing.js"):
        refused(page.get(f"/static/{path}"), 404, "not_found")
    page.close()


# Warming up, waiting, giving up


def test_readiness_tells_the_truth(model, monkeypatch):
    warm, build = threading.Event(), Served._build

    def build_later(self):
        assert warm.wait(60)
        return build(self)

    monkeypatch.setattr(Served, "_build", build_later)
    told = []
    app = create_app(model, name="world", when_ready=lambda: told.append(True))
    with running(app, warm=False) as address:
        assert httpx.get(f"{address}/health").status_code == 200
        answer = httpx.get(f"{address}/ready")
        refused(answer, 503, "starting")
        assert answer.headers["retry-after"] == "1"
        refused(httpx.get(f"{address}/api/v1/model"), 503, "starting")
        refused(
            httpx.post(f"{address}/api/v1/predict/batch", json={"queries": [QUERY]}),
            503,
            "starting",
        )
        assert "/api/v1/predict" in httpx.get(f"{address}/openapi.json").json()["paths"]
        assert not told
        warm.set()
        wait_for(f"{address}/ready")
        assert told == [True]


def test_a_failed_start_is_told(model, monkeypatch, caplog):
    def fail(_):
        raise RuntimeError("a secret place")

    monkeypatch.setattr(Served, "_build", fail)
    with running(create_app(model, name="world"), warm=False) as address:
        for _ in range(100):
            error = refused(httpx.get(f"{address}/ready"), 503, "starting")
            if "could not warm up" in error["message"]:
                break
            time.sleep(0.05)
        assert "its log" in error["message"] and "secret" not in error["message"]
    assert "a secret place" in caplog.text


@pytest.fixture
def slow(monkeypatch):
    """Answers wait until they are let go."""
    let_go, ask = threading.Event(), Asker.ask
    monkeypatch.setattr(
        Asker, "ask", lambda self, query, k: let_go.wait(60) and ask(self, query, k)
    )
    monkeypatch.setattr(Asker, "warm_up", lambda self: Query(**QUERY))
    return let_go


def test_what_takes_too_long_is_given_up(model, slow):
    limits = Limits(computations=1, seconds=0.3)
    with running(create_app(model, name="world", limits=limits)) as address:
        given_up = httpx.post(f"{address}/api/v1/predict", json=QUERY)
        refused(given_up, 503, "too_slow")
        assert given_up.headers["retry-after"] == "1"
        assert httpx.get(f"{address}/health").status_code == 200
        slow.set()
        for _ in range(100):  # the computation that was given up comes to its end
            answer = httpx.post(f"{address}/api/v1/predict", json=QUERY)
            if answer.status_code == 200:
                break
            time.sleep(0.05)
        assert answer.json()["answers"]


def test_only_so_many_wait(model, slow):
    limits = Limits(computations=1, waiting=2)
    with (
        running(create_app(model, name="world", limits=limits)) as address,
        ThreadPoolExecutor(4) as threads,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        asked = [threads.submit(client.post, "/api/v1/predict", json=QUERY) for _ in range(4)]
        (first,), others = wait(asked, return_when=FIRST_COMPLETED)
        refused(first.result(), 503, "busy")
        assert first.result().headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200
        slow.set()
        assert [one.result().status_code for one in others] == [200] * 3
        assert client.get("/api/v1/entities").status_code == 200


def test_a_body_that_does_not_arrive_is_not_waited_for(model, monkeypatch):
    monkeypatch.setattr(Asker, "warm_up", lambda self: Query(**QUERY))
    limits = Limits(arrival=0.2)
    with running(create_app(model, name="world", limits=limits)) as address:
        port = httpx.URL(address).port
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(
                b"POST /api/v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b'Content-Length: 50\r\n\r\n{"relation":'
            )
            answer = b""
            while part := connection.recv(4_096):
                answer += part
        assert answer.startswith(b"HTTP/1.1 408")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_slow"


def test_who_does_not_read_an_answer_does_not_keep_others_waiting(model, monkeypatch):
    monkeypatch.setattr(Asker, "warm_up", lambda self: Query(**QUERY))
    large = Predictions(
        Query(**QUERY), tuple(Prediction(1, "x" * 10**6, "", 0.0, 0.0, False) for _ in "xyz")
    )
    monkeypatch.setattr(Asker, "ask_each", lambda self, part, k: [large for _ in part])
    limits = Limits(computations=1, waiting=0, arrival=0.5)
    with running(create_app(model, name="world", limits=limits)) as address:
        many = {"queries": [QUERY] * 100}
        with httpx.stream("POST", f"{address}/api/v1/predict/batch", json=many) as answer:
            assert answer.status_code == 200
            for _ in range(200):
                other = httpx.post(f"{address}/api/v1/predict", json=QUERY)
                if other.status_code == 200:
                    break
                refused(other, 503, "busy")
                time.sleep(0.05)
            assert other.status_code == 200
            with pytest.raises(httpx.TransportError):
                answer.read()


def test_a_defect_is_told_without_its_place(client, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError(f"at {__file__}")

    monkeypatch.setattr(Asker, "ask", fail)
    monkeypatch.setattr(Asker, "ask_each", fail)
    for path, body in (("predict", QUERY), ("predict/batch", {"queries": [QUERY]})):
        answer = client.post(f"/api/v1/{path}", json=body)
        assert __file__ not in refused(answer, 500, "defect")["message"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert __file__ in caplog.text
    monkeypatch.undo()
    assert post(client, "predict", QUERY)["answers"]


# Many at once


def test_answers_under_load_are_those_alone(client, queries):
    bodies = [{**query, "k": 5} for query in queries]
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


# Nonsense


def test_the_schema_is_kept(address):
    done = keeps_schema(address, examples=8)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-5_000:]


def test_malformed_requests_are_refused(client, address, queries):
    drawn = Malformed(0, [*queries[:4], {"queries": queries[:2]}])
    port = httpx.URL(address).port
    statuses = {}
    for _ in range(400):
        request, due = drawn.draw()
        status = send(port, request, due=due)
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500, request[:500]
        assert status or not due, request[:500]
    assert statuses[400] and statuses[404] and statuses[405] and statuses[422]
    assert client.get("/ready").status_code == 200


# The command


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("m") / "model")


@pytest.fixture
def served(folder):
    """The command in a process of its own; gives it and its address when it is ready."""
    command = [sys.executable, "-m", "tilp", "serve", str(folder), "--port", "0", "--threads", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        while "ready at " not in (line := process.stdout.readline()):
            assert line, process.stderr.read()
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_requests_under_way_end(served, queries, how):
    process, address = served
    many = {"queries": (queries * 50)[:600], "k": 1}
    with httpx.stream("POST", f"{address}/api/v1/predict/batch", json=many, timeout=60) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        process.send_signal(how)
        rest = list(lines)
    assert [json.loads(line)["number"] for line in (first, *rest)] == list(range(600))
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    if how is signal.SIGINT:
        assert process.returncode == 0 and "stopped" in out
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/health")


def test_a_port_that_is_taken(run, folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        code, _, err = run("serve", folder, "--port", other.getsockname()[1])
        gc.collect()  # what was left open would be told
    assert code == 2
    assert "--port" in err and "in use" in err
    code, _, err = run("serve", folder, "--host", "no.such.host.invalid", "--port", 0)
    assert code == 2 and "--host" in err


def test_a_service_without_its_extra(run, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, _, err = run("serve", folder)
    assert code == 2
    assert 'pip install "tilp[web]"' in err


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_others_reach_it_only_if_that_is_said(run, folder, monkeypatch, host, warned):
    monkeypatch.setattr("tilp.cli.serve._run", lambda app, listening: None)
    code, out, err = run("serve", folder, "--host", host, "--port", 0)
    assert code == 0, err
    assert f"http://{host}:" in out
    assert ("other machines" in err) is warned
