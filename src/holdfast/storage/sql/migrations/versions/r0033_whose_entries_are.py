"""Whose retry policies, queues, failure categories and notifiers are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import context, op

if TYPE_CHECKING:
    from holdfast.domain.access import Principal

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a database to 0033; what was stored before was submitted by whoever the server runs as."""
    owner: Principal | None = context.config.attributes.get("owner")
    for name in ("policies", "queues", "categories", "notifiers"):
        op.add_column(name, sa.Column("submitted_by", sa.Text(), nullable=False, server_default=""))
        if owner is not None:
            op.execute(sa.table(name, sa.column("submitted_by")).update().values(submitted_by=owner.name))
