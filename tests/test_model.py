"""The estimator: fitting, asking, measuring, saving, and going on after it was stopped."""

import hashlib
import json
import math
import pickle
import re
import shutil
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from strategies import both_ways, small_world
from tilp import TILP, Query
from tilp.errors import TilpError
from tilp.evaluation import evaluate
from tilp.graph import QueryTable
from tilp.learning import KNOWN_KINDS
from tilp.learning.rule_weights import TrainingSettings
from tilp.model import ModelSettings
from tilp.rules import RuleSet
from tilp.time import known_ends
from tilp.walks import Walker

SCHEMA = {
    "query": pl.Int64,
    "subject": pl.String,
    "relation": pl.String,
    "object": pl.String,
    "start": pl.String,
    "end": pl.String,
    "rank": pl.Int64,
    "candidate": pl.String,
    "id": pl.String,
    "score": pl.Float64,
    "share": pl.Float64,
    "known": pl.Boolean,
}
FAST = {
    "features": "none",
    "max_length": 1,
    "sample": 40,
    "threads": 1,
    "training": TrainingSettings(steps=25, dimension=8),
}


@cache
def fitted(weights="free"):
    return TILP(weights=weights, **FAST).fit(small_world())


@pytest.fixture(scope="module")
def model():
    return TILP(2, features="none", threads=2).fit(small_world())


@pytest.fixture(scope="module")
def saved(tmp_path_factory, model):
    return model.save(tmp_path_factory.mktemp("model") / "saved")


@pytest.fixture
def copy(tmp_path, saved):
    """A folder of a model that a test may damage."""
    return shutil.copytree(saved, tmp_path / "copy")


