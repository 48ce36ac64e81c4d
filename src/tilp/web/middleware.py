"""Middleware around every request: body limits, security headers, and a last resort for errors."""

from __future__ import annotations

import asyncio
import logging

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilp.web.errors import Code, ServiceError
from tilp.web.limits import Limits

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
_DRAINED = 4
"""A body is read, and dropped, up to this many times its limit: a client that is cut off while it
sends may not see the response."""


class _NotReadError(Exception):
    """The client does not read its response."""


class RequestMiddleware:
    """Reads bodies within their limits, adds headers, and turns any failure into an error.

    Bodies of `batch_paths` may be as large as a batch.
    """

    def __init__(self, app: ASGIApp, limits: Limits, batch_paths: frozenset[str]) -> None:
        self._app, self._limits, self._batch_paths = app, limits, batch_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_in_time(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            try:
                async with asyncio.timeout(self._limits.arrival):
                    await send(message)
            except TimeoutError:
                raise _NotReadError from None

        try:
            body = await self._read_body(scope, receive)
            if body is not None:
                await self._app(scope, _replay(body, receive), send_in_time)
        except ServiceError as error:
            # The rest of the body would be read as the next request.
            error.headers["Connection"] = "close"
            await error.response()(scope, receive, send_in_time)
        except _NotReadError:
            logger.info("a client did not read its response; its connection is closed")
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            if started:
                raise  # the server cuts the connection, so that the client sees it is incomplete
            message = "a defect of the service, see its log; other requests are not affected"
            await ServiceError(Code.DEFECT, message).response()(scope, receive, send_in_time)

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body of a request; None if the client left before its end."""
        headers = Headers(scope=scope)
        is_batch = scope["path"] in self._batch_paths
        limit = self._limits.batch_body if is_batch else self._limits.body
        too_large = ServiceError(
            Code.TOO_LARGE, f"the body is larger than {limit:,} bytes; send less at once"
        )
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > _DRAINED * limit:
            raise too_large
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
                    if size > _DRAINED * limit or not message.get("more_body", False):
                        break
        except TimeoutError:
            seconds = f"{self._limits.arrival:g} seconds"
            raise ServiceError(
                Code.TOO_SLOW, f"the body did not arrive within {seconds}", status=408
            ) from None
        if size > limit:
            raise too_large
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and media_type != "application/json":
            raise ServiceError(
                Code.WRONG_TYPE, "the body must be JSON; send Content-Type: application/json"
            )
        return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body in one piece, then whatever follows."""
    replayed = False

    async def receive_again() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
