"""How the door refuses: gRPC's status codes, upstream's sentences, and our field paths beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import grpc

from holdfast.api.armada._generated import status
from holdfast.api.trailers import DETAILS, cut, fitting
from holdfast.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    HoldfastError,
    Internal,
    InvalidRequest,
    NotFound,
    Problem,
    QueueFull,
    RateLimited,
    Refused,
    Unauthenticated,
    Unavailable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DETAILS", "ArmadaRefusal", "refuse"]
_CODES: tuple[tuple[type[HoldfastError], grpc.StatusCode], ...] = (
    (InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT),
    (Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
    (Forbidden, grpc.StatusCode.PERMISSION_DENIED),
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (Conflict, grpc.StatusCode.FAILED_PRECONDITION),
    (QueueFull, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (RateLimited, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (Refused, grpc.StatusCode.FAILED_PRECONDITION),
    (Unavailable, grpc.StatusCode.UNAVAILABLE),
    (Internal, grpc.StatusCode.INTERNAL),
)
"""The first that fits counts; anything else is internal."""


class ArmadaRefusal(Exception):
    """A call is refused in upstream's way."""

    def __init__(self, code: grpc.StatusCode, message: str, problems: Sequence[Problem] = ()) -> None:
        """Remember the code, the sentence, and what else is wrong."""
        super().__init__(message)
        self.code, self.message, self.problems = code, message, tuple(problems)

    @classmethod
    def of(cls, error: HoldfastError, message: str | None = None) -> ArmadaRefusal:
        """Return what an error of ours is here, with its own sentence or upstream's."""
        code = next((code for kind, code in _CODES if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
        return cls(code, message or _sentence(error), error.problems)

    def in_go(self) -> str:
        """Return it as Go prints a status, which upstream answers of the parts of a batch."""
        name = "".join(part.capitalize() for part in self.code.name.split("_"))
        return f"rpc error: code = {name} desc = {self.message}"

    def details(self) -> bytes:
        """Return the status with one violation for each problem."""
        return self._written(self.message, self.problems)

    def _written(self, message: str, problems: Sequence[Problem]) -> bytes:
        whole = status.Status(code=self.code.value[0], message=message)
        request = status.BadRequest()
        for problem in problems:
            request.field_violations.add(field=problem.path, description=_described(problem))
        if problems:
            whole.details.add().Pack(request)
        return whole.SerializeToString()

    def sentence(self) -> str:
        """Return the message as headers have room for it."""
        return cut(self.message)

    def trailer(self) -> bytes:
        """Return the status as it is sent beside an answer: with so many problems as headers have room for."""
        return fitting(self.message, self.problems, _described, self._written)


def _described(problem: Problem) -> str:
    return problem.message if problem.hint is None else f"{problem.message}; {problem.hint}"


def _sentence(error: HoldfastError) -> str:
    parts = [error.message.rstrip("."), *map(str, error.problems)]
    if error.hint is not None and not error.problems:
        parts.append(error.hint)
    return "; ".join(parts)


def refuse(message: str, problems: Sequence[Problem] = ()) -> NoReturn:
    """Refuse what cannot be accepted.

    Raises:
        ArmadaRefusal: With the sentence and what else is wrong.
    """
    raise ArmadaRefusal(grpc.StatusCode.INVALID_ARGUMENT, message, problems)
