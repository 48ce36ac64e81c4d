"""Rule weights: the net against the paper, entries against brute force, losses, training."""

from collections import Counter
from dataclasses import fields, replace
from itertools import product

import jax
import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilp
from oracles import counts, edges_of, kinds_of_known, known_plainly, query_parts
from test_walks import all_queries, graphs, shared_queries
from tilp.errors import TilpError
from tilp.graph import QueryTable
from tilp.learning import KNOWN_KINDS, CandidatePrior, Mark, known_answers
from tilp.learning.attention_net import AttentionNet
from tilp.learning.examples import TrainingExamples, make_training_examples, training_queries
from tilp.learning.rule_weights import LogWeights, Objective, TrainingSettings, train
from tilp.parallel import Workers
from tilp.time import Interval, known_ends
from tilp.types import Grain, Weights
from tilp.walks import MiningSettings, Walker, mine

SEEDS = st.integers(0, 2**32 - 1)
NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
QUERY_COLUMNS = [one.name for one in fields(QueryTable)]


@st.composite
def asked(draw):
    """A graph, and queries of it, some of which have no answer."""
    graph, queries = draw(shared_queries())
    size = len(queries)
    has_answer = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    answer = np.where(has_answer, queries.answer, -1).astype(np.int32)
    return graph, replace(queries, answer=answer)


def one_of(queries, number):
    return queries[np.array([number])]


def rows_of(queries):
    columns = (getattr(queries, name).tolist() for name in QUERY_COLUMNS)
    return list(zip(*columns, strict=True))


def shuffled(queries, seed):
    order = np.random.default_rng(seed).permutation(len(queries))
    return order, queries[order]


# --- the attention net -----------------------------------------------------------------------


def net_of(facts, grains, max_length):
    walker = Walker(tilp.read(facts), grains=grains, max_length=max_length)
    return AttentionNet(walker.encoding, 3)


def random_parameters(net, seed):
    """Of the net's shapes, but with biases that are not zero."""
    chance = np.random.default_rng(seed)
    return jax.tree.map(
        lambda one: jax.numpy.asarray(chance.normal(0.0, 0.7, one.shape)), net.parameters(0)
    )


def all_rows(net):
    """Every rule that there can be, as rows of the encoding."""
    encoding = net.encoding
    rows = []
    for number, form in enumerate(encoding.forms):
        for length in range(1, encoding.max_length + 1):
            ranges = (
                2 * len(encoding.relations),
                encoding.symbols.count**length,
                len(form.classes) ** len(form.body_pairs(length)),
                len(form.words) ** len(form.query_pairs(length)),
            )
            rows += [(number, length, *row) for row in product(*map(range, ranges))]
    return np.array(rows, np.int64)


