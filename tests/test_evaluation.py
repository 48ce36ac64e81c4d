"""Evaluation: every protocol and tie rule against a plain reading, published values, comparison."""

import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilp
from tilp.evaluation import (
    FactSample,
    compare,
    evaluate,
    load_evaluation,
    popularity,
    recurrence,
    ties_of,
)
from tilp.graph import QueryTable
from tilp.scoring import Scores
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, parse_date
from tilp.types import Protocol, Ties, choose

COLUMNS = ["subject", "relation", "object", "start", "end", "split"]
YEARS = ["1988", "1990", "1995", "1991-05-##", "1993", "19##", "360-##-##", "-431", "present", ""]
DAYS = ["", "1990-01-01", "1990-02-01", "1990-01-02", "1990-01-05", "1990-##-##", "1990-01-09"]


def graphs(dates, unit):
    """Small graphs: few names, so that facts, triples and self loops repeat."""
    row = st.tuples(
        st.sampled_from("aaab"),
        st.sampled_from("rrrq"),
        st.sampled_from("abcd"),
        st.sampled_from(dates),
        st.sampled_from(dates),
        st.sampled_from(tilp.SPLITS),
    )
    last = st.tuples(*(st.just(one) for one in ("a", "r", "b", dates[1], dates[2], "test")))
    rows = st.tuples(st.lists(row, max_size=25), last).map(lambda both: [*both[0], both[1]])
    return rows.map(lambda rows: tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"), unit=unit))


@st.composite
def scored_graphs(draw, dates, unit):
    """A graph, and scores of all its test queries in sparse form, with many ties."""
    graph = draw(graphs(dates, unit))
    queries = 2 * len(graph.rows("test"))
    entities = len(graph.entities)
    numbers = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
    lists = [
        draw(st.dictionaries(st.integers(0, entities - 1), numbers, max_size=entities))
        for _ in range(queries)
    ]
    default = draw(st.sampled_from([0.0, -np.inf, 0.5]))
    return graph, lists, default


def as_scores(lists, default):
    return Scores(
        np.cumsum([0, *map(len, lists)]),
        np.array([one for each in lists for one in each], dtype=np.int32),
        np.array([score for each in lists for score in each.values()], dtype=np.float64),
        default,
    )


def known_year(text):
    year = text.split("-")[0]
    return int(year) if len(year) == 4 and year.isdigit() else None


def known_day(text):
    date = parse_date(text)
    return date.span("day")[0] if date.is_complete("day") else None


def instants_of(graph):
    """For every fact the instants it covers, one by one."""
    read = known_year if graph.unit == "year" else known_day
    dates = [
        (read(start), read(end))
        for start, end in zip(graph.date_text("start"), graph.date_text("end"), strict=True)
    ]
    points = {time for both in dates for time in both if time is not None}
    before, after = (0, 3000) if graph.unit == "year" else (min(points) - 1, max(points) + 1)
    points |= {before, after}
    covered = []
    for (start, end), time in zip(dates, graph.end.tolist(), strict=True):
        if start is None and end is None and time != OPEN_END:
            start = end = before
        start = before if start is None else start
        end = after if end is None else end
        end = max(start, end)
        covered.append({point for point in points if start <= point <= end})
    return covered


def filled(graph):
    """Dates in which the known end serves for both; all of time where none is known."""
    dates = []
    for start, end in zip(graph.start.tolist(), graph.end.tolist(), strict=True):
        if start == UNKNOWN and end == UNKNOWN:
            start, end = OPEN_START, OPEN_END
        dates.append((end if start == UNKNOWN else start, start if end == UNKNOWN else end))
    return dates


def oracle(graph, lists, default):
    """Ranks as fractions: all candidates sorted out one by one, instants one after the other."""
    covered, dates = instants_of(graph), filled(graph)
    everything = range(len(graph))
    facts = list(
        zip(graph.subject.tolist(), graph.relation.tolist(), graph.object.tolist(), strict=True)
    )
    directions = [facts, [(o, ("inverse", r), s) for s, r, o in facts]]
    found = {}
    asked = [(row, way) for way in directions for row in graph.rows("test")]
    for (row, way), listed in zip(asked, lists, strict=True):
        subject, head, answer = way[row]
        scores = {one: listed.get(one, default) for one in range(len(graph.entities))}
        known = [one for one in everything if way[one][:2] == (subject, head)]

        def rank(ties, removed, scores=scores, answer=answer):
            others = [s for one, s in scores.items() if one != answer and one not in removed]
            best = 1 + sum(score > scores[answer] for score in others)
            worst = 1 + sum(score >= scores[answer] for score in others)
            return {"best": best, "worst": worst, "average": Fraction(best + worst, 2)}[ties]

        start, end = dates[row]
        exact = [
            k for k in known if (graph.start[k], graph.end[k]) == (graph.start[row], graph.end[row])
        ]
        touching = [k for k in known if dates[k][0] <= end and start <= dates[k][1]]
        for ties in Ties:
            by_instant = [
                rank(ties, {way[k][2] for k in known if instant in covered[k]})
                for instant in covered[row]
            ]
            for protocol, value in (
                ("enumerate", Fraction(sum(by_instant)) / len(by_instant)),
                ("exact", rank(ties, {way[k][2] for k in exact})),
                ("overlap", rank(ties, {way[k][2] for k in touching})),
                ("static", rank(ties, {way[k][2] for k in known})),
                ("raw", rank(ties, set())),
            ):
                found.setdefault((protocol, ties.value), []).append(value)
        higher = {one for one, score in scores.items() if score > scores[answer]}
        subtracted = Fraction(0)
        for k in known:
            if way[k][2] in higher and k in graph.rows("train"):
                low, high = max(start, dates[k][0]), min(end, dates[k][1])
                if low <= high:
                    subtracted += Fraction(high - low, end - start) if start != end else 1
        rank_now = max(len(higher) - subtracted, 0) + 1
        found.setdefault(("tilp-release", "best"), []).append(rank_now)
    return found


def check_against_oracle(graph, lists, default):
    found = evaluate(as_scores(lists, default), graph)
    rows = np.asarray(graph.rows("test"))
    order = graph.canonical_order(rows)  # of the facts, in which ranks come
    order = np.concatenate([order, order + len(rows)])
    expected = {
        name: [ranks[index] for index in order]
        for name, ranks in oracle(graph, lists, default).items()
    }
    assert sorted(expected) == sorted((p.value, t.value) for p, t in found.protocols_and_ties())
    for (protocol, ties), ranks in expected.items():
        got = found.rank(protocol, ties).to_list()
        # Fractions are rounded once, as the ranks must be: a whole rank is a hit or is none.
        if protocol == "tilp-release":
            assert got == pytest.approx([float(rank) for rank in ranks], rel=1e-12)
        else:
            assert got == [float(rank) for rank in ranks], (protocol, ties)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@given(scored_graphs(YEARS, "year"))
def test_ranks_against_a_plain_reading_in_years(case):
    check_against_oracle(*case)


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@given(scored_graphs(DAYS, "day"))
def test_ranks_against_a_plain_reading_in_days(case):
    check_against_oracle(*case)


def test_an_instant_that_several_facts_cover_is_removed_once():
    # Of the query's eleven years, which are all instants, another answer covers 1992 to 1997 by
    # two facts that overlap, in any order, and one that repeats.
    spans = [("b", 1990, 2000), ("c", 1995, 1997), ("c", 1992, 1996), ("c", 1992, 1996)]
    rows = [("a", "r", one, str(start), str(end), "test") for one, start, end in spans]
    rows += [("d", "q", "e", str(year), str(year), "train") for year in range(1990, 2001)]
    graph = tilp.read(pl.DataFrame(rows, COLUMNS, orient="row"))
    higher = np.array([one == "c" for one in graph.entities], dtype=float)
    found = evaluate(lambda q: Scores.dense(np.tile(higher, (len(q), 1))), graph)
    assert found.rank("enumerate", "best")[0] == float(2 - Fraction(6, 11))


@pytest.fixture(scope="module")
def wikidata(published):
    with pytest.warns(tilp.TilpWarning):
        return tilp.read(published / "WIKIDATA12k")


@pytest.fixture(scope="module")
def popular(wikidata):
    return evaluate(popularity(wikidata), wikidata)


REFERENCE = [
    ("enumerate", "worst", 0.0507, 0.0196, 0.1054),
    ("enumerate", "average", 0.0522, 0.0196, 0.1075),
    ("enumerate", "best", 0.0556, 0.0214, 0.1146),
    ("exact", "worst", 0.0494, 0.0192, 0.1014),
    ("static", "average", 0.0547, 0.0207, 0.1110),
    ("raw", "average", 0.0502, 0.0186, 0.1025),
]


@pytest.mark.parametrize(("protocol", "ties", "mrr", "hits_at_1", "hits_at_10"), REFERENCE)
def test_reference_values_of_wikidata12k(popular, protocol, ties, mrr, hits_at_1, hits_at_10):
    found = popular.metrics(protocol, ties)
    figures = [round(one, 4) for one in (found.mrr, found.hits_at_1, found.hits_at_10)]
    assert figures == [mrr, hits_at_1, hits_at_10]


def test_reference_values_of_the_paper_s_files(published):
    # Its own files, in which every missing date was filled in.
    with pytest.warns(tilp.TilpWarning):
        graph = tilp.read(published / "WIKIDATA12k" / "tilp-release")
    found = evaluate(popularity(graph), graph, protocols=["tilp-release"]).metrics()
    figures = [round(one, 4) for one in (found.mrr, found.hits_at_1, found.hits_at_10)]
    assert figures == [0.0548, 0.0210, 0.1139]


def test_subsets_of_wikidata12k(popular):
    subsets = {(row[0], row[1]): row[2] for row in popular.by_subset().rows()}
    assert subsets["repeated", True] / len(popular) == pytest.approx(0.296, abs=5e-4)
    assert subsets["unseen", True] == 2 * 19
    assert all(subsets[name, True] + subsets[name, False] == len(popular) for name, _ in subsets)


def test_what_train_says_is_never_the_answer_in_yago11k(published):
    with pytest.warns(tilp.TilpWarning):
        graph = tilp.read(published / "YAGO11k")
    found = evaluate(recurrence(graph), graph, protocols=["enumerate"])
    assert round(found.metrics(ties="best").mrr, 2) == 0.50
    assert round(found.metrics(ties="average").mrr, 4) == 0.0002


def test_a_constant_scorer_shows_what_ties_are_worth(football):
    def constant(queries):
        none = np.array([], dtype=np.int32)
        return Scores(np.zeros(len(queries) + 1, dtype=np.int64), none, none.astype(float))

    found = evaluate(constant, football)
    for protocol in Protocol:
        assert found.metrics(protocol, "best").mrr == 1.0
    entities = len(football.entities)
    assert found.metrics("raw", "worst").mean_rank == entities
    assert found.metrics("raw", "average").mean_rank == (entities + 1) / 2
    dense = evaluate(lambda q: Scores.dense(np.full((len(q), entities), 7.0)), football)
    ranks = [name for name in found.ranks.columns if name.startswith("rank")]
    assert found.ranks.select(ranks).equals(dense.ranks.select(ranks))
    assert found.ranks["unreached"].all() and not dense.ranks["unreached"].any()


def test_a_scorer_may_say_what_rules_reach(football):
    def score(queries):
        shape = (len(queries), len(football.entities))
        return Scores.dense(np.zeros(shape), reached=queries.answer == queries.answer[0])

    unreached = evaluate(score, football, batch=1000).ranks["unreached"].to_list()
    answers = [*football.object[football.span("test")], *football.subject[football.span("test")]]
    assert unreached == [answer != answers[0] for answer in answers]


@pytest.mark.parametrize(("batch", "threads"), [(1, 1), (3, 2), (7, 3)])
def test_batches_and_threads_change_nothing(batch, threads):
    graph = tilp.datasets.world(0, 2_000).graph
    shares = []
    expected = evaluate(popularity(graph), graph)
    found = evaluate(popularity(graph), graph, batch=batch, threads=threads, progress=shares.append)
    assert found == expected
    assert shares == sorted(shares) and shares[-1] == 1.0


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_any_split_can_be_asked(football, split):
    found = evaluate(popularity(football), football, split)
    assert len(found) == 2 * len(football.rows(split))
    assert found.ranks["direction"].value_counts()["count"].n_unique() == 1


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_sample_has_the_ranks_that_its_facts_have_among_all(split):
    graph = tilp.datasets.world(0, 2_000).graph
    facts = len(graph.rows(split))
    whole = evaluate(recurrence(graph), graph, split)
    samples = [evaluate(recurrence(graph), graph, split, sample=50, seed=seed) for seed in (0, 1)]
    for seed, found in enumerate(samples):
        assert found.ranks.equals(
            whole.ranks.join(found.ranks, on=["fact", "direction"], how="semi")
        )
        assert found.ranks["fact"].n_unique() == 50 and len(found) == 100
        assert found.sample == FactSample(50, facts, seed)
        assert f"100 queries of {split}, a random sample of 50 of {facts:,} facts" in repr(found)
        again = evaluate(recurrence(graph), graph, split, sample=50, seed=seed, batch=7, threads=2)
        assert again == found
    assert set(samples[0].ranks["fact"]) != set(samples[1].ranks["fact"])
    assert evaluate(recurrence(graph), graph, split, sample=facts) == whole
    with pytest.raises(tilp.TilpError, match=r"\(seed 0\), the other of .* \(seed 1\)"):
        compare(*samples)
    with pytest.raises(tilp.TilpError, match="the sample has 0 facts; choose 1 or more"):
        evaluate(recurrence(graph), graph, split, sample=0)


def test_a_sample_of_scores_that_are_given():
    graph = tilp.datasets.world(0, 2_000).graph
    rows = np.asarray(graph.rows("test"), np.int64)
    scores = popularity(graph)(QueryTable.of_facts(graph, rows, walked=False))
    found = evaluate(scores, graph, sample=30)
    assert found == evaluate(popularity(graph), graph, sample=30)
    with pytest.raises(tilp.TilpError, match="queries have scores of"):
        evaluate(scores.take(np.arange(60)), graph, sample=30)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (lambda: Scores([0, 1], [0, 1], [1.0]), "2 candidates have 1 scores"),
        (lambda: Scores([0, 1], [0, 1], [1.0, 2.0]), "offsets rise from 0"),
        (lambda: Scores([0, 2, 1, 2], [0, 1], [1.0, 2.0]), "offsets rise from 0"),
        (lambda: Scores([0, 2], [0, 1], [1.0, np.nan]), "candidate 1 of query 0 .* not a number"),
        (lambda: Scores([0, 0], [], [], default=np.nan), "default score is not a number"),
        (lambda: Scores([0, 0], [], [], default=np.zeros(2)), "1 queries have 2 default scores"),
        (lambda: Scores([0, 1], [0.5], [1.0]), "integers of entities"),
        (lambda: Scores([0, 1], [2**40], [1.0]), "past every entity"),
        (lambda: Scores([0, 0], [], [], reached=np.ones(3)), "`reached` has shape"),
        (lambda: Scores.dense(np.zeros(3)), "one row a query"),
    ],
)
def test_scores_that_cannot_be_are_refused(scores, message):
    with pytest.raises(tilp.TilpError, match=message):
        scores()


