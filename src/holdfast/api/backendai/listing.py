"""Lists what is kept in memory, such as the entries that operators write: filtered, in order, and in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.api.backendai.models.conditions import FieldCondition, OrderDirection
from holdfast.api.backendai.models.parts import DEFAULT_PAGE, ListAnswer, PaginatedAnswer, Pagination
from holdfast.api.backendai.searching import holds, read_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.api.backendai.models.entries import SearchEntriesRequest
    from holdfast.api.backendai.models.parts import RequestModel

Row = TypeVar("Row")
View = TypeVar("View")


def list_rows(
    body: SearchEntriesRequest,
    where: RequestModel | None,
    rows: Sequence[Row],
    fields: Mapping[str, Callable[[Row], Any]],
    view: Callable[[Row], View],
) -> ListAnswer[View]:
    """Answer with a part of a list.

    Args:
        body: The part and the order.
        where: The filter.
        rows: All rows, by name.
        fields: The values of the fields of a row; ``id`` is one.
        view: Describes a row.

    Raises:
        InvalidRequest: A cursor is not one of an answer.
    """
    matching = [row for row in rows if where is None or _meets(where, row, fields)]
    for order in reversed(body.order or ()):
        if (value := fields.get(order.field.value)) is not None:
            matching.sort(key=value, reverse=order.direction is OrderDirection.DESC)
    start, end = _bounds(body, [str(fields["id"](row)) for row in matching])
    items = [view(row) for row in matching[start:end]]
    return ListAnswer(
        items=items, total_count=len(matching), has_next_page=end < len(matching), has_previous_page=start > 0
    )


def paginated(body: SearchEntriesRequest, answer: ListAnswer[View]) -> PaginatedAnswer[View]:
    """Return a part of a list as older lists tell it."""
    limit = body.limit or body.first or body.last
    where = Pagination(total=answer.total_count, offset=body.offset or 0, limit=limit)
    return PaginatedAnswer(items=answer.items, pagination=where)


def _bounds(body: SearchEntriesRequest, ids: Sequence[str]) -> tuple[int, int]:
    """Return where a part begins and ends."""
    limit, size = body.first or body.last or body.limit or DEFAULT_PAGE, len(ids)
    if body.before is not None or body.last is not None:
        key = None if body.before is None else read_cursor(body.before, "before")
        end = ids.index(key) if key in ids else size
        return max(0, end - limit), end
    start = min(body.offset or 0, size)
    if body.after is not None:
        key = read_cursor(body.after, "after")
        start = ids.index(key) + 1 if key in ids else size
    return start, min(start + limit, size)


def _meets(where: RequestModel, row: Row, fields: Mapping[str, Callable[[Row], Any]]) -> bool:
    """Whether a row meets all conditions of a filter."""
    for name in where.model_fields_set:
        condition = getattr(where, name)
        if condition is None:
            continue
        if name == "all_of":
            met = all(_meets(part, row, fields) for part in condition)
        elif name == "any_of":
            met = any(_meets(part, row, fields) for part in condition)
        elif name == "none_of":
            met = not any(_meets(part, row, fields) for part in condition)
        elif isinstance(condition, FieldCondition):
            met = all(holds(fields[name](row), operator, operand) for operator, operand in condition.operators())
        else:
            met = fields[name](row) == condition
        if not met:
            return False
    return True