def some_rows(net, seed, count=60):
    """Rules of every form and length, drawn by lot."""
    chance = np.random.default_rng(seed)
    encoding = net.encoding
    rows = []
    for place in range(count):
        number = place % len(encoding.forms)
        length = 1 + place // len(encoding.forms) % encoding.max_length
        form = encoding.forms[number]
        ranges = (
            2 * len(encoding.relations),
            encoding.symbols.count**length,
            len(form.classes) ** len(form.body_pairs(length)),
            len(form.words) ** len(form.query_pairs(length)),
        )
        rows.append((number, length, *(int(chance.integers(size)) for size in ranges)))
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
    words = {constraint.places: constraint.word for constraint in rule.constraints}
    for i in range(1, length + 1):
        score *= softmax(parameters["predicate"], states[i])[directed(rule.body[i - 1])]  # eq. 9
        if (i, length + 1) in words:
            word = form.words.index(words.pop((i, length + 1)))
            score *= softmax(parameters["with_query"][number], states[i])[word]  # eq. 10
    for j in range(1, length):
        for k in range(j + 1, length + 1):
            if (j, k) in words:
                word = form.classes.index(words.pop((j, k)))
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
        found = np.asarray(net.log_scores(parameters, net.places(rows)))
        plain = jax.tree.map(np.asarray, parameters)
    assert found.dtype == np.float64
    expected = [
        np.log(score_by_the_paper(net, plain, net.encoding.lift(row), row[0])) for row in rows
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    if grains == (Grain.PAIRS, Grain.GAP):
        in_single = net.log_scores(jax.tree.map(np.float32, plain), net.places(rows))
        np.testing.assert_allclose(in_single, expected, rtol=1e-4)


def test_with_all_pairs_alone_a_rule_has_exactly_the_parts_of_equation_13(facts):
    net = net_of(facts, [Grain.PAIRS], max_length=3)
    rows = some_rows(net, seed=3)
    no_part = len(net.log_attention(net.parameters(0))) - 1
    for row, places in zip(rows, net.places(rows), strict=True):
        rule, length = net.encoding.lift(row), int(row[1])
        pairs = {(j, k) for j, k in product(range(1, length + 2), repeat=2) if j < k}
        assert {one.indices for one in rule.constraints} == pairs
        parts = set(places.tolist()) - {no_part}
        assert len(parts) == 2 + length + len(pairs)  # length and form, predicates, words
    with jax.enable_x64(True):
        parameters = random_parameters(net, seed=2)
        before = np.asarray(net.log_scores(parameters, net.places(rows)))
        parameters["form"] = jax.tree.map(lambda one: one + 5.0, parameters["form"])
        after = np.asarray(net.log_scores(parameters, net.places(rows)))
    np.testing.assert_array_equal(before, after)  # the only form has all of the share: log 1 = 0


@pytest.mark.parametrize("grains", [(Grain.PAIRS,), tuple(Grain)], ids="+".join)
def test_the_scores_of_all_rules_of_a_head_sum_to_one(facts, grains):
    net = net_of(facts, grains, max_length=2)
    rows = all_rows(net)
    with jax.enable_x64(True):
        scores = np.exp(net.log_scores(random_parameters(net, seed=4), net.places(rows)))
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
    places = net.places(some_rows(net, seed=6))
    chance = np.random.default_rng(7)
    with jax.enable_x64(True):
        parameters = random_parameters(net, seed=8)
        weights = chance.normal(size=len(places))
        leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, parameters))

        def total(leaves):
            scores = net.log_scores(jax.tree.unflatten(structure, leaves), places)
            return float(np.asarray(scores) @ weights)

        _, back = jax.vjp(lambda one: net.log_scores(one, places), parameters)
        gradient = jax.tree.leaves(back(jax.numpy.asarray(weights))[0])
        for number, leaf in enumerate(leaves):
            direction = chance.normal(size=leaf.shape)
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
    first, again, other = net.parameters(1), net.parameters(1), net.parameters(2)
    assert jax.tree.all(jax.tree.map(np.array_equal, first, again))
    assert not np.array_equal(first["embedding"], other["embedding"])
    assert len(first["with_query"]) == len(first["between"]) == 2
    assert not np.any(first["predicate"]["bias"])


# --- known answers ---------------------------------------------------------------------------


def marks_of(known, number):
    part = slice(known.begin[number], known.begin[number + 1])
    entities = known.entity[part].tolist()
    assert entities == sorted(set(entities))
    return dict(zip(entities, known.mark[part].tolist(), strict=True))


@NO_WARNING
@settings(max_examples=40)
@given(asked())
def test_known_answers_are_those_of_a_plain_reading(given_):
    graph, queries = given_
    known = known_answers(graph, queries)
    assert len(known.begin) == len(queries) + 1 and known.begin[-1] == len(known.entity)
    for number in range(len(queries)):
        subject, head = int(queries.subject[number]), int(queries.head[number])
        query = Interval(int(queries.start[number]), int(queries.end[number]))
        kinds = kinds_of_known(graph, subject, head, query, int(queries.fact[number]))
        answer = int(queries.answer[number])
        assert known.answer_kind[number] == kinds.get(answer, -1)
        expected = {entity: Mark.KNOWN + kind for entity, kind in kinds.items()}
        if answer >= 0:
            expected[answer] = Mark.ANSWER
        assert marks_of(known, number) == expected


def test_how_intervals_lie_to_the_query():
    dates = {
        "before": [("1980", "1989")],
        "after": [("2001", "2004"), ("2001", "present")],
        "meeting": [("1980", "1990"), ("2000", "2005"), ("2000", "present")],
        "touching": [("1985", "1995"), ("1990", "1990"), ("1990", "2000"), ("", "")],
    }
    rows = [
        (f"{kind}{place}", start, end)
        for kind, some in dates.items()
        for place, (start, end) in enumerate(some)
    ]
    both = [("several", "1980", "1990"), ("several", "1970", "1971"), ("several", "2005", "2006")]
    own = ("answer", "1990", "2000")
    other = ("answer", "2004", "2005")
    frame = pl.DataFrame(
        [("s", "r", *row) for row in (own, other, *rows, *both)],
        ["subject", "relation", "object", "start", "end"],
        orient="row",
    )
    graph = tilp.read(frame, unit="year")
    known = known_answers(graph, one_of(all_queries(graph), 0))
    marks = {graph.entities.label(entity): mark for entity, mark in marks_of(known, 0).items()}
    expected = {
        name: Mark.KNOWN + KNOWN_KINDS.index(name.rstrip("0123456789")) for name, *_ in rows
    }
    assert marks == {
        **expected,
        "several": Mark.KNOWN + KNOWN_KINDS.index("meeting"),
        "answer": Mark.ANSWER,
    }
    assert known.answer_kind.tolist() == [KNOWN_KINDS.index("after")]


