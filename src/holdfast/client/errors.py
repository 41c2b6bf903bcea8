"""Turns error responses into the errors of ``holdfast.errors``, with every problem."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import ValidationError

from holdfast.errors import (
    HoldfastError,
    Internal,
    InvalidRequest,
    RateLimited,
    Unavailable,
    VersionConflict,
    all_errors,
)
from holdfast.wire.base import REVISION
from holdfast.wire.problems import ProblemDetails, read_problem

if TYPE_CHECKING:
    from holdfast.client.transport import HttpResponse

_FIRST_REFUSAL = 400
_FIRST_SERVER_ERROR = 500
_UNAVAILABLE = frozenset({502, 503, 504})
_LONGEST_EXCERPT = 200


def error_of(answer: HttpResponse, url: str) -> HoldfastError:
    """Make the error of a response; if Holdfast did not write the response, from its status alone."""
    try:
        details = ProblemDetails.model_validate_json(answer.content)
    except ValidationError:
        return foreign(answer, url)
    error, missing = of_details(details), f"{urlsplit(url).path} does not exist"
    if isinstance(error, InvalidRequest) or details.detail.endswith(missing):
        error.hint = "; ".join(filter(None, (error.hint, difference(answer.revision or 0)))) or None
    return error


def of_details(details: ProblemDetails) -> HoldfastError:
    """Make the error of problem details."""
    kind = _class_of(details.code, details.status)
    problems = [read_problem(entry) for entry in details.errors]
    error = kind(details.detail, problems=problems, hint=details.hint)
    if isinstance(error, VersionConflict):
        error.current = details.resource_version or ""
    if isinstance(error, RateLimited):
        error.retry_after_s = details.retry_after_s
    return error


def _class_of(code: str, status: int) -> type[HoldfastError]:
    """Pick the class by code; for an unknown code of a newer server, by status."""
    for kind in all_errors():
        if kind.code == code and kind is not HoldfastError:
            return kind
    if status in _UNAVAILABLE:
        return Unavailable
    return InvalidRequest if _FIRST_REFUSAL <= status < _FIRST_SERVER_ERROR else Internal


def difference(revision: int) -> str | None:
    """Return which of this program and the server is older, by their revisions of the API; ``None`` if neither is."""
    if revision == REVISION:
        return None
    age, older = ("older", "the server") if revision < REVISION else ("newer", "this program")
    return f"the server is {age} than this program (API v1.{revision}, here v1.{REVISION}): upgrade {older}"


def foreign(answer: HttpResponse, url: str) -> HoldfastError:
    """Make the error for a response that Holdfast did not write."""
    if answer.revision not in {None, REVISION}:
        message = f"this program does not understand what {url} answered"
        return _class_of("", answer.status)(message, hint=difference(answer.revision))
    excerpt = answer.text[:_LONGEST_EXCERPT].strip()
    message = f"{url} answered {answer.status}, and not as Holdfast does: {excerpt}"
    hint = "is this the address of a Holdfast server, with nothing else in between?"
    return _class_of("", answer.status)(message, hint=hint)
