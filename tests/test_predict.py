"""Predictions of a model, on its own graph and on others."""

from dataclasses import asdict, replace

import numpy as np
import polars as pl
import pytest

import tilp
from models import interval_by_hand
from strategies import both_ways, small_world
from tilp import TILP, Query
from tilp.errors import TilpError
from tilp.graph import QueryTable
from tilp.graph.queries import known_lines
from tilp.learning import KNOWN_KINDS
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
    "source": pl.String,
}


@pytest.fixture
def model(rule_model):
    return rule_model


@pytest.fixture(scope="module")
def elsewhere(rule_model):
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
    ours, theirs = list(rule_model.graph.relations), list(other.relations)
    shared = [name for name in ours if name in theirs]
    assert [name for name in theirs if name in ours] != shared and set(theirs) - set(ours)
    assert not set(other.entities) & set(rule_model.graph.entities)
    return other


@pytest.fixture
def saved(saved_model):
    return saved_model


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
            lines, n_known = str(found).splitlines(), len(known_lines(found.known, 4))
            assert lines[0] == str(query) and len(lines) == 6 + n_known
            assert lines[1 : 1 + n_known] == known_lines(found.known, 4)
            for line, one in zip(lines[2 + n_known :], found, strict=True):
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
    model = TILP(1, features="none", n_jobs=1).fit(graph)
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


# On other graphs


def scores_by_hand(model, graph, query):
    """The score of every entity: what walks of the rules give it (eq. 15), and the prior."""
    mining = model.settings.mining
    options = {"limit": mining.limit, "seed": mining.seed, "gap_edges": mining.gap_edges}
    walker = Walker(graph, grains=mining.grains, max_length=mining.max_length, **options)
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
        total, gain = sum(counted.values()), sum(ends.values()) ** learned.walks_power
        for name, count in counted.items():
            scores[name] += rules[rule].weight * gain * count / total
    return scores, len(walks)


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
    found, expected = model.predict(queries, graph=twin), model.predict(queries)
    assert found.drop("source").equals(expected.drop("source"))


def test_graphs_that_rules_cannot_be_applied_on(model, elsewhere):
    facts = elsewhere.frame("train").filter(relation="livesIn")
    query = Query("livesIn", facts["subject"][0])
    with pytest.raises(TilpError, match="count months, of the model's years; read it with unit"):
        model.predict(query, graph=tilp.read(facts, unit="month"))
    strange = tilp.read(facts.with_columns(relation=pl.lit("dwells")))
    with pytest.raises(TilpError, match=r"no rule of the model uses .*: dwells"):
        model.predict(replace(query, relation="dwells"), graph=strange)
    with pytest.raises(TilpError, match="no entity is named"):
        model.predict(Query("livesIn", model.graph.entities.label(70)), graph=elsewhere)
