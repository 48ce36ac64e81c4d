"""Seconds for each unit of work, measured on this machine on a sample of the work itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from tilp._utils.arrays import ranges_to_indices
from tilp.costs.amounts import WalkAmounts, walk_amounts
from tilp.graph import QueryTable
from tilp.parallel import split_by_cost

__all__ = ["Rates", "Walks", "calibrate", "cpu_seconds"]

_STRATA = 8
_BATCH_STEPS = 4e5  # of the cheaper batches; the dearer ones are of one entity
_MOST_ENTITIES = 64  # in a batch
_MOST_ROUNDS = 40
_REWEIGHTED = 10  # times that errors are taken anew
_QUERIES_OF_ONE = (1, 16)  # of an entity, turn by turn: what it takes itself, and what each takes

Result = TypeVar("Result")


def cpu_seconds(function: Callable[[], Result]) -> tuple[Result, float]:
    """What a function gives, and the seconds that all threads of this process worked for it."""
    began = time.process_time()
    result = function()
    return result, time.process_time() - began


@dataclass(frozen=True)
class Rates:
    """Seconds for each unit of `WalkAmounts`.

    Attributes:
        of: the seconds, in the order of the amounts.
        measured: CPU seconds that were measured to know it.
    """

    of: NDArray[np.float64]
    measured: float = 0.0

    def seconds(self, amounts: WalkAmounts) -> float:
        """What so much takes."""
        return float(self.of @ amounts.row())

    def to_json(self) -> dict[str, float]:
        """By name."""
        names = (one.name for one in fields(WalkAmounts))
        return dict(zip(names, self.of.tolist(), strict=True))


@dataclass(frozen=True)
class Walks:
    """Queries that something is done for, and what its time goes by.

    Attributes:
        steps: of all walks from each entity.
        queries: the queries.
        entity: of each, where its walks begin.
        apart: of each a number; what is walked for one number serves no other.
        place: of each, its number among all of them.
        calls: chunks that they are cut into when all of it is done.
    """

    steps: NDArray[np.float64]
    queries: QueryTable
    entity: NDArray[np.int32]
    apart: NDArray[np.int64]
    place: NDArray[np.int64]
    calls: float = 1.0

    @classmethod
    def of_queries(
        cls,
        steps: NDArray[np.float64],
        queries: QueryTable,
        *,
        entity: NDArray[np.int32] | None = None,
        apart: NDArray[np.int64] | None = None,
        calls: float = 1.0,
    ) -> Walks:
        """Walks from the subjects of queries, or from other entities, all in one by default."""
        size = len(queries)
        return cls(
            steps,
            queries,
            queries.subject if entity is None else entity,
            np.zeros(size, np.int64) if apart is None else apart,
            np.arange(size),
            calls,
        )

    def amounts(self) -> WalkAmounts:
        """Of all of it."""
        return walk_amounts(self.steps, self.queries, self.entity, self.apart, calls=self.calls)

    def largest(self) -> float:
        """Steps of all queries that are asked of one entity, which are never divided."""
        each = np.bincount(self.entity, self.steps[self.entity])
        return float(each.max(initial=0.0))

    def of(self, rows: NDArray[np.int64]) -> Walks:
        """Some of the queries, in one chunk."""
        columns = (self.queries[rows], self.entity[rows], self.apart[rows], self.place[rows])
        return Walks(self.steps, *columns)

    def batches(self, seed: int) -> Iterator[Walks]:
        """Samples that are as good for rare entities with many walks as for the others.

        Entities are put into strata that take about the same time each; a round has a batch of
        each, in which one number of `apart` stands for all. The first batch is of the first
        stratum, whose entities take least.
        """
        chance = np.random.default_rng([seed, len(self.queries)])
        queries = self.queries
        order = np.lexsort(
            (queries.end, queries.start, queries.directed_relation, self.entity, self.apart)
        )
        entity, apart = self.entity[order], self.apart[order]
        new = np.append(True, (np.diff(entity) != 0) | (np.diff(apart) != 0))
        begin = np.flatnonzero(new)
        count = np.diff(begin, append=len(order))
        entity, apart = entity[begin], apart[begin]
        cost = self.steps[entity] * (4 + count) + 100
        by_cost = np.argsort(cost, kind="stable")
        strata = [by_cost[part] for part in split_by_cost(cost[by_cost], _STRATA)]
        for number in range(_MOST_ROUNDS):
            most = _QUERIES_OF_ONE[number % len(_QUERIES_OF_ONE)]
            for stratum in strata:
                one = apart[chance.choice(stratum, p=cost[stratum] / cost[stratum].sum())]
                mine = stratum[apart[stratum] == one]
                each = (self.steps[entity[mine]] * (1 + np.minimum(count[mine], most))).mean()
                size = int(np.clip(_BATCH_STEPS / (each + 100), 1, _MOST_ENTITIES))
                some = chance.choice(mine, min(size, len(mine)), replace=False)
                # Neighbours in this order, which share as much as all do.
                skipped = chance.integers(np.maximum(count[some] - most, 0) + 1)
                first = begin[some] + skipped
                _, places = ranges_to_indices(first, first + np.minimum(count[some], most))
                yield self.of(order[places])


def calibrate(
    work: Walks,
    probe: Callable[[Walks], object],
    budget: float,
    seed: int = 0,
) -> Rates:
    """Measure what a unit of work takes.

    Each of the strata weighs the same, as each takes about the same of the time of the whole.

    Args:
        work: all of it.
        probe: does what is to be measured, for a part of it.
        budget: CPU seconds to spend, about.
        seed: for the sample.
    """
    if not len(work.queries):
        return Rates(np.zeros(len(fields(WalkAmounts))))
    rows, taken = [], []
    spent = 0.0
    for number, batch in enumerate(work.batches(seed)):
        if number == 0:
            probe(batch)  # loops are compiled, or read from where they are kept
        _, seconds = cpu_seconds(lambda batch=batch: probe(batch))  # type: ignore[misc]
        rows.append(batch.amounts().row())
        taken.append(max(seconds, 1e-6))
        spent += seconds
        enough = number + 1 >= len(_QUERIES_OF_ONE) * _STRATA
        if (enough and spent > budget) or spent > 3 * budget:
            break
    return Rates(fitted(np.array(rows), np.array(taken)), spent)


def fitted(rows: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each unit takes, never below 0, so that measured over fitted seconds are 1 on average.

    Errors are taken relative to what is fitted: relative to what was measured they would draw
    everything to the batches that happened to be quick.

    >>> fitted(np.array([[1.0, 10.0], [1.0, 30.0]]), np.array([7.0, 17.0])).round(9).tolist()
    [2.0, 0.5]
    """
    scale = np.maximum(rows.max(axis=0), 1e-300)
    parts = rows / scale
    expected = seconds
    found = np.zeros(rows.shape[1])
    for _ in range(_REWEIGHTED):
        found, _ = nnls(parts / expected[:, None], seconds / expected)
        expected = np.maximum(parts @ found, 0.01 * seconds)
    return np.asarray(found / scale, np.float64)
