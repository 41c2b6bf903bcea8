"""Refusals of calls: a code, the same in Connect and gRPC, a sentence, and the problems."""

from __future__ import annotations

import base64
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.api.connect._generated import error_details
from holdfast.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    HoldfastError,
    InvalidRequest,
    NotFound,
    QueueFull,
    RateLimited,
    Refused,
    Unauthenticated,
    Unavailable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.errors import Problem


class Code(StrEnum):
    """Why a call is refused, in the order of gRPC's numbers."""

    CANCELED = "canceled"
    UNKNOWN = "unknown"
    INVALID_ARGUMENT = "invalid_argument"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    NOT_FOUND = "not_found"
    ALREADY_EXISTS = "already_exists"
    PERMISSION_DENIED = "permission_denied"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    FAILED_PRECONDITION = "failed_precondition"
    ABORTED = "aborted"
    OUT_OF_RANGE = "out_of_range"
    UNIMPLEMENTED = "unimplemented"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"
    DATA_LOSS = "data_loss"
    UNAUTHENTICATED = "unauthenticated"

    @property
    def http(self) -> int:
        """The HTTP status that goes with it."""
        return _STATUS.get(self, 500)

    @property
    def number(self) -> int:
        """The number that gRPC gives it."""
        return [*Code].index(self) + 1


_STATUS = {
    Code.CANCELED: 499,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}
"""From Connect's specification; all others are 500."""
_CODES: tuple[tuple[type[HoldfastError], Code], ...] = (
    (InvalidRequest, Code.INVALID_ARGUMENT),
    (Unauthenticated, Code.UNAUTHENTICATED),
    (Forbidden, Code.PERMISSION_DENIED),
    (NotFound, Code.NOT_FOUND),
    (AlreadyExists, Code.ALREADY_EXISTS),
    (Conflict, Code.FAILED_PRECONDITION),
    (QueueFull, Code.RESOURCE_EXHAUSTED),
    (RateLimited, Code.RESOURCE_EXHAUSTED),
    (Refused, Code.FAILED_PRECONDITION),
    (Unavailable, Code.UNAVAILABLE),
)
"""The first match counts; anything else is internal. Clients of these systems retry exhausted and unavailable calls for
up to half an hour, so no mistake of a user has one of these codes."""
_MOST_DETAILS = 1_000
"""Problems that are listed; the sentence says how many there are."""
_LONGEST_SENTENCE = 20_000
"""Characters."""


class Rejected(Exception):
    """A call is refused."""

    def __init__(self, code: Code, message: str, problems: Sequence[Problem] = ()) -> None:
        """Refuse with a code, a sentence and the problems."""
        super().__init__(message)
        self.code, self.message, self.problems = code, message, tuple(problems)
        self.retry_after_s: float | None = None

    @classmethod
    def of(cls, error: HoldfastError, message: str | None = None) -> Rejected:
        """Return the refusal for an error, with its own sentence or another one."""
        rejected = cls(code_of(error), message or _sentence(error), error.problems)
        if isinstance(error, RateLimited):
            rejected.retry_after_s = error.retry_after_s
        return rejected

    def as_json(self) -> dict[str, Any]:
        """Return the refusal as the JSON that Connect's clients read."""
        answer: dict[str, Any] = {"code": self.code.value, "message": self.message}
        if self.problems:
            answer["details"] = [self._detail()]
        return answer

    def _detail(self) -> dict[str, Any]:
        request = violations_of(self.problems[:_MOST_DETAILS])
        value = base64.b64encode(request.SerializeToString()).decode().rstrip("=")
        violations = [
            {"field": violation.field, "description": violation.description} for violation in request.field_violations
        ]
        return {"type": request.DESCRIPTOR.full_name, "value": value, "debug": {"fieldViolations": violations}}


def code_of(error: HoldfastError) -> Code:
    """Return the code of an error."""
    if isinstance(error, RateLimited) and error.retry_after_s is None:
        return Code.FAILED_PRECONDITION  # more than ever fits at once
    return next((code for kind, code in _CODES if isinstance(error, kind)), Code.INTERNAL)


def violations_of(problems: Sequence[Problem]) -> error_details.BadRequest:
    """Return problems as the details of a refusal."""
    request = error_details.BadRequest()
    for problem in problems:
        request.field_violations.add(field=_sound(problem.path), description=_sound(described(problem)))
    return request


def described(problem: Problem) -> str:
    """Return a problem as text, without its path."""
    allowed = f"; allowed: {', '.join(problem.allowed)}" if problem.allowed else ""
    hint = "" if problem.hint is None else f"; {problem.hint}"
    return f"{problem.message}{allowed}{hint}"


def _sentence(error: HoldfastError) -> str:
    parts = [error.message.rstrip("."), *map(str, error.problems[:_MOST_DETAILS])]
    if error.hint is not None and not error.problems:
        parts.append(error.hint)
    text = _sound("; ".join(parts))
    return text if len(text) <= _LONGEST_SENTENCE else f"{text[:_LONGEST_SENTENCE]}... ({len(error.problems)} in all)"


def _sound(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode()


def refuse(message: str, problems: Sequence[Problem] = ()) -> NoReturn:
    """Refuse a call as its sender's mistake.

    Raises:
        Rejected: With the sentence and the problems.
    """
    raise Rejected(Code.INVALID_ARGUMENT, message, problems)
