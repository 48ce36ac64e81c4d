"""`best_by_rank`: which of several ways to score ranks held-out answers best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tilp.choices import Protocol, Ties
from tilp.evaluation import Ranker, Scores, rank_column
from tilp.graph import QueryTable
from tilp.parallel import Workers

__all__ = ["best_by_rank"]

_BATCH = 512
_CHOSEN_BY = rank_column(Protocol.ENUMERATE, Ties.AVERAGE)


def best_by_rank(
    ranker: Ranker,
    score: Callable[[QueryTable], Sequence[Scores]],
    workers: Workers,
    progress: Callable[[float], None],
) -> int:
    """The way with the highest mean of inverse ranks, of several equal ones the first.

    Args:
        ranker: of the held-out queries.
        score: the scores of queries in each way.
        workers: do not change the result.
        progress: called with the share that is done.
    """
    order = np.argsort(ranker.queries.subject, kind="stable")
    parts = [order[begin : begin + _BATCH] for begin in range(0, len(order), _BATCH)]
    found = []
    for number, sums in enumerate(workers.map(partial(_inverse_ranks, ranker, score), parts)):
        found.append(sums)
        progress((number + 1) / len(parts))
    return int(np.argmax(np.sum(found, axis=0)))


def _inverse_ranks(
    ranker: Ranker,
    score: Callable[[QueryTable], Sequence[Scores]],
    part: NDArray[np.int64],
) -> list[float]:
    """The sum of the inverse ranks of some queries' answers, in each way."""
    ways = score(ranker.queries[part])
    ranks = (ranker.rank(part, scores, [Protocol.ENUMERATE])[0] for scores in ways)
    return [float((1.0 / one[_CHOSEN_BY]).sum()) for one in ranks]
