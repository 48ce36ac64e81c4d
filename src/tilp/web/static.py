"""The page's own files: found once, and asked for by name alone."""

from __future__ import annotations

import hashlib
import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from tilp.web.errors import Code, ServiceError

__all__ = ["page_router"]

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
