"""Rule weights: the loss against a plain loop, its gradient, and training."""

from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilp
from oracles import same_arrays
from strategies import random_examples
from tilp.errors import TilpError
from tilp.graph import QueryTable
from tilp.learning import KNOWN_KINDS, PopularityPrior
from tilp.learning.attention_net import AttentionNet
from tilp.learning.examples import make_training_examples, training_queries
from tilp.learning.rule_weights import LogWeights, Objective, TrainingSettings, train_rule_weights
from tilp.parallel import Workers
from tilp.types import Grain, Weights
from tilp.walks import MiningSettings, Walker, mine

SEEDS = st.integers(0, 2**32 - 1)
NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")


def random_logs(graph, n_rules, seed):
    generator = np.random.default_rng(seed)
    n_directed = 2 * len(graph.relations)
    return LogWeights(
        generator.normal(-1.0, 1.0, n_rules),
        generator.normal(-1.0, 1.0, n_directed),
        generator.normal(0.0, 1.0, (n_directed, len(KNOWN_KINDS))),
    )


def plain_loss(examples, prior, logs, power):
    """The mean of - log (v π + Σ w g α) / (v + Σ w g) over the queries that a rule fired for."""
    losses = []
    of_prior = prior.answer_probabilities(examples.queries)
    for query in range(len(examples.queries)):
        here = range(examples.offsets[query], examples.offsets[query + 1])
        if not here:
            continue
        head, kind = examples.queries.directed_relation[query], examples.answer_kind[query]
        factors = [np.exp(one) for one in logs.factor[head]]
        own = factors[kind] if kind >= 0 else 1.0
        whole = np.exp(logs.prior[head])
        right = whole * of_prior[query]
        for example in here:
            at_answer, others = (
                float(examples.at_answer[example]),
                float(examples.at_others[example]),
            )
            at_known = [float(one) for one in examples.at_known[example]]
            gain = (others + at_answer + sum(at_known)) ** power
            total = others + own * at_answer
            total += sum(factor * walks for factor, walks in zip(factors, at_known, strict=True))
            mass = np.exp(logs.rule[examples.rule[example]]) * gain
            whole += mass
            right += mass * own * at_answer / total
        losses.append(-np.log(right / whole))
    return sum(losses) / max(len(losses), 1)


@settings(max_examples=15)
@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]))
def test_loss_and_gradient_are_those_of_a_plain_loop(seed, power):
    graph = tilp.read(pl.DataFrame({"subject": [*"aab"], "relation": [*"rqr"], "object": [*"bca"]}))
    n_rules, prior = 5, PopularityPrior.from_graph(graph)
    examples = random_examples(graph, n_rules, 12, seed)
    logs = random_logs(graph, n_rules, seed)
    loss, gradient = Objective(examples, prior, n_rules, power)(logs, Workers())
    assert loss == pytest.approx(plain_loss(examples, prior, logs, power), rel=1e-6)
    for one in fields(LogWeights):
        values, found = getattr(logs, one.name), getattr(gradient, one.name)
        assert found.shape == values.shape
        for place in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[place] = 1e-5
            sides = [
                plain_loss(
                    examples, prior, replace(logs, **{one.name: values + sign * step}), power
                )
                for sign in (1, -1)
            ]
            assert found[place] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-6)


def test_the_loss_has_the_same_bits_for_any_number_of_workers(facts):
    graph = tilp.read(facts)
    examples = random_examples(graph, 40, 300, seed=1)
    objective = Objective(examples, PopularityPrior.from_graph(graph), 40, 0.3)
    logs = random_logs(graph, 40, seed=2)
    loss, gradient = objective(logs, Workers())
    assert objective.n_queries == (np.diff(examples.offsets) > 0).sum() < 300
    for threads in (1, 2, 3):
        with Workers(threads) as workers:
            again, other = objective(logs, workers)
        assert again == loss
        assert same_arrays(gradient, other)


def test_the_loss_of_nothing_is_nothing(facts):
    graph = tilp.read(facts)
    examples = random_examples(graph, 3, 0, seed=1)
    loss, gradient = Objective(examples, PopularityPrior.from_graph(graph), 3)(
        random_logs(graph, 3, seed=1), Workers()
    )
    assert loss == 0.0
    assert not any(np.any(getattr(gradient, one.name)) for one in fields(gradient))


def smoothed(rules):
    fired = np.array([one.body_support for one in rules], np.float64)
    return np.array([one.confidence for one in rules]) * fired / (fired + 5.0) + 1e-6


def queries_to_train_on(graph):
    return training_queries(graph, np.arange(len(graph.rows("train"))))


