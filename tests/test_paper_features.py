"""The paper's temporal features against Appendix A read plainly, and training phase two."""

import subprocess
import sys
from collections import defaultdict
from dataclasses import fields, replace
from math import exp, log, pi, sqrt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from paper_tables import distribution_table
from strategies import all_queries, every_candidate, graphs, shared_queries
from tilp._utils.files import read_arrays, write_arrays
from tilp.datasets import world
from tilp.datasets.people import GRADUATION_AGE
from tilp.errors import TilpError
from tilp.features.paper.distributions import (
    Bernoulli,
    Exponential,
    FittedDistributions,
    Gaussian,
    PairInterval,
)
from tilp.features.paper.evidence import EVIDENCE_KINDS, UNDATED, Gatherer
from tilp.features.paper.features import (
    CONTRIBUTIONS,
    FEATURES,
    FeatureWeights,
    FittedPaper,
    PaperFeatures,
)
from tilp.features.paper.fit import (
    FeatureExamples,
    FeatureObjective,
    FeatureTrainingSettings,
    _factors,
    _initial,
    _weights,
    calibrate_temperature,
    feature_values,
    train_features,
)
from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, known_ends
from tilp.time.relations import INCOMPARABLE, signed_differences, time_distance

NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
SEEDS = st.integers(0, 2**32 - 1)


# --- Appendix A, slowly ----------------------------------------------------------------------


def plain_edges(graph):
    """(source, directed relation, target, start or None, fact) of train, both ways."""
    start, _ = known_ends(graph.start, graph.end)
    size = len(graph.relations)
    edges = []
    for row in graph.rows("train"):
        time = int(start[row]) if OPEN_START < start[row] < OPEN_END else None
        subject, object_ = int(graph.subject[row]), int(graph.object[row])
        relation = int(graph.relation[row])
        edges.append((subject, relation, object_, time, row))
        edges.append((object_, relation + size, subject, time, row))
    return edges


def plain_walks(edges, subject, candidate, max_length, allowed):
    """All walks from the one to the other, as lists of edges; facts may be used again."""
    walks, found = [[]], []
    for _ in range(max_length):
        walks = [
            [*walk, edge]
            for walk in walks
            for edge in edges
            if edge[0] == (walk[-1][2] if walk else subject) and allowed[edge[1]]
        ]
        found += [walk for walk in walks if walk[-1][2] == candidate]
    return found


def plain_evidence(edges, query, candidate, walked, max_length):
    """The closest start less the query's by kind and relation; None where there is no time."""
    subject, head, start, own = query
    edges = [edge for edge in edges if edge[4] != own]
    walks = plain_walks(edges, subject, candidate, max_length, walked[head])
    facts = {
        "between": [e for e in edges if e[0] == candidate and e[2] == subject],
        "others": [e for e in edges if e[0] == candidate and e[2] != subject],
        "walks": [edge for walk in walks for edge in walk],
    }
    dated = OPEN_START < start < OPEN_END
    closest = {}
    for kind, found in facts.items():
        for relation in {edge[1] for edge in found}:
            times = [e[3] for e in found if e[1] == relation and e[3] is not None and dated]
            if times:
                closest[kind, relation] = min((abs(t - start), t - start) for t in times)[1]
            elif kind != "walks":
                closest[kind, relation] = None
    return closest


def query_of(queries, number):
    columns = (queries.subject, queries.directed_relation, queries.start, queries.fact)
    return tuple(int(column[number]) for column in columns)


def found_for(evidence, row):
    """The evidence for one candidate, as the oracle says it."""
    rows = np.flatnonzero(evidence.row == row)
    found = {
        (EVIDENCE_KINDS[evidence.kind[one]], int(evidence.relation[one])): (
            None if evidence.difference[one] == UNDATED else int(evidence.difference[one])
        )
        for one in rows
    }
    assert len(found) == len(rows)
    return found


