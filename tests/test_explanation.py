"""Explanations: reasons that add up, in order, with facts that are there; text, JSON, command."""

import json
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import tilp
from oracles import edges_of, lift, nearest_intervals, walk_gap, walks_from
from tilp import TILP, Query, TILPConfig
from tilp.errors import TilpError
from tilp.explanation import Explanation, Reason
from tilp.explanation.render import ablation_text, amounts, fact_text
from tilp.features.candidate_counts import COUNT_PARTS
from tilp.features.candidate_history import HISTORY_KINDS
from tilp.features.log_linear_scorer import LogLinearScorer
from tilp.features.paper.scorer import PaperFeatureScorer
from tilp.learning.rule_weights import TrainingSettings
from tilp.rules import Atom, Phrasings
from tilp.scoring import RuleScorer
from tilp.scoring.queries import query_table
from tilp.time import UNKNOWN, Interval, gap_classes, known_ends

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
    return tilp.datasets.world(0, 1_500).graph.canonical()  # as a model keeps it


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
        (single,) = scorer.attribute_scores(table, [int(entity[0])], applied)
        assert adds_up((part.score for part in single), score)
        many = scorer.attribute_scores(table, [int(entity[0]), 3, 5], applied)
        assert len(many) == 3 and adds_up((part.score for part in many[0]), score)


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


KINDS = {
    "none": {"rule", "prior"},
    "paper": {"rule", "prior", "recurrence", "order", "pair", "not looked at"},
    "full": {"rule", "prior", *HISTORY_KINDS, "random walks", *COUNT_PARTS},
}


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
            assert found.rival == table["candidate"][found.rank == 1]
            assert found.rival_rank == 1 + (found.rank == 1)
            rival = table.filter(pl.col("candidate") == found.rival)["score"].item()
            assert found.rival_score == pytest.approx(rival, rel=1e-12)
            assert adds_up((one.score for one in found.reasons), found.score)
            assert adds_up((one.rival for one in found.reasons), found.rival_score)
            for one in found.reasons:
                assert one.text and adds_up(
                    (member.score for member in one.members),
                    one.rival if one.of_rival else one.score,
                )
            own = [one for one in found.reasons if not one.of_rival]
            seen |= {member.kind for one in own for member in one.members}
    assert seen == KINDS[model.settings.features]


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_each_part_has_its_members(world, model):
    """Members of a kind add up to the contribution of the scorer."""
    kinds = {"rules": "rule", "rule evidence": "rule"}
    for query, answer in asked(world, seed=1):
        found = model.explain(query, answer, groundings=0)
        entity = np.array([world.entities.find(answer)], np.int32)
        parts = model.scorer().contributions(query_table(world, [query]), np.array([0, 1]), entity)
        members = [m for one in found.reasons if not one.of_rival for m in one.members]
        if any(one.kind == "not looked at" for one in members):
            continue
        together = {}
        for name, part in parts.items():
            kind = kinds.get(name, name.partition("_")[0])
            together[kind] = together.get(kind, 0.0) + float(part[0])
        for kind, expected in together.items():
            of_kind = [one.score for one in members if one.kind == kind]
            assert sum(of_kind) == pytest.approx(expected, rel=1e-9, abs=1e-9)


# groups


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_a_reason_is_one_chain_and_a_chain_one_reason(world, model):
    lengths = set()
    for query, answer in asked(world, seed=6):
        found = model.explain(query, answer, max_reasons=None, groundings=5)
        keys = [(one.kind, one.relations) for one in found.reasons]
        assert len(set(keys)) == len(keys)
        for one in found.reasons:
            name = found.rival if one.of_rival else answer
            start = name if one.kind == "candidate" else query.subject or query.object
            for member in one.members:
                assert member.rule is None or member.rule.rule.body == one.relations
            for grounding in one.groundings:
                steps = grounding.steps
                chain = tuple(Atom(step.fact.relation, step.inverse) for step in steps)
                assert chain == one.relations or one.kind == "connection"
                assert steps[0].source == start
                assert one.kind == "candidate" or steps[-1].target == name
                assert all(a.target == b.source for a, b in pairwise(steps))
                visited = [start, *(step.target for step in steps)]
                assert len(set(visited)) == len(visited) and len(grounding.facts) == len(steps)
                lengths.add((str(one.kind), len(steps)))
    chains = {("chain", 1), ("chain", 2)}
    more = {"none": set(), "paper": {("candidate", 1)}, "full": {("candidate", 1), ("chain", 3)}}
    assert lengths >= chains | more[model.settings.features]


