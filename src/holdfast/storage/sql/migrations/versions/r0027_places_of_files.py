"""The files of a deleted job are discarded in each data directory that may have some."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Bring a database to 0027; where the files of jobs are that were deleted before, nobody knows."""
    op.create_table(
        "places",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("came_at", sa.Double(), nullable=False),
        sa.Column("left_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_places")),
        sqlite_with_rowid=False,
    )
    before = sa.table("discards", sa.column("job_id"))
    deleted = op.get_bind().execute(sa.select(before.c.job_id)).scalars().all()
    op.drop_table("discards")
    discards = op.create_table(
        "discards",
        sa.Column("place", _KEY, nullable=False),
        sa.Column("job_id", _KEY, nullable=False),
        sa.PrimaryKeyConstraint("place", "job_id", name=op.f("pk_discards")),
        sqlite_with_rowid=False,
    )
    op.bulk_insert(discards, [{"place": "", "job_id": job_id} for job_id in deleted])
