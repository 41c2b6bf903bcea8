"""The parameters of statements over many rows: row by row on SQLite, one array per column on PostgreSQL.

On PostgreSQL one statement with arrays costs a tenth of a message per row, which is what the driver's own executemany
sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Float, Text, bindparam, column, func, select

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import ColumnElement, Dialect, Insert
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.types import TypeEngine

    AnyInsert = Insert | postgresql.Insert | sqlite.Insert

_PLACE = "place"


class Given:
    """The rows of one statement; ``columns`` are their values, in the order they come in."""

    def __init__(self, types: Mapping[str, TypeEngine[Any]], dialect: Dialect) -> None:
        """Name the values and what they are."""
        self.types = {name: Text() if isinstance(type_, Text) else type_ for name, type_ in types.items()}
        self.by_column = dialect.name == "postgresql"
        self.columns: dict[str, ColumnElement[Any]] = {
            name: bindparam(name, type_=type_) for name, type_ in self.types.items()
        }
        if self.by_column:
            from sqlalchemy.dialects.postgresql import ARRAY  # noqa: PLC0415 - start-up time: asyncio comes with it

            arrays = [bindparam(name, type_=ARRAY(type_)) for name, type_ in self.types.items()]
            names = [column(name, type_) for name, type_ in self.types.items()]
            rows = func.unnest(*arrays).table_valued(*names, with_ordinality=_PLACE, name="new").render_derived()
            self._place: ColumnElement[Any] = rows.c[_PLACE]
            self.columns = {name: rows.c[name] for name in self.types}

    def into(self, statement: AnyInsert, values: Mapping[str, ColumnElement[Any]] | None = None) -> AnyInsert:
        """Insert the rows, or what is made of them."""
        values = values or self.columns
        if not self.by_column:
            return statement.values(**values)
        return statement.from_select(list(values), select(*values.values()).order_by(self._place))

    def place_in_group(self, name: str) -> ColumnElement[int] | int:
        """Count, from 1, the rows that have the same value; row by row, each is the first that is not there yet."""
        if not self.by_column:
            return 1
        return func.row_number().over(partition_by=self.columns[name], order_by=self._place)

    def arranged(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return rows as the driver takes them; in an array it takes one Python type only."""
        if not self.by_column:
            return list(rows)
        readers = [_reader(type_) for type_ in self.types.values()]
        return [
            list(values) if read is None else [None if value is None else read(value) for value in values]
            for read, values in zip(readers, zip(*rows, strict=True), strict=True)
        ]


def _reader(type_: TypeEngine[Any]) -> Callable[[Any], Any] | None:
    return float if isinstance(type_, Float) else None
