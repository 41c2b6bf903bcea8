"""Errors as RFC 9457 problem details, with a stable ``code`` and one entry per field at fault."""

from pydantic import Field

from holdfast.wire.base import Response

PROBLEM_MEDIA_TYPE = "application/problem+json"
_TYPES = "https://holdfast.dev/errors/"


def problem_type(code: str) -> str:
    """Return the ``type`` of the problems of a code; the only form there is, and nothing needs to be there to read."""
    return f"{_TYPES}{code}"


class ProblemEntry(Response):
    """One thing wrong with an input."""

    path: str
    """A field path such as ``spec.rules[2].onExitCodes.operator``; empty for the whole input."""
    message: str
    allowed: list[str] = Field(default_factory=list)
    hint: str | None = None
    line: int | None = None
    """1-based line of the text sent, when known."""


class ProblemDetails(Response):
    """Why a request was not done."""

    type: str
    """See ``problem_type``; ``code`` says the same in a word."""
    title: str
    status: int
    code: str
    detail: str
    hint: str | None = None
    errors: list[ProblemEntry] = Field(default_factory=list)
    resource_version: str | None = None
    """Of ``version_conflict``: the version the thing has now."""
