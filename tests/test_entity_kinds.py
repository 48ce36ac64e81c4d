"""Kinds of entities against a plain reading; how they rank candidates and choose subjects."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from strategies import all_queries, every_candidate, graphs
from tilp import TILP, Query, TILPConfig
from tilp.features.candidate_counts import KIND
from tilp.features.entity_kinds import EntityKinds
from tilp.features.log_linear import LogLinearWeights
from tilp.learning.rule_weights import TrainingSettings
from tilp.model.query_sources import queries_of

COLUMNS = ["subject", "relation", "object", "start", "end"]
NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")


def relations_of(graph, left_out=-1):
    """The directed relations of each entity, and how many of its facts each has."""
    n = len(graph.relations)
    kinds = [{} for _ in range(len(graph.entities))]
    for row in graph.rows("train"):
        if row != left_out:
            relation = int(graph.relation[row])
            for entity, directed in (
                (int(graph.subject[row]), relation),
                (int(graph.object[row]), relation + n),
            ):
                kinds[entity][directed] = kinds[entity].get(directed, 0) + 1
    return kinds


def is_never(graph, relation, candidate, own):
    """Whether a candidate has facts, but shares no relation with an answer of the relation."""
    n = len(graph.relations)
    as_answer = (relation + n) % (2 * n)
    with_own = relations_of(graph)
    answers = {e for e, of in enumerate(with_own) if as_answer in of}
    mine = dict(with_own[candidate])
    # The own fact is that of the candidate as an answer, and of no other entity.
    end = -1
    if own >= 0:
        end = int((graph.object if relation < n else graph.subject)[own])
    if end == candidate:
        mine[as_answer] -= 1
        if not mine[as_answer]:
            del mine[as_answer]
            answers.discard(candidate)
    usual = {relation for e in answers for relation in (mine if e == candidate else with_own[e])}
    return bool(mine) and not usual & set(mine)


@NO_WARNING
@settings(max_examples=60)
@given(graphs(), st.booleans())
def test_kinds_that_a_relation_never_has_against_a_plain_reading(graph, walked):
    queries = all_queries(graph, walked=walked)
    offsets, candidate = every_candidate(graph, queries)
    found = EntityKinds(graph).never(queries, offsets, candidate).reshape(len(queries), -1)
    for row in range(len(queries)):
        relation, own = int(queries.directed_relation[row]), int(queries.fact[row])
        expected = [is_never(graph, relation, e, own) for e in range(len(graph.entities))]
        assert found[row].tolist() == expected


def congress(n=30):
    """Members of two parties in states, senators among them; one state per three members."""
    rows = []
    for index in range(n):
        start = 1980 + index
        rows += [
            (f"m{index}", "member of", ("red", "blue")[index % 2], start, start + 10),
            (f"m{index}", "lives in", f"s{index % 10}", start, start + 10),
        ]
        if index % 3 == 0:
            rows.append((f"m{index}", "senator for", f"s{index % 10}", start + 2, start + 8))
    rows += [(f"s{index}", "part of", "union", 1900, 2020) for index in range(10)]
    return tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"), unit="year")


@pytest.fixture(scope="module")
def model():
    config = TILPConfig(training=TrainingSettings(steps=20))
    return TILP(1, n_jobs=1, config=config).fit(congress())


def test_a_candidate_of_another_kind_ranks_behind_and_the_explanation_says_so(model):
    graph = model.graph
    relation = graph.relations.find("member of")
    weight = model._fitted.features.counts[:, -1]
    assert weight[relation] < -3
    answers = model.predict(Query("member of", "m4", start=1985, end=1986), k=100)
    order = answers["candidate"].to_list()
    states = [order.index(f"s{index}") for index in range(10)]
    assert max(order.index("red"), order.index("blue")) < min(states)
    explained = model.explain(Query("member of", "m4", start=1985, end=1986), "s3")
    (reason,) = (r for r in explained.reasons if any(m.kind == KIND for m in r.members))
    assert reason.score == pytest.approx(weight[relation])
    assert reason.text.startswith("Against s3: nothing like s3, with facts of ")
    assert reason.text.endswith("is ever the object of member of.")
    right = model.explain(Query("member of", "m4", start=1985, end=1986), "red")
    assert not [m for r in right.reasons for m in r.members if m.kind == KIND]


def test_the_weight_follows_how_rare_such_answers_are(model):
    kinds = EntityKinds(model.graph)
    queries = all_queries(model.graph)
    weights = kinds.weights(queries, 0)
    n = len(model.graph.relations)
    for relation in range(2 * n):
        asked = np.flatnonzero(queries.directed_relation == relation)
        rows = [(int(queries.answer[row]), int(queries.fact[row])) for row in asked]
        odd = sum(is_never(model.graph, relation, *row) for row in rows)
        others = [is_never(model.graph, relation, e, -1) for e in range(len(model.graph.entities))]
        ratio = (odd + 0.5) / (len(rows) - odd + 0.5)
        ratio /= (sum(others) + 0.5) / (len(others) - sum(others) + 0.5)
        expected = min(np.log(ratio), 0.0) * (1 if odd else 2)
        assert weights[relation] == pytest.approx(expected)


def test_models_without_kinds_are_read(model):
    arrays = model._fitted.features.to_arrays()
    before = LogLinearWeights.from_arrays({**arrays, "counts": arrays["counts"][:, :-1]})
    assert (before.counts[:, -1] == 0).all()
    assert np.array_equal(before.counts[:, :-1], arrays["counts"][:, :-1])
    without = TILP(1, n_jobs=1, config=TILPConfig(
        without="kinds", training=TrainingSettings(steps=5)
    )).fit(congress())  # fmt: skip
    assert (without._fitted.features.counts[:, -1] == 0).all()


# --complete


def subjects(frame, column="subject"):
    return set(frame[column].to_list())


def test_subjects_without_a_fact_are_asked():
    graph = congress()
    members = {f"m{index}" for index in range(30)}
    senators = {f"m{index}" for index in range(0, 30, 3)}
    assert subjects(queries_of(graph, "senator for")) == members - senators
    assert subjects(queries_of(graph, "senator for", all_subjects=True)) == senators
    # m0 was senator from 1982 to 1988, m3 from 1985 to 1991, m6 from 1988.
    at = queries_of(graph, "senator for", "1983", "1984")
    assert subjects(at) == members - {"m0"}
    assert subjects(queries_of(graph, "senator for", "1988", "1990")) == members - {
        "m0",
        "m3",
        "m6",
    }
    states = {f"s{index}" for index in range(10)}
    inverse = queries_of(graph, "senator for^-1", "1983", "1984")
    assert subjects(inverse, "object") == states - {"s0"}


def test_what_still_holds_is_no_subject_that_lacks_it():
    rows = [("a", "p", "x", "1990", "present"), ("b", "p", "x", "1990", "2000"),
            ("c", "q", "x", "1990", "1991"), ("a", "q", "y", "1990", "1991"),
            ("z", "r", "w", "1990", "1991")]  # fmt: skip
    graph = tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"), unit="year")
    assert subjects(queries_of(graph, "p", end="present")) == {"b", "c"}
    assert subjects(queries_of(graph, "p")) == {"c"}
    with pytest.raises(tilp.TilpError, match="--all-subjects"):
        queries_of(graph, "r")


def test_complete_on_the_command_line(run, tmp_path, model):
    folder = model.save(tmp_path / "model")
    code, out, _ = run("predict", folder, "--complete", "senator for", "-k", "1", "--json")
    assert code == 0 and '"m1"' in out and '"m3"' not in out
    code, out, _ = run(
        "predict", folder, "--complete", "senator for", "--all-subjects", "-k", "1", "--json"
    )
    assert code == 0 and '"m3"' in out and '"m1"' not in out
    code, _, err = run("predict", folder, "--relation", "lives in", "--subject", "m1",
                       "--all-subjects")  # fmt: skip
    assert code != 0 and "--complete" in err