def random_walked(graph, seed):
    size = 2 * len(graph.relations)
    return np.random.default_rng(seed).random((size, size)) < 0.7


# --- evidence --------------------------------------------------------------------------------


@NO_WARNING
@settings(max_examples=60)
@given(shared_queries(), st.integers(1, 4), SEEDS, st.booleans())
def test_evidence_equals_the_listing_of_facts_and_walks(shared, max_length, seed, of_facts):
    graph, queries = shared
    if of_facts:
        queries = all_queries(graph)
    walked = random_walked(graph, seed)
    offsets, candidate = every_candidate(graph, queries)
    evidence = Gatherer(graph, walked, max_length)(queries, offsets, candidate, Workers())
    edges = plain_edges(graph)
    for row in range(len(candidate)):
        query = query_of(queries, row // len(graph.entities))
        plain = plain_evidence(edges, query, int(candidate[row]), walked, max_length)
        assert found_for(evidence, row) == plain
    order = np.lexsort((evidence.relation, evidence.kind, evidence.row))
    assert (order == np.arange(len(evidence))).all()


def test_times_are_compared_without_overflow():
    assert time_distance(1990, 1990) < time_distance(1989, 1990) < time_distance(1991, 1990)
    for time in (UNKNOWN, OPEN_START, OPEN_END):
        assert time_distance(time, 1990) == time_distance(1990, time) == INCOMPARABLE
    times = np.array([-(10**18), -(2**40), -7, 0, 3, 2**40, 10**18])
    codes = np.array([time_distance(int(time), 0) for time in times])
    assert signed_differences(codes).tolist() == times.tolist()
    assert signed_differences(np.array([time_distance(10**18, -(10**18))])) == 2 * 10**18
    assert codes.max() < INCOMPARABLE


def test_a_level_of_walks_stops_at_its_limit():
    facts = pl.DataFrame(
        [("hub", "p", f"e{n}", 1990 + n) for n in range(5)]
        + [(f"e{n}", "q", "goal", 2000 + n) for n in range(5)]
        + [("goal", "r", "end", 2010)],
        ["subject", "relation", "object", "start"],
        orient="row",
    ).with_columns(end=pl.col("start"))
    graph = tilp.read(facts.cast(pl.String))
    hub, goal, end = (graph.entities.find(name) for name in ("hub", "goal", "end"))
    p, q, r = range(3)

    def closest(candidate, limit):
        query = QueryTable(*(np.array([n]) for n in (hub, p, 2010, 2010, -1, candidate)))
        gather = Gatherer(graph, np.ones((6, 6), np.bool_), 3, limit)
        evidence = gather(query, np.array([0, 1]), query.answer, Workers())
        return found_for(evidence, 0)

    others = {("others", r): 0, ("others", 3 + q): -6}
    assert closest(goal, 100) == {**others, ("walks", p): -16, ("walks", q): -6}
    # Of each entity's edges the first three are read: those of relations and facts given first.
    fewer = {("others", r): 0, ("others", 3 + q): -9}
    assert closest(goal, 3) == {**fewer, ("walks", p): -19, ("walks", q): -9}
    # From the second level's entities, e0 to e4, so many edges are read in all: q and p⁻¹ of each.
    walks = {("others", 3 + r): 0, ("walks", r): 0}
    assert closest(end, 100) == {**walks, ("walks", p): -16, ("walks", q): -6}
    assert closest(end, 5) == {**walks, ("walks", p): -18, ("walks", q): -8}
    assert closest(end, 3) == {**walks, ("walks", p): -19, ("walks", q): -9}


def test_walks_of_several_lengths_to_an_entity_all_go_on():
    rows = [("s", "p", "u"), ("s", "q", "v"), ("v", "r", "u"), ("u", "t", "w"), ("w", "t", "x")]
    facts = pl.DataFrame(rows, ["subject", "relation", "object"], orient="row")
    graph = tilp.read(facts.with_columns(start=pl.lit("1990"), end=pl.lit("1990")))
    s, x = (graph.entities.find(name) for name in "sx")
    query = QueryTable(*(np.array([n]) for n in (s, 0, 1990, 1990, -1, x)))
    walked = np.zeros((8, 8), np.bool_)
    walked[:, :4] = True

    def relations(max_length):
        evidence = Gatherer(graph, walked, max_length)(
            query, np.array([0, 1]), query.answer, Workers()
        )
        walks = evidence.relation[evidence.kind == EVIDENCE_KINDS.index("walks")]
        return {graph.relations.label(int(one)) for one in walks}

    assert relations(2) == set()
    assert relations(3) == {"p", "t"}
    assert relations(4) == {"p", "q", "r", "t"}


def test_threads_and_the_cut_into_chunks_do_not_change_evidence():
    graph = world(0, 1000).graph
    queries = all_queries(graph)
    offsets, candidate = every_candidate(graph, queries)
    size = 2 * len(graph.relations)
    walked = np.ones((size, size), np.bool_)
    gather = Gatherer(graph, walked, 3)
    shares = []
    with Workers(3) as workers:
        first = gather(queries, offsets, candidate, workers, progress=shares.append)
    assert len(shares) > 4 and shares[-1] == 1.0 and shares == sorted(shares)
    second = Gatherer(graph, walked, 3, max_chunks=1)(queries, offsets, candidate, Workers())
    for one in fields(first):
        assert np.array_equal(getattr(first, one.name), getattr(second, one.name))


# --- distributions ---------------------------------------------------------------------------


def normal(x, mean, deviation):
    return exp(-(((x - mean) / deviation) ** 2) / 2) / (deviation * sqrt(2 * pi))


def test_the_worked_example_of_the_appendix():
    graduation = Gaussian(np.array(22.0), np.array(1.0))
    death = Gaussian(np.array(70.0), np.array(6.0))
    assert np.exp(graduation.log_density(np.array(47.0))) == pytest.approx(7.654e-137, rel=1e-3)
    assert np.exp(death.log_density(np.array(114.0))) == pytest.approx(1.397e-13, rel=1e-3)


def test_densities_far_away_do_not_vanish_as_logarithms():
    far = Gaussian(np.array([22.0]), np.array([0.5])).log_density(np.array([1e4]))
    assert np.isfinite(far).all() and far < -1e8
    assert Exponential(np.array(2.0)).log_density(np.array(1e6)) == pytest.approx(log(2) - 2e6)


def test_bernoulli_is_never_sure():
    fitted = Bernoulli.fit(np.array([0, 0, 0, 1]), np.array([True, True, True, False]), 3)
    assert fitted.probability.tolist() == pytest.approx([4 / 5, 1 / 3, 1 / 2])
    seen = np.exp(fitted.log_density(np.array([True, False, True])))
    assert seen.tolist() == pytest.approx([4 / 5, 2 / 3, 1 / 2])


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=8), min_size=1, max_size=4))
def test_the_likelier_of_gaussian_and_exponential_is_taken(samples):
    place = np.repeat(np.arange(len(samples)), [len(one) for one in samples])
    x = np.concatenate(samples).astype(float)
    fitted = PairInterval.fit(place, x, len(samples) + 1)
    for number, sample in enumerate(samples):
        h, name = plain_interval(sample)
        assert fitted.is_gaussian[number] == (name == "Gaussian")
        at = np.array([0.0, 1.0, 5.0, 59.0])
        densities = np.exp(fitted[np.full(4, number)].log_density(at))
        assert densities.tolist() == pytest.approx([h(one) for one in at], rel=1e-9)


