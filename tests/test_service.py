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
from tilp.graph import SPLITS, Vocabulary
from tilp.rules import MinedRule, Phrasings, RuleSet, parse_rule
from tilp.rules.picture import draw_rule
from tilp.time import UNKNOWN
from tilp.types import RuleOrder, Unit
from tilp.web.views import DataView, ModelView, RuleView


def test_health_and_readiness(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}


def test_the_model_and_an_example_query(client, service_model):
    summary = get(client, "model")
    assert summary["name"] == "world"
    assert summary["version"] == tilp.__version__
    assert summary["rules"] == len(service_model.rules())
    assert summary["facts"] == {split: len(service_model.graph.rows(split)) for split in SPLITS}
    assert summary["unit"] == "year"
    assert summary["entities"] == len(service_model.graph.entities)
    assert {"before", "touching", "after"} <= set(summary["words"])
    assert post(client, "predict", summary["example"])["answers"]


def test_relations_with_their_facts_and_rules(client, service_model):
    for relation in get(client, "relations"):
        assert (
            relation["facts"]
            == service_model.graph.frame().filter(relation=relation["name"]).height
        )
        assert relation["rules"] == len(service_model.rules(relation["name"]))
        assert relation["inverse_rules"] == len(service_model.rules(f"{relation['name']}⁻¹"))


def test_entities_start_with_a_text_then_contain_it(client, service_model):
    names = list(service_model.graph.entities)
    facts = service_model.graph.frame()
    matches = get(client, "entities", text="aR", limit=500)
    inside = [name for name in names if "ar" in name.casefold()]
    assert sorted(entity["name"] for entity in matches) == sorted(inside)
    keys = [
        (not entity["name"].casefold().startswith("ar"), -entity["facts"]) for entity in matches
    ]
    assert keys == sorted(keys)
    assert len({first for first, _ in keys}) == 2
    for entity in matches[:5]:
        own = facts.filter(
            (pl.col("subject") == entity["name"]) | (pl.col("object") == entity["name"])
        )
        assert entity["facts"] == own.height
    assert len(get(client, "entities")) == 10
    assert get(client, "entities", text="no such name") == []