@NO_WARNING
@settings(max_examples=40)
@given(asked(), st.integers(0, 3))
def test_what_holds_at_an_instant_of_the_query_is_left_out(given_, seed):
    graph, queries = given_
    plain, known = known_answers(graph, queries), known_answers(graph, queries, leave_out=seed)
    np.testing.assert_array_equal(known.begin, plain.begin)
    np.testing.assert_array_equal(known.entity, plain.entity)
    np.testing.assert_array_equal(known.answer_kind, plain.answer_kind)
    times = np.unique(known_ends(graph.start, graph.end)).tolist()
    for number in range(len(queries)):
        marks = marks_of(known, number)
        left_out = {entity for entity, mark in marks.items() if mark == Mark.LEFT_OUT}
        for entity, mark in marks_of(plain, number).items():
            assert marks[entity] == mark or entity in left_out
        query = Interval(int(queries.start[number]), int(queries.end[number]))
        inside = [time for time in times if query.start <= time <= query.end]
        candidates = [
            (entity, interval)
            for entity, interval in known_plainly(
                graph, int(queries.subject[number]), int(queries.head[number]), queries.fact[number]
            )
            if entity != queries.answer[number]
        ]
        held = [
            {entity for entity, one in candidates if one.start <= instant <= one.end}
            for instant in inside or [query.start, query.end]
        ]
        assert left_out in held


@NO_WARNING
@settings(max_examples=40)
@given(asked(), st.sampled_from([None, 0, 7]), SEEDS)
def test_known_answers_of_a_query_do_not_depend_on_those_beside_it(given_, leave_out, seed):
    graph, queries = given_
    together = known_answers(graph, queries, leave_out=leave_out)
    order, mixed = shuffled(queries, seed)
    again = known_answers(graph, mixed, leave_out=leave_out)
    for place, number in enumerate(order):
        alone = known_answers(graph, one_of(queries, number), leave_out=leave_out)
        assert marks_of(together, number) == marks_of(again, place) == marks_of(alone, 0)
        assert together.answer_kind[number] == again.answer_kind[place] == alone.answer_kind[0]


def test_every_instant_has_its_chance_to_be_drawn():
    years = [str(year) for year in range(1990, 2000)]
    columns = ["subject", "relation", "object", "start", "end"]
    rows = [("s", "r", f"o{year}", year, year) for year in years]
    graph = tilp.read(
        pl.DataFrame([("s", "r", "answer", "1990", "1999"), *rows], columns, orient="row"),
        unit="year",
    )
    query = one_of(all_queries(graph), 0)
    drawn = Counter()
    for seed in range(400):
        known = known_answers(graph, query, leave_out=seed)
        (left_out,) = known.entity[known.mark == Mark.LEFT_OUT].tolist()
        drawn[graph.entities.label(left_out)] += 1
    assert len(drawn) == 10
    assert min(drawn.values()) >= 20 and max(drawn.values()) <= 65


def test_queries_that_nothing_is_known_of(facts):
    graph = tilp.read(facts)
    queries = all_queries(graph)
    none = known_answers(graph, queries[np.zeros(0, np.int64)], leave_out=1)
    assert none.begin.tolist() == [0] and len(none.entity) == len(none.answer_kind) == 0
    alone = queries[queries.subject == graph.entities.find("Cleo")].without_answers()
    nothing = known_answers(graph, alone, leave_out=1)
    assert nothing.begin.tolist() == [0, 0]
    assert nothing.answer_kind.tolist() == [-1]


# --- training entries ------------------------------------------------------------------------


@NO_WARNING
@settings(max_examples=30)
@given(graphs())
def test_queries_to_train_on_leave_two_edges_at_both_ends(graph):
    edges = edges_of(graph)

    def others(entity, fact):
        return sum(edge[3] != fact for edge in edges.get(entity, ()))

    def parts(queries):
        columns = (queries.fact, queries.subject, queries.head, queries.answer)
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    looped = set(np.flatnonzero(graph.subject == graph.object).tolist())
    wanted = [
        one
        for one in parts(all_queries(graph))
        if others(one[1], one[0]) >= 2 and others(one[3], one[0]) >= 2
    ]
    assume(wanted)
    found = parts(training_queries(graph, np.arange(len(graph.rows("train")))))
    assert [one for one in found if one[0] not in looped] == [
        one for one in wanted if one[0] not in looped
    ]
    assert {one for one in wanted if one[0] in looped} <= set(found)


