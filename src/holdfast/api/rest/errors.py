"""Turns errors into RFC 9457 problem details.

One table has the HTTP status of each error class; a test keeps it complete.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from holdfast import errors
from holdfast.errors import HoldfastError, Internal, InvalidRequest, Problem
from holdfast.wire.problems import PROBLEM_MEDIA_TYPE, ProblemDetails, problem_type
from holdfast.wire.render_problems import problem_details

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fastapi import FastAPI, Request

_log = logging.getLogger(__name__)

STATUS: dict[type[HoldfastError], int] = {
    HoldfastError: 500,
    errors.InvalidRequest: 422,
    errors.InvalidPolicy: 422,
    errors.InvalidManifest: 422,
    errors.InvalidSetting: 422,
    errors.Unauthenticated: 401,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.AlreadyExists: 409,
    errors.VersionConflict: 409,
    errors.Refused: 403,
    errors.Unavailable: 503,
    errors.DataDirLocked: 503,
    errors.NotLeader: 503,
    errors.Uncertain: 503,
    errors.EngineError: 502,
    errors.Internal: 500,
    errors.UnreadableSpec: 500,
}
"""The one table from error class to HTTP status."""

_PROTOCOL_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}
"""Codes of what goes wrong before a request reaches an endpoint."""
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}
_PARAMETER_PLACES = frozenset({"query", "path", "header", "cookie"})


def status_of(error: HoldfastError) -> int:
    """Return the HTTP status of an error; a class outside the table has its parent's."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def details_of(error: HoldfastError) -> ProblemDetails:
    """Return the problem details of an error."""
    return problem_details(error, status=status_of(error))


def respond(error: HoldfastError) -> Response:
    """Answer with an error."""
    return _response(details_of(error))


def respond_status(
    status: int, detail: str, *, hint: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with something HTTP itself knows to be wrong."""
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
    headers = error.headers if isinstance(error, HTTPException) else None
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return respond_status(status, f"{what} is not possible", hint="see the Allow header", headers=headers)
    return respond_status(status, str(getattr(error, "detail", error)), headers=headers)


def _on_leaving(_: Request, __: Exception) -> Response:
    """Answer nobody: who left, or was let go, before its request had arrived is no defect."""
    return respond_status(HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive")


def _on_defect(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return respond(Internal())


def _on_invalid(_: Request, error: Exception) -> Response:
    found: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    return respond(InvalidRequest(problems=[_problem(one) for one in found]))


def _problem(found: Mapping[str, Any]) -> Problem:
    """Turn one of the framework's findings into ours."""
    expected = found.get("ctx", {}).get("expected")
    allowed = tuple(str(expected).replace("'", "").replace(" or ", ", ").split(", ")) if expected else ()
    return Problem(_path(found["loc"]), str(found["msg"]), allowed=allowed)


def _path(location: Sequence[Any]) -> str:
    place, *rest = location
    parts = [str(place)] if place in _PARAMETER_PLACES else []
    path = ".".join(parts)
    for part in rest:
        path += f"[{part}]" if isinstance(part, int) and place == "body" else f".{part}"
    return path.removeprefix(".") if not path.startswith("[") else ""
