"""The stage of a fit that learns all features: candidates gathered, weights learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tilp._utils.random import keyed_sample
from tilp.costs.calibration import Walks, calibrate, cpu_seconds
from tilp.costs.situation import Situation, some
from tilp.costs.stage import StageCost
from tilp.costs.walking import batch_bytes, kept_bytes
from tilp.features.log_linear_training import (
    FOLDS,
    CandidateTable,
    LogLinearSettings,
    RelationLearner,
    fold_of,
)
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, RuleWeights

__all__ = ["joint_stage"]

_FEWEST, _MOST = 96, 512  # queries of one head that weights are learned from
_MORE_STEPS = 0.25  # the power of its queries with which the steps grow that a head takes to learn
_TABLES = 2.5  # copies of what is known of a head's candidates, while it is put together


def joint_stage(
    now: Situation, scorer: RuleScorer, weights: RuleWeights, budget: float, threads: int
) -> StageCost:
    """Candidates of each head's queries gathered, and their weights learned."""
    settings = LogLinearSettings(
        now.settings.walk_length, now.settings.without, seed=now.settings.seed
    )
    learner, alone = cpu_seconds(lambda: RelationLearner.of(scorer, (weights,), settings))
    asked = _asked(now.training, settings, 2 * len(now.graph.relations))
    if not len(asked):
        return StageCost("features", 0.0, "candidates", cpu=alone, serial=alone)
    work = Walks.of_queries(
        now.steps_from,
        asked,
        apart=asked.directed_relation.astype(np.int64) * FOLDS + fold_of(asked.fact, settings.seed),
    )
    rates = calibrate(
        work, lambda part: learner.gather(part.queries), 0.5 * budget, now.settings.seed
    )
    gathering = rates.seconds(work.amounts())
    heads = np.sort(np.bincount(asked.directed_relation))[::-1]
    largest = asked[asked.directed_relation == np.argmax(np.bincount(asked.directed_relation))]
    # As many as take no longer than what was tried before, where each of them takes long.
    most = int(np.clip(0.25 * budget * len(asked) / max(gathering, 1e-3), _FEWEST, _MOST))
    sample = learner.gather(now.some_training())
    table = _Table.of(sample, now.more_entries)
    learning = _learning(learner, some(largest, most, now.settings.seed), heads, table.visits)
    share = heads[0] / heads.sum()
    return StageCost(
        "features",
        table.candidates * len(asked),
        f"candidates of {len(asked):,} queries",
        cpu=alone + gathering + float(learning.sum()),
        serial=alone,
        longest=gathering * float(share) + float(learning.max()),
        peak=kept_bytes(now)
        + batch_bytes(now, scorer, threads)
        + _TABLES * table.size * float(heads[:threads].sum()),
    )


def _learning(
    learner: RelationLearner, queries: QueryTable, heads: NDArray[np.int64], visits: float
) -> NDArray[np.float64]:
    """Seconds to learn the weights of each head.

    A step takes some time in itself and some for each query; how many steps it takes grows with
    the queries. Two sizes of one head tell both.

    Args:
        learner: the learner.
        queries: some of the head that has most of them.
        heads: how many queries each head has.
        visits: what a step reads for a query, on average.
    """
    sizes: list[float] = []
    seconds: list[float] = []
    with threadpool_limits(limits=1, user_api="blas"):
        for size in (max(1, len(queries) // 4), len(queries)):
            found = learner.gather(queries[np.arange(size)])
            if not seconds:
                learner.learn(found)  # loops are compiled
            _, taken = cpu_seconds(lambda found=found: learner.learn(found))  # type: ignore[misc]
            sizes.append(float(len(found.fold)))
            seconds.append(taken / sizes[-1] ** _MORE_STEPS)
    of_query = 0.0
    if sizes[-1] > sizes[0]:
        of_query = max(seconds[-1] - seconds[0], 0.0) / (sizes[-1] - sizes[0])
    of_step = max(seconds[-1] - of_query * sizes[-1], 0.0)
    of_query *= visits / max(_Table.of(found, 1.0).visits, 1.0)
    taken_by_each: NDArray[np.float64] = heads**_MORE_STEPS * (of_step + of_query * heads)
    return np.where(heads > 0, taken_by_each, 0.0)


@dataclass(frozen=True)
class _Table:
    """What is known of the candidates of a query, on average.

    Attributes:
        candidates: how many.
        visits: what a step of learning reads.
        size: bytes.
    """

    candidates: float
    visits: float
    size: float

    @classmethod
    def of(cls, found: CandidateTable, more_rules: float) -> _Table:
        """Of some queries, with so many times as many rules that lead to candidates."""
        table, queries = found.table, max(len(found.fold), 1)
        if table is None:
            return cls(0.0, 0.0, 0.0)
        rules = (table.rule, table.root)
        size = sum(one.nbytes for one in table) + (more_rules - 1) * sum(r.nbytes for r in rules)
        visits = 4 * len(table.stands_for) + more_rules * len(table.rule) + len(table.word)
        return cls(len(table.stands_for) / queries, visits / queries, size / queries)


def _asked(queries: QueryTable, settings: LogLinearSettings, heads: int) -> QueryTable:
    """The queries that are learned from, head by head."""
    rows: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    for head in range(heads):
        mine = np.flatnonzero(queries.directed_relation == head)
        columns = (queries.fact[mine], queries.directed_relation[mine])
        rows.append(mine[keyed_sample(settings.queries, settings.seed, *columns)])
    return queries[np.concatenate(rows)]
