"""What all requests and answers share: strictness, and how lists and times are written."""

from datetime import UTC, datetime
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

Item = TypeVar("Item")


class RequestModel(BaseModel):
    """A part of a request."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_by_name=True)


class AnswerModel(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True)


class ListAnswer(AnswerModel, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    total_count: int
    has_next_page: bool
    has_previous_page: bool


def moment(seconds: float) -> datetime:
    """Return seconds since the epoch as a time of answers."""
    return datetime.fromtimestamp(seconds, UTC)


def moment_or_none(seconds: float | None) -> datetime | None:
    """Return a time of answers, or ``None``."""
    return None if seconds is None else moment(seconds)
