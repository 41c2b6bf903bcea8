"""Searches a table: conditions on its fields, any order, and pages by offset or from an item.

Both databases give the same answer: texts are compared byte by byte, and every condition is true or false, even where a
row has no value.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from sqlalchemy import BigInteger, ColumnElement, Integer, Text, and_, exists, false, func, not_, or_, select, true

from holdfast.compiled.records import storable
from holdfast.errors import InvalidRequest
from holdfast.ports.sessions import AllOf, AnyOf, Compare, Comparison, ListPage
from holdfast.storage.sql import codec, tables
from holdfast.storage.sql.damage import sound
from holdfast.storage.sql.rows.conditions import begins_with

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Column, Connection, Row, Table, TextClause

    from holdfast.ports.sessions import Condition, KernelField, Order, PageRequest, SessionField, StepField

    Field = SessionField | KernelField | StepField
    Elsewhere = Callable[[Compare, str], ColumnElement[bool]]

T = TypeVar("T")
_MOST = 2**31 - 1
"""Of rows to leave out, and of a whole number."""
_MOST_BIG = 2**63 - 1
_SQLITE = "sqlite"
_ABOVE, _BELOW = (Comparison.GREATER, Comparison.AT_LEAST), (Comparison.LESS, Comparison.AT_MOST)
_OPERATORS: Mapping[Comparison, Callable[[Any, Any], Any]] = {
    Comparison.EQUALS: operator.eq,
    Comparison.LESS: operator.lt,
    Comparison.AT_MOST: operator.le,
    Comparison.GREATER: operator.gt,
    Comparison.AT_LEAST: operator.ge,
}
_LIKE: Mapping[Comparison, Callable[..., ColumnElement[bool]]] = {
    Comparison.CONTAINS: ColumnElement.contains,
    Comparison.STARTS_WITH: ColumnElement.startswith,
    Comparison.ENDS_WITH: ColumnElement.endswith,
}
_LONGEST_PATTERN = 10_000
"""SQLite refuses patterns of more than 50,000 bytes."""


class Ordered(NamedTuple):
    """A column that a list is ordered by; no value is larger than any, as in PostgreSQL."""

    column: ColumnElement[Any]
    falls: bool
    nullable: bool = False

    def clause(self, *, backward: bool) -> ColumnElement[Any]:
        """Return the part of an ORDER BY."""
        falls = self.falls is not backward
        clause = self.column.desc() if falls else self.column.asc()
        if not self.nullable:
            return clause
        return clause.nulls_first() if falls else clause.nulls_last()

    def equals(self, value: object) -> ColumnElement[bool]:
        """Match the rows with a value."""
        return self.column.is_(None) if value is None else self._holds(self.column == value)

    def follows(self, value: object, *, backward: bool) -> ColumnElement[bool]:
        """Match the rows that come after a value."""
        if self.falls is not backward:
            return self.column.is_not(None) if value is None else self._holds(self.column < value)
        if value is None:
            return false()
        larger = self.column > value
        return or_(self.column.is_(None), larger) if self.nullable else larger

    def reaches(self, value: object, *, backward: bool) -> ColumnElement[bool]:
        """Match at least the rows with a value and after it, by a range that an index can begin at."""
        if self.nullable:
            return true()
        return self.column <= value if self.falls is not backward else self.column >= value

    def _holds(self, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        return and_(self.column.is_not(None), condition) if self.nullable else condition


class Search(NamedTuple, Generic[T]):
    """How the rows of one table are found, ordered and read."""

    table: Table
    read: Callable[[codec.Reader], Callable[[Row[*tuple[Any, ...]]], T]]
    """Returns what builds a record from a row."""
    columns: Mapping[Field, Column[Any]]
    """The columns of its fields."""
    key: tuple[Column[Any], ...]
    """What tells its rows apart: the last columns of every order."""
    item: Callable[[str], ColumnElement[bool]]
    """Matches the row with an id."""
    elsewhere: Mapping[Field, Elsewhere] = {}
    """Conditions on fields that are no columns of it, for a dialect."""

    def page(
        self, connection: Connection, where: Condition, request: PageRequest, *also: ColumnElement[bool] | TextClause
    ) -> ListPage[T]:
        """Return a page of what matches.

        Args:
            connection: A connection; the answer is consistent if its transaction is.
            where: What to look for.
            request: Which page of it.
            also: Further conditions, which the item that the list begins after or ends before must meet, too.

        Raises:
            InvalidRequest: There is no such item.
        """
        matches = and_(true(), self._condition(where, connection.dialect.name), *also)
        order, backward = self._order(request, connection.dialect.name), request.from_end
        start = self._place(connection, request.after, order, also)
        end = self._place(connection, request.before, order, also)
        query = select(self.table).where(
            matches, _beyond(order, start, backward=False), _beyond(order, end, backward=True)
        )
        query = query.order_by(*(ordered.clause(backward=backward) for ordered in order))
        rows = connection.execute(query.limit(request.limit + 1).offset(min(request.offset, _MOST))).all()
        more, rows = len(rows) > request.limit, rows[: request.limit]
        is_complete = not more and not request.offset and not (start or end)
        total = len(rows) if is_complete else self._count(connection, matches)
        left_out = total > 0 and request.offset > 0
        return ListPage(
            [*sound(reversed(rows) if backward else rows, self.read(codec.Reader()))],
            total,
            has_next=(left_out if backward else more) or self._any(connection, matches, order, end, backward=False),
            has_previous=(more if backward else left_out)
            or self._any(connection, matches, order, start, backward=True),
        )

    def _count(self, connection: Connection, matches: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(self.table).where(matches)
        return int(connection.execute(query).scalar_one())

    def _any(
        self,
        connection: Connection,
        matches: ColumnElement[bool],
        order: Sequence[Ordered],
        place: Sequence[object],
        *,
        backward: bool,
    ) -> bool:
        """Whether anything that matches is at a place or beyond it; nowhere is beyond no place."""
        if not place:
            return False
        beyond = _beyond(order, place, backward=backward, inclusive=True)
        query = select(exists(select(*self.key).where(matches, beyond)))
        return bool(connection.execute(query).scalar_one())

    def _order(self, request: PageRequest, dialect: str) -> list[Ordered]:
        order = [self._ordered(part, dialect) for part in request.order] or [
            Ordered(self.table.c.created_at, falls=True)
        ]
        return [*order, *(Ordered(column, order[-1].falls) for column in self.key)]

    def _ordered(self, part: Order, dialect: str) -> Ordered:
        column = self.columns[part.field]
        return Ordered(_byte_by_byte(column, dialect), part.descending, bool(column.nullable))

    def _place(
        self,
        connection: Connection,
        key: str | None,
        order: Sequence[Ordered],
        also: Sequence[ColumnElement[bool] | TextClause],
    ) -> Sequence[object]:
        """Return the values of an item that a list is ordered by; of no item none."""
        if key is None:
            return ()
        query = select(*(ordered.column for ordered in order)).where(self.item(key), *also)
        values = connection.execute(query).first()
        if values is None:
            message = f"there is no item {key!r} in this list"
            raise InvalidRequest(message, hint="begin again with the first page")
        return tuple(values)

    def _condition(self, where: Condition, dialect: str) -> ColumnElement[bool]:
        if isinstance(where, Compare):
            if where.field in self.elsewhere:
                return self.elsewhere[where.field](where, dialect)
            return compared(self.columns[where.field], where, dialect)
        parts = [self._condition(part, dialect) for part in where.parts]
        if isinstance(where, AllOf):
            return and_(true(), *parts)
        any_part = or_(false(), *parts)
        return any_part if isinstance(where, AnyOf) else not_(any_part)


def _beyond(
    order: Sequence[Ordered], place: Sequence[object], *, backward: bool, inclusive: bool = False
) -> ColumnElement[bool]:
    """Match the rows after a place, or before it; all if there is none.

    Args:
        order: What the list is ordered by.
        place: Its values there.
        backward: Whether those before it are meant.
        inclusive: Whether the row at the place matches, too.
    """
    if not place:
        return true()
    ways: list[ColumnElement[bool]] = []
    same: list[ColumnElement[bool]] = []
    for ordered, value in zip(order, place, strict=True):
        ways.append(and_(*same, ordered.follows(value, backward=backward)))
        same.append(ordered.equals(value))
    if inclusive:
        ways.append(and_(*same))
    return and_(order[0].reaches(place[0], backward=backward), or_(*ways))


def _byte_by_byte(column: Column[Any], dialect: str) -> ColumnElement[Any]:
    """Order texts as SQLite does, where a column of PostgreSQL has the order of a language."""
    if dialect == _SQLITE or not isinstance(column.type, Text) or column.type is tables.Key:
        return column
    return column.collate("C")


def compared(column: Column[Any], compare: Compare, dialect: str) -> ColumnElement[bool]:
    """Build the condition of a comparison."""
    if compare.value is None:
        return column.is_(None) if compare.comparison is Comparison.EQUALS else false()
    condition = _compared(column, compare, dialect)
    return and_(column.is_not(None), condition) if column.nullable else condition


def _compared(column: Column[Any], compare: Compare, dialect: str) -> ColumnElement[bool]:
    comparison, value = compare.comparison, compare.value
    if isinstance(value, tuple):
        return _among(column, value, compare, dialect)
    if isinstance(value, str):
        return _of_texts(column, value, compare, dialect)
    if not _fits(column, value):
        holds = comparison in (_BELOW if cast("int", value) > 0 else _ABOVE)
        return true() if holds else false()
    holds_if: ColumnElement[bool] = _OPERATORS[comparison](column, value)
    return holds_if


def _among(column: Column[Any], values: tuple[str | int, ...], compare: Compare, dialect: str) -> ColumnElement[bool]:
    texts = [_cased(value, compare) if isinstance(value, str) else value for value in values if _fits(column, value)]
    return _text(column, compare, dialect).in_(texts) if texts else false()


def _of_texts(column: Column[Any], value: str, compare: Compare, dialect: str) -> ColumnElement[bool]:
    text, part = _text(column, compare, dialect), _cased(value, compare)
    if dialect == _SQLITE and compare.ignores_case and compare.comparison in _LIKE and len(part) < _LONGEST_PATTERN:
        # Its LIKE ignores the case of ASCII letters, at a third of the cost of the functions below.
        return _LIKE[compare.comparison](column, part, autoescape=True)
    if compare.comparison is Comparison.CONTAINS:
        return (func.instr if dialect == _SQLITE else func.strpos)(text, part) > 0
    if compare.comparison is Comparison.STARTS_WITH:
        return begins_with(column, part) if text is column else func.substr(text, 1, len(part)) == part
    if compare.comparison is Comparison.ENDS_WITH:
        return func.substr(text, func.length(text) - len(part) + 1) == part
    holds: ColumnElement[bool] = _OPERATORS[compare.comparison](text, part)
    return holds


def _text(column: Column[Any], compare: Compare, dialect: str) -> ColumnElement[Any]:
    if not compare.ignores_case:
        return _byte_by_byte(column, dialect)
    return func.lower(column if dialect == _SQLITE else column.collate("C"))


def _cased(text: str, compare: Compare) -> str:
    stored = storable(text)
    return stored.encode().lower().decode() if compare.ignores_case else stored


def _fits(column: Column[Any], value: object) -> bool:
    """Whether a column can hold a number; PostgreSQL refuses others."""
    if not isinstance(value, int) or not isinstance(column.type, Integer):
        return True
    most = _MOST_BIG if isinstance(column.type, BigInteger) else _MOST
    return -most <= value <= most