def contents(folder):
    """Every file of a folder, byte for byte."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def same(first, second):
    """Whether two models are the same in all that makes one."""
    arrays = ("rule", "prior", "factor", "walks_power")
    return (
        first.settings == second.settings
        and first.graph == second.graph
        and first.curve == second.curve
        and first.rules() == second.rules()
        and all(
            np.array_equal(getattr(first.weights, name), getattr(second.weights, name))
            for name in arrays
        )
    )


# Fitting


def test_planted_rules_are_among_the_heaviest_of_their_relations():
    world = tilp.datasets.world(1, 3_000)
    model = TILP(2, features="none", grains=["pairs"], threads=2).fit(world.graph)
    planted = {}
    for rule in world.rules:
        if rule.length <= 2:
            planted.setdefault(rule.relation, []).append(rule.text)
    assert len(planted) > 5
    for relation, texts in planted.items():
        rules = [str(one.rule) for one in model.rules(relation)]
        ranks = sorted(rules.index(text) + 1 for text in texts)
        assert ranks[0] <= 2 and ranks[-1] <= 6, (relation, ranks)


def test_rules_are_of_the_relation_asked_for_and_the_heaviest_come_first(model):
    for name, head in (
        ("livesIn", "livesIn"),
        ("livesIn⁻¹", "livesIn⁻¹"),
        ("livesIn^-1", "livesIn⁻¹"),
    ):
        rules = model.rules(name)
        weights = [one.weight for one in rules]
        assert {str(one.rule.head) for one in rules} == {head}
        assert weights == sorted(weights, reverse=True) and weights[0] > weights[-1]
    everything = model.rules()
    by_head = {}
    for one in everything:
        by_head.setdefault(str(one.rule.head), []).append(one)
    assert by_head["livesIn"] == list(model.rules("livesIn"))
    assert sum(map(len, by_head.values())) == len(everything)
    with pytest.raises(TilpError, match="did you mean 'livesIn'"):
        model.rules("liveIn")


@pytest.mark.parametrize("weights", ["attention", "free"])
def test_every_kind_of_weights_is_finite_and_is_learned(tmp_path, weights):
    graph, model = small_world(), fitted(weights)
    learned = model.weights
    for array in (learned.rule, learned.prior, learned.factor):
        assert np.isfinite(array).all() and (array >= 0).all()
    assert learned.rule.shape == (len(model.rules()),)
    assert learned.prior.shape == (2 * len(graph.relations),)
    assert learned.factor.shape == (2 * len(graph.relations), len(KNOWN_KINDS))
    assert len(set(np.round(learned.rule, 9))) > len(learned.rule) // 10
    assert min(model.curve.held_out) < model.curve.held_out[0]
    assert len(model.curve.held_out) == len(model.curve.held_out_step)
    assert weights in repr(model) and "not fitted" not in repr(model)
    assert set(model.seconds) == {"mine", "apply", "train", "choose"}
    assert same(tilp.load(model.save(tmp_path / "m")), model)


def test_threads_change_no_byte_and_seeds_change_the_model(tmp_path):
    def files(name, **options):
        options = {**FAST, "limit": 300, **options}
        return contents(TILP(**options).fit(small_world()).save(tmp_path / name))

    one = files("one", seed=3, threads=1)
    for threads in (2, 3):
        assert files(f"{threads}", seed=3, threads=threads) == one
    other = files("other", seed=4)
    assert other["rules.jsonl"] != one["rules.jsonl"]
    net = TILP(weights="attention", **{**FAST, "threads": 3}).fit(small_world())
    assert contents(net.save(tmp_path / "a")) == contents(fitted("attention").save(tmp_path / "b"))


def test_without_valid_a_seeded_tenth_of_train_decides(tmp_path):
    facts = small_world().frame("train")
    graph = tilp.read(facts)
    assert len(graph.rows("valid")) == 0
    first, again = (TILP(**{**FAST, "threads": n}).fit(graph) for n in (1, 3))
    assert first.curve.held_out and np.isfinite(first.curve.held_out).all()
    assert contents(first.save(tmp_path / "a")) == contents(again.save(tmp_path / "b"))
    other = TILP(seed=1, **FAST).fit(graph)
    assert other.curve.held_out != first.curve.held_out
    found = first.predict(Query("diedIn", facts["subject"][0]), 3)
    assert len(found) == 3


def test_what_cannot_be_fitted_is_said():
    nothing = pl.DataFrame(schema=dict.fromkeys(("subject", "relation", "object"), pl.String))
    with pytest.raises(TilpError, match="no training facts"):
        TILP().fit(tilp.read(nothing))
    lonely = pl.DataFrame({"subject": ["a"], "relation": ["r"], "object": ["b"]})
    with pytest.raises(TilpError, match="no rule was found"):
        TILP(1).fit(tilp.read(lonely))
    with pytest.raises(TilpError, match="1 to 5"):
        TILP(0).fit(small_world())


@pytest.mark.parametrize(
    "options", [{"weights": "heavy"}, {"features": "all"}, {"grains": ["fine"]}, {"grains": []}]
)
def test_what_cannot_be_chosen_is_said(options):
    with pytest.raises(TilpError, match=next(iter(options))):
        TILP(1, **options).fit(small_world())


@pytest.mark.parametrize("use", ["rules", "evaluate", "predict", "save", "scorer"])
def test_a_model_that_is_not_fitted_says_so(use, tmp_path):
    arguments = {"predict": [Query("r", "a")], "save": [tmp_path / "m"]}.get(use, [])
    with pytest.raises(TilpError, match=r"call fit\(graph\) first"):
        getattr(TILP(), use)(*arguments)
    assert "not fitted" in repr(TILP())
    assert not (tmp_path / "m").exists()


# Questions


def test_answers_are_a_labelled_table(model):
    graph = model.graph
    queries = both_ways(graph, every=10)
    found = model.predict(queries, 7)
    assert found.schema == pl.Schema(SCHEMA)
    assert found["query"].to_list() == [n for n in range(len(queries)) for _ in range(7)]
    for number, query in enumerate(queries):
        part = found.filter(query=number)
        assert part["rank"].to_list() == list(range(1, 8))
        assert part.select("subject", "relation", "object", "start", "end").unique().rows() == [
            (query.subject, query.relation, query.object, query.start, query.end)
        ]
        assert part["score"].is_sorted(descending=True) and (part["score"] > 0).all()
        places = [graph.entities.find(name) for name in part["candidate"]]
        scores = part["score"].to_list()
        ordered = sorted(zip(scores, places, strict=True), key=lambda one: (-one[0], one[1]))
        assert places == [place for _, place in ordered]
        assert part["id"].to_list() == [graph.entities.ids[place] for place in places]


def test_ties_stand_in_the_order_of_entities(model):
    found = model.predict(Query("cityIn", model.graph.entities.label(0)), 10**9)
    places = np.array([model.graph.entities.find(name) for name in found["candidate"]])
    scores = found["score"].to_numpy()
    tied = np.diff(scores) == 0
    assert tied.sum() > 20 and (np.diff(places)[tied] > 0).all()


def test_more_candidates_than_there_are_entities(model):
    query = Query("diedIn", model.graph.frame("train")["subject"][0])
    found = model.predict(query, 10**6)
    assert found["rank"].to_list() == list(range(1, len(model.graph.entities) + 1))
    assert found["candidate"].n_unique() == len(model.graph.entities)
    assert found["share"].sum() == pytest.approx(1.0)
    expected = (found["score"] / found["score"].sum()).to_list()
    assert found["share"].to_list() == pytest.approx(expected)
    assert model.predict(query, 3).equals(found.head(3))


def test_fewer_candidates_than_one_cannot_be_asked_for(model):
    query = Query("diedIn", model.graph.frame("train")["subject"][0])
    for asked in (model.predict, model.ask):
        with pytest.raises(TilpError, match="at least one candidate"):
            asked(query, 0)


def test_one_query_is_answered_as_many_are(model, elsewhere):
    for graph, where in ((model.graph, None), (elsewhere, elsewhere)):
        for query in both_ways(graph, every=25):
            frame = model.predict(query, 4, graph=where)
            found = model.ask(query, 4, graph=where)
            assert found.query == query and len(found) == 4
            assert [asdict(one) for one in found] == frame.select(list(SCHEMA)[6:]).to_dicts()
            assert found[0] == found.candidates[0] and found[1:3] == found.candidates[1:3]
            lines = str(found).splitlines()
            assert lines[0] == str(query) and len(lines) == 6
            for line, one in zip(lines[2:], found, strict=True):
                assert line.split()[0] == str(one.rank) and one.candidate in line
                assert line.endswith("known") == one.known
    with pytest.raises(TilpError, match="give its subject or its object"):
        model.ask(Query("diedIn"))
    with pytest.raises(TilpError, match="query 1 is"):
        model.ask(both_ways(model.graph)[:2])


def known_by_hand(graph, relation, given, asks_object, start, end):
    """Candidates that train has as answers, by the last kind of their times against the query's."""
    starts, ends = known_ends(graph.start, graph.end)
    number = graph.relations.find(relation)
    found = {}
    for row in graph.rows("train"):
        here, there = graph.subject[row], graph.object[row]
        if not asks_object:
            here, there = there, here
        if graph.relation[row] != number or graph.entities.label(here) != given:
            continue
        a, b = int(starts[row]), int(ends[row])
        if b < start:
            kind = "before"
        elif a > end:
            kind = "after"
        elif (b == start and a < start) or (a == end and b > end):
            kind = "meeting"
        else:
            kind = "touching"
        place = KNOWN_KINDS.index(kind)
        name = graph.entities.label(there)
        found[name] = max(found.get(name, place), place)
    return {name: KNOWN_KINDS[place] for name, place in found.items()}


