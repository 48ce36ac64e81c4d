"""Limits of the service, and the worker queue that keeps computations within them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from tilp.parallel import thread_count
from tilp.web.errors import Code, ServiceError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a service.

    Attributes:
        body: Largest body of a request, in bytes.
        batch_body: Largest body of a batch, in bytes.
        computations: Computations that run at once; None for as many as there are cores.
        waiting: Requests that may wait for a computation; further ones get the error `busy`.
        seconds: Time that a request may wait and compute before it gets the error `too_slow`.
        arrival: Seconds that a body may take to arrive, and the client to read each part of a
            response.
        chunk: Queries of a batch that are computed together, before other requests get a turn.
    """

    body: int = 2**16
    batch_body: int = 2**21
    computations: int | None = None
    waiting: int = 64
    seconds: float = 30.0
    arrival: float = 15.0
    chunk: int = 16

    @property
    def threads(self) -> int:
        """Number of computations that run at once."""
        return thread_count(self.computations)


class WorkerQueue:
    """Threads that run computations in the order of their requests, with a bounded queue.

    A request gives up a computation that takes too long. The computation still runs to its end,
    which the limit on walks bounds, and occupies its thread until then.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="tilp")
        self._requests = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Occupy a slot of the queue during a request; raise `busy` if there is none."""
        if self._requests >= self._limits.threads + self._limits.waiting:
            raise ServiceError(Code.BUSY, "too many requests are waiting; try again later")
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    async def compute(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """Run a function in one of the threads; raise `too_slow` if that takes too long."""
        future = self._threads.submit(function, *args, **options)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds)
        except TimeoutError:
            raise ServiceError(
                Code.TOO_SLOW,
                f"no answer within {self._limits.seconds:g} seconds; ask for less at once, or try "
                "again later",
            ) from None

    def close(self) -> None:
        """Finish running computations, and start no more."""
        self._threads.shutdown(cancel_futures=True)
