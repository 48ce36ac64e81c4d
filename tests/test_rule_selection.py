"""Selection of rules: against plain loops over rules and examples; and the facts it learns from."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tilp
from models import fact_table, read_facts
from oracles import same_arrays
from strategies import random_examples, small_world
from tilp import TILP, TILPConfig
from tilp.learning import KNOWN_KINDS, PopularityPrior
from tilp.learning.examples import make_training_examples, training_queries
from tilp.learning.rule_selection import (
    better_than_base,
    distinct_bodies,
    distinct_rules,
    equal_relations,
    select_rules,
)
from tilp.learning.rule_weights import LogWeights, Objective
from tilp.model.config import resolve_effort
from tilp.parallel import Workers
from tilp.rules import parse_rule
from tilp.types import Effort
from tilp.walks import MiningSettings, mine
from tilp.walks.mining import mining_queries, mining_walker, target_facts

SEEDS = st.integers(0, 2**32 - 1)
LEAST, RISE = 0.25, 1.1  # answers that a rule has to explain, and how this rises
MAX_FACTS = {Effort.QUICK: 5_000, Effort.NORMAL: 50_000}
WALK_LIMIT = {Effort.QUICK: 1_000, Effort.NORMAL: 3_000, Effort.THOROUGH: 1_000_000}


def three_facts():
    return read_facts(("a", "r", "b"), ("a", "q", "c"), ("b", "r", "a"))


def random_rows(n_rules, seed, n_relations=2, n_chains=3):
    """Rules by form, length, relation, relations of the body, digits and code: no two the same."""
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, size, n_rules) for size in (2, 2, n_relations, n_chains, 4)]
    columns[1] += 1
    return np.column_stack([*columns, generator.permutation(n_rules)])


# Rules that others equal.


def ends_of(examples, rule):
    """The walks of a rule, by query: how many end at the answer, at known answers and elsewhere."""
    found = {}
    for query in range(len(examples.queries)):
        for index in range(examples.offsets[query], examples.offsets[query + 1]):
            if examples.rule[index] == rule:
                known = tuple(examples.at_known[index])
                found[query] = (examples.at_answer[index], examples.at_others[index], known)
    return found


def plainly_distinct(rows, examples):
    """Whether each rule is the simplest of those with its relation and the same walks."""
    ends = [ends_of(examples, rule) for rule in range(len(rows))]

    def order(rule):
        form, length, _, relations, digits, code = rows[rule]
        return length, form, relations, code, digits

    kept = []
    for rule in range(len(rows)):
        equal = [
            other
            for other in range(len(rows))
            if rows[other, 2] == rows[rule, 2] and ends[other] == ends[rule]
        ]
        kept.append(rule == min(equal, key=order))
    return kept


def with_copies(examples, copies):
    """The examples, and those of more rules: each has the examples of the rule that it copies."""
    columns = {name: [] for name in ("rule", "at_answer", "excluded", "at_known", "at_others")}
    offsets = [0]
    n_rules = int(examples.rule.max(initial=-1)) + 1
    for query in range(len(examples.queries)):
        here = range(examples.offsets[query], examples.offsets[query + 1])
        listed = [(int(examples.rule[index]), index) for index in here]
        for number, copied in enumerate(copies, n_rules):
            listed += [(number, index) for rule, index in listed if rule == copied]
        for rule, index in listed:
            columns["rule"].append(rule)
            for name in list(columns)[1:]:
                columns[name].append(getattr(examples, name)[index])
        offsets.append(offsets[-1] + len(listed))
    columns = {
        name: np.array(values, getattr(examples, name).dtype).reshape(
            -1, *getattr(examples, name).shape[1:]
        )
        for name, values in columns.items()
    }
    return replace(examples, offsets=np.array(offsets), **columns), n_rules + len(copies)


@settings(max_examples=40)
@given(SEEDS, st.lists(st.integers(0, 4), max_size=6), st.integers(0, 8))
def test_of_equal_rules_of_a_relation_the_simplest_stays(seed, copies, n_queries):
    examples = random_examples(three_facts(), 5, n_queries, seed)
    examples, n_rules = with_copies(examples, copies)
    rows = random_rows(n_rules, seed)
    assert distinct_rules(rows, examples).tolist() == plainly_distinct(rows, examples)


def test_rules_differ_by_any_kind_of_end_and_by_the_query():
    examples = random_examples(three_facts(), 2, 40, seed=0)
    with_one = np.flatnonzero(np.diff(examples.offsets) == 1)
    one = examples.select(np.arange(40) == with_one[0])
    doubled, n_rules = with_copies(replace(one, rule=np.zeros(1, np.int32)), [0])
    rows = np.array([[0, 2, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]])
    assert n_rules == 2
    assert distinct_rules(rows, doubled).tolist() == [False, True]
    for name in ("at_answer", "at_others"):
        changed = getattr(doubled, name) + np.array([0, 1], np.float32)
        assert distinct_rules(rows, replace(doubled, **{name: changed})).all()
    for kind in range(len(KNOWN_KINDS)):
        changed = doubled.at_known.copy()
        changed[1, kind] += 1
        assert distinct_rules(rows, replace(doubled, at_known=changed)).all()
    moved = replace(doubled, queries=one.queries[np.array([0, 0])], offsets=np.array([0, 1, 2]))
    assert distinct_rules(rows, moved).all()
    other_relation = rows + np.array([[0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]])
    assert distinct_rules(other_relation, doubled).all()


def test_of_no_rules_none_is_kept():
    examples = random_examples(three_facts(), 1, 0, seed=0)
    rows = np.empty((0, 6), np.int64)
    assert distinct_rules(rows, examples).tolist() == []
    assert select_rules(rows, np.empty(0), 5).tolist() == []


# Rules that explain enough.


def plainly_selected(rows, responsibility, max_rules, max_mean):
    """The rules that stay, by loops: chains share what they explain, then the best are counted."""
    least, relations = LEAST, {row[2] for row in rows.tolist()}
    while True:
        total = dict(enumerate(responsibility.tolist()))
        chains = {}
        for rule, (_, length, relation, body, _, _) in enumerate(rows.tolist()):
            chains.setdefault((relation, length, body), []).append(rule)
        for rules in chains.values():
            strongest = max(rules, key=lambda rule: responsibility[rule])
            for rule in rules:
                if rule != strongest and responsibility[rule] < least:
                    total[strongest] += responsibility[rule]
                    total[rule] = 0.0
        kept = set()
        for relation in relations:
            of_relation = [rule for rule in total if rows[rule, 2] == relation]
            best = sorted(of_relation, key=lambda rule: -total[rule])[:max_rules]
            kept |= {rule for rule in best if total[rule] >= least}
        if len(kept) <= max_mean * max(len(relations), 1):
            return [rule in kept for rule in range(len(rows))]
        least *= RISE


@settings(max_examples=150)
@given(
    SEEDS,
    st.integers(1, 30),
    st.integers(1, 12),
    st.sampled_from([0.5, 1.0, 2.5, 4.0, 1_000.0]),
    st.sampled_from([0.2, 1.0, 20.0]),
)
def test_the_rules_that_stay_are_those_of_plain_loops(seed, n_rules, max_rules, max_mean, scale):
    rows = random_rows(n_rules, seed, n_relations=3)
    # Such fractions add up exactly in any order.
    drawn = np.random.default_rng(seed).exponential(scale, n_rules)
    responsibility = np.round(drawn * 64) / 64
    mask = select_rules(rows, responsibility, max_rules, max_mean)
    assert mask.tolist() == plainly_selected(rows, responsibility, max_rules, max_mean)
    relation, count = np.unique(rows[mask, 2], return_counts=True)
    assert (count <= max_rules).all() and len(relation) <= 3
    assert mask.sum() <= max_mean * len(np.unique(rows[:, 2]))


def test_a_rule_has_to_be_right_more_often_than_guesses():
    confidence, body_support = np.array([0.50, 0.50, 1.0, 0.1]), np.array([1e2, 1e5, 2.0, 1e5])
    base_rate = np.array([0.47, 0.47, 0.001, 0.47])
    kept = better_than_base(confidence, body_support, base_rate)
    assert kept.tolist() == [False, True, True, False]


def chain(relation, body, code):
    return [0, 1, relation, body, 0, code]


def test_what_weak_rules_explain_goes_to_the_strongest_of_their_chain():
    rows = np.array([chain(0, 7, code) for code in range(3)] + [chain(0, 8, 0), chain(1, 7, 0)])
    together = np.array([0.1, 0.12, 0.05, 0.2, 0.2])
    assert select_rules(rows, together, 10).tolist() == [False, True, False, False, False]
    alone = np.array([0.1, 0.12, 0.02, 0.24, 0.26])
    assert select_rules(rows, alone, 10).tolist() == [False, False, False, False, True]
    # The strongest gets what it needs to be among the best; a rule that stays keeps its own.
    best = np.array([1.0, 0.2, 0.2, 1.3, 0.3])
    assert select_rules(rows, best, 1).tolist() == [True, False, False, False, True]
    kept = np.array([1.0, 0.3, 0.3, 1.3, 0.3])
    assert select_rules(rows, kept, 1).tolist() == [False, False, False, True, True]


def test_a_relation_keeps_its_best_rules_and_all_relations_a_number_on_average():
    rows = np.array([chain(relation, body, 0) for relation in (0, 1) for body in range(200)])
    strong = np.tile(np.arange(1.0, 201.0), 2)
    strong[200:] /= 400.0
    for most in (1, 7, 80):
        mask = select_rules(rows, strong, most)
        assert np.flatnonzero(mask[:200]).tolist() == list(range(200 - most, 200))
    # By default at most 92 on average: the weakest of all go first, whatever their relation.
    mask = select_rules(rows, strong, 300)
    assert 150 < mask.sum() <= 2 * 92
    assert strong[mask].min() > strong[~mask].max() and mask[:200].sum() > 92
    assert select_rules(rows, strong, 300, max_mean=400.0).sum() == 200 + 101


# What a rule does for the likelihood.


def random_logs(graph, n_rules, seed):
    generator = np.random.default_rng(seed)
    n_directed = 2 * len(graph.relations)
    return LogWeights(
        generator.normal(-1.0, 1.0, n_rules),
        generator.normal(-1.0, 1.0, n_directed),
        generator.normal(0.0, 1.0, (n_directed, len(KNOWN_KINDS))),
    )


def parts_of_answers(examples, prior, logs, power):
    """For each query, the part of the answer and of all from the prior, and from each rule."""
    of_prior = prior.answer_probabilities(examples.queries)
    for query in range(len(examples.queries)):
        head, kind = examples.queries.directed_relation[query], examples.answer_kind[query]
        factors = np.exp(logs.factor[head])
        own = factors[kind] if kind >= 0 else 1.0
        whole = {"prior": np.exp(logs.prior[head])}
        right = {"prior": whole["prior"] * of_prior[query]}
        for index in range(examples.offsets[query], examples.offsets[query + 1]):
            rule, others = int(examples.rule[index]), float(examples.at_others[index])
            at_answer = float(examples.at_answer[index])
            known = [float(walks) for walks in examples.at_known[index]]
            whole[rule] = np.exp(logs.rule[rule]) * (others + at_answer + sum(known)) ** power
            walks = others + own * at_answer
            walks += sum(factor * walks for factor, walks in zip(factors, known, strict=True))
            right[rule] = whole[rule] * own * at_answer / walks
        yield right, whole


def log_likelihood(parts, without=None):
    total = 0.0
    for right, whole in parts:
        kept = [source for source in right if source != without]
        total += np.log(sum(right[one] for one in kept) / sum(whole[one] for one in kept))
    return total


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 15))
def test_gains_are_those_of_leaving_each_rule_out(seed, power, n_queries):
    graph, n_rules = three_facts(), 5
    prior = PopularityPrior.from_graph(graph)
    examples = random_examples(graph, n_rules, n_queries, seed)
    logs = random_logs(graph, n_rules, seed)
    gains = Objective(examples, prior, n_rules, power).rule_gains(logs, Workers())
    parts = list(parts_of_answers(examples, prior, logs, power))
    whole = log_likelihood(parts)
    for rule in range(n_rules):
        shares = [right.get(rule, 0.0) / sum(right.values()) for right, _ in parts]
        assert gains.responsibility[rule] == pytest.approx(sum(shares), rel=1e-5, abs=1e-9)
        lost = whole - log_likelihood(parts, without=rule)
        assert gains.lost[rule] == pytest.approx(lost, rel=1e-4, abs=1e-5)


@settings(max_examples=15)
@given(SEEDS)
def test_what_is_lost_without_a_rule_is_the_loss_of_the_other_rules(seed):
    graph, n_rules = three_facts(), 5
    prior = PopularityPrior.from_graph(graph)
    examples = random_examples(graph, n_rules, 20, seed)
    logs = random_logs(graph, n_rules, seed)
    # Of each query only some rules have examples: those that have none otherwise would not count.
    examples = examples.select(np.diff(examples.offsets) > 1)
    objective = Objective(examples, prior, n_rules, 0.3)
    lost = objective.rule_gains(logs, Workers()).lost
    loss = objective(logs, Workers())[0] * objective.n_queries
    for rule in range(n_rules):
        mask = np.arange(n_rules) != rule
        others = Objective(examples.of_rules(mask), prior, n_rules - 1, 0.3)
        assert others.n_queries == objective.n_queries
        without = others(replace(logs, rule=logs.rule[mask]), Workers())[0] * objective.n_queries
        assert lost[rule] == pytest.approx(without - loss, rel=1e-4, abs=1e-5)


def test_gains_have_the_same_bits_for_any_number_of_workers(facts):
    graph = tilp.read(facts)
    examples = random_examples(graph, 40, 300, seed=1)
    objective = Objective(examples, PopularityPrior.from_graph(graph), 40, 0.3)
    logs = random_logs(graph, 40, seed=2)
    gains = objective.rule_gains(logs, Workers())
    assert gains.responsibility.all() and gains.lost.all()
    for threads in (1, 2, 3):
        with Workers(threads) as workers:
            assert same_arrays(gains, objective.rule_gains(logs, workers))


# Examples of some of the rules.


@given(SEEDS, st.lists(st.booleans(), min_size=6, max_size=6))
@example(0, [False] * 6)
def test_examples_of_some_rules_are_the_others_left_out(seed, kept):
    examples = random_examples(three_facts(), 6, 8, seed)
    some = examples.of_rules(np.array(kept))
    assert same_arrays(some.queries, examples.queries)
    assert np.array_equal(some.answer_kind, examples.answer_kind)
    new, number = 0, [sum(kept[:rule]) for rule in range(6)]
    for query in range(len(examples.queries)):
        assert some.offsets[query] == new
        for old in range(examples.offsets[query], examples.offsets[query + 1]):
            if kept[examples.rule[old]]:
                assert some.rule[new] == number[examples.rule[old]]
                for name in ("at_answer", "excluded", "at_known", "at_others"):
                    assert np.array_equal(getattr(some, name)[new], getattr(examples, name)[old])
                new += 1
    assert some.offsets[-1] == new == len(some)
    for name in ("offsets", "rule", "at_answer", "at_known"):
        assert getattr(some, name).dtype == getattr(examples, name).dtype


def test_examples_of_some_rules_are_those_that_these_rules_make():
    graph, mining = small_world(), MiningSettings(max_length=2, top=40)
    rules = mine(graph, list(graph.relations.labels)[:2], mining)
    walker = mining_walker(graph, mining)
    rows = walker.encoding.encode([mined.rule for mined in rules])
    queries = training_queries(graph, target_facts(graph, replace(mining, sample=20)))
    mask = np.random.default_rng(0).random(len(rows)) < 0.4
    every, some = (
        make_training_examples(walker, queries, walker.encoding.compiled(one), Workers())
        for one in (rows, rows[mask])
    )
    assert 0 < len(some) < len(every)
    selected = every.of_rules(mask)
    assert np.array_equal(selected.offsets, some.offsets)
    for query in range(len(queries)):
        here = slice(some.offsets[query], some.offsets[query + 1])
        first, second = (
            sorted(
                zip(
                    one.rule[here].tolist(), one.at_answer[here].tolist(),
                    one.excluded[here].tolist(), one.at_known[here].tolist(),
                    one.at_others[here].tolist(), strict=True,
                )
            )
            for one in (selected, some)
        )  # fmt: skip
        assert first == second


# How many facts a fit learns from.


@given(
    st.sampled_from([Effort.QUICK, Effort.NORMAL]),
    st.lists(st.integers(0, 40_000), min_size=1, max_size=40),
)
@example(Effort.QUICK, [5_000])
@example(Effort.QUICK, [5_001])
@example(Effort.NORMAL, [49_999, 1, 1])
@example(Effort.QUICK, [0, 0, 4_000, 10, 4_000])
def test_effort_cuts_the_largest_relations_evenly_to_a_budget(effort, sizes):
    sample, limit = resolve_effort(effort, TILPConfig(), np.array(sizes))
    assert limit == WALK_LIMIT[effort]
    budget = MAX_FACTS[effort]
    if sum(sizes) <= budget:
        assert sample is None
        return
    assert sum(min(size, sample) for size in sizes) <= budget
    # One more of each relation would be too many; so small relations stay whole.
    assert sum(min(size, sample + 1) for size in sizes) > budget
    assert any(size > sample for size in sizes)


def test_each_of_very_many_relations_keeps_a_fact():
    sample, _ = resolve_effort(Effort.QUICK, TILPConfig(), np.full(6_000, 3))
    assert sample == 1


@pytest.mark.parametrize("effort", Effort)
def test_what_the_user_chose_is_not_cut(effort):
    sizes = np.array([100_000, 100_000])
    chosen = resolve_effort(effort, TILPConfig(sample=70_000, walk_limit=17), sizes)
    assert chosen == (70_000, 17)
    sample, limit = resolve_effort(effort, TILPConfig(walk_limit=17), sizes)
    expected = {Effort.QUICK: 2_500, Effort.NORMAL: 25_000, Effort.THOROUGH: None}
    assert (sample, limit) == (expected[effort], 17)
    assert resolve_effort(effort, TILPConfig(sample=9), sizes) == (9, WALK_LIMIT[effort])


def test_effort_counts_the_facts_to_learn_from():
    graph = tilp.datasets.world(seed=0, size=12_000).graph
    facts = graph.relation[graph.targets]
    assert len(facts) > MAX_FACTS[Effort.QUICK]
    mining = TILP(effort="quick").settings_for(graph).mining
    kept = np.bincount(graph.relation[target_facts(graph, mining)])
    assert kept.sum() <= MAX_FACTS[Effort.QUICK] < (kept + (kept == mining.sample)).sum()
    assert np.array_equal(kept, np.minimum(np.bincount(facts), mining.sample))
    assert TILP(effort="thorough").settings_for(graph).mining.sample is None
    with pytest.raises(tilp.TilpError, match="effort"):
        TILP(effort="much")


@settings(max_examples=30)
@given(
    st.sampled_from([None, 1, 5, 30, 10**6]), st.sampled_from([1.0, 0.6, 0.1]), st.integers(0, 3)
)
def test_a_sample_bounds_the_facts_of_each_relation(sample, share, seed):
    graph = small_world()
    chosen = MiningSettings(sample=sample, share=share, seed=seed)
    rows = target_facts(graph, chosen)
    shared = target_facts(graph, replace(chosen, sample=None))
    assert (np.diff(rows) > 0).all() and set(rows.tolist()) <= set(shared.tolist())
    assert np.array_equal(rows, target_facts(graph, chosen))
    before, after = (Counter(graph.relation[one].tolist()) for one in (shared, rows))
    assert after == {one: min(count, sample or count) for one, count in before.items()}
    # What rules are mined from is what weights are learned from.
    walker = mining_walker(graph, chosen)
    for relation in graph.relations.labels:
        facts = np.unique(mining_queries(walker, relation, chosen).fact)
        assert np.array_equal(facts, rows[graph.relation[rows] == graph.relations.find(relation)])


def test_other_seeds_draw_other_facts():
    graph = small_world()
    drawn = [target_facts(graph, MiningSettings(sample=5, seed=seed)) for seed in (0, 1)]
    assert not np.array_equal(*drawn)
    nothing = replace(graph, walked_only=np.arange(len(graph)) < len(graph.rows("train")))
    assert target_facts(nothing, MiningSettings(sample=5)).tolist() == []


# A fit.


def test_a_fit_keeps_few_distinct_rules():
    graph = small_world()
    options = {"features": "none", "n_jobs": 1}
    few, every = (
        TILP(2, max_rules=20, config=TILPConfig(sample=60, select=select), **options).fit(graph)
        for select in (True, False)
    )
    assert 0 < len(few.rules()) < len(every.rules())
    assert max(Counter(mined.rule.head for mined in few.rules()).values()) <= 20
    assert few.settings.mining.top == 40 and every.settings.mining.top == 20
    assert {"select"} == few.seconds.keys() - every.seconds.keys()
    assert all(mined.gain is not None and mined.lift > 0 for mined in few.rules())


def test_a_given_rule_of_a_relation_without_training_facts_has_a_lift():
    facts = [(f"p{i}", "q", f"c{i % 5}", "1990", "1991") for i in range(40)]
    train, valid = fact_table(*facts), fact_table(("p1", "r", "c2", "1990", "1991"))
    rules = [parse_rule(f"{name}(E1,E2,I2) <- q(E1,E2,I1) & before(I1,I2)") for name in "rq"]
    model = TILP(features="none", n_jobs=1).fit(
        tilp.read({"train": train, "valid": valid}, unit="year"), rules=rules
    )
    assert [mined.lift for mined in model.rules()] == [0.0, 0.0]


# Relations that others mirror.


def village():
    """People who know each other in groups, both ways; bosses, and who works for them."""
    generator = np.random.default_rng(0)
    group = generator.integers(0, 20, 120)
    facts = []
    for person in range(120):
        others = np.setdiff1d(np.flatnonzero(group == group[person]), person)
        for other in generator.choice(others, 3):
            year = str(generator.integers(1950, 1980))
            facts += mirrored("knows", "knows", person, other, year)
            if other % 3 == 0:
                facts += mirrored("bossOf", "worksFor", person, other, year)
        facts.append((f"p{person}", "livesIn", f"t{group[person] // 4}", "1950", "1980"))
    return read_facts(*dict.fromkeys(facts))


def mirrored(relation, inverse, first, second, year):
    ends = f"p{first}", f"p{second}"
    yield ends[0], relation, ends[1], year, year
    yield ends[1], inverse, ends[0], year, year


def test_relations_with_the_same_facts_are_found():
    graph = village()
    names = [f"{name}{sign}" for sign in ("", "⁻¹") for name in graph.relations]
    classes = {frozenset(names[i] for i in np.flatnonzero(equal_relations(graph) == first))
               for first in equal_relations(graph)}  # fmt: skip
    knows, boss, works = ({"knows", "knows⁻¹"}, {"bossOf", "worksFor⁻¹"}, {"bossOf⁻¹", "worksFor"})
    assert classes == {*map(frozenset, (knows, boss, works, {"livesIn"}, {"livesIn⁻¹"}))}
    one_fact = np.flatnonzero(graph.relation == graph.relations.find("knows"))[:1]
    assert np.unique(equal_relations(graph.without(one_fact))).size == len(classes) + 1


def mirror_free(rule):
    """Head, body and constraints of a rule, by the first of relations with the same facts."""

    def plain(atom):
        if atom.relation == "worksFor":
            return "bossOf", not atom.inverse
        return atom.relation, atom.inverse and atom.relation != "knows"

    return plain(rule.head), tuple(map(plain, rule.body)), rule.constraints


def states_a_mirror(rule):
    head, body, _ = mirror_free(rule)
    return body == (head,)


def test_of_rules_that_differ_in_mirrored_relations_one_stays():
    graph = village()
    mining = MiningSettings(max_length=2, top=400)
    rules = mine(graph, settings=mining)
    encoding = mining_walker(graph, mining).encoding
    rows = encoding.encode([mined.rule for mined in rules])
    mask = distinct_bodies(rows, encoding, equal_relations(graph))
    assert 0 < mask.sum() < len(rules)
    kept = [mined.rule for mined, stays in zip(rules, mask, strict=True) if stays]
    seen = Counter((rule.head, mirror_free(rule)) for rule in kept if not states_a_mirror(rule))
    assert set(seen.values()) == {1}
    for mined, stays in zip(rules, mask, strict=True):
        assert stays or (mined.rule.head, mirror_free(mined.rule)) in seen
        assert stays or not states_a_mirror(mined.rule)
    nothing_equal = np.arange(2 * len(graph.relations))
    assert distinct_bodies(rows, encoding, nothing_equal).all()


def test_of_rules_with_mirrored_relations_a_fit_keeps_one():
    rules = [mined.rule for mined in TILP(2, features="none", n_jobs=1).fit(village()).rules()]
    seen = Counter((rule.head, mirror_free(rule)) for rule in rules if not states_a_mirror(rule))
    assert set(seen.values()) == {1}
    best = {str(rule.head): str(rule.body[0]) for rule in reversed(rules)}
    assert best["knows"] == "knows⁻¹" and best["bossOf"] == "worksFor⁻¹"
