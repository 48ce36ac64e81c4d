"""Errors of the service: a code for programs, and a message with the remedy."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from tilp.errors import TilpError, UnknownNameError


class Code(Enum):
    """Kind of an error: its code for programs, and its HTTP status."""

    BAD_REQUEST = "bad_request", 422
    UNKNOWN_NAME = "unknown_name", 404
    NOT_FOUND = "not_found", 404
    WRONG_METHOD = "wrong_method", 405
    WRONG_TYPE = "wrong_type", 415
    WRONG_HOST = "wrong_host", 421
    UNAUTHORIZED = "unauthorized", 401
    TOO_LARGE = "too_large", 413
    TOO_SLOW = "too_slow", 503
    BUSY = "busy", 503
    STARTING = "starting", 503
    DEFECT = "defect", 500


class ServiceError(Exception):
    """Request that fails, with its code, message, similar names, HTTP status and headers."""

    def __init__(
        self, code: Code, message: str, *, near: Sequence[str] = (), status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.code, default_status = code.value
        self.message, self.near, self.status = message, tuple(near), status or default_status
        self.headers = dict(headers or {})
        if self.status == 503:
            self.headers.setdefault("Retry-After", "1")

    def to_json(self) -> dict[str, Any]:
        """Return the error as the service sends it."""
        return {"code": self.code, "message": self.message, "near": list(self.near)}

    def response(self) -> JSONResponse:
        """Return the HTTP response."""
        return JSONResponse({"error": self.to_json()}, self.status, self.headers)


def add_error_handlers(app: FastAPI) -> None:
    """Send every error of an app in the same form."""

    async def handle(request: Request, failure: Exception) -> JSONResponse:
        return _service_error(request, failure).response()

    for kind in (ServiceError, TilpError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handle)


def from_tilp_error(failure: TilpError) -> ServiceError:
    """Return an error of the package as an error of the service."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, UnknownNameError):
            return ServiceError(Code.UNKNOWN_NAME, str(failure), near=cause.near)
        cause = cause.__cause__
    # 422 is for bodies that are not a query in form; this one is, but its values make no sense.
    return ServiceError(Code.BAD_REQUEST, str(failure), status=400)


def _service_error(request: Request, failure: Exception) -> ServiceError:
    match failure:
        case ServiceError():
            return failure
        case TilpError():
            return from_tilp_error(failure)
        case RequestValidationError():
            return _from_validation(failure.errors())
        case HTTPException(status_code=404):
            message = "there is nothing at this path; /openapi.json lists all paths"
            return ServiceError(Code.NOT_FOUND, message)
        case HTTPException(status_code=405):
            headers = dict(failure.headers or {})
            allowed = headers.get("Allow", "another method")
            message = f"{_printable(request.method)} is not allowed here; use {allowed}"
            return ServiceError(Code.WRONG_METHOD, message, headers=headers)
        case HTTPException():
            return ServiceError(Code.BAD_REQUEST, str(failure.detail), status=failure.status_code)
        case _:
            raise failure


def _from_validation(errors: Sequence[Mapping[str, Any]]) -> ServiceError:
    """Return the first of the validation errors of a request."""
    first = errors[0]
    if first["type"] == "json_invalid":
        reason, position = first["ctx"]["error"], first["loc"][-1]
        message = f"the body is not JSON: {reason} at character {position}"
        return ServiceError(Code.BAD_REQUEST, message, status=400)
    field = ".".join(str(part) for part in first["loc"])
    message = f"{_printable(field)}: {first['msg'].removeprefix('Value error, ')}"
    if len(errors) > 1:
        message += f" (and {len(errors) - 1} more)"
    if first["type"] == "too_long":
        return ServiceError(Code.TOO_LARGE, f"{message}; send less at once", status=422)
    return ServiceError(Code.BAD_REQUEST, message)


def _printable(text: str) -> str:
    """Return text of a request in valid Unicode, and not too long."""
    return text.encode("utf-8", "replace").decode()[:200]
