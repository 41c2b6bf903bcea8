"""Which job launched another; of those that are there nobody knows, and they end by themselves as before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; nothing else changes."""
    key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("jobs", sa.Column("parent", key))
