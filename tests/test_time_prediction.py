"""When facts start and end: evidence, weights, answers, metrics, and what they are saved as."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from tilp._kernels import date_evidence as kernels
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.parallel import Workers
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, Interval
from tilp.time.bins import bin_index
from tilp.time_prediction import TimeModel, TimePredictor, TimeTraining, fit_time_model
from tilp.time_prediction.evaluate import interval_metrics
from tilp.time_prediction.evidence import DatedFacts, DateTarget, finite
from tilp.time_prediction.model import Dates, JointDates, aeiou


@pytest.fixture(scope="module")
def world() -> TemporalGraph:
    return tilp.datasets.world(seed=0, size=1_500).graph


@pytest.fixture(scope="module")
def model(world: TemporalGraph) -> tilp.TILP:
    return tilp.TILP(max_length=1, features="none", n_jobs=1).fit(world)


@pytest.fixture(scope="module")
def predictor(model: tilp.TILP) -> TimePredictor:
    return model.time_predictor()


def small_graph(rows: list[tuple[str, str, str, int, int]]) -> TemporalGraph:
    columns = ["subject", "relation", "object", "start", "end"]
    frame = pl.DataFrame(rows, columns, orient="row").with_columns(
        pl.col("start", "end").map_elements(
            lambda t: "" if t == UNKNOWN else "present" if t == OPEN_END else str(t), pl.String
        )
    )
    return tilp.read(frame, unit="year")


dates = st.one_of(st.integers(1990, 2005), st.just(UNKNOWN))
facts = st.tuples(
    st.sampled_from("abcd"), st.sampled_from(["r", "q"]), st.sampled_from("abcd"), dates,
    st.integers(0, 6), st.sampled_from(["known", "unknown", "open"]),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(facts, min_size=2, max_size=12), st.booleans(), st.booleans())
def test_bins_are_those_of_a_plain_search(rows: list, of_end: bool, drop: bool) -> None:
    listed = []
    for subject, relation, object_, start, length, kind in rows:
        end = {"known": start + length, "unknown": UNKNOWN, "open": OPEN_END}[kind]
        end = UNKNOWN if start == UNKNOWN and kind == "known" else end
        listed.append((subject, relation, object_, start, end))
    graph = small_graph([("a", "r", "b", 2000, 2001), *listed])
    evidence = DatedFacts(graph)
    edges = np.array([1, 2, 4])
    fact = 0
    columns = (graph.subject, graph.relation, graph.object)
    ids = [np.array([int(c[fact])]) for c in columns]
    target = DateTarget(*ids, np.array([fact]), graph.start[[fact]], graph.end[[fact]])
    times = np.arange(1995, 2008)
    at = np.array([0, len(times)]), times
    offsets, groups, bins = evidence.bins(target, at, edges, of_end, np.array([drop]))
    found = dict(zip(groups.tolist(), bins.reshape(len(times), offsets[-1]).T, strict=True))
    expected = slow_bins(graph, fact, times, edges, of_end, drop)
    assert {g: b.tolist() for g, b in found.items()} == expected


def slow_bins(
    graph: TemporalGraph, own: int, times: np.ndarray, edges: np.ndarray, of_end: bool, drop: bool
) -> dict[int, list[int]]:
    """Search all facts for each group and candidate date."""
    n = len(graph.relations)
    subject, object_ = int(graph.subject[own]), int(graph.object[own])
    origin = int(graph.start[own])
    runs: dict[tuple[int, int], list[int]] = {}
    for row in range(len(graph)):
        s, r, o = (int(c[row]) for c in (graph.subject, graph.relation, graph.object))
        if not (finite(graph.start[[row]])[0] or finite(graph.end[[row]])[0]):
            continue
        for entity, other, relation in ((s, o, r), (o, s, r + n)):
            if entity == subject:
                runs.setdefault((0, relation), []).append(row)
            if entity == object_:
                runs.setdefault((1, relation), []).append(row)
            if (entity, other) == (subject, object_):
                runs.setdefault((2, relation), []).append(row)
    none = 2 * len(edges) + 1
    result = {}
    for (source, relation), rows in runs.items():
        starts = {r: int(graph.start[r]) for r in rows if finite(graph.start[[r]])[0]}
        ends = {r: int(graph.end[r]) for r in rows if finite(graph.end[[r]])[0]}
        kept = [
            r
            for r in rows
            if r != own and not (drop and source != 1 and int(graph.start[r]) == origin)
        ]

        def binned(values: dict[int, int], time: int, near: float, kept: list = kept) -> int:
            near_dates = [values[r] for r in kept if r in values]
            if not near_dates:
                return none
            date = min(near_dates, key=lambda d: (abs(d - near), d))
            return int(bin_index(np.array([time - date]), edges)[0])

        def count(time: int, starts: dict = starts, ends: dict = ends, rows: list = rows) -> int:
            if of_end:
                return min(3, sum(origin < t < time for t in starts.values()))
            begun = sum(t <= time for r, t in starts.items() if r != own or own not in rows)
            ended = sum(t < time for r, t in ends.items() if r != own)
            return min(3, max(0, begun - ended))

        kinds = [
            [binned(starts, int(t), int(t)) for t in times],
            [binned(ends, int(t), int(t)) for t in times],
            [count(int(t)) for t in times],
        ]
        if of_end:
            later = {r: t for r, t in starts.items() if t > origin}
            kinds.append([binned(later, int(t), -1e6) for t in times])
        else:
            kinds.append([binned(starts, int(t), -1e6) for t in times])
            kinds.append([binned(starts, int(t), 1e6) for t in times])
        for kind, values in enumerate(kinds):
            result[(source * kernels.N_KINDS + kind) * 2 * n + relation] = values
    return result


@given(
    st.lists(st.integers(-20, 20), max_size=15), st.lists(st.integers(-25, 25), min_size=1),
    st.booleans(),
)  # fmt: skip
def test_counts_of_near_values(values: list[int], wanted: list[int], has_own: bool) -> None:
    has_own = has_own and bool(values)
    own = values[0] if values else 0
    base, rate = np.array([0, 2]), np.array([0.0, 0.5])
    counts = kernels.count_near(
        np.sort(np.array(values, np.int64)), np.array([0]), np.array([len(values)]),
        np.array([0, len(wanted)]), np.array(wanted), np.array([own]), np.array([has_own]),
        base, rate,
    )  # fmt: skip
    others = values[1:] if has_own else values
    for row, value in enumerate(wanted):
        for index in range(2):
            width = base[index] + int(rate[index] * abs(value))
            assert counts[row, index] == sum(abs(other - value) <= width for other in others)


def test_likelihood_and_its_gradient() -> None:
    rng = np.random.default_rng(0)
    offsets, group_offsets = np.array([0, 3, 7]), np.array([0, 2, 3])
    cells = np.array([0, 6, 10])
    table = kernels.DateTable(
        offsets, rng.normal(size=(7, 2)), rng.normal(size=7),
        np.array([0, 1.0, 0, 0, 1, 1, 0]), group_offsets, np.array([0, 1, 1]), cells,
        rng.integers(0, 4, 10).astype(np.uint8),
    )  # fmt: skip

    def plain(dense: np.ndarray, sparse: np.ndarray) -> float:
        total = 0.0
        for query in range(2):
            scores, rows = [], table.row[group_offsets[query] : group_offsets[query + 1]]
            for index, candidate in enumerate(range(offsets[query], offsets[query + 1])):
                cell = cells[query] + index * len(rows)
                features = sum(sparse[r, table.bins[cell + i]] for i, r in enumerate(rows))
                scores.append(
                    table.log_weight[candidate] + dense @ table.dense[candidate] + features
                )
            answer = table.is_answer[offsets[query] : offsets[query + 1]]
            total += np.logaddexp.reduce(scores)
            total -= np.logaddexp.reduce(np.array(scores)[answer > 0])
        return float(total)

    dense, sparse = rng.normal(size=2), rng.normal(size=(2, 4))
    slopes = np.zeros(2), np.zeros((2, 4))
    value = kernels.add_date_likelihood(table, dense, sparse, *slopes)
    assert value == pytest.approx(plain(dense, sparse))
    for array, slope in zip((dense, sparse), slopes, strict=True):
        for index in np.ndindex(array.shape):
            array[index] += 1e-6
            above = plain(dense, sparse)
            array[index] -= 2e-6
            below = plain(dense, sparse)
            array[index] += 1e-6
            assert slope[index] == pytest.approx((above - below) / 2e-6, abs=1e-4)


def test_metrics_computed_by_hand() -> None:
    assert aeiou(np.array([2000]), np.array([2004]), 2003, 2006).item() == pytest.approx(2 / 7)
    assert aeiou(np.array([2000]), np.array([2000]), 2001, 2001).item() == pytest.approx(1 / 2)
    assert aeiou(np.array([1990]), np.array([1992]), 1990, 1992).item() == 1.0
    apart = interval_metrics(2000, 2001, 2005, 2006)  # inter = -3, hull = 7, union = 4
    assert apart["giou"] == pytest.approx((1 + 0 - 3 / 7) / 2)
    assert apart["gaeiou"] == pytest.approx(1 / (4 * 7))
    assert apart["tac"] == pytest.approx(1 / 6)
    assert (apart["mae_start"], apart["mae_end"], apart["exact_start"]) == (5, 5, 0.0)
    touching = interval_metrics(2000, 2001, 2002, 2003)  # inter = 0, hull = 4: no gap
    assert touching["giou"] == pytest.approx(0.5)
    assert touching["gaeiou"] == pytest.approx(1 / 4)
    same = interval_metrics(2000, 2003, 2000, 2003)
    assert (same["giou"], same["gaeiou"], same["tac"], same["exact_end"]) == (1, 1, 1, 1)


def test_distributions_by_hand() -> None:
    starts = Dates(np.array([2000, 2005]), np.array([0.25, 0.75]))
    ends = Dates(np.array([2001, 2006]), np.array([0.5, 0.5])), Dates(np.array([2006]), np.ones(1))
    joint = JointDates(starts, ends)
    assert joint.end.time.tolist() == [2001, 2006]
    assert joint.end.probability.tolist() == [0.125, 0.875]
    assert joint.holds(2003, 2003) == pytest.approx(0.125)
    assert joint.holds(2006, 2010) == pytest.approx(0.875)
    assert joint.intervals(2)[0][:2] == (2005, 2006)
    assert starts.credible(0.8) == (2000, 2005)
    assert starts.quantile(0.3) == 2005


def test_planted_gaps_and_durations_are_recovered() -> None:
    """Graduations lie at a typical age, and a start gives the end of studies."""
    rng = np.random.default_rng(3)
    rows = []
    for person in range(240):
        born = int(rng.integers(1900, 1990))
        begun = born + 19
        rows.append((f"p{person}", "born in", f"town{person % 20}", born, born))
        if person % 8:
            rows.append((f"p{person}", "studies at", f"school{person % 9}", begun, begun + 4))
    graph = small_graph(rows)
    with Workers(1) as workers:
        learned = fit_time_model(graph, TimeTraining(), workers)
    predictor = TimePredictor(learned, graph, tilp.rules.Phrasings())
    hits = []
    for person in range(0, 240, 8):
        born = rows[[r[0] for r in rows].index(f"p{person}")][3]
        query = tilp.Query("studies at", f"p{person}", "school1")
        best = predictor.ask(query, 1).intervals[0][0]
        hits.append(abs(best.start - born - 19) <= 2 and best.end == best.start + 4)
    assert np.mean(hits) >= 0.9
    other = predictor.ask(tilp.Query("studies at", "p0", "school1", 1950)).intervals[0][0]
    assert (other.start, other.end) == (1950, 1954)
    back = predictor.ask(tilp.Query("studies at", "p0", "school1", None, 1960)).intervals[0][0]
    assert (back.start, back.end) == (1956, 1960)


def test_open_ends_count_as_later_than_all() -> None:
    """Facts that go on make long durations likelier than closed facts alone do."""
    closed = [(f"a{i}", "r", "b", 2000 + i % 10, 2002 + i % 10) for i in range(40)]
    going_on = [(f"o{i}", "r", "b", 1990 + i % 3, OPEN_END) for i in range(40)]
    long_ago = [("z", "r", "b", 1970, 1999)]
    tails = []
    for rows in (closed + long_ago, closed + long_ago + going_on):
        graph = small_graph(rows)
        with Workers(1) as workers:
            learned = fit_time_model(graph, TimeTraining(), workers)
        predictor = TimePredictor(learned, graph, tilp.rules.Phrasings())
        answer = predictor.ask(tilp.Query("r", "a0", "b", 1990))
        tails.append(1 - answer.joint.end.below(2009))
    assert tails[1] > tails[0] + 0.2


def test_reasons_add_up_to_the_logit(world: TemporalGraph, predictor: TimePredictor) -> None:
    for row in range(0, 60, 7):
        ids = [int(c[row]) for c in (world.subject, world.relation, world.object)]
        answer = predictor.predict(*ids, Interval())
        best, target = answer.intervals[0][0], DateTarget.single(*ids)
        for side in ("start", "end"):
            of_end = side == "end"
            of = replace(target, start=np.array([best.start])) if of_end else target
            share = predictor.dates.distributions(of, of_end)[0].at(getattr(best, side))
            prior = predictor.dates.distributions(of, of_end, prior=True)[0]
            assert answer.prior[side] == pytest.approx(prior.at(getattr(best, side)))
            amount = sum(r.contribution for r in answer.reasons if r.side == side)
            logits = [log(p) - log(1 - p) for p in (share, answer.prior[side])]
            assert amount == pytest.approx(logits[0] - logits[1], abs=1e-5)


def test_answers_name_what_is_wrong_or_unknown(model: tilp.TILP, world: TemporalGraph) -> None:
    fact = world.fact(0)
    names = fact.subject, fact.relation, fact.object
    with pytest.raises(TilpError, match=fact.subject):
        model.predict_time(fact.subject[:-1] + "x", *names[1:])
    with pytest.raises(TilpError, match="both given"):
        model.predict_time(*names, 1990, 1991)
    with pytest.raises(TilpError, match="date"):
        model.holds(*names, "")
    answer = model.predict_time(*names, k=3)
    assert len(answer.intervals) == 3
    assert set(answer.distributions) == {"start", "end"}
    assert answer.frame().group_by("side").agg(pl.col("probability").sum())[
        "probability"
    ].to_list() == pytest.approx([1.0, 1.0])
    assert json.loads(json.dumps(answer.to_json()))["subject"] == fact.subject
    assert "probability" in answer._repr_html_()
    assert 0 <= model.holds(*names, 1950) <= 1
    assert model.holds(*names, 1950, start=1940, end=1960) == 1.0
    assert model.predict_time(*names, start=1950).intervals[0][0].start == 1950
    assert model.predict_time(*names, end=1990).intervals[0][0].end == 1990


def test_unseen_entities_get_the_prior_and_say_so() -> None:
    rows = [(f"a{i}", "r", "b", 2000 + i % 5, 2002 + i % 5) for i in range(30)]
    graph = small_graph(
        [*rows, ("new", "r", "b", UNKNOWN, UNKNOWN), ("a1", "rare", "b", 2001, 2002)]
    )
    with Workers(1) as workers:
        learned = fit_time_model(graph, TimeTraining(), workers)
    predictor = TimePredictor(learned, graph, tilp.rules.Phrasings())
    assert any("new" in note for note in predictor.ask(tilp.Query("r", "new", "b")).notes)
    assert any("too few" in note for note in predictor.ask(tilp.Query("rare", "a1", "b")).notes)


def test_tables_and_files(model: tilp.TILP, world: TemporalGraph, tmp_path: Path) -> None:
    queries = world.frame("train").head(5).select("subject", "relation", "object")
    table = model.predict_times(queries, 2)
    assert table["query"].to_list() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    first = queries.row(0)
    alone = model.predict_time(*first, k=2).intervals[0][0]
    assert table["start"][0] == str(alone.start)
    wrong = pl.concat([queries, queries.head(1).with_columns(subject=pl.lit("nobody at all"))])
    with pytest.raises(TilpError, match="query 6"):
        model.predict_times(wrong)
    skipped = model.predict_times(wrong, on_error="skip")
    assert skipped["start"][5] is None
    assert "nobody" in skipped["note"][5]
    file = tmp_path / "queries.tsv"
    queries.write_csv(file, separator="\t")
    out = tmp_path / "out"
    assert model.predict_times(file, 2, folder=out, part_size=2) is None
    parts = sorted(out.glob("part-*.parquet"))
    assert pl.concat(map(pl.read_parquet, parts)).equals(table)
    whole = [path.read_bytes() for path in parts]
    parts[1].unlink()  # as if the run had been stopped
    parts[2].write_bytes(whole[2][:100])
    before = parts[0].stat().st_mtime_ns
    model.predict_times(file, 2, folder=out, part_size=2)
    assert [path.read_bytes() for path in parts] == whole
    assert parts[0].stat().st_mtime_ns == before
    with pytest.raises(TilpError, match="was begun with"):
        model.predict_times(file, 3, folder=out, part_size=2)


def test_saved_models_answer_the_same(
    model: tilp.TILP, world: TemporalGraph, tmp_path: Path
) -> None:
    again = tilp.load(model.save(tmp_path / "model"))
    fact = world.fact(3)
    names = fact.subject, fact.relation, fact.object
    assert again.predict_time(*names).to_json() == model.predict_time(*names).to_json()
    without = tilp.TILP(max_length=1, features="none", time_model=False).fit(world)
    without = tilp.load(without.save(tmp_path / "without"))
    with pytest.raises(TilpError, match="no time model"):
        without.predict_time(*names)
    note = json.loads((tmp_path / "without" / "model.json").read_text())
    assert note["time_sha256"] is None


def test_threads_do_not_change_the_weights(world: TemporalGraph) -> None:
    fitted = []
    for threads in (1, 3):
        with Workers(threads) as workers:
            fitted.append(fit_time_model(world, TimeTraining(), workers).to_arrays())
    assert fitted[0].keys() == fitted[1].keys()
    assert all(np.array_equal(fitted[0][name], fitted[1][name]) for name in fitted[0])


def test_a_packed_graph_gives_the_same_answers(world: TemporalGraph, tmp_path: Path) -> None:
    world = world.canonical()  # a packed graph is in this order
    tilp.write(world, tmp_path / "facts")
    packed = tilp.pack(tmp_path / "facts", tmp_path / "packed")
    answers = []
    for graph in (world, packed):
        with Workers(1) as workers:
            learned = fit_time_model(graph, TimeTraining(), workers)
        predictor = TimePredictor(learned, graph, tilp.rules.Phrasings())
        rows = list(graph.rows("test"))[:5]
        facts = (graph.fact(row) for row in rows)
        queries = [tilp.Query(f.relation, f.subject, f.object) for f in facts]
        answers.append([predictor.ask(query).to_json() for query in queries])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("model", [
    tilp.TILP(1, features="none", only_earlier=True, n_jobs=1), tilp.ForecastRules(n_jobs=1)
])  # fmt: skip
def test_models_of_earlier_facts_say_that_they_do_not_know_when(
    model: tilp.TILP, world: TemporalGraph, tmp_path: Path
) -> None:
    fitted = tilp.load(model.fit(world).save(tmp_path / "model"))
    fact = world.fact(0)
    with pytest.raises(TilpError, match=r"forecaster, or was fitted with only_earlier.*to ask"):
        fitted.predict_time(fact.subject, fact.relation, fact.object)
    with pytest.raises(TilpError, match="no time model"):
        fitted.evaluate_times("test")


def test_an_end_lies_at_the_next_start() -> None:
    """Lengths differ, but a stay ends as the next one begins."""
    rng, rows = np.random.default_rng(5), []
    for person in range(80):
        times = 1900 + np.cumsum(rng.integers(2, 12, 5))
        for stay in range(4):
            place = f"town{rng.integers(9)}"
            rows.append((f"p{person}", "lives in", place, int(times[stay]), int(times[stay + 1])))
    hidden = rows[1::16]  # second stays
    graph = small_graph([row for row in rows if row not in hidden])
    with Workers(1) as workers:
        learned = fit_time_model(graph, TimeTraining(), workers)
    predictor = TimePredictor(learned, graph, tilp.rules.Phrasings())
    queries = [tilp.Query("lives in", s, o, start) for s, _, o, start, _ in hidden]
    found = [predictor.ask(query, 1).distributions["end"].mode for query in queries]
    assert np.mean(np.array(found) == [row[4] for row in hidden]) >= 0.8


def test_updates_bring_new_evidence(model: tilp.TILP) -> None:
    rows = [("Somebody New", "livesIn", "Nowhere New", 1980 + i, 1985 + i) for i in range(3)]
    new = small_graph([*rows, ("Somebody New", "invented by", "Nowhere New", 1990, 1991)])
    updated = model.update(new)
    answer = updated.predict_time("Somebody New", "livesIn", "Nowhere New")
    assert not answer.notes
    assert updated.predict_time("Somebody New", "invented by", "Nowhere New").notes


def test_weights_follow_the_names_of_relations(model: tilp.TILP, world: TemporalGraph) -> None:
    learned = model._need_fit().time
    assert learned is not None
    names = tuple(world.relations)
    turned = learned.for_relations(names[::-1])
    back = turned.for_relations(names)
    for left, right in zip((*learned.start, *learned.end), (*back.start, *back.end), strict=True):
        assert np.array_equal(left.group, right.group)
        assert np.array_equal(left.sparse, right.sparse)
    assert TimeModel.from_arrays(learned.to_arrays(), names).relations == names
    with pytest.raises(ValueError, match="relations"):
        TimeModel.from_arrays(learned.to_arrays(), names[1:])


def test_evaluation_has_all_metrics(model: tilp.TILP) -> None:
    result = model.evaluate_times("valid", sample=40).to_json(resamples=50)
    metrics = result["metrics"]
    assert {
        "aeiou@1", "aeiou@5", "aeiou@10", "giou", "gaeiou", "tac", "mae_start", "mae_end",
        "exact_start", "covered_start_80", "width_end_50", "prior_width_start_80",
        "aeiou@1_median_interval", "aeiou@1_subject_fact", "pit_start_deviation",
    } <= set(metrics)  # fmt: skip
    assert metrics["aeiou@1"] <= metrics["aeiou@5"] <= metrics["aeiou@10"] <= 1
    low, high = result["intervals"]["aeiou@1"]
    assert low <= metrics["aeiou@1"] <= high
    assert sum(row["facts"] for row in result["relations"]) == result["facts"] == 40
    with pytest.raises(TilpError, match="two known dates"):
        empty = small_graph([("a", "r", "b", 2000, UNKNOWN)])
        model.evaluate_times("train", known=replace(empty))


def test_hidden_dates_are_imputed_with_an_interval(
    model: tilp.TILP, world: TemporalGraph, predictor: TimePredictor
) -> None:
    rows = np.asarray(world.rows("valid"))
    whole = rows[finite(world.start[rows]) & finite(world.end[rows])][:60]
    end = world.end.copy()
    end[whole] = UNKNOWN
    imputed, estimates = predictor.impute(replace(world, end=end))
    hidden = estimates.filter(pl.col("fact").is_in(whole.tolist()))
    assert len(hidden) == len(whole)
    low, high = (hidden[name].cast(pl.Int64).to_numpy() for name in ("from", "to"))
    true = world.end[hidden["fact"].to_numpy()]
    assert np.mean((low <= true) & (true <= high)) > 0.6
    assert (imputed.estimated[whole] == 2).all()


def test_dates_of_relations_without_lengths_stay_missing() -> None:
    rows = [(f"a{i}", "r", "b", 2000 + i, 2003 + i) for i in range(30)]
    graph = small_graph(
        [*rows, ("c", "never ends", "d", 2000, UNKNOWN), ("c", "r", "b", 2001, UNKNOWN)]
    )
    with Workers(1) as workers:
        learned = fit_time_model(graph, TimeTraining(), workers)
    predictor = TimePredictor(learned, graph, tilp.rules.Phrasings())
    for imputed in (tilp.impute(graph), predictor.impute(graph)[0]):
        ends = dict(zip(imputed.relations, [UNKNOWN] * 2, strict=True))
        for fact in imputed.facts():
            if fact.subject == "c":
                ends[fact.relation] = fact.interval.end
        assert ends["never ends"] == UNKNOWN
        assert ends["r"] == 2004


def test_open_and_unknown_dates_are_told_apart() -> None:
    times = np.array([UNKNOWN, OPEN_START, OPEN_END, 0])
    assert finite(times).tolist() == [False, False, False, True]


def test_commands(model: tilp.TILP, world: TemporalGraph, tmp_path: Path, run) -> None:
    folder = model.save(tmp_path / "model")
    fact = world.fact(0)
    options = ["--subject", fact.subject, "--relation", fact.relation, "--object", fact.object]
    code, out, _ = run("when", folder, *options, "--json")
    assert code == 0
    assert (
        json.loads(out)["intervals"]
        == model.predict_time(fact.subject, fact.relation, fact.object).to_json()["intervals"]
    )
    code, out, _ = run("when", folder, *options, "--at", "1950")
    assert (code, "%" in out) == (0, True)
    assert run("when", folder, *options, "--start", "1950")[0] == 0
    assert run("when", folder)[0] == 2
    code, out, _ = run("evaluate", folder, "--task", "time", "--sample", 5, "--json")
    assert "aeiou@1" in json.loads(out)["metrics"]
    data = tmp_path / "data"
    tilp.write(world, data)
    code, out, _ = run("impute", data, "--model", folder, "--out", tmp_path / "imputed")
    assert code == 0, out
    assert len(pl.read_parquet(tmp_path / "imputed-estimates.parquet"))
    assert len(tilp.read(tmp_path / "imputed")) == len(world)
    # Both appear, or neither.
    (tmp_path / "other-estimates.parquet").mkdir()
    assert run("impute", data, "--model", folder, "--out", tmp_path / "other")[0] == 2
    assert not (tmp_path / "other").exists()
