"""The text of manifests, and its format."""

from __future__ import annotations

from enum import StrEnum, auto
from typing import NoReturn, Self

from holdfast.domain.record import Struct
from holdfast.errors import InvalidManifest, Problem


class Format(StrEnum):
    """The format of a text."""

    JSON = auto()
    YAML = auto()
    """One or more documents."""
    LINES = auto()
    """JSON, one document a line."""


class Text(Struct, frozen=True):
    """The text of a request."""

    text: str
    format: Format

    @classmethod
    def of(cls, body: bytes, written_in: Format) -> Self:
        """Decode a body.

        Raises:
            InvalidManifest: It is not UTF-8.
        """
        try:
            return cls(body.decode(), written_in)
        except UnicodeDecodeError as error:
            refuse("is not UTF-8 text", line=body[: error.start].count(b"\n") + 1)


def refuse(message: str, *, line: int | None = None, hint: str | None = None) -> NoReturn:
    """Refuse a body that cannot be read.

    Raises:
        InvalidManifest: Always, with this problem.
    """
    msg = "the body cannot be read"
    raise InvalidManifest(msg, problems=[Problem("", message, line=line, hint=hint)])