def test_where_no_query_leaves_enough_edges_all_are_learned_from():
    rows = [("a", "r", "b"), ("a", "s", "b"), ("c", "r", "d"), ("c", "s", "d")]
    graph = tilp.read(pl.DataFrame(rows, ["subject", "relation", "object"], orient="row"))
    assert len(training_queries(graph, np.arange(4))) == 8


def entries_by_brute_force(walker, edges, queries, number, known, rules):
    """Walks of each rule that fired: others, at the answer, left out, and at known by kind."""
    marks = marks_of(known, number)
    found = {}
    truth = counts(edges, *query_parts(walker, queries, number), walker.max_length, walker.grains)
    for (rule, end), walks in truth.items():
        if rule in rules:
            row = found.setdefault(rules[rule], np.zeros(2 + Mark.LEFT_OUT, int))
            row[1 + marks.get(end, -1)] += walks
    return {rule: row.tolist() for rule, row in found.items() if row.sum() > row[-1]}


@NO_WARNING
@settings(max_examples=40)
@given(asked(), st.sampled_from([1, 2, 3]), st.integers(0, 2), st.booleans())
def test_entries_equal_brute_force(given_, max_length, seed, own_only):
    graph, queries = given_
    if own_only:
        queries = all_queries(graph)
    walker, edges = Walker(graph, max_length=max_length), edges_of(graph)
    reached = Counter()
    for number in range(len(queries)):
        parts = query_parts(walker, queries, number)
        reached.update(rule for rule, _ in counts(edges, *parts, max_length, walker.grains))
    rules = sorted(reached, key=str)[::2]
    if not rules:
        return
    entries = make_training_examples(walker, queries, walker.compile(rules), Workers(), seed=seed)
    assert sorted(rows_of(entries.queries)) == sorted(rows_of(queries))
    known = known_answers(graph, entries.queries, leave_out=seed)
    np.testing.assert_array_equal(entries.answer_kind, known.answer_kind)
    places = {rule: place for place, rule in enumerate(rules)}
    assert entries.begin[0] == 0 and entries.begin[-1] == len(entries)
    for number in range(len(queries)):
        part = slice(entries.begin[number], entries.begin[number + 1])
        rows = np.column_stack(
            [
                entries.others[part],
                entries.at_answer[part],
                entries.at_known[part],
                entries.left_out[part],
            ]
        )
        found = dict(zip(entries.rule[part].tolist(), rows.astype(int).tolist(), strict=True))
        assert len(found) == len(rows)
        assert found == entries_by_brute_force(
            walker, edges, entries.queries, number, known, places
        )


def same(first, second):
    """Whether two tables are the same, bit for bit."""
    return all(
        same(getattr(first, one.name), getattr(second, one.name))
        if one.name == "queries"
        else np.array_equal(getattr(first, one.name), getattr(second, one.name))
        for one in fields(first)
    )


def test_rules_whose_walks_all_end_in_what_is_left_out_did_not_fire():
    columns = ["subject", "relation", "object", "start", "end"]
    rows = [
        ("s", "r", "answer", "1990", "1990"),
        ("s", "r", "other", "1990", "1990"),
        ("s", "q", "other", "1980", "1980"),
        ("s", "p", "other", "1980", "1980"),
        ("s", "p", "third", "1980", "1980"),
    ]
    graph = tilp.read(pl.DataFrame(rows, columns, orient="row"), unit="year")
    walker = Walker(graph, grains=["static"], max_length=1)
    texts = ["r(E1,E2,I2) ← q(E1,E2,I1)", "r(E1,E2,I2) ← p(E1,E2,I1)"]
    rules = walker.compile([tilp.rules.parse_rule(text) for text in texts])
    entries = make_training_examples(walker, one_of(all_queries(graph), 0), rules, Workers())
    assert entries.rule.tolist() == [1]
    assert (entries.left_out.tolist(), entries.others.tolist()) == ([1.0], [1.0])
    assert entries.at_answer.tolist() == [0.0] and not entries.at_known.any()


def test_entries_of_no_queries(facts):
    walker = Walker(tilp.read(facts), grains=["static"])
    rules = walker.compile([tilp.rules.parse_rule("playsFor(E1,E2,I2) ← coachOf(E1,E2,I1)")])
    none = all_queries(walker.graph)[np.zeros(0, np.int64)]
    entries = make_training_examples(walker, none, rules, Workers())
    assert len(entries) == len(entries.queries) == 0
    assert entries.begin.tolist() == [0] and entries.at_known.shape == (0, len(KNOWN_KINDS))


@st.composite
def marked_queries(draw):
    """A graph, queries, and marks of some candidates of each query, drawn by lot."""
    graph, queries = draw(shared_queries())
    marks = st.dictionaries(
        st.integers(0, len(graph.entities) - 1), st.integers(0, Mark.LEFT_OUT), max_size=4
    )
    return graph, queries, [draw(marks) for _ in range(len(queries))]