def rule_oracle(rules, *, relation, inverse, body, temporal, length, min_confidence, min_support):
    """The indices of the rules that meet all conditions, rule by rule."""
    return [
        index
        for index, mined in enumerate(rules)
        if (relation is None or mined.rule.head.relation == relation)
        and mined.rule.head.inverse == inverse
        and (body is None or body in [atom.relation for atom in mined.rule.body])
        and (temporal is None or temporal in [each.word for each in mined.rule.constraints])
        and (length is None or mined.rule.length == length)
        and mined.confidence >= min_confidence
        and mined.support >= min_support
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
    assert {rule["number"] for rule in page["rules"]} <= set(wanted)
    assert len(page["rules"]) == min(len(wanted), 500)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sort", list(RuleOrder))
def test_rules_are_sorted_and_read_page_by_page(client, service_model, sort, order):
    whole = get(client, "rules", sort=sort, order=order, limit=60)["rules"]
    rules = service_model.rules()
    best = rules.best_of_chains()
    keys = [rule[sort] for rule in whole]
    if sort == "gain":  # the best rule of each chain comes first
        mined = [rules[rule["number"]] for rule in whole]
        keys = [(each.rule in best, *each.order) for each in mined]
    assert keys == sorted(keys, reverse=order == "desc")
    pages = [
        get(client, "rules", sort=sort, order=order, offset=offset, limit=20)["rules"]
        for offset in (0, 20, 40)
    ]
    assert [rule for page in pages for rule in page] == whole


def test_rules_have_their_statistics(client, service_model):
    rules = service_model.rules()
    for rule in get(client, "rules", limit=5)["rules"]:
        mined = rules[rule["number"]]
        assert rule["text"] == str(mined.rule)
        assert rule["sentence"] == Phrasings().rule(mined.rule, service_model.graph.unit)
        assert rule["body"] == [str(atom) for atom in mined.rule.body]
        assert rule["fired"] == mined.body_support
        assert rule == rule | mined.statistics


def test_rules_with_gains_come_first():
    names = [f"p(E1,E2,I2) <- q{number}(E1,E2,I1)" for number in range(4)]
    figures = [{"weight": 0.5}, {"weight": 0.1, "gain": -0.1}, {"gain": 0.2}, {"weight": 0.9}]
    rules = RuleSet(
        MinedRule(parse_rule(name), **known) for name, known in zip(names, figures, strict=True)
    )
    relations = Vocabulary.of("relation", pl.Series(["p", "q0", "q1", "q2", "q3"]))
    view = RuleView(rules, relations, Phrasings(), Unit.YEAR)
    assert view.select().tolist() == [2, 1, 3, 0]
    assert view.select(sort=RuleOrder.WEIGHT).tolist() == [3, 0, 1, 2]


def test_a_rule_is_drawn(client, service_model):
    answer = client.get("/api/v1/rules/3/picture.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert answer.text == draw_rule(service_model.rules()[3].rule)
    many = len(service_model.rules())
    error = refused(client.get(f"/api/v1/rules/{many}/picture.svg"), 404, "not_found")
    assert f"{many:,}" in error["message"]


def test_predictions_are_those_of_the_model(client, service_model, service_queries):
    for query in service_queries:
        prediction = post(client, "predict", {**query, "k": 7})
        assert prediction["answers"] == [
            asdict(answer) for answer in service_model.ask(Query(**query), 7)
        ]
        assert prediction["query"] == asdict(Query(**query))


def test_dates_may_be_numbers(client, service_queries):
    dated = next(query for query in service_queries if query["start"] and query["end"])
    as_numbers = {**dated, "start": int(dated["start"]), "end": float(dated["end"])}
    written, numbered = post(client, "predict", dated), post(client, "predict", as_numbers)
    assert numbered["answers"] == written["answers"]


def test_a_batch_answers_line_by_line_as_each_query_alone(client, service_queries):
    unknown = {**service_queries[0], "subject": "Nobody at All"}
    backwards = {**service_queries[0], "start": "1990", "end": "1980"}
    batch = [*service_queries[:9], unknown, *service_queries[9:], backwards]
    answer = client.post("/api/v1/predict/batch", json={"queries": batch, "k": 3})
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["number"] for line in lines] == list(range(len(batch)))
    for line, query in zip(lines, batch, strict=True):
        assert line["query"] == asdict(Query(**query))
        if query is unknown:
            assert line["error"]["code"] == "unknown_name"
        elif query is backwards:
            assert line["error"]["code"] == "bad_request"
        else:
            assert line["answers"] == post(client, "predict", {**query, "k": 3})["answers"]


def test_a_batch_is_sent_as_it_is_computed(client, service_queries, monkeypatch):
    goes_on, chunks = threading.Event(), []
    ask_each = ModelView.predict_each

    def ask_slowly(self, part, k):
        if chunks:
            assert goes_on.wait(60)
        chunks.append(len(part))
        return ask_each(self, part, k)

    monkeypatch.setattr(ModelView, "predict_each", ask_slowly)
    batch = {"queries": service_queries[:10], "k": 1}
    with client.stream("POST", "/api/v1/predict/batch", json=batch) as answer:
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
        response = post(client, "explain", body)
        known = service_model.known_facts(Query(**query))[:4]
        assert response.pop("known_facts") == [asdict(fact) for fact in known]
        explanation = service_model.explain(Query(**query), groundings=2, max_reasons=4)
        assert without_pictures(response) == json.loads(json.dumps(explanation.to_json()))
        total = sum(reason["score"] for reason in response["reasons"]) + response["rest"]["score"]
        assert total == pytest.approx(response["score"])


def without_pictures(explanation):
    """The JSON of an explanation without the fields for pictures."""
    if isinstance(explanation, dict):
        fields = explanation.items()
        return {name: without_pictures(value) for name, value in fields if name != "svg"}
    if isinstance(explanation, list):
        return [without_pictures(value) for value in explanation]
    return explanation


def test_groundings_are_drawn_on_request(client, service_queries):
    second = post(client, "predict", service_queries[0])["answers"][1]["id"]
    body = {**service_queries[0], "candidate": second}
    plain = post(client, "explain", body)
    drawn = post(client, "explain", {**body, "pictures": True})
    assert plain["candidate"] == second
    assert without_pictures(drawn) == without_pictures(plain)
    assert all(grounding["svg"] is None for grounding in groundings_in(plain["reasons"]))
    shown = list(groundings_in(drawn["reasons"]))
    assert shown and all(grounding["svg"].startswith("<svg") for grounding in shown)
    for grounding in groundings_in([one for one in drawn["reasons"] if not one["of_rival"]]):
        facts = [{name: fact[name] for name in ("id", "inverse")} for fact in grounding["facts"]]
        picture = client.post("/api/v1/picture", json={**body, "facts": facts})
        assert picture.headers["content-type"].startswith("image/svg+xml")
        assert picture.text == grounding["svg"]


def test_explained_against_others_and_without_facts(client, service_model, service_queries):
    first, *_, last = post(client, "predict", service_queries[0])["answers"]
    body = {**service_queries[0], "against": last["id"]}
    found = post(client, "explain", body)
    assert found["candidate"] == first["candidate"] and found["rival"] == last["candidate"]
    assert sum(one["rival"] for one in found["reasons"]) + found["rest"]["rival"] == (
        pytest.approx(last["score"])
    )
    facts = [fact["id"] for fact in found["ablation"]["facts"]]
    less = post(client, "explain", {**body, "without": facts, "candidate": first["id"]})
    assert [fact["id"] for fact in less["removed"]] == sorted(facts)
    assert less["score"] == pytest.approx(found["ablation"]["score"])
    assert less["before"]["score"] == found["score"]
    wrong = {**body, "without": [10**9]}
    assert client.post("/api/v1/explain", json=wrong).status_code == 400
    itself = {**service_queries[0], "against": first["id"]}
    assert client.post("/api/v1/explain", json=itself).status_code == 400


def test_times_are_those_of_the_model(client, service_model):
    fact = service_model.graph.fact(0)
    names = {"subject": fact.subject, "relation": fact.relation, "object": fact.object}
    found = post(client, "when", {**names, "at": 1950, "k": 3})
    alone = service_model.predict_time(*names.values(), k=3)
    assert found["intervals"] == alone.to_json()["intervals"]
    assert found["holds"] == pytest.approx(service_model.holds(*names.values(), 1950))
    wrong = {**names, "subject": "nobody at all"}
    refused(client.post("/api/v1/when", json=wrong), 404, "unknown_name")


def test_the_inspection_and_facts_over_time(client, service_model):
    graph = service_model.graph
    data = get(client, "data")
    assert data["inspection"] == json.loads(json.dumps(inspect(graph).to_json()))
    counted = facts_over_time(graph)
    over_time = data["over_time"]
    assert over_time["bins"] == list(counted.bins)
    assert over_time["texts"] == [str(year) for year in counted.bins]
    drawn = sum(sum(bars) for bars in over_time["splits"].values())
    assert drawn + over_time["unknown"] + over_time["outside"] == len(graph)


def test_the_facts_of_an_entity_by_their_start(client, service_model):
    graph = service_model.graph
    page = get(client, "facts", entity=SCRIPT, limit=500)
    frames = [graph.frame(split).with_columns(split=pl.lit(split)) for split in SPLITS]
    facts = pl.concat(frames)
    mine = facts.filter((pl.col("subject") == SCRIPT) | (pl.col("object") == SCRIPT))
    columns = ["subject", "relation", "object", "start", "end", "split"]
    rows = [tuple(fact[name] for name in columns) for fact in page["facts"]]
    assert sorted(rows) == sorted(mine.select(columns).iter_rows())
    assert page["total"] == mine.height
    times = [fact["from"] if fact["from"] is not None else fact["to"] for fact in page["facts"]]
    dated = [time for time in times if time is not None]
    assert dated == sorted(dated) and times[: len(dated)] == dated
    assert get(client, "facts", entity=SCRIPT, offset=2, limit=3)["facts"] == page["facts"][2:5]


def test_facts_without_any_date_are_counted():
    facts = pl.DataFrame({"subject": ["a", "b"], "relation": ["r", "r"], "object": ["b", "b"]})
    graph = tilp.read(facts)
    assert (graph.start == UNKNOWN).all()
    view = DataView(graph)
    assert view.summary["over_time"]["unknown"] == 2
    assert view.facts("b", 0, 10)["total"] == 2  # one of them with itself, and only once
    assert [entity["facts"] for entity in view.entities("", 2)] == [2, 1]


def test_answers_under_load_are_those_alone(client, service_queries):
    bodies = [{**query, "k": 5} for query in service_queries]
    paths = ("predict", "explain")
    alone = {
        (path, index): client.post(f"/api/v1/{path}", json=prepared(path, body)).content
        for path in paths
        for index, body in enumerate(bodies)
    }
    chance = random.Random(0)
    wanted = [chance.choice(list(alone)) for _ in range(160)]

    def ask(request):
        path, index = request
        return client.post(f"/api/v1/{path}", json=prepared(path, bodies[index])).content

    with ThreadPoolExecutor(8) as threads:
        contents = list(threads.map(ask, wanted))
    assert all(content == alone[request] for request, content in zip(wanted, contents, strict=True))


def prepared(path, body):
    return {name: value for name, value in body.items() if path == "predict" or name != "k"}


def test_the_schema_is_kept(service_address):
    done = check_schema(service_address, examples=8)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-5_000:]