class Task:
    """Everything that training takes, of one world."""

    def __init__(self, world, max_length):
        graph = world.graph
        mining = MiningSettings(grains=(Grain.PAIRS,), max_length=max_length)
        self.rules = mine(graph, sorted({rule.relation for rule in world.rules}), mining, threads=2)
        self.walker = Walker(graph, grains=mining.grains, max_length=max_length)
        self.rows = self.walker.encoding.encode([one.rule for one in self.rules])
        self.compiled = self.walker.encoding.compiled(self.rows)
        self.prior = PopularityPrior.from_graph(graph)
        valid = np.asarray(graph.rows("valid"), np.int64)
        self.training = self.objective(queries_to_train_on(graph))
        self.held_out = self.objective(QueryTable.of_facts(graph, valid, walked=False))

    def objective(self, queries):
        examples = make_training_examples(self.walker, queries, self.compiled, Workers())
        return Objective(examples, self.prior, len(self.rules), 0.3)

    def train(self, threads=1, training=None, held_out=None, checkpoint=None, progress=None, **how):
        chosen = TrainingSettings(**{"steps": 12, "dimension": 6, **how})
        with Workers(threads) as workers:
            return train_rule_weights(
                self.walker.encoding,
                self.rows,
                smoothed(self.rules),
                training or self.training,
                held_out or self.held_out,
                chosen,
                workers,
                checkpoint=checkpoint,
                progress=progress,
            )


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(seed=1, size=3_000)


@pytest.fixture(scope="module")
def task(world):
    return Task(world, max_length=2)


@pytest.fixture(scope="module")
def trained(task):
    """What training finds, undisturbed, with each kind of weights."""
    return {kind: task.train(weights=kind) for kind in Weights}


def assert_same(first, second):
    assert same_arrays(first.log_weights, second.log_weights)
    assert first.curve == second.curve


def test_examples_of_a_world_are_the_same_for_any_number_of_workers(task):
    queries = queries_to_train_on(task.walker.graph)
    done = []
    whole = make_training_examples(
        task.walker, queries, task.compiled, Workers(), seed=3, progress=done.append
    )
    assert done[-1] == 1.0
    assert len(whole) > 10_000 and whole.excluded.any() and whole.at_known.any(axis=0).all()
    for threads in (1, 2, 3):
        done.clear()
        with Workers(threads) as workers:
            parts = make_training_examples(
                task.walker,
                queries,
                task.compiled,
                workers,
                seed=3,
                chunk_steps=3e3,
                progress=done.append,
            )
        assert len(done) > 10 and done == sorted(done) and done[-1] == 1.0
        assert same_arrays(whole, parts)
    other = make_training_examples(task.walker, queries, task.compiled, Workers(), seed=4)
    assert not np.array_equal(whole.excluded, other.excluded)


@pytest.mark.parametrize("kind", list(Weights))
def test_the_loss_of_training_queries_falls(trained, kind):
    curve = trained[kind].curve
    assert len(curve.train) == 12 and curve.held_out_step == [5, 10, 12]
    assert curve.train[-1] < curve.train[0] - 0.1
    assert min(curve.train) == curve.train[-1]
    assert curve.held_out[-1] < curve.held_out[0]


@pytest.mark.parametrize("kind", list(Weights))
def test_training_starts_from_what_the_kind_of_weights_says(task, kind):
    held = task.train(weights=kind, steps=1, learning_rate=1e-9, net_learning_rate=1e-9).log_weights
    net = AttentionNet(task.walker.encoding, 6)
    scores = np.asarray(
        net.log_scores(net.initial_parameters(0), net.part_indices(task.rows)), np.float64
    )
    confidence = np.log(smoothed(task.rules))
    expected = {Weights.ATTENTION: scores, Weights.FREE: confidence}[kind]
    np.testing.assert_allclose(held.rule, expected, atol=1e-5)
    assert held.factor == pytest.approx(0.0, abs=1e-6)
    assert held.prior == pytest.approx(held.prior[0], abs=1e-6)


def test_known_answers_can_count_as_all_others_do(task, trained):
    assert trained[Weights.FREE].log_weights.factor.any()
    alike = task.train(weights=Weights.FREE, known_factors=False)
    assert not alike.log_weights.factor.any()
    assert alike.curve.train[-1] < alike.curve.train[0] - 0.1


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", list(Weights))
def test_training_finds_the_same_again_with_any_number_of_workers(task, trained, kind, threads):
    assert_same(task.train(weights=kind, threads=threads), trained[kind])


