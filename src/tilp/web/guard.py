"""`Guard`: what holds for every request and answer, before and after the app itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilp.web.errors import Code, ServiceError, error_response
from tilp.web.limits import Limits

__all__ = ["Guard"]

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