def test_scores_that_do_not_fit_the_queries_are_refused(football):
    entities = len(football.entities)
    with pytest.raises(tilp.TilpError, match="4 queries have scores of 3"):
        evaluate(lambda _: Scores.dense(np.zeros((3, entities))), football)
    with pytest.raises(tilp.TilpError, match=rf"entities are 0 to {entities - 1}"):
        evaluate(lambda _: Scores.dense(np.zeros((4, entities + 1))), football)
    with pytest.raises(tilp.TilpError, match="query 2 of its batch lists a candidate more than"):
        evaluate(lambda _: Scores([0, 0, 0, 2, 2], [1, 1], [1.0, 2.0]), football)
    with pytest.raises(tilp.TilpError, match="protocol is 'exakt'; it can be enumerate"):
        evaluate(popularity(football), football, protocols=["exakt"])
    with pytest.raises(tilp.TilpError, match="no ranks for the protocol 'raw', only for exact"):
        evaluate(popularity(football), football, protocols=["exact"]).metrics("raw")
    with pytest.raises(tilp.TilpError, match="ties under tilp-release are best"):
        evaluate(popularity(football), football).metrics("tilp-release", "worst")


def test_an_empty_split_is_refused(facts):
    with pytest.raises(tilp.TilpError, match="the test split has no facts"):
        evaluate(lambda _: None, tilp.read(facts))


