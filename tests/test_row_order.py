"""The same facts in any order of rows give the same model, and the same answers."""

import numpy as np
import polars as pl
import pytest

import tilp
from strategies import small_world
from tilp import TILP, ForecastRules, TILPConfig
from tilp.evaluation import compare, evaluate, popularity
from tilp.learning.rule_weights import TrainingSettings
from tilp.walks import MiningSettings, mine

FAST = TILPConfig(sample=30, training=TrainingSettings(steps=15, dimension=8))
MODELS = {
    "free": lambda: TILP(2, n_jobs=1, config=FAST),
    "paper": lambda: TILP(
        1, rule_weights="attention", features="paper", missing="duration", n_jobs=1, config=FAST
    ),
    "forecast": lambda: ForecastRules(n_jobs=1),
}


def rows():
    graph = small_world()
    split = np.repeat(["train", "valid", "test"], np.diff(graph.bounds))
    return graph.frame(names="ids").with_columns(split=pl.Series(split))


def shuffled(seed):
    return tilp.read(rows().sample(fraction=1.0, shuffle=True, seed=seed))


@pytest.mark.parametrize("kind", MODELS)
def test_any_order_of_rows_gives_the_same_model_bit_for_bit(kind):
    first, *others = (MODELS[kind]().fit(shuffled(seed)) for seed in (1, 2))
    graph = first.graph
    assert not np.array_equal(graph.source_line, others[0].graph.source_line)
    queries = graph.frame("test", names="ids").select("subject", "relation", "start", "end")
    answers = first.predict(queries, k=5).drop("source")
    for other in others:
        assert other._digest() == first._digest()
        assert other.predict(queries, k=5).drop("source").equals(answers)


def test_facts_keep_what_they_were_read_from():
    frame = rows().sample(fraction=1.0, shuffle=True, seed=3)
    graph = tilp.read(frame).canonical()
    assert graph == tilp.read(frame.sample(fraction=1.0, shuffle=True, seed=4)).canonical()
    assert graph.canonical() is graph
    for row in range(0, len(graph), 97):
        line = int(graph.source(row).removeprefix("the frame, row "))
        fact = (frame["subject"][line], frame["relation"][line], frame["object"][line])
        ids = graph.entities.ids, graph.relations.ids
        found = ids[0][int(graph.subject[row])], ids[1][int(graph.relation[row])]
        assert (*found, ids[0][int(graph.object[row])]) == fact


def test_rules_that_are_mined_alone_do_not_depend_on_it_either():
    settings = MiningSettings(max_length=2, sample=10, top=20)
    first, second = (mine(shuffled(seed), ["playsFor"], settings) for seed in (1, 2))
    assert first.to_jsonl() == second.to_jsonl()


def test_evaluations_on_data_in_another_order_are_compared():
    graphs = [shuffled(seed) for seed in (1, 2)]
    first, second = (evaluate(popularity(graph), graph, "test") for graph in graphs)
    comparison = compare(first, second)
    assert comparison.draws == len(first) and not comparison.wins + comparison.losses
    assert first.ranks.drop("fact").equals(second.ranks.drop("fact"))


def test_new_facts_in_any_order_give_the_same_update():
    model = TILP(1, features="none", n_jobs=1, config=FAST).fit(small_world())
    new = (
        rows()
        .head(80)
        .with_columns(start=pl.lit("1999"), end=pl.lit("2001"), split=pl.lit("train"))
    )
    updates = [
        model.update(tilp.read(new.sample(fraction=1.0, shuffle=True, seed=s))) for s in (1, 2)
    ]
    assert updates[0]._digest() == updates[1]._digest()
