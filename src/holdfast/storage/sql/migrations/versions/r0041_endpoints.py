"""Where programs of jobs answer; what was registered so far was in memory, and nothing is lost with it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; nothing else changes."""
    key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "endpoints",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", key, nullable=False),
        sa.Column("system", key, nullable=False),
        sa.Column("name", key, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("job_id", key, nullable=False),
        sa.Column("job_name", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("until", sa.Double),
        sa.PrimaryKeyConstraint("seq", name="pk_endpoints"),
        sa.UniqueConstraint("id", name="uq_endpoints_id"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_endpoints_job_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_endpoints_job_id", "endpoints", ["job_id"])
    op.create_index("ix_endpoints_system_name", "endpoints", ["system", "name"])