def test_figures_of_ranks_that_are_known(football):
    # Ada joins United 1994-present; Cleo is at United until 2001. Entities: Ada, Ben, Cleo,
    # Rovers, United. Scores put the answers on known ranks.
    scores = {name: float(place) for place, name in enumerate(football.entities)}
    row = np.array([scores[name] for name in football.entities])
    found = evaluate(lambda q: Scores.dense(np.tile(row, (len(q), 1))), football)
    # United is the last and so scores highest; Ada lowest, Cleo in the middle.
    assert found.rank("raw", "average").to_list() == [1.0, 1.0, 5.0, 3.0]
    metrics = found.metrics("raw")
    assert metrics.mrr == pytest.approx((1 + 1 + 1 / 5 + 1 / 3) / 4)
    assert (metrics.hits_at_1, metrics.hits_at_3, metrics.hits_at_10) == (0.5, 0.75, 1.0)
    assert metrics.mean_rank == 2.5
    # Cleo also is an answer of (?, playsFor, United), so Ada moves up.
    assert found.rank("static", "average").to_list() == [1.0, 1.0, 4.0, 3.0]
    relations = {
        (row["relation"], row["direction"]): row for row in found.by_relation("raw").to_dicts()
    }
    assert relations["playsFor", "subject"]["mean_rank"] == 4.0
    assert relations["playsFor", "object"]["mrr"] == 1.0


