"""`Workers`: one `map` over chunks of work, cut by cost, with results in the order of the chunks.

Chunks do not depend on how many workers there are, so neither does the result.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Workers", "cut_by_cost", "thread_count"]

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def cut_by_cost(cost: NDArray[np.float64], most: int = 64) -> list[slice]:
    """Cut a sequence into at most so many slices of about the same cost.

    >>> cut_by_cost(np.array([1.0, 1.0, 2.0, 4.0]), most=2)
    [slice(0, 3, None), slice(3, 4, None)]
    """
    if not len(cost):
        return []
    ends = np.cumsum(cost)
    numbers = np.minimum((ends - cost / 2) / ends[-1] * most, most - 1).astype(np.int64)
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    return [slice(int(a), int(b)) for a, b in zip(begins, [*begins[1:], len(cost)], strict=True)]


def thread_count(threads: int | None) -> int:
    """As many threads as are asked for, or as there are cores."""
    return threads or os.cpu_count() or 1


class Workers:
    """Threads that chunks of work are given to, until they are closed.

    Several maps may be under way at once, each from a thread of its own (`side_by_side`); they
    share the workers, so that these have something to do while one map waits for its last chunk.

    Args:
        threads: how many; with one, everything is done where it is asked for.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Chunk], Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The function's result for each chunk, in order; a bounded number is under way."""
        if self._pool is None:
            return map(function, chunks)
        return _ahead(self._pool, function, chunks, 2 * self.threads)

    def side_by_side(
        self, function: Callable[[Chunk], Result], tasks: Iterable[Chunk]
    ) -> Iterator[Result]:
        """The result of each task, in order; tasks use `map`, and as many run as there are threads.

        Where the results are no longer wanted, the tasks under way end with their next chunk.
        """
        if self._pool is None:
            yield from map(function, tasks)
            return
        with ThreadPoolExecutor(self.threads) as tasks_pool:
            try:
                yield from _ahead(tasks_pool, function, tasks, self.threads)
            except BaseException:
                self._pool.shutdown(cancel_futures=True)
                raise


def _ahead(
    pool: ThreadPoolExecutor,
    function: Callable[[Chunk], Result],
    chunks: Iterable[Chunk],
    most: int,
) -> Iterator[Result]:
    """Results in order, with at most so many chunks given to the pool ahead of the one awaited."""
    under_way: deque[Future[Result]] = deque()
    try:
        for chunk in chunks:
            under_way.append(pool.submit(function, chunk))
            if len(under_way) > most:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        for waiting in under_way:
            waiting.cancel()
