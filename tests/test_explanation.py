"""Explanations: reasons that add up, groundings that are there, why not, text, JSON, command."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import tilp
from oracles import edges_of, lift, nearest_intervals, walk_gap, walks_from
from tilp import TILP, Query, TILPConfig
from tilp.errors import TilpError
from tilp.explanation import Explanation, Reason
from tilp.explanation.render import ablation_text, contrast_lines, grounding_text, reason_lines
from tilp.features.candidate_counts import COUNT_PARTS
from tilp.features.candidate_history import HISTORY_KINDS
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.learning.rule_weights import TrainingSettings
from tilp.rules import Atom, Notation, format_rule
from tilp.scoring import RuleScorer
from tilp.scoring.queries import query_table
from tilp.time import UNKNOWN, Interval, known_ends

QUICK = {
    "max_length": 2,
    "max_rules": 100,
    "n_jobs": 1,
    "config": TILPConfig(sample=40, training=TrainingSettings(steps=20)),
}
FEATURES = ["none", "paper", "full"]
SCORERS = {"none": RuleScorer, "paper": PaperFeatureScorer, "full": LogLinearScorer}


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(0, 1_500).graph


@pytest.fixture(scope="module")
def models(world, quick_features):
    """A fitted model of each kind, made when it is first asked for."""
    fitted = {}

    def get(features):
        if features not in fitted:
            fitted[features] = TILP(features=features, **QUICK).fit(world)
        return fitted[features]

    return get


@pytest.fixture
def model(models, request):
    return models(request.param)


def asked(graph, split="valid", count=12, seed=0):
    """Facts of a split as queries, in turns for the object and for the subject; with answers."""
    rows = np.random.default_rng(seed).permutation(np.asarray(graph.rows(split)))[:count]
    found = []
    for number, row in enumerate(rows.tolist()):
        fact = graph.fact(row)
        dates = [
            None if one == UNKNOWN else one for one in (fact.interval.start, fact.interval.end)
        ]
        ends = (fact.subject, None) if number % 2 else (None, fact.object)
        answer = fact.object if number % 2 else fact.subject
        found.append((Query(fact.relation, *ends, *dates), answer))
    return found


def adds_up(parts, whole):
    parts = list(parts)
    return sum(parts) == pytest.approx(whole, rel=1e-9, abs=1e-9 * sum(map(abs, parts)) + 1e-15)


# the contract of every scorer


def listed(scores, query):
    """Return the scores of all entities that are listed for a query."""
    part = slice(scores.offsets[query], scores.offsets[query + 1])
    return dict(zip(scores.candidate[part].tolist(), scores.score[part].tolist(), strict=True))


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_scores_do_not_depend_on_the_batch_nor_on_what_is_passed(world, model):
    scorer = model.scorer()
    queries = query_table(world, [query for query, _ in asked(world)])
    scores = scorer.score(queries)
    again = scorer.score(queries, scorer.rule_scorer.apply_rules(queries))
    for name in ("offsets", "candidate", "score", "default", "reached"):
        for other in (again, scorer(queries)):
            assert np.array_equal(getattr(scores, name), getattr(other, name))
    backwards = scorer.score(queries[np.arange(len(queries))[::-1]])
    for query in range(len(queries)):
        alone = scorer.score(queries[np.array([query])])
        assert listed(scores, query) == listed(alone, 0)
        assert listed(scores, query) == listed(backwards, len(queries) - 1 - query)


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_contributions_and_attributions_add_up_to_scores(world, model):
    scorer = model.scorer()
    for query, answer in asked(world, count=4):
        table = query_table(world, [query])
        offsets, entity = np.array([0, 1]), np.array([world.entities.find(answer)], np.int32)
        (score,) = scorer.score(table).of_candidates(offsets, entity)
        parts = scorer.contributions(table, offsets, entity)
        assert adds_up((float(part[0]) for part in parts.values()), score)
        applied = scorer.rule_scorer.apply_rules(table)
        single = scorer.attribute_score(table, int(entity[0]), applied)
        assert adds_up((part.score for part in single), score)
        assert len({part.key for part in single}) == len(single)


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_scorers_estimate_memory_and_leave_out_facts(world, model):
    scorer = model.scorer()
    queries = query_table(world, [query for query, _ in asked(world)])
    memory = scorer.memory_per_query(queries)
    assert memory.shape == (len(queries),) and (memory > 0).all()
    same = scorer.without([])
    assert np.array_equal(same.score(queries).score, scorer.score(queries).score)
    less = scorer.without(range(0, len(world.rows("train")), 2))
    assert not np.array_equal(less.score(queries).score, scorer.score(queries).score)


# reasons add up


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_reasons_add_up_to_the_score_that_is_predicted(world, model):
    assert isinstance(model.scorer(), SCORERS[model.settings.features])
    seen = set()
    for number, (query, answer) in enumerate(asked(world)):
        table = model.predict(query, len(world.entities))
        last = table["candidate"][-1]
        chosen = world.entities.label(number * 7 % len(world.entities))
        for name in (None, answer, last, chosen):
            found = model.explain(query, name, groundings=0)
            row = table.filter(pl.col("candidate") == found.candidate).row(0, named=True)
            assert found.candidate == (name or table["candidate"][0])
            assert found.winner == table["candidate"][0] and found.query == query
            assert (found.rank, found.known) == (row["rank"], row["known"])
            assert found.score == pytest.approx(row["score"], rel=1e-12)
            assert found.share == pytest.approx(row["share"], rel=1e-12)
            assert adds_up((one.score for one in found.reasons), found.score)
            sizes = [abs(one.score) for one in found.reasons]
            assert sizes == sorted(sizes, reverse=True) and all(one.text for one in found.reasons)
            seen |= {one.kind for one in found.reasons}
    expected = {
        "none": {"rule", "prior"},
        "paper": {"rule", "prior", "recurrence", "order", "pair", "not looked at"},
        "full": {"rule", "prior", *HISTORY_KINDS, "random walks", *COUNT_PARTS},
    }
    assert seen == expected[model.settings.features]


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_each_part_has_its_reasons(world, model):
    """Reasons of a kind add up to the contribution of the scorer."""
    kinds = {"rules": "rule", "rule evidence": "rule"}
    for query, answer in asked(world, seed=1):
        found = model.explain(query, answer, groundings=0)
        entity = np.array([world.entities.find(answer)], np.int32)
        parts = model.scorer().contributions(query_table(world, [query]), np.array([0, 1]), entity)
        if any(one.kind == "not looked at" for one in found.reasons):
            continue
        together = {}
        for name, part in parts.items():
            kind = kinds.get(name, name.partition("_")[0])
            together[kind] = together.get(kind, 0.0) + float(part[0])
        for kind, expected in together.items():
            of_kind = [one.score for one in found.reasons if one.kind == kind]
            assert sum(of_kind) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_what_was_not_looked_at_is_named(world, models, monkeypatch):
    query, _ = asked(world)[1]
    monkeypatch.setattr(models("paper").scorer(), "max_candidates", 1)
    far = models("paper").predict(query, len(world.entities))["candidate"][-1]
    found = models("paper").explain(query, far)
    (only,) = [one for one in found.reasons if one.kind == "not looked at"]
    assert "too low for features to be looked at" in only.text
    assert adds_up((one.score for one in found.reasons), found.score)
    monkeypatch.setattr(models("full").scorer(), "max_entities", 0)
    listed = set(models("full").scorer()(query_table(world, [query])).candidate.tolist())
    outside = next(one for one in range(len(world.entities)) if one not in listed)
    found = models("full").explain(query, world.entities.label(outside))
    assert [(one.kind, one.score) for one in found.reasons] == [("not looked at", 0.0)]
    assert found.score == 0.0
    found = models("full").explain(query)
    assert adds_up((one.score for one in found.reasons), found.score) and found.score != 0


@pytest.mark.parametrize("missing", ["unknown", "duration", "open"])
def test_reasons_add_up_however_missing_dates_are_taken(world, quick_features, missing):
    model = TILP(missing=missing, **QUICK).fit(world)
    for query, answer in asked(world, "test", 6):
        for start, end in ((query.start, query.end), (query.start, None), (None, None)):
            dated = Query(query.relation, query.subject, query.object, start, end)
            found = model.explain(dated, answer)
            assert adds_up((one.score for one in found.reasons), found.score)
            assert all(one.groundings for one in found.shown if one.kind == "rule")


# rules and their groundings


def settled_interval(query, world):
    table = query_table(world, [query])
    return (
        int(table.subject[0]),
        int(table.directed_relation[0]),
        Interval(int(table.start[0]), int(table.end[0])),
    )


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_groundings_of_rules_are_walks_that_satisfy_them(world, model):
    edges = edges_of(world)
    grains = model.settings.mining.grains
    for query, answer in asked(world, seed=2, count=8):
        subject, _, time = settled_interval(query, world)
        atom = Atom(query.relation, query.subject is None)
        walks = {}
        for walk in walks_from(edges, subject, 2, -1):
            if world.entities.label(walk[-1][1]) == answer:
                for rule in {lift(walk, atom, time, grain) for grain in grains}:
                    walks.setdefault(rule, []).append(walk)
        found = model.explain(query, answer, groundings=10_000, max_reasons=None)
        fired = [one for one in found.reasons if one.kind == "rule"]
        weighty = {one.rule for one in model.rules() if one.weight} & set(walks)
        assert {one.rule.rule for one in fired} >= weighty
        for one in fired:
            plain = walks[one.rule.rule]
            assert one.walks == len(plain) == len(one.groundings)
            assert one.rule == model.rules()[one.rule.rule]
            assert one.text == format_rule(one.rule.rule, Notation.SENTENCE)
            facts = {
                tuple((step.fact_id, step.inverse) for step in grounding.steps)
                for grounding in one.groundings
            }
            gaps = {
                tuple((edge[3], edge[0].inverse) for edge in walk): walk_gap(walk, time)
                for walk in plain
            }
            assert facts == set(gaps)
            for grounding in one.groundings:
                steps = grounding.steps
                assert steps[0].source == world.entities.label(subject)
                assert steps[-1].target == answer
                assert all(a.target == b.source for a, b in pairwise(steps))
                assert all(world.fact(step.fact_id) == step.fact for step in steps)
            order = [
                gaps[tuple((step.fact_id, step.inverse) for step in grounding.steps)]
                for grounding in one.groundings
            ]
            assert order == sorted(order)


@pytest.mark.parametrize("model", ["none"], indirect=True)
def test_as_many_groundings_and_reasons_as_are_asked_for(world, model):
    explained = (model.explain(*one, max_reasons=None, groundings=10_000) for one in asked(world))
    every = max(explained, key=lambda one: sum(reason.walks for reason in one.reasons))
    query, answer = every.query, every.candidate
    assert len(every.reasons) > 4 and any(one.walks > 2 for one in every.reasons)
    found = model.explain(query, answer, max_reasons=4, groundings=2)
    assert found.score == every.score and len(found.shown) == 4 < len(found.reasons)
    for place, (one, whole) in enumerate(zip(found.reasons, every.reasons, strict=True)):
        expected = whole.groundings[:2] if place < 4 else ()
        assert one.groundings == expected and one.score == whole.score
        if one.kind == "rule":
            assert one.walks == whole.walks


@pytest.mark.parametrize("model", ["none"], indirect=True)
def test_shares_of_rules_are_those_of_equation_15(world, model):
    """score(Rule) · N^power · α, where candidates known at other times count by their factor."""
    weights = model.weights
    number = {one.rule: place for place, one in enumerate(model._need_fit().rules)}
    scorer = model.scorer()
    several = 0
    for query, answer in asked(world, seed=3):
        table = query_table(world, [query])
        applied = scorer.apply_rules(table)
        entity = world.entities.find(answer)
        factor = dict(
            zip(
                applied.known.entity.tolist(),
                weights.factor[table.directed_relation[0], applied.known.mark - 1].tolist(),
                strict=True,
            )
        )
        for one in model.explain(query, answer, groundings=0).reasons:
            if one.kind != "rule":
                continue
            rule = number[one.rule.rule]
            ends = {int(r[2]): int(r[3]) for r in applied.rows if r[1] == rule}
            counted = {end: n * factor.get(end, 1.0) for end, n in ends.items()}
            share = counted[entity] / sum(counted.values())
            expected = weights.rule[rule] * sum(ends.values()) ** weights.walks_power * share
            assert one.score == pytest.approx(expected, rel=1e-9) and one.walks == ends[entity]
            several += len(ends) > 1 and any(end in factor for end in ends)
    assert several


# other reasons


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_the_prior_tells_how_often_it_is_an_answer(world, model):
    train = world.frame("train")
    for query, answer in asked(world, count=6):
        found = model.explain(query, answer)
        (one,) = [reason for reason in found.reasons if reason.kind == "prior"]
        end = "object" if query.subject else "subject"
        of_relation = train.filter(relation=query.relation)
        count = of_relation.filter(pl.col(end) == answer).height
        facts = f"{count:,} of {of_relation.height:,} {query.relation} facts"
        assert one.text == f"asked for without any evidence: {facts} have it as their {end}"


@pytest.mark.parametrize("model", ["full"], indirect=True)
def test_facts_of_the_candidate_are_the_nearest_of_their_relation(world, model):
    edges = edges_of(world)
    size = len(world.relations)
    kinds = set()
    for query, answer in asked(world, "train", 40, seed=4):
        subject, _, time = settled_interval(query, world)
        entity = world.entities.find(answer)
        nearest = nearest_intervals(world, edges, entity, subject, -1, time)
        start, end = known_ends(world.start, world.end)
        for one in model.explain(query, answer, max_reasons=None).reasons:
            if one.kind not in HISTORY_KINDS:
                continue
            (grounding,) = one.groundings
            (step,) = grounding.steps
            assert one.walks == 1 and step.source == answer
            relation = world.relations.find(step.fact.relation) + size * step.inverse
            group = HISTORY_KINDS.index(one.kind) * 2 * size + relation
            plain = nearest[group]
            assert (int(start[step.fact_id]), int(end[step.fact_id])) == (plain.start, plain.end)
            assert (step.target == world.entities.label(subject)) == (one.kind == HISTORY_KINDS[1])
            assert step.fact.relation in one.text
            asks_it = relation == (query.subject is not None) * size + world.relations.find(
                query.relation
            )
            assert one.text.startswith("another ") == asks_it
            kinds.add(one.kind)
    assert kinds == set(HISTORY_KINDS)


@pytest.mark.parametrize("model", ["full"], indirect=True)
def test_soft_walks_are_grounded_by_the_likeliest(world, model):
    seen = 0
    for query, answer in asked(world, count=6):
        for one in model.explain(query, answer, groundings=9, max_reasons=None).reasons:
            if one.kind != "random walks":
                continue
            assert one.groundings and one.walks == len(one.groundings)
            for grounding in one.groundings:
                assert grounding.steps[0].source == (query.subject or query.object)
                assert grounding.steps[-1].target == answer
                assert 2 < len(grounding.steps) <= model.settings.walk_length
            seen += 1
    assert seen


@pytest.mark.parametrize("model", ["paper"], indirect=True)
def test_the_features_of_the_paper_are_told_with_their_facts(world, model):
    start, _ = known_ends(world.start, world.end)
    seen = set()
    for query, answer in asked(world, "test", 14):
        _, _, time = settled_interval(query, world)
        for one in model.explain(query, answer, max_reasons=None).reasons:
            if one.kind in ("order", "pair"):
                (grounding,) = one.groundings
                apart = [int(start[step.fact_id]) - time.start for step in grounding.steps]
                said = one.text.split(" starts ")[1]
                if one.kind == "order":
                    assert any((d > 0) == said.startswith("after the query;") for d in apart)
                    assert said.endswith("do")
                else:
                    told = said.split(" the query; usual ")[0]
                    assert told in {in_words(d) for d in apart}
                seen.add((one.kind, len(grounding.steps) > 1))
                if "on walks" in one.text:
                    assert grounding.steps[-1].target == answer
                    assert grounding.steps[0].source == (query.subject or query.object)
                else:
                    assert grounding.steps[0].source == answer
                relations = {step.fact.relation for step in grounding.steps}
                assert one.text.removeprefix("another ").split(" ")[0] in relations
            elif one.kind == "recurrence":
                assert bool(one.groundings) == ("has another" in one.text)
                assert all(g.steps[0].fact.relation == query.relation for g in one.groundings)
                seen.add(("recurrence", bool(one.groundings)))
    assert seen == {(kind, both) for kind in ("order", "pair", "recurrence") for both in (0, 1)}


def in_words(apart):
    if not apart:
        return "with"
    side = "after" if apart > 0 else "before"
    return f"{abs(apart)} year{'' if abs(apart) == 1 else 's'} {side}"


# why not


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_contrasts_add_up(world, model):
    for query, answer in asked(world, seed=5):
        best = model.explain(query)
        assert best.rank == 1 and best.winner == best.candidate and best.contrasts == ()
        names = {answer, world.entities.label(3)} - {best.candidate}
        for name in names:
            found = model.explain(query, name, groundings=1)
            more = [one.winner - one.candidate for one in found.contrasts]
            assert more == sorted(more, reverse=True)
            assert adds_up(more, best.score - found.score)
            assert adds_up((one.winner for one in found.contrasts), best.score)
            assert adds_up((one.candidate for one in found.contrasts), found.score)
            rules = [one.reason.rule for one in found.contrasts if one.reason.rule]
            assert len(set(rules)) == len(rules)
            for one in found.contrasts:
                of_whom = one.winner or one.candidate
                assert one.reason.score == of_whom


# as text and as JSON


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0.5, "attributed to these facts"),
        (0.45, "attributed to these facts"),
        (0.8, "take over much of it"),
        (0.2, "other rules lose walks too"),
    ],
)
@pytest.mark.parametrize("model", ["none"], indirect=True)
def test_an_effect_far_from_the_attribution_is_said_to_be(world, model, share, told):
    query, _ = asked(world)[0]
    effect = model.explain(query).ablation
    assert ablation_text(replace(effect, share=share, score_without=2.0, drop=2.0)).endswith(told)
    # Nothing is attributed of a score that is not positive.
    assert ablation_text(replace(effect, share=0.0, score_without=-2.0, drop=1.0)).endswith(
        "to these facts"
    )


def reasons_and_lacks(explanation):
    held = explanation.to_json()
    return held["reasons"], held["lacks"]


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_json_holds_all_that_is_shown(world, model):
    query, answer = next(
        (query, answer)
        for query, answer in asked(world, count=40)
        if model.explain(query, groundings=0).candidate != answer
        and min(map(len, reasons_and_lacks(model.explain(query, answer, groundings=0)))) >= 3
    )
    found = model.explain(query, answer, max_reasons=3, groundings=2)
    held = found.to_json()
    assert json.loads(json.dumps(held)) == held
    assert held["query"] == {
        "relation": query.relation,
        "subject": query.subject,
        "object": query.object,
        "start": query.start,
        "end": query.end,
    }
    for name in ("candidate", "rank", "score", "share", "known", "winner"):
        assert held[name] == getattr(found, name)
    assert len(held["reasons"]) == 3 and len(held["lacks"]) == 3
    assert model.explain(query, answer, ablation=False).to_json()["fall"] is None
    assert found.ablation is not None
    for key, name in (("share", "share"), ("score", "score_without"), ("fall", "drop")):
        assert held["fall"][key] == getattr(found.ablation, name)
    numbers = [fact["number"] for fact in held["fall"]["grounding"]["facts"]]
    assert numbers == [step.fact_id for step in found.ablation.grounding.steps]
    assert held["rest"]["count"] == len(found.reasons) - 3
    assert adds_up([*(one["score"] for one in held["reasons"]), held["rest"]["score"]], found.score)
    for end, whole in (("winner", model.explain(query).score), ("candidate", found.score)):
        parts = [*(one[end] for one in held["lacks"]), held["lacks_rest"][end]]
        assert adds_up(parts, whole)
    assert held["lacks_rest"]["count"] == len(found.contrasts) - 3
    for one, reason in zip(held["reasons"], found.reasons, strict=False):
        assert set(one) == {"kind", "score", "words", "walks", "rule", "groundings"}
        assert (one["rule"] is None) == (reason.rule is None)
        if reason.rule is not None:
            assert one["rule"]["text"] == str(reason.rule.rule)
            assert one["rule"]["weight"] == reason.rule.weight
        for grounding, plain in zip(one["groundings"], reason.groundings, strict=True):
            fact, step = grounding["facts"][0], plain.steps[0]
            assert fact["number"] == step.fact_id and fact["inverse"] == step.inverse
            assert (fact["subject"], fact["object"]) == (step.fact.subject, step.fact.object)
            assert fact["start"] is None or fact["start"] == str(step.fact.interval.start)


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_text_has_reasons_facts_and_contrasts(world, model):
    for query, answer in asked(world, count=6):
        found = model.explain(query, answer, max_reasons=3)
        text = str(found)
        assert text == found.text() and text.startswith(f"{query}: why {answer}?")
        assert f"rank {found.rank:,}" in text
        for one in found.shown:
            assert f"{one.score:+.4f}  {one.kind}: {one.text}" in text
            for grounding in one.groundings:
                assert grounding_text(grounding) in text
        hidden = len(found.reasons) - 3
        if hidden > 0:
            assert f"{hidden:,} further reason" in text
        assert (f"What {found.winner} has more than" in text) == (found.rank > 1)
        assert adds_up((line.score for line in reason_lines(found)), found.score)
        if found.rank > 1:
            best = model.explain(query, groundings=0).score
            lines = list(contrast_lines(found))
            assert adds_up((line.score for line in lines), best - found.score)
            against = any(one.winner < one.candidate for one in found.contrasts)
            assert (f"what {answer} has more: " in text) == against


def test_a_walk_reads_along_its_arrows(facts):
    graph = tilp.read(facts)
    steps = [(0, False), (2, True), (3, False)]
    walked = tilp.explanation.Grounding(
        tuple(tilp.explanation.WalkedFact(n, graph.fact(n), inverse) for n, inverse in steps)
    )
    assert grounding_text(walked) == (
        "Ada → playsFor [1990, 1993] → Rovers ← playsFor [1985, 1992] ← Ben "
        "→ coachOf [1999, 2004] → Rovers"
    )


def test_an_explanation_without_reasons_can_be_shown():
    empty = Explanation(Query("r", "a"), "b", 1, 0.0, 0.5, True, (), winner="b")
    assert "already known as an answer at that time" in str(empty)
    assert empty.to_json()["reasons"] == [] and empty.to_json()["rest"]["count"] == 0
    one = Explanation(
        Query("r", "a"), "b", 1, 0.5, 0.5, False, (Reason("prior", 0.5, "often"),), max_reasons=0
    )
    assert "+0.5000  1 further reason: 1 × prior" in str(one)


@pytest.mark.parametrize("model", ["none"], indirect=True)
def test_old_names_of_explanations_work_and_warn(world, model):
    query, answer = asked(world)[0]
    found = model.explain(query, answer)
    reason, step = found.reasons[0], found.ablation.grounding.steps[0]
    for owner, old, new in (
        (found, "fall", "ablation"),
        (found, "lacks", "contrasts"),
        (found, "shown_lacks", "shown_contrasts"),
        (found, "top", "max_reasons"),
        (found.ablation, "fall", "drop"),
        (found.ablation, "score", "score_without"),
        (reason, "words", "text"),
        (step, "number", "fact_id"),
    ):
        name = type(owner).__name__
        with pytest.warns(DeprecationWarning, match=rf"{name}\.{old} is now {name}\.{new}"):
            assert getattr(owner, old) == getattr(owner, new)
    with pytest.warns(DeprecationWarning, match=r"tilp\.scoring\.Predictions"):
        assert tilp.scoring.Answers is type(model.ask(query))


# the estimator


@pytest.mark.parametrize("model", ["none"], indirect=True)
def test_a_scorer_is_made_once_and_anew_after_fitting(world, model):
    assert model.scorer() is model.scorer() is model.scorer(world)
    other = tilp.datasets.world(1, 1_000).graph
    assert model.scorer(other) is not model.scorer(other)
    again = TILP(features="none", **QUICK).fit(other)
    before = again.scorer()
    assert again.fit(world).scorer() is not before
    query, answer = asked(world)[0]
    assert again.explain(query, answer) == model.explain(query, answer)


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_explained_on_another_graph(world, model):
    other = tilp.datasets.world(7, 1_000).graph
    for query, answer in asked(other, "test", 4):
        found = model.explain(query, answer, graph=other)
        table = model.predict(query, len(other.entities), graph=other)
        row = table.filter(pl.col("candidate") == answer).row(0, named=True)
        assert found.score == pytest.approx(row["score"], rel=1e-12) and found.rank == row["rank"]
        assert adds_up((one.score for one in found.reasons), found.score)


def test_wrong_questions_are_named(world, models):
    model = models("none")
    name = world.entities.label(0)
    with pytest.raises(TilpError, match="did you mean"):
        model.explain(Query("livesin", name))
    with pytest.raises(TilpError, match="no entity is named 'Nobody at all'"):
        model.explain(Query("livesIn", name), "Nobody at all")
    with pytest.raises(TilpError, match="give its subject or its object, not both"):
        model.explain(Query("livesIn", name, name))
    with pytest.raises(TilpError, match="not fitted yet"):
        TILP().explain(Query("livesIn", name))


# the command


@pytest.fixture(scope="module")
def folder(models, tmp_path_factory):
    return models("full").save(tmp_path_factory.mktemp("m") / "model")


def options(query):
    names = ("subject", "relation", "object", "start", "end")
    given = ((f"--{one}", getattr(query, one)) for one in names if getattr(query, one) is not None)
    return [part for pair in given for part in pair]


def test_the_command_explains_a_fact_either_way(run, folder, models, world):
    fact = world.fact(int(world.rows("test")[0]))
    dates = (fact.interval.start, fact.interval.end)
    given = options(Query(fact.relation, fact.subject, fact.object, *dates))
    for ask, query, name in (
        ((), Query(fact.relation, fact.subject, None, *map(str, dates)), fact.object),
        (
            ("--ask", "subject"),
            Query(fact.relation, None, fact.object, *map(str, dates)),
            fact.subject,
        ),
    ):
        code, out, err = run("explain", folder, *given, *ask, "--json", "--reasons", 4)
        assert code == 0 and err == ""
        assert json.loads(out) == models("full").explain(query, name, max_reasons=4).to_json()


def test_the_command_prints_what_people_read(run, folder, models, world):
    query, answer = next(
        (query, answer)
        for query, answer in asked(world)
        if query.subject and models("full").explain(query, groundings=0).candidate != answer
    )
    best = models("full").explain(query)
    code, out, err = run("explain", folder, *options(query), "--reasons", 3, "--groundings", 1)
    assert code == 0 and err == "" and f"why {best.candidate}?" in out and "rank 1," in out
    assert all(f"{one.score:+.4f}" in out for one in best.reasons[:3])
    assert f"{len(best.reasons) - 3:,} further reasons" in out and "has more" not in out
    code, out, _ = run("explain", folder, *options(query), "--candidate", answer)
    assert code == 0 and f"What {best.candidate} has more than {answer}" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--relation", "livesIn"), "give --subject or --object, or both"),
        (("--subject", "NAME"), "--relation"),
        (("--relation", "livesIn", "--subject", "NAME", "--ask", "subject"), "cannot be asked for"),
        (
            ("--relation", "livesIn", "--subject", "NAME", "--object", "NAME", "--candidate", "x"),
            "not --candidate",
        ),
        (("--relation", "livesIn", "--subject", "NAME", "--candidate", "NAME!"), "did you mean"),
        (("--relation", "livesin", "--subject", "NAME"), "did you mean 'livesIn'"),
        (("--relation", "livesIn", "--subject", "NAME", "--start", "soon"), "is not a date"),
    ],
)
def test_wrong_commands_are_a_paragraph(run, folder, world, arguments, message):
    name = world.entities.label(0)
    code, _, err = run("explain", folder, *(one.replace("NAME", name) for one in arguments))
    assert code == 2 and message in err and "Traceback" not in err