def marks_as_columns(marks):
    return (
        np.cumsum([0, *map(len, marks)]),
        np.array([entity for one in marks for entity in one], np.int32),
        np.array([mark for one in marks for mark in one.values()], np.int8),
    )


@NO_WARNING
@settings(max_examples=40)
@given(marked_queries(), st.sampled_from([1, 2, 3]), SEEDS)
def test_walks_are_counted_by_mark_whatever_the_order_of_queries(given_, max_length, seed):
    graph, queries, marks = given_
    walker, edges = Walker(graph, max_length=max_length), edges_of(graph)
    truth = [
        counts(edges, *query_parts(walker, queries, number), max_length, walker.grains)
        for number in range(len(queries))
    ]
    rules = sorted({rule for one in truth for rule, _ in one}, key=str)[::2]
    if not rules:
        return
    expected = {}
    for number, one in enumerate(truth):
        for (rule, end), walks in one.items():
            if rule in rules:
                row = expected.setdefault((number, rules.index(rule)), [0] * (2 + Mark.LEFT_OUT))
                row[0] += walks
                if end in marks[number]:
                    row[1 + marks[number][end]] += walks
    compiled = walker.compile(rules)
    order, mixed = shuffled(queries, seed)
    for numbers, table in ((np.arange(len(queries)), queries), (order, mixed)):
        columns = marks_as_columns([marks[number] for number in numbers])
        rows = walker.count_marked(table, compiled, *columns).tolist()
        found = {(int(numbers[query]), rule): row for query, rule, *row in rows}
        assert len(found) == len(rows)
        assert found == expected


# --- the objective ---------------------------------------------------------------------------


def random_entries(graph, n_rules, n_queries, seed):
    """Entries of no graph in particular: some queries have none, some answers are not reached."""
    chance = np.random.default_rng(seed)
    numbers = {
        "subject": len(graph.entities),
        "head": 2 * len(graph.relations),
        "answer": len(graph.entities),
    }
    columns = {
        name: chance.integers(0, most, n_queries).astype(np.int32) for name, most in numbers.items()
    }
    time = np.zeros(n_queries, np.int64)
    queries = QueryTable(
        **columns, start=time, end=time, fact=chance.integers(-1, 1, n_queries).astype(np.int32)
    )
    rules = [
        chance.choice(n_rules, chance.integers(0, n_rules), replace=False) for _ in range(n_queries)
    ]
    size = sum(map(len, rules))
    at_answer = chance.integers(0, 4, size) * chance.integers(0, 2, size)
    at_known = chance.integers(0, 5, (size, len(KNOWN_KINDS))) * chance.integers(
        0, 2, (size, len(KNOWN_KINDS))
    )
    others = chance.integers(0, 50, size)
    others[(others + at_answer + at_known.sum(axis=1)) == 0] = 1
    return TrainingExamples(
        queries=queries,
        answer_kind=chance.integers(-1, len(KNOWN_KINDS), n_queries).astype(np.int8),
        begin=np.cumsum([0, *map(len, rules)]).astype(np.int64),
        rule=np.concatenate([*rules, []]).astype(np.int32),
        at_answer=at_answer.astype(np.float32),
        left_out=chance.integers(0, 5, size).astype(np.float32),
        at_known=at_known.astype(np.float32),
        others=others.astype(np.float32),
    )


@settings(max_examples=40)
@given(SEEDS, st.integers(0, 8))
def test_entries_of_some_queries_are_those_of_each(seed, n_queries):
    facts = pl.DataFrame({"subject": ["a", "b"], "relation": ["r", "q"], "object": ["b", "c"]})
    entries = random_entries(tilp.read(facts), 5, n_queries, seed)
    wanted = np.random.default_rng(seed).random(n_queries) < 0.5
    some = entries.of_queries(wanted)
    assert same(some.queries, entries.queries[wanted])
    assert some.answer_kind.tolist() == entries.answer_kind[wanted].tolist()
    assert len(some.begin) == wanted.sum() + 1 and some.begin[-1] == len(some)
    for place, number in enumerate(np.flatnonzero(wanted)):
        here = slice(some.begin[place], some.begin[place + 1])
        there = slice(entries.begin[number], entries.begin[number + 1])
        for name in ("rule", "at_answer", "left_out", "at_known", "others"):
            assert getattr(some, name)[here].tolist() == getattr(entries, name)[there].tolist()


def random_logs(graph, n_rules, seed):
    chance = np.random.default_rng(seed)
    n_heads = 2 * len(graph.relations)
    return LogWeights(
        chance.normal(-1.0, 1.0, n_rules),
        chance.normal(-1.0, 1.0, n_heads),
        chance.normal(0.0, 1.0, (n_heads, len(KNOWN_KINDS))),
    )