@pytest.mark.parametrize("model", ["full"], indirect=True)
def test_all_that_is_known_of_two_ends_is_one_reason(world, model):
    """A rule of one atom, the facts with the subject and the known answer have one chain."""
    seen = set()
    for query, answer in asked(world, "train", 40):
        for one in model.explain(query, answer, groundings=0).reasons:
            kinds = {member.kind for member in one.members}
            if one.kind == "prior":
                assert kinds <= {"prior", "popularity", "degree"}
            if kinds & {HISTORY_KINDS[1], "known at another time"}:
                assert one.kind == "chain" and len(one.relations) == 1
                seen |= kinds
    assert seen == {"rule", HISTORY_KINDS[1], "known at another time"}


@pytest.mark.parametrize("model", ["full"], indirect=True)
def test_random_walks_are_split_alike_for_both_candidates(world, model):
    seen = 0
    for query, _ in asked(world, seed=8):
        found = model.explain(query, groundings=0)
        for one in found.reasons:
            walks = sum(m.score for m in one.members if m.kind == "random walks")
            if one.kind != "chain" or not walks or one.of_rival:
                continue
            again = model.explain(query, found.rival, against=found.candidate, groundings=0)
            same = [r for r in again.reasons if r.relations == one.relations and r.kind == "chain"]
            assert [r.score for r in same] == pytest.approx([one.rival], rel=1e-9)
            seen += 1
    assert seen


# in order


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_what_decides_comes_first(world, model):
    for query, answer in asked(world, seed=5):
        best = model.explain(query, groundings=0)
        assert best.rank == 1 and best.reasons[0].score > 0
        tiers = [tier(one, best.reasons) for one in best.reasons]
        assert tiers == sorted(tiers)
        for name in {answer, world.entities.label(3)} - {best.candidate}:
            found = model.explain(query, name, groundings=0)
            assert found.rival == best.candidate
            last = [comes_last(one, found.reasons) for one in found.reasons]
            assert last == sorted(last)
            margins = [one.margin for one in found.reasons if not comes_last(one, found.reasons)]
            assert margins == sorted(margins)
            ahead = model.explain(query, against=name, groundings=0)
            assert sorted(one.margin for one in ahead.reasons) == pytest.approx(
                sorted(-one.margin for one in found.reasons)
            )


def comes_last(one, reasons):
    amount = max(max(abs(other.score), abs(other.rival)) for other in reasons)
    larger = max(abs(one.score), abs(one.rival))
    return abs(one.margin) <= 0.01 * larger or larger < 1e-3 * amount


def tier(one, reasons):
    """The place of a reason for a candidate that is ahead: its tier, and the order within it."""
    largest = max(abs(other.margin) for other in reasons)
    for_it = [other for other in reasons if other.score > 0]

    def decides(other):
        return other.score >= 1.25 * other.rival and other.margin >= 0.1 * largest

    decisive = list(filter(decides, for_it)) or [max(for_it, key=lambda other: other.margin)]
    if one in decisive:
        return 0, -one.margin
    if comes_last(one, reasons):
        return 3, -abs(one.score)
    return (1, -one.score) if one.score > 0 else (2, one.margin)


def test_a_candidate_is_not_compared_with_itself(world, models):
    query, _ = asked(world)[0]
    best = models("none").explain(query).candidate
    with pytest.raises(TilpError, match="is explained itself"):
        models("none").explain(query, against=best)


