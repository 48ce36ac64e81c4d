"""`Desk`: a bounded number of computations at once, a bounded number waiting, a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from tilp.web.errors import Code, ServiceError
from tilp.web.limits import Limits

__all__ = ["Desk"]

Asked = ParamSpec("Asked")
Result = TypeVar("Result")

_LATER = {"Retry-After": "1"}


class Desk:
    """Threads that compute what requests ask for, in the order in which they came.

    A computation that takes too long is given up by its request, and goes on to its end, which
    the walker's own limits bound; until then it counts as one that runs.

    Args:
        limits: what is borne.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="tilp")
        self._under_way = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among those that compute or wait, for as long as a request needs it.

        Raises:
            ServiceError: too many wait already.
        """
        if self._under_way >= self._limits.threads + self._limits.waiting:
            raise ServiceError(
                Code.BUSY, "too many requests are waiting; ask again later", headers=_LATER
            )
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    async def compute(
        self, function: Callable[Asked, Result], *args: Asked.args, **options: Asked.kwargs
    ) -> Result:
        """What a function returns, computed in its turn.

        Raises:
            ServiceError: it took too long.
        """
        computed = self._threads.submit(function, *args, **options)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(computed), self._limits.seconds)
        except TimeoutError:
            raise ServiceError(
                Code.TOO_SLOW,
                f"no answer within {self._limits.seconds:g} seconds; ask for less at once, or "
                "again later",
                headers=_LATER,
            ) from None

    def close(self) -> None:
        """Let what runs end, and start nothing more."""
        self._threads.shutdown(cancel_futures=True)