def plain_loss(entries, prior, logs, power):
    """The mean of - log (v π + Σ w g α) / (v + Σ w g) over the queries that a rule fired for."""
    losses = []
    of_prior = prior.of_answers(entries.queries)
    for query in range(len(entries.queries)):
        here = range(entries.begin[query], entries.begin[query + 1])
        if not here:
            continue
        head, kind = entries.queries.head[query], entries.answer_kind[query]
        factors = [np.exp(one) for one in logs.factor[head]]
        own = factors[kind] if kind >= 0 else 1.0
        whole = np.exp(logs.prior[head])
        right = whole * of_prior[query]
        for entry in here:
            at_answer, others = float(entries.at_answer[entry]), float(entries.others[entry])
            at_known = [float(one) for one in entries.at_known[entry]]
            gain = (others + at_answer + sum(at_known)) ** power
            total = others + own * at_answer
            total += sum(factor * walks for factor, walks in zip(factors, at_known, strict=True))
            mass = np.exp(logs.rule[entries.rule[entry]]) * gain
            whole += mass
            right += mass * own * at_answer / total
        losses.append(-np.log(right / whole))
    return sum(losses) / max(len(losses), 1)


@settings(max_examples=15)
@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]))
def test_loss_and_gradient_are_those_of_a_plain_loop(seed, power):
    graph = tilp.read(pl.DataFrame({"subject": [*"aab"], "relation": [*"rqr"], "object": [*"bca"]}))
    n_rules, prior = 5, CandidatePrior.of(graph)
    entries = random_entries(graph, n_rules, 12, seed)
    logs = random_logs(graph, n_rules, seed)
    loss, gradient = Objective(entries, prior, n_rules, power)(logs, Workers())
    assert loss == pytest.approx(plain_loss(entries, prior, logs, power), rel=1e-6)
    for one in fields(LogWeights):
        values, found = getattr(logs, one.name), getattr(gradient, one.name)
        assert found.shape == values.shape
        for place in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[place] = 1e-5
            sides = [
                plain_loss(entries, prior, replace(logs, **{one.name: values + sign * step}), power)
                for sign in (1, -1)
            ]
            assert found[place] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-6)


def test_the_loss_has_the_same_bits_for_any_number_of_workers(facts):
    graph = tilp.read(facts)
    entries = random_entries(graph, 40, 300, seed=1)
    objective = Objective(entries, CandidatePrior.of(graph), 40, 0.3)
    logs = random_logs(graph, 40, seed=2)
    loss, gradient = objective(logs, Workers())
    assert objective.asked == (np.diff(entries.begin) > 0).sum() < 300
    for threads in (1, 2, 3):
        with Workers(threads) as workers:
            again, other = objective(logs, workers)
        assert again == loss
        assert same(gradient, other)


def test_the_loss_of_nothing_is_nothing(facts):
    graph = tilp.read(facts)
    entries = random_entries(graph, 3, 0, seed=1)
    loss, gradient = Objective(entries, CandidatePrior.of(graph), 3)(
        random_logs(graph, 3, seed=1), Workers()
    )
    assert loss == 0.0
    assert not any(np.any(getattr(gradient, one.name)) for one in fields(gradient))


# --- the prior -------------------------------------------------------------------------------


@NO_WARNING
@settings(max_examples=40)
@given(graphs())
def test_the_prior_is_a_distribution_over_all_entities(graph):
    prior = CandidatePrior.of(graph)
    assert prior.n_heads == 2 * len(graph.relations) == len(prior.begin) - 1
    size = len(graph.entities)
    for head in range(prior.n_heads):
        part = slice(prior.begin[head], prior.begin[head + 1])
        asked_for = all_queries(graph)
        answers = Counter(asked_for.answer[asked_for.directed_relation == head].tolist())
        assert dict(zip(prior.entity[part].tolist(), prior.count[part].tolist(), strict=True)) == (
            dict(sorted(answers.items()))
        )
        listed = prior.probability[part]
        assert listed.sum() + prior.lowest * (size - len(listed)) == pytest.approx(1.0)
        assert (listed > prior.lowest).all()
        assert listed == pytest.approx(
            [0.95 * answers[one] / answers.total() + 0.05 / size for one in sorted(answers)]
        )


@NO_WARNING
@settings(max_examples=40)
@given(graphs())
def test_the_prior_of_entities_is_that_of_the_distribution(graph):
    prior = CandidatePrior.of(graph)
    size = len(graph.entities)
    head, entity = (
        one.reshape(-1).astype(np.int32) for one in np.indices((prior.n_heads, size), np.int32)
    )
    found = prior.of_entities(head, entity).reshape(prior.n_heads, size)
    assert found.sum(axis=1) == pytest.approx(np.ones(prior.n_heads))
    for number in range(prior.n_heads):
        part = slice(prior.begin[number], prior.begin[number + 1])
        expected = np.full(size, prior.lowest)
        expected[prior.entity[part]] = prior.probability[part]
        assert found[number] == pytest.approx(expected)