def test_what_speaks_against_is_said_to_do_so(world, models):
    seen = set()
    for query, answer in asked(world, "test", 20):
        for one in models("full").explain(query, answer).reasons:
            amount = one.rival if one.of_rival else one.score
            assert one.text.startswith("Against ") == (amount < 0)
            seen.add((amount < 0, one.of_rival))
            assert not one.of_rival or amount < 0 or one.text.startswith("For ")
    assert {(True, False), (False, True), (False, False)} <= seen


def test_what_was_not_looked_at_is_named(world, models, monkeypatch):
    query, _ = asked(world)[1]
    monkeypatch.setattr(models("paper").scorer(), "max_candidates", 1)
    far = models("paper").predict(query, len(world.entities))["candidate"][-1]
    found = models("paper").explain(query, far)
    (only,) = [one for one in found.reasons if one.kind == "rest"]
    assert "too low for features to be looked at" in only.text
    assert adds_up((one.score for one in found.reasons), found.score)
    monkeypatch.setattr(models("full").scorer(), "max_entities", 0)
    listed = set(models("full").scorer()(query_table(world, [query])).candidate.tolist())
    outside = world.entities.label(
        next(one for one in range(len(world.entities)) if one not in listed)
    )
    found = models("full").explain(query, outside)
    (only,) = [one for one in found.reasons if not one.of_rival]
    assert (only.kind, only.score) == ("rest", 0.0) and found.score == 0.0
    assert f"lead to {outside}, and nothing else was looked at" in only.text
    found = models("full").explain(query)
    assert adds_up((one.score for one in found.reasons), found.score) and found.score != 0


@pytest.mark.parametrize("missing", ["duration", "open"])
def test_reasons_add_up_however_missing_dates_are_taken(world, quick_features, missing):
    model = TILP(missing=missing, **QUICK).fit(world)
    for query, answer in asked(world, "test", 6):
        for start, end in ((query.start, query.end), (query.start, None), (None, None)):
            dated = Query(query.relation, query.subject, query.object, start, end)
            found = model.explain(dated, answer)
            assert adds_up((one.score for one in found.reasons), found.score)
            by_rules = (one for one in found.reasons if any(m.rule for m in one.members))
            assert all(one.groundings for one in by_rules)


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
    mining = model.settings.mining
    gaps = gap_classes(mining.gap_edges, world.unit)
    for query, answer in asked(world, seed=2, count=8):
        subject, _, time = settled_interval(query, world)
        atom = Atom(query.relation, query.subject is None)
        walks = {}
        for walk in walks_from(edges, subject, 2, -1):
            if world.entities.label(walk[-1][1]) == answer:
                for rule in {lift(walk, atom, time, grain, gaps) for grain in mining.grains}:
                    walks.setdefault(rule, []).append(walk)
        found = model.explain(query, answer, groundings=10_000, max_reasons=None)
        own = [one for one in found.reasons if not one.of_rival]
        fired = [m for one in own for m in one.members if m.rule is not None]
        weighty = {one.rule for one in model.rules() if one.weight} & set(walks)
        assert {one.rule.rule for one in fired} >= weighty
        for one in fired:
            assert one.walks == len(walks[one.rule.rule])
            assert one.rule == model.rules()[one.rule.rule]
            assert one.text == Phrasings().rule(one.rule.rule, world.unit)
        for one in own:
            rules = [member.rule.rule for member in one.members if member.rule is not None]
            gap_of = {
                tuple((edge[3], edge[0].inverse) for edge in walk): walk_gap(walk, time)
                for rule in rules
                for walk in walks[rule]
            }
            paths = [
                tuple((step.fact_id, step.inverse) for step in grounding.steps)
                for grounding in one.groundings
            ]
            if all(member.rule is not None for member in one.members):
                assert set(paths) == set(gap_of)
                nearest = [gap_of[path] for path in paths[: len(walks[rules[0]])]]
                assert nearest == sorted(nearest)
            for grounding in one.groundings:
                assert all(world.fact(step.fact_id) == step.fact for step in grounding.steps)