def test_steps_are_those_of_adam_with_a_rate_that_falls_to_nothing(task, trained):
    """Free weights, prior weights and factors, drawn to where they begin; in double precision."""
    first = LogWeights(
        np.log(smoothed(task.rules)),
        np.full(task.prior.n_directed, -1.5),
        np.zeros((task.prior.n_directed, len(KNOWN_KINDS))),
    )
    strengths = {"rule": 1.0, "prior": 1.0, "factor": 0.1}
    logs = first
    mean, square = dict.fromkeys(strengths, 0.0), dict.fromkeys(strengths, 0.0)
    for step in range(12):
        loss, gradient = task.training(logs, Workers())
        rate = 0.2 * (1 + np.cos(np.pi * step / 12)) / 2
        moved = {}
        for name, strength in strengths.items():
            away = getattr(logs, name) - getattr(first, name)
            slope = getattr(gradient, name) + strength * away / task.training.n_queries
            loss += strength * (away**2).sum() / 2 / task.training.n_queries
            mean[name] = 0.9 * mean[name] + 0.1 * slope
            square[name] = 0.99 * square[name] + 0.01 * slope**2
            mean_now = mean[name] / (1 - 0.9 ** (step + 1))
            square_now = square[name] / (1 - 0.99 ** (step + 1))
            change = rate * mean_now / (np.sqrt(square_now) + 1e-10)
            moved[name] = getattr(logs, name) - change
        assert trained[Weights.FREE].curve.train[step] == pytest.approx(loss, rel=1e-9)
        logs = LogWeights(**moved)
    for name in strengths:
        np.testing.assert_allclose(
            getattr(trained[Weights.FREE].log_weights, name), getattr(logs, name), atol=1e-9
        )


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("kind", list(Weights))
def test_stopped_training_goes_on_to_the_same_weights(task, trained, kind, tmp_path):
    checkpoint = tmp_path / "state.npz"
    shares = []

    def stop(share):
        shares.append(share)
        if share > 6.5 / 12:
            raise StoppedError

    with pytest.raises(StoppedError):
        task.train(weights=kind, checkpoint=checkpoint, progress=stop)
    assert shares == pytest.approx(np.arange(1, 8) / 12)
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]
    shares.clear()
    finished = task.train(weights=kind, checkpoint=checkpoint, progress=shares.append, threads=2)
    assert shares == pytest.approx(np.arange(6, 13) / 12)  # on from the fifth step
    assert_same(finished, trained[kind])
    assert_same(task.train(weights=kind, checkpoint=checkpoint), trained[kind])


def test_weights_depend_on_the_seed_of_the_net(task, trained):
    other = task.train(weights=Weights.ATTENTION, seed=1)
    assert not np.array_equal(other.log_weights.rule, trained[Weights.ATTENTION].log_weights.rule)
    free = task.train(weights=Weights.FREE, seed=1)
    assert_same(free, trained[Weights.FREE])


def shorter(content):
    return content[: len(content) // 2]


def changed(content):
    middle = len(content) // 2
    return (
        content[:middle]
        + bytes(255 - byte for byte in content[middle : middle + 64])
        + (content[middle + 64 :])
    )


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda _: b"not a checkpoint", id="text"),
        pytest.param(lambda content: content[:3], id="begin"),
        pytest.param(shorter, id="shorter"),
        pytest.param(changed, id="changed"),
    ],
)
def test_a_damaged_checkpoint_is_to_be_removed(task, tmp_path, damage):
    checkpoint = tmp_path / "state.npz"
    task.train(steps=5, checkpoint=checkpoint)
    checkpoint.write_bytes(damage(checkpoint.read_bytes()))
    with pytest.raises(TilpError, match=r"state\.npz.*; remove it"):
        task.train(steps=5, checkpoint=checkpoint)


def test_a_checkpoint_of_something_else_is_to_be_removed(task, tmp_path):
    checkpoint = tmp_path / "state.npz"
    task.train(steps=5, checkpoint=checkpoint)
    with pytest.raises(TilpError, match="remove it to begin training anew"):
        task.train(steps=5, weights=Weights.ATTENTION, checkpoint=checkpoint)
    np.savez(checkpoint, something=np.zeros(3))
    with pytest.raises(TilpError, match="remove it to begin training anew"):
        task.train(steps=5, checkpoint=checkpoint)


def test_training_ends_when_held_out_queries_fare_worse_and_keeps_the_best(task):
    queries = queries_to_train_on(task.walker.graph)
    few = task.objective(queries[np.arange(0, len(queries), 20)])
    found = task.train(
        training=few, steps=200, patience=20, learning_rate=0.05, l2=0.0, weights=Weights.FREE
    )
    curve = found.curve
    best = int(np.argmin(curve.held_out))
    assert 0 < best < len(curve.held_out) - 1
    assert len(curve.train) == curve.held_out_step[best] + 20 < 200
    assert curve.held_out_step == list(range(5, len(curve.train) + 1, 5))
    assert task.held_out(found.log_weights, Workers())[0] == curve.held_out[best]


def test_little_patience_does_not_mean_no_training(task):
    found = task.train(weights=Weights.FREE, patience=3)
    assert found.curve.held_out
    assert not np.array_equal(found.log_weights.rule, np.float32(np.log(smoothed(task.rules))))


def test_planted_rules_weigh_more_than_the_other_rules_of_their_heads(world):
    task = Task(world, max_length=3)
    found = task.train(weights=Weights.FREE, steps=30)
    weight, heads = np.exp(found.log_weights.rule), task.rows[:, 2]
    place = {str(one.rule): number for number, one in enumerate(task.rules)}
    ratios = []
    for rule in world.rules:
        number = place[rule.text]
        ratios.append(weight[number] / np.median(weight[heads == heads[number]]))
        assert ratios[-1] > 1.5, rule.text
    assert np.exp(np.mean(np.log(ratios))) > 5
