"""Answers errors as RFC 9457 problem details."""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast.errors import HoldfastError, Internal, InvalidRequest, Problem, Unavailable
from holdfast.wire.problems import PROBLEM_MEDIA_TYPE, ProblemDetails, details_of, invalid, problem_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request

_NO_THREAD = "can't start new thread"
_log = logging.getLogger(__name__)

_PROTOCOL_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}
"""Codes of errors found before a request reaches an endpoint."""
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}


def respond(error: HoldfastError) -> Response:
    """Answer with an error."""
    details, headers = details_of(error), {}
    if details.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(details.retry_after_s)))
    return _response(details, headers)


def respond_status(
    status: int, detail: str, *, hint: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with an error that HTTP itself defines."""
    code = _PROTOCOL_CODES.get(status, "invalid_request")
    details = ProblemDetails(
        type=problem_type(code),
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        hint=hint,
    )
    return _response(details, headers)


def _response(details: ProblemDetails, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        details.model_dump_json(),
        status_code=details.status,
        media_type=PROBLEM_MEDIA_TYPE,
        headers={**_HEADERS.get(details.status, {}), **(headers or {})},
    )


def install(app: FastAPI) -> None:
    """Make the application answer every error as problem details."""
    app.add_exception_handler(HoldfastError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(ClientDisconnect, _on_leaving)
    app.add_exception_handler(MemoryError, _on_shortage)
    app.add_exception_handler(RuntimeError, _on_no_thread)
    app.add_exception_handler(Exception, _on_defect)


def _on_error(_: Request, error: Exception) -> Response:
    return respond(error if isinstance(error, HoldfastError) else Internal())


def _on_http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = f"{request.method} {request.url.path}"
    if status == HTTPStatus.NOT_FOUND:
        return respond_status(status, f"{what} does not exist", hint="the API is described at /docs")
    if status == HTTPStatus.BAD_REQUEST:
        return respond(InvalidRequest(problems=[Problem("", "the body is not JSON text")]))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return respond(Unavailable(str(getattr(error, "detail", error))))
    headers = error.headers if isinstance(error, HTTPException) else None
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return respond_status(status, f"{what} is not possible", hint="see the Allow header", headers=headers)
    return respond_status(status, str(getattr(error, "detail", error)), headers=headers)


def _on_leaving(_: Request, __: Exception) -> Response:
    """Answer a client that left or was cut off before its request had arrived, which is not a defect."""
    return respond_status(HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive")


_SHORT = details_of(Unavailable("the server is short of memory", hint="try again, and ask for less at once"))
_SHORT_BODY = _SHORT.model_dump_json().encode()
"""Encoded in advance, as later there may be no memory for it."""


def short_of_memory(method: str, path: str) -> Response:
    """Refuse a request for lack of memory."""
    _log.warning("%s %s refused: the server is short of memory", method, path)
    return Response(_SHORT_BODY, _SHORT.status, _HEADERS[_SHORT.status], PROBLEM_MEDIA_TYPE)


async def _on_shortage(request: Request, _: Exception) -> Response:
    """Refuse a request for lack of memory; as a coroutine, because a thread might not be available either."""
    return short_of_memory(request.method, request.url.path)


async def _on_no_thread(request: Request, error: Exception) -> Response:
    """Refuse a request if no thread can be started, which Python reports as any other ``RuntimeError``."""
    if str(error) != _NO_THREAD:
        raise error
    return await _on_shortage(request, error)


async def _on_defect(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return respond(Internal())


def _on_invalid(_: Request, error: Exception) -> Response:
    return respond(invalid(error.errors() if isinstance(error, RequestValidationError) else ()))