@pytest.mark.parametrize("model", ["none"], indirect=True)
def test_as_many_groundings_and_reasons_as_are_asked_for(world, model):
    explained = (model.explain(*one, max_reasons=None, groundings=10_000) for one in asked(world))
    every = max(explained, key=lambda e: (len(e.reasons) > 3, sum(r.walks for r in e.reasons)))
    query, answer = every.query, every.candidate
    assert len(every.reasons) > 3 and any(one.walks > 2 for one in every.reasons)
    found = model.explain(query, answer, max_reasons=3, groundings=2)
    assert found.score == every.score and len(found.to_json()["reasons"]) == 3
    for place, (one, whole) in enumerate(zip(found.reasons, every.reasons, strict=True)):
        expected = whole.groundings[:2] if place < 3 else ()
        assert one.groundings == expected and one.score == whole.score
        assert one.walks == whole.walks and one.members == whole.members


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
        reasons = model.explain(query, answer, groundings=0).reasons
        for one in (m for r in reasons if not r.of_rival for m in r.members):
            if one.kind != "rule":
                continue
            rule = number[one.rule.rule]
            of_rule = applied.rule == rule
            ends = dict(
                zip(applied.end[of_rule].tolist(), applied.count[of_rule].tolist(), strict=True)
            )
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
        assert f"{answer} is the {end} of {facts}" in one.text


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
        for one in model.explain(query, answer, max_reasons=None, groundings=50).reasons:
            history = [m.kind for m in one.members if m.kind in HISTORY_KINDS]
            if one.of_rival or not history:
                continue
            (kind,) = history
            with_subject = kind == HISTORY_KINDS[1]
            (atom,) = one.relations
            inverse = atom.inverse != with_subject  # a chain is read from the subject
            relation = world.relations.find(atom.relation) + size * inverse
            plain = nearest[HISTORY_KINDS.index(kind) * 2 * size + relation]
            times = {
                (int(start[g.steps[0].fact_id]), int(end[g.steps[0].fact_id]))
                for g in one.groundings
            }
            assert (plain.start, plain.end) in times
            assert (one.kind == "chain") == with_subject
            assert with_subject or one.text.removeprefix(f"Against {answer}: ").startswith(
                f"Known of {answer}: "
            )
            kinds.add(kind)
    assert kinds == set(HISTORY_KINDS)


@pytest.mark.parametrize("model", ["full"], indirect=True)
def test_random_walks_show_paths_without_circles(world, model):
    seen = set()
    for query, answer in asked(world, count=12):
        for one in model.explain(query, answer, groundings=9, max_reasons=None).reasons:
            walks = [m for m in one.members if m.kind == "random walks"]
            if one.of_rival or not walks or len(walks) < len(one.members):
                continue
            assert one.kind == "connection" or len(one.relations) > model.max_length
            if one.kind == "connection":
                assert " are well connected" in one.text and len(one.groundings) == 1
            else:
                assert f"A path of {len(one.relations)} facts" in one.text and one.groundings
            seen.add(one.kind)
    assert seen == {"chain", "connection"}


@pytest.mark.parametrize("model", ["paper"], indirect=True)
def test_the_features_of_the_paper_are_told_with_their_facts(world, model):
    start, _ = known_ends(world.start, world.end)
    seen = set()
    for query, answer in asked(world, "test", 14):
        _, _, time = settled_interval(query, world)
        reasons = model.explain(query, answer, max_reasons=None, groundings=99).reasons
        for reason in (one for one in reasons if not one.of_rival):
            steps = [step for g in reason.groundings for step in g.steps]
            apart = [int(start[step.fact_id]) - time.start for step in steps]
            for one in reason.members:
                if one.kind in ("order", "pair"):
                    said = one.text.split(" starts ")[1]
                    if one.kind == "order":
                        assert any((d > 0) == said.startswith("after the query;") for d in apart)
                        assert said.endswith("do")
                    else:
                        told = said.split(" the query; usual ")[0]
                        assert told in {in_words(d) for d in apart}
                    seen.add((one.kind, len(reason.relations) > 1))
                    assert ("on walks" in one.text) == (
                        reason.kind == "chain" and "between" not in one.text
                    )
                    relations = {step.fact.relation for step in steps}
                    assert one.text.removeprefix("another ").split(" ")[0] in relations
                elif one.kind == "recurrence":
                    assert query.relation in {atom.relation for atom in reason.relations}
                    seen.add(("recurrence", "has another" in one.text))
    assert seen == {(kind, both) for kind in ("order", "pair", "recurrence") for both in (0, 1)}


