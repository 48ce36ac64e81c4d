"""`create_app`: the service of one model, as an ASGI app."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tilp._version import __version__
from tilp.model import TILP
from tilp.web import schemas
from tilp.web.api import BATCH, PREFIX, api_router
from tilp.web.errors import add_error_handlers
from tilp.web.limits import Limits
from tilp.web.middleware import RequestMiddleware
from tilp.web.state import ServiceState
from tilp.web.static import page_router

_DESCRIPTION = """
Rules, predictions, explanations and facts of one model of temporal logical rules.

Every error is `{"error": {"code", "message", "near"}}`: `code` for programs, `message` with what
is wrong and the remedy, `near` with similar names. `503` comes with `Retry-After`. Names are
labels or ids; where several entities have one label, the id says which. Dates are text as in the
data, or numbers in its unit.
"""


def create_app(
    model: TILP,
    *,
    name: str,
    limits: Limits | None = None,
    when_ready: Callable[[], None] | None = None,
) -> FastAPI:
    """Return the service of a model, as an ASGI app for any server.

    The model warms up when the app starts; `/ready` answers 200 from then on.

    Args:
        model: A fitted model.
        name: The name that the page shows.
        limits: Sizes, times and threads; `Limits()` by default.
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
    app.add_middleware(RequestMiddleware, limits=limits, batch_paths=frozenset({PREFIX + BATCH}))
    add_error_handlers(app)

    @app.get("/health", response_model=schemas.Health, tags=["service"])
    async def health() -> schemas.Health:
        """Tell that the service runs."""
        return schemas.Health(status="ok")

    @app.get(
        "/ready",
        response_model=schemas.Health,
        responses={503: {"model": schemas.Error, "description": "Not yet."}},
        tags=["service"],
    )
    async def ready() -> schemas.Health:
        """Tell that the model is warm, so that queries are answered at their usual speed."""
        _ = state.views
        return schemas.Health(status="ready")

    app.include_router(api_router(state))
    app.include_router(page_router())
    app.openapi = _openapi(app, state)  # type: ignore[method-assign]  # as FastAPI advises
    return app


def _openapi(app: FastAPI, state: ServiceState) -> Callable[[], dict[str, Any]]:
    """Return the function that makes the schema, with examples once the model is warm."""
    cached: dict[bool, dict[str, Any]] = {}

    def openapi() -> dict[str, Any]:
        if state.ready not in cached:
            cached[state.ready] = schema = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                routes=app.routes,
            )
            if state.ready:
                _add_examples(schema, state.views.summary["example"])
        return cached[state.ready]

    return openapi


def _add_examples(schema: dict[str, Any], example: dict[str, Any]) -> None:
    query = {name: value for name, value in example.items() if value is not None}
    bodies = {
        "/predict": {**query, "k": 10},
        BATCH: {"queries": [query, {**query, "start": None, "end": None}], "k": 3},
        "/explain": {**query, "groundings": 3, "reasons": 20},
        "/picture": {**query, "candidate": query["subject"], "facts": [{"number": 0}]},
    }
    subject, relation = query["subject"], query["relation"]
    values = {"text": subject[:3], "entity": subject, "relation": relation, "body": relation}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                content["example"] = bodies[path.removeprefix(PREFIX)]
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in values:
                    parameter["example"] = values[parameter["name"]]
