"""What all requests and answers share: strictness, and how lists are paged and times are written."""

from datetime import UTC, datetime
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

LARGEST_PAGE = 1000
DEFAULT_PAGE = 10
"""Items of a page if the request says nothing, as upstream answers."""
_LONGEST_CURSOR = 512
_LARGEST_OFFSET = (1 << 31) - 1
_CURSOR = ("first", "after", "last", "before")
_OFFSET = ("limit", "offset")

Item = TypeVar("Item")


class RequestModel(BaseModel):
    """A part of a request."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_by_name=True)


class AnswerModel(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True)


class Paging(RequestModel):
    """Which part of a list to answer: by a cursor or by an offset, never both."""

    first: int | None = Field(default=None, ge=1, le=LARGEST_PAGE, description="Items after the cursor `after`.")
    after: str | None = Field(default=None, max_length=_LONGEST_CURSOR)
    last: int | None = Field(default=None, ge=1, le=LARGEST_PAGE, description="Items before the cursor `before`.")
    before: str | None = Field(default=None, max_length=_LONGEST_CURSOR)
    limit: int | None = Field(default=None, ge=1, le=LARGEST_PAGE)
    offset: int | None = Field(default=None, ge=0, le=_LARGEST_OFFSET)

    @model_validator(mode="after")
    def _one_way(self) -> "Paging":
        fields = {name for name in (*_CURSOR, *_OFFSET) if getattr(self, name) is not None}
        forward, backward = fields & {"first", "after"}, fields & {"last", "before"}
        if sum(map(bool, (forward, backward, fields & {*_OFFSET}))) > 1:
            msg = "use one way of paging: first and after, last and before, or limit and offset"
            raise ValueError(msg)
        return self


class ListAnswer(AnswerModel, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    total_count: int
    has_next_page: bool
    has_previous_page: bool


class Pagination(AnswerModel):
    """Where a part of a list is, as older lists tell it."""

    total: int
    offset: int
    limit: int | None = None


class PaginatedAnswer(AnswerModel, Generic[Item]):
    """A part of a list, as users are listed."""

    items: list[Item]
    pagination: Pagination


def moment(seconds: float) -> datetime:
    """Return seconds since the epoch as a time of answers."""
    return datetime.fromtimestamp(seconds, UTC)


def moment_or_none(seconds: float | None) -> datetime | None:
    """Return a time of answers, or ``None``."""
    return None if seconds is None else moment(seconds)
