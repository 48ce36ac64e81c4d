"""Temporal features to read: tables, sentences, figures, and what phase two learned."""

import json
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import tilp
from tilp import TILP, TILPConfig
from tilp.errors import TilpError
from tilp.features.candidate_counts import COUNT_FEATURES
from tilp.features.candidate_history import (
    HISTORY_KINDS,
    CandidateHistory,
    fact_edges,
    listed_candidates,
)
from tilp.features.log_linear import TERMS
from tilp.figures import plot_features
from tilp.graph import QueryTable
from tilp.model.feature_tables import distribution_sentence
from tilp.types import Features, Unit

PAIR = ["evidence", "query", "other"]
ROW = {"feature": "pair", "evidence": "others", "relation": "a", "other": "b"}
ROW |= {"mean": 2.0, "deviation": 2.0, "distribution": "Gaussian", "seen": 1, "pooled": False}
BORN = {"relation": "bornIn", "other": "graduatedFrom", "evidence": "others"}


@pytest.fixture(scope="module")
def model():
    """One with all features."""
    graph = tilp.datasets.world(0, 3_000).graph
    return TILP(max_length=2, max_rules=100, n_jobs=2, config=TILPConfig(sample=40)).fit(graph)


@pytest.fixture(scope="module")
def table(model):
    return model.feature_table()


@pytest.fixture(scope="module")
def paper():
    """One with the paper's features."""
    graph = tilp.datasets.world(1, 1_000).graph
    return TILP(max_length=1, features="paper", n_jobs=2, config=TILPConfig(sample=40)).fit(graph)


@pytest.fixture(scope="module")
def rules_alone(model):
    settings = replace(model.settings, features=Features.NONE)
    return TILP.from_parts(settings, model.graph, replace(model._fitted, features=None))


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("m") / "model")


# the distributions as a table


def test_the_planted_gap_is_read_as_a_sentence(table):
    pair = table.filter(**BORN, feature="pair").row(0, named=True)
    length = f"{pair['mean']:.1f} ± {pair['deviation']:.1f} years"
    words = f"graduatedFrom starts {length} after bornIn; {pair['seen']} pairs"
    assert pair["sentence"] == words
    assert pair["distribution"] == "Gaussian" and pair["query"] == "bornIn⁻¹"
    assert pair["mean"] == pytest.approx(22, abs=0.3)
    order = table.filter(**BORN, feature="order").row(0, named=True)
    assert order["sentence"].startswith("graduatedFrom starts after bornIn in 99 % of cases; ")


def test_every_distribution_is_what_was_observed(model, table):
    distributions = model.distributions()
    observed = distributions.observed()
    size = pl.col("difference").abs()
    seen = observed.group_by(PAIR).agg(
        n=pl.len(),
        later=(pl.col("difference") > 0).sum(),
        size=size.mean(),
        spread=size.std(ddof=0),
    )
    for feature in ("order", "pair"):
        rows = table.filter(feature=feature).join(seen, on=PAIR, how="left")
        assert len(rows) == len(seen) and rows["seen"].equals(rows["n"].cast(pl.Int64))
        if feature == "order":
            fitted = (rows["later"] + 1) / (rows["n"] + 2)
            assert np.allclose(rows["probability"], fitted)
            continue
        own = rows.filter(~pl.col("pooled"))
        assert own["seen"].min() >= 5 > rows.filter("pooled")["seen"].max()
        assert np.allclose(own["mean"], own["size"].clip(lower_bound=0.5))
        gaussian = own.filter(distribution="Gaussian")
        assert len(gaussian) > 5
        assert np.allclose(gaussian["deviation"], gaussian["spread"].clip(lower_bound=0.5))
    lasting = table.filter(pl.col("sigma") > 0.1, pl.col("mu") > 0, ~pl.col("pooled"))
    assert len(lasting) >= 5  # the likeliest truncated Gaussian has the moments of the sample
    for row in lasting.iter_rows(named=True):
        lengths = distributions.lengths(row["relation"])
        assert row["seen"] == len(lengths)
        assert (row["mean"], row["deviation"]) == pytest.approx((lengths.mean(), lengths.std()))


