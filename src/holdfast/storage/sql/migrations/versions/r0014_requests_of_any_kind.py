"""Requests name no kind of workload; job sets that have ended say when they are forgotten."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_VERBS = {
    "set_submit": "submit",
    "set_update": "update",
    "set_suspend": "hold",
    "set_resume": "release",
    "set_restart": "restart",
    "set_delete": "delete",
}
_REQUESTS = sa.table("requests", sa.column("kind"))
_WORKLOADS = sa.table("workloads", *map(sa.column, ("id", "kind", "spec", "state", "expires_at")))


def upgrade() -> None:
    """Bring a database to 0014; what was asked and not done yet is kept."""
    for before, now in _VERBS.items():
        op.execute(sa.update(_REQUESTS).where(_REQUESTS.c.kind == before).values(kind=now))
    connection, table = op.get_bind(), _WORKLOADS
    ending = sa.select(table).where(table.c.kind == "jobset", table.c.spec.like('%"ttl_s":%'))
    for row in connection.execute(ending).all():
        expires_at = _expires_at(row.spec, row.state)
        if expires_at is not None:
            connection.execute(sa.update(table).where(table.c.id == row.id).values(expires_at=expires_at))


def _expires_at(spec: str, state: str) -> float | None:
    """Return when a set is forgotten, if it has ended; one that cannot be read is left alone."""
    try:
        ttl_s: Any = json.loads(spec)["spec"].get("ttl_s")
        ended_at: Any = json.loads(state)["state"].get("ended_at")
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return None if ttl_s is None or ended_at is None else ended_at + ttl_s
