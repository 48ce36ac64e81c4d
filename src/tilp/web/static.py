"""Files of the web page."""

from __future__ import annotations

import hashlib
import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from tilp.web.errors import Code, ServiceError

_INDEX = "index.html"
_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


def page_router(folder: Traversable | None = None) -> APIRouter:
    """Serve `/` and `/static/…` from a folder, by default the page of the package.

    The folder is listed once, and no path of a request reaches the file system.
    """
    router = APIRouter(include_in_schema=False)
    folder = files("tilp.web") / "page" if folder is None else folder
    assets = {file.name: file for file in folder.iterdir() if file.is_file()}

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index(request: Request) -> Response:
        return _serve(assets, _INDEX, request)

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