def test_the_bootstrap_keeps_the_queries_of_a_fact_together():
    graph = tilp.datasets.world(0, 2_000).graph
    found = evaluate(popularity(graph), graph)
    bounds = found.bootstrap(resamples=500, seed=3)
    assert bounds == found.bootstrap(resamples=500, seed=3)
    assert bounds != found.bootstrap(resamples=500, seed=4)
    mrr = bounds["mrr"]
    assert mrr.value == pytest.approx(found.metrics().mrr)
    by_fact = found.ranks.group_by("fact").agg(mrr=(1 / pl.col("rank_enumerate_average")).mean())
    error = by_fact["mrr"].std() / np.sqrt(len(by_fact))
    assert mrr.low == pytest.approx(mrr.value - 1.96 * error, abs=0.3 * error)
    assert mrr.high == pytest.approx(mrr.value + 1.96 * error, abs=0.3 * error)


def test_a_saved_evaluation_loads_equal(football, tmp_path):
    found = evaluate(popularity(football), football, note="floor")
    found.save(tmp_path / "e")
    again = load_evaluation(tmp_path / "e")
    assert again == found and again.note == "floor"
    part = evaluate(popularity(football), football, sample=1, seed=4)
    assert load_evaluation(part.save(tmp_path / "part")) == part != found
    note = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    for protocol, ties in found.protocols_and_ties():
        assert note["protocols"][protocol][ties] == found.metrics(protocol, ties).to_json()
    assert set(note["protocols"]["enumerate"]["average"]) == {
        "mrr", "hits@1", "hits@3", "hits@10", "mean_rank",
    }  # fmt: skip
    with pytest.raises(tilp.TilpError, match="not empty"):
        found.save(tmp_path / "e")


