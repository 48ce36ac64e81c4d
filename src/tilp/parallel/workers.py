"""Work cut into chunks by its cost."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.types import Backend, choose

if TYPE_CHECKING:
    from tilp.parallel.ray_workers import RayWorkers


def split_by_cost(cost: NDArray[np.float64], max_slices: int = 64) -> list[slice]:
    """Cut a sequence into at most so many slices of about the same cost.

    >>> split_by_cost(np.array([1.0, 1.0, 2.0, 4.0]), max_slices=2)
    [slice(0, 3, None), slice(3, 4, None)]
    """
    if not len(cost):
        return []
    ends = np.cumsum(cost)
    numbers = np.minimum((ends - cost / 2) / ends[-1] * max_slices, max_slices - 1).astype(np.int64)
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    return [slice(int(a), int(b)) for a, b in zip(begins, [*begins[1:], len(cost)], strict=True)]


Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

_MOST_TASKS = 16  # side by side under Ray: each holds what its chunks have found so far


def thread_count(threads: int | None) -> int:
    """As many threads as are asked for, or as there are cores."""
    return threads or os.cpu_count() or 1


class Workers:
    """What chunks of work are given to, until it is closed: this thread, several, or Ray's workers.

    Several maps may be under way at once, each from a thread of its own (`map_tasks`); they
    share the workers, so that these have something to do while one map waits for its last chunk.

    Args:
        threads: how many; with one, everything is done where it is asked for. Under Ray so many
            processes are started here, unless there is a cluster to work on.
        backend: `serial`, `threads` or `ray`.
        address: of a Ray cluster that is running, `host:port` or `auto`.

    Raises:
        TilpError: Ray is not installed or not to be reached, or an address is given without it.

    >>> with Workers(2) as workers:
    ...     list(workers.map(abs, [-1, -2]))
    [1, 2]
    """

    def __init__(
        self,
        threads: int = 1,
        backend: Backend | str = Backend.THREADS,
        address: str | None = None,
    ) -> None:
        self.backend = choose(Backend, backend, "backend")
        if address is not None and self.backend is not Backend.RAY:
            raise TilpError(
                f"address is {address!r}, but work is not given to Ray; choose the backend ray"
            )
        self.threads = 1 if self.backend is Backend.SERIAL else threads
        self._ray: RayWorkers | None = None
        if self.backend is Backend.RAY:
            self._ray = _on_ray(threads, address)
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._ray is not None:
            self._ray.close()

    def map(self, function: Callable[[Chunk], Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The function's result for each chunk, in order; a bounded number is under way.

        Under Ray the function travels, with all that it holds: read-only arrays of some size are
        put into each machine's store once and are read there by all workers, everything else is
        copied. What it changes is changed in a copy.
        """
        if self._ray is not None:
            return self._ray.map(function, chunks)
        return self.map_in_threads(function, chunks)

    def map_in_threads(
        self, function: Callable[[Chunk], Result], chunks: Iterable[Chunk]
    ) -> Iterator[Result]:
        """The same by threads of this process, whatever the backend: for many short chunks."""
        if self._pool is None:
            return map(function, chunks)
        return _ahead(self._pool, function, chunks, 2 * self.threads)

    def map_tasks(
        self, function: Callable[[Chunk], Result], tasks: Iterable[Chunk]
    ) -> Iterator[Result]:
        """The result of each task, in order; tasks use `map`, and as many run as there are workers.

        Tasks stay in this process, their chunks need not. Where the results are no longer wanted,
        the tasks under way end with their next chunk.
        """
        at_once = self.threads
        if self._ray is not None:
            at_once = max(at_once, min(self._ray.slots, _MOST_TASKS))
        if at_once == 1:
            yield from map(function, tasks)
            return
        with ThreadPoolExecutor(at_once) as tasks_pool:
            try:
                yield from _ahead(tasks_pool, function, tasks, at_once)
            except BaseException:
                self._stop()
                raise

    def _stop(self) -> None:
        """Take no more chunks."""
        if self._ray is not None:
            self._ray.stop()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


@contextmanager
def use_workers(workers: Workers | None, threads: int = 1) -> Iterator[Workers]:
    """The workers that were given, which stay open; or else some threads, until they are done."""
    if workers is not None:
        yield workers
        return
    with Workers(threads) as own:
        yield own


def _on_ray(threads: int, address: str | None) -> RayWorkers:
    try:
        from tilp.parallel.ray_workers import RayWorkers
    except ModuleNotFoundError as failure:
        if failure.name != "ray":
            raise
        raise TilpError('Ray is not installed: pip install "tilp[ray]"') from None
    return RayWorkers(threads, address)


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
