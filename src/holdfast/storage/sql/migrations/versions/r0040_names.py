"""What other systems call jobs; those that are there have no such names."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; nothing else changes."""
    key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    reference = sa.ForeignKeyConstraint(
        ["job_id"],
        ["jobs.id"],
        name="fk_names_job_id",
        ondelete="CASCADE",
        deferrable=True,
        initially="DEFERRED",
    )
    op.create_table(
        "names",
        sa.Column("name", key, nullable=False),
        sa.Column("job_id", key, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("taken_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_names"),
        reference,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_names_job_id", "names", ["job_id"])
