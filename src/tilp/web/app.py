"""`create_app`: the service of one model, as an ASGI app; its middleware and its page."""

import asyncio
import hashlib
import logging
import mimetypes
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilp._version import __version__
from tilp.model import TILP
from tilp.web import schemas
from tilp.web.api import BATCH, PREFIX, api_router
from tilp.web.errors import Code, ServiceError, add_error_handlers
from tilp.web.state import Access, Limits, ServiceState

_DESCRIPTION = """
Rules, predictions, explanations and facts of one model of temporal logical rules.

Every error is `{"error": {"code", "message", "near"}}`: `code` for programs, `message` with what
is wrong and the remedy, `near` with similar names. `503` comes with `Retry-After`. Names are
labels or ids; where several entities have one label, the id says which. Dates are text as in the
data, or numbers in its unit.
"""


def create_app(
    model: TILP, *, name: str, limits: Limits | None = None, access: Access | None = None,
    when_ready: Callable[[], None] | None = None,
) -> FastAPI:  # fmt: skip
    """Return the service of a model, as an ASGI app for any server.

    The model warms up when the app starts; `/ready` answers 200 from then on.

    Args:
        model: A fitted model.
        name: The name that the page shows.
        limits: Sizes, times and threads; `Limits()` by default. Those of connections hold under
            `tilp.web.connections.BoundedProtocol`.
        access: Hosts and token of requests that are answered; all are by default.
        when_ready: Called when the model is warm; nothing by default.

    >>> import tilp
    >>> model = tilp.TILP(1, features="none").fit(tilp.datasets.world(0, 1_000).graph)
    >>> app = create_app(model, name="world")
    >>> app.title
    'tilp'
    """
    limits = limits or Limits()
    state = ServiceState(model, name, limits, when_ready)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        state.start()
        yield
        state.queue.close()

    app = FastAPI(
        title="tilp",
        version=__version__,
        summary="Temporal logical rules over HTTP.",
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # they would load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
    )
    access, batches = access or Access(), frozenset({PREFIX + BATCH})
    app.add_middleware(RequestMiddleware, limits=limits, access=access, batch_paths=batches)
    add_error_handlers(app)

    @app.get("/health", responses={200: schemas.returns("Health")}, tags=["service"])
    async def health() -> Any:
        """Tell that the service runs."""
        return {"status": "ok"}

    @app.get(
        "/ready",
        responses={200: schemas.returns("Health"), 503: schemas.returns("Error", "Not yet.")},
        tags=["service"],
    )
    async def ready() -> Any:
        """Tell that the model is warm, so that queries are answered at their usual speed."""
        _ = state.views
        return {"status": "ready"}

    app.include_router(api_router(state))
    app.include_router(page_router())
    app.openapi = cache(partial(_openapi, app))  # type: ignore[method-assign]  # as FastAPI advises
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    names = ("title", "version", "summary", "description", "routes")
    schema = get_openapi(**{name: getattr(app, name) for name in names})
    schema["components"]["schemas"] |= schemas.RESPONSES
    return schema


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
# A body is read, and dropped, up to this many times its limit: a client that is cut off while it
# sends may not see the response.
_DRAINED = 4
_HEALTH = frozenset({"/health", "/ready"})  # answered without a token, and to any number


class _NotReadError(Exception):
    """The client does not read its response."""


class RequestMiddleware:
    """Reads bodies within their limits, adds headers, and turns any failure into an error."""

    def __init__(
        self, app: ASGIApp, limits: Limits, access: Access, batch_paths: frozenset[str]
    ) -> None:
        self._app, self._limits, self._access = app, limits, access
        self._batch_paths, self._running = batch_paths, 0

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

        headers, is_health = Headers(scope=scope), scope["path"] in _HEALTH
        try:
            access = replace(self._access, token=None) if is_health else self._access
            access.check(headers.get("host", ""), headers.get("authorization", ""))
            body = await self._read_body(scope, receive)
            if body is None:
                return
            if self._running >= self._limits.requests and not is_health:
                raise ServiceError(Code.BUSY, "too many requests at once; try again later")
            self._running += 1
            try:
                await self._app(scope, _replay(body, receive), send_in_time)
            finally:
                self._running -= 1
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
        request = Request(scope, receive)
        limit = self._limits.batch_body if scope["path"] in self._batch_paths else self._limits.body
        message = f"the body is larger than {limit:,} bytes; send less at once"
        too_large = ServiceError(Code.TOO_LARGE, message)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > _DRAINED * limit:
            raise too_large
        body, size = bytearray(), 0
        try:
            async with asyncio.timeout(self._limits.arrival):
                async for part in request.stream():
                    size += len(part)
                    if size <= limit:
                        body += part
                    if size > _DRAINED * limit:
                        break
        except ClientDisconnect:
            return None
        except TimeoutError:
            message = f"the body did not arrive within {self._limits.arrival:g} seconds"
            raise ServiceError(Code.TOO_SLOW, message, status=408) from None
        if size > limit:
            raise too_large
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and media_type != "application/json":
            message = "the body must be JSON; send Content-Type: application/json"
            raise ServiceError(Code.WRONG_TYPE, message)
        return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body in one piece, then whatever follows."""
    whole = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(whole, None) or await receive()

    return receive_again


_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


def page_router(folder: Traversable | None = None) -> APIRouter:
    """Serve `/` and `/static/…` from a folder, by default the page; its files are listed once."""
    router = APIRouter(include_in_schema=False)
    folder = files("tilp.web") / "page" if folder is None else folder
    assets = {file.name: file for file in folder.iterdir() if file.is_file()}

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return _serve(assets, "index.html", request)

    @router.api_route("/static/{name}", methods=["GET", "HEAD"])
    async def asset(name: str, request: Request) -> Response:
        return _serve(assets, name, request)

    return router


def _serve(assets: dict[str, Traversable], name: str, request: Request) -> Response:
    if name not in assets:
        raise ServiceError(Code.NOT_FOUND, "the page has no such file")
    content = assets[name].read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    # Browsers may cache a file, but must revalidate it: after an upgrade they load the new page.
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    suffix = f".{name.rpartition('.')[2]}"
    media_type = _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")
    return Response(content, media_type=media_type, headers=headers)