def plain_interval(sample):
    """The density of the distribution under which a sample is likelier, and its name."""
    mean = sum(sample) / len(sample)
    deviation = max(0.5, sqrt(sum((x - mean) ** 2 for x in sample) / len(sample)))
    rate = 1 / max(0.5, mean)
    by_gaussian = sum(
        -(((x - mean) / deviation) ** 2) / 2 - log(deviation) - log(2 * pi) / 2 for x in sample
    )
    by_exponential = sum(log(rate) - rate * x for x in sample)
    if by_gaussian > by_exponential:
        return (lambda x: normal(x, mean, deviation)), "Gaussian"
    return (lambda x: rate * exp(-rate * x)), "exponential"


class PlainFeatures:
    """Distributions fitted by going through the training facts, and eq. 14-21 with them."""

    def __init__(self, graph, walked, max_length):
        self.edges, self.walked, self.max_length = plain_edges(graph), walked, max_length
        self.size = len(graph.relations)
        self.again, self.apart = defaultdict(list), defaultdict(list)
        queries = all_queries(graph)
        for number in range(len(queries)):
            head = int(queries.directed_relation[number])
            found = self.evidence(query_of(queries, number), int(queries.answer[number]))
            for kind in ("between", "others"):
                self.again[kind, head].append((kind, self.inverse(head)) in found)
            for (kind, relation), difference in found.items():
                if difference is not None:
                    for seen in ((kind, head, relation), (kind, head), (kind,)):
                        self.apart[seen].append(difference)

    def inverse(self, relation):
        return relation + self.size if relation < self.size else relation - self.size

    def evidence(self, query, candidate):
        return plain_evidence(self.edges, query, candidate, self.walked, self.max_length)

    def recurrence(self, kind, head, x):
        p = (sum(self.again[kind, head]) + 1) / (len(self.again[kind, head]) + 2)
        return p if x else 1 - p

    def place(self, kind, head, relation):
        return (kind, head, relation) if self.apart.get((kind, head, relation)) else (kind, head)

    def order(self, kind, head, relation, difference):
        seen = self.apart[self.place(kind, head, relation)]
        p = (sum(one > 0 for one in seen) + 1) / (len(seen) + 2)
        return p if difference > 0 else 1 - p

    def interval(self, kind, head, relation, difference):
        pools = [(kind, head, relation), (kind, head)]
        pool = next((one for one in pools if len(self.apart[one]) >= 5), (kind,))
        seen = [abs(one) for one in self.apart[pool]]
        return plain_interval(seen)[0](abs(difference)) if seen else 2 * exp(-2 * abs(difference))

    def score(self, weights, fitted, query, candidate, phi):
        """φ_TILP and its parts."""
        head, found = query[1], self.evidence(query, candidate)
        parts = {"rules": weights.rules * phi}
        for number, kind in enumerate(EVIDENCE_KINDS):
            dated = {
                relation: difference
                for (of, relation), difference in found.items()
                if of == kind and difference is not None
            }
            phis = {
                "order": self.mean(weights.order_weight, weights.order_bias, fitted, self.order)(
                    kind, head, dated
                ),
                "pair": self.mean(weights.pair_weight, weights.pair_bias, fitted, self.interval)(
                    kind, head, dated
                ),
            }
            if kind != "walks":
                h = self.recurrence(kind, head, (kind, self.inverse(head)) in found)
                w, b = (
                    weights.recurrence_weight[number, head],
                    weights.recurrence_bias[number, head],
                )
                phis["recurrence"] = w * h + b
            for feature, value in phis.items():
                share = weights.mixing[number, FEATURES.index(feature)] * weights.evidence[number]
                parts[f"{feature}_{kind}"] = weights.features * share * value
        return parts

    def mean(self, weight, bias, fitted, h):
        """Eq. 17."""

        def phi(kind, head, dated):
            above = below = 0.0
            for relation, difference in dated.items():
                numbers = (np.array([n]) for n in (EVIDENCE_KINDS.index(kind), head, relation))
                (place,) = fitted.indices(*numbers)
                above += exp(weight[place]) * (h(kind, head, relation, difference) + bias[place])
                below += exp(weight[place])
            return above / below if below else 0.0

        return phi