def interval_by_hand(graph, query):
    one = tilp.Interval.parse(query.start, query.end, graph.unit)
    start, end = known_ends(np.array([one.start]), np.array([one.end]))
    return int(start[0]), int(end[0])


def test_known_are_those_that_train_has_at_that_time(model):
    graph = model.graph
    queries = [*both_ways(graph, "train", every=40), *both_ways(graph, every=12)]
    queries += [replace(one, start=None, end=None) for one in queries[:6]]
    found = model.predict(queries, len(graph.entities))
    seen = set()
    for number, query in enumerate(queries):
        given = query.subject or query.object
        asks_object = query.object is None
        times = interval_by_hand(graph, query)
        kinds = known_by_hand(graph, query.relation, given, asks_object, *times)
        expected = {name for name, kind in kinds.items() if kind in ("meeting", "touching")}
        marked = found.filter((pl.col("query") == number) & pl.col("known"))["candidate"]
        assert set(marked) == expected, str(query)
        seen |= set(kinds.values())
    assert seen >= {"before", "after", "touching"}


def test_queries_in_every_shape_get_the_same_answers(model):
    queries = both_ways(model.graph, every=15)
    expected = model.predict(queries)
    columns = ("relation", "subject", "object", "start", "end")
    rows = [{name: getattr(one, name) for name in columns} for one in queries]
    assert model.predict(rows).equals(expected)
    assert model.predict(pl.DataFrame(rows)).equals(expected)
    assert model.predict(iter(queries)).equals(expected)
    for number, query in enumerate(queries[:4]):
        alone = expected.filter(query=number).with_columns(query=pl.lit(0, pl.Int64))
        assert model.predict(query).equals(alone)
        assert model.predict(rows[number]).equals(alone)
        assert model.predict(pl.DataFrame(rows[number])).equals(alone)
    empty = [{**row, "object": row["object"] or ""} for row in rows if row["subject"]]
    alike = model.predict([query for query in queries if query.subject])
    assert model.predict(empty).drop("object").equals(alike.drop("object"))


def test_no_queries_no_answers(model):
    assert model.predict([]).schema == pl.Schema(SCHEMA)
    columns = {"relation": pl.String, "subject": pl.String}
    assert len(model.predict(pl.DataFrame(schema=columns))) == 0


def test_dates_are_text_or_numbers_and_matter(model):
    fact = model.graph.frame("train").filter(relation="livesIn").row(0, named=True)
    text = Query("livesIn", fact["subject"], start="1950", end="1960")
    number = replace(text, start=1950, end=1960)
    assert model.predict(text).equals(model.predict(number))
    frame = pl.DataFrame([text]).with_columns(pl.col("start", "end").cast(pl.Int64))
    assert model.predict(frame).equals(model.predict(text))
    day = replace(text, start="1950-03-01", end="1960-12-31")
    assert model.predict(day)["score"].equals(model.predict(text)["score"])
    unknown = replace(text, start=None, end="")
    assert not model.predict(unknown)["score"].equals(model.predict(text)["score"])
    one_end = model.predict(replace(text, end=None))["score"]
    assert one_end.equals(model.predict(replace(text, end=1950))["score"])


