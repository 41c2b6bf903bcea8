"""Runs a statement over many rows at the driver's own speed.

Core statements are compiled once and fed positional tuples, because SQLAlchemy's own executemany spends more time on
parameters than SQLite on the rows.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Float, Text, bindparam, case, column, func, insert, literal_column, select, update
from sqlalchemy.dialects import sqlite

from holdfast.domain.audit import Subject
from holdfast.errors import Internal
from holdfast.storage.sql import declared, tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Dialect, Insert, Table
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.sql.expression import UpdateBase
    from sqlalchemy.types import TypeEngine

    Upsert = postgresql.Insert | sqlite.Insert
    AnyInsert = Insert | Upsert

T = TypeVar("T")
_PLACE = "place"
_IDS_PER_QUERY = 1000
REQUEST_NEW, AUDIT_NEW = (tuple(table.columns.keys()[1:]) for table in (tables.requests, tables.audit))
"""The fields of a row that has no number yet."""


def chunks(ids: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split ids into chunks that fit one statement."""
    for start in range(0, len(ids), _IDS_PER_QUERY):
        yield ids[start : start + _IDS_PER_QUERY]


def _array_of(type_: TypeEngine[Any]) -> TypeEngine[Any]:
    from sqlalchemy.dialects.postgresql import ARRAY  # noqa: PLC0415 - start-up time: asyncio comes with it

    return ARRAY(type_)


