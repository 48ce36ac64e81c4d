"""`create_app`: the service of one model, as an ASGI app."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from tilp._version import __version__
from tilp.model import TILP
from tilp.web import schemas
from tilp.web.api import BATCH, PREFIX, api_router
from tilp.web.errors import add_handlers
from tilp.web.limits import Guard, Limits
from tilp.web.served import Served
from tilp.web.static import documented, page_router

__all__ = ["create_app"]

_DESCRIPTION = """
Rules, predictions, explanations and facts of one model of temporal logical rules.

Every error is `{"error": {"code", "message", "near"}}`: `code` for programs, `message` with what
is wrong and the remedy, `near` with names that may have been meant. `503` comes with
`Retry-After`. Names are labels or ids; where several entities have one label, the id says which.
Dates are text as in the data, or numbers in its unit.
"""


def create_app(
    model: TILP,
    *,
    name: str,
    limits: Limits | None = None,
    when_ready: Callable[[], None] | None = None,
) -> FastAPI:
    """The service of a model; it warms up when it starts, and `/ready` says when it is warm.

    Args:
        model: a fitted model.
        name: that it is shown with.
        limits: what is borne.
        when_ready: called when it is warm.
    """
    limits = limits or Limits()
    served = Served(model, name, limits, when_ready)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        served.start()
        yield
        served.desk.close()

    app = FastAPI(
        title="tilp",
        version=__version__,
        summary="Temporal logical rules, asked over HTTP.",
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # they would load their parts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(Guard, limits=limits, batches=frozenset({PREFIX + BATCH}))
    add_handlers(app)

    @app.get("/health", response_model=schemas.Health, tags=["service"])
    async def health() -> schemas.Health:
        """Whether the service runs."""
        return schemas.Health(status="ok")

    @app.get(
        "/ready",
        response_model=schemas.Health,
        responses={503: {"model": schemas.Error, "description": "Not yet."}},
        tags=["service"],
    )
    async def ready() -> schemas.Health:
        """Whether the model is warm, so that queries are answered at their usual speed."""
        _ = served.views
        return schemas.Health(status="ready")

    app.include_router(api_router(served))
    app.include_router(page_router())
    app.openapi = documented(app, served)  # type: ignore[method-assign]  # as FastAPI advises
    return app
