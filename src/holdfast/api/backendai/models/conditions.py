"""Conditions of filters on one field each; all operators that are given must match.

Clients write a list of values as ``in`` or as ``in_``.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from pydantic import AfterValidator, AliasChoices, Field

from holdfast.api.backendai.models.parts import RequestModel

MOST_VALUES = 1000
"""Values of one list."""
_LONGEST_TEXT = 1024
_LARGEST = (1 << 63) - 1
_IN = AliasChoices("in", "in_")


def _with_zone(value: datetime) -> datetime:
    """Take a time without a time zone as UTC."""
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


ShortText = Annotated[str, Field(max_length=_LONGEST_TEXT)]
Texts = Annotated[list[ShortText], Field(max_length=MOST_VALUES)]
Uuids = Annotated[list[UUID], Field(max_length=MOST_VALUES)]
Moment = Annotated[datetime, AfterValidator(_with_zone)]
Integer = Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)]
Choice = TypeVar("Choice", bound=StrEnum)


class OrderDirection(StrEnum):
    """The direction of an order."""

    ASC = "ASC"
    DESC = "DESC"


class FieldCondition(RequestModel):
    """A condition on one field."""

    def operators(self) -> Iterator[tuple[str, Any]]:
        """Yield each operator that is given, such as ``not_in``, and its value."""
        for name in sorted(self.model_fields_set):
            if (value := getattr(self, name)) is not None:
                yield name.removesuffix("_"), value


class TextCondition(FieldCondition):
    """A condition on a text; operators that begin with ``i_`` ignore case."""

    equals: ShortText | None = None
    contains: ShortText | None = None
    starts_with: ShortText | None = None
    ends_with: ShortText | None = None
    not_equals: ShortText | None = None
    not_contains: ShortText | None = None
    not_starts_with: ShortText | None = None
    not_ends_with: ShortText | None = None
    i_equals: ShortText | None = None
    i_contains: ShortText | None = None
    i_starts_with: ShortText | None = None
    i_ends_with: ShortText | None = None
    i_not_equals: ShortText | None = None
    i_not_contains: ShortText | None = None
    i_not_starts_with: ShortText | None = None
    i_not_ends_with: ShortText | None = None
    in_: Texts | None = Field(default=None, validation_alias=_IN)
    not_in: Texts | None = None
    i_in: Texts | None = None
    i_not_in: Texts | None = None


class UuidCondition(FieldCondition):
    """A condition on an id."""

    equals: UUID | None = None
    not_equals: UUID | None = None
    in_: Uuids | None = Field(default=None, validation_alias=_IN)
    not_in: Uuids | None = None


class IntegerCondition(FieldCondition):
    """A condition on a whole number."""

    equals: Integer | None = None
    not_equals: Integer | None = None
    greater_than: Integer | None = None
    greater_than_or_equal: Integer | None = None
    less_than: Integer | None = None
    less_than_or_equal: Integer | None = None


class TimeCondition(FieldCondition):
    """A condition on a time; both bounds are exclusive."""

    before: Moment | None = None
    after: Moment | None = None
    equals: Moment | None = None
    not_equals: Moment | None = None


class ChoiceCondition(FieldCondition, Generic[Choice]):
    """A condition on one of several words."""

    equals: Choice | None = None
    not_equals: Choice | None = None
    in_: list[Choice] | None = Field(default=None, max_length=MOST_VALUES, validation_alias=_IN)
    not_in: list[Choice] | None = Field(default=None, max_length=MOST_VALUES)


class ScopeItem(RequestModel):
    """One id of a scope."""

    value: UUID


ScopeItems = Annotated[list[ScopeItem], Field(max_length=MOST_VALUES)]