class StatementRows:
    """The rows of one statement; ``columns`` are their fields, in order.

    SQLite takes them row by row. PostgreSQL takes one array per column, at a tenth of the cost of the message per row
    that the driver's own executemany sends.
    """

    def __init__(self, types: Mapping[str, TypeEngine[Any]], dialect: Dialect) -> None:
        """Name the fields and their types."""
        self.types = {name: Text() if isinstance(type_, Text) else type_ for name, type_ in types.items()}
        self.by_column = dialect.name == "postgresql"
        self.columns: dict[str, ColumnElement[Any]] = {
            name: bindparam(name, type_=type_) for name, type_ in self.types.items()
        }
        if self.by_column:
            arrays = [bindparam(name, type_=_array_of(type_)) for name, type_ in self.types.items()]
            names = [column(name, type_) for name, type_ in self.types.items()]
            rows = func.unnest(*arrays).table_valued(*names, with_ordinality=_PLACE, name="new").render_derived()
            self._place: ColumnElement[Any] = rows.c[_PLACE]
            self.columns = {name: rows.c[name] for name in self.types}

    def into(self, statement: AnyInsert, values: Mapping[str, ColumnElement[Any]] | None = None) -> AnyInsert:
        """Insert the rows, or a query over them."""
        values = values or self.columns
        if not self.by_column:
            return statement.values(**values)
        return statement.from_select(list(values), select(*values.values()).order_by(self._place))

    def place_in_group(self, name: str) -> ColumnElement[int] | int:
        """Number the rows of each group from 1; row by row, a row is the group's first new one."""
        if not self.by_column:
            return 1
        return func.row_number().over(partition_by=self.columns[name], order_by=self._place)

    def arranged(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Arrange rows as the driver takes them; an array holds only one Python type."""
        readers = [float if isinstance(type_, Float) else None for type_ in self.types.values()]
        return [
            list(values) if read is None else [None if value is None else read(value) for value in values]
            for read, values in zip(readers, zip(*rows, strict=True), strict=True)
        ]


class Batch:
    """One statement for one dialect, run over rows given as tuples."""

    def __init__(self, statement: UpdateBase, dialect: Dialect, rows: StatementRows) -> None:
        """Compile a statement over the rows it is given.

        Raises:
            Internal: The statement takes its parameters in another order.
        """
        compiled = statement.compile(dialect=dialect)
        order = tuple(compiled.positiontup or ())
        if order != tuple(rows.types):
            message = f"statement takes {order}, rows come as {tuple(rows.types)}"
            raise Internal(message)
        self._rows = rows
        self._text = str(compiled)

    def run(self, connection: Connection, rows: list[tuple[Any, ...]]) -> int:
        """Run the statement over all rows, whose keys must differ; returns how many rows were affected."""
        if not rows:
            return 0
        if self._rows.by_column:
            return connection.exec_driver_sql(self._text, tuple(self._rows.arranged(rows))).rowcount
        # The driver directly: SQLAlchemy's overhead per statement costs as much as SQLite's work on a few rows.
        with closing(connection.connection.cursor()) as cursor:
            cursor.executemany(self._text, rows)
            return cursor.rowcount


class Lookup:
    """Finds the rows of any number of keys with one statement: the keys go as one parameter."""

    def __init__(
        self,
        key: ColumnElement[Any],
        *also: ColumnElement[Any],
        dialect: Dialect,
        where: ColumnElement[bool] | None = None,
        held: bool = False,
    ) -> None:
        """Compile the statement.

        Args:
            key: The column of the keys; it is selected, too.
            also: Further columns to select.
            dialect: The SQL dialect.
            where: A condition without parameters.
            held: Whether to lock the rows against deletion until the commit.
        """
        query = select(key, *also) if where is None else select(key, *also).where(where)
        self._as_array = dialect.name == "postgresql"
        if self._as_array:
            query = query.where(key == func.any(bindparam("keys", type_=_array_of(Text()))))
            query = query.with_for_update(read=True, key_share=True) if held else query
        else:  # SQLite has one writer at a time and needs no lock.
            keys = func.json_each(bindparam("keys", type_=Text())).table_valued("value")
            query = query.where(key.in_(select(keys.c.value)))
        self._text = str(query.compile(dialect=dialect))

    def rows(self, connection: Connection, keys: Collection[str]) -> Sequence[Any]:
        """Return the rows of those keys that exist."""
        if self._as_array:
            return connection.exec_driver_sql(self._text, ([*keys],)).all()
        with closing(connection.connection.cursor()) as cursor:
            cursor.execute(self._text, (json.dumps([*keys]),))
            return cursor.fetchall()

    def among(self, connection: Connection, keys: Collection[str]) -> set[str]:
        """Return which of the keys exist."""
        return {row[0] for row in self.rows(connection, keys)}


def _types(table: Table, columns: Sequence[str]) -> dict[str, TypeEngine[Any]]:
    return {name: table.c[name].type for name in columns}


def _insert_into(table: Table, dialect: Dialect) -> Upsert:
    if dialect.name == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - start-up time: asyncio comes with it

    return postgresql.insert(table)


def _insert(table: Table, columns: Sequence[str], dialect: Dialect) -> Batch:
    rows = StatementRows(_types(table, columns), dialect)
    return Batch(rows.into(insert(table).inline()), dialect, rows)


def _insert_new(table: Table, columns: Sequence[str], dialect: Dialect) -> Batch:
    """Insert rows whose key is new; leave existing rows alone."""
    rows = StatementRows(_types(table, columns), dialect)
    statement = _insert_into(table, dialect).on_conflict_do_nothing()
    return Batch(rows.into(statement), dialect, rows)


def _upsert(table: Table, dialect: Dialect, *, but: Collection[str] = ()) -> Batch:
    """Insert, or replace every column outside the key, ``but`` those that never change for a key.

    Writing a foreign key makes the database check it again, even where it stays the same.
    """
    statement = _insert_into(table, dialect)
    key = [column.name for column in table.primary_key]
    columns = [column.name for column in table.columns]
    rows = StatementRows(_types(table, columns), dialect)
    changed = {name: statement.excluded[name] for name in columns if name not in key and name not in but}
    statement = statement.on_conflict_do_update(index_elements=key, set_=changed)
    return Batch(rows.into(statement), dialect, rows)


def _update_by_id(table: Table, columns: Sequence[str], dialect: Dialect) -> Batch:
    """Update existing rows, given as the columns and the id."""
    types = {f"new_{name}": type_ for name, type_ in _types(table, columns).items()}
    rows = StatementRows({**types, "key": table.c.id.type}, dialect)
    statement = update(table).where(table.c.id == rows.columns["key"])
    return Batch(statement.values({name: rows.columns[f"new_{name}"] for name in columns}), dialect, rows)


def _inherited_names(dialect: Dialect) -> Batch:
    """Give sessions the names and tags that others have by now: clients may have changed those."""
    table, parent = tables.sessions, tables.sessions.alias("parent")
    rows = StatementRows({"parent": table.c.id.type, "key": table.c.id.type}, dialect)
    these = (parent.c.id == rows.columns["parent"], table.c.id == rows.columns["key"])
    return Batch(
        update(table).values({name: parent.c[name] for name in tables.SESSION_NAMED}).where(*these), dialect, rows
    )


def _delete_by_id(table: Table, dialect: Dialect) -> Batch:
    rows = StatementRows({"key": table.c.id.type}, dialect)
    return Batch(table.delete().where(table.c.id == rows.columns["key"]), dialect, rows)


def _numbered_events(dialect: Dialect) -> Batch:
    """Insert events, each with its job's next number, if it has a job: a job has one writer at a time."""
    table, earlier = tables.events, tables.events.alias("earlier")
    rest = ("type", "version", "at", "data", "group_name", *tables.EVENT_OWNER)
    types = _types(table, ("job_id", *rest))
    job = types.pop("job_id")
    rows = StatementRows({"job_id": job, "job": job, "of": job, **types}, dialect)
    new = rows.columns
    last = select(func.max(earlier.c.job_seq)).where(earlier.c.job_id == new["of"]).scalar_subquery()
    following = func.coalesce(last, literal_column("0")) + _literal(rows.place_in_group("job_id"))
    numbered = {"job_id": new["job_id"], "job_seq": case((new["job"].is_not(None), following))}
    return Batch(rows.into(insert(table).inline(), {**numbered, **{name: new[name] for name in rest}}), dialect, rows)


def _literal(value: ColumnElement[int] | int) -> ColumnElement[int]:
    return literal_column(str(value)) if isinstance(value, int) else value


class Batches:
    """Every hot statement, compiled for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        job = tables.jobs
        self.new_specs = _insert_new(tables.specs, ("digest", "body"), dialect)
        self.new_jobs = _insert(job, tables.JOB_NEW, dialect)
        self.new_labels = _insert(tables.job_labels, ("job_id", "key", "value"), dialect)
        self.keys = _insert_new(tables.idempotency, tables.idempotency.columns.keys(), dialect)
        self.names = _insert_new(declared.names, declared.names.columns.keys(), dialect)
        self.new_workloads = _insert_new(tables.workloads, tables.workloads.columns.keys(), dialect)
        self.jobs = _update_by_id(job, tables.JOB_CHANGING, dialect)
        self.priorities = _update_by_id(job, ("priority",), dialect)
        self.reruns = _insert_new(tables.reruns, tables.reruns.columns.keys(), dialect)
        self.workloads = _upsert(tables.workloads, dialect, but=tables.WORKLOAD_FIXED)
        self.quarantined = _upsert(tables.quarantine, dialect)
        self.released = _delete_by_id(tables.quarantine, dialect)
        self.set_log = _insert(tables.set_log, ("set_id", "at", "kind", "body"), dialect)
        self.forgotten = _delete_by_id(tables.workloads, dialect)
        self.attempts = _upsert(tables.attempts, dialect)
        self.runs = _upsert(
            tables.runs, dialect, but={"job_id", "attempt", "dispatch", "rank", "named", "devices", "token_digest"}
        )
        self.history = _upsert(tables.history, dialect)
        self.sessions = _upsert(tables.sessions, dialect, but=tables.SESSION_FIXED)
        self.inherited_names = _inherited_names(dialect)
        self.kernels = _upsert(tables.kernels, dialect, but=tables.KERNEL_FIXED)
        self.nodes = _upsert(tables.nodes, dialect)
        self.events = _numbered_events(dialect)
        self.notifications = _insert_new(tables.notifications, tables.NOTIFICATION_NEW, dialect)
        self.handled = _delete_by_id(tables.requests, dialect)
        self.requests = _insert(tables.requests, REQUEST_NEW, dialect)
        self.audit = _insert(tables.audit, AUDIT_NEW, dialect)
        self.known_jobs = Lookup(job.c.id, job.c.group_name, dialect=dialect)
        queues = declared.entries.c.kind == literal_column(f"'{Subject.QUEUE}'")
        self.known_queues = Lookup(declared.entries.c.name, dialect=dialect, where=queues, held=True)
        self.known_policies = Lookup(declared.policies.c.name, dialect=dialect, held=True)
