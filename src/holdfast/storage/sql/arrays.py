"""Statements over many rows at once on PostgreSQL: one statement that takes each column as an array.

Decides how a statement for one row is turned into one for all of them; a message for each row, which is what the
driver's own executemany sends, costs ten times as much.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Boolean, Float, Integer, LargeBinary, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy.sql.compiler import SQLCompiler
    from sqlalchemy.types import TypeEngine

PLACE_IN_GROUP = "row_number() OVER (PARTITION BY new.c0 ORDER BY new.place)"
"""Counts, from 1, the rows whose first value is the same."""
_PLACEHOLDER = re.compile(r'%s(?:::[A-Z]+(?: COLLATE "C")?)?')
_VALUES = re.compile(r"VALUES \((.*?)\)(?: RETURNING [\w.]+)?($| ON CONFLICT )", re.DOTALL)
_NAMES: tuple[tuple[type[TypeEngine[Any]], str], ...] = (
    (Text, "text"),
    (BigInteger, "bigint"),
    (Integer, "integer"),
    (Float, "double precision"),
    (LargeBinary, "bytea"),
    (Boolean, "boolean"),
)


def over_arrays(compiled: SQLCompiler) -> str:
    """Turn an insert, update or delete of one row into one over as many as the arrays have."""
    types = [_name(compiled.binds[name].type) for name in compiled.positiontup or ()]
    numbers = iter(range(len(types)))
    text = _PLACEHOLDER.sub(lambda _: f"new.c{next(numbers)}", str(compiled))
    given = ", ".join(f"%s::{name}[]" for name in types)
    names = ", ".join(f"c{number}" for number in range(len(types)))
    rows = f"unnest({given}) WITH ORDINALITY AS new({names}, place)"
    if text.startswith("INSERT"):
        return _VALUES.sub(rf"SELECT \1 FROM {rows} ORDER BY new.place\2", text)  # noqa: S608 - made of our own tables
    joined = "FROM" if text.startswith("UPDATE") else "USING"
    head, where, condition = text.rpartition(" WHERE ")
    return f"{head} {joined} {rows}{where}{condition}"


def columns_of(compiled: SQLCompiler, rows: Sequence[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    """Turn rows into columns; the driver takes arrays of one Python type only."""
    readers = [_readers(compiled.binds[name].type) for name in compiled.positiontup or ()]
    return tuple(
        list(column) if read is None else [None if value is None else read(value) for value in column]
        for read, column in zip(readers, zip(*rows, strict=True), strict=True)
    )


def _name(type_: TypeEngine[Any]) -> str:
    return next(name for kind, name in _NAMES if isinstance(type_, kind))


def _readers(type_: TypeEngine[Any]) -> Callable[[Any], Any] | None:
    return float if isinstance(type_, Float) else None
