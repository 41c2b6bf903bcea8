"""Reads the filters, orders and pages of searches."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from holdfast.api.backendai.models.conditions import FieldCondition, OrderDirection
from holdfast.api.backendai.models.parts import DEFAULT_PAGE, ListAnswer
from holdfast.api.backendai.views import KERNEL_STATUSES
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import named_id
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.sessions import (
    EVERYTHING,
    AllOf,
    AnyOf,
    Compare,
    Comparison,
    Condition,
    ListPage,
    NoneOf,
    Order,
    PageRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.api.backendai.models.parts import Paging, RequestModel
    from holdfast.ports.sessions import KernelField, SessionField, StepField

    Reader = Callable[[str, Any], Condition]
    """Returns the condition that an operator and its value mean."""
    Field = SessionField | KernelField | StepField

MOST_CONDITIONS = 200
"""Conditions of one filter, with those within it."""
NOTHING = AnyOf()
NOT, IGNORING_CASE = "not_", "i_"
_COMBINED: dict[str, type[AllOf | AnyOf | NoneOf]] = {"all_of": AllOf, "any_of": AnyOf, "none_of": NoneOf}
_COMPARISONS = {
    "equals": Comparison.EQUALS,
    "in": Comparison.IN,
    "contains": Comparison.CONTAINS,
    "starts_with": Comparison.STARTS_WITH,
    "ends_with": Comparison.ENDS_WITH,
    "less_than": Comparison.LESS,
    "less_than_or_equal": Comparison.AT_MOST,
    "greater_than": Comparison.GREATER,
    "greater_than_or_equal": Comparison.AT_LEAST,
    "before": Comparison.LESS,
    "after": Comparison.GREATER,
}
_CURSOR = "cursor:v1:"
Row = TypeVar("Row")
View = TypeVar("View")


class OrderRequest(Protocol):
    """One key of a requested order."""

    @property
    def field(self) -> StrEnum:
        """What to order by."""

    @property
    def direction(self) -> OrderDirection:
        """In which direction."""


def column(field: Field) -> Reader:
    """Return the reader of a field that is stored as clients see it."""

    def read(operator: str, operand: object) -> Condition:
        ignores_case = operator.startswith(IGNORING_CASE)
        operator = operator.removeprefix(IGNORING_CASE)
        negated = operator.startswith(NOT)
        comparison = _COMPARISONS[operator.removeprefix(NOT)]
        compare = Compare(field, comparison, _plain(operand), ignores_case)
        return NoneOf((compare,)) if negated else compare

    return read


def kernel_status(field: Field) -> Reader:
    """Return the reader of a status of kernels, of which clients know only some."""

    def read(operator: str, operand: object) -> Condition:
        words = {str(word) for word in operand} if isinstance(operand, list) else {str(operand)}
        statuses = tuple(status.value for status in RunStatus if KERNEL_STATUSES.get(status, status.value) in words)
        compare = Compare(field, Comparison.IN, statuses)
        return NoneOf((compare,)) if operator.startswith(NOT) else compare

    return read


def constant(value: str | bool | None) -> Reader:  # noqa: FBT001 - the value of a field
    """Return the reader of a field that has the same value in every record."""

    def read(operator: str, operand: object) -> Condition:
        return EVERYTHING if holds(value, operator, operand) else NOTHING

    return read


def named(field: Field, kind: str, names: Callable[[], Collection[str]]) -> Reader:
    """Return the reader of the id of something that is stored by its name; see ``named_id``."""

    def read(operator: str, operand: object) -> Condition:
        ids = {str(id_) for id_ in operand} if isinstance(operand, list) else {str(operand)}
        matching = tuple(sorted(name for name in names() if named_id(kind, name) in ids))
        compare = Compare(field, Comparison.IN, matching)
        return NoneOf((compare,)) if operator.startswith(NOT) else compare

    return read


def condition_of(request: RequestModel | None, readers: Mapping[str, Reader]) -> Condition:
    """Return the condition that a filter means.

    Raises:
        InvalidRequest: It has too many conditions.
    """
    return EVERYTHING if request is None else _read(request, readers, [MOST_CONDITIONS])


def _read(request: RequestModel, readers: Mapping[str, Reader], budget: list[int]) -> Condition:
    parts: list[Condition] = []
    for name in sorted(request.model_fields_set):
        value = getattr(request, name)
        if value is None:
            continue
        if name in _COMBINED:
            parts.append(_COMBINED[name](tuple(_read(part, readers, budget) for part in value)))
        elif isinstance(value, FieldCondition):
            parts += [readers[name](operator, operand) for operator, operand in value.operators()]
        else:
            parts.append(readers[name]("in" if isinstance(value, list) else "equals", value))
    budget[0] -= max(1, len(parts))
    if budget[0] < 0:
        raise InvalidRequest(problems=[Problem("filter", f"has more than {MOST_CONDITIONS} conditions")])
    return AllOf(tuple(parts))


def page_of(paging: Paging, orders: Sequence[OrderRequest] | None, fields: Mapping[str, Field | None]) -> PageRequest:
    """Read which part of a list to return, in which order.

    Args:
        paging: The part.
        orders: The keys of the order.
        fields: What each key means; one that means nothing is left out, as all records have it alike.

    Raises:
        InvalidRequest: A cursor is not one of an answer.
    """
    keys = [(fields[request.field.value], request.direction) for request in orders or ()]
    return PageRequest(
        limit=paging.first or paging.last or paging.limit or DEFAULT_PAGE,
        offset=paging.offset or 0,
        after=None if paging.after is None else read_cursor(paging.after, "after"),
        before=None if paging.before is None else read_cursor(paging.before, "before"),
        order=tuple(Order(field, direction is OrderDirection.DESC) for field, direction in keys if field is not None),
    )


def result_of(paging: Paging, page: PageRequest, search: Callable[[PageRequest], ListPage[Row]]) -> ListPage[Row]:
    """Search for a part of a list; ``last`` without ``before`` is its end."""
    if paging.last is None or paging.before is not None:
        return search(page)
    total = search(evolve(page, limit=1)).total
    return search(evolve(page, offset=max(0, total - page.limit)))


def read_cursor(cursor: str, field: str) -> str:
    """Return the id of the record that a cursor stands for.

    Raises:
        InvalidRequest: It is no cursor.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith(_CURSOR) or "\0" in text:
        raise InvalidRequest(problems=[Problem(field, "is not a cursor of an answer")])
    return text.removeprefix(_CURSOR)