def damage_note(folder):
    path = folder / "evaluation.json"
    path.write_text(path.read_text()[:100])


def foreign_note(folder):
    (folder / "evaluation.json").write_text('{"accuracy": 0.9}')


def later_version(folder):
    path = folder / "evaluation.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))


def unknown_protocol(folder):
    path = folder / "evaluation.json"
    path.write_text(path.read_text().replace('"overlap"', '"overlapp"'))


def damage_sample(folder):
    path = folder / "evaluation.json"
    path.write_text(path.read_text().replace('"sample": null', '"sample": {"facts": 1}'))


def fewer_protocols(folder):
    path = folder / "evaluation.json"
    note = json.loads(path.read_text())
    del note["protocols"]["raw"]
    path.write_text(json.dumps(note))


def damage_ranks(folder):
    path = folder / "ranks.parquet"
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_note, "damaged"),
        (foreign_note, "not a note of the format"),
        (later_version, "version 2 of the format"),
        (unknown_protocol, "damaged"),
        (damage_sample, "damaged"),
        (fewer_protocols, "does not belong"),
        (damage_ranks, "damaged or changed"),
        (lambda folder: (folder / "ranks.parquet").unlink(), "cannot be read"),
        (lambda folder: (folder / "evaluation.json").unlink(), "no saved evaluation"),
    ],
)
def test_a_damaged_folder_is_refused(football, tmp_path, damage, message):
    evaluate(popularity(football), football).save(tmp_path / "e")
    damage(tmp_path / "e")
    with pytest.raises(tilp.TilpError, match=message):
        load_evaluation(tmp_path / "e")


