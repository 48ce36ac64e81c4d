"""What the service refuses: wrong requests, large bodies, malformed bytes; and its page's files."""

import json

import httpx
import pytest
from fastapi import FastAPI

from malformed import Malformed, send
from serving import QUERY, SCRIPT, SMALL_LIMITS, get, groundings_in, post, refused, serve
from tilp.web.app import page_router
from tilp.web.errors import add_error_handlers
from tilp.web.views import ModelView

JSON = "application/json"
DRAWN = {**QUERY, "candidate": SCRIPT, "facts": [{"id": 0}]}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "text"),
    [
        ("GET", "/nothing", None, 404, "not_found", "/openapi.json"),
        ("GET", "/api/v1/model/", None, 404, "not_found", "/openapi.json"),
        ("GET", "/api/v2/model", None, 404, "not_found", "/openapi.json"),
        ("GET", "/static/nothing.js", None, 404, "not_found", "no such file"),
        ("GET", "/static/..%2fapp.py", None, 404, "not_found", "nothing at this path"),
        ("PUT", "/api/v1/model", None, 405, "wrong_method", "use GET"),
        ("GET", "/api/v1/predict", None, 405, "wrong_method", "use POST"),
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
            {**DRAWN, "facts": [{"id": 10**9}]},
            404,
            "unknown_name",
            "no fact",
        ),
        ("POST", "/api/v1/predict/batch", {"queries": []}, 422, "bad_request", "at least 1"),
        ("POST", "/api/v1/predict/batch", {"queries": [QUERY] * 10_001}, 422, "too_large", "10000"),
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
def test_wrong_requests_get_an_error(client, method, path, body, status, code, text):
    content = json.dumps(body) if isinstance(body, dict) else body
    headers = {} if body is None else {"Content-Type": JSON}
    content = None if content is None else content.encode("latin-1")
    answer = client.request(method, path, content=content, headers=headers)
    error = refused(answer, status, code)
    assert text in error["message"]
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


def test_bodies_are_not_larger_than_the_limit(client, service_queries):
    large = json.dumps({**QUERY, "subject": "a" * SMALL_LIMITS.body}).encode()
    headers = {"Content-Type": JSON}
    refused(client.post("/api/v1/predict", content=large, headers=headers), 413, "too_large")

    def pieces():
        """Sent in chunks, so that nobody knows the size before."""
        for begin in range(0, len(large), 1_000):
            yield large[begin : begin + 1_000]

    refused(client.post("/api/v1/predict", content=pieces(), headers=headers), 413, "too_large")
    many = {"queries": (service_queries * 50)[:1_000], "k": 1}
    assert len(json.dumps(many)) > SMALL_LIMITS.body
    answer = client.post("/api/v1/predict/batch", json=many)
    assert len(answer.text.splitlines()) == 1_000
    refused(
        client.post("/api/v1/predict/batch", content=large * 40, headers=headers), 413, "too_large"
    )


def test_every_response_has_security_headers(client):
    for path in ("/health", "/", "/nothing", "/api/v1/model", "/api/v1/rules?limit=x"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_a_name_is_only_ever_a_text(client, service_model):
    """A name with markup stands in JSON as it is, and in pictures without any."""
    matches = get(client, "entities", text="<scr")
    assert matches[0]["name"] == SCRIPT
    facts = service_model.graph.facts("train")
    pictures = []
    for relation in sorted({fact.relation for fact in facts if fact.subject == SCRIPT}):
        query = {"relation": relation, "subject": SCRIPT}
        answer = client.post("/api/v1/explain", json={**query, "pictures": True})
        assert answer.headers["content-type"] == JSON
        pictures += [grounding["svg"] for grounding in groundings_in(answer.json()["reasons"])]
    drawn = [picture for picture in pictures if "alert(1)" in picture]
    assert drawn and all("<script" not in picture for picture in pictures)
    unknown = refused(
        client.get("/api/v1/facts", params={"entity": SCRIPT[:-1]}), 404, "unknown_name"
    )
    assert SCRIPT in unknown["near"] and SCRIPT in unknown["message"]


def test_a_defect_does_not_show_its_source(client, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError(f"at {__file__}")

    monkeypatch.setattr(ModelView, "predict", fail)
    monkeypatch.setattr(ModelView, "predict_each", fail)
    for path, body in (("predict", QUERY), ("predict/batch", {"queries": [QUERY]})):
        answer = client.post(f"/api/v1/{path}", json=body)
        assert __file__ not in refused(answer, 500, "defect")["message"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert __file__ in caplog.text
    monkeypatch.undo()
    assert post(client, "predict", QUERY)["answers"]


def test_malformed_requests_are_refused(client, service_address, service_queries):
    drawn = Malformed(0, [*service_queries[:4], {"queries": service_queries[:2]}])
    port = httpx.URL(service_address).port
    statuses = {}
    for _ in range(400):
        request, due = drawn.draw()
        status = send(port, request, due=due)
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500, request[:500]
        assert status or not due, request[:500]
    assert statuses[400] and statuses[404] and statuses[405] and statuses[422]
    assert client.get("/ready").status_code == 200


def test_the_page_and_its_files(tmp_path):
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>tilp</title>")
    (folder / "app.js").write_text("'use strict'")
    (tmp_path / "secret.py").write_text("secret")
    app = FastAPI()
    add_error_handlers(app)
    app.include_router(page_router(folder))
    with serve(app) as address, httpx.Client(base_url=address) as page:
        index = page.get("/")
        assert index.headers["content-type"].startswith("text/html")
        assert "tilp" in index.text
        script = page.get("/static/app.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert script.headers["cache-control"] == "no-cache"
        again = page.get("/static/app.js", headers={"If-None-Match": script.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert page.head("/static/app.js").status_code == 200
        for path in (
            "secret.py",
            "../secret.py",
            "%2e%2e/secret.py",
            "..%2fsecret.py",
            "nothing.js",
        ):
            refused(page.get(f"/static/{path}"), 404, "not_found")
