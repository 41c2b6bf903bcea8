"""What was sent as the text of manifests, and what it is written in."""

from __future__ import annotations

from enum import StrEnum, auto
from typing import NoReturn, Self

from holdfast.domain.record import Struct
from holdfast.errors import InvalidManifest, Problem


class Format(StrEnum):
    """What a text is written in."""

    JSON = auto()
    YAML = auto()
    """Also many documents."""
    LINES = auto()
    """JSON, one document a line."""


class Text(Struct, frozen=True):
    """What was sent."""

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
    """Say that a body cannot be read.

    Raises:
        InvalidManifest: With the one problem.
    """
    msg = "the body cannot be read"
    raise InvalidManifest(msg, problems=[Problem("", message, line=line, hint=hint)])