def test_rows_are_tidy_and_the_most_often_seen_first(model, table):
    assert table["feature"].unique(maintain_order=True).to_list() == [
        "recurrence",
        "order",
        "pair",
        "duration",
    ]
    for (_,), rows in table.group_by("feature"):
        assert rows["seen"].is_sorted(descending=True)
    assert not table.select(*PAIR, "feature", "relation").is_duplicated().any()
    assert table["sentence"].null_count() == 0
    # Read from the entity that has both: the candidate of facts, the subject of walks.
    walks = table.filter(evidence="walks")
    assert len(walks) and walks["relation"].equals(walks["query"], check_names=False)
    facts = table.filter(pl.col("evidence").is_in(["between", "others"]))
    assert (
        (facts["relation"] + "⁻¹" == facts["query"]) | (facts["relation"] == facts["query"] + "⁻¹")
    ).all()
    again = dict(
        table.filter(feature="recurrence", evidence="others")
        .select("relation", "probability")
        .iter_rows()
    )
    assert again["bornIn"] < 0.05 < 0.95 < again["bornIn⁻¹"]


def test_rows_are_chosen_by_relation_evidence_and_number(model, table):
    inverse = model.feature_table("bornIn^-1")
    assert inverse.equals(model.feature_table("bornIn⁻¹"))
    paired = inverse.filter(pl.col("feature") != "duration")
    assert set(paired["relation"]) == {"bornIn⁻¹"} and len(paired) > 3
    assert inverse.filter(feature="duration")["relation"].to_list() == ["bornIn"]
    chosen = model.feature_table("bornIn", other="livesIn", evidence="walks", min_seen=20)
    expected = table.filter(
        pl.col("seen") >= 20, relation="bornIn", other="livesIn", evidence="walks"
    )
    assert chosen.equals(expected) and set(chosen["feature"]) == {"order", "pair"}
    with pytest.raises(TilpError, match="no relation is named 'bornInn'; did you mean 'bornIn'"):
        model.feature_table("bornInn")
    with pytest.raises(TilpError, match="did you mean 'livesIn'"):
        model.feature_table(other="LivesIn^-1")
    with pytest.raises(TilpError, match="it can be between, others, walks"):
        model.feature_table(evidence="facts")


def test_a_model_of_the_paper_shows_what_it_holds_and_any_other_the_same_fit(
    paper, model, rules_alone, table
):
    assert rules_alone.feature_table().equals(table)
    held = paper._fitted.features.features.distributions
    halved = replace(held, order=replace(held.order, probability=held.order.probability / 2))
    features = replace(paper._fitted.features.features, distributions=halved)
    other = TILP.from_parts(
        paper.settings,
        paper.graph,
        replace(paper._fitted, features=replace(paper._fitted.features, features=features)),
    )
    before, after = (one.feature_table().filter(feature="order") for one in (paper, other))
    joined = before.join(after, on=PAIR, suffix="_after")
    assert len(joined) == len(before)
    assert np.allclose(joined["probability"] / 2, joined["probability_after"])


@pytest.mark.parametrize(
    ("later", "mean", "deviation", "distribution", "words"),
    [
        (0.95, 5, 1, "Gaussian", "b starts 5.0 ± 1.0 days after a"),
        (0.02, 5, 1, "Gaussian", "b starts 5.0 ± 1.0 days before a"),
        (0.02, 5, 4, "Gaussian", "b starts 5.0 ± 4.0 days at or before a"),
        (0.5, 1234, 4, "Gaussian", "b starts 1,234.0 ± 4.0 days before or after a"),
        (0.95, 5, 5, "exponential", "b starts on average 5.0 days after a"),
    ],
)
def test_sentences_of_pairs(later, mean, deviation, distribution, words):
    row = ROW | {"mean": mean, "deviation": deviation, "distribution": distribution}
    assert distribution_sentence(row, later, Unit.DAY) == f"{words}; 1 pair"


def test_sentences_say_where_and_of_how_many():
    row = ROW | {"other": "a", "evidence": "between", "distribution": "exponential"}
    same = distribution_sentence(row, 0.5, Unit.INTEGER)
    assert same == "another a starts on average 2.0 before or after a between the same two; 1 pair"
    row = ROW | {"feature": "duration", "mean": 0.2, "seen": 3, "pooled": True}
    assert distribution_sentence(row, None, Unit.INTEGER) == (
        "a lasts less than 1; 3 intervals, too few: pooled with other relations"
    )


# what phase two learned