@NO_WARNING
@settings(max_examples=40)
@given(graphs(), st.booleans())
def test_the_prior_of_an_answer_leaves_out_the_own_fact(graph, walked):
    queries = all_queries(graph, walked)
    found = CandidatePrior.of(graph).of_answers(queries)
    size = len(graph.entities)
    for number in range(len(queries)):
        head, answer = queries.directed_relation[number], queries.answer[number]
        others = [
            int(queries.answer[one])
            for one in np.flatnonzero(queries.directed_relation == head)
            if not (walked and one == number)
        ]
        share = others.count(answer) / max(len(others), 1)
        assert found[number] == pytest.approx(0.95 * share + 0.05 / size)


def test_the_prior_of_answers_that_train_never_has(facts):
    graph = tilp.read(facts)
    prior = CandidatePrior.of(graph)
    query = one_of(all_queries(graph, walked=False), 0)
    coach = np.full(1, graph.relations.find("coachOf"), np.int32)
    ada = np.full(1, graph.entities.find("Ada"), np.int32)
    assert prior.of_answers(replace(query, head=coach, answer=ada)) == pytest.approx(prior.lowest)


@pytest.fixture
def untrained():
    """A graph without a training fact."""
    columns = ["subject", "relation", "object", "start", "end", "split"]
    rows = [("a", "r", "b", "1990", "1991", "test"), ("b", "r", "c", "1990", "1991", "test")]
    return tilp.read(pl.DataFrame(rows, columns, orient="row"), unit="year")


def test_without_training_facts_the_prior_is_the_same_for_all(untrained):
    queries = QueryTable.of_facts(untrained, np.arange(2), walked=False)
    prior = CandidatePrior.of(untrained)
    assert prior.of_answers(queries).tolist() == [prior.lowest] * 4


def test_without_training_facts_nothing_is_known(untrained):
    queries = QueryTable.of_facts(untrained, np.arange(2), walked=False)
    known = known_answers(untrained, queries, leave_out=1)
    assert known.begin.tolist() == [0, 1, 2, 3, 4] and not known.mark.any()


# --- training --------------------------------------------------------------------------------


def smoothed(rules):
    fired = np.array([one.body_support for one in rules], np.float64)
    return np.array([one.confidence for one in rules]) * fired / (fired + 5.0) + 1e-6


