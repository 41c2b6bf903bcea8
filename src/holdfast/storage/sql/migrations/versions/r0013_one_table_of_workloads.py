"""One table of workloads, of every kind; there was one of job sets and one of jobs made of pods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from alembic import op

if TYPE_CHECKING:
    from collections.abc import Callable

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_AT_ONCE = 1000
_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_POD_FIELDS: dict[str, object] = {
    "restart": 0, "job_restart": 0, "present": True, "suspended": False, "deleting_since": None, "domain": "",
    "parallelism": None, "completions": None,
}  # fmt: skip
"""With their defaults, which are left out."""
_NEW = sa.table(
    "workloads",
    *map(sa.column, ("id", "kind", "owner", "name", "generation", "spec", "manifest", "deleting")),
    *map(sa.column, ("expires_at", "version", "created_at", "updated_at", "state")),
)
_LOG = ("seq", "set_id", "at", "kind", "body")


def upgrade() -> None:
    """Bring a database to 0013; every row moves, and nothing is lost."""
    op.add_column("runs", sa.Column("generation", sa.Integer(), nullable=False, server_default="1"))
    _create()
    sets = sa.table(
        "job_sets",
        *map(sa.column, ("id", "name", "created_at", "manifest", "lenient", "generation", "updated_at", "deleting")),
        *map(sa.column, ("state", "version", "spec")),
    )
    _move(sa.select(*sets.columns), sets.c.id, _of_set)
    pods = sa.table("pod_jobs", *map(sa.column, ("job_id", *_POD_FIELDS, "expires_at", "record")))
    jobs = sa.table("jobs", *map(sa.column, ("id", "set_id", "submitted_at")))
    of_jobs = sa.select(*pods.columns, jobs.c.set_id, jobs.c.submitted_at).join(jobs, jobs.c.id == pods.c.job_id)
    _move(of_jobs, pods.c.job_id, _of_pods)
    _have_logs_follow()
    op.drop_table("job_sets")
    op.drop_table("pod_jobs")


def _create() -> None:
    op.create_table(
        "workloads",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner", _KEY),
        sa.Column("name", _KEY),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("deleting", sa.Boolean(), nullable=False),
        sa.Column("expires_at", sa.Double()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.CheckConstraint("generation >= 1", name=op.f("ck_workloads_generation")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workloads")),
        sa.UniqueConstraint("kind", "name", name=op.f("uq_workloads_kind_name")),
    )
    expiring = sa.text("expires_at IS NOT NULL")
    op.create_index(
        "ix_workloads_expiring", "workloads", ["expires_at"], sqlite_where=expiring, postgresql_where=expiring
    )


def _move(rows: sa.Select[Any], key: sa.ColumnElement[Any], written: Callable[[Any], dict[str, Any]]) -> None:
    connection, after = op.get_bind(), ""
    query = rows.order_by(key).limit(_AT_ONCE)
    while some := [written(row) for row in connection.execute(query.where(key > after))]:
        connection.execute(sa.insert(_NEW), some)
        after = some[-1]["id"]


def _state(fields: dict[str, Any]) -> str:
    return json.dumps({"version": 1, **fields}, separators=(",", ":"))


def _of_set(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a row
    fields = {"lenient": True} if row.lenient else {}
    state = _state({**fields, "state": json.loads(row.state)})
    common = ("id", "name", "generation", "spec", "manifest", "version", "created_at", "updated_at")
    found = {name: getattr(row, name) for name in common}
    return {
        **found,
        "kind": "jobset",
        "owner": None,
        "deleting": bool(row.deleting),
        "expires_at": None,
        "state": state,
    }


def _of_pods(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a row
    given = {name: getattr(row, name) for name in _POD_FIELDS}
    given |= {"present": bool(row.present), "suspended": bool(row.suspended)}
    fields = {name: value for name, value in given.items() if value != _POD_FIELDS[name]}
    return {
        "id": row.job_id, "kind": "kubejob", "owner": row.set_id, "name": None, "generation": 1, "spec": "",
        "manifest": "", "deleting": False, "expires_at": row.expires_at, "version": 1,
        "created_at": row.submitted_at, "updated_at": 0.0, "state": _state({**fields, **json.loads(row.record)}),
    }  # fmt: skip


def _have_logs_follow() -> None:
    """Have logs go with their workload; SQLite makes a table anew for that, and must not give a number again."""
    if op.get_context().dialect.name == "postgresql":
        op.drop_constraint(op.f("fk_set_log_set_id"), "set_log")
        op.create_foreign_key(op.f("fk_set_log_set_id"), "set_log", "workloads", ["set_id"], ["id"], ondelete="CASCADE")
        return
    connection = op.get_bind()
    last = connection.execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'set_log'")).scalar() or 0
    op.drop_index("ix_set_log_set_id_seq", "set_log")
    op.rename_table("set_log", "set_log_before")
    op.create_table(
        "set_log",
        sa.Column("seq", _COUNTER, autoincrement=True, nullable=False),
        sa.Column("set_id", _KEY, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["set_id"], ["workloads.id"], name=op.f("fk_set_log_set_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_set_log")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_set_log_set_id_seq", "set_log", ["set_id", "seq"])
    columns: list[sa.ColumnClause[object]] = [sa.column(name) for name in _LOG]
    old = sa.select(*columns).select_from(sa.table("set_log_before"))
    op.execute(sa.table("set_log", *map(sa.column, _LOG)).insert().from_select([*_LOG], old))
    op.drop_table("set_log_before")
    connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'set_log'"))
    connection.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('set_log', :last)"), {"last": last})
