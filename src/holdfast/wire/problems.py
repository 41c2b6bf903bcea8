"""Errors as RFC 9457 problem details, with a stable ``code`` and one entry per field at fault; and back.

One table has the HTTP status of each error class; a test keeps it complete.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from holdfast import errors
from holdfast.errors import HoldfastError, InvalidRequest, Problem, VersionConflict
from holdfast.wire.base import Response

if TYPE_CHECKING:
    from holdfast.ports.workloads import Unreadable

PROBLEM_MEDIA_TYPE = "application/problem+json"
_TYPES = "https://holdfast.dev/errors/"


def problem_type(code: str) -> str:
    """Return the ``type`` of problems with a code; it is an identifier, not an address to read."""
    return f"{_TYPES}{code}"


class ProblemEntry(Response):
    """One problem of an input."""

    path: str
    """A field path such as ``spec.rules[2].onExitCodes.operator``; empty for the whole input."""
    message: str
    allowed: list[str] = Field(default_factory=list)
    hint: str | None = None
    line: int | None = None
    """The 1-based line of the text sent, if known."""


class ProblemDetails(Response):
    """Why a request was refused."""

    type: str
    """See ``problem_type``; ``code`` is its last word."""
    title: str
    status: int
    code: str
    detail: str
    hint: str | None = None
    errors: list[ProblemEntry] = Field(default_factory=list)
    resource_version: str | None = None
    """For ``version_conflict``: the present version."""
    retry_after_s: float | None = None
    """For ``rate_limited``: when there is room again; the header Retry-After says it in whole seconds."""


STATUS: dict[type[HoldfastError], int] = {
    HoldfastError: 500,
    errors.InvalidRequest: 422,
    errors.InvalidPolicy: 422,
    errors.InvalidManifest: 422,
    errors.InvalidSetting: 422,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.AlreadyExists: 409,
    errors.VersionConflict: 409,
    errors.Refused: 403,
    errors.QueueFull: 429,
    errors.RateLimited: 429,
    errors.Unavailable: 503,
    errors.DataDirLocked: 503,
    errors.NotLeader: 503,
    errors.Uncertain: 503,
    errors.EngineError: 502,
    errors.Internal: 500,
    errors.UnreadableSpec: 500,
}
"""The one table from error class to HTTP status."""

_PARAMETER_PLACES = frozenset({"query", "path", "header", "cookie"})


def status_of(error: HoldfastError) -> int:
    """Return the HTTP status of an error; a class outside the table has its parent's status."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def details_of(error: HoldfastError) -> ProblemDetails:
    """Render an error with all its problems."""
    return ProblemDetails(
        type=problem_type(error.code),
        title=(type(error).__doc__ or error.code).splitlines()[0],
        status=status_of(error),
        code=error.code,
        detail=error.message,
        hint=error.hint,
        errors=[problem_entry(problem) for problem in error.problems],
        resource_version=error.current if isinstance(error, VersionConflict) else None,
        retry_after_s=error.retry_after_s if isinstance(error, errors.RateLimited) else None,
    )


def problem_entry(problem: Problem) -> ProblemEntry:
    """Render one problem of an input."""
    return ProblemEntry(
        path=problem.path,
        message=problem.message,
        allowed=list(problem.allowed),
        hint=problem.hint,
        line=problem.line,
    )


def read_problem(entry: ProblemEntry) -> Problem:
    """Read one problem of an input back."""
    return Problem(entry.path, entry.message, allowed=tuple(entry.allowed), hint=entry.hint, line=entry.line)


def invalid(errors: Iterable[Mapping[str, Any]]) -> InvalidRequest:
    """Convert pydantic's errors about the parts of a request, each with its path."""
    return InvalidRequest(problems=[_problem(error) for error in errors])


def _problem(error: Mapping[str, Any]) -> Problem:
    expected = error.get("ctx", {}).get("expected")
    allowed = tuple(str(expected).replace("'", "").replace(" or ", ", ").split(", ")) if expected else ()
    return Problem(_path(error["loc"]), str(error["msg"]), allowed=allowed)


def _path(location: Sequence[Any]) -> str:
    place, *rest = location
    parts = [str(place)] if place in _PARAMETER_PLACES else []
    path = ".".join(parts)
    for part in rest:
        path += f"[{part}]" if isinstance(part, int) and place == "body" else f".{part}"
    return path.removeprefix(".") if not path.startswith("[") else ""


class UnreadableView(Response):
    """A damaged item that a list leaves out."""

    id: str
    name: str
    message: str
    """What is wrong with it."""


def unreadable_views(unreadable: "Sequence[Unreadable]") -> list[UnreadableView]:
    """Render the damaged items that a list leaves out."""
    return [UnreadableView(id=item.id, name=item.name, message=item.why) for item in unreadable]