@pytest.mark.parametrize("unit", ["integer", "month", "day"])
def test_a_number_is_a_time_in_the_unit_of_the_data(unit):
    dates = {"integer": ("5", "8"), "month": ("1990-01", "1990-03")}.get(
        unit, ("1990-01-01", "1990-01-05")
    )
    rows = [(f"x{n}", relation, f"y{n}", *dates) for n in range(6) for relation in "rs"]
    frame = pl.DataFrame(rows, ["subject", "relation", "object", "start", "end"], orient="row")
    graph = tilp.read(frame, unit=unit)
    model = TILP(1, features="none", threads=1).fit(graph)
    text = model.predict(Query("r", "x1", start=dates[0], end=dates[1]))
    times = {"start": int(graph.start[0]), "end": int(graph.end[0])}
    number = model.predict(Query("r", "x1", **times))
    assert text["known"].any()
    assert number.drop("start", "end").equals(text.drop("start", "end"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query("livesin", "NAME"), "no relation is named 'livesin'; did you mean 'livesIn'"),
        (Query("livesIn", "NAME!"), "no entity is named 'NAME!'; did you mean .*'NAME'"),
        (Query("livesIn", object="NAME!"), "no entity is named 'NAME!'; did you mean .*'NAME'"),
        (Query("livesIn", "NAME", "NAME"), r"query 1, \(NAME, livesIn, NAME, \[\?, \?\]\): give"),
        (Query("livesIn", start=1950), r"query 1, \(\?, livesIn, \?, \[1950, \?\]\): give"),
        (Query("livesIn", ""), r"query 1, \(\?, livesIn, \?, \[\?, \?\]\): give"),
        (Query("", "NAME"), "query 1.*give its relation"),
        (Query("livesIn", "NAME", start="soon"), "'soon' is not a date in years"),
        (Query("livesIn", "NAME", start="1960", end=1950), "1960.* after its end .*1950"),
        ({"subject": "NAME"}, "query 1 is .*'NAME'.*relation"),
        ({"relation": "livesIn", "who": "NAME"}, "query 1 is .*who"),
        (pl.DataFrame({"subject": ["NAME"]}), "columns subject: no relation.*relation is needed"),
        (
            pl.DataFrame({"relation": ["livesIn"], "who": ["NAME"]}),
            "columns relation, who: 'who' is none",
        ),
        ("livesIn", "query 1 is 'l'"),
    ],
)
def test_what_is_wrong_with_a_query_is_said(model, query, message):
    name = model.graph.entities.label(70)

    def fill(value):
        return value.replace("NAME", name) if isinstance(value, str) else value

    if isinstance(query, Query):
        query = Query(*(fill(getattr(query, one)) for one in Query.__slots__))
    elif isinstance(query, dict):
        query = {key: fill(value) for key, value in query.items()}
    with pytest.raises(TilpError, match=fill(message)):
        model.predict(query)


def test_of_many_queries_the_wrong_one_is_named(model):
    right = both_ways(model.graph, every=50)
    wrong = Query("livesIn", "nobody at all", start="1950")
    with pytest.raises(TilpError, match=r"query 3, \(nobody at all, livesIn, \?, \[1950, \?\]\)"):
        model.predict([*right[:2], wrong, *right[2:]])
    with pytest.raises(TilpError, match=r"query 2, .*'soon' is not a date"):
        model.predict([right[0], replace(right[1], end="soon"), wrong])


# Other graphs


def scores_by_hand(model, graph, query):
    """The score of every entity: what walks of the rules give it (eq. 15), and the prior."""
    mining = model.settings.mining
    walker = Walker(graph, grains=mining.grains, max_length=mining.max_length)
    names = set(graph.relations)
    rules = [
        one
        for one in model.rules()
        if {one.rule.head.relation, *(atom.relation for atom in one.rule.body)} <= names
    ]
    asks_object = query.object is None
    given = query.subject if asks_object else query.object
    start, end = interval_by_hand(graph, query)
    inverse = 0 if asks_object else len(graph.relations)
    table = QueryTable(
        *(
            np.array([value], kind)
            for value, kind in (
                (graph.entities.find(given), np.int32),
                (graph.relations.find(query.relation) + inverse, np.int32),
                (start, np.int64),
                (end, np.int64),
                (-1, np.int32),
                (-1, np.int32),
            )
        )
    )
    learned, prior, factor = model.weights, 1.0, np.ones(len(KNOWN_KINDS))
    if query.relation in list(model.graph.relations):
        head = list(model.graph.relations).index(query.relation)
        head += 0 if asks_object else len(model.graph.relations)
        prior, factor = learned.prior[head], learned.factor[head]
    kinds = known_by_hand(graph, query.relation, given, asks_object, start, end)
    factors = {name: factor[KNOWN_KINDS.index(kind)] for name, kind in kinds.items()}

    facts = graph.frame("train").filter(relation=query.relation)
    answers = facts["object" if asks_object else "subject"].to_list()
    size = len(graph.entities)
    scores = {
        name: prior * (0.95 * answers.count(name) / max(len(answers), 1) + 0.05 / size)
        for name in graph.entities
    }
    walks = {}
    for _, rule, entity, count in walker.apply(table, walker.compile([r.rule for r in rules]))[0]:
        walks.setdefault(int(rule), {})[graph.entities.label(int(entity))] = int(count)
    for rule, ends in walks.items():
        counted = {name: count * factors.get(name, 1.0) for name, count in ends.items()}
        total = sum(counted.values())
        for name, count in counted.items():
            scores[name] += rules[rule].weight * total**learned.walks_power * count / total
    return scores, len(walks)


@pytest.fixture(scope="module")
def elsewhere(model):
    """Other people with the same relations in another order, but for one, and one of their own."""
    frames = {}
    graph = small_world(seed=7)
    for split in tilp.SPLITS:
        facts = graph.frame(split).filter(pl.col("relation") != "memberOfClub").reverse()
        renamed = facts.with_columns(pl.format("new {}", c).alias(c) for c in ("subject", "object"))
        frames[split] = renamed
    own = frames["train"].head(5).with_columns(relation=pl.lit("admires"))
    frames["train"] = pl.concat([own, frames["train"]])
    other = tilp.read(frames)
    ours, theirs = list(model.graph.relations), list(other.relations)
    shared = [name for name in ours if name in theirs]
    assert [name for name in theirs if name in ours] != shared and set(theirs) - set(ours)
    assert not set(other.entities) & set(model.graph.entities)
    return other