def in_words(apart):
    if not apart:
        return "with"
    side = "after" if apart > 0 else "before"
    return f"{abs(apart)} year{'' if abs(apart) == 1 else 's'} {side}"


# without facts


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_explained_without_a_fact_is_explained_on_other_evidence(world, model):
    for query, answer in asked(world, count=6):
        found = model.explain(query, answer)
        if found.ablation is None:
            continue
        facts = [step.fact_id for step in found.ablation.facts]
        less = model.explain(query, answer, without=facts)
        assert less.score == pytest.approx(found.ablation.score_without, rel=1e-9)
        assert (less.before.rank, less.before.score) == (found.rank, found.score)
        assert [step.fact_id for step in less.removed] == sorted(facts)
        assert adds_up((one.score for one in less.reasons), less.score)
        left = world.without(facts)
        again = model.explain(query, answer, graph=left)
        assert [one.text for one in again.reasons] == [one.text for one in less.reasons]
        for one in less.reasons:
            for step in (step for g in one.groundings for step in g.steps):
                assert step.fact_id not in facts and world.fact(step.fact_id) == step.fact
        if less.ablation is not None:  # measured on what is left, and named by the same ids
            more = [step.fact_id for step in less.ablation.facts]
            again = model.explain(query, answer, without=[*facts, *more])
            assert again.score == pytest.approx(less.ablation.score_without, rel=1e-9)


def test_facts_that_are_not_evidence_cannot_be_left_out(world, models):
    query, _ = asked(world)[0]
    for fact in (-1, len(world.rows("train"))):
        with pytest.raises(TilpError, match=f"no fact of the evidence has the id {fact}"):
            models("none").explain(query, without=[fact])


# as text and as JSON


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_json_holds_the_same_numbers(world, model):
    for query, answer in asked(world, count=6):
        found = model.explain(query, answer, max_reasons=3, groundings=2)
        held = found.to_json()
        assert json.loads(json.dumps(held)) == held
        assert held["query"]["relation"] == query.relation and held["claim"] == found.claim
        for name in ("candidate", "rank", "score", "share", "known", "winner", "rival"):
            assert held[name] == getattr(found, name)
        for name, whole in (("score", found.score), ("rival", found.rival_score)):
            assert adds_up([*(one[name] for one in held["reasons"]), held["rest"][name]], whole)
        assert held["rest"]["count"] == max(len(found.reasons) - 3, 0)
        assert model.explain(query, answer, ablation=False).to_json()["ablation"] is None
        if found.ablation is not None:
            assert held["ablation"]["drop"] == found.ablation.drop
            ids = [fact["id"] for fact in held["ablation"]["facts"]]
            assert ids == [step.fact_id for step in found.ablation.facts]
        for one, reason in zip(held["reasons"], found.reasons, strict=False):
            assert (one["sentence"], one["margin"]) == (reason.text, reason.margin)
            assert one["relations"] == [str(atom) for atom in reason.relations]
            assert [m["score"] for m in one["members"]] == [m.score for m in reason.members]
            for grounding, plain in zip(one["groundings"], reason.groundings, strict=True):
                fact, step = grounding["facts"][0], plain.steps[0]
                assert fact["id"] == step.fact_id and fact["inverse"] == step.inverse
                assert (fact["subject"], fact["object"]) == (step.fact.subject, step.fact.object)
                assert fact["start"] is None or fact["start"] == str(step.fact.interval.start)


