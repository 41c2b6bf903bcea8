"""What all wire models share: strictness, and the format of times, sizes and shares.

Fields are in snake_case; a ``spec`` and the settings use the names of manifests. Times are ISO 8601 in UTC with
milliseconds and ``Z``; durations are seconds in fields ending in ``_s``.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, WithJsonSchema

API = "/api/v1"
"""The prefix of every versioned address."""
REVISION = 5
"""Raised with each change of the API, so that two programs can tell which of them is older."""
REVISION_HEADER = "Holdfast-Revision"
"""The header in every request and response with the revision that its sender knows."""
_MOST_TIMES = 8_192

Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""Such as ``2026-08-21T12:00:00.250Z``."""


class Response(BaseModel):
    """A response; unknown fields are ignored, so that an older client can read a newer server."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, defer_build=True, validate_by_name=True, validate_by_alias=True
    )


class EncodedJson(bytes):
    """A response that is JSON already; a long list costs several times as much with models."""

    __slots__ = ()


def as_written(view: BaseModel) -> bytes:
    """Write a possibly long response as JSON in Python: pydantic ends the process if memory is refused."""
    return json.dumps(view.model_dump(mode="json", by_alias=True), ensure_ascii=False, separators=(",", ":")).encode()


def page_written(items: Sequence[bytes], next_cursor: str | None) -> EncodedJson:
    """Write a page of encoded items."""
    return EncodedJson(b'{"items":[%b],"next_cursor":%b}' % (b",".join(items), json.dumps(next_cursor).encode()))


class Body(BaseModel):
    """A request's body; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@lru_cache(maxsize=_MOST_TIMES)  # Jobs submitted together share a time, and lists are read again and again.
def timestamp(seconds: float) -> str:
    """Format seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def optional_timestamp(seconds: float | None) -> str | None:
    """Format a time that may not be known yet."""
    return None if seconds is None else timestamp(seconds)