def of_ranks(football, wanted):
    """An evaluation in which the answers have these ranks: so many others score higher."""

    def score(queries):
        matrix = np.zeros((len(queries), len(football.entities)))
        for row, (answer, rank) in enumerate(zip(queries.answer, wanted, strict=True)):
            others = [one for one in range(len(football.entities)) if one != answer]
            matrix[row, answer] = 1.0
            matrix[row, others[: rank - 1]] = 2.0
        return Scores.dense(matrix)

    return evaluate(score, football, protocols=["raw"])


def test_a_comparison_is_exact_on_few_facts(football):
    # Two facts; queries stand as object of each, then subject of each.
    first, second = of_ranks(football, [2, 1, 4, 1]), of_ranks(football, [1, 1, 2, 2])
    found = compare(first, second)
    assert (found.protocol, found.ties) == ("raw", "average")
    assert (found.wins, found.losses, found.draws, found.facts) == (2, 1, 1, 2)
    mrr = found.metrics["mrr"]
    assert mrr.first == pytest.approx((1 / 2 + 1 + 1 / 4 + 1) / 4)
    assert mrr.second == pytest.approx((1 + 1 + 1 / 2 + 1 / 2) / 4)
    # By fact: +0.375 and -0.25. The four flips of signs give ±0.125 and ±0.625, all of them as
    # far from zero as what was seen.
    assert mrr.difference == pytest.approx((0.375 - 0.25) / 2)
    assert mrr.p_value == 1.0
    assert mrr.low == pytest.approx(-0.25) and mrr.high == pytest.approx(0.375)
    better = compare(of_ranks(football, [2, 2, 2, 2]), of_ranks(football, [1, 1, 1, 1]))
    assert better.metrics["mrr"].p_value == 0.5  # of four flips, two: all or none
    assert better.metrics["hits@1"].difference == 1.0
    assert better.metrics["hits@10"].p_value == 1.0
    relations = better.by_relation.to_dicts()
    assert [row["wins"] for row in relations] == [2, 2]
    assert all(row["difference"] == 0.5 for row in relations)


def test_a_comparison_is_symmetric():
    graph = tilp.datasets.world(0, 3_000).graph
    first, second = (evaluate(floor(graph), graph) for floor in (popularity, recurrence))
    for protocol in Protocol:
        for ties in ties_of(protocol):
            there = compare(first, second, protocol, ties, resamples=50, flips=200)
            back = compare(second, first, protocol, ties, resamples=50, flips=200)
            assert (there.wins, there.losses) == (back.losses, back.wins)
            for name, one in there.metrics.items():
                other = back.metrics[name]
                assert one.difference == pytest.approx(-other.difference)
                assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
                assert one.p_value == other.p_value
    same = compare(first, first)
    assert same.draws == len(first) and same.metrics["mrr"].p_value == 1.0


def test_chance_is_called_chance_and_a_difference_one(football):
    graph = tilp.datasets.world(0, 5_000).graph
    chance = np.random.default_rng(0)

    def noise(queries):
        return Scores.dense(chance.random((len(queries), len(graph.entities))))

    first, second = evaluate(noise, graph), evaluate(noise, graph)
    assert compare(first, second).metrics["mrr"].p_value > 0.01
    assert compare(first, evaluate(popularity(graph), graph)).metrics["mrr"].p_value < 0.001


