"""A task is run again by one array only; of those that do at once, the first goes on and the others are cancelled."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa
from alembic import op

from holdfast.compiled.codec import load_array
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Iterator

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ARRAYS = sa.table("workloads", *map(sa.column, ("id", "kind", "name", "spec", "deleting", "created_at", "state")))
_RERUNS = sa.table("reruns", *map(sa.column, ("root", "task", "number", "array")))
_REQUESTS = sa.table("requests", *map(sa.column, ("kind", "job_ids", "created_at", "actor", "reason", "payload")))


class _Rerun(NamedTuple):
    """An array that runs tasks of another again."""

    id: str
    name: str
    created_at: float
    is_over: bool
    root: str
    number: int
    tasks: list[int]


def upgrade() -> None:
    """Bring a database to 0023."""
    op.create_table(
        "reruns",
        sa.Column("root", _KEY, nullable=False),
        sa.Column("task", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("array", _KEY, nullable=False),
        sa.ForeignKeyConstraint(["array"], ["workloads.id"], name=op.f("fk_reruns_array"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("root", "task", "number", name=op.f("pk_reruns")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_reruns_array"), "reruns", ["array"])
    connection = op.get_bind()
    known: set[tuple[str, int, int]] = set()
    runs: dict[tuple[str, int], str] = {}
    for one in sorted(_reruns(connection), key=attrgetter("is_over")):
        new = {(one.root, task, one.number) for task in one.tasks} - known
        known |= new
        if new:
            rows = [{"root": root, "task": task, "number": number, "array": one.id} for root, task, number in new]
            connection.execute(_RERUNS.insert(), rows)
        if one.is_over:
            continue
        first = next((runs[one.root, task] for task in one.tasks if (one.root, task) in runs), None)
        if first is None:
            runs.update({(one.root, task): one.name for task in one.tasks})
        else:
            _cancel(connection, one, f"array {first}, which was submitted first, runs the same tasks again")


def _reruns(connection: sa.Connection) -> Iterator[_Rerun]:
    """Read the arrays that run tasks again, the first first; one that cannot be read is left out."""
    query = sa.select(_ARRAYS).where(_ARRAYS.c.kind == "array").order_by(_ARRAYS.c.created_at, _ARRAYS.c.id)
    for row in connection.execute(query):
        try:
            stored = json.loads(row.state)
            origins = stored.get("origins", ())
            tasks = [*load_array(row.spec).every_index()] if origins else []
        except (ValueError, HoldfastError):
            continue
        if origins:
            is_over = bool(row.deleting or stored.get("state", {}).get("status"))
            yield _Rerun(row.id, row.name, row.created_at, is_over, origins[-1]["id"], len(origins), tasks)


def _cancel(connection: sa.Connection, one: _Rerun, reason: str) -> None:
    asked = {"kind": "cancel", "job_ids": json.dumps([one.id]), "reason": reason}
    connection.execute(_REQUESTS.insert().values(**asked, created_at=one.created_at, actor="", payload=""))
