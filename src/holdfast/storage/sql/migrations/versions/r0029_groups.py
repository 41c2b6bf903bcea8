"""Groups of jobs and workloads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Bring a database to 0029; what was stored before is in no group."""
    for name in ("jobs", "workloads"):
        op.add_column(name, sa.Column("group_name", _KEY))
    grouped = sa.text("group_name IS NOT NULL")
    op.create_index(
        "ix_jobs_group_name_seq", "jobs", ["group_name", "seq"], sqlite_where=grouped, postgresql_where=grouped
    )