def test_learned_words_add_up_to_the_terms_of_scores(model):
    """Of some candidates: the words for their facts, looked up by what they say."""
    graph, learned = model.graph, model.feature_weights()
    queries = QueryTable.of_facts(graph, np.asarray(graph.rows("test")), walked=False)
    size = 2 * len(graph.relations)
    queries = queries[np.arange(0, len(queries), 12)]
    candidates = np.unique(np.append(queries.answer, queries.subject))[:60]
    begin = np.arange(len(queries) + 1) * len(candidates)
    listed = np.tile(candidates, len(queries)).astype(np.int32)
    terms = model.scorer().contributions(queries, begin, listed)
    facts = CandidateHistory(fact_edges(graph), size, model._fitted.features.distance_bounds)
    of, words = facts.list_features(listed_candidates(queries, begin, listed))
    columns = ("query", "part", "of", "words")
    weights = dict(
        zip(learned.select(columns).iter_rows(), learned["weight"].to_list(), strict=True)
    )
    found = {kind: np.zeros(len(listed)) for kind in HISTORY_KINDS}
    for place in range(len(listed)):
        head = graph.relations.label(queries.directed_relation[place // len(candidates)])
        for number in words[of[place] : of[place + 1]].tolist():
            group, word = divmod(number, facts.n_features)
            kind, relation = divmod(group, size)
            said = (graph.relations.label(relation), facts.describe(word, "year"))
            found[HISTORY_KINDS[kind]][place] += weights.get(
                (head, HISTORY_KINDS[kind], *said), 0.0
            )
    for kind in HISTORY_KINDS:
        assert np.abs(terms[kind]).max() > 0.1
        assert np.allclose(found[kind], terms[kind])


def test_learned_weights_are_told_the_strongest_first(model):
    learned, joint = model.feature_weights(), model._fitted.features
    of_rules = learned.filter(part="rule evidence")
    expected = {
        str(one.rule): weight
        for one, weight in zip(model._fitted.rules, joint.rule, strict=True)
        if weight
    }
    assert dict(of_rules.select("of", "weight").iter_rows()) == expected and expected
    relations = model.graph.relations
    for place, part in enumerate(("rules", "random walks")):
        weights = dict(learned.filter(part=part).select("query", "weight").iter_rows())
        for head in range(2 * len(relations)):
            assert weights.get(relations.label(head), 0.0) == joint.dense[head, place]
    one = model.feature_weights("livesIn^-1")
    assert set(one["query"]) == {"livesIn⁻¹"} and one["part"][0] == "rules"
    words = one.filter(pl.col("words").is_not_null())
    assert words["weight"].abs().is_sorted(descending=True) and len(words) > 100
    first = words.row(0, named=True)
    said = f"{first['of']} of the candidate: {first['words']}: {first['weight']:+.2f}"
    assert first["part"] == "other facts" and first["sentence"] == said
    head = relations.find("livesIn") + len(relations)
    factors = one.filter(part="factor")
    assert dict(factors.select("of", "weight").iter_rows()) == dict(
        zip(TERMS, joint.terms[head].tolist(), strict=True)
    )
    assert factors["sentence"][0] == f"rules: learned weights × {joint.terms[head, 0]:.2f}"
    counts = [one.filter(part=name)["weight"].sum() for name in COUNT_FEATURES]
    assert counts == joint.counts[head].tolist() and any(counts)


def test_learned_weights_of_the_paper_are_products(paper, rules_alone):
    weights = paper._fitted.features.weights
    learned = dict(paper.feature_weights().select("part", "weight").iter_rows())
    assert learned.pop("rules") == weights.rules
    assert sum(learned.values()) == pytest.approx(weights.features * weights.evidence.sum())
    share = weights.features * weights.evidence[1] * weights.mixing[1, 2]
    assert learned["pair_others"] == pytest.approx(share)
    with pytest.raises(TilpError, match="fit one with --features full"):
        rules_alone.feature_weights()


# on the command line


def test_help_names_every_option(run):
    code, out, err = run("features", "--help")
    assert code == 0 and err == ""
    words = "MODEL --relation --other --evidence --min-seen --top --learned --plot --json --threads"
    assert [word for word in words.split() if word not in out] == []


def test_features_are_shown_in_short(run, folder, table):
    code, out, err = run("features", folder)
    assert code == 0 and err == "" and len(out.splitlines()) < 60
    for feature in ("pair", "duration"):
        rows = table.filter(feature=feature)
        assert rows["sentence"][0] in out and rows["sentence"][10] not in out
        assert f"10 of {len(rows):,}" in out
    assert "Recurrence" in out and "TemporalOrder" in out and "--top N" in out
    code, out, _ = run("features", folder, "--top", 11)
    assert code == 0 and table.filter(feature="pair")["sentence"][10] in out


def test_features_of_one_pair(run, folder, table):
    code, out, _ = run("features", folder, "--relation", "bornIn", "--other", "graduatedFrom")
    assert code == 0 and "graduatedFrom starts 22." in out and "years after bornIn; " in out
    assert "Recurrence" not in out and "Duration" not in out
    code, out, _ = run("features", folder, "--relation", "bornIn", "--min-seen", 10**6)
    assert code == 0 and out == "nothing of the kind was seen in the training facts\n"
    code, out, err = run("features", folder, "--relation", "bornInn")
    assert code == 2 and out == "" and "did you mean 'bornIn'" in err


def test_features_for_programs(run, folder, table):
    code, out, err = run("features", folder, "--json")
    assert code == 0 and err == "" and json.loads(out) == table.to_dicts()
    code, out, _ = run("features", folder, "--json", "--top", 2, "--evidence", "others")
    expected = table.filter(evidence="others").group_by("feature", maintain_order=True).head(2)
    assert json.loads(out) == expected.to_dicts() and len(expected) == 6


def test_learned_weights_are_shown(run, folder, model, paper, tmp_path):
    code, out, _ = run("features", folder, "--learned")
    learned = model.feature_weights()
    assert code == 0 and all(f"│ {name} " in out for name in learned["query"].unique())
    code, out, _ = run("features", folder, "--learned", "--relation", "livesIn^-1", "--top", 3)
    one = model.feature_weights("livesIn⁻¹")
    words = one.filter(pl.col("words").is_not_null())
    assert code == 0 and out.startswith("(s, livesIn⁻¹, ?)\n")
    single = one.filter(pl.col("of").is_null() | (pl.col("part") == "factor"))
    assert all(sentence in out for sentence in single["sentence"])
    for row in words.head(3).iter_rows(named=True):
        assert f"{row['weight']:+.2f} │ {row['of']}" in out and row["words"] in out
    assert f"evidence of rules: 3 of {len(one.filter(part='rule evidence'))}" in out
    code, out, _ = run("features", folder, "--learned", "--relation", "livesIn^-1", "--json")
    assert code == 0 and json.loads(out) == one.to_dicts()
    code, out, err = run("features", folder, "--learned", "--other", "livesIn")
    assert code == 2 and out == "" and "it goes with --relation, --top and --json" in err
    code, out, _ = run("features", paper.save(tmp_path / "paper"), "--learned")
    assert code == 0 and "pair in the candidate's other facts" in out


def test_what_was_observed_is_drawn_with_what_is_fitted(run, tmp_path, folder, model, table):
    figure = tmp_path / "pair.png"
    code, out, err = run(
        "features", folder, "--relation", "bornIn", "--other", "graduatedFrom", "--plot", figure
    )
    assert code == 0 and err == "" and f"{figure}: drawn" in out
    assert figure.read_bytes().startswith(b"\x89PNG")
    drawn = tmp_path / "all.svg"
    assert run("features", folder, "--plot", drawn)[0] == 0
    assert drawn.read_text().count("<!-- fitted -->") == 1  # one legend for all panels
    code, _, err = run("features", folder, "--relation", "bornIn", "--min-seen", 10**6,
                       "--plot", tmp_path / "none.png")  # fmt: skip
    assert code == 2 and "nothing to draw" in err
    assert run("features", folder, "--plot", tmp_path / "pair.doc")[0] == 2


def test_a_panel_has_bars_and_a_curve_of_the_same_mass(model, table, tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr("tilp.figures._save", lambda figure, path: kept.append(figure))
    plot_features(model.distributions(), table.filter(**BORN), tmp_path / "pair.png")
    (axes,) = kept[0].axes
    heights = [bar.get_height() for bar in axes.patches]
    middles = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    pairs = table.filter(**BORN, feature="pair")["seen"].item()
    assert sum(heights) == pairs
    at, expected = axes.lines[0].get_data()
    assert np.interp(middles, at, expected).sum() == pytest.approx(pairs, rel=0.03)
    assert at[np.argmax(expected)] == pytest.approx(22, abs=0.5)
    assert axes.get_xlabel() == "years from bornIn to graduatedFrom"
    assert axes.get_ylabel() == "pairs" and "22." in axes.get_title(loc="left")


def test_without_matplotlib_the_remedy_is_told(run, tmp_path, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = run("features", folder, "--plot", tmp_path / "pair.png")
    assert code == 2 and 'pip install "tilp[plot]"' in err


def test_directed_relations_are_found_by_name(model):
    relations = model.graph.relations
    number = relations.find("livesIn")
    assert relations.find_directed("livesIn") == number
    assert relations.find_directed("livesIn^-1") == number + len(relations)
    assert relations.find_directed("livesIn⁻¹") == number + len(relations)
