"""A limit of a queue that is 0 means none of it; what stood for no limit is left out."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_NO_LIMIT = (0, "0", "0m")


def upgrade() -> None:
    """Bring a database to 0009; every queue keeps the limits it had."""
    connection, queues = op.get_bind(), sa.table("queues", sa.column("name"), sa.column("body"))
    for name, body in connection.execute(sa.select(queues.c.name, queues.c.body)).all():
        queue = json.loads(body)
        limits = queue["spec"].pop("maxRunning", {})
        if left := {kind: most for kind, most in limits.items() if most not in _NO_LIMIT}:
            queue["spec"]["maxRunning"] = left
        written = json.dumps(queue, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        connection.execute(sa.update(queues).where(queues.c.name == name).values(body=written))
