"""What all wire models share: strictness, and how times, sizes and shares are written.

Fields are named in snake_case; a ``spec`` and the settings, which are sent as manifests are, have the names of those.
Times are ISO 8601 in UTC with milliseconds and ``Z``; durations are seconds in fields ending in ``_s``.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, WithJsonSchema

API = "/api/v1"
"""Where every versioned address begins."""
REVISION = 2
"""How often the API has changed; raised with each change, so that of two programs it can be said which is older."""
REVISION_HEADER = "Holdfast-Revision"
"""Says in every request and every answer which revision its sender knows."""
_MOST_TIMES = 8_192

Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""Such as ``2026-08-21T12:00:00.250Z``."""


class Response(BaseModel):
    """Something Holdfast answers; unknown fields are ignored, so that an older client reads a newer server."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, defer_build=True, validate_by_name=True, validate_by_alias=True
    )


class EncodedJson(bytes):
    """An answer that is JSON already, as its model would write it; a long list costs several times that with models."""

    __slots__ = ()


def as_written(view: BaseModel) -> bytes:
    """Write something that may be long as JSON, by Python: its model ends the process where memory is refused."""
    return json.dumps(view.model_dump(mode="json", by_alias=True), ensure_ascii=False, separators=(",", ":")).encode()


def page_written(items: Sequence[bytes], next_cursor: str | None) -> EncodedJson:
    """Write a page of what is written."""
    return EncodedJson(b'{"items":[%b],"next_cursor":%b}' % (b",".join(items), json.dumps(next_cursor).encode()))


class Body(BaseModel):
    """Something Holdfast is sent; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@lru_cache(maxsize=_MOST_TIMES)  # what is submitted together has one time, and lists are read again and again
def timestamp(seconds: float) -> str:
    """Write a time of the inside (seconds since the epoch) for the outside."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def optional_timestamp(seconds: float | None) -> str | None:
    """Write a time that may not be known yet."""
    return None if seconds is None else timestamp(seconds)
