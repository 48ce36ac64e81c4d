"""The attention net against the equations of the paper."""

from itertools import product

import jax
import numpy as np
import pytest
from hypothesis import strategies as st

import tilp
from tilp.learning.attention_net import AttentionNet
from tilp.types import Grain
from tilp.walks import Walker

SEEDS = st.integers(0, 2**32 - 1)
NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")


def net_of(facts, grains, max_length):
    walker = Walker(tilp.read(facts), grains=grains, max_length=max_length)
    return AttentionNet(walker.encoding, 3)


def random_parameters(net, seed):
    """Of the net's shapes, but with biases that are not zero."""
    generator = np.random.default_rng(seed)
    return jax.tree.map(
        lambda one: jax.numpy.asarray(generator.normal(0.0, 0.7, one.shape)),
        net.initial_parameters(0),
    )


def all_rows(net):
    """Every rule that there can be, as rows of the encoding."""
    encoding = net.encoding
    rows = []
    for number, form in enumerate(encoding.forms):
        for length in range(1, encoding.max_length + 1):
            ranges = (
                2 * len(encoding.relations),
                encoding.n_directed**length,
                len(form.body_relations) ** len(form.body_pairs(length)),
                len(form.query_relations) ** len(form.query_pairs(length)),
            )
            rows += [(number, length, *row) for row in product(*map(range, ranges))]
    return np.array(rows, np.int64)


def some_rows(net, seed, count=60):
    """Rules of every form and length, drawn by lot."""
    generator = np.random.default_rng(seed)
    encoding = net.encoding
    rows = []
    for place in range(count):
        number = place % len(encoding.forms)
        length = 1 + place // len(encoding.forms) % encoding.max_length
        form = encoding.forms[number]
        ranges = (
            2 * len(encoding.relations),
            encoding.n_directed**length,
            len(form.body_relations) ** len(form.body_pairs(length)),
            len(form.query_relations) ** len(form.query_pairs(length)),
        )
        rows.append((number, length, *(int(generator.integers(size)) for size in ranges)))
    return np.array(rows, np.int64)


def softmax(linear, state):
    logits = linear["weight"] @ state + linear["bias"]
    shares = np.exp(logits - logits.max())
    return shares / shares.sum()


def sigmoid(number):
    return 1 / (1 + np.exp(-number))


def updated(weights, given_, state, memory):
    """One step of the LSTM, gate by gate."""
    size = len(state)

    def gate(number):
        rows = slice(number * size, (number + 1) * size)
        of_input = weights["input"][rows] @ given_ + weights["bias"][rows]
        return of_input + weights["state"][rows] @ state

    enter, forget, leave = sigmoid(gate(0)), sigmoid(gate(1)), sigmoid(gate(3))
    memory = forget * memory + enter * np.tanh(gate(2))
    return leave * np.tanh(memory), memory


def score_by_the_paper(net, parameters, rule, number):
    """Eq. 8-13 for one rule; with several forms, times the share of the rule's own."""
    relations, forms = net.encoding.relations, net.encoding.forms
    form, length = forms[number], rule.length

    def directed(atom):
        return relations.find(atom.relation) + atom.inverse * len(relations)

    head = directed(rule.head)
    embedding = parameters["embedding"]
    states = [np.zeros(net.dimension)]  # h_0
    memory = np.zeros(net.dimension)
    for _ in range(length):  # eq. 8
        state, memory = updated(parameters["update"], embedding[length, head], states[-1], memory)
        states.append(state)
    score = softmax(parameters["length"], embedding[0, head])[length - 1]  # eq. 12
    if len(forms) > 1:
        score *= softmax(parameters["form"], embedding[0, head])[number]
    words = {constraint.indices: constraint.word for constraint in rule.constraints}
    for i in range(1, length + 1):
        score *= softmax(parameters["predicate"], states[i])[directed(rule.body[i - 1])]  # eq. 9
        if (i, length + 1) in words:
            word = form.query_relations.index(words.pop((i, length + 1)))
            score *= softmax(parameters["with_query"][number], states[i])[word]  # eq. 10
    for j in range(1, length):
        for k in range(j + 1, length + 1):
            if (j, k) in words:
                word = form.body_relations.index(words.pop((j, k)))
                both = np.concatenate([states[j], states[k]])
                score *= softmax(parameters["between"][number], both)[word]  # eq. 11
    assert not words
    return score


