"""A job that is deleted goes before its files do, which are remembered until they are gone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Bring a database to 0025; no row is rewritten."""
    op.create_table(
        "discards",
        sa.Column("job_id", _KEY, nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_discards")),
        sqlite_with_rowid=False,
    )
