"""The catalogue is stored as what it was compiled into, as specifications are.

An entry that cannot be compiled stays as it is: it is named when it is read, and a stand-in is in force instead.
"""

from __future__ import annotations

from contextlib import suppress

import sqlalchemy as sa
from alembic import op

from holdfast.dialects.earlier import upgrade_entry
from holdfast.errors import UnreadableSpec

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_ENTRIES = (("queue", "queues", "name"), ("category", "categories", "name"), ("settings", "settings", "id"))


def upgrade() -> None:
    """Bring a database to 0015; every entry keeps its meaning."""
    connection = op.get_bind()
    policies = sa.table("policy_revisions", *map(sa.column, ("name", "revision", "body")))
    for name, number, body in connection.execute(sa.select(*policies.c)).all():
        with suppress(UnreadableSpec):
            this = sa.update(policies).where(policies.c.name == name, policies.c.revision == number)
            connection.execute(this.values(body=upgrade_entry("policy", body, revision=number)))
    for kind, stored, key in _ENTRIES:
        table = sa.table(stored, sa.column(key), sa.column("body"))
        for name, body in connection.execute(sa.select(*table.c).where(table.c.body.is_not(None))).all():
            with suppress(UnreadableSpec):
                connection.execute(sa.update(table).where(table.c[key] == name).values(body=upgrade_entry(kind, body)))