def random_weights(features, seed):
    generator = np.random.default_rng(seed)
    directed, pairs = features.distributions.n_directed, len(features.distributions)
    mixing = generator.random((3, 3)) * [[1, 1, 1], [1, 1, 1], [0, 1, 1]]
    return FeatureWeights(
        *generator.normal(size=(2, 2, directed)),
        *generator.normal(size=(4, pairs)),
        mixing / mixing.sum(axis=1, keepdims=True),
        generator.random(3),
        *generator.random(3),
    )


@NO_WARNING
@settings(max_examples=40)
@given(graphs(), st.integers(1, 3), SEEDS)
def test_scores_equal_the_equations_of_the_paper(graph, max_length, seed):
    walked = random_walked(graph, seed)
    features = PaperFeatures.fit(graph, walked, max_length)
    plain = PlainFeatures(graph, walked, max_length)
    queries = all_queries(graph)
    offsets, candidate = every_candidate(graph, queries)
    phi = np.random.default_rng(seed).random(len(candidate))
    weights = random_weights(features, seed)
    evidence = features.gather(queries, offsets, candidate)
    terms = features.contributions(weights, queries, evidence, phi)
    scores = features.score(weights, queries, evidence, phi)
    assert tuple(terms) == CONTRIBUTIONS
    for row in range(len(candidate)):
        query = query_of(queries, row // len(graph.entities))
        parts = plain.score(weights, features.distributions, query, int(candidate[row]), phi[row])
        assert {name: terms[name][row] for name in terms} == pytest.approx(parts, rel=1e-9)
        assert scores[row] == pytest.approx(sum(parts.values()), rel=1e-9)
    # Places of pairs are their own: each one that was seen, and one for all others of a head.
    keys = {key for key, seen in plain.apart.items() if len(key) == 3 and seen}
    assert len(features.distributions.key) == len(keys)


def test_candidates_without_evidence_get_nothing_from_order_and_interval(facts):
    graph = tilp.read(facts)
    features = PaperFeatures.fit(graph, np.zeros((4, 4), np.bool_), 3)
    queries = all_queries(graph)
    offsets, candidate = every_candidate(graph, queries)
    evidence = features.gather(queries, offsets, candidate)
    terms = features.contributions(
        random_weights(features, 1), queries, evidence, np.zeros(len(candidate))
    )
    assert not terms["order_walks"].any() and not terms["pair_walks"].any()
    assert terms["recurrence_others"].all() and terms["order_others"].any()


def test_the_interval_that_the_world_plants_is_found_and_printed():
    graph = world(0, 3000).graph
    size = 2 * len(graph.relations)
    features = PaperFeatures.fit(graph, np.zeros((size, size), np.bool_), 1)
    table = distribution_table(features.distributions, features.graph.relations)
    found = table.filter(
        relation="bornIn⁻¹", other="graduatedFrom", evidence="others", feature="pair"
    ).row(0, named=True)
    assert found["distribution"] == "Gaussian" and found["seen"] > 50 and not found["pooled"]
    assert found["mean"] == pytest.approx(GRADUATION_AGE[0], abs=0.3)
    assert found["deviation"] == pytest.approx(GRADUATION_AGE[1], abs=0.2)
    order = table.filter(
        relation="bornIn⁻¹", other="graduatedFrom", evidence="others", feature="order"
    ).row(0, named=True)
    assert order["distribution"] == "Bernoulli" and order["probability"] > 0.98
    # A person is born once; places bear many. A team's home is its own again and again.
    again = table.filter(feature="recurrence", evidence="others").select("relation", "probability")
    probability = dict(again.rows())
    assert probability["bornIn⁻¹"] < 0.05 < 0.95 < probability["bornIn"]
    assert table.filter(pl.col("pooled"))["seen"].max() < 5
    assert (table["seen"] > 0).all()


# --- phase two -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lesson():
    """Features of a small world, and queries of train and valid with random candidates."""
    graph = world(0, 1000).graph
    size = 2 * len(graph.relations)
    features = PaperFeatures.fit(graph, np.ones((size, size), np.bool_), 3)
    generator = np.random.default_rng(3)

    def examples(split, walked):
        queries = QueryTable.of_facts(graph, np.asarray(graph.rows(split)), walked=walked)
        listed = generator.integers(0, len(graph.entities), (len(queries), 20)).astype(np.int32)
        listed[:, 7] = queries.answer
        evidence = features.gather(queries, np.arange(len(queries) + 1) * 20, listed.reshape(-1))
        phi = generator.random(listed.size) / 20
        answers = np.arange(len(queries)) * 20 + 7
        return FeatureExamples(queries, evidence, phi, answers)

    return features, examples("train", True), examples("valid", False)


def loss_of(features, weights, examples):
    """The mean negative log-likelihood of answers, query by query."""
    scores = features.score(weights, examples.queries, examples.evidence, examples.phi)
    losses = []
    for number, answer in enumerate(examples.answer_row):
        if answer >= 0:
            begin, end = examples.evidence.offsets[number : number + 2]
            shares = np.exp(scores[begin:end] / weights.temperature)
            losses.append(-log(shares[answer - begin] / shares.sum()))
    return sum(losses) / len(losses)


def test_the_loss_and_its_gradient_are_those_of_the_scores(lesson):
    features, _, examples = lesson
    hidden = examples.answer_row.copy()
    hidden[::3] = -1
    examples = replace(examples, answer_row=hidden)
    generator = np.random.default_rng(8)
    weights = replace(random_weights(features, 2), temperature=0.4)
    values = feature_values(weights)
    objective = FeatureObjective(features, examples)
    loss, slopes = objective(values, Workers())
    assert loss == pytest.approx(loss_of(features, weights, examples), rel=1e-9)
    with Workers(3) as workers:
        again = objective(values, workers)
    assert again[0] == loss
    assert all(np.array_equal(*both) for both in zip(again[1], slopes, strict=True))
    # Along any direction the loss changes as the gradient says.
    for place, array in enumerate(values):
        for _ in range(3):
            way = generator.normal(size=array.shape)
            losses = [
                objective(values._replace(**{values._fields[place]: array + step * way}), Workers())
                for step in (1e-5, -1e-5)
            ]
            change = (losses[0][0] - losses[1][0]) / 2e-5
            assert change == pytest.approx((slopes[place] * way).sum(), rel=1e-5, abs=1e-8)


def test_training_makes_held_out_answers_likelier(lesson):
    features, training, held_out = lesson
    shares = []
    settings_ = FeatureTrainingSettings(steps=60)
    report = shares.append
    weights, curve = train_features(features, training, held_out, settings_, progress=report)
    assert shares == [step / 60 for step in range(1, len(curve.train) + 1)]
    assert curve.train[-1] < 0.8 * curve.train[0]
    assert min(curve.held_out) < 0.8 * log(20)
    assert loss_of(features, weights, held_out) == pytest.approx(min(curve.held_out), rel=1e-4)
    # What eq. 14, 16 and 19-21 ask of the weights.
    assert weights.mixing.sum(axis=1).tolist() == pytest.approx([1, 1, 1], rel=1e-12)
    assert weights.mixing[2, 0] == 0 and (weights.mixing >= 0).all()
    assert (weights.evidence >= 0).all() and weights.rules >= 0 and weights.features >= 0
    # Random numbers in place of the rules' scores are not worth what features are.
    assert weights.rules < weights.features


def test_slopes_go_back_through_what_the_loss_is_made_of(lesson):
    values = _initial(lesson[0], ("order",))
    values["mixing"] = values["mixing"].at[1, 0].set(0.7)
    values["evidence"] = values["evidence"].at[2].set(-0.3)
    factor, scale = _factors(values)
    meant = feature_values(_weights(values))
    assert np.allclose(factor, meant.factor, rtol=1e-6)
    assert np.allclose(scale, meant.scale, rtol=1e-6)


def test_the_temperature_makes_held_out_answers_likeliest(lesson):
    features, _, held_out = lesson
    weights = replace(random_weights(features, 4), temperature=2.0)
    found = calibrate_temperature(features, weights, held_out, Workers())
    assert replace(found, temperature=2.0) == weights
    losses = {
        by: loss_of(features, replace(weights, temperature=2.0 * 2**by), held_out)
        for by in range(-4, 3)
    }
    assert found.temperature < 2.0  # scores differ by less than that
    assert loss_of(features, found, held_out) <= min(losses.values())


def test_training_twice_gives_the_same(lesson):
    features, training, held_out = lesson
    (first, curve), (second, other_curve) = (
        train_features(features, training, held_out, FeatureTrainingSettings(steps=10))
        for _ in range(2)
    )
    for name, array in first.to_arrays().items():
        assert np.array_equal(array, second.to_arrays()[name])
    assert curve == other_curve


def test_queries_without_their_answer_teach_nothing(lesson):
    features, training, held_out = lesson
    settings_ = FeatureTrainingSettings(steps=5)
    hidden = training.answer_row.copy()
    hidden[::2] = -1
    some = replace(training, answer_row=hidden)
    changed = some.phi.copy()
    changed[training.evidence.query % 2 == 0] = 5.0
    first, second = (
        train_features(features, one, held_out, settings_)[1]
        for one in (some, replace(some, phi=changed))
    )
    assert first == second
    nothing = replace(training, answer_row=np.full_like(hidden, -1))
    with pytest.raises(TilpError, match="nothing to learn from"):
        train_features(features, nothing, held_out, settings_)
    _, alone = train_features(features, some, nothing, settings_)
    assert alone.held_out[-1] < alone.train[0]


def test_training_ends_when_held_out_queries_gain_nothing(lesson):
    features, training, held_out = lesson
    settings_ = FeatureTrainingSettings(steps=200, patience=10, learning_rate=2.0)
    _, curve = train_features(features, training, held_out, settings_)
    best = curve.held_out_step[int(np.argmin(curve.held_out))]
    assert len(curve.train) == best + 10 < 200


def test_features_and_weights_can_be_kept_in_a_file(lesson, tmp_path):
    features, _, examples = lesson
    weights = random_weights(features, 5)
    write_arrays(tmp_path / "features.npz", FittedPaper(features, weights).to_arrays())
    fitted = FittedPaper.from_arrays(read_arrays(tmp_path / "features.npz"), features.graph)
    again, weights_again = fitted.features, fitted.weights
    evidence = again.gather(
        examples.queries, examples.evidence.offsets, examples.evidence.candidate
    )
    scores = (
        one.score(by, examples.queries, of, examples.phi)
        for one, by, of in (
            (features, weights, examples.evidence),
            (again, weights_again, evidence),
        )
    )
    assert np.array_equal(*scores)
    tables = [
        distribution_table(one.distributions, one.graph.relations) for one in (again, features)
    ]
    assert tables[0].equals(tables[1])
    with pytest.raises(TilpError, match="the array recurrence_weight is missing"):
        FeatureWeights.from_arrays({})
    with pytest.raises(TilpError, match="the array directed is missing"):
        FittedDistributions.from_arrays({})
    with pytest.raises(TilpError, match="the array walked is missing"):
        FittedPaper.from_arrays(features.distributions.to_arrays(), features.graph)


def test_applying_features_needs_no_jax():
    code = "import tilp.features.paper.features, sys; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_features_are_refused_for_other_relations(lesson, facts):
    with pytest.raises(TilpError, match="the graph has 2; give them a graph"):
        FittedPaper.from_arrays(lesson[0].distributions.to_arrays(), tilp.read(facts))
