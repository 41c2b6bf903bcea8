"""Refusals as Backend.AI words them: problem details with a code of the form ``domain_operation_detail``.

One table has the status, the detail and the title for each class of the error tree; a test keeps it complete. The
domain and the operation come from the route, such as ``session_read``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from holdfast import errors
from holdfast.domain.record import Struct
from holdfast.errors import HoldfastError, InvalidRequest, RateLimited
from holdfast.wire.problems import problem_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.errors import Problem

MEDIA_TYPE = "application/problem+json"
_TYPES = "https://api.backend.ai/probs/"
_MOST_PROBLEMS = 100
_LONGEST_MESSAGE = 10_000


class RefusedCall(Exception):
    """A request is refused."""

    def __init__(
        self,
        status: int,
        slug: str,
        title: str,
        code: str,
        message: str = "",
        data: Any = None,  # noqa: ANN401 - JSON
    ) -> None:
        """Refuse.

        Args:
            status: The HTTP status.
            slug: The last word of the problem's type.
            title: What is wrong in general.
            code: ``domain_operation_detail``.
            message: What is wrong with this request.
            data: More about it, as JSON.
        """
        super().__init__(message or title)
        self.status, self.slug, self.title, self.code = status, slug, title, code
        self.message, self.data = message, data
        self.headers: dict[str, str] = {}

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        answer: dict[str, Any] = {"type": f"{_TYPES}{self.slug}", "title": self.title, "error_code": self.code}
        if self.message:
            answer["msg"] = self.message
        if self.data is not None:
            answer["data"] = self.data
        return answer


class _Kind(Struct, frozen=True):
    """How errors of a class are answered."""

    status: int
    detail: str
    slug: str
    """``{}`` stands for the domain."""
    title: str
    """As above."""
    scope: str = ""
    """The domain and operation of the code; empty: those of the route."""


_BAD = _Kind(400, "invalid-parameters", "generic-bad-request", "Invalid or Missing API Parameters.", "api_parsing")
_UNAVAILABLE = _Kind(503, "unavailable", "service-unavailable", "Service unavailable.")
_INTERNAL = _Kind(500, "internal-error", "internal-server-error", "Internal server error.")
_CONFLICT = _Kind(409, "conflict", "{}-conflict", "The state of the {} does not allow this.")
_LIMIT = _Kind(429, "unavailable", "rate-limit-exceeded", "A limit is reached for now.", "api_check-limit")
KINDS: dict[type[HoldfastError], _Kind] = {
    HoldfastError: _INTERNAL,
    errors.InvalidRequest: _BAD,
    errors.InvalidPolicy: _BAD,
    errors.InvalidManifest: _BAD,
    errors.InvalidSetting: _BAD,
    errors.Unauthenticated: _Kind(401, "unauthorized", "auth-failed", "Credential/signature mismatch.", "user_auth"),
    errors.Forbidden: _Kind(403, "forbidden", "permission-denied", "Permission Denied.", "api_auth"),
    errors.NotFound: _Kind(404, "not-found", "{}-not-found", "No such {}."),
    errors.Conflict: _CONFLICT,
    errors.AlreadyExists: _Kind(409, "already-exists", "{}-already-exists", "The {} already exists."),
    errors.VersionConflict: _CONFLICT,
    errors.Refused: _Kind(403, "forbidden", "generic-forbidden", "A limit or a policy forbids this."),
    errors.QueueFull: _LIMIT,
    errors.RateLimited: _LIMIT,
    errors.Unavailable: _UNAVAILABLE,
    errors.DataDirLocked: _UNAVAILABLE,
    errors.NotLeader: _UNAVAILABLE,
    errors.Uncertain: _UNAVAILABLE,
    errors.EngineError: _Kind(502, "unreachable", "unreachable", "The engine failed."),
    errors.Internal: _INTERNAL,
    errors.UnreadableSpec: _INTERNAL,
}
"""The one table from error class to refusal."""


def refusal_of(error: HoldfastError, scope: str = "backendai_generic") -> RefusedCall:
    """Return the refusal for an error.

    Args:
        error: The error.
        scope: The domain and operation of the call, such as ``session_read``.
    """
    kind = next(KINDS[parent] for parent in type(error).__mro__ if parent in KINDS)
    domain = scope.partition("_")[0]
    slug, title = kind.slug.format(domain), kind.title.format(domain)
    data = _data(error.problems) if isinstance(error, InvalidRequest) and error.problems else None
    refusal = RefusedCall(kind.status, slug, title, f"{kind.scope or scope}_{kind.detail}", _message(error), data)
    if kind.status == 401:  # noqa: PLR2004 - HTTP requires it
        refusal.headers["www-authenticate"] = "BackendAI"
    elif isinstance(error, RateLimited) and error.retry_after_s is not None:
        refusal.headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    elif kind is _UNAVAILABLE:
        refusal.headers["retry-after"] = "1"
    return refusal


def _data(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [problem_entry(problem).model_dump(exclude_defaults=True) for problem in problems[:_MOST_PROBLEMS]]


def _message(error: HoldfastError) -> str:
    parts = [str(problem) for problem in error.problems[:_MOST_PROBLEMS]] or [error.message]
    if error.hint is not None and not error.problems:
        parts.append(error.hint)
    text = "; ".join(parts)
    if len(error.problems) > _MOST_PROBLEMS:
        text = f"{len(error.problems)} problems: {text}"
    return text[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()


def unknown_path(method: str, path: str) -> RefusedCall:
    """Return the refusal of a call that does not exist."""
    return RefusedCall(
        404, "url-not-found", "Unknown URL path.", "api_access_not-found", f"there is no {method} {path}"
    )


def wrong_method(method: str, path: str, allowed: Sequence[str]) -> RefusedCall:
    """Return the refusal of a method that a path does not have."""
    message = f"{path} does not allow {method}; use one of: {', '.join(allowed)}"
    refusal = RefusedCall(405, "method-not-allowed", "HTTP Method Not Allowed.", "api_access_bad-request", message)
    refusal.headers["allow"] = ", ".join(allowed)
    return refusal


def wrong_type(content_type: str) -> RefusedCall:
    """Return the refusal of a body that is not JSON."""
    message = f"a body of type {content_type!r} is not accepted; send application/json"
    return RefusedCall(
        415, "unsupported-media-type", "Unsupported media type.", "api_parsing_content-type-mismatch", message
    )


def too_large(size: int, largest: int) -> RefusedCall:
    """Return the refusal of a body that is too large."""
    message = f"the body has {size} bytes or more; at most {largest} are accepted"
    return RefusedCall(413, "content-too-large", "The body is too large.", "api_parsing_bad-request", message)


def abandoned() -> RefusedCall:
    """Return the refusal of a request whose client left before all of it had arrived."""
    return RefusedCall(408, "request-timeout", "The request did not arrive.", "api_request_timeout")
