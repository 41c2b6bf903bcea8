"""The queues of arrays and job sets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from holdfast.compiled.codec import load_array, load_set_spec
from holdfast.errors import HoldfastError

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

_WORKLOADS = sa.table("workloads", *map(sa.column, ("id", "kind", "spec", "queue")))


def upgrade() -> None:
    """Bring a database to 0034; what cannot be read of what was stored before is in no queue."""
    op.add_column("workloads", sa.Column("queue", sa.Text(), nullable=False, server_default=""))
    connection = op.get_bind()
    table = _WORKLOADS
    query = sa.select(table.c.id, table.c.kind, table.c.spec).where(table.c.kind.in_(("array", "jobset")))
    change = table.update().where(table.c.id == sa.bindparam("key")).values(queue=sa.bindparam("queue"))
    found = [{"key": row.id, "queue": queue} for row in connection.execute(query) if (queue := _queue_of(row))]
    if found:
        connection.execute(change, found)


def _queue_of(row: sa.Row[*tuple[str, ...]]) -> str:
    try:
        return load_array(row.spec).job.queue if row.kind == "array" else load_set_spec(row.spec).queue_name
    except HoldfastError:
        return ""
