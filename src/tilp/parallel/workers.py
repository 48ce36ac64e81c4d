"""`Workers`: run chunks of work in this thread, in several threads, or on Ray."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, repeat
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tilp._utils.arrays import Floats
from tilp._utils.memory import memory_budget, resident_bytes
from tilp.errors import TilpError
from tilp.types import Backend, choose

if TYPE_CHECKING:
    from tilp.parallel.ray_workers import RayWorkers

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

_MAX_RAY_TASKS = 16  # each holds the results of its finished chunks in memory
_MIN_BLOCK, _MAX_BLOCK = 2e6, 24e6  # bytes; larger ones are hardly faster


def split_by_cost(cost: Floats, max_slices: int = 64) -> list[slice]:
    """Split items, given the cost of each, into at most so many slices of about the same cost.

    >>> split_by_cost(np.array([1.0, 1.0, 2.0, 4.0]), max_slices=2)
    [slice(0, 3, None), slice(3, 4, None)]
    """
    if not len(cost):
        return []
    ends = np.cumsum(cost)
    middles = (ends - cost / 2) / ends[-1]
    slice_ids = np.minimum(middles * max_slices, max_slices - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(slice_ids, prepend=-1))
    return [slice(int(a), int(b)) for a, b in zip(starts, [*starts[1:], len(cost)], strict=True)]


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use: as requested, or one for each core."""
    return threads or os.cpu_count() or 1


class Workers:
    """Workers that run chunks of work: this thread, several threads, or processes of Ray.

    Several maps can run at once, each from its own thread (`map_tasks`). They share the workers, so
    no worker is idle while one map waits for its last chunk.

    Args:
        threads: number of threads, 1 by default: everything runs in the calling thread. With
            `ray`, number of processes to start if there is no cluster to join.
        backend: `serial`, `threads` (default) or `ray`.
        address: address of a running Ray cluster, `host:port` or `auto`. None by default: start
            Ray on this machine.
        memory: bytes that this process may take, or such as `2GB`; by default as many as now and
            half of what is left. Work is done in blocks that fit; results do not change.

    >>> with Workers(2) as workers:
    ...     list(workers.map(abs, [-1, -2]))
    [1, 2]
    """

    def __init__(
        self, threads: int = 1, backend: Backend | str = Backend.THREADS,
        address: str | None = None, memory: int | str | None = None,
    ) -> None:  # fmt: skip
        self.memory = memory_budget(memory)
        self.backend = choose(Backend, backend, "backend")
        if address is not None and self.backend is not Backend.RAY:
            raise TilpError(
                f"address is {address!r}, but the backend is {self.backend.value}; choose the "
                "backend ray to use a cluster"
            )
        self.threads = 1 if self.backend is Backend.SERIAL else threads
        self._ray: RayWorkers | None = None
        if self.backend is Backend.RAY:
            try:
                from tilp.parallel.ray_workers import RayWorkers
            except ModuleNotFoundError as failure:
                if failure.name != "ray":
                    raise
                raise TilpError('Ray is not installed: pip install "tilp[ray]"') from None
            self._ray = RayWorkers(threads, address)
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._ray is not None:
            self._ray.close()

    @property
    def block_bytes(self) -> float:
        """Bytes that one chunk in progress may take: an equal share of what is left."""
        share = (self.memory - resident_bytes()) / (2 * self.threads + 1)
        return float(np.clip(share, _MIN_BLOCK, _MAX_BLOCK))

    def map(
        self, function: Callable[[Chunk], Result], chunks: Iterable[Chunk],
        sizes: Sequence[float] = (),
    ) -> Iterator[Result]:  # fmt: skip
        """Yield the function's result for each chunk, in order, with few chunks in progress.

        Ray sends the function with everything it refers to. Large read-only arrays are put into
        the object store of each machine once, and all its workers read them there; everything else
        is copied. Changes that the function makes stay in the copy.

        Args:
            function: called with each chunk.
            chunks: drawn as workers become free.
            sizes: bytes that each chunk takes. In threads, one is in progress, or as many as fit
                into what is left of the memory. None by default.
        """
        if self._ray is not None:
            return self._ray.map(function, chunks)
        return self.map_in_threads(function, chunks, sizes)

    def map_in_threads(
        self, function: Callable[[Chunk], Result], chunks: Iterable[Chunk],
        sizes: Sequence[float] = (),
    ) -> Iterator[Result]:  # fmt: skip
        """Do the same in threads of this process with any backend: faster for short chunks."""
        if self._pool is None:
            return map(function, chunks)
        room = self.memory - resident_bytes() if len(sizes) else math.inf
        return _map_ahead(self._pool, function, chunks, 2 * self.threads, sizes, room)

    def map_tasks(
        self, function: Callable[[Chunk], Result], tasks: Iterable[Chunk]
    ) -> Iterator[Result]:
        """Yield the result of each task, in order; tasks run concurrently and use `map` themselves.

        Tasks run in threads of this process, their chunks wherever the workers are. If the caller
        stops early, running tasks end with their next chunk.

        Args:
            function: called with each task.
            tasks: as many run at once as there are workers.
        """
        concurrent = self.threads
        if self._ray is not None:
            concurrent = max(concurrent, min(self._ray.slots, _MAX_RAY_TASKS))
        if concurrent == 1:
            yield from map(function, tasks)
            return
        with ThreadPoolExecutor(concurrent) as task_threads:
            try:
                yield from _map_ahead(task_threads, function, tasks, concurrent)
            except BaseException:
                self._stop()
                raise

    def _stop(self) -> None:
        if self._ray is not None:
            self._ray.stop()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def use_workers(workers: Workers | None, threads: int = 1) -> AbstractContextManager[Workers]:
    """Enter the given workers, which stay open; if None, new threads that are closed at the end."""
    return nullcontext(workers) if workers is not None else Workers(threads)


def _map_ahead(
    threads: ThreadPoolExecutor, function: Callable[[Chunk], Result], chunks: Iterable[Chunk],
    max_ahead: int, sizes: Sequence[float] = (), room: float = math.inf,
) -> Iterator[Result]:  # fmt: skip
    """Yield results in order, with at most `max_ahead` chunks submitted after the awaited one."""
    futures: deque[tuple[Future[Result], float]] = deque()
    try:
        for chunk, size in zip(chunks, chain(sizes, repeat(0.0)), strict=False):
            while futures and size + sum(held for _, held in futures) > room:
                yield futures.popleft()[0].result()
            futures.append((threads.submit(function, chunk), size))
            if len(futures) > max_ahead:
                yield futures.popleft()[0].result()
        while futures:
            yield futures.popleft()[0].result()
    finally:
        for future, _ in futures:
            future.cancel()
