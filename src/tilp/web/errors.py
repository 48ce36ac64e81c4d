"""Errors as the service tells them: a code for programs, and a message with the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from tilp.errors import TilpError, UnknownNameError

__all__ = ["Code", "ServiceError", "add_handlers", "error_of", "error_response"]


class Code(StrEnum):
    """What went wrong, in a word."""

    BAD_REQUEST = "bad_request"
    UNKNOWN_NAME = "unknown_name"
    NOT_FOUND = "not_found"
    WRONG_METHOD = "wrong_method"
    WRONG_TYPE = "wrong_type"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    BUSY = "busy"
    STARTING = "starting"
    DEFECT = "defect"


_STATUS = {
    Code.BAD_REQUEST: 422,
    Code.UNKNOWN_NAME: 404,
    Code.NOT_FOUND: 404,
    Code.WRONG_METHOD: 405,
    Code.WRONG_TYPE: 415,
    Code.TOO_LARGE: 413,
    Code.TOO_SLOW: 503,
    Code.BUSY: 503,
    Code.STARTING: 503,
    Code.DEFECT: 500,
}


class ServiceError(Exception):
    """A request that is not answered.

    Attributes:
        code: why.
        message: what is wrong, and the remedy.
        near: names that may have been meant.
        status: of HTTP, where it is not the usual one of the code.
        headers: that the answer has besides.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        near: Sequence[str] = (),
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.near = code, message, tuple(near)
        self.status = status or _STATUS[code]
        self.headers = dict(headers or {})

    def to_json(self) -> dict[str, Any]:
        """What is told, but for the status."""
        return {"code": self.code.value, "message": self.message, "near": list(self.near)}


def error_of(failure: TilpError) -> ServiceError:
    """What the package refuses, as the service tells it."""
    for one in _causes(failure):
        if isinstance(one, UnknownNameError):
            return ServiceError(Code.UNKNOWN_NAME, str(failure), near=one.near)
    # It has the form of a query (else it is 422), but means none.
    return ServiceError(Code.BAD_REQUEST, str(failure), status=400)


def error_response(error: ServiceError) -> JSONResponse:
    """An error as an answer."""
    return JSONResponse({"error": error.to_json()}, error.status, error.headers)


def add_handlers(app: FastAPI) -> None:
    """Tell all that goes wrong in an app in the same form."""

    async def service_error(_: Request, failure: Exception) -> JSONResponse:
        assert isinstance(failure, ServiceError)
        return error_response(failure)

    async def tilp_error(_: Request, failure: Exception) -> JSONResponse:
        assert isinstance(failure, TilpError)
        return error_response(error_of(failure))

    async def invalid(_: Request, failure: Exception) -> JSONResponse:
        assert isinstance(failure, RequestValidationError)
        return error_response(_invalid(failure.errors()))

    async def by_status(request: Request, failure: Exception) -> JSONResponse:
        assert isinstance(failure, HTTPException)
        return error_response(_by_status(request, failure))

    app.add_exception_handler(ServiceError, service_error)
    app.add_exception_handler(TilpError, tilp_error)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, by_status)


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    while failure is not None:
        yield failure
        failure = failure.__cause__


def _invalid(errors: Sequence[Mapping[str, Any]]) -> ServiceError:
    """The first thing that is wrong with a request's parts."""
    first = errors[0]
    if first["type"] == "json_invalid":
        place = first["loc"][-1]
        why = first["ctx"]["error"]
        return ServiceError(
            Code.BAD_REQUEST, f"the body is not JSON: {why} at character {place}", status=400
        )
    place = ".".join(str(part) for part in first["loc"])
    message = f"{_printable(place)}: {first['msg'].removeprefix('Value error, ')}"
    if len(errors) > 1:
        message += f" (and {len(errors) - 1} more)"
    if first["type"] == "too_long":
        return ServiceError(Code.TOO_LARGE, f"{message}; send less at once", status=422)
    return ServiceError(Code.BAD_REQUEST, message)


def _by_status(request: Request, failure: HTTPException) -> ServiceError:
    if failure.status_code == 404:
        return ServiceError(
            Code.NOT_FOUND, "there is nothing at this path; /openapi.json lists what there is"
        )
    if failure.status_code == 405:
        allowed = dict(failure.headers or {})
        return ServiceError(
            Code.WRONG_METHOD,
            f"{_printable(request.method)} cannot be asked here; "
            f"ask {allowed.get('Allow', 'another way')}",
            headers=allowed,
        )
    return ServiceError(Code.BAD_REQUEST, str(failure.detail), status=failure.status_code)


def _printable(text: str) -> str:
    """A text of the request as every encoding can have it, and not too long."""
    return text.encode("utf-8", "replace").decode()[:200]