@pytest.mark.parametrize("where", ["home", "elsewhere"])
def test_answers_are_those_of_a_walker_built_by_hand(model, elsewhere, where):
    graph = model.graph if where == "home" else elsewhere
    queries = both_ways(graph, every=16)
    queries += [replace(query, start=None, end=None) for query in queries[:4]]
    if where == "elsewhere":
        queries += [one for one in both_ways(graph, "train") if one.relation == "admires"][:2]
    found = model.predict(
        queries, len(graph.entities), graph=None if where == "home" else elsewhere
    )
    fired = 0
    for number, query in enumerate(queries):
        expected, applied = scores_by_hand(model, graph, query)
        part = found.filter(query=number)
        assert dict(zip(part["candidate"], part["score"], strict=True)) == pytest.approx(
            expected, rel=1e-9
        ), str(query)
        fired += applied > 0
    assert fired > len(queries) // 2


def test_rules_answer_questions_about_people_they_never_saw(model, elsewhere):
    queries = both_ways(elsewhere)
    right = elsewhere.frame("test").select("object", "subject").rows()
    answers = [name for both in right for name in both]
    found = model.predict(queries, 1, graph=elsewhere)
    hits = np.mean([a == b for a, b in zip(found["candidate"], answers, strict=True)])
    popular = (
        elsewhere.frame("train")
        .group_by("relation")
        .agg(
            object=pl.col("object").mode().sort().first(),
            subject=pl.col("subject").mode().sort().first(),
        )
    )
    best = {row["relation"]: row for row in popular.to_dicts()}
    floor = np.mean(
        [
            best[query.relation]["object" if query.subject else "subject"] == answer
            for query, answer in zip(queries, answers, strict=True)
        ]
    )
    assert hits > floor + 0.1


def test_the_same_graph_by_another_name(model, saved):
    queries = both_ways(model.graph, every=15)
    twin = tilp.read(saved / "graph")
    assert model.predict(queries, graph=twin).equals(model.predict(queries))


def test_graphs_that_rules_cannot_be_applied_on(model, elsewhere):
    facts = elsewhere.frame("train").filter(relation="livesIn")
    query = Query("livesIn", facts["subject"][0])
    with pytest.raises(TilpError, match="count months, of the model's years; read it with unit"):
        model.predict(query, graph=tilp.read(facts, unit="month"))
    strange = tilp.read(facts.with_columns(relation=pl.lit("dwells")))
    with pytest.raises(TilpError, match=r"no rule of the model speaks of .*: dwells"):
        model.predict(replace(query, relation="dwells"), graph=strange)
    with pytest.raises(TilpError, match="no entity is named"):
        model.predict(Query("livesIn", model.graph.entities.label(70)), graph=elsewhere)


# Measuring