def cursor_of(key: str) -> str:
    """Return the cursor that stands for a record, by its id."""
    return base64.urlsafe_b64encode(f"{_CURSOR}{key}".encode()).decode().rstrip("=")


def listed(page: ListPage[Row], view: Callable[[Row], View]) -> ListAnswer[View]:
    """Return the answer for a part of a list."""
    return ListAnswer(
        items=[view(row) for row in page.items],
        total_count=page.total,
        has_next_page=page.has_next,
        has_previous_page=page.has_previous,
    )


def holds(value: Any, operator: str, operand: Any) -> bool:  # noqa: ANN401 - of the field's type
    """Whether a value in memory meets an operator; one that is missing meets only what is negated."""
    ignores_case = operator.startswith(IGNORING_CASE)
    operator = operator.removeprefix(IGNORING_CASE)
    negated = operator.startswith(NOT)
    if ignores_case:
        value, operand = _folded(value), _folded(operand)
    return (value is not None and _HOLDS[operator.removeprefix(NOT)](value, operand)) is not negated


def _folded(value: Any) -> Any:  # noqa: ANN401 - a text or several
    if isinstance(value, str):
        return value.lower()
    return [text.lower() for text in value] if isinstance(value, list) else value


_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": lambda value, operand: value == operand,
    "in": lambda value, operand: value in operand,
    "contains": lambda value, operand: operand in value,
    "starts_with": lambda value, operand: value.startswith(operand),
    "ends_with": lambda value, operand: value.endswith(operand),
    "before": lambda value, operand: value < operand,
    "after": lambda value, operand: value > operand,
}


def _plain(value: Any) -> Any:  # noqa: ANN401 - a value of a filter
    """Return a value as records have it: ids and words as text, times in seconds since the epoch."""
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    if isinstance(value, datetime):
        return value.timestamp()
    return str(value) if isinstance(value, (UUID, StrEnum)) else value