def asked_in_training(graph):
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
        self.prior = CandidatePrior.of(graph)
        valid = np.asarray(graph.rows("valid"), np.int64)
        self.training = self.objective(asked_in_training(graph))
        self.held_out = self.objective(QueryTable.of_facts(graph, valid, walked=False))

    def objective(self, queries):
        entries = make_training_examples(self.walker, queries, self.compiled, Workers())
        return Objective(entries, self.prior, len(self.rules), 0.3)

    def train(self, threads=1, training=None, held_out=None, checkpoint=None, progress=None, **how):
        chosen = TrainingSettings(**{"steps": 12, "dimension": 6, **how})
        with Workers(threads) as workers:
            return train(
                AttentionNet(self.walker.encoding, chosen.dimension),
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
    assert same(first.logs, second.logs)
    assert first.curve == second.curve


def test_entries_of_a_world_are_the_same_for_any_number_of_workers(task, monkeypatch):
    queries = asked_in_training(task.walker.graph)
    done = []
    whole = make_training_examples(
        task.walker, queries, task.compiled, Workers(), seed=3, progress=done.append
    )
    assert done[-1] == 1.0
    assert len(whole) > 10_000 and whole.left_out.any() and whole.at_known.any(axis=0).all()
    monkeypatch.setattr("tilp.walks.walker._CHUNK_STEPS", 3e3)
    for threads in (1, 2, 3):
        done.clear()
        with Workers(threads) as workers:
            parts = make_training_examples(
                task.walker, queries, task.compiled, workers, seed=3, progress=done.append
            )
        assert len(done) > 10 and done == sorted(done) and done[-1] == 1.0
        assert same(whole, parts)
    other = make_training_examples(task.walker, queries, task.compiled, Workers(), seed=4)
    assert not np.array_equal(whole.left_out, other.left_out)


@pytest.mark.parametrize("kind", list(Weights))
def test_the_loss_of_training_queries_falls(trained, kind):
    curve = trained[kind].curve
    assert len(curve.train) == 12 and curve.held_out_step == [5, 10, 12]
    assert curve.train[-1] < curve.train[0] - 0.1
    assert min(curve.train) == curve.train[-1]
    assert curve.held_out[-1] < curve.held_out[0]


@pytest.mark.parametrize("kind", list(Weights))
def test_training_starts_from_what_the_kind_of_weights_says(task, kind):
    held = task.train(weights=kind, steps=1, learning_rate=1e-9, net_learning_rate=1e-9).logs
    net = AttentionNet(task.walker.encoding, 6)
    scores = np.asarray(net.log_scores(net.parameters(0), net.places(task.rows)), np.float64)
    confidence = np.log(smoothed(task.rules))
    expected = {Weights.ATTENTION: scores, Weights.FREE: confidence}[kind]
    np.testing.assert_allclose(held.rule, expected, atol=1e-5)
    assert held.factor == pytest.approx(0.0, abs=1e-6)
    assert len(set(held.prior.tolist())) == 1


def test_known_answers_can_count_as_all_others_do(task, trained):
    assert trained[Weights.FREE].logs.factor.any()
    alike = task.train(weights=Weights.FREE, known_factors=False)
    assert not alike.logs.factor.any()
    assert alike.curve.train[-1] < alike.curve.train[0] - 0.1


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", list(Weights))
def test_training_finds_the_same_again_with_any_number_of_workers(task, trained, kind, threads):
    assert_same(task.train(weights=kind, threads=threads), trained[kind])


def test_steps_are_those_of_adam_with_a_rate_that_falls_to_nothing(task, trained):
    """Free weights, prior weights and factors, drawn to where they begin; in double precision."""
    first = LogWeights(
        np.log(smoothed(task.rules)),
        np.full(task.prior.n_heads, -1.5),
        np.zeros((task.prior.n_heads, len(KNOWN_KINDS))),
    )
    pulls = {"rule": 1.0, "prior": 1.0, "factor": 0.1}
    logs = first
    mean, square = dict.fromkeys(pulls, 0.0), dict.fromkeys(pulls, 0.0)
    for step in range(12):
        loss, gradient = task.training(logs, Workers())
        rate = 0.2 * (1 + np.cos(np.pi * step / 12)) / 2
        moved = {}
        for name, pull in pulls.items():
            away = getattr(logs, name) - getattr(first, name)
            slope = getattr(gradient, name) + pull * away / task.training.asked
            loss += pull * (away**2).sum() / 2 / task.training.asked
            mean[name] = 0.9 * mean[name] + 0.1 * slope
            square[name] = 0.99 * square[name] + 0.01 * slope**2
            mean_now = mean[name] / (1 - 0.9 ** (step + 1))
            square_now = square[name] / (1 - 0.99 ** (step + 1))
            change = rate * mean_now / (np.sqrt(square_now) + 1e-10)
            moved[name] = getattr(logs, name) - change
        assert trained[Weights.FREE].curve.train[step] == pytest.approx(loss, rel=1e-4)
        logs = LogWeights(**moved)
    for name in pulls:
        np.testing.assert_allclose(
            getattr(trained[Weights.FREE].logs, name), getattr(logs, name), atol=1e-2
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
    assert not np.array_equal(other.logs.rule, trained[Weights.ATTENTION].logs.rule)
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
    with pytest.raises(TilpError, match=r"state\.npz cannot be read; remove it"):
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
    queries = asked_in_training(task.walker.graph)
    few = task.objective(queries[np.arange(0, len(queries), 20)])
    found = task.train(
        training=few, steps=200, patience=20, learning_rate=0.05, pull=0.0, weights=Weights.FREE
    )
    curve = found.curve
    best = int(np.argmin(curve.held_out))
    assert 0 < best < len(curve.held_out) - 1
    assert len(curve.train) == curve.held_out_step[best] + 20 < 200
    assert curve.held_out_step == list(range(5, len(curve.train) + 1, 5))
    assert task.held_out(found.logs, Workers())[0] == curve.held_out[best]


def test_little_patience_does_not_mean_no_training(task):
    found = task.train(weights=Weights.FREE, patience=3)
    assert found.curve.held_out
    assert not np.array_equal(found.logs.rule, np.float32(np.log(smoothed(task.rules))))


def test_planted_rules_weigh_more_than_the_other_rules_of_their_heads(world):
    task = Task(world, max_length=3)
    found = task.train(weights=Weights.FREE, steps=30)
    weight, heads = np.exp(found.logs.rule), task.rows[:, 2]
    place = {str(one.rule): number for number, one in enumerate(task.rules)}
    ratios = []
    for rule in world.rules:
        number = place[rule.text]
        ratios.append(weight[number] / np.median(weight[heads == heads[number]]))
        assert ratios[-1] > 1.5, rule.text
    assert np.exp(np.mean(np.log(ratios))) > 5
