"""`Limits`: how much one request, and all of them together, may ask for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilp.parallel import thread_count
from tilp.web.errors import Code, ServiceError, error_response


@dataclass(frozen=True, slots=True)
class Limits:
    """What a service bears.

    Attributes:
        body: bytes of a request's body.
        batch_body: likewise, of a batch.
        computations: that run at once; None for as many as there are cores.
        waiting: requests that may wait for one to end; the next is told to come back later.
        seconds: that a request may wait and compute; then it is given up.
        arrival: seconds that a request's body may take to arrive, and each part of an answer to be
            read.
        chunk: queries of a batch that are computed together, between which others have a turn.
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
        """How many computations run at once."""
        return thread_count(self.computations)


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


logger = logging.getLogger(__name__)

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_READ_ON = 4
"""So many times the limit of a body is read, and forgotten, before the connection is cut: a client
that is cut off while it sends may not see the answer."""
_DEFECT = "a defect of the service, noted in its log; other requests are not touched"


class _NotReadError(Exception):
    """The client does not read its answer."""


class Guard:
    """Reads a body within its limits, sets headers, and lets no failure out as it is.

    Args:
        app: what answers.
        limits: of bodies.
        batches: paths whose bodies may be as large as a batch.
    """

    def __init__(self, app: ASGIApp, limits: Limits, batches: frozenset[str]) -> None:
        self._app, self._limits, self._batches = app, limits, batches

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def guarded_send(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                _add(MutableHeaders(scope=message), _HEADERS)
            try:
                async with asyncio.timeout(self._limits.arrival):
                    await send(message)
            except TimeoutError:
                raise _NotReadError from None

        try:
            body = await self._body(scope, receive)
            if body is not None:
                await self._app(scope, _again(body, receive), guarded_send)
        except ServiceError as refused:
            # What is left of the body would be read as the next request.
            refused.headers["Connection"] = "close"
            await error_response(refused)(scope, receive, guarded_send)
        except _NotReadError:
            logger.info("an answer was not read; its connection is closed")
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            if begun:
                raise  # the server cuts the answer off, so that it is not taken for a whole one
            await error_response(ServiceError(Code.DEFECT, _DEFECT))(scope, receive, guarded_send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body of a request; None if the client left before its end.

        Raises:
            ServiceError: it is too large, too slow, or of a wrong type.
        """
        headers = Headers(scope=scope)
        limit = self._limits.batch_body if scope["path"] in self._batches else self._limits.body
        told = headers.get("content-length", "")
        if told.isdecimal() and int(told[:20]) > _READ_ON * limit:
            raise _too_large(limit)
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(self._limits.arrival):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= limit:
                        body += part
                    if size > _READ_ON * limit or not message.get("more_body", False):
                        break
        except TimeoutError:
            raise ServiceError(
                Code.TOO_SLOW,
                f"the body did not arrive within {self._limits.arrival:g} seconds",
                status=408,
            ) from None
        if size > limit:
            raise _too_large(limit)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise ServiceError(
                Code.WRONG_TYPE, "a body is JSON; send it with Content-Type: application/json"
            )
        return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes."""
    read = False

    async def receive_again() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def _too_large(limit: int) -> ServiceError:
    return ServiceError(
        Code.TOO_LARGE, f"the body is larger than {limit:,} bytes; send less at once"
    )


def _add(headers: MutableHeaders, others: Mapping[str, str]) -> None:
    for name, value in others.items():
        headers.setdefault(name, value)