@pytest.mark.parametrize(
    "grains",
    [
        (Grain.PAIRS,),
        (Grain.PAIRS, Grain.GAP),
        (Grain.GAP, Grain.STATIC, Grain.ALLEN, Grain.ADJACENT, Grain.QUERY),
    ],
    ids="+".join,
)
def test_scores_of_rules_are_those_of_the_paper(facts, grains):
    net = net_of(facts, grains, max_length=3)
    rows = some_rows(net, seed=1)
    with jax.enable_x64(True):
        parameters = random_parameters(net, seed=2)
        found = np.asarray(net.log_scores(parameters, net.part_indices(rows)))
        plain = jax.tree.map(np.asarray, parameters)
    assert found.dtype == np.float64
    expected = [
        np.log(score_by_the_paper(net, plain, net.encoding.lift(row), row[0])) for row in rows
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    if grains == (Grain.PAIRS, Grain.GAP):
        in_single = net.log_scores(jax.tree.map(np.float32, plain), net.part_indices(rows))
        np.testing.assert_allclose(in_single, expected, rtol=1e-4)


def test_with_all_pairs_alone_a_rule_has_exactly_the_parts_of_equation_13(facts):
    net = net_of(facts, [Grain.PAIRS], max_length=3)
    rows = some_rows(net, seed=3)
    no_part = len(net.log_attention(net.initial_parameters(0))) - 1
    for row, places in zip(rows, net.part_indices(rows), strict=True):
        rule, length = net.encoding.lift(row), int(row[1])
        pairs = {(j, k) for j, k in product(range(1, length + 2), repeat=2) if j < k}
        assert {one.indices for one in rule.constraints} == pairs
        parts = set(places.tolist()) - {no_part}
        assert len(parts) == 2 + length + len(pairs)  # length and form, predicates, words
    with jax.enable_x64(True):
        parameters = random_parameters(net, seed=2)
        before = np.asarray(net.log_scores(parameters, net.part_indices(rows)))
        parameters["form"] = jax.tree.map(lambda one: one + 5.0, parameters["form"])
        after = np.asarray(net.log_scores(parameters, net.part_indices(rows)))
    np.testing.assert_array_equal(before, after)  # the only form has all of the share: log 1 = 0


@pytest.mark.parametrize("grains", [(Grain.PAIRS,), tuple(Grain)], ids="+".join)
def test_the_scores_of_all_rules_of_a_head_sum_to_one(facts, grains):
    net = net_of(facts, grains, max_length=2)
    rows = all_rows(net)
    with jax.enable_x64(True):
        scores = np.exp(net.log_scores(random_parameters(net, seed=4), net.part_indices(rows)))
    assert np.bincount(rows[:, 2], scores) == pytest.approx(np.ones(4), rel=1e-12)


def test_every_attention_vector_sums_to_one(facts):
    net = net_of(facts, [Grain.PAIRS], max_length=3)
    with jax.enable_x64(True):
        logs = np.asarray(net.log_attention(random_parameters(net, seed=5)))
    assert logs[-1] == 0.0
    # Lengths, forms, and for each length l: l times predicates and words, l (l - 1) / 2 of pairs.
    vectors = 2 + sum(2 * length + length * (length - 1) // 2 for length in (1, 2, 3))
    assert np.exp(logs[:-1]).sum() == pytest.approx(4 * vectors, rel=1e-12)
    widths = 3 + 1 + sum(4 * length + 3 * length * (length + 1) // 2 for length in (1, 2, 3))
    assert len(logs) == 4 * widths + 1


@pytest.mark.parametrize("grains", [(Grain.PAIRS,), (Grain.PAIRS, Grain.GAP)], ids="+".join)
def test_the_gradient_of_scores_is_that_of_finite_differences(facts, grains):
    net = net_of(facts, grains, max_length=2)
    places = net.part_indices(some_rows(net, seed=6))
    generator = np.random.default_rng(7)
    with jax.enable_x64(True):
        parameters = random_parameters(net, seed=8)
        weights = generator.normal(size=len(places))
        leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, parameters))

        def total(leaves):
            scores = net.log_scores(jax.tree.unflatten(structure, leaves), places)
            return float(np.asarray(scores) @ weights)

        _, back = jax.vjp(lambda one: net.log_scores(one, places), parameters)
        gradient = jax.tree.leaves(back(jax.numpy.asarray(weights))[0])
        for number, leaf in enumerate(leaves):
            direction = generator.normal(size=leaf.shape)
            step = 1e-5 * direction
            up, down = (
                total([*leaves[:number], leaf + sign * step, *leaves[number + 1 :]])
                for sign in (1, -1)
            )
            slope = (up - down) / 2e-5
            assert (np.asarray(gradient[number]) * direction).sum() == pytest.approx(
                slope, rel=1e-6, abs=1e-7
            )


def test_first_parameters_follow_the_seed(facts):
    net = net_of(facts, [Grain.PAIRS, Grain.GAP], max_length=2)
    first, again, other = (
        net.initial_parameters(1),
        net.initial_parameters(1),
        net.initial_parameters(2),
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, first, again))
    assert not np.array_equal(first["embedding"], other["embedding"])
    assert len(first["with_query"]) == len(first["between"]) == 2
    assert not np.any(first["predicate"]["bias"])
