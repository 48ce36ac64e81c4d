"""The page's own files: found once, and asked for by name alone."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from tilp.web.errors import Code, ServiceError
from tilp.web.served import Served

_INDEX = "index.html"
_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


def page_router() -> APIRouter:
    """`/` and `/static/…`; no path of a request ever reaches the file system."""
    router = APIRouter(include_in_schema=False)
    assets = _assets()

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return _serve(assets, _INDEX, request)

    @router.api_route("/static/{name}", methods=["GET", "HEAD"])
    async def asset(name: str, request: Request) -> Response:
        return _serve(assets, name, request)

    return router


def _assets() -> dict[str, Traversable]:
    folder = files("tilp.web") / "page"
    return {one.name: one for one in folder.iterdir() if one.is_file()} if folder.is_dir() else {}


def _serve(assets: dict[str, Traversable], name: str, request: Request) -> Response:
    if name not in assets:
        raise ServiceError(Code.NOT_FOUND, "the page has no such file")
    content = assets[name].read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    # Kept, but asked for again: after an upgrade the page is the new one.
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    suffix = f".{name.rpartition('.')[2]}"
    kind = _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")
    return Response(content, media_type=kind, headers=headers)


def documented(app: FastAPI, served: Served) -> Callable[[], dict[str, Any]]:
    """What makes an app's schema; examples are there once the model is warm."""
    made: dict[bool, dict[str, Any]] = {}

    def openapi() -> dict[str, Any]:
        if served.ready not in made:
            made[served.ready] = schema = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                routes=app.routes,
            )
            if served.ready:
                _add_examples(schema, served.views.summary["example"])
        return made[served.ready]

    return openapi


def _add_examples(schema: dict[str, Any], example: dict[str, Any]) -> None:
    query = {name: value for name, value in example.items() if value is not None}
    bodies = {
        "predict": {**query, "k": 10},
        "predict/batch": {"queries": [query, {**query, "start": None, "end": None}], "k": 3},
        "explain": {**query, "groundings": 3, "reasons": 20},
        "picture": {**query, "candidate": query["subject"], "facts": [{"number": 0}]},
    }
    names = {"text": query["subject"][:3], "entity": query["subject"]}
    names |= {"relation": query["relation"], "body": query["relation"]}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if "requestBody" in operation:
                content = operation["requestBody"]["content"]["application/json"]
                content["example"] = bodies[path.removeprefix("/api/v1/")]
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in names:
                    parameter["example"] = names[parameter["name"]]