@pytest.mark.parametrize("model", FEATURES, indirect=True)
def test_text_has_reasons_facts_and_what_is_left(world, model):
    for query, answer in asked(world, count=6):
        found = model.explain(query, answer)
        text = str(found)
        assert text == found.text() and text.startswith(f"{found.claim}?")
        assert f"Rank {found.rank:,}, score {found.score:.2f}" in text
        assert f"Compared with {found.rival}: rank {found.rival_rank:,}" in text
        first, *others = found.reasons
        shown = [first, *(one for one in others if not one.same)][:3]
        hidden = [one for one in others if one not in shown]
        for one in shown:
            assert amounts(found, one) in text and one.text in text
            for step in (step for grounding in one.groundings[:1] for step in grounding.steps):
                assert fact_text(step) in text
        further, same = ([one for one in hidden if one.same == which] for which in (False, True))
        assert ("further reason" in text) == bool(further)
        assert ("with nearly the same weight" in text) == bool(same)
        every = found.text(None, formal=True)
        assert all(one.text in every for one in found.reasons) and "further" not in every
        for member in (member for one in found.reasons for member in one.members):
            told = member.text if member.rule is None else f"{member.rule.rule}  ("
            assert f"{member.score:+.4f}  {member.kind}: {told}" in every
        assert ablation_text(found) in every
        effect = [] if found.ablation is None else found.ablation.facts
        assert ("Without #" in text) == (bool(effect) and all(fact_text(f) in text for f in effect))


def test_amounts_are_compared_with_the_rival():
    both = Explanation(Query("r", "a"), "a r b", "b", 1, 3.0, 0.5, False, (), rival="c")
    for score, rival, told in (
        (3.0, 0.9, "+3.00 (c: +0.90)"),
        (-1.0, 1.0, "-1.00 (c: +1.00)"),
        (2.0, 1.99, "+2.00 (c: +1.99)"),
    ):
        assert amounts(both, Reason("chain", (), score, rival, "")) == told


def test_an_explanation_without_reasons_can_be_shown():
    empty = Explanation(Query("r", "a"), "a r b", "b", 1, 0.0, 0.5, True, (), winner="b")
    assert "The data already have it as an answer at that time" in str(empty)
    assert empty.to_json()["reasons"] == [] and empty.to_json()["rest"]["count"] == 0


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
        code, out, err = run("explain", folder, *given, *ask, "--json")
        assert code == 0 and err == ""
        known = [asdict(fact) for fact in models("full").known_facts(query)]
        explained = models("full").explain(query, name).to_json()
        assert json.loads(out) == {**explained, "known_facts": known}


def test_the_command_prints_what_people_read(run, folder, models, world):
    query, answer = next(
        (query, answer)
        for query, answer in asked(world)
        if query.subject and models("full").explain(query, groundings=0).candidate != answer
    )

    def printed(*more):
        code, out, err = run("explain", folder, *options(query), *more)
        assert code == 0 and err == ""
        return " ".join(out.split())

    def written(explanation, *arguments, **formal):
        return " ".join(explanation.text(*arguments, **formal).split())

    explain = models("full").explain
    assert printed() == written(explain(query))
    assert printed("--all") == written(explain(query, max_reasons=None), None)
    assert printed("--formal", "--reasons", 1) == written(explain(query), 1, formal=True)
    assert printed("--candidate", answer) == written(explain(query, answer))
    rival = world.entities.label(5)
    assert printed("--against", rival) == written(explain(query, against=rival))
    fact = explain(query).ablation.facts[0].fact_id
    found = printed("--without", fact)
    assert found == written(explain(query, without=[fact])) and f"Without #{fact} " in found


def test_the_command_words_relations_as_a_file_says(run, folder, models, world, tmp_path):
    words = tmp_path / "words.toml"
    query, _ = asked(world)[1]
    words.write_text(f'{query.relation} = "{{subject}} is said to have {{object}}"\n', "utf-8")
    code, out, _ = run("explain", folder, *options(query), "--phrasings", words)
    assert code == 0 and " is said to have " in out.splitlines()[0]
    words.write_text('livesim = "{subject} lives at {object}"\n', "utf-8")
    code, _, err = run("explain", folder, *options(query), "--phrasings", words)
    assert code == 2 and "did you mean 'livesIn'" in err


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
