"""Candidates to learn from against plain lists: the best, the answer, and some of the rest."""

from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import all_queries, shared_queries
from tilp._kernels.candidates import sample_candidates, top_indices
from tilp.features.negative_sampling import SampledCandidates
from tilp.learning import Mark, known_answers
from tilp.scoring import Scores

NO_WARNING = pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
SEEDS = st.integers(0, 2**32 - 1)


def plain_best(scores, best):
    """The places of the best scores, ascending; of equal ones the first."""
    ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    return sorted(ranked[:best])


@given(
    st.lists(
        st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf]), max_size=9), max_size=5
    ),
    st.integers(1, 10),
)
def test_the_best_of_each_query_and_of_equal_ones_the_first(lists, best):
    offsets = np.cumsum([0, *map(len, lists)])
    found = top_indices(offsets, np.array([one for part in lists for one in part]), best)
    plain = [
        begin + place
        for begin, part in zip(offsets, lists, strict=False)
        for place in plain_best(part, best)
    ]
    assert found.tolist() == plain


def random_scored(chance, n_entities, n_queries):
    """For each query: listed entities with scores, a default, an answer, entities left out."""
    asked = []
    for _ in range(n_queries):
        order = chance.permutation(n_entities)
        listed = order[: chance.integers(0, n_entities + 1)]
        answer = int(chance.integers(n_entities))
        out = chance.permutation(n_entities)[: chance.integers(0, n_entities // 2 + 1)]
        asked.append(
            {
                "listed": listed,
                "score": chance.choice([0.1, 0.2, 0.3, 0.7], len(listed)),
                "default": float(chance.random()),
                "answer": answer,
                "out": out[out != answer],
                "seed": int(chance.integers(2**53)),
            }
        )
    return asked


def drawn_pools(asked, n_entities, best, drawn):
    """What the kernel gives for each query: entities, scores, what they stand for, the answer."""

    def joined(name, kind):
        return np.concatenate([np.empty(0, kind), *(one[name] for one in asked)]).astype(kind)

    def begins(name):
        return np.cumsum([0, *(len(one[name]) for one in asked)])

    def column(name, kind):
        return np.array([one[name] for one in asked], kind)

    begin, entity, score, stands_for, answer = sample_candidates(
        begins("listed"),
        joined("listed", np.int32),
        joined("score", np.float64),
        column("default", np.float64),
        column("answer", np.int32),
        begins("out"),
        joined("out", np.int32),
        column("seed", np.uint64),
        n_entities,
        best,
        drawn,
    )
    assert begin[0] == 0 and begin[-1] == len(entity) == len(score) == len(stands_for)
    parts = [slice(*both) for both in pairwise(begin)]
    return [
        (
            entity[part].tolist(),
            score[part].tolist(),
            stands_for[part].tolist(),
            int(place) - part.start,
        )
        for part, place in zip(parts, answer, strict=True)
    ]


@settings(max_examples=150)
@given(SEEDS, st.integers(1, 14), st.integers(0, 4), st.integers(1, 6), st.integers(0, 6))
def test_pools_are_the_best_the_answer_and_some_of_the_rest(
    seed, n_entities, n_queries, best, drawn
):
    asked = random_scored(np.random.default_rng(seed), n_entities, n_queries)
    for one, pool in zip(asked, drawn_pools(asked, n_entities, best, drawn), strict=True):
        entities, scores, stands_for, place = pool
        of = dict(zip(one["listed"].tolist(), one["score"].tolist(), strict=True))
        out = set(one["out"].tolist())
        free = [entity for entity in of if entity not in out]
        taken = [free[place] for place in plain_best([of[entity] for entity in free], best)]
        if one["answer"] not in taken:
            taken.append(one["answer"])
        assert entities[: len(taken)] == taken
        rest = set(range(n_entities)) - set(taken) - out
        others = entities[len(taken) :]
        assert len(set(others)) == len(others) <= drawn and set(others) <= rest
        assert scores == [of.get(entity, one["default"]) for entity in entities]
        assert entities[place] == one["answer"] and entities.count(one["answer"]) == 1
        assert stands_for[: len(taken)] == [0.0] * len(taken)
        expected = [log(len(rest) / len(others))] * len(others) if others else []
        assert stands_for[len(taken) :] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=50)
@given(SEEDS, st.integers(2, 30))
def test_a_pool_depends_on_its_query_alone(seed, n_entities):
    chance = np.random.default_rng(seed)
    asked = random_scored(chance, n_entities, 5)
    together = drawn_pools(asked, n_entities, 3, 4)
    order = chance.permutation(5)
    mixed = drawn_pools([asked[one] for one in order], n_entities, 3, 4)
    for place, one in enumerate(order):
        assert together[one] == mixed[place] == drawn_pools([asked[one]], n_entities, 3, 4)[0]


def test_all_of_the_rest_are_drawn_alike():
    n_entities, n_queries, drawn = 50, 4_000, 5
    chance = np.random.default_rng(1)
    nothing = np.empty(0, np.int32)
    asked = [
        {
            "listed": np.arange(3),
            "score": np.ones(3),
            "default": 0.0,
            "answer": 4,
            "out": nothing,
            "seed": int(seed),
        }
        for seed in chance.integers(2**53, size=n_queries)
    ]
    pools = drawn_pools(asked, n_entities, 2, drawn)
    times = np.bincount([entity for one in pools for entity in one[0][3:]], minlength=n_entities)
    assert not times[[0, 1, 4]].any()
    rest = np.delete(times, [0, 1, 4])
    expected = rest.mean()
    assert expected > 0.9 * n_queries * drawn / n_entities
    assert (abs(rest - expected) < 5 * expected**0.5).all()


def random_scores(chance, n_queries, n_entities):
    """Scores of some entities of each query, ascending."""
    listed = [
        np.sort(chance.permutation(n_entities)[: chance.integers(0, n_entities + 1)])
        for _ in range(n_queries)
    ]
    size = sum(map(len, listed))
    return Scores(
        np.cumsum([0, *map(len, listed)]),
        np.concatenate([np.empty(0, np.int32), *listed]).astype(np.int32),
        1.0 + chance.random(size),
        chance.random(n_queries),
    )


@NO_WARNING
@settings(max_examples=50)
@given(shared_queries(), SEEDS, st.booleans())
def test_pools_of_queries_leave_out_what_else_is_known_to_hold(shared, seed, of_facts):
    graph, queries = shared
    if of_facts:
        queries = all_queries(graph)
    chance = np.random.default_rng(seed)
    scores = random_scores(chance, len(queries), len(graph.entities))
    options = {"n_best": 2, "n_sampled": 2, "seed": seed % 1000}
    pool = SampledCandidates.sample(graph, queries, scores, **options)
    known = known_answers(graph, queries, instant_seed=options["seed"])
    assert (pool.candidate[pool.answer_index] == queries.answer).all()
    assert pool.score.tolist() == scores.of_candidates(pool.offsets, pool.candidate).tolist()
    assert pool.default.tolist() == scores.defaults.tolist()
    assert pool.query.tolist() == np.repeat(np.arange(len(queries)), np.diff(pool.offsets)).tolist()
    for number in range(len(queries)):
        part = slice(pool.offsets[number], pool.offsets[number + 1])
        entities = pool.candidate[part].tolist()
        marked = slice(known.offsets[number], known.offsets[number + 1])
        out = set(known.entity[marked][known.mark[marked] == Mark.EXCLUDED].tolist())
        assert part.start <= pool.answer_index[number] < part.stop
        assert len(set(entities)) == len(entities) and not out & set(entities)
        of_query = slice(scores.offsets[number], scores.offsets[number + 1])
        listed = scores.candidate[of_query].tolist()
        free = [
            (-score, entity)
            for entity, score in zip(listed, scores.score[of_query], strict=True)
            if entity not in out
        ]
        assert {entity for _, entity in sorted(free)[:2]} <= set(entities)
        # What stands for something makes the pool stand for all that is not left out.
        drawn = pool.log_count[part] > 0
        if drawn.any():
            total = np.exp(pool.log_count[part]).sum()
            assert total == pytest.approx(len(graph.entities) - len(out))
        alone = SampledCandidates.sample(
            graph, queries[np.array([number])], scores.take(np.array([number])), **options
        )
        assert alone.candidate.tolist() == entities
        assert alone.log_count.tolist() == pool.log_count[part].tolist()