def test_evaluation_is_that_of_the_scorer_whatever_the_batch_and_threads(model):
    whole = model.evaluate()
    assert len(whole) == 2 * len(model.graph.rows("test"))
    options = {"note": repr(model)}
    assert evaluate(model.scorer(), model.graph, **options) == whole
    for batch, threads in ((1, 1), (7, 3), (10_000, 2)):
        again = evaluate(model.scorer(), model.graph, batch=batch, threads=threads, **options)
        assert again == whole
    shares = []
    model.evaluate("valid", protocols=["raw"], progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert model.evaluate("valid", protocols=["raw"]).protocols == ("raw",)


def test_evaluation_ranks_as_predict_does(model):
    evaluation = model.evaluate(protocols=["raw"])
    column = evaluation.column()
    found = model.predict(both_ways(model.graph), len(model.graph.entities))
    facts = model.graph.frame("test")
    n = len(facts)
    for number in range(0, n, 9):
        for way, answer in enumerate((facts["object"][number], facts["subject"][number])):
            part = found.filter(query=2 * number + way)
            score = part.filter(candidate=answer)["score"][0]
            better, alike = (part["score"] > score).sum(), (part["score"] == score).sum()
            row = evaluation.ranks.row(number + way * n, named=True)
            assert row[column] == better + (alike + 1) / 2


def test_a_model_beats_what_it_falls_back_on(model):
    from tilp.evaluation import popularity

    floor = evaluate(popularity(model.graph), model.graph).metrics().mrr
    assert model.evaluate().metrics().mrr > floor + 0.1


# Saving


def test_what_was_saved_is_loaded_again(model, saved):
    again = tilp.load(saved)
    assert same(again, model) and repr(again) == repr(model)
    assert {split: len(again.graph.rows(split)) for split in tilp.SPLITS} == {
        split: len(model.graph.rows(split)) for split in tilp.SPLITS
    }
    queries = both_ways(model.graph)
    assert again.predict(queries).equals(model.predict(queries))
    assert again.evaluate() == model.evaluate()
    assert again.rules("livesIn^-1") == model.rules("livesIn^-1")
    assert again.curve.train and again.curve == model.curve


def test_all_settings_are_saved(tmp_path):
    options = {"min_support": 3, "top": 20, "share": 0.8, "sample": 30, "limit": 500, "seed": 5}
    model = TILP(1, features="none", grains=["static", "query"], threads=1, **options)
    model.fit(small_world())
    again = tilp.load(model.save(tmp_path / "m"))
    assert same(again, model)
    assert {name: getattr(again.settings.mining, name) for name in options} == options
    assert again.settings.mining.grains == ("static", "query") and again.settings.seed == 5
    rare = TrainingSettings(steps=7, patience=3, dimension=9, learning_rate=0.1)
    for one in (model.settings, TILP(4, weights="attention", training=rare).settings):
        assert ModelSettings.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_settings_of_0_1_are_read_or_refused_in_words():
    values = TILP(1, weights="attention").settings.to_json()
    old = {**values, "training": {**values["training"], "cell": "lstm"}}
    assert ModelSettings.from_json(old) == TILP(1, weights="attention").settings
    for changed, told in (
        ({"weights": "hybrid"}, "hybrid weights were removed in 0.2: fit the model again"),
        ({"cell": "gru"}, "the cell 'gru' was removed in 0.2: fit the model again"),
        ({"cell": "plain"}, "the cell 'plain' was removed"),
    ):
        with pytest.raises(TilpError, match=told):
            ModelSettings.from_json({**old, "training": {**old["training"], **changed}})
    with pytest.raises(TilpError, match="weights is 'hybrid'; it can be attention, free"):
        TILP(weights="hybrid")


def test_graphs_with_names_numbers_and_defects_are_saved_with_models(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    rows = [
        f"Q{n}\tP{relation}\tQ{n % 3 + 50}\t19{n + 10}-05-0{n % 9 + 1}\t\n"
        for n in range(20)
        for relation in (1, 2)
    ]
    rows[5] = "Q2\tP2\tQ52\t1990-05-05\t1980-05-05\n"
    rows[8] = "Q4\tP1\tQ51\tsoon\tpresent\n"
    (data / "train.tsv").write_text("".join(rows))
    (data / "test.tsv").write_text("Q1\tP1\tQ2\t1990-01-01\t\n")
    labels = "".join(f'Q{n}\tk{n}\tname of {n}, "x"\n' for n in (*range(20), 50, 51, 52))
    (data / "entities.tsv").write_text(f"id\tkey\tlabel\n{labels}")
    (data / "relations.tsv").write_text("id\tkey\tlabel\nP1\tP1\tone\nP2\tP2\ttwo\n")
    (data / "attributes.tsv").write_text("id\theight\nQ1\t1.5\nQ2\t\n")
    with pytest.warns(tilp.TilpWarning, match="date defects"):
        graph = tilp.read(data)
    model = TILP(1, features="none", threads=1).fit(graph)
    again = tilp.load(model.save(tmp_path / "m"))
    assert graph.unit == "day" and same(again, model)
    found = again.predict(Query("one", subject="Q3", start="1913-05-04"), 2)
    assert found["id"][0] == "Q50" and found["candidate"][0] == 'name of 50, "x"'
    assert again.predict(Query("P1", subject="k3", start="1913-05-04"), 2)["score"].equals(
        found["score"]
    )


def test_a_weight_of_nothing_is_a_weight(tmp_path, model):
    rules = RuleSet(replace(one, weight=0.0) for one in list(model.rules())[:3])
    rules.write_jsonl(tmp_path / "rules.jsonl")
    assert RuleSet.read_jsonl(tmp_path / "rules.jsonl") == rules
    rules.write_csv(tmp_path / "rules.csv")
    assert RuleSet.read_csv(tmp_path / "rules.csv") == rules


def test_a_folder_in_use_is_not_written_to(copy, model, saved):
    with pytest.raises(TilpError, match="not empty"):
        model.save(copy)
    assert contents(copy) == contents(saved)


def test_a_model_is_json_and_parquet_and_nothing_else(saved):
    assert {path.name for path in saved.iterdir()} == {"model.json", "rules.jsonl", "graph"}
    for path in saved.rglob("*"):
        if path.suffix == ".json":
            assert isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
        elif path.suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8").splitlines()
            assert lines and all("rule" in json.loads(line) for line in lines)
        elif path.suffix == ".parquet":
            assert len(pl.read_parquet(path)) > 0
        else:
            assert path.is_dir(), path


class Trap:
    """Leaves a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_loading_executes_nothing(copy, model, tmp_path, monkeypatch):
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(Trap(sprung))
    for name in ("model.pkl", "rules.pkl", "graph/train.pkl", "weights.npy", "model.joblib"):
        (copy / name).write_bytes(trap)
    (copy / "__init__.py").write_text(f"open({str(sprung)!r}, 'w')")

    def forbidden(*_, **__):
        raise AssertionError("something is unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    monkeypatch.setattr(np, "load", forbidden)
    again = tilp.load(copy)
    assert same(again, model) and not sprung.exists()
    monkeypatch.undo()
    pickle.loads(trap)
    assert sprung.exists()  # the trap works


def edit(path, change):
    """Change what is in the note of a model."""
    note = json.loads(path.read_text(encoding="utf-8"))
    change(note)
    path.write_text(json.dumps(note), encoding="utf-8")


def with_weight(folder, weight):
    """Put a weight into the first rule, and the right digest of the rules into the note."""
    path = folder / "rules.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join([json.dumps({**json.loads(first), "weight": weight}), *rest]) + "\n"
    path.write_text(text, encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    edit(folder / "model.json", lambda note: note.update(rules_sha256=digest))


def without_last_fact(folder):
    path = folder / "graph" / "test.parquet"
    pl.read_parquet(path)[:-1].write_parquet(path)


def cut(path):
    path.write_bytes(path.read_bytes()[:-200])


DAMAGES = {
    "no note": (lambda folder: (folder / "model.json").unlink(), "no model"),
    "cut note": (lambda folder: cut(folder / "model.json"), "model.json"),
    "note of bytes": (lambda folder: (folder / "model.json").write_bytes(b"\xff\0"), "model.json"),
    "empty note": (lambda folder: (folder / "model.json").write_bytes(b""), "model.json"),
    "foreign object": (lambda folder: (folder / "model.json").write_text('{"a": 1}'), "model.json"),
    "foreign list": (lambda folder: (folder / "model.json").write_text("[1]"), "model.json"),
    "other version": (
        lambda folder: edit(folder / "model.json", lambda note: note.update(version=99)),
        "version 99",
    ),
    "no rules": (lambda folder: (folder / "rules.jsonl").unlink(), "rules.jsonl"),
    "cut rules": (lambda folder: cut(folder / "rules.jsonl"), "rules.jsonl"),
    "no graph": (lambda folder: shutil.rmtree(folder / "graph"), "graph"),
    "a fact less": (without_last_fact, "graph"),
    "cut facts": (lambda folder: cut(folder / "graph" / "train.parquet"), "train.parquet"),
    "no names": (lambda folder: (folder / "graph" / "entities.parquet").unlink(), "graph"),
    "other unit": (
        lambda folder: (folder / "graph" / "graph.json").write_text('{"unit": "month"}'),
        "graph",
    ),
    "unknown unit": (
        lambda folder: (folder / "graph" / "graph.json").write_text('{"unit": "age"}'),
        "graph",
    ),
    "rule weight nan": (lambda folder: with_weight(folder, math.nan), ""),
    "rule weight negative": (lambda folder: with_weight(folder, -0.5), ""),
    "rule weight infinite": (lambda folder: with_weight(folder, math.inf), ""),
    "rule weight none": (lambda folder: with_weight(folder, None), ""),
    "rule weight text": (lambda folder: with_weight(folder, "much"), ""),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_is_refused_and_the_file_is_named(copy, damage):
    change, words = DAMAGES[damage]
    change(copy)
    with pytest.raises(TilpError) as refused:
        tilp.load(copy)
    assert str(copy) in str(refused.value) and words in str(refused.value)


WRONG_VALUES = {
    "prior nan": lambda note: note["relations"][3].update(prior_weight=math.nan),
    "prior negative": lambda note: note["relations"][3].update(prior_weight=-1e-9),
    "prior text": lambda note: note["relations"][3].update(prior_weight="0.5"),
    "no prior": lambda note: note["relations"][3].pop("prior_weight"),
    "factor infinite": lambda note: note["relations"][0]["known_factor"].update(before=math.inf),
    "no factor": lambda note: note["relations"][0]["known_factor"].pop("before"),
    "a relation less": lambda note: note["relations"].pop(),
    "power nan": lambda note: note.update(walks_power=math.nan),
    "power negative": lambda note: note.update(walks_power=-0.3),
    "power text": lambda note: note.update(walks_power="much"),
    "unknown grain": lambda note: note["settings"]["mining"].update(grains=["fine"]),
    "unknown weights": lambda note: note["settings"]["training"].update(weights="heavy"),
    "unknown setting": lambda note: note["settings"].update(colour="red"),
    "unknown mining setting": lambda note: note["settings"]["mining"].update(colour="red"),
    "no settings": lambda note: note.pop("settings"),
    "settings of text": lambda note: note.update(settings="all"),
    "no loss": lambda note: note.pop("loss"),
    "other loss": lambda note: note.update(loss={"steps": [1.0]}),
    "no digest": lambda note: note.pop("rules_sha256"),
    "other graph": lambda note: note.update(graph="0" * 64),
    "relations are numbers": lambda note: note.update(relations=[1] * len(note["relations"])),
}


@pytest.mark.parametrize("wrong", WRONG_VALUES)
def test_a_note_with_wrong_values_is_refused_and_the_folder_is_named(copy, wrong):
    edit(copy / "model.json", WRONG_VALUES[wrong])
    with pytest.raises(TilpError) as refused:
        tilp.load(copy)
    assert str(copy) in str(refused.value)


def test_what_is_no_model_at_all(tmp_path, saved):
    with pytest.raises(TilpError, match="no model; tilp fit DATA"):
        tilp.load(tmp_path)
    with pytest.raises(TilpError, match="no such folder; tilp fit DATA"):
        tilp.load(tmp_path / "nowhere")
    with pytest.raises(TilpError, match="no model"):
        tilp.load(saved / "model.json")


@pytest.fixture(scope="module")
def mutable(tmp_path_factory):
    """What loads a small model after some bytes of its note were replaced."""
    model = TILP(**{**FAST, "top": 3}).fit(small_world())
    folder = model.save(tmp_path_factory.mktemp("mutable") / "m")
    note = (folder / "model.json").read_bytes()

    def load_changed(place, length, new):
        place = int(place * len(note))
        (folder / "model.json").write_bytes(note[:place] + new + note[place + length :])
        try:
            return same(tilp.load(folder), model)
        except TilpError as refused:
            return str(folder) in str(refused)

    return load_changed


@settings(max_examples=60)
@given(
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 3),
    st.binary(max_size=3) | st.text('0123456789.-+eE,:[]{}" nulltrue', max_size=3).map(str.encode),
)
def test_a_note_with_changed_bytes_is_refused_or_the_same_model(mutable, place, length, new):
    assert mutable(place, length, new)


# Stopped and started again


class KilledError(BaseException):
    """As a kill: nothing of the program's own catches it."""


def kill_at(monkeypatch, name, count, moment):
    """Stop just before or after the given file is put into its place for the n-th time."""
    replace_file = Path.replace
    seen = 0

    def stop(self, target):
        nonlocal seen
        seen += Path(target).name == name
        due = seen == count and Path(target).name == name
        if due and moment == "before":
            raise KilledError
        replace_file(self, target)
        if due:
            raise KilledError

    monkeypatch.setattr(Path, "replace", stop)


@pytest.mark.parametrize(
    ("name", "count", "moment", "weights"),
    [
        ("fit.json", 1, "before", "free"),
        ("fit.json", 1, "after", "free"),
        ("rules.jsonl.unfinished", 1, "after", "free"),
        ("rules.jsonl", 1, "before", "free"),
        ("rules.jsonl", 1, "after", "free"),
        ("rules.jsonl.unfinished", 6, "after", "free"),
        ("rules.jsonl", 21, "after", "free"),
        ("entries-held-out.npz", 1, "before", "free"),
        ("entries-held-out.npz", 1, "after", "free"),
        ("entries-training.npz", 1, "after", "free"),
        ("training-state.npz", 1, "after", "free"),
        ("training-state.npz", 3, "before", "attention"),
    ],
)
def test_a_fit_goes_on_from_any_moment(tmp_path, monkeypatch, name, count, moment, weights):
    graph, work = small_world(), tmp_path / "work"
    with monkeypatch.context() as patched, pytest.raises(KilledError):
        kill_at(patched, name, count, moment)
        TILP(weights=weights, **FAST).fit(graph, folder=work)
    model = TILP(weights=weights, **{**FAST, "threads": 2}).fit(graph, folder=work)
    whole = fitted(weights)
    assert same(model, whole)
    assert contents(model.save(tmp_path / "m")) == contents(whole.save(tmp_path / "whole"))


def test_a_finished_fit_is_not_done_twice(tmp_path, monkeypatch):
    graph, whole = small_world(), fitted()
    TILP(**FAST).fit(graph, folder=tmp_path)

    def again(*_, **__):
        raise AssertionError("done again")

    monkeypatch.setattr("tilp.walks.mining.mine_relations", again)
    monkeypatch.setattr("tilp.model.training_data.make_training_examples", again)
    model = TILP(**FAST).fit(graph, folder=tmp_path)
    assert same(model, whole)


def test_a_folder_of_another_fit_is_not_used(tmp_path):
    graph = small_world()
    work = tmp_path / "work"
    TILP(**FAST).fit(graph, folder=work)
    before = contents(work)
    with pytest.raises(TilpError, match="begun with other data or settings"):
        TILP(**FAST, seed=1).fit(graph, folder=work)
    with pytest.raises(TilpError, match="begun with other data or settings"):
        TILP(**FAST).fit(small_world(2), folder=work)
    assert contents(work) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(TilpError, match="in use"):
        TILP(**FAST).fit(graph, folder=tmp_path / "mine")
    assert contents(tmp_path / "mine") == {"thesis.txt": b"years of work"}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """What a fit leaves to go on from."""
    folder = tmp_path_factory.mktemp("work")
    TILP(**FAST).fit(small_world(), folder=folder)
    return folder


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("fit.json", "half"),
        ("rules.jsonl", "half"),
        ("entries-held-out.npz", "half"),
        ("entries-held-out.npz", "nothing"),
        ("entries-training.npz", "other bytes"),
        ("training-state.npz", "half"),
        ("training-state.npz", "nothing"),
        ("training-state.npz", "other bytes"),
    ],
)
def test_a_damaged_file_of_a_fit_is_named(tmp_path, work, name, left):
    folder = shutil.copytree(work, tmp_path / "work")
    whole = (folder / name).read_bytes()
    kept = {"half": whole[: len(whole) // 2], "nothing": b"", "other bytes": b"other"}[left]
    (folder / name).write_bytes(kept)
    with pytest.raises(TilpError) as refused:
        TILP(**FAST).fit(small_world(), folder=folder)
    assert str(folder) in str(refused.value)


def test_progress_tells_of_every_stage():
    told = {}
    TILP(**FAST).fit(
        small_world(), progress=lambda name, share: told.setdefault(name, []).append(share)
    )
    assert list(told) == ["mine", "apply", "train", "choose"]
    assert all(shares[-1] == 1.0 and min(shares) >= 0 for shares in told.values())


def test_the_examples_of_the_documentation_run(monkeypatch, tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, names)
    assert names["again"].rules() == names["model"].rules()
