"""Statements run over many rows at once, at the driver's own speed.

Decides how a Core statement is compiled once and fed positional tuples, because SQLAlchemy's own executemany
spends more time on parameters than SQLite on the rows; leaves building the tuples to ``codec``.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from sqlalchemy import Text, bindparam, case, func, insert, literal_column, select, update
from sqlalchemy.dialects import postgresql, sqlite

from holdfast.errors import Internal
from holdfast.storage.sql import tables
from holdfast.storage.sql.arrays import PLACE_IN_GROUP, columns_of, over_arrays

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from sqlalchemy import Connection, Dialect, Table
    from sqlalchemy.sql.expression import UpdateBase

Upsert = postgresql.Insert | sqlite.Insert


class Batch:
    """One statement for one dialect, run over rows given as tuples."""

    def __init__(self, statement: UpdateBase, dialect: Dialect, columns: Sequence[str]) -> None:
        """Compile; ``columns`` is the order the tuples come in.

        Raises:
            Internal: The statement takes its parameters in another order.
        """
        compiled = statement.compile(dialect=dialect, column_keys=list(columns) if statement.is_insert else None)
        order = tuple(compiled.positiontup or ())
        if order != tuple(columns):
            message = f"statement takes {order}, rows come as {tuple(columns)}"
            raise Internal(message)
        self._compiled = compiled
        self._by_column = dialect.name == "postgresql"
        self._text = over_arrays(compiled) if self._by_column else str(compiled)

    def run(self, connection: Connection, rows: list[tuple[Any, ...]]) -> int:
        """Run over all rows, no two of which may be about the same thing; returns how many rows were touched."""
        if not rows:
            return 0
        if self._by_column:
            return connection.exec_driver_sql(self._text, columns_of(self._compiled, rows)).rowcount
        # The driver itself: what SQLAlchemy does around each statement costs as much as SQLite's work on a few rows.
        with closing(connection.connection.cursor()) as cursor:
            cursor.executemany(self._text, rows)
            return cursor.rowcount


def _insert_into(table: Table, dialect: Dialect) -> Upsert:
    return postgresql.insert(table) if dialect.name == "postgresql" else sqlite.insert(table)


def _upsert(table: Table, dialect: Dialect, *, but: Collection[str] = ()) -> Batch:
    """Insert, or replace every column that is not part of the key, ``but`` those that are always the same for it.

    Even where they stay as they are, a database looks up again whatever they refer to.
    """
    statement = _insert_into(table, dialect)
    key = [column.name for column in table.primary_key]
    columns = [column.name for column in table.columns]
    return Batch(
        statement.on_conflict_do_update(
            index_elements=key,
            set_={name: statement.excluded[name] for name in columns if name not in key and name not in but},
        ),
        dialect,
        columns,
    )


def _update_by_id(table: Table, columns: Sequence[str], dialect: Dialect) -> Batch:
    """Change rows that are there; rows come as the columns and the id."""
    statement = update(table).where(table.c.id == bindparam("key"))
    statement = statement.values({name: bindparam(f"new_{name}") for name in columns})
    return Batch(statement, dialect, (*(f"new_{name}" for name in columns), "key"))


def _delete_by_id(table: Table, dialect: Dialect) -> Batch:
    return Batch(table.delete().where(table.c.id == bindparam("key")), dialect, ("key",))


def _numbered_events(dialect: Dialect) -> Batch:
    """Insert events, each with its job's next number if it has a job; only the job's one writer at a time asks."""
    table, earlier = tables.events, tables.events.alias("earlier")
    last = select(func.max(earlier.c.job_seq)).where(earlier.c.job_id == bindparam("of")).scalar_subquery()
    rest = ("type", "version", "at", "data")
    next_one = PLACE_IN_GROUP if dialect.name == "postgresql" else "1"  # where all rows see what was there before
    statement = insert(table).values(
        job_id=bindparam("job_id"),
        job_seq=case(
            (
                bindparam("job", type_=Text).is_not(None),
                func.coalesce(last, literal_column("0")) + literal_column(next_one),
            )
        ),
        **{name: bindparam(name) for name in rest},
    )
    return Batch(statement, dialect, ("job_id", "job", "of", *rest))


class Batches:
    """Every hot statement, compiled for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        """Compile all of them."""
        job = tables.jobs
        self.new_specs = Batch(
            _insert_into(tables.specs, dialect).on_conflict_do_nothing(), dialect, ("digest", "body")
        )
        self.new_jobs = Batch(insert(job), dialect, tables.JOB_NEW)
        self.new_labels = Batch(insert(tables.job_labels), dialect, ("job_id", "key", "value"))
        self.keys = Batch(
            _insert_into(tables.idempotency, dialect).on_conflict_do_nothing(),
            dialect,
            [column.name for column in tables.idempotency.columns],
        )
        self.new_sets = Batch(
            _insert_into(tables.job_sets, dialect).on_conflict_do_nothing(),
            dialect,
            [column.name for column in tables.job_sets.columns],
        )
        self.jobs = _update_by_id(job, tables.JOB_CHANGING, dialect)
        self.job_sets = _update_by_id(tables.job_sets, tables.JOB_SET_CHANGING, dialect)
        self.kube_jobs = _upsert(tables.kube_jobs, dialect)
        self.quarantined = _upsert(tables.quarantine, dialect)
        self.released = _delete_by_id(tables.quarantine, dialect)
        self.set_log = Batch(insert(tables.set_log), dialect, ("set_id", "at", "kind", "body"))
        self.deleted_sets = _delete_by_id(tables.job_sets, dialect)
        self.attempts = _upsert(tables.attempts, dialect)
        self.runs = _upsert(tables.runs, dialect, but={"job_id", "attempt", "dispatch", "rank"})
        self.history = _upsert(tables.history, dialect)
        self.nodes = _upsert(tables.nodes, dialect)
        self.events = _numbered_events(dialect)
        self.handled = _delete_by_id(tables.requests, dialect)