def test_other_queries_cannot_be_compared(football, facts):
    asked = pl.Series(["test", "test", "train", "train", "train"])
    other = tilp.read(facts.with_columns(split=asked))
    first = evaluate(popularity(football), football)
    with pytest.raises(tilp.TilpError, match="their graphs differ"):
        compare(first, evaluate(popularity(other), other))
    with pytest.raises(tilp.TilpError, match="one is of test, the other of valid"):
        compare(first, evaluate(popularity(football), football, "valid"))
    with pytest.raises(tilp.TilpError, match="no ranks for the protocol"):
        compare(first, evaluate(popularity(football), football, protocols=["raw"]), "exact")


@pytest.mark.filterwarnings("ignore:.*have no row:tilp.TilpWarning")
def test_relations_of_one_label_stay_apart(facts, tmp_path):
    for split in ("train", "test"):
        facts.write_csv(tmp_path / f"{split}.csv")
    labels = "id\tkey\tlabel\nplaysFor\tP1\tworks at\ncoachOf\tP2\tworks at\n"
    (tmp_path / "relations.tsv").write_text(labels)
    graph = tilp.read(tmp_path)
    names = evaluate(popularity(graph), graph).by_relation()["relation"].unique().sort().to_list()
    assert names == ["works at (coachOf)", "works at (playsFor)"]


# Baselines


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@given(graphs(YEARS, "year") | graphs(DAYS, "day"))
def test_recurrence_counts_what_train_says_by_its_gap_to_the_query(graph):
    queries = QueryTable.of_facts(graph, np.asarray(graph.rows("test")), walked=False)
    found = recurrence(graph)(queries)
    for number in range(len(queries)):
        head, relations = int(queries.directed_relation[number]), len(graph.relations)
        wanted = {}
        for row in graph.rows("train"):
            ends = int(graph.subject[row]), int(graph.object[row])
            given, answer = ends if head < relations else ends[::-1]
            if given == queries.subject[number] and graph.relation[row] == head % relations:
                gap = plain_gap(
                    (int(graph.start[row]), int(graph.end[row])),
                    tuple(int(one[number]) for one in queries.given_dates()),
                )
                wanted[answer] = wanted.get(answer, 0.0) + 1.0 / (1.0 + gap)
        listed = slice(found.offsets[number], found.offsets[number + 1])
        said = dict(zip(found.candidate[listed].tolist(), found.score[listed], strict=True))
        assert len(said) == listed.stop - listed.start and said == pytest.approx(wanted)


def plain_gap(one, other):
    """The time between two intervals, of which a known end serves for both."""
    spans = []
    for start, end in (one, other):
        if start == end == UNKNOWN:
            return 0
        start, end = (end if start == UNKNOWN else start), (start if end == UNKNOWN else end)
        spans.append((start, end))
    (start, end), (other_start, other_end) = spans
    if start <= other_end and other_start <= end:
        return 0
    return other_start - end if end < other_start else start - other_end


def test_fewer_queries_are_asked_at_once_where_there_are_very_many_entities():
    graph = tilp.datasets.world(0, 1_000).graph
    asked = []

    def scorer(queries):
        asked.append(len(queries))
        offsets = np.arange(len(queries) + 1)
        return Scores(offsets, queries.subject, np.ones(len(queries)), np.zeros(len(queries)))

    whole = evaluate(scorer, graph)
    again = evaluate(scorer, graph, max_candidates=10 * len(graph.entities))
    assert again.ranks.equals(whole.ranks)
    assert max(asked[1:]) == 10


@pytest.mark.parametrize(
    ("alias", "ties"), [("optimistic", "best"), ("realistic", "average"), ("pessimistic", "worst")]
)
def test_ties_have_the_names_of_other_tools(football, alias, ties):
    assert Ties(alias) is Ties(ties) is choose(Ties, alias, "ties")
    found = evaluate(popularity(football), football)
    assert found.metrics("raw", alias) == found.metrics("raw", ties)
    assert compare(found, found, "raw", alias).ties is Ties(ties)
    with pytest.raises(tilp.TilpError, match="it can be best, average, worst"):
        found.metrics("raw", "lucky")
    with pytest.raises(tilp.TilpError, match="ties under tilp-release are best"):
        found.metrics("tilp-release", "realistic")
