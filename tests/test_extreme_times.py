"""Times up to ±10^18: no difference overflows, and only differences matter."""

import polars as pl
import pytest

import tilp
from paper_tables import table_of_model
from strategies import small_world
from tilp import TILP, Query, TILPConfig
from tilp.learning.rule_weights import TrainingSettings

# Draws are keyed by dates, so that a shift may tip which rules selection keeps: all are kept here.
CONFIG = TILPConfig(sample=40, training=TrainingSettings(steps=15), select=False)


def facts(change):
    """The facts of a small world, each year as an integer that a function changed."""
    graph = small_world()
    frame = graph.frame("train", names="ids")
    dates = (change(pl.col(name).str.slice(0, 4).cast(pl.Int64, strict=False)) for name in DATES)
    return tilp.read(frame.with_columns(*dates), unit="integer")


DATES = ("start", "end")


def answers(graph, features):
    model = TILP(1, features=features, n_jobs=1, config=CONFIG).fit(graph)
    row = int(graph.targets[7])
    query = Query(
        graph.relations.id(int(graph.relation[row])), graph.entities.id(int(graph.subject[row])),
        None, *(str(graph.date_text(end)[row]) or None for end in DATES),
    )  # fmt: skip
    explained = model.explain(query, max_reasons=None)
    observed = table_of_model(model)
    return model.predict(query, k=5)["candidate", "score"], len(explained.reasons), observed


@pytest.mark.parametrize("features", ["none", "paper", "full"])
def test_all_times_may_be_shifted(features):
    near = answers(facts(lambda time: time), features)
    for shift in (10**10, 10**18 - 10**4, -(10**18) + 10**4):
        far = answers(facts(lambda time, shift=shift: time + shift), features)
        assert far[1] and far[2].equals(near[2])
        if features == "none":
            assert far[0]["candidate"].equals(near[0]["candidate"])
            assert far[0]["score"].to_list() == pytest.approx(near[0]["score"].to_list())
        else:  # negative samples are keyed by times, so that weights differ
            assert set(far[0]["candidate"]) == set(near[0]["candidate"])
            assert far[0]["score"].is_finite().all()


@pytest.mark.parametrize("features", ["paper", "full"])
def test_differences_may_be_as_large_as_times(features):
    wide = facts(lambda time: (time - 1950) * 10**15)
    found, reasons, observed = answers(wide, features)
    assert found["score"].is_finite().all() and reasons
    near = answers(facts(lambda time: time - 1950), features)[2]
    mean = pl.coalesce("mean", 1.0 / pl.col("rate")).alias("mean")
    wide_mean, near_mean = (table.select(mean)["mean"].to_numpy() for table in (observed, near))
    apart = near_mean > 0.5  # the least that is distinguished
    assert apart.any()
    assert wide_mean[apart] == pytest.approx(near_mean[apart] * 1e15, rel=1e-9)
