"""Whose jobs and workloads are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import context, op

if TYPE_CHECKING:
    from holdfast.domain.access import Principal

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Bring a database to 0028; what was stored before was submitted by whoever the server runs as."""
    owner: Principal | None = context.config.attributes.get("owner")
    for name in ("jobs", "workloads"):
        op.add_column(name, sa.Column("submitted_by", _KEY, nullable=False, server_default=""))
        op.add_column(name, sa.Column("submitter_uid", sa.BigInteger()))
        if owner is not None:
            table = sa.table(name, *map(sa.column, ("name", "submitted_by", "submitter_uid")))
            named = table.c.name.is_not(None)  # of others their jobs say whose they are
            op.execute(table.update().where(named).values(submitted_by=owner.name, submitter_uid=owner.uid))
    op.create_index("ix_jobs_submitted_by_seq", "jobs", ["submitted_by", "seq"])
