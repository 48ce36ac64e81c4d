"""Missing dates: how long facts last, estimates, and what unknown ends are taken for."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize, stats

import tilp
from tilp import TILP, Query, TILPConfig
from tilp._utils.random import keyed_uniform
from tilp.errors import DataError, TilpError
from tilp.evaluation import popularity, read_scores, write_scores
from tilp.graph import ESTIMATED, QueryTable
from tilp.model import ModelSettings
from tilp.time import (
    OPEN_END,
    OPEN_START,
    UNKNOWN,
    known_ends,
)
from tilp.time.durations import Durations, observed_lengths
from tilp.time.imputation import MissingDates, imputation_counts, impute
from tilp.types import Estimate, Missing

COLUMNS = ["subject", "relation", "object", "start", "end"]


def facts_of(lengths, relation="r"):
    """Facts of one relation that last so long."""
    return [(f"s{n}", relation, "o", 2_000, 2_000 + n_units) for n, n_units in enumerate(lengths)]


def graph_of(rows, **others):
    frame = pl.DataFrame(rows, COLUMNS, orient="row")
    return tilp.read({"train": frame, **others}, unit="integer")


def truncated(mu, sigma):
    return stats.truncnorm(-mu / sigma, np.inf, loc=mu, scale=sigma)


# how long facts last


@pytest.mark.parametrize(("mu", "sigma"), [(300, 50), (20, 60), (-100, 120), (-900, 300)])
def test_parameters_are_the_most_likely_ones(mu, sigma):
    lengths = np.rint(truncated(mu, sigma).rvs(3_000, random_state=1)).astype(int)
    durations = Durations.fit(graph_of(facts_of(lengths.tolist())))

    def loss(values):
        return -truncated(values[0], np.exp(values[1])).logpdf(lengths).mean()

    best = optimize.minimize(loss, [mu, np.log(sigma)], method="Nelder-Mead", tol=1e-10)
    mine = loss([durations.mu[0], np.log(durations.sigma[0])])
    assert mine <= best.fun + 1e-9
    assert durations.mean[0] == pytest.approx(lengths.mean())
    density = durations.log_density(np.zeros(len(lengths), np.int32), lengths.astype(float))
    assert -density.mean() == pytest.approx(mine)


def some_durations(mu, sigma):
    relations = graph_of(facts_of([1])).relations
    return Durations(relations, np.array([mu]), np.array([sigma]), np.array([99]), mu, sigma)


@given(st.floats(-50, 200), st.floats(0.1, 80), st.lists(st.floats(0, 0.999), min_size=1))
def test_density_mean_and_draws_are_those_of_the_truncated_gaussian(mu, sigma, shares):
    assume(mu / sigma > -20)  # below, scipy's own moments are no longer exact
    durations, plain = some_durations(mu, sigma), truncated(mu, sigma)
    relation = np.zeros(len(shares), np.int32)
    drawn = durations.quantile(relation, np.array(shares))
    assert drawn == pytest.approx(plain.ppf(shares), rel=1e-6, abs=1e-6 * sigma)
    assert durations.mean[0] == pytest.approx(plain.mean(), rel=1e-6)
    assert durations.log_density(relation, drawn) == pytest.approx(plain.logpdf(drawn), rel=1e-6)
    assert durations.log_density(relation, -1 - drawn).tolist() == [-np.inf] * len(shares)


def test_draws_stay_finite_where_mu_is_far_below_zero():
    durations = some_durations(-8_000.0, 800.0)
    drawn = durations.quantile(np.zeros(3, np.int32), np.array([0.0, 0.5, 1 - 2.0**-53]))
    assert drawn[0] == pytest.approx(0, abs=1e-6) and np.isfinite(drawn).all()
    assert drawn[1] == pytest.approx(durations.mean[0] * np.log(2), rel=0.02)  # all but exponential


def test_few_intervals_borrow_the_parameters_of_all_relations():
    rows = [*facts_of(range(40)), *facts_of([7] * 9, "few"), *facts_of([5] * 10, "same")]
    graph = graph_of([*rows, ("s", "none", "o", 2_000, None), ("s", "r", "o", None, 2_500)])
    durations = Durations.fit(graph)
    table = durations.frame()
    assert table.columns == ["relation", "intervals", "mu", "sigma", "mean", "pooled"]
    assert dict(table.select("relation", "intervals").rows()) == {
        "few": 9, "none": 0, "r": 40, "same": 10,
    }  # fmt: skip
    few, none, own, same = (table.row(place, named=True) for place in range(4))
    assert few["pooled"] and none["pooled"] and not own["pooled"] and not same["pooled"]
    everything = [*range(40), *[7] * 9, *[5] * 10]
    assert few["mean"] == none["mean"] == pytest.approx(np.mean(everything))
    assert (same["mu"], same["sigma"]) == (5.0, 0.1)
    other = durations.for_relations(
        graph_of([("s", "same", "o", 1, 1), ("s", "new", "o", 1, 1)]).relations
    )
    assert other.mu.tolist() == [durations.all_mu, 5.0]
    assert other.intervals.tolist() == [0, 10]


def test_open_ends_and_held_out_facts_are_not_learned_from():
    rows = facts_of([3] * 10)
    held_out = pl.DataFrame(facts_of([900] * 50), COLUMNS, orient="row")
    ongoing = [(f"x{n}", "r", "o", "2000", "present") for n in range(30)]
    train = pl.DataFrame([*[tuple(map(str, one)) for one in rows], *ongoing], COLUMNS, orient="row")
    both = tilp.read({"train": train, "valid": held_out, "test": held_out}, unit="integer")
    assert Durations.fit(both).mu.tolist() == [3.0]
    assert Durations.fit(both).intervals.tolist() == [10]


def test_without_any_complete_interval_facts_are_points():
    durations = Durations.fit(graph_of([("s", "r", "o", 2_000, None)]))
    start, end = durations.estimate(np.array([0]), np.array([2_000]), np.array([UNKNOWN]))
    assert (start.tolist(), end.tolist()) == ([2_000], [2_000])


def test_estimates_count_from_the_known_end_in_whole_units():
    durations = some_durations(7.4, 0.1)
    start = np.array([100, UNKNOWN, 100, UNKNOWN, OPEN_START, UNKNOWN])
    end = np.array([UNKNOWN, 100, 103, UNKNOWN, UNKNOWN, OPEN_END])
    found = durations.estimate(np.zeros(6, np.int32), start, end)
    assert found[0].tolist() == [100, 93, 100, UNKNOWN, OPEN_START, UNKNOWN]
    assert found[1].tolist() == [107, 100, 103, UNKNOWN, UNKNOWN, OPEN_END]


# estimates


@pytest.fixture(scope="module")
def world():
    """A small world, some of whose dates are lost."""
    return tilp.datasets.world(seed=3, size=1_500).graph


def unknown_ends(graph):
    return graph.start == UNKNOWN, graph.end == UNKNOWN


@pytest.mark.parametrize("estimate", list(Estimate))
def test_impute_estimates_what_is_missing_alone_and_marks_it(world, estimate):
    no_start, no_end = unknown_ends(world)
    one = no_start ^ no_end
    assert one.any() and (no_start & ~no_end).any()  # the world lost both starts and ends
    filled = impute(world, estimate=estimate, seed=4)
    marks = np.where(one, np.where(no_start, 1, 2), 0)
    assert filled.estimated.tolist() == marks.tolist()
    assert (filled.start <= filled.end)[one].all()
    for name in ("start", "end"):
        mine, theirs = getattr(filled, name), getattr(world, name)
        given = ~one | (theirs != UNKNOWN)
        assert (mine[given] == theirs[given]).all()
        texts = filled.date_text(name).to_numpy()
        assert (texts[given] == world.date_text(name).to_numpy()[given]).all()
        assert [int(text) for text in texts[~given]] == mine[~given].tolist()
    if estimate is Estimate.EXPECTED:
        mean = np.rint(Durations.fit(world).mean)[world.relation]
        assert (filled.end - filled.start)[one].tolist() == mean[one].tolist()
    counts = imputation_counts(filled)
    assert counts["starts"].sum() == (marks == 1).sum()
    assert counts["ends"].sum() == (marks == 2).sum()
    assert counts["missing"].sum() == (no_start & no_end).sum()


@pytest.mark.parametrize("format", ["tsv", "csv", "parquet"])
def test_marks_are_written_and_read_again(world, tmp_path, format):
    filled = impute(world)
    again = tilp.read(tilp.write(filled, tmp_path / "out", format=format))
    assert again == filled and again.fingerprint() == filled.fingerprint()
    assert again.estimated.tolist() == filled.estimated.tolist()
    assert filled.frame("valid").columns == [*COLUMNS, "estimated"]
    unmarked = replace(filled, estimated=np.zeros(len(filled), np.uint8))
    assert unmarked != filled and unmarked.fingerprint() != filled.fingerprint()
    assert "estimated" not in world.frame().columns


def test_estimates_are_not_learned_from_again(world):
    once, twice = Durations.fit(world), Durations.fit(impute(world, estimate="drawn"))
    assert once.frame().equals(twice.frame())


def test_marks_are_told_of_and_do_not_disturb_files_of_scores(world, tmp_path):
    filled = impute(world)
    told = tilp.inspect(filled).defects.estimated
    valid = filled.span("valid")
    assert told["valid"] == np.count_nonzero(filled.estimated[valid]) > 0
    assert set(tilp.inspect(world).defects.estimated.values()) == {0}
    floor = popularity(filled)
    path = write_scores(floor, filled, tmp_path / "scores.tsv", "valid")
    assert "estimated" not in path.read_text().splitlines()[0]
    assert len(read_scores(path, filled, "valid")) == 2 * len(filled.rows("valid"))


def test_a_column_of_estimates_with_other_words_is_refused(tmp_path):
    rows = [("a", "r", "b", "1990", "1991", word) for word in ("start", "", "yes")]
    frame = pl.DataFrame(rows, [*COLUMNS, "estimated"], orient="row")
    assert tilp.read(frame[:2]).estimated.tolist() == [ESTIMATED.index("start"), 0]
    with pytest.raises(DataError, match=r"line 2.*'yes'.*start, end or both.*another name"):
        tilp.read(frame)


def test_estimate_names_its_choices(world):
    with pytest.raises(TilpError, match="expected, drawn"):
        impute(world, estimate="guessed")


def test_what_is_drawn_depends_on_the_fact_alone(world):
    drawn = impute(world, estimate="drawn", seed=1)
    assert drawn == impute(world, estimate="drawn", seed=1)
    assert drawn != impute(world, estimate="drawn", seed=2)
    dates = MissingDates.fit(world, Missing.DURATION, 1)
    one = (world.start == UNKNOWN) ^ (world.end == UNKNOWN)
    filled = dates.fill_graph(world)
    assert (filled.start == drawn.start)[one].all() and (filled.end == drawn.end)[one].all()
    order = np.random.default_rng(0).permutation(len(world.rows("train")))[:300]
    queries = QueryTable.of_facts(world, order, walked=True)
    whole = dates.fill_queries(queries)
    parts = [dates.fill_queries(queries[np.array([n])]) for n in range(len(queries))]
    assert whole.start.tolist() == [int(part.start[0]) for part in parts]
    assert whole.end.tolist() == [int(part.end[0]) for part in parts]
    elsewhere = dates.fill_queries(queries.without_answers())  # the answer has no part in it
    assert whole.end.tolist() == elsewhere.end.tolist()


def test_chances_are_spread_evenly_over_facts():
    subject, object_ = (one.ravel() for one in np.meshgrid(np.arange(60), np.arange(60)))
    for seed in (0, 1):
        drawn = keyed_uniform(seed, subject, np.zeros_like(subject), object_, subject % 7 + 1_990)
        assert stats.kstest(drawn, "uniform").pvalue > 0.001
        assert len(np.unique(drawn)) == len(drawn)


# what missing dates are taken for


@pytest.mark.parametrize("missing", list(Missing))
def test_missing_dates_are_filled_in(missing):
    rows = [*facts_of([5] * 10), ("a", "r", "b", 100, None), ("a", "r", "b", None, 100)]
    graph = graph_of([*rows, ("a", "r", "b", None, None), ("a", "q", "b", 100, 103)])
    truth = {
        Missing.POINT: [(100, 100), (100, 100), (OPEN_START, OPEN_END)],
        Missing.DURATION: [(100, 105), (95, 100), (OPEN_START, OPEN_END)],
        Missing.OPEN: [(100, OPEN_END), (OPEN_START, 100), (OPEN_START, OPEN_END)],
    }[missing]
    dates = MissingDates.fit(graph, missing, 0)
    filled_graph = dates.fill_graph(graph)
    queries = dates.fill_queries(QueryTable.of_facts(graph, np.arange(10, 14), walked=False))
    filled = missing in (Missing.DURATION, Missing.OPEN)
    if missing is Missing.POINT:  # left to walks, which take it so
        start, end = known_ends(filled_graph.start, filled_graph.end)
    else:
        start, end = filled_graph.start, filled_graph.end
    asked = (queries.start, queries.end) if missing is Missing.POINT else queries.given_dates()
    for times, first in (((start, end), 10), (asked, 0), (asked, 4)):
        found = [(int(times[0][n]), int(times[1][n])) for n in range(first, first + 4)]
        assert found == [*truth, (100, 103)]
    assert queries.unknown.any() != filled
    assert filled_graph.date_text("end").equals(graph.date_text("end"))


def test_queries_keep_known_ends_for_other_scorers(world):
    rows = np.asarray(world.rows("valid"))
    queries = QueryTable.of_facts(world, rows, walked=False)
    start, end = known_ends(world.start[rows], world.end[rows])
    assert queries.start.tolist() == [*start, *start] and queries.end.tolist() == [*end, *end]
    given_start, given_end = queries.given_dates()
    assert given_start.tolist() == np.tile(world.start[rows], 2).tolist()
    assert given_end.tolist() == np.tile(world.end[rows], 2).tolist()
    names = ("subject", "directed_relation", "start", "end", "fact", "answer")
    complete = QueryTable(*(getattr(queries, name) for name in names))
    assert not complete.unknown.any() and complete.unknown.shape == (len(queries), 2)


@pytest.fixture(scope="module")
def lossy():
    """A world with most of its ends removed."""
    graph = tilp.datasets.world(seed=5, size=1_500).graph
    lost = np.random.default_rng(0).random(len(graph)) < 0.5
    columns = {name: getattr(graph, name) for name in ("subject", "relation", "object", "start")}
    splits = np.repeat(np.arange(3, dtype=np.uint8), np.diff(graph.bounds))
    end = np.where(lost & (graph.start != UNKNOWN), UNKNOWN, graph.end)
    return tilp.TemporalGraph.from_arrays(
        graph.entities, graph.relations, {**columns, "end": end}, splits
    )


QUICK = {
    "max_length": 2,
    "features": "none",
    "max_rules": 100,
    "config": TILPConfig(sample=60),
}


@pytest.fixture(scope="module", params=list(Missing))
def model(request, lossy):
    return TILP(missing=request.param, n_jobs=1, **QUICK).fit(lossy)


def test_each_choice_makes_a_model_of_its_own_whatever_the_threads(model, lossy, tmp_path):
    missing = model.settings.missing
    two = TILP(missing=missing, n_jobs=2, **QUICK).fit(lossy)
    assert two.rules().to_jsonl() == model.rules().to_jsonl()
    mine, theirs = (one.evaluate("valid", protocols=["enumerate"]) for one in (model, two))
    assert mine == theirs
    again = tilp.load(model.save(tmp_path / "model"))
    assert again.settings == model.settings and again.settings.missing is missing
    assert again.graph == lossy.canonical()  # the dates as they were given
    assert again.evaluate("valid", protocols=["enumerate"]) == mine
    point = TILP(n_jobs=2, **QUICK).fit(lossy)
    same = point.rules().to_jsonl() == model.rules().to_jsonl()
    assert same == (missing is Missing.POINT)


def test_scores_do_not_depend_on_the_batch_or_the_way_of_asking(model, lossy):
    rows = np.asarray(lossy.rows("valid"))
    queries = QueryTable.of_facts(lossy, rows, walked=False).without_answers()
    scorer = model.scorer()
    alone = np.flatnonzero(queries.unknown.any(axis=1))[:5]
    together = scorer(queries).take(alone)
    for place, number in enumerate(alone):
        one, same = scorer(queries[np.array([number])]), together.take(np.array([place]))
        assert one.candidate.tolist() == same.candidate.tolist()
        assert one.score.tolist() == same.score.tolist()
    row = int(rows[alone[0]])
    fact = lossy.fact(row)
    assert fact.interval.end == UNKNOWN
    asked = Query(fact.relation, subject=fact.subject, start=fact.interval.start)
    best = model.predict(asked, k=3)["score"].to_list()
    first = together.take(np.array([0]))
    everything = np.full(len(lossy.entities), float(first.defaults[0]))
    everything[first.candidate] = first.score
    assert best == np.sort(everything)[::-1][:3].tolist()


def test_each_choice_works_on_another_graph(model, lossy):
    rows = [
        ("Ada", "livesIn", "Rome", "1980", None),
        ("Ada", "worksIn", "Rome", None, "1990"),  # a relation that the model never saw
        ("Bob", "livesIn", "Oslo", "1970", None),
        ("Bob", "marriedTo", "Ada", "1979", None),
    ]
    other = tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"), unit="year")
    found = model.predict(Query("livesIn", subject="Bob", start="1981"), graph=other)
    assert len(found) == len(other.entities)


def test_settings_say_what_is_missing():
    for missing in Missing:
        chosen = ModelSettings(missing=missing)
        assert ModelSettings.from_json(chosen.to_json()) == chosen
        assert replace(chosen, missing=Missing.POINT) == ModelSettings()
    with pytest.raises(TilpError, match=r"it can be point, duration, open$"):
        TILP(missing="guess")
    values = ModelSettings().to_json()
    mining = {**values["mining"], "every_reading": True}
    del mining["distinct"]
    with pytest.raises(TilpError, match=r"of tilp 0\.1: fit it again"):
        ModelSettings.from_json({**values, "missing": "unknown", "mining": mining})


# commands


def test_the_impute_command_writes_marks_and_tells_what_was_estimated(run, tmp_path, world):
    data = tilp.write(world, tmp_path / "data")
    out = tmp_path / "filled"
    code, printed, err = run("impute", data, "--out", out, "--estimate", "drawn", "--seed", 7)
    assert code == 0 and err == ""
    assert tilp.read(out) == impute(world, estimate="drawn", seed=7)
    total = int((tilp.read(out).estimated > 0).sum())
    assert f"{total:,} dates estimated" in printed
    for name, *numbers in imputation_counts(tilp.read(out)).rows():
        line = next(line for line in printed.splitlines() if f"│ {name} " in line)
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        assert cells[1:5] == [f"{number:,}" for number in numbers]
    code, _, err = run("impute", data, "--out", out)
    assert code == 2 and "not empty" in err


def test_commands_teach_what_is_done_with_missing_dates(run):
    code, out, _ = run("impute", "--help")
    assert code == 0
    words = "DATA --out --estimate expected drawn --seed --format estimated --missing"
    assert [word for word in words.split() if word not in out] == []
    code, out, _ = run("fit", "--help")
    assert [one.value for one in Missing if one.value not in out] == [] and "--missing" in out


def test_fit_takes_what_is_missing(run, tmp_path, lossy):
    data = tilp.write(lossy, tmp_path / "data")
    options = ("--max-length", 1, "--sample", 20, "--threads", 1, "--features", "none")
    options += ("--missing", "open")
    code, _, err = run("--quiet", "fit", data, "--out", tmp_path / "model", *options)
    assert code == 0 and err == ""
    assert tilp.load(tmp_path / "model").settings.missing is Missing.OPEN


def test_facts_that_still_go_on_are_censored():
    chance = np.random.default_rng(0)
    start = chance.integers(1900, 2000, 4_000)
    length = np.rint(np.abs(chance.normal(20, 5, 4_000))).astype(int)
    rows = [
        ("s", "r", f"o{i}", str(a), str(a + b) if a + b < 2000 else "present")
        for i, (a, b) in enumerate(zip(start, length, strict=True))
    ]
    names = ["subject", "relation", "object", "start", "end"]
    graph = tilp.read(pl.DataFrame(rows, names, orient="row"))
    finished = observed_lengths(graph)[1].mean()
    mean = float(Durations.fit(graph).mean[0])
    assert abs(mean - 20) < min(0.2, (20 - finished) / 2)
